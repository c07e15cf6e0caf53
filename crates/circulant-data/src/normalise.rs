//! From stored pixels to the floats a model sees.
//!
//! | name | byte `x` | float `x` |
//! | --- | --- | --- |
//! | `raw` | `x` | `x` |
//! | `unit` | `x / 255` | `x` |
//! | `standard` | `(x / 255 - mean[c]) / std[c]` | `(x - mean[c]) / std[c]` |

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::error::DataError;
use super::images::{ImageSet, Pixels};

/// How pixels become floats. It belongs into the configuration of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Normalisation {
    /// The stored numbers.
    Raw,
    /// Bytes divided by 255; floats as they are.
    #[default]
    Unit,
    /// As [`Normalisation::Unit`], then per channel minus `mean`, divided by `std`.
    Standard {
        /// One per channel.
        mean: Vec<f32>,
        /// One per channel, positive.
        std: Vec<f32>,
    },
}

impl Normalisation {
    /// The mean and standard deviation per channel of a set, which should be the training set.
    pub fn standard_of(set: &ImageSet) -> Self {
        let [_, channels, height, width] = set.shape();
        let plane = height * width;
        let mut sums = vec![[0.0_f64; 2]; channels];
        let mut add = |index: usize, x: f64| {
            let [sum, squares] = &mut sums[index / plane % channels];
            *sum += x;
            *squares += x * x;
        };
        match set.pixels() {
            Pixels::U8(values) => values
                .iter()
                .enumerate()
                .for_each(|(index, &x)| add(index, f64::from(x) / 255.0)),
            Pixels::F32(values) => values
                .iter()
                .enumerate()
                .for_each(|(index, &x)| add(index, f64::from(x))),
        }
        let count = (set.len() * plane) as f64;
        let mean = sums.iter().map(|[sum, _]| sum / count);
        let std = sums.iter().map(|[sum, squares]| {
            let std = (squares / count - (sum / count).powi(2)).max(0.0).sqrt();
            // A constant channel stays as it is: it carries nothing that scaling could show.
            if std > 0.0 { std } else { 1.0 }
        });
        Self::Standard {
            mean: mean.map(|x| x as f32).collect(),
            std: std.map(|x| x as f32).collect(),
        }
    }

    /// Appends the images of `range` as floats.
    pub(crate) fn append(
        &self,
        pixels: &Pixels,
        shape: &[usize; 4],
        range: Range<usize>,
        values: &mut Vec<f32>,
    ) -> Result<(), DataError> {
        let [_, channels, height, width] = *shape;
        self.check(channels)?;
        let plane = height * width;
        let row = channels * plane;
        let numbers = range.start * row..range.end * row;
        let channel = |index: usize| index / plane % channels;
        match pixels {
            Pixels::U8(bytes) => {
                for (index, part) in bytes[numbers].chunks(plane).enumerate() {
                    let channel = index % channels;
                    // 256 possible values: a table saves the division per pixel.
                    if part.len() < 256 {
                        values.extend(part.iter().map(|&x| self.byte(x, channel)));
                    } else {
                        let table: [f32; 256] =
                            std::array::from_fn(|x| self.byte(x as u8, channel));
                        values.extend(part.iter().map(|&x| table[usize::from(x)]));
                    }
                }
            }
            Pixels::F32(floats) => match self {
                Self::Raw | Self::Unit => values.extend_from_slice(&floats[numbers]),
                Self::Standard { .. } => values.extend(
                    floats[numbers]
                        .iter()
                        .enumerate()
                        .map(|(index, &x)| self.float(x, channel(index))),
                ),
            },
        }
        Ok(())
    }

    /// What the bytes of images with so many channels stand for: a byte of channel `c` is
    /// `(byte/divisor - mean)/deviation` with the divisor and the `c`-th pair; one pair is for all.
    pub fn byte_scale(&self, channels: usize) -> Result<(f32, Vec<(f32, f32)>), DataError> {
        self.check(channels)?;
        Ok(match self {
            Self::Raw => (1.0, vec![(0.0, 1.0)]),
            Self::Unit => (255.0, vec![(0.0, 1.0)]),
            Self::Standard { mean, std } => {
                (255.0, mean.iter().copied().zip(std.clone()).collect())
            }
        })
    }

    fn byte(&self, x: u8, channel: usize) -> f32 {
        match self {
            Self::Raw => f32::from(x),
            Self::Unit | Self::Standard { .. } => self.float(f32::from(x) / 255.0, channel),
        }
    }

    fn float(&self, x: f32, channel: usize) -> f32 {
        match self {
            Self::Raw | Self::Unit => x,
            Self::Standard { mean, std } => (x - mean[channel]) / std[channel],
        }
    }

    fn check(&self, channels: usize) -> Result<(), DataError> {
        let Self::Standard { mean, std } = self else {
            return Ok(());
        };
        let sound = |x: &f32| x.is_finite();
        if mean.len() == channels
            && std.len() == channels
            && mean.iter().all(sound)
            && std.iter().all(|x| sound(x) && *x > 0.0)
        {
            return Ok(());
        }
        Err(DataError::format(
            "normalisation",
            format!(
                "{channels} finite means and {channels} positive standard deviations, one per channel"
            ),
            format!("mean {mean:?}, std {std:?}"),
            "give one of each per channel, or use `unit`",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::labels::Labels;
    use super::*;

    fn set() -> ImageSet {
        let pixels = Pixels::U8(vec![0, 255, 51, 102, 255, 0, 0, 51]);
        ImageSet::new(pixels, [2, 2, 1, 2], Labels::numbered(vec![0, 1]), "test").unwrap()
    }

    #[test]
    fn bytes_become_floats_as_stated() {
        let set = set();
        assert_eq!(set.values(&Normalisation::Raw).unwrap()[..2], [0.0, 255.0]);
        let unit = set.values(&Normalisation::Unit).unwrap();
        assert_eq!(unit, [0.0, 1.0, 0.2, 0.4, 1.0, 0.0, 0.0, 0.2]);
        let standard = Normalisation::Standard {
            mean: vec![0.5, 0.0],
            std: vec![0.5, 0.1],
        };
        let values = set.values(&standard).unwrap();
        assert_eq!(values[..3], [-1.0, 1.0, 2.0]);
        let mut row = Vec::new();
        set.gather(&[1], &standard, &mut row).unwrap();
        assert_eq!(row, values[4..]);
        let Pixels::U8(bytes) = set.pixels() else {
            panic!("bytes")
        };
        for normalisation in [Normalisation::Raw, Normalisation::Unit, standard] {
            let (divisor, channels) = normalisation.byte_scale(2).unwrap();
            let scaled = bytes.iter().enumerate().map(|(index, &byte)| {
                let (mean, deviation) = channels[index / 2 % 2 % channels.len()];
                (f32::from(byte) / divisor - mean) / deviation
            });
            let expected = set.values(&normalisation).unwrap();
            assert_eq!(scaled.collect::<Vec<f32>>(), expected);
        }
    }

    #[test]
    fn standard_of_a_set_gives_mean_zero_and_variance_one() {
        let set = set();
        let values = set.values(&Normalisation::standard_of(&set)).unwrap();
        let first: Vec<f32> = [0, 1, 4, 5].iter().map(|&i| values[i]).collect();
        assert!(first.iter().sum::<f32>().abs() < 1e-5);
        let variance = first.iter().map(|x| x * x).sum::<f32>() / 4.0;
        assert!((variance - 1.0).abs() < 1e-4, "{variance}");
    }

    #[test]
    fn wrong_channel_counts_and_zero_deviations_are_named() {
        for (mean, std) in [(vec![0.0], vec![1.0]), (vec![0.0; 2], vec![0.0; 2])] {
            let error = set()
                .values(&Normalisation::Standard { mean, std })
                .unwrap_err();
            assert!(error.to_string().contains("one per channel"), "{error}");
        }
    }
}
