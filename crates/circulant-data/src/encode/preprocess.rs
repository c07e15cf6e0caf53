//! From stored pictures to what an encoder wants: size, order of channels, mean and deviation.

use std::fmt;
use std::str::FromStr;

use resize::{Pixel, Type};
use rgb::FromSlice;
use serde::{Deserialize, Serialize};

use super::super::error::DataError;
use super::super::images::{ImageSet, Pixels};
use super::super::options::by_name;

/// The order of the channels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelOrder {
    /// Red first.
    #[default]
    Rgb,
    /// Blue first.
    Bgr,
}

impl ChannelOrder {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Rgb, Self::Bgr];

    /// As flags and settings write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rgb => "rgb",
            Self::Bgr => "bgr",
        }
    }
}

impl fmt::Display for ChannelOrder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for ChannelOrder {
    type Err = DataError;

    fn from_str(name: &str) -> Result<Self, DataError> {
        by_name(&Self::ALL, name, "an order of channels")
    }
}

/// What is done to a picture, in this order. Numbers are in `[0, 1]` where the file has bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Preprocessing {
    /// Scales to `[height, width]` by cubic convolution (Catmull-Rom; the `bicubic` of other programs).
    pub resize: Option<[usize; 2]>,
    /// Subtracted per channel, red first; empty for nothing.
    pub mean: Vec<f32>,
    /// Divides per channel after that, red first; empty for nothing.
    pub std: Vec<f32>,
    /// The order in which the encoder wants the channels.
    pub order: ChannelOrder,
}

impl Preprocessing {
    /// Whether the numbers can be used.
    pub fn check(&self) -> Result<(), DataError> {
        let fits = |numbers: &[f32], sound: fn(&f32) -> bool| {
            numbers.is_empty() || (numbers.len() == 3 && numbers.iter().all(sound))
        };
        if fits(&self.mean, |x| x.is_finite()) && fits(&self.std, |x| x.is_finite() && *x > 0.0) {
            return Ok(());
        }
        Err(DataError::format(
            "preprocessing",
            "three finite means and three positive deviations, for red, green and blue",
            format!("mean {:?}, std {:?}", self.mean, self.std),
            "give three numbers, separated by commas, or leave them out",
        ))
    }

    /// `[height, width]` of the encoder's input for pictures of this size.
    pub fn size(&self, size: [usize; 2]) -> [usize; 2] {
        self.resize.unwrap_or(size)
    }

    /// One picture of a set as `[3, height, width]`; grey ones have three equal channels.
    pub fn apply(&self, set: &ImageSet, index: usize) -> Result<Vec<f32>, DataError> {
        let [_, channels, height, width] = set.shape();
        let (row, plane) = (set.row(), height * width);
        let start = index * row;
        let number = |position: usize| match set.pixels() {
            Pixels::U8(bytes) => f32::from(bytes[start + position]) / 255.0,
            Pixels::F32(values) => values[start + position],
        };
        let colour = |channel: usize| if channels == 3 { channel } else { 0 };
        let size = self.size([height, width]);
        let mut planes: Vec<f32> = (0..3 * plane)
            .map(|i| number(colour(i / plane) * plane + i % plane))
            .collect();
        if size != [height, width] {
            planes = scaled(&planes, [height, width], size).map_err(|error| {
                DataError::format(
                    set.source(),
                    "a size that pictures can be scaled to",
                    error.to_string(),
                    "give another size",
                )
            })?;
            if matches!(set.pixels(), Pixels::U8(_)) {
                // Cubic convolution leaves the range beside edges; bytes could not have.
                planes.iter_mut().for_each(|x| *x = x.clamp(0.0, 1.0));
            }
        }
        let plane = size[0] * size[1];
        for (channel, values) in planes.chunks_exact_mut(plane).enumerate() {
            let mean = self.mean.get(channel).copied().unwrap_or(0.0);
            let std = self.std.get(channel).copied().unwrap_or(1.0);
            values.iter_mut().for_each(|x| *x = (*x - mean) / std);
        }
        if self.order == ChannelOrder::Bgr {
            let (red, rest) = planes.split_at_mut(plane);
            red.swap_with_slice(&mut rest[plane..]);
        }
        Ok(planes)
    }
}

/// Planes of `[height, width]`, scaled by cubic convolution.
fn scaled(planes: &[f32], from: [usize; 2], to: [usize; 2]) -> Result<Vec<f32>, resize::Error> {
    let kind = (Pixel::GrayF32, Type::Catrom);
    let mut scaler = resize::new(from[1], from[0], to[1], to[0], kind.0, kind.1)?;
    let mut output = vec![0.0; planes.len() / (from[0] * from[1]) * to[0] * to[1]];
    let planes = planes.chunks_exact(from[0] * from[1]);
    for (plane, output) in planes.zip(output.chunks_exact_mut(to[0] * to[1])) {
        scaler.resize(plane.as_gray(), output.as_gray_mut())?;
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::super::super::labels::Labels;
    use super::*;

    fn set(channels: usize) -> ImageSet {
        let bytes = (0..channels * 6).map(|i| (i * 10) as u8).collect();
        ImageSet::new(
            Pixels::U8(bytes),
            [1, channels, 2, 3],
            Labels::default(),
            "test",
        )
        .unwrap()
    }

    #[test]
    fn numbers_are_normalised_and_ordered() {
        let preprocessing = Preprocessing {
            mean: vec![0.5, 0.0, 0.0],
            std: vec![0.5, 1.0, 0.1],
            order: ChannelOrder::Bgr,
            ..Preprocessing::default()
        };
        let values = preprocessing.apply(&set(3), 0).unwrap();
        let unit = |i: usize| (i * 10) as f32 / 255.0;
        assert_eq!(values[0], unit(12) / 0.1);
        assert_eq!(values[6], unit(6));
        assert_eq!(values[12], (unit(0) - 0.5) / 0.5);
        let grey = Preprocessing::default().apply(&set(1), 0).unwrap();
        assert_eq!(grey.len(), 18);
        assert!(grey[..6] == grey[6..12] && grey[..6] == grey[12..]);
    }

    #[test]
    fn scaling_keeps_constants_and_is_cubic() {
        let flat = ImageSet::new(
            Pixels::U8(vec![200; 3 * 16]),
            [1, 3, 4, 4],
            Labels::default(),
            "flat",
        )
        .unwrap();
        let preprocessing = Preprocessing {
            resize: Some([12, 8]),
            ..Preprocessing::default()
        };
        let values = preprocessing.apply(&flat, 0).unwrap();
        assert_eq!(values.len(), 3 * 96);
        assert!(values.iter().all(|x| (x - 200.0 / 255.0).abs() < 1e-6));

        // One dimension, factor 3: output pixel i samples the input at (i + 0.5)/3 - 0.5 with the kernel of Keys, a = -1/2.
        let ramp: Vec<f32> = vec![0.1, 0.7, 0.2, 0.9, 0.4];
        let pixels = ramp.repeat(3);
        let line =
            ImageSet::new(Pixels::F32(pixels), [1, 3, 1, 5], Labels::default(), "line").unwrap();
        let preprocessing = Preprocessing {
            resize: Some([1, 15]),
            ..Preprocessing::default()
        };
        let kernel = |x: f64| {
            let x = x.abs();
            match x {
                ..1.0 => 1.5 * x.powi(3) - 2.5 * x.powi(2) + 1.0,
                1.0..2.0 => -0.5 * x.powi(3) + 2.5 * x.powi(2) - 4.0 * x + 2.0,
                _ => 0.0,
            }
        };
        for (i, got) in preprocessing.apply(&line, 0).unwrap()[..15]
            .iter()
            .enumerate()
        {
            let centre = (i as f64 + 0.5) / 3.0 - 0.5;
            let weights: Vec<f64> = (0..5).map(|j| kernel(centre - f64::from(j))).collect();
            let sum: f64 = weights.iter().sum();
            let expected: f64 = weights
                .iter()
                .zip(&ramp)
                .map(|(w, x)| w * f64::from(*x))
                .sum::<f64>()
                / sum;
            assert!(
                (f64::from(*got) - expected).abs() < 1e-5,
                "{i}: {got} {expected}"
            );
        }
    }

    #[test]
    fn wrong_numbers_are_named() {
        for (mean, std) in [
            (vec![0.0], vec![]),
            (vec![], vec![1.0, 0.0, 1.0]),
            (vec![f32::NAN; 3], vec![]),
        ] {
            let preprocessing = Preprocessing {
                mean,
                std,
                ..Preprocessing::default()
            };
            assert!(preprocessing.check().is_err());
        }
        assert!(Preprocessing::default().check().is_ok());
    }
}
