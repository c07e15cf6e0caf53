//! A Gaussian around the weights of the read-out, everything before it fixed.
//!
//! The curvature of the loss at the read-out's weights is close to `N A (x) B` with `A = mean h h^T` over features (a constant 1 added for the bias) and
//! `B = mean(diag(p) - p p^T)`, Kronecker-factored; the prior adds a precision `t`. With the eigenvectors `u_i`, `v_j` and eigenvalues `a_i`, `b_j` of both, the
//! logits of features `h` are Gaussian with the covariance
//!
//! ```text
//! sum_j v_j v_j^T sum_i (u_i . h)^2 / (N a_i b_j + t)
//! ```
//!
//! and the probabilities are `softmax(z_k / sqrt(1 + pi/8 s_k^2))` with its diagonal `s_k^2` (MacKay's approximation).

use faer::Mat;
use rayon::prelude::*;

use super::matrix::{dot, eigen, rows, second_moment};
use crate::metrics::{Logits, MetricError, Probabilities, Real};

/// A Laplace approximation of the read-out.
#[derive(Debug, Clone)]
pub struct LastLayerLaplace {
    columns: usize,
    classes: usize,
    examples: f64,
    precision: f64,
    /// Of `A`, with the vectors as rows of `columns + 1`.
    of_features: (Vec<f64>, Vec<Vec<f64>>),
    /// Of `B`.
    of_classes: (Vec<f64>, Vec<Vec<f64>>),
}

impl LastLayerLaplace {
    /// Around a trained network, from its features `[n, columns]` and probabilities on training examples. `examples` is how many it was trained on,
    /// if these are only a part of them.
    pub fn fit<T: Real, P: Real>(
        features: &[T],
        columns: usize,
        probabilities: &Probabilities<'_, P>,
        examples: usize,
        precision: f64,
    ) -> Result<Self, MetricError> {
        if !(precision > 0.0 && precision.is_finite()) {
            return Err(MetricError::NotPositive {
                what: "the precision of the prior",
                got: precision,
            });
        }
        let values = rows("the features", features, columns)?;
        let (count, classes) = (values.len() / columns, probabilities.classes());
        if probabilities.rows() != count {
            let (expected, got) = (count, probabilities.rows());
            return Err(MetricError::Length {
                what: "the probabilities",
                expected,
                got,
            });
        }
        let with_one: Vec<f64> = values
            .chunks_exact(columns)
            .flat_map(|row| row.iter().copied().chain([1.0]))
            .collect();
        let mut b = Mat::<f64>::zeros(classes, classes);
        for p in probabilities.values().chunks_exact(classes) {
            let p: Vec<f64> = p.iter().map(|&p| p.into()).collect();
            for (i, own) in p.iter().enumerate() {
                b[(i, i)] += own / count as f64;
                for (j, other) in p.iter().enumerate() {
                    b[(i, j)] -= own * other / count as f64;
                }
            }
        }
        Ok(Self {
            columns,
            classes,
            examples: examples as f64,
            precision,
            of_features: eigen(
                &second_moment(&with_one, columns + 1),
                "the second moments of the features",
            )?,
            of_classes: eigen(&b, "the curvature of the loss")?,
        })
    }

    /// The same curvature with another precision of the prior.
    pub fn with_precision(mut self, precision: f64) -> Result<Self, MetricError> {
        if !(precision > 0.0 && precision.is_finite()) {
            return Err(MetricError::NotPositive {
                what: "the precision of the prior",
                got: precision,
            });
        }
        self.precision = precision;
        Ok(self)
    }

    /// How many numbers it keeps.
    pub fn stored(&self) -> usize {
        let inputs = self.columns + 1;
        inputs * (inputs + 1) + self.classes * (self.classes + 1)
    }

    /// The variances of the logits at features `[n, columns]`: `[n, classes]`.
    pub fn variances<T: Real>(&self, features: &[T]) -> Result<Vec<f64>, MetricError> {
        let values = rows("the features", features, self.columns)?;
        let of_row = |row: &[f64]| -> Vec<f64> {
            let row: Vec<f64> = row.iter().copied().chain([1.0]).collect();
            let (a, u) = &self.of_features;
            let squares: Vec<f64> = u.iter().map(|u| dot(u, &row).powi(2)).collect();
            let (b, v) = &self.of_classes;
            let along = |b: &f64| -> f64 {
                let terms = a.iter().zip(&squares);
                // Rounded eigenvalues may be below zero.
                terms
                    .map(|(a, square)| {
                        square / (self.examples * a.max(0.0) * b.max(0.0) + self.precision)
                    })
                    .sum()
            };
            let along: Vec<f64> = b.iter().map(along).collect();
            let of_class = |k: usize| {
                v.iter()
                    .zip(&along)
                    .map(|(v, along)| v[k] * v[k] * along)
                    .sum()
            };
            (0..self.classes).map(of_class).collect()
        };
        let found: Vec<Vec<f64>> = values.par_chunks_exact(self.columns).map(of_row).collect();
        Ok(found.into_iter().flatten().collect())
    }

    /// Probabilities of inputs with these features and the network's own logits, `[n, classes]`.
    pub fn probabilities<T: Real, Z: Real>(
        &self,
        features: &[T],
        logits: &Logits<'_, Z>,
    ) -> Result<Vec<f64>, MetricError> {
        let variances = self.variances(features)?;
        if variances.len() != logits.values().len() {
            let (expected, got) = (variances.len(), logits.values().len());
            return Err(MetricError::Length {
                what: "the logits",
                expected,
                got,
            });
        }
        let scaled = |(&z, variance): (&Z, &f64)| {
            z.into() / (1.0 + std::f64::consts::FRAC_PI_8 * variance).sqrt()
        };
        let scaled: Vec<f64> = logits.values().iter().zip(&variances).map(scaled).collect();
        Ok(Logits::new(&scaled, self.classes)?.softmax())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The covariance of the logits from the whole precision matrix, `N A (x) B + t`, inverted by elimination.
    #[test]
    fn variances_are_those_of_the_whole_matrix() {
        let (columns, classes, count) = (2, 3, 5);
        let features: Vec<f64> = (0..count * columns)
            .map(|i| (1.7 * i as f64).sin())
            .collect();
        let weights: Vec<f64> = (0..count * classes)
            .map(|i| 1.2 + (2.3 * i as f64).cos())
            .collect();
        let sums: Vec<f64> = weights
            .chunks_exact(classes)
            .map(|row| row.iter().sum())
            .collect();
        let p: Vec<f64> = weights
            .iter()
            .enumerate()
            .map(|(i, w)| w / sums[i / classes])
            .collect();
        let (examples, precision) = (11, 0.7);
        let laplace = LastLayerLaplace::fit(
            &features,
            columns,
            &Probabilities::new(&p, classes).unwrap(),
            examples,
            precision,
        )
        .unwrap();
        let inputs = columns + 1;
        let h = |row: usize, i: usize| {
            if i < columns {
                features[row * columns + i]
            } else {
                1.0
            }
        };
        let a =
            |i: usize, j: usize| (0..count).map(|r| h(r, i) * h(r, j)).sum::<f64>() / count as f64;
        let b = |k: usize, l: usize| {
            let term = |r: usize| {
                let own = p[r * classes + k];
                if k == l {
                    own - own * own
                } else {
                    -own * p[r * classes + l]
                }
            };
            (0..count).map(term).sum::<f64>() / count as f64
        };
        let size = inputs * classes;
        // Rows of the precision matrix and the identity; Gauss-Jordan.
        let mut system: Vec<Vec<f64>> = (0..size)
            .map(|x| {
                let entry = |y: usize| {
                    let own =
                        examples as f64 * a(x / classes, y / classes) * b(x % classes, y % classes);
                    own + if x == y { precision } else { 0.0 }
                };
                (0..size)
                    .map(entry)
                    .chain((0..size).map(|y| f64::from(u8::from(x == y))))
                    .collect()
            })
            .collect();
        for x in 0..size {
            let scale = system[x][x];
            system[x].iter_mut().for_each(|value| *value /= scale);
            let pivot = system[x].clone();
            for (_, row) in system
                .iter_mut()
                .enumerate()
                .filter(|(other, _)| *other != x)
            {
                let factor = row[x];
                row.iter_mut()
                    .zip(&pivot)
                    .for_each(|(value, above)| *value -= factor * above);
            }
        }
        let test = [0.3, -1.4];
        let h = [test[0], test[1], 1.0];
        let found = laplace.variances(&test).unwrap();
        for (k, found) in found.iter().enumerate() {
            let mut expected = 0.0;
            for (i, h_i) in h.iter().enumerate() {
                for (j, h_j) in h.iter().enumerate() {
                    expected += h_i * h_j * system[i * classes + k][size + j * classes + k];
                }
            }
            assert!(
                (found - expected).abs() < 1e-9 * expected,
                "{k}: {found} {expected}"
            );
        }
        let logits = [2.0, -1.0, 0.5];
        let p = laplace
            .probabilities(&test, &Logits::new(&logits, classes).unwrap())
            .unwrap();
        let softmax = Logits::new(&logits, classes).unwrap().softmax();
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12 && p[0] < softmax[0]);
        // A sure prior changes nothing.
        let sure = laplace.clone().with_precision(1e12).unwrap();
        let p = sure
            .probabilities(&test, &Logits::new(&logits, classes).unwrap())
            .unwrap();
        assert!(p.iter().zip(&softmax).all(|(a, b)| (a - b).abs() < 1e-9));
        assert!(laplace.clone().with_precision(0.0).is_err());
        assert!(
            laplace
                .probabilities(&test, &Logits::new(&[1.0, 2.0], 2).unwrap())
                .is_err()
        );
    }
}
