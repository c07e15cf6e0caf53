//! How probable the features of an input are: a mixture of one Gaussian per class.
//!
//! The leading directions `V` (`[features, r]`) of all training features have a full covariance per class there; every other direction has one
//! variance for all:
//!
//! ```text
//! log p(x) = log sum_c pi_c N(V^T (x - m); mu_c, C_c) - |rest|^2/(2 s^2) - (features - r)/2 log(2 pi s^2)
//! ```
//!
//! with the mean `m`, `rest = (x - m) - V V^T (x - m)` and the mean `s^2` of the variances there. With few examples of a class its covariance is drawn to
//! the variances `v` of all: `C_c = (n_c S_c + r diag(v))/(n_c + r)`.

mod file;

use rayon::prelude::*;

use super::matrix::{cholesky, dot, principal, rows, squared_distance};
use crate::metrics::{Label, MetricError, Real, check_labels};

/// Variances below this share of the largest one count as this large.
const FLOOR: f64 = 1e-6;

/// A density of features. High for inputs like those of training.
#[derive(Debug, Clone)]
pub struct FeatureDensity {
    columns: usize,
    mean: Vec<f64>,
    /// Rows of `columns`.
    directions: Vec<Vec<f64>>,
    /// `s^2`, where there are other directions.
    rest: Option<f64>,
    classes: Vec<ClassGaussian>,
}

#[derive(Debug, Clone)]
struct ClassGaussian {
    mean: Vec<f64>,
    /// The lower factor of its covariance.
    lower: Vec<f64>,
    /// `log pi_c - log det(2 pi C_c)/2`.
    constant: f64,
}

impl FeatureDensity {
    /// Fits training features `[n, columns]` with their classes. `directions` is `r`, at most `columns` and the rank of the features; 64 do.
    ///
    /// With `m = min(n, columns)` it takes `m^2` numbers and `n columns m` operations.
    pub fn fit<T: Real, L: Label>(
        features: &[T],
        columns: usize,
        labels: &[L],
        classes: usize,
        directions: usize,
    ) -> Result<Self, MetricError> {
        let mut values = rows("the features", features, columns)?;
        let count = values.len() / columns;
        let labels = check_labels(labels, count, classes)?;
        if directions == 0 {
            return Err(MetricError::Zero { what: "directions" });
        }
        let mean: Vec<f64> = (0..columns)
            .map(|column| values.iter().skip(column).step_by(columns).sum::<f64>() / count as f64)
            .collect();
        for row in values.chunks_exact_mut(columns) {
            row.iter_mut().zip(&mean).for_each(|(x, mean)| *x -= mean);
        }
        let (variances, mut vectors) =
            principal(&values, columns, "the covariance of the features")?;
        vectors.truncate(directions);
        let directions = vectors.len();
        // A feature that never changes has some variance still.
        let floor = (FLOOR * variances[0]).max(f64::MIN_POSITIVE);
        let others = &variances[directions..];
        let rest = (!others.is_empty())
            .then(|| (others.iter().sum::<f64>() / others.len() as f64).max(floor));
        let variances: Vec<f64> = variances[..directions]
            .iter()
            .map(|v| v.max(floor))
            .collect();
        let project =
            |row: &[f64]| -> Vec<f64> { vectors.iter().map(|vector| dot(vector, row)).collect() };
        let projected: Vec<Vec<f64>> = values.par_chunks_exact(columns).map(project).collect();
        let of_class = |class: usize| {
            let members: Vec<&[f64]> = projected
                .iter()
                .zip(&labels)
                .filter(|(_, label)| **label == class)
                .map(|(row, _)| &row[..])
                .collect();
            ClassGaussian::new(&members, &variances, count)
        };
        let classes: Vec<ClassGaussian> =
            (0..classes).into_par_iter().filter_map(of_class).collect();
        Ok(Self {
            columns,
            mean,
            directions: vectors,
            rest,
            classes,
        })
    }

    /// The logarithm of the density at features `[n, columns]`, one per row.
    pub fn log_densities<T: Real>(&self, features: &[T]) -> Result<Vec<f64>, MetricError> {
        let values = rows("the features", features, self.columns)?;
        Ok(values
            .par_chunks_exact(self.columns)
            .map(|row| self.log_density(row))
            .collect())
    }

    /// How many numbers it keeps.
    pub fn stored(&self) -> usize {
        let r = self.directions.len();
        self.columns * (r + 1) + self.classes.len() * (r + r * (r + 1) / 2 + 1) + 1
    }

    fn log_density(&self, row: &[f64]) -> f64 {
        let centred: Vec<f64> = row
            .iter()
            .zip(&self.mean)
            .map(|(x, mean)| x - mean)
            .collect();
        let within: Vec<f64> = self
            .directions
            .iter()
            .map(|vector| dot(vector, &centred))
            .collect();
        let terms: Vec<f64> = self
            .classes
            .iter()
            .map(|class| class.log_density(&within))
            .collect();
        let top = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mixture = top
            + terms
                .iter()
                .map(|term| (term - top).exp())
                .sum::<f64>()
                .ln();
        mixture
            + self.rest.map_or(0.0, |variance| {
                let others = (self.columns - self.directions.len()) as f64;
                // By the difference itself: that of two squared norms may be all rounding.
                let mut rest = centred;
                for (vector, share) in self.directions.iter().zip(&within) {
                    rest.iter_mut()
                        .zip(vector)
                        .for_each(|(x, v)| *x -= share * v);
                }
                -0.5 * (dot(&rest, &rest) / variance
                    + others * (std::f64::consts::TAU * variance).ln())
            })
    }
}

impl ClassGaussian {
    /// None for a class without examples.
    fn new(members: &[&[f64]], variances: &[f64], count: usize) -> Option<Self> {
        let (n, r) = (members.len() as f64, variances.len());
        if members.is_empty() {
            return None;
        }
        let mean: Vec<f64> = (0..r)
            .map(|i| members.iter().map(|row| row[i]).sum::<f64>() / n)
            .collect();
        let mut covariance = vec![0.0; r * r];
        for row in members {
            let centred: Vec<f64> = row.iter().zip(&mean).map(|(x, mean)| x - mean).collect();
            for (i, row) in covariance.chunks_exact_mut(r).enumerate() {
                let terms = row.iter_mut().zip(&centred[..=i]);
                terms.for_each(|(sum, x)| *sum += centred[i] * x);
            }
        }
        let drawn = r as f64;
        for (i, (row, variance)) in covariance.chunks_exact_mut(r).zip(variances).enumerate() {
            row[i] += drawn * variance;
            row.iter_mut().for_each(|sum| *sum /= n + drawn);
        }
        let lower = cholesky(&covariance, r)?;
        let log_det: f64 = (0..r).map(|i| 2.0 * lower[i * r + i].ln()).sum();
        let constant =
            (n / count as f64).ln() - 0.5 * (log_det + drawn * std::f64::consts::TAU.ln());
        Some(Self {
            mean,
            lower,
            constant,
        })
    }

    fn log_density(&self, within: &[f64]) -> f64 {
        let centred: Vec<f64> = within
            .iter()
            .zip(&self.mean)
            .map(|(x, mean)| x - mean)
            .collect();
        self.constant - 0.5 * squared_distance(&self.lower, &centred)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(seed: u64, count: usize) -> Vec<f64> {
        let mut state = seed;
        (0..count)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
            })
            .collect()
    }

    /// `log N(x; mean, covariance)` by Gaussian elimination.
    fn slow_log_density(x: &[f64], mean: &[f64], covariance: &[Vec<f64>]) -> f64 {
        let size = x.len();
        let mut system: Vec<Vec<f64>> = (0..size)
            .map(|i| {
                covariance[i]
                    .iter()
                    .copied()
                    .chain([x[i] - mean[i]])
                    .collect()
            })
            .collect();
        let mut log_det = 0.0;
        for i in 0..size {
            let pivot = system[i].clone();
            log_det += pivot[i].ln();
            for row in &mut system[i + 1..] {
                let factor = row[i] / pivot[i];
                row.iter_mut()
                    .zip(&pivot)
                    .for_each(|(x, above)| *x -= factor * above);
            }
        }
        let mut solved = vec![0.0; size];
        for (i, row) in system.iter().enumerate().rev() {
            let known: f64 = (i + 1..size).map(|j| row[j] * solved[j]).sum();
            solved[i] = (row[size] - known) / row[i];
        }
        let distance: f64 = (0..size).map(|i| (x[i] - mean[i]) * solved[i]).sum();
        -0.5 * (distance + log_det + size as f64 * std::f64::consts::TAU.ln())
    }

    #[test]
    fn densities_are_those_of_the_whole_covariances() {
        for (columns, directions) in [(1, 1), (3, 3), (5, 2), (6, 64)] {
            let (count, classes) = (40, 3);
            let labels: Vec<usize> = (0..count).map(|i| (i * i + i / 2) % classes).collect();
            let mut features = numbers(columns as u64, count * columns);
            for (row, label) in features.chunks_exact_mut(columns).zip(&labels) {
                row.iter_mut()
                    .enumerate()
                    .for_each(|(i, x)| *x = *x / (i + 1) as f64 + *label as f64);
            }
            let density =
                FeatureDensity::fit(&features, columns, &labels, classes, directions).unwrap();
            let r = directions.min(columns);
            assert_eq!(density.directions.len(), r);
            let test = numbers(77, 10 * columns);
            let found = density.log_densities(&test).unwrap();
            // The same mixture with covariances over all features.
            let mean: Vec<f64> = (0..columns)
                .map(|i| features.iter().skip(i).step_by(columns).sum::<f64>() / count as f64)
                .collect();
            let v = &density.directions;
            let project = |row: &[f64]| -> Vec<f64> {
                let centred: Vec<f64> = row.iter().zip(&mean).map(|(x, m)| x - m).collect();
                v.iter().map(|direction| dot(direction, &centred)).collect()
            };
            let variance = |i: usize| {
                features
                    .chunks_exact(columns)
                    .map(|row| project(row)[i].powi(2))
                    .sum::<f64>()
                    / count as f64
            };
            let rest = density.rest.unwrap_or(0.0);
            let mixture = |x: &[f64]| -> f64 {
                let mut total = 0.0;
                for class in 0..classes {
                    let rows: Vec<Vec<f64>> = features
                        .chunks_exact(columns)
                        .zip(&labels)
                        .filter(|(_, label)| **label == class)
                        .map(|(row, _)| project(row))
                        .collect();
                    let n = rows.len() as f64;
                    let mu: Vec<f64> = (0..r)
                        .map(|i| rows.iter().map(|row| row[i]).sum::<f64>() / n)
                        .collect();
                    let within = |i: usize, j: usize| -> f64 {
                        let sum: f64 = rows
                            .iter()
                            .map(|row| (row[i] - mu[i]) * (row[j] - mu[j]))
                            .sum();
                        (sum + if i == j { r as f64 * variance(i) } else { 0.0 }) / (n + r as f64)
                    };
                    let covariance: Vec<Vec<f64>> = (0..columns)
                        .map(|a| {
                            (0..columns)
                                .map(|b| {
                                    let mut sum = if a == b { rest } else { 0.0 };
                                    for (i, v_i) in v.iter().enumerate() {
                                        sum -= rest * v_i[a] * v_i[b];
                                        for (j, v_j) in v.iter().enumerate() {
                                            sum += v_i[a] * within(i, j) * v_j[b];
                                        }
                                    }
                                    sum
                                })
                                .collect()
                        })
                        .collect();
                    let centre: Vec<f64> = (0..columns)
                        .map(|a| mean[a] + (0..r).map(|i| v[i][a] * mu[i]).sum::<f64>())
                        .collect();
                    total += n / count as f64 * slow_log_density(x, &centre, &covariance).exp();
                }
                total.ln()
            };
            for (x, found) in test.chunks_exact(columns).zip(found) {
                let expected = mixture(x);
                assert!(
                    (found - expected).abs() < 1e-6 * expected.abs().max(1.0),
                    "{columns} {directions}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn constant_features_and_missing_classes_are_no_trouble() {
        let features = [1.0, 2.0, 1.0, 3.0, 1.0, 4.0, 1.0, 5.0];
        let density = FeatureDensity::fit(&features, 2, &[0, 0, 2, 2], 4, 2).unwrap();
        let found = density
            .log_densities(&[1.0, 3.5, 1.0, 30.0, 9.0, 3.5])
            .unwrap();
        assert!(
            found.iter().all(|x| x.is_finite()) && found[0] > found[1] && found[0] > found[2],
            "{found:?}"
        );
        let same = FeatureDensity::fit(&[3.0, 3.0, 3.0], 1, &[0, 0, 0], 1, 1).unwrap();
        assert!(same.log_densities(&[3.0]).unwrap()[0].is_finite());
    }

    #[test]
    fn wrong_arguments_are_named() {
        let fit = |features: &[f64], columns, labels: &[i64], classes, directions| {
            FeatureDensity::fit(features, columns, labels, classes, directions)
                .unwrap_err()
                .to_string()
        };
        assert!(fit(&[1.0, 2.0], 0, &[0], 1, 1).contains("features"));
        assert!(fit(&[1.0, 2.0, 3.0], 2, &[0], 1, 1).contains("multiple of 2"));
        assert!(fit(&[1.0, f64::NAN], 2, &[0], 1, 1).contains("finite"));
        assert!(fit(&[1.0, 2.0], 1, &[0, 3], 2, 1).contains("0..2"));
        assert!(fit(&[1.0, 2.0], 1, &[0, 1], 2, 0).contains("directions"));
        let density = FeatureDensity::fit(&[1.0, 2.0], 1, &[0, 1], 2, 1).unwrap();
        assert!(density.log_densities(&[f64::INFINITY]).is_err());
    }
}
