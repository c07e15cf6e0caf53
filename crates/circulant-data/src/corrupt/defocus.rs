//! `defocus_blur`: correlation with a disk whose edge is softened by a Gaussian of 3 x 3.
//!
//! Border `mirror`, as OpenCV's `filter2D`; the kernel is rounded to `f32` as there.

use super::Operation;
use super::corruption::Severity;
use super::picture::{Border, write};

/// Row, column and weight of a place of a kernel.
type Tap = (isize, isize, f64);

/// Radius and softness.
const DISKS: [(f64, f64); 5] = [(0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1)];

pub(super) fn defocus_blur(severity: Severity) -> Operation {
    let taps = disk(severity.of(DISKS));
    Box::new(move |picture, _, output| {
        for (plane, output) in picture.planes(output) {
            let sum = |pixel: usize| {
                let (row, column) = (pixel / plane.width, pixel % plane.width);
                let tap = |&(y, x, weight): &Tap| {
                    weight * plane.at(row as isize + y, column as isize + x, Border::Mirror)
                };
                taps.iter().map(tap).sum()
            };
            write(output, (0..plane.values.len()).map(sum));
        }
    })
}

/// A kernel without its zeros.
fn disk((radius, softness): (f64, f64)) -> Vec<Tap> {
    // The disk and one pixel around it for the softening.
    let reach = radius as isize + 1;
    let inside = |y: isize, x: isize| (y * y + x * x) as f64 <= radius * radius;
    let square = || (-reach..=reach).flat_map(|y| (-reach..=reach).map(move |x| (y, x)));
    let area = square().filter(|&(y, x)| inside(y, x)).count() as f32;
    let edge = (-1.0 / (2.0 * softness * softness)).exp();
    let soft = [edge, 1.0, edge].map(|weight| (weight / (1.0 + 2.0 * edge)) as f32);
    let disk = |y, x| if inside(y, x) { 1.0 / area } else { 0.0 };
    let softened = |at: &dyn Fn(isize) -> f32| -> f32 {
        let weighted = soft.iter().zip(-1..=1).map(|(weight, j)| weight * at(j));
        weighted.sum()
    };
    let along_row = |y: isize, x: isize| softened(&|j| disk(y, x + j));
    let both = |y: isize, x: isize| softened(&|j| along_row(y + j, x));
    let taps = square().map(|(y, x)| (y, x, f64::from(both(y, x))));
    taps.filter(|tap| tap.2 != 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_symmetric_disks_of_weight_one() {
        for severity in Severity::ALL {
            let taps = disk(severity.of(DISKS));
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
        let point = disk((0.3, 0.4));
        let edge = (-1.0_f64 / 0.32).exp();
        let middle = point.iter().find(|tap| (tap.0, tap.1) == (0, 0)).unwrap().2;
        assert!((middle - (1.0 + 2.0 * edge).powi(-2)).abs() < 1e-7);
        assert_eq!(point.len(), 9);
        assert_eq!(disk((1.5, 1e-3)).len(), 9);
    }
}
