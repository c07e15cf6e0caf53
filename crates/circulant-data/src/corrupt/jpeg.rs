//! `jpeg_compression`: what is left of a picture after JPEG at a quality, as the Python Imaging Library
//! (libjpeg-turbo) writes and reads it.
//!
//! Colours to Y, Cb, Cr; Cb and Cr at half the size (4:2:0); blocks of 8 x 8 transformed and rounded to
//! multiples of the quantisation table; and all of it back. The entropy code between is lossless and so
//! is left out. Integer arithmetic throughout, the same as libjpeg's.

mod dct;

use super::Operation;
use super::corruption::Severity;

/// Annex K of the standard, row by row.
const LUMINANCE: [u16; 64] = [
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56,
    14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113,
    92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
];
const CHROMINANCE: [u16; 64] = [
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99,
    47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
];

pub(super) fn jpeg_compression(severity: Severity) -> Operation {
    with_quality(severity.of([80, 65, 58, 50, 40]))
}

fn with_quality(quality: i32) -> Operation {
    let percent = if quality < 50 {
        5000 / quality
    } else {
        200 - 2 * quality
    };
    let scale = |entry: u16| ((i32::from(entry) * percent + 50) / 100).clamp(1, 255);
    let [of_luminance, of_chrominance] = [LUMINANCE, CHROMINANCE].map(|table| table.map(scale));
    Box::new(move |picture, _, output| {
        let area = picture.area();
        let mut planes = [(); 3].map(|()| Samples::new(picture.height, picture.width));
        for pixel in 0..area {
            let colour = [0, 1, 2].map(|channel| i32::from(picture.channel(channel)[pixel]));
            for (plane, value) in planes.iter_mut().zip(luminance_and_chrominance(colour)) {
                plane.values[pixel] = value;
            }
        }
        let [luminance, blue, red] = planes;
        let luminance = luminance.compress(&of_luminance);
        let [blue, red] = [blue, red].map(|plane| {
            let half = plane.halve().compress(&of_chrominance);
            half.double(picture.height, picture.width)
        });
        for pixel in 0..area {
            let sample = |plane: &Samples| i32::from(plane.values[pixel]);
            let colour = red_green_blue([sample(&luminance), sample(&blue), sample(&red)]);
            for (channel, value) in colour.into_iter().enumerate() {
                output[channel * area + pixel] = value;
            }
        }
    })
}

/// `FIX` of libjpeg: 16 bits after the point.
const HALF: i32 = 1 << 15;

fn luminance_and_chrominance([red, green, blue]: [i32; 3]) -> [u8; 3] {
    let middle = (128 << 16) + HALF - 1;
    [
        (19595 * red + 38470 * green + 7471 * blue + HALF) >> 16,
        (-11059 * red - 21709 * green + 32768 * blue + middle) >> 16,
        (32768 * red - 27439 * green - 5329 * blue + middle) >> 16,
    ]
    .map(|x| x.clamp(0, 255) as u8)
}

fn red_green_blue([luminance, blue, red]: [i32; 3]) -> [u8; 3] {
    let (blue, red) = (blue - 128, red - 128);
    [
        luminance + ((91881 * red + HALF) >> 16),
        luminance + ((-22554 * blue - 46802 * red + HALF) >> 16),
        luminance + ((116130 * blue + HALF) >> 16),
    ]
    .map(|x| x.clamp(0, 255) as u8)
}

/// One component.
struct Samples {
    values: Vec<u8>,
    height: usize,
    width: usize,
}

impl Samples {
    fn new(height: usize, width: usize) -> Self {
        Self {
            values: vec![0; height * width],
            height,
            width,
        }
    }

    /// The sample at a place, or the nearest one.
    fn at(&self, row: usize, column: usize) -> i32 {
        let row = row.min(self.height - 1);
        self.values[row * self.width + column.min(self.width - 1)].into()
    }

    /// Means of 2 x 2, rounded down and up alternately. The right edge is repeated before, so that a block
    /// is filled with it; the lower one after.
    fn halve(&self) -> Self {
        let mut half = Self::new(self.height.div_ceil(2), self.width.div_ceil(2));
        for row in 0..half.height {
            for column in 0..half.width {
                let sum: i32 = [(0, 0), (0, 1), (1, 0), (1, 1)]
                    .map(|(i, j)| self.at(2 * row + i, 2 * column + j))
                    .iter()
                    .sum();
                half.values[row * half.width + column] =
                    ((sum + 1 + (column as i32 & 1)) >> 2) as u8;
            }
        }
        half
    }

    /// Twice the size by a triangle filter: 3/4 of the nearer and 1/4 of the farther neighbour, cut to
    /// `height` and `width`.
    fn double(&self, height: usize, width: usize) -> Self {
        let mut whole = Self::new(height, width);
        // libjpeg repeats samples instead where the filter has no room.
        let smooth = self.width > 2;
        for row in 0..height {
            let near = row / 2;
            let far = if row % 2 == 0 {
                near.saturating_sub(1)
            } else {
                near + 1
            };
            for column in 0..width {
                let middle = column / 2;
                let left = column % 2 == 0;
                let side = if left {
                    middle.saturating_sub(1)
                } else {
                    middle + 1
                };
                let sum = |column: usize| 3 * self.at(near, column) + self.at(far, column);
                whole.values[row * width + column] = if smooth {
                    ((3 * sum(middle) + sum(side) + if left { 8 } else { 7 }) >> 4) as u8
                } else {
                    self.at(near, middle) as u8
                };
            }
        }
        whole
    }

    /// Every block to frequencies, rounded to multiples of `table`, and back.
    fn compress(&self, table: &[i32; 64]) -> Self {
        let mut decoded = Self::new(self.height, self.width);
        for top in (0..self.height).step_by(8) {
            for left in (0..self.width).step_by(8) {
                let mut block: [i32; 64] =
                    std::array::from_fn(|i| self.at(top + i / 8, left + i % 8) - 128);
                dct::forward(&mut block);
                for (frequency, &step) in block.iter_mut().zip(table) {
                    // The transform is 8 times the orthonormal one. Halves are rounded away from zero.
                    let steps = (frequency.abs() + 4 * step) / (8 * step);
                    *frequency = frequency.signum() * steps * step;
                }
                dct::inverse(&mut block);
                for (i, value) in block.into_iter().enumerate() {
                    let (row, column) = (top + i / 8, left + i % 8);
                    if row < self.height && column < self.width {
                        decoded.values[row * self.width + column] =
                            (value + 128).clamp(0, 255) as u8;
                    }
                }
            }
        }
        decoded
    }
}

#[cfg(test)]
mod tests {
    use image::codecs::jpeg::JpegEncoder;

    use super::super::random::Random;
    use super::super::tests::applied;
    use super::*;

    /// A smooth picture with an edge and some noise.
    fn picture_bytes(height: usize, width: usize) -> Vec<u8> {
        let mut random = Random::new(7, [0; 3]);
        let mut bytes = Vec::new();
        for channel in 0..3 {
            for row in 0..height {
                for column in 0..width {
                    let wave =
                        (row as f64 / 5.0 + f64::from(channel)).sin() * 60.0 + column as f64 * 3.0;
                    let edge = if column > row { 40.0 } else { 0.0 };
                    bytes.push(
                        (60.0 + wave + edge + random.normal(0.0, 4.0)).clamp(0.0, 255.0) as u8,
                    );
                }
            }
        }
        bytes
    }

    fn compressed(bytes: &[u8], height: usize, width: usize, quality: i32) -> Vec<u8> {
        applied(&with_quality(quality), bytes, [height, width], 0)
    }

    fn distance(a: &[u8], b: &[u8]) -> f64 {
        let sum: f64 = a
            .iter()
            .zip(b)
            .map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2))
            .sum();
        (sum / a.len() as f64).sqrt()
    }

    #[test]
    fn error_grows_as_quality_falls() {
        for (height, width) in [(32, 32), (37, 19), (9, 3), (1, 1)] {
            let bytes = picture_bytes(height, width);
            let errors = [95, 80, 65, 50, 40, 10]
                .map(|q| distance(&bytes, &compressed(&bytes, height, width, q)));
            if height == 32 {
                assert!(errors.is_sorted(), "{errors:?}");
            }
            assert!(errors[5] < 60.0, "{errors:?}");
        }
    }

    /// Another encoder and decoder, which keeps the size of the colours: near for grey pictures.
    #[test]
    fn grey_pictures_are_those_of_a_real_file() {
        let (height, width) = (32, 32);
        let grey = &picture_bytes(height, width)[..height * width];
        for quality in [80, 50, 40] {
            let mut file = Vec::new();
            let mut encoder = JpegEncoder::new_with_quality(&mut file, quality);
            encoder
                .encode(grey, 32, 32, image::ExtendedColorType::L8)
                .unwrap();
            let decoded = image::load_from_memory(&file).unwrap().into_luma8();
            let found = compressed(&grey.repeat(3), height, width, quality.into());
            let error = distance(&found[..height * width], &decoded);
            // Two transforms in different arithmetic: a rounding step here and there.
            assert!(error < 1.0, "{quality}: {error}");
            assert_eq!(found[..1024], found[1024..2048]);
        }
    }

    #[test]
    fn colours_come_back_to_a_rounding_step() {
        for colour in [
            [0, 0, 0],
            [255, 255, 255],
            [255, 0, 0],
            [12, 200, 99],
            [3, 4, 250],
        ] {
            let there = luminance_and_chrominance(colour).map(i32::from);
            let back = red_green_blue(there).map(i32::from);
            assert!(
                (0..3).all(|c| (colour[c] - back[c]).abs() <= 2),
                "{colour:?} {back:?}"
            );
        }
        let flat = vec![77; 3 * 20 * 20];
        assert_eq!(compressed(&flat, 20, 20, 80), flat);
    }
}
