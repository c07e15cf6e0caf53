//! Times of noise and Gaussian posteriors, f32, each beside a plain scalar version on one thread.
//!
//! `cargo bench -p circulant-kernels --bench gaussian` prints a table; `-- --json` prints one line
//! per case. Flags: `--case SUBSTRING`, `--seconds S` (per case), `--threads N`.

#[path = "timing/beside_plain.rs"]
mod beside_plain;
mod timing;

use std::hint::black_box;

use beside_plain::{Report, noise};
use circulant_kernels::{KlGradients, LowRank, NoiseKey, SampleGradients, standard_normal};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, StandardNormal};

const JITTER: f64 = 1e-6;

/// The parameters of a Gaussian and everything that is written.
#[derive(Clone)]
struct Work {
    mean: Vec<f32>,
    factor: Vec<f32>,
    scale: Vec<f32>,
    log_deviation: Vec<f32>,
    low_rank_noise: Vec<f32>,
    noise: Vec<f32>,
    sample: Vec<f32>,
    grad_mean: Vec<f32>,
    grad_factor: Vec<f32>,
    grad_scale: Vec<f32>,
    grad_log_deviation: Vec<f32>,
}

impl Work {
    fn new(d: usize, rank: usize) -> Self {
        Self {
            mean: noise(0, d),
            factor: noise(1, d * rank),
            scale: noise(2, rank),
            log_deviation: noise(3, d),
            low_rank_noise: noise(4, rank),
            noise: noise(5, d),
            sample: vec![0.0; d],
            grad_mean: vec![0.0; d],
            grad_factor: vec![0.0; d * rank],
            grad_scale: vec![0.0; rank],
            grad_log_deviation: vec![0.0; d],
        }
    }

    fn kl(&mut self) -> f64 {
        let gradients = KlGradients {
            mean: &mut self.grad_mean,
            factor: &mut self.grad_factor,
            scale: &mut self.grad_scale,
            log_deviation: &mut self.grad_log_deviation,
            prior_variance: None,
        };
        LowRank::new(
            &self.mean,
            &self.factor,
            &self.scale,
            &self.log_deviation,
            JITTER,
        )
        .and_then(|q| q.kl_with_gradients(&[1.0], 1.0, gradients))
        .expect("sizes fit")
    }

    fn sample(&mut self) {
        LowRank::new(
            &self.mean,
            &self.factor,
            &self.scale,
            &self.log_deviation,
            JITTER,
        )
        .and_then(|q| q.sample_into(&self.low_rank_noise, &self.noise, &mut self.sample))
        .expect("sizes fit");
    }

    /// With the noise as the gradient of the sample.
    fn sample_backward(&mut self) {
        let gradients = SampleGradients {
            factor: &mut self.grad_factor,
            scale: &mut self.grad_scale,
            log_deviation: &mut self.grad_log_deviation,
        };
        LowRank::new(
            &self.mean,
            &self.factor,
            &self.scale,
            &self.log_deviation,
            JITTER,
        )
        .and_then(|q| q.sample_backward(&self.low_rank_noise, &self.noise, &self.mean, gradients))
        .expect("sizes fit");
    }

    /// The formula with plain loops and the standard library's `exp` and `ln`.
    fn plain_kl(&mut self) -> f64 {
        let (d, rank) = (self.mean.len(), self.scale.len());
        let weight = |i: usize, k: usize| f64::from(self.factor[i * rank + k] * self.scale[k]);
        let variance = |i: usize| f64::from((2.0 * self.log_deviation[i]).exp());
        let mut matrix = vec![0.0; rank * rank];
        for i in 0..d {
            let inverse = 1.0 / (variance(i) + JITTER);
            for j in 0..rank {
                for k in 0..rank {
                    matrix[j * rank + k] += weight(i, j) * weight(i, k) * inverse;
                }
            }
        }
        for j in 0..rank {
            matrix[j * rank + j] += 1.0;
        }
        let log_determinant = invert(&mut matrix, rank);
        let mut twice = -log_determinant - d as f64;
        let mut grad_scale = vec![0.0; rank];
        for i in 0..d {
            let (free, mean) = (variance(i), f64::from(self.mean[i]));
            let total = free + JITTER;
            let mut explained = 0.0;
            for k in 0..rank {
                let row = &matrix[k * rank..][..rank];
                let product: f64 = (0..rank).map(|j| weight(i, j) * row[j]).sum();
                let n = product / total;
                let gradient = weight(i, k) - n;
                explained += n * weight(i, k);
                twice += weight(i, k) * weight(i, k);
                grad_scale[k] += gradient * f64::from(self.factor[i * rank + k]);
                self.grad_factor[i * rank + k] = gradient as f32 * self.scale[k];
            }
            twice += total + mean * mean - total.ln();
            self.grad_mean[i] = self.mean[i];
            self.grad_log_deviation[i] = (free * (1.0 - (1.0 - explained) / total)) as f32;
        }
        for (out, sum) in self.grad_scale.iter_mut().zip(grad_scale) {
            *out = sum as f32;
        }
        0.5 * twice
    }

    fn plain_sample(&mut self) {
        let rank = self.scale.len();
        for i in 0..self.mean.len() {
            let mut a = self.mean[i];
            for k in 0..rank {
                a += self.factor[i * rank + k] * (self.scale[k] * self.low_rank_noise[k]);
            }
            let variance = (2.0 * self.log_deviation[i]).exp() + JITTER as f32;
            self.sample[i] = a + variance.sqrt() * self.noise[i];
        }
    }

    fn plain_sample_backward(&mut self) {
        let rank = self.scale.len();
        let mut sums = vec![0.0; rank];
        for i in 0..self.mean.len() {
            let g = self.mean[i];
            for (k, sum) in sums.iter_mut().enumerate() {
                self.grad_factor[i * rank + k] = g * (self.scale[k] * self.low_rank_noise[k]);
                *sum += f64::from(g * self.factor[i * rank + k]);
            }
            let free = (2.0 * self.log_deviation[i]).exp();
            let slope = free / (free + JITTER as f32).sqrt();
            self.grad_log_deviation[i] = g * self.noise[i] * slope;
        }
        for (k, sum) in sums.into_iter().enumerate() {
            self.grad_scale[k] = self.low_rank_noise[k] * sum as f32;
        }
    }
}

/// Gauss-Jordan of a positive definite matrix in place; returns the log determinant.
fn invert(matrix: &mut [f64], n: usize) -> f64 {
    let mut log_determinant = 0.0;
    for p in 0..n {
        let pivot = matrix[p * n + p];
        log_determinant += pivot.ln();
        matrix[p * n + p] = 1.0;
        for j in 0..n {
            matrix[p * n + j] /= pivot;
        }
        for i in (0..n).filter(|i| *i != p) {
            let factor = matrix[i * n + p];
            matrix[i * n + p] = 0.0;
            for j in 0..n {
                matrix[i * n + j] -= factor * matrix[p * n + j];
            }
        }
    }
    log_determinant
}

fn gaussians(report: &Report, d: usize, rank: usize) {
    let (mut work, mut plain) = (Work::new(d, rank), Work::new(d, rank));
    report.case(
        &format!("kl/{d}x{rank}"),
        || {
            black_box(work.kl());
        },
        || {
            black_box(plain.plain_kl());
        },
    );
    let case = format!("sample/{d}x{rank}");
    report.case(&case, || work.sample(), || plain.plain_sample());
    let case = format!("sample_backward/{d}x{rank}");
    report.case(
        &case,
        || work.sample_backward(),
        || plain.plain_sample_backward(),
    );
}

fn main() {
    let report = Report::start(" (noise: the ziggurat of rand_distr with SmallRng)");
    let len = 600_000;
    let (mut z, mut plain) = (vec![0.0f32; len], vec![0.0f32; len]);
    let mut generator = SmallRng::seed_from_u64(1);
    report.case(
        &format!("noise/{len}"),
        || standard_normal(NoiseKey { seed: 1, stream: 2 }, &mut z),
        || {
            for z in &mut plain {
                *z = StandardNormal.sample(&mut generator);
            }
        },
    );
    gaussians(&report, 784, 8);
    gaussians(&report, 615_000, 0);
}
