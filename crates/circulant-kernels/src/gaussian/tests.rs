//! The Gaussian against dense matrices, central differences and samples.

use proptest::prelude::*;

use super::*;
use crate::noise::standard_normal;
use crate::philox::NoiseKey;

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
        let kl = self.gaussian().kl_with_gradients(prior, gradients).unwrap();
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

#[test]
fn kl_entropy_and_density_are_those_of_the_dense_gaussian() {
    for (d, rank) in SHAPES {
        for jitter in [0.0, 1e-6, 0.3] {
            let problem = Problem::new(11, d, rank, jitter);
            let q = problem.gaussian();
            for prior in [&problem.prior[..], &problem.prior[..1]] {
                let (kl, expected) = (q.kl(prior).unwrap(), dense_kl(&problem, prior));
                assert!(close(kl, expected, DENSE), "{d}x{rank}: {kl} {expected}");
                assert_eq!(problem.kl_and_gradients(prior).0, kl);
            }
            let a: Vec<f64> = normal(12, 0, d);
            let residual: Vec<f64> = a.iter().zip(&problem.mean).map(|(a, m)| a - m).collect();
            let (log_det, form) = dense_log_det_and_form(&problem.covariance(), &residual);
            let entropy = 0.5 * (d as f64 * (1.0 + TAU.ln()) + log_det);
            assert!(close(q.entropy(), entropy, DENSE), "{d}x{rank}");
            let density = -0.5 * (d as f64 * TAU.ln() + log_det + form);
            assert!(
                close(q.log_density(&a).unwrap(), density, DENSE),
                "{d}x{rank}"
            );
            let mut diagonal = vec![0.0; d];
            q.diagonal_variance(&mut diagonal).unwrap();
            let covariance = problem.covariance();
            for (i, variance) in diagonal.iter().enumerate() {
                assert!(close(*variance, covariance[i * d + i], DENSE));
            }
        }
    }
}

#[test]
fn kl_of_the_prior_itself_is_zero() {
    for rank in [0, 3] {
        let mut problem = Problem::new(1, 17, rank, 0.0);
        problem.mean.fill(0.0);
        problem.scale.fill(0.0);
        for (l, variance) in problem.log_deviation.iter_mut().zip(&problem.prior) {
            *l = 0.5 * variance.ln();
        }
        let (kl, gradients) = problem.kl_and_gradients(&problem.prior);
        assert!(kl.abs() < 1e-13, "{kl}");
        assert!(gradients.iter().flatten().all(|g| g.abs() < 1e-13));
        let single = problem.single();
        assert!(single.gaussian().kl(&single.prior).unwrap().abs() < 1e-5);
    }
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

#[test]
fn kl_gradients_are_those_of_the_kl() {
    for (d, rank) in [(1, 0), (1, 1), (2, 5), (7, 3), (13, 8), (11, 9)] {
        for (jitter, each) in [(0.0, true), (0.2, true), (0.2, false)] {
            let problem = Problem::new(21, d, rank, jitter);
            let prior = &problem.prior[..if each { d } else { 1 }];
            let (_, [mean, factor, scale, log_deviation, of_prior]) =
                problem.kl_and_gradients(prior);
            let gradients = [&mean[..], &factor, &scale, &log_deviation];
            check_differences(&problem, gradients, |moved| {
                moved.gaussian().kl(prior).unwrap()
            });
            for (i, g) in of_prior.iter().enumerate() {
                let moved = |by: f64| {
                    let mut prior = prior.to_vec();
                    prior[i] += by;
                    problem.gaussian().kl(&prior).unwrap()
                };
                let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!(close(*g, difference, DIFFERENCES), "{g} {difference}");
            }
        }
    }
}

#[test]
fn sample_gradients_are_those_of_the_sample() {
    for (d, rank) in [(1, 0), (1, 1), (2, 5), (7, 3), (13, 8), (11, 17)] {
        for jitter in [0.0, 0.2] {
            let problem = Problem::new(31, d, rank, jitter);
            let (xi, zeta): (Vec<f64>, Vec<f64>) = (normal(32, 0, rank), normal(32, 1, d));
            let grad: Vec<f64> = normal(32, 2, d);
            let (mut factor, mut scale) = (vec![9.0; d * rank], vec![9.0; rank]);
            let mut log_deviation = vec![9.0; d];
            let gradients = SampleGradients {
                factor: &mut factor,
                scale: &mut scale,
                log_deviation: &mut log_deviation,
            };
            problem
                .gaussian()
                .sample_backward(&xi, &zeta, &grad, gradients)
                .unwrap();
            let gradients = [&grad[..], &factor, &scale, &log_deviation];
            check_differences(&problem, gradients, |moved| {
                let mut a = vec![0.0; d];
                moved.gaussian().sample_into(&xi, &zeta, &mut a).unwrap();
                a.iter().zip(&grad).map(|(a, g)| a * g).sum()
            });
        }
    }
}

/// A sample is linear in its noise, so unit vectors of noise give the factors of the covariance.
#[test]
fn the_covariance_of_samples_is_the_formula() {
    for (d, rank) in SHAPES.into_iter().filter(|(d, _)| *d < 100) {
        let problem = Problem::new(41, d, rank, 0.1);
        let q = problem.gaussian();
        let mut covariance = vec![0.0; d * d];
        for unit in 0..rank + d {
            let mut noise = vec![0.0; rank + d];
            noise[unit] = 1.0;
            let mut a = vec![0.0; d];
            q.sample_into(&noise[..rank], &noise[rank..], &mut a)
                .unwrap();
            for i in 0..d {
                for j in 0..d {
                    let (x, y) = (a[i] - problem.mean[i], a[j] - problem.mean[j]);
                    covariance[i * d + j] += x * y;
                }
            }
        }
        for (found, expected) in covariance.iter().zip(problem.covariance()) {
            assert!(close(*found, expected, 1e-12), "{found} {expected}");
        }
    }
}

#[test]
fn samples_have_the_mean_and_the_covariance() {
    let (d, rank, count) = (3, 2, 40_000);
    let problem = Problem::new(51, d, rank, 0.0);
    let noise: Vec<f64> = normal(52, 0, count * (d + rank));
    let mut a = vec![0.0; d];
    let (mut sums, mut products) = (vec![0.0; d], vec![0.0; d * d]);
    for noise in noise.chunks(d + rank) {
        let (xi, zeta) = noise.split_at(rank);
        problem.gaussian().sample_into(xi, zeta, &mut a).unwrap();
        for i in 0..d {
            sums[i] += a[i] / count as f64;
            for j in 0..d {
                let product = (a[i] - problem.mean[i]) * (a[j] - problem.mean[j]);
                products[i * d + j] += product / count as f64;
            }
        }
    }
    let covariance = problem.covariance();
    for i in 0..d {
        let standard_error = (covariance[i * d + i] / count as f64).sqrt();
        assert!((sums[i] - problem.mean[i]).abs() < 5.0 * standard_error);
        for j in 0..d {
            let product = covariance[i * d + i] * covariance[j * d + j];
            let variance = product + covariance[i * d + j].powi(2);
            let error = (products[i * d + j] - covariance[i * d + j]).abs();
            assert!(error < 5.0 * (variance / count as f64).sqrt());
        }
    }
}

#[test]
fn f32_agrees_with_f64() {
    for (d, rank) in [(784, 8), (784, 0), (131, 9), (40_000, 0), (20_000, 4)] {
        for jitter in [0.0, 1e-6] {
            let single = Problem::new(61, d, rank, jitter).single();
            let wide = |x: &[f32]| x.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
            let double = Problem {
                mean: wide(&single.mean),
                factor: wide(&single.factor),
                scale: wide(&single.scale),
                log_deviation: wide(&single.log_deviation),
                prior: wide(&single.prior),
                jitter,
            };
            let (kl, gradients) = single.kl_and_gradients(&single.prior);
            let (expected, wide_gradients) = double.kl_and_gradients(&double.prior);
            assert!(close(kl, expected, SINGLE), "{kl} {expected}");
            for (gradient, expected) in gradients.iter().zip(&wide_gradients) {
                for (g, expected) in gradient.iter().zip(expected) {
                    assert!(
                        close(f64::from(*g), *expected, 4.0 * SINGLE),
                        "{g} {expected}"
                    );
                }
            }
            let (q, expected) = (single.gaussian(), double.gaussian());
            assert!(close(q.entropy(), expected.entropy(), SINGLE));
            let density = q.log_density(&single.prior).unwrap();
            let expected = expected.log_density(&double.prior).unwrap();
            assert!(close(density, expected, SINGLE), "{density} {expected}");
        }
    }
}

/// With a tiny deviation `M` is huge; in f32 its identity would be lost.
#[test]
fn a_tiny_deviation_keeps_f32_accurate() {
    let mut problem = Problem::new(71, 50, 8, 0.0);
    problem.log_deviation.fill(-7.0);
    let single = problem.single();
    let kl = single.gaussian().kl(&single.prior).unwrap();
    let expected = problem.gaussian().kl(&problem.prior).unwrap();
    assert!(close(kl, expected, SINGLE), "{kl} {expected}");
    assert!(close(expected, dense_kl(&problem, &problem.prior), 1e-6));
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    for (d, rank) in [(100_003, 0), (20_011, 8)] {
        let problem = Problem::new(81, d, rank, 1e-6).single();
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| {
                let (xi, zeta): (Vec<f32>, Vec<f32>) = (normal(82, 0, rank), normal(82, 1, d));
                let mut a = vec![0.0; d];
                let q = problem.gaussian();
                q.sample_into(&xi, &zeta, &mut a).unwrap();
                (problem.kl_and_gradients(&problem.prior), q.entropy(), a)
            })
        };
        let (one, three) = (run(1), run(3));
        assert!(one == three && one == run(2));
    }
}

#[test]
fn nan_in_gives_nan_out() {
    for rank in [0, 3] {
        for which in 0..4 {
            let mut problem = Problem::new(91, 9, rank, 1e-6).single();
            let parameter = &mut problem.parameters()[which];
            if parameter.is_empty() {
                continue;
            }
            parameter[0] = f32::NAN;
            let (kl, _) = problem.kl_and_gradients(&problem.prior);
            assert!(kl.is_nan(), "parameter {which}, rank {rank}");
            let q = problem.gaussian();
            assert!(q.log_density(&[0.5; 9]).unwrap().is_nan());
            assert!(which == 0 || q.entropy().is_nan());
            let mut a = [0.0; 9];
            q.sample_into(&vec![1.0; rank], &[1.0; 9], &mut a).unwrap();
            assert!(a[0].is_nan());
        }
        let mut problem = Problem::new(91, 9, rank, 1e-6).single();
        problem.prior[3] = f32::NAN;
        assert!(problem.kl_and_gradients(&problem.prior).0.is_nan());
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let x = [0.0f32; 12];
    assert!(LowRank::new(&x[..3], &x[..6], &x[..2], &x[..3], 0.0).is_ok());
    assert!(LowRank::new(&x[..0], &x[..0], &x[..0], &x[..0], 0.0).is_err());
    assert!(LowRank::new(&x[..3], &x[..5], &x[..2], &x[..3], 0.0).is_err());
    assert!(LowRank::new(&x[..3], &x[..6], &x[..2], &x[..2], 0.0).is_err());
    assert!(LowRank::new(&x[..3], &x[..6], &x[..2], &x[..3], -1.0).is_err());
    let q = LowRank::new(&x[..3], &x[..6], &x[..2], &x[..3], 0.0).unwrap();
    let mut out = [0.0; 12];
    assert!(q.kl(&x[..2]).is_err());
    assert!(q.kl(&[]).is_err());
    assert!(q.log_density(&x[..2]).is_err());
    assert!(q.diagonal_variance(&mut out[..4]).is_err());
    for (xi, zeta, a) in [(1, 3, 3), (2, 4, 3), (2, 3, 2)] {
        assert!(q.sample_into(&x[..xi], &x[..zeta], &mut out[..a]).is_err());
    }
    for lens in [
        [3, 6, 2, 3, 2],
        [2, 6, 2, 3, 3],
        [3, 5, 2, 3, 3],
        [3, 6, 3, 3, 3],
        [3, 6, 2, 4, 3],
    ] {
        let mut buffers = lens.map(|len| vec![0.0; len]);
        let [mean, factor, scale, log_deviation, prior] = &mut buffers;
        let gradients = KlGradients {
            mean,
            factor,
            scale,
            log_deviation,
            prior_variance: Some(prior),
        };
        assert!(q.kl_with_gradients(&[1.0; 3], gradients).is_err());
    }
}

proptest! {
    #[test]
    fn kl_is_never_negative(
        seed in 0u64..1 << 40,
        d in 1usize..40,
        rank in 0usize..12,
        jitter in prop::sample::select(vec![0.0, 1e-6, 0.5]),
    ) {
        let problem = Problem::new(seed, d, rank, jitter);
        let kl = problem.gaussian().kl(&problem.prior).unwrap();
        prop_assert!(kl >= 0.0, "{}", kl);
        let single = problem.single();
        prop_assert!(close(single.gaussian().kl(&single.prior).unwrap(), kl, 1e-4));
    }
}
