//! The Gaussian against dense matrices, central differences and samples.

mod cholesky;
mod closed_form;
mod robustness;
mod samples;

use std::f64::consts::TAU;

use circulant_kernels::{KlGradients, LowRank, Real, SampleGradients};

use crate::oracle::{check_differences, dot, narrow, normal, same_on_threads, wide};

/// Closed form against the dense Gaussian, both in f64.
const DENSE: f64 = 1e-9;
/// Central differences with steps of 1e-5 are good to about this.
const DIFFERENCES: f64 = 1e-6;
/// f32 against f64, relative to the sum of the absolute values of the terms.
const SINGLE: f64 = 2e-6;

/// d = 1, odd, prime, even, above a block; rank 0, 1, padded, whole tiles, more than d.
const SHAPES: [(usize, usize); 9] = [
    (1, 0),
    (1, 1),
    (2, 5),
    (7, 0),
    (7, 3),
    (13, 8),
    (20, 17),
    (131, 9),
    (300, 16),
];

#[derive(Clone)]
struct Problem<T> {
    /// Mean, factor, scale, log deviation.
    parameters: [Vec<T>; 4],
    prior: Vec<T>,
    jitter: f64,
}

impl Problem<f64> {
    fn new(seed: u64, d: usize, rank: usize, jitter: f64) -> Self {
        let scaled = |stream, len, factor: f64| -> Vec<f64> {
            let numbers: Vec<f64> = normal(seed, stream, len);
            numbers.into_iter().map(|z| factor * z).collect()
        };
        Self {
            parameters: [
                scaled(0, d, 1.0),
                scaled(1, d * rank, 0.5),
                scaled(2, rank, 1.0),
                scaled(3, d, 0.5),
            ],
            prior: scaled(4, d, 0.5).into_iter().map(f64::exp).collect(),
            jitter,
        }
    }

    fn single(&self) -> Problem<f32> {
        Problem {
            parameters: self.parameters.each_ref().map(|values| narrow(values)),
            prior: narrow(&self.prior),
            jitter: self.jitter,
        }
    }

    /// `[d, d]`.
    fn covariance(&self) -> Vec<f64> {
        let [mean, factor, scale, log_deviation] = &self.parameters;
        let (d, rank) = (mean.len(), scale.len());
        let mut out = vec![0.0; d * d];
        for i in 0..d {
            for j in 0..d {
                for k in 0..rank {
                    let (u, v) = (factor[i * rank + k], factor[j * rank + k]);
                    out[i * d + j] += u * v * scale[k] * scale[k];
                }
            }
            out[i * d + i] += (2.0 * log_deviation[i]).exp() + self.jitter;
        }
        out
    }
}

impl Problem<f32> {
    fn double(&self) -> Problem<f64> {
        Problem {
            parameters: self.parameters.each_ref().map(|values| wide(values)),
            prior: wide(&self.prior),
            jitter: self.jitter,
        }
    }
}

impl<T: Real> Problem<T> {
    fn gaussian(&self) -> LowRank<'_, T> {
        self.gaussian_of(&self.parameters)
    }

    fn gaussian_of<'a>(
        &self,
        [mean, factor, scale, log_deviation]: &'a [Vec<T>; 4],
    ) -> LowRank<'a, T> {
        LowRank::new(mean, factor, scale, log_deviation, self.jitter).unwrap()
    }

    /// The KL and its gradients of mean, factor, scale, log deviation and prior variance.
    fn kl_and_gradients(&self, prior: &[T]) -> (f64, [Vec<T>; 5]) {
        let lengths = self.parameters.each_ref().map(Vec::len);
        let [d, factor, rank, _] = lengths;
        let mut out = [d, factor, rank, d, prior.len()].map(|len| vec![T::nan(); len]);
        let [mean, factor, scale, log_deviation, prior_variance] = &mut out;
        let gradients = KlGradients {
            mean,
            factor,
            scale,
            log_deviation,
            prior_variance: Some(prior_variance),
        };
        let kl = self
            .gaussian()
            .kl_with_gradients(prior, 1.0, gradients)
            .unwrap();
        (kl, out)
    }
}

/// `(ln det, r^T covariance^-1 r)` by a dense Cholesky factorisation with plain loops.
fn dense_log_det_and_form(covariance: &[f64], residual: &[f64]) -> (f64, f64) {
    let d = residual.len();
    let mut lower = vec![0.0; d * d];
    let (mut log_det, mut form) = (0.0, 0.0);
    let mut solved = vec![0.0; d];
    for i in 0..d {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| lower[i * d + k] * lower[j * d + k]).sum();
            let rest = covariance[i * d + j] - sum;
            lower[i * d + j] = if i == j {
                rest.sqrt()
            } else {
                rest / lower[j * d + j]
            };
        }
        let sum: f64 = (0..i).map(|k| lower[i * d + k] * solved[k]).sum();
        solved[i] = (residual[i] - sum) / lower[i * d + i];
        log_det += 2.0 * lower[i * d + i].ln();
        form += solved[i] * solved[i];
    }
    (log_det, form)
}

fn dense_kl(problem: &Problem<f64>, prior: &[f64]) -> f64 {
    let mean = &problem.parameters[0];
    let d = mean.len();
    let covariance = problem.covariance();
    let (log_det, _) = dense_log_det_and_form(&covariance, mean);
    let mut twice = -log_det - d as f64;
    for i in 0..d {
        let variance = prior[if prior.len() == 1 { 0 } else { i }];
        let second_moment = covariance[i * d + i] + mean[i] * mean[i];
        twice += second_moment / variance + variance.ln();
    }
    0.5 * twice
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}
