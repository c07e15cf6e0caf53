//! Posteriors through Burn: samples, KL and their gradients, against dense matrices and central differences in f64.

use crate::common;
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor, TensorData};
use circulant::bayes::{
    LowRankGaussian, MeanFieldGaussian, PointEstimate, Posterior, SpectralPrior,
};
use circulant::noise::{NoiseKey, standard_normal};
use circulant::operator::HalfSpectrum;
use circulant::operator::Layout;
use proptest::prelude::*;

/// Sums of a few dozen terms in f64.
const EXACT: f64 = 1e-9;
/// Central differences with step 1e-5 on functions of size one.
const DIFFERENCES: f64 = 1e-6;
const STEP: f64 = 1e-5;
const KEY: NoiseKey = NoiseKey {
    seed: 11,
    stream: 2,
};

fn device() -> Device {
    common::double().autodiff()
}

fn tensor(values: &[f64]) -> Tensor<1> {
    let shape = [values.len()];
    Tensor::from_data(TensorData::new(values.to_vec(), shape), &device())
}

/// Adds numbers to all parameters, so that no test sits at a special point.
struct Shake(u64);

impl ModuleMapper for Shake {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.0 += 1;
        let (id, tensor, mapper) = param.consume();
        let noise = common::random(self.0, tensor.dims(), &device());
        let tensor = (tensor.detach() + noise.mul_scalar(0.3))
            .detach()
            .require_grad();
        Param::from_mapped_value(id, tensor, mapper)
    }
}

fn low_rank(dimension: usize, rank: usize, seed: u64) -> LowRankGaussian {
    let mean = common::numbers(seed, dimension);
    LowRankGaussian::new(mean, rank, 0.7, 1e-3, KEY, &device()).map(&mut Shake(seed))
}

fn mean_field(dimension: usize, seed: u64) -> MeanFieldGaussian {
    let mean = common::numbers(seed, dimension);
    MeanFieldGaussian::new(mean, 0.7, &device()).map(&mut Shake(seed))
}

type Matrix = Vec<Vec<f64>>;

fn covariance(q: &LowRankGaussian) -> Matrix {
    let (factor, scale) = (common::host(q.factor.val()), common::host(q.scale.val()));
    let log_deviation = common::host(q.log_deviation.val());
    let (d, r) = (log_deviation.len(), scale.len());
    (0..d)
        .map(|i| {
            (0..d)
                .map(|j| {
                    let low: f64 = (0..r)
                        .map(|k| factor[i * r + k] * scale[k].powi(2) * factor[j * r + k])
                        .sum();
                    let diagonal = (2.0 * log_deviation[i]).exp() + q.jitter();
                    low + if i == j { diagonal } else { 0.0 }
                })
                .collect()
        })
        .collect()
}

/// By elimination.
fn log_det(mut matrix: Matrix) -> f64 {
    let mut sum = 0.0;
    for k in 0..matrix.len() {
        sum += matrix[k][k].ln();
        for i in k + 1..matrix.len() {
            let ratio = matrix[i][k] / matrix[k][k];
            let (above, below) = matrix.split_at_mut(i);
            for (entry, pivot) in below[0][k..].iter_mut().zip(&above[k][k..]) {
                *entry -= ratio * pivot;
            }
        }
    }
    sum
}

fn dense_kl(mean: &[f64], covariance: Matrix, prior: &[f64]) -> f64 {
    let trace: f64 = (0..mean.len()).map(|i| covariance[i][i] / prior[i]).sum();
    let quadratic: f64 = mean.iter().zip(prior).map(|(m, v)| m * m / v).sum();
    let prior_log: f64 = prior.iter().map(|v| v.ln()).sum();
    0.5 * (trace + quadratic - mean.len() as f64 + prior_log - log_det(covariance))
}

fn variances(dimension: usize, seed: u64) -> Vec<f64> {
    let numbers = common::numbers(seed, dimension);
    numbers.iter().map(|x| (0.8 * x).exp()).collect()
}

#[test]
fn kl_is_the_dense_one() {
    for (d, r) in [(1, 1), (2, 1), (5, 3), (7, 7), (13, 4), (16, 8)] {
        let q = low_rank(d, r, 3);
        let prior = variances(d, 9);
        let expected = dense_kl(&common::host(q.mean()), covariance(&q), &prior);
        let got: f64 = q.kl(tensor(&prior), 0.25).into_scalar();
        assert!((got - 0.25 * expected).abs() < EXACT * expected.abs().max(1.0));
    }
    let q = mean_field(7, 4);
    let deviations = common::host(q.log_deviation.val());
    let dense = |i: usize| {
        let value = (2.0 * deviations[i]).exp();
        (0..7).map(|j| if i == j { value } else { 0.0 }).collect()
    };
    let expected = dense_kl(
        &common::host(q.mean()),
        (0..7).map(dense).collect(),
        &[2.0; 7],
    );
    // One variance for all.
    let got: f64 = q.kl(tensor(&[2.0]), 1.0).into_scalar();
    assert!((got - expected).abs() < EXACT * expected.abs());
}

#[test]
fn kl_vanishes_at_the_prior() {
    let device = device();
    let q = MeanFieldGaussian::new(vec![0.0; 5], 0.3, &device);
    let kl: f64 = q.kl(tensor(&[0.09; 5]), 1.0).into_scalar();
    assert!(kl.abs() < EXACT);
    // Without scale the low-rank part is gone.
    let mut q = LowRankGaussian::new(vec![0.0; 5], 2, 0.3, 1e-2, KEY, &device);
    q.scale = q.scale.map(|scale| scale.zeros_like().require_grad());
    let kl: f64 = q.kl(tensor(&[0.09 + 1e-2; 5]), 1.0).into_scalar();
    assert!(kl.abs() < EXACT);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn kl_is_never_negative(d in 1..20_usize, r in 1..6_usize, seed in 0..1000_u64) {
        let q = low_rank(d, r.min(d), seed);
        let kl: f64 = q.kl(tensor(&variances(d, seed + 1)), 1.0).into_scalar();
        prop_assert!(kl >= -EXACT);
    }
}

/// Gradients by `backward` of a scalar function of all parameters, against central differences.
fn check_gradients<P: Posterior + Clone>(posterior: &P, value: impl Fn(&P) -> Tensor<1>) {
    /// Moves one number of one parameter, and collects gradients.
    struct Move {
        parameter: usize,
        number: usize,
        step: f64,
        seen: usize,
    }
    impl ModuleMapper for Move {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let here = self.seen == self.parameter;
            self.seen += 1;
            if !here {
                return param;
            }
            let (id, tensor, mapper) = param.consume();
            let dims = tensor.dims();
            let mut values = common::host(tensor);
            values[self.number] += self.step;
            let tensor = Tensor::from_data(TensorData::new(values, dims), &device());
            Param::from_mapped_value(id, tensor.require_grad(), mapper)
        }
    }
    struct Gradients(burn::tensor::Gradients, Vec<Vec<f64>>);
    impl burn::module::ModuleVisitor for Gradients {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let gradient = param.val().grad(&self.0).expect("every parameter counts");
            self.1.push(common::host(gradient));
        }
    }
    let mut gradients = Gradients(value(posterior).backward(), Vec::new());
    posterior.visit(&mut gradients);
    for (parameter, gradient) in gradients.1.iter().enumerate() {
        let differences: Vec<f64> = (0..gradient.len())
            .map(|number| {
                let at = |step: f64| -> f64 {
                    let mut shift = Move {
                        parameter,
                        number,
                        step,
                        seen: 0,
                    };
                    value(&posterior.clone().map(&mut shift)).into_scalar()
                };
                (at(STEP) - at(-STEP)) / (2.0 * STEP)
            })
            .collect();
        let gap = common::difference(gradient, &differences);
        assert!(gap < DIFFERENCES, "parameter {parameter}: {gap}");
    }
}

#[test]
fn gradients_of_the_kl() {
    for (d, r) in [(1, 1), (5, 2), (8, 3)] {
        let prior = tensor(&variances(d, 5));
        check_gradients(&low_rank(d, r, 8), |q| q.kl(prior.clone(), 0.4));
    }
    let prior = tensor(&[1.7]);
    check_gradients(&mean_field(6, 2), |q| q.kl(prior.clone(), 0.4));
    let point = PointEstimate::new(common::numbers(4, 6), &device());
    check_gradients(&point, |q| q.kl(prior.clone(), 0.4));
}

#[test]
fn gradients_of_a_sample() {
    let weights = |d: usize| common::random::<1>(77, [d], &device());
    for (d, r) in [(1, 1), (5, 2), (8, 3)] {
        check_gradients(&low_rank(d, r, 6), |q| {
            (q.sample(KEY).square() * weights(d)).sum()
        });
    }
    check_gradients(&mean_field(7, 6), |q| {
        (q.sample(KEY).square() * weights(7)).sum()
    });
}

#[test]
fn the_gradient_of_the_prior_variance() {
    for (count, repeats) in [(6, 1), (1, 6)] {
        let q = low_rank(6, 2, 5);
        let prior = variances(count, 1);
        let leaf = tensor(&prior).require_grad();
        let grads = q.kl(leaf.clone(), 1.0).backward();
        let gradient = common::host(leaf.grad(&grads).expect("tracked"));
        let at = |i: usize, step: f64| -> f64 {
            let mut moved = prior.clone();
            moved[i] += step;
            q.kl(tensor(&moved), 1.0).into_scalar()
        };
        let differences: Vec<f64> = (0..count)
            .map(|i| (at(i, STEP) - at(i, -STEP)) / (2.0 * STEP))
            .collect();
        assert!(
            common::difference(&gradient, &differences) < DIFFERENCES,
            "{repeats}"
        );
    }
}

/// A sample is linear in its noise, so the columns that unit noise gives are a root of the covariance.
#[test]
fn samples_have_the_covariance() {
    const DRAWS: usize = 40_000;
    let (d, r) = (4, 2);
    let q = low_rank(d, r, 13);
    let (expected, mean) = (covariance(&q), common::host(q.mean()));
    let mut sums = vec![vec![0.0; d]; d];
    for stream in 0..DRAWS as u64 {
        let sample = common::host(q.sample(NoiseKey { seed: 3, stream }));
        for i in 0..d {
            for j in 0..d {
                sums[i][j] += (sample[i] - mean[i]) * (sample[j] - mean[j]) / DRAWS as f64;
            }
        }
    }
    for i in 0..d {
        for j in 0..d {
            let fourth = expected[i][i] * expected[j][j] + expected[i][j].powi(2);
            let error = (fourth / DRAWS as f64).sqrt();
            assert!(
                (sums[i][j] - expected[i][j]).abs() < 5.0 * error,
                "{i}, {j}"
            );
        }
    }
    // And exactly, with the noise at hand.
    let mut noise = vec![0.0; r + d];
    standard_normal(KEY, &mut noise);
    let (factor, scale) = (common::host(q.factor.val()), common::host(q.scale.val()));
    let log_deviation = common::host(q.log_deviation.val());
    let by_hand: Vec<f64> = (0..d)
        .map(|i| {
            let low: f64 = (0..r)
                .map(|k| factor[i * r + k] * scale[k] * noise[k])
                .sum();
            mean[i] + low + ((2.0 * log_deviation[i]).exp() + q.jitter()).sqrt() * noise[r + i]
        })
        .collect();
    assert!(common::difference(&common::host(q.sample(KEY)), &by_hand) < EXACT);
}

#[test]
fn entropies() {
    let q = low_rank(6, 3, 1);
    let dense = 0.5 * (6.0 * (1.0 + std::f64::consts::TAU.ln()) + log_det(covariance(&q)));
    assert!((q.entropy() - dense).abs() < EXACT * dense.abs());
    let q = MeanFieldGaussian::new(vec![0.0; 3], 0.5, &device());
    let one = 0.5 * (1.0 + std::f64::consts::TAU.ln()) + 0.5_f64.ln();
    assert!((q.entropy() - 3.0 * one).abs() < EXACT);
    let q = PointEstimate::new(vec![0.0], &device());
    assert_eq!(q.entropy(), f64::NEG_INFINITY);
}

/// In place of the KL, the point estimate has the log density of the prior.
#[test]
fn the_point_estimate_is_the_log_density() {
    let layout = Layout::Signal(HalfSpectrum::new(7).expect("valid"));
    let prior = SpectralPrior::new(&layout, &circulant::bayes::Slope::default()).expect("valid");
    let a = common::numbers(2, 7);
    let q = PointEstimate::new(a.clone(), &device());
    let got: f64 = q.kl(tensor(prior.variances()), 1.0).into_scalar();
    assert!((got + prior.log_density(&a).expect("fits")).abs() < EXACT);
    let got: f64 = q.kl(tensor(&[1.0]), 1.0).into_scalar();
    let expected: f64 = a
        .iter()
        .map(|a| 0.5 * (a * a + std::f64::consts::TAU.ln()))
        .sum();
    assert!((got - expected).abs() < EXACT);
}
