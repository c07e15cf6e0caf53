//! The Gaussian against dense matrices, central differences and samples.

mod cholesky;
mod closed_form;
mod robustness;
mod samples;

use std::f64::consts::TAU;

use circulant_kernels::random::normal::standard_normal;
use circulant_kernels::random::philox::NoiseKey;
use circulant_kernels::real::Real;
use circulant_kernels::{KlGradients, LowRank, SampleGradients};

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
    mean: Vec<T>,
    factor: Vec<T>,
    scale: Vec<T>,
    log_deviation: Vec<T>,
    prior: Vec<T>,
    jitter: f64,
}

fn normal<T: Real>(seed: u64, stream: u64, len: usize) -> Vec<T> {
    let mut out = vec![T::zero(); len];
    standard_normal(NoiseKey { seed, stream }, &mut out);
    out
}

impl Problem<f64> {
    fn new(seed: u64, d: usize, rank: usize, jitter: f64) -> Self {
        let scaled = |stream, len, factor: f64| -> Vec<f64> {
            let numbers: Vec<f64> = normal(seed, stream, len);
            numbers.into_iter().map(|z| factor * z).collect()
        };
        Self {
            mean: scaled(0, d, 1.0),
            factor: scaled(1, d * rank, 0.5),
            scale: scaled(2, rank, 1.0),
            log_deviation: scaled(3, d, 0.5),
            prior: scaled(4, d, 0.5).into_iter().map(f64::exp).collect(),
            jitter,
        }
    }

    fn single(&self) -> Problem<f32> {
        let narrow = |x: &[f64]| x.iter().map(|x| *x as f32).collect();
        Problem {
            mean: narrow(&self.mean),
            factor: narrow(&self.factor),
            scale: narrow(&self.scale),
            log_deviation: narrow(&self.log_deviation),
            prior: narrow(&self.prior),
            jitter: self.jitter,
        }
    }

    /// `[d, d]`.
    fn covariance(&self) -> Vec<f64> {
        let (d, rank) = (self.mean.len(), self.scale.len());
        let mut out = vec![0.0; d * d];
        for i in 0..d {
            for j in 0..d {
                for k in 0..rank {
                    let (u, v) = (self.factor[i * rank + k], self.factor[j * rank + k]);
                    out[i * d + j] += u * v * self.scale[k] * self.scale[k];
                }
            }
            out[i * d + i] += (2.0 * self.log_deviation[i]).exp() + self.jitter;
        }
        out
    }
}

impl Problem<f32> {
    fn double(&self) -> Problem<f64> {
        let wide = |x: &[f32]| x.iter().map(|x| f64::from(*x)).collect();
        Problem {
            mean: wide(&self.mean),
            factor: wide(&self.factor),
            scale: wide(&self.scale),
            log_deviation: wide(&self.log_deviation),
            prior: wide(&self.prior),
            jitter: self.jitter,
        }
    }
}

impl<T: Real> Problem<T> {
    fn gaussian(&self) -> LowRank<'_, T> {
        let Self {
            mean,
            factor,
            scale,
            log_deviation,
            ..
        } = self;
        LowRank::new(mean, factor, scale, log_deviation, self.jitter).unwrap()
    }

    /// The KL and its gradients of mean, factor, scale, log deviation and prior variance.
    fn kl_and_gradients(&self, prior: &[T]) -> (f64, [Vec<T>; 5]) {
        let zeros = |len: usize| vec![T::nan(); len];
        let mut out = [
            zeros(self.mean.len()),
            zeros(self.factor.len()),
            zeros(self.scale.len()),
            zeros(self.log_deviation.len()),
            zeros(prior.len()),
        ];
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

    fn parameters(&mut self) -> [&mut Vec<T>; 4] {
        [
            &mut self.mean,
            &mut self.factor,
            &mut self.scale,
            &mut self.log_deviation,
        ]
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
    let d = problem.mean.len();
    let covariance = problem.covariance();
    let (log_det, _) = dense_log_det_and_form(&covariance, &problem.mean);
    let mut twice = -log_det - d as f64;
    for i in 0..d {
        let variance = prior[if prior.len() == 1 { 0 } else { i }];
        let second_moment = covariance[i * d + i] + problem.mean[i] * problem.mean[i];
        twice += second_moment / variance + variance.ln();
    }
    0.5 * twice
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

/// Every gradient of `value` against a central difference.
fn check_differences(
    problem: &Problem<f64>,
    gradients: [&[f64]; 4],
    value: impl Fn(&Problem<f64>) -> f64,
) {
    let step = 1e-5;
    for (which, gradient) in gradients.into_iter().enumerate() {
        for (i, g) in gradient.iter().enumerate() {
            let moved = |by: f64| {
                let mut problem = problem.clone();
                problem.parameters()[which][i] += by;
                value(&problem)
            };
            let difference = (moved(step) - moved(-step)) / (2.0 * step);
            assert!(
                close(*g, difference, DIFFERENCES),
                "parameter {which}, number {i}: {g} {difference}"
            );
        }
    }
}
