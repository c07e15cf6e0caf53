//! Gaussian filters, and the corruption `gaussian_blur`.
//!
//! `w(j) = exp(-j^2 / (2 sigma^2)) / sum`, `|j| <= int(truncate sigma + 1/2)`, rows after columns, as
//! `skimage.filters.gaussian` (there: border `nearest`, truncate 4).

use super::Operation;
use super::corruption::Severity;
use super::picture::{Border, Plane, write};

/// A separable filter.
pub(super) struct Gaussian {
    /// `w(0), w(1), ...`.
    weights: Vec<f64>,
    border: Border,
}

impl Gaussian {
    /// The filter of scikit-image.
    pub fn new(sigma: f64) -> Self {
        Self::truncated(sigma, 4.0, Border::Nearest)
    }

    /// A filter that ends after `truncate` deviations.
    pub fn truncated(sigma: f64, truncate: f64, border: Border) -> Self {
        let radius = (truncate * sigma + 0.5) as usize;
        let weight = |j: usize| {
            if j == 0 {
                return 1.0;
            }
            (-0.5 / (sigma * sigma) * (j * j) as f64).exp()
        };
        let mut weights: Vec<f64> = (0..=radius).map(weight).collect();
        let sum = 2.0 * weights.iter().sum::<f64>() - 1.0;
        weights.iter_mut().for_each(|weight| *weight /= sum);
        Self { weights, border }
    }

    /// The filtered plane.
    pub fn filter(&self, plane: &Plane) -> Plane {
        let columns = self.along(plane, plane.width, plane.height, 1);
        self.along(&columns, 1, plane.width, plane.width)
    }

    /// The same with `f32` between and after the passes.
    pub fn filter_single(&self, plane: &Plane) -> Plane {
        let columns = self.along(plane, plane.width, plane.height, 1).single();
        self.along(&columns, 1, plane.width, plane.width).single()
    }

    /// Filters along lines of `length` numbers `stride` apart; the starts of two lines are `next` apart.
    fn along(&self, plane: &Plane, stride: usize, length: usize, next: usize) -> Plane {
        let radius = self.weights.len() - 1;
        let mut values = vec![0.0; plane.values.len()];
        let mut line = vec![0.0; length + 2 * radius];
        for start in (0..plane.values.len() / length).map(|line| line * next) {
            for (place, value) in line.iter_mut().enumerate() {
                let index = place as isize - radius as isize;
                *value = plane.values[start + stride * self.border.inside(index, length)];
            }
            for middle in 0..length {
                let place = middle + radius;
                // From the outside in, as SciPy sums.
                let mut sum = line[place] * self.weights[0];
                for j in (1..=radius).rev() {
                    sum += (line[place - j] + line[place + j]) * self.weights[j];
                }
                values[start + stride * middle] = sum;
            }
        }
        Plane { values, ..*plane }
    }
}

pub(super) fn gaussian_blur(severity: Severity) -> Operation {
    let filter = Gaussian::new(severity.of([0.4, 0.6, 0.7, 0.8, 1.0]));
    Box::new(move |picture, _, output| {
        for (plane, output) in picture.planes(output) {
            write(output, filter.filter(&plane).values);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    /// Sums of products in another order.
    const ROUNDING: f64 = 1e-14;

    #[test]
    fn equals_the_sum_over_a_square_and_weights_sum_to_one() {
        let (height, width) = (7, 5);
        let values = Random::new(1, [0; 3]).uniforms(height * width, 0.0, 1.0);
        let plane = Plane {
            values,
            height,
            width,
        };
        for (sigma, border) in [
            (0.05, Border::Nearest),
            (0.7, Border::Nearest),
            (2.4, Border::Reflect),
        ] {
            let filter = Gaussian::truncated(sigma, 3.0, border);
            let radius = (3.0 * sigma + 0.5) as isize;
            let weight =
                |y: isize, x: isize| (-((y * y + x * x) as f64) / (2.0 * sigma * sigma)).exp();
            let square =
                || (-radius..=radius).flat_map(|y| (-radius..=radius).map(move |x| (y, x)));
            let total: f64 = square().map(|(y, x)| weight(y, x)).sum();
            let found = filter.filter(&plane);
            for row in 0..height as isize {
                for column in 0..width as isize {
                    let sum: f64 = square()
                        .map(|(y, x)| weight(y, x) * plane.at(row + y, column + x, border))
                        .sum();
                    let error = found.at(row, column, border) - sum / total;
                    assert!(error.abs() < ROUNDING, "{sigma}: {error}");
                }
            }
            let sum = 2.0 * filter.weights.iter().sum::<f64>() - filter.weights[0];
            assert!((sum - 1.0).abs() < ROUNDING);
        }
    }
}
