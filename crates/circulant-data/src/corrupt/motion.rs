//! `motion_blur`: a half Gaussian along a line, as ImageMagick's `MotionBlurImage`.
//!
//! `out(p) = sum_i k(i) in(p + offset(i))`, `k(i) ~ exp(-i^2 / (2 sigma^2))` for `i` in
//! `0..2 ceil(radius) + 1`, `offset(i) = ceil(i (cos, sin) - 1/2)` as (column, row), border `nearest`.
//! The angle is uniform in -45..45 degrees. ImageMagick (6.9, 16 bits) works with `257 in`, rounds, and
//! cuts when it writes bytes.

use super::Operation;
use super::corruption::Severity;
use super::picture::Border;

/// The line, without its angle.
pub(super) struct Motion {
    kernel: Vec<f64>,
}

impl Motion {
    pub fn new(radius: usize, sigma: f64) -> Self {
        let count = 2 * radius + 1;
        let weight = |i: usize| (-((i * i) as f64) / (2.0 * sigma * sigma)).exp();
        let sum: f64 = (0..count).map(weight).sum();
        Self {
            kernel: (0..count).map(|i| weight(i) / sum).collect(),
        }
    }

    /// Blurs one channel along `angle`, in degrees.
    pub fn blur(&self, input: &[u8], width: usize, angle: f64, output: &mut [u8]) {
        let height = input.len() / width;
        let (sine, cosine) = angle.to_radians().sin_cos();
        let offset = |i: usize, side: f64| (i as f64 * side - 0.5).ceil() as isize;
        let mut sums = vec![0.0; height * width];
        let mut columns = vec![0; width];
        for (i, weight) in self.kernel.iter().enumerate() {
            for (column, source) in columns.iter_mut().enumerate() {
                *source = Border::Nearest.inside(column as isize + offset(i, cosine), width);
            }
            for (row, sums) in sums.chunks_mut(width).enumerate() {
                let source = Border::Nearest.inside(row as isize + offset(i, sine), height);
                let source = &input[source * width..][..width];
                for (sum, &column) in sums.iter_mut().zip(&columns) {
                    *sum += weight * f64::from(source[column]);
                }
            }
        }
        for (output, sum) in output.iter_mut().zip(sums) {
            *output = ((sum * 257.0 + 0.5) as u16 / 257) as u8;
        }
    }
}

pub(super) fn motion_blur(severity: Severity) -> Operation {
    let (radius, sigma) = severity.of([(6, 1.0), (6, 1.5), (6, 2.0), (8, 2.0), (9, 2.5)]);
    let motion = Motion::new(radius, sigma);
    Box::new(move |picture, random, output| {
        let angle = random.range(-45.0, 45.0);
        for (channel, output) in output.chunks_mut(picture.area()).enumerate() {
            motion.blur(picture.channel(channel), picture.width, angle, output);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_becomes_the_kernel_and_a_flat_picture_stays() {
        let side = 20;
        let mut input = vec![0; side * side];
        input[10 * side + 10] = 255;
        let motion = Motion::new(6, 2.0);
        assert!((motion.kernel.iter().sum::<f64>() - 1.0).abs() < 1e-14);
        let mut output = vec![0; side * side];
        // Along 0 degrees the point at column 10 reaches the columns left of it; along 90 those above.
        for (angle, step) in [(0.0, 1), (90.0, side)] {
            motion.blur(&input, side, angle, &mut output);
            for i in 0..10 {
                let expected = 255.0 * motion.kernel[i];
                let found = f64::from(output[10 * side + 10 - i * step]);
                assert!(
                    (expected.floor() - found).abs() <= 1.0,
                    "{angle} {i} {expected} {found}"
                );
            }
            assert_eq!(output[10 * side + 11], 0);
        }
        motion.blur(&vec![77; side * side], side, 33.0, &mut output);
        assert!(output.iter().all(|&x| x == 77));
    }
}
