//! `glass_blur`: a Gaussian, pixels replaced by neighbours, and the Gaussian again.
//!
//! The published program means to swap a pixel with a random neighbour. With NumPy's views its
//! exchange copies the neighbour and leaves it in its place; the published pictures are made that way,
//! and so are these. Neighbours are 0 or 1 pixels up and left: the upper end of the range is excluded.

use super::corruption::Severity;
use super::gaussian::Gaussian;
use super::picture::{Picture, Plane, byte};
use super::random::Random;
use super::{Bytes, Operation};

/// Farthest neighbour.
const REACH: usize = 1;

pub(super) struct GlassBlur {
    filter: Gaussian,
    rounds: usize,
}

impl GlassBlur {
    pub fn new(severity: Severity) -> Self {
        let parameters = [(0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2)];
        let (sigma, rounds) = severity.of(parameters);
        Self {
            filter: Gaussian::new(sigma),
            rounds,
        }
    }
}

impl Operation for GlassBlur {
    fn apply(&self, picture: &Picture<'_>, random: &mut Random, output: Bytes<'_>) {
        let Picture { height, width, .. } = *picture;
        let area = picture.area();
        for (channel, output) in output.chunks_mut(area).enumerate() {
            let smooth = self.filter.filter(&picture.plane(channel));
            for (output, value) in output.iter_mut().zip(smooth.values) {
                *output = byte(value);
            }
        }
        // From the last row and column to the second after REACH.
        let places = |size: usize| (REACH + 1..(size + 1).saturating_sub(REACH)).rev();
        for _ in 0..self.rounds {
            for row in places(height) {
                for column in places(width) {
                    let left = REACH - random.below(2 * REACH);
                    let up = REACH - random.below(2 * REACH);
                    // REACH is 1: a neighbour is never right or below.
                    let from = (row - up) * width + column - left;
                    for channel in output.chunks_mut(area) {
                        channel[row * width + column] = channel[from];
                    }
                }
            }
        }
        for output in output.chunks_mut(area) {
            let values = output.iter().map(|&x| f64::from(x) / 255.0).collect();
            let plane = Plane {
                values,
                height,
                width,
            };
            for (output, value) in output.iter_mut().zip(self.filter.filter(&plane).values) {
                *output = byte(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_come_from_above_and_left_and_stay_whole() {
        // The value of a pixel is its place, in all channels.
        let (height, width) = (9, 11);
        let bytes: Vec<u8> = (0..3).flat_map(|_| 0..(height * width) as u8).collect();
        let picture = Picture {
            bytes: &bytes,
            height,
            width,
        };
        let mut output = vec![0; bytes.len()];
        // Severity 1 has a filter of one tap: only the moves are left. Cutting may cost 1.
        GlassBlur::new(Severity::ALL[0]).apply(&picture, &mut Random::new(3, [0; 3]), &mut output);
        let mut moved = 0;
        for (pixel, &found) in output[..height * width].iter().enumerate() {
            let back = pixel as isize - isize::from(found);
            let allowed = [0, 1, width as isize, width as isize + 1];
            assert!(
                allowed.iter().any(|a| (back - a).abs() <= 1),
                "{pixel} {found}"
            );
            moved += usize::from(back > 1);
            assert_eq!(output[height * width + pixel], found);
        }
        assert!(moved > 20, "{moved}");
        assert_eq!(output[0], 0);
    }
}
