//! `defocus_blur`: correlation with a disk whose edge is softened by a Gaussian of 3 x 3.
//!
//! Border `mirror`, as OpenCV's `filter2D`; the kernel is rounded to `f32` as there.

use super::corruption::Severity;
use super::picture::{Border, Picture, byte};
use super::random::Random;
use super::{Bytes, Operation};

/// A kernel without its zeros.
pub(super) struct DefocusBlur {
    /// Row, column, weight.
    taps: Vec<(isize, isize, f64)>,
}

impl DefocusBlur {
    pub fn new(severity: Severity) -> Self {
        let parameters = [(0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1)];
        let (radius, softness) = severity.of(parameters);
        Self::disk(radius, softness)
    }

    fn disk(radius: f64, softness: f64) -> Self {
        // The disk and one pixel around it for the softening.
        let reach = radius as isize + 1;
        let inside = |y: isize, x: isize| (y * y + x * x) as f64 <= radius * radius;
        let square = || (-reach..=reach).flat_map(|y| (-reach..=reach).map(move |x| (y, x)));
        let area = square().filter(|&(y, x)| inside(y, x)).count() as f32;
        let edge = (-1.0 / (2.0 * softness * softness)).exp();
        let soft = [edge, 1.0, edge].map(|weight| (weight / (1.0 + 2.0 * edge)) as f32);
        let disk = |y, x| if inside(y, x) { 1.0 / area } else { 0.0 };
        let along_row = |y: isize, x: isize| -> f32 {
            (-1..=1)
                .map(|j| soft[(j + 1) as usize] * disk(y, x + j))
                .sum()
        };
        let both = |y: isize, x: isize| -> f32 {
            (-1..=1)
                .map(|j| soft[(j + 1) as usize] * along_row(y + j, x))
                .sum()
        };
        let taps = square()
            .map(|(y, x)| (y, x, f64::from(both(y, x))))
            .filter(|tap| tap.2 != 0.0);
        Self {
            taps: taps.collect(),
        }
    }
}

impl Operation for DefocusBlur {
    fn apply(&self, picture: &Picture<'_>, _: &mut Random, output: Bytes<'_>) {
        for (channel, output) in output.chunks_mut(picture.area()).enumerate() {
            let plane = picture.plane(channel);
            for (pixel, output) in output.iter_mut().enumerate() {
                let row = (pixel / picture.width) as isize;
                let column = (pixel % picture.width) as isize;
                let tap = |&(y, x, weight): &(isize, isize, f64)| {
                    weight * plane.at(row + y, column + x, Border::Mirror)
                };
                *output = byte(self.taps.iter().map(tap).sum());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_symmetric_disks_of_weight_one() {
        for severity in Severity::ALL {
            let taps = DefocusBlur::new(severity).taps;
            let sum: f64 = taps.iter().map(|tap| tap.2).sum();
            assert!((sum - 1.0).abs() < 1e-6, "{sum}");
            let at = |y, x| {
                taps.iter()
                    .find(|tap| (tap.0, tap.1) == (y, x))
                    .map(|tap| tap.2 as f32)
            };
            for &(y, x, weight) in &taps {
                for other in [at(x, y), at(-y, x), at(y, -x)] {
                    assert!((f64::from(other.unwrap()) - weight).abs() < 1e-8);
                }
            }
        }
        let point = DefocusBlur::disk(0.3, 0.4).taps;
        let edge = (-1.0_f64 / 0.32).exp();
        let middle = point.iter().find(|tap| (tap.0, tap.1) == (0, 0)).unwrap().2;
        assert!((middle - (1.0 + 2.0 * edge).powi(-2)).abs() < 1e-7);
        assert_eq!(point.len(), 9);
        assert_eq!(DefocusBlur::disk(1.5, 1e-3).taps.len(), 9);
    }
}
