//! Regression where everything is known in closed form: of a linear model with Gaussian noise, evidence, posterior and
//! predictions have formulas. And gradients against central differences.

use std::ops::ControlFlow;

use burn::module::{Module, Param};
use burn::tensor::{Tensor, TensorData};
use circulant::bayes::{
    BayesianConfig, PosteriorKind, PredictiveConfig, Prior, Site, Svi, SviConfig, evidence,
};
use circulant::data::RegressionData;
use circulant::functional::{
    gaussian_nll, poisson_nll, weighted_cross_entropy, weighted_gaussian_nll, weighted_poisson_nll,
};
use circulant::metrics::Family;
use circulant::models::{HiddenKind, ImageClassifierConfig, Likelihood, TargetNetworkConfig};
use circulant::task::{Regressor, TargetDistribution};

use crate::common::{self, difference, host, numbers};

const ROWS: usize = 12;
const COLUMNS: usize = 2;
/// The deviation of the noise, and of the prior.
const SIGMA: f64 = 0.4;
const PRIOR: f64 = 1.3;

/// `y = x w + noise`.
#[derive(Module, Debug)]
struct Line {
    weight: Param<Tensor<1>>,
}

impl Regressor<2> for Line {
    fn distribution(&self, inputs: Tensor<2>) -> TargetDistribution {
        let weight = self.weight.val().reshape([COLUMNS, 1]);
        let mean: Tensor<1> = inputs.matmul(weight).flatten(0, 1);
        let log_deviation = Tensor::full([1], SIGMA.ln(), &mean.device());
        TargetDistribution::Gaussian {
            mean,
            log_deviation,
        }
    }
}

/// As the library keeps them.
fn data() -> (Vec<f32>, Vec<f32>) {
    let inputs: Vec<f32> = numbers(1, ROWS * COLUMNS)
        .iter()
        .map(|x| *x as f32)
        .collect();
    let noise = numbers(2, ROWS);
    let target = |(row, noise): (&[f32], &f64)| row[0] - 0.5 * row[1] + 0.3 * *noise as f32;
    let targets = inputs.chunks(COLUMNS).zip(&noise).map(target).collect();
    (inputs, targets)
}

/// Posterior mean, covariance, and the log evidence, by formulas for two columns.
struct Exact {
    mean: [f64; 2],
    covariance: [[f64; 2]; 2],
    log_evidence: f64,
}

fn exact(inputs: &[f32], targets: &[f32]) -> Exact {
    let (noise, prior) = (SIGMA * SIGMA, PRIOR * PRIOR);
    let mut precision = [[1.0 / prior, 0.0], [0.0, 1.0 / prior]];
    let mut right = [0.0; 2];
    let mut squares = 0.0;
    for (x, &y) in inputs.chunks(2).zip(targets) {
        let (x, y) = ([f64::from(x[0]), f64::from(x[1])], f64::from(y));
        for i in 0..2 {
            right[i] += x[i] * y / noise;
            for j in 0..2 {
                precision[i][j] += x[i] * x[j] / noise;
            }
        }
        squares += y * y / noise;
    }
    let determinant = precision[0][0] * precision[1][1] - precision[0][1] * precision[1][0];
    let covariance = [
        [
            precision[1][1] / determinant,
            -precision[0][1] / determinant,
        ],
        [
            -precision[1][0] / determinant,
            precision[0][0] / determinant,
        ],
    ];
    let mean = [0, 1].map(|i| covariance[i][0] * right[0] + covariance[i][1] * right[1]);
    // log N(y; 0, noise I + prior X X^T), by the determinant and inverse of a sum with few columns.
    let quadratic = squares - right[0] * mean[0] - right[1] * mean[1];
    let log_determinant = ROWS as f64 * noise.ln() + determinant.ln() + 2.0 * prior.ln();
    let constant = ROWS as f64 * (2.0 * std::f64::consts::PI).ln();
    Exact {
        mean,
        covariance,
        log_evidence: -0.5 * (quadratic + log_determinant + constant),
    }
}

#[test]
fn variational_inference_finds_posterior_evidence_and_predictions() {
    let device = common::double().autodiff();
    let (inputs, targets) = data();
    let set = RegressionData::new(inputs.clone(), [ROWS, COLUMNS], &targets, &device).unwrap();
    let line = Line {
        weight: Param::from_tensor(Tensor::zeros([COLUMNS], &device)),
    };
    // A posterior of full rank: it can be the exact one.
    let site = Site::mean_field(PRIOR)
        .with_posterior(PosteriorKind::LowRank {
            rank: COLUMNS,
            jitter: 0.0,
        })
        .with_prior(Prior::Normal {
            variance: PRIOR * PRIOR,
        })
        .with_initial_deviation(0.2);
    let network = BayesianConfig::new()
        .with_site("weight", site)
        .init(line)
        .unwrap();
    let config = SviConfig::new()
        .with_steps(4000)
        .with_batch(ROWS)
        .with_samples(8)
        .with_learning_rate(0.02)
        .with_final_rate(Some(0.0));
    let mut svi = Svi::new(network, config, ROWS).unwrap();
    svi.fit(&set, None, |_| ControlFlow::Continue(())).unwrap();
    let exact = exact(&inputs, &targets);
    let mean = host(svi.network().mean().weight.val());
    assert!(
        difference(&mean, &exact.mean) < 0.02,
        "{mean:?} {:?}",
        exact.mean
    );
    // No bound is above the evidence, and this one reaches it.
    let found = evidence(svi.network(), &set, 4000, 1).unwrap();
    let gap = exact.log_evidence - found.bound;
    assert!(
        (-0.05..0.1).contains(&gap),
        "{found:?} {}",
        exact.log_evidence
    );
    assert!((found.data - found.kl - found.bound).abs() < 1e-12);
    // Predictions: mean x m, epistemic variance x C x, aleatoric SIGMA^2.
    let predictive = PredictiveConfig::new().with_samples(4000);
    let predictions = predictive
        .predict_targets(svi.network(), set.inputs())
        .unwrap();
    assert_eq!((predictions.rows(), predictions.components()), (ROWS, 4000));
    let (means, epistemic) = (predictions.mean(), predictions.epistemic_deviation());
    for (row, x) in inputs.chunks(2).enumerate() {
        let x = [f64::from(x[0]), f64::from(x[1])];
        let mean = x[0] * exact.mean[0] + x[1] * exact.mean[1];
        let variance: f64 = (0..4)
            .map(|k| x[k / 2] * x[k % 2] * exact.covariance[k / 2][k % 2])
            .sum();
        let deviation = variance.sqrt();
        assert!((means[row] - mean).abs() < 0.02);
        assert!(
            (epistemic[row] / deviation - 1.0).abs() < 0.1,
            "{} {deviation}",
            epistemic[row]
        );
        assert!((predictions.aleatoric_deviation()[row] - SIGMA).abs() < 1e-9);
    }
}

/// The gradient of `loss` by central differences.
fn differences(values: &[f64], loss: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    const STEP: f64 = 1e-5;
    let moved = |index: usize, by: f64| {
        let mut values = values.to_vec();
        values[index] += by;
        loss(&values)
    };
    (0..values.len())
        .map(|index| (moved(index, STEP) - moved(index, -STEP)) / (2.0 * STEP))
        .collect()
}

#[test]
fn likelihoods_and_their_gradients() {
    let device = common::double();
    for (rows, weighted) in [1, 2, 5, 8]
        .map(|rows| [(rows, false), (rows, true)])
        .concat()
    {
        let targets: Vec<f32> = (0..rows).map(|i| (i * i % 7) as f32).collect();
        let weights: Vec<f32> = (0..rows)
            .map(|i| if weighted { (i % 3) as f32 * 0.75 } else { 1.0 })
            .collect();
        for deviations in [1, rows] {
            let values = numbers(rows as u64, rows + deviations);
            let slow = |values: &[f64]| -> f64 {
                let one = |i: usize| {
                    let s = values[rows + i.min(deviations - 1)].exp();
                    let density =
                        (-(f64::from(targets[i]) - values[i]).powi(2) / (2.0 * s * s)).exp();
                    -f64::from(weights[i]) * (density / (s * std::f64::consts::TAU.sqrt())).ln()
                };
                (0..rows).map(one).sum()
            };
            let tensor = |range: std::ops::Range<usize>| {
                let part = values[range].to_vec();
                let shape = [part.len()];
                let data = TensorData::new(part, shape);
                Tensor::<1>::from_data(data, &device.clone().autodiff()).require_grad()
            };
            let (mean, s) = (tensor(0..rows), tensor(rows..rows + deviations));
            let loss = match weighted {
                true => weighted_gaussian_nll(mean.clone(), s.clone(), &targets, &weights),
                false => gaussian_nll(mean.clone(), s.clone(), &targets),
            };
            assert!(difference(&host(loss.clone()), &[slow(&values)]) < 1e-12);
            let gradients = loss.backward();
            let mut found = host(Tensor::<1>::from_inner(mean.grad(&gradients).unwrap()));
            found.extend(host(Tensor::<1>::from_inner(s.grad(&gradients).unwrap())));
            assert!(difference(&found, &differences(&values, slow)) < 1e-6);
        }
        let values = numbers(7 + rows as u64, rows);
        let slow = |values: &[f64]| -> f64 {
            let one = |((r, y), w): ((&f64, &f32), &f32)| {
                let factorial: f64 = (1..=*y as u32).map(f64::from).product();
                f64::from(*w) * (r.exp() - f64::from(*y) * r + factorial.ln())
            };
            values.iter().zip(&targets).zip(&weights).map(one).sum()
        };
        let data = TensorData::new(values.clone(), [rows]);
        let rate = Tensor::<1>::from_data(data, &device.clone().autodiff()).require_grad();
        let loss = match weighted {
            true => weighted_poisson_nll(rate.clone(), &targets, &weights),
            false => poisson_nll(rate.clone(), &targets),
        };
        assert!(difference(&host(loss.clone()), &[slow(&values)]) < 1e-12);
        let found = host(Tensor::<1>::from_inner(
            rate.grad(&loss.backward()).unwrap(),
        ));
        assert!(difference(&found, &differences(&values, slow)) < 1e-6);
    }
}

#[test]
fn weighted_cross_entropy_is_the_weighted_sum() {
    let device = common::double();
    let (labels, weights) = ([2_usize, 0, 1, 2], [0.5_f32, 2.0, 0.0, 1.5]);
    let values = numbers(3, 12);
    let slow: f64 = labels
        .iter()
        .zip(values.chunks(3))
        .zip(weights)
        .map(|((&label, row), weight)| {
            let sum: f64 = row.iter().map(|z| z.exp()).sum();
            -f64::from(weight) * (row[label].exp() / sum).ln()
        })
        .sum();
    let logits = Tensor::<2>::from_data(TensorData::new(values, [4, 3]), &device);
    let found = host(weighted_cross_entropy(logits, labels, &weights));
    assert!(difference(&found, &[slow]) < 1e-12);
}

/// The loss of whole networks, through every parameter.
#[test]
fn gradients_of_target_networks() {
    let device = common::double().autodiff();
    for (columns, lift) in [(1, 2), (3, 5), (4, 8)] {
        for likelihood in [
            Likelihood::Gaussian,
            Likelihood::GaussianPerInput,
            Likelihood::Poisson,
        ] {
            let layers = ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
                .with_image([1, 1, columns])
                .with_depth(2)
                .with_lift(Some(lift));
            let network = TargetNetworkConfig::new(layers, likelihood).init(&device);
            let x = common::random::<2>(5, [4, columns], &device);
            let targets = [0.0, 3.0, 1.0, 2.0];
            let loss = network
                .distribution(x.clone())
                .negative_log_likelihood(&targets);
            let gradients = loss.backward();
            let weight = &network.layers.output.weight;
            let found = Tensor::<2>::from_inner(weight.val().grad(&gradients).unwrap());
            let values = host(weight.val());
            let slow = |values: &[f64]| {
                let mut moved = network.clone();
                let data = TensorData::new(values.to_vec(), weight.dims());
                moved.layers.output.weight = Param::from_data(data, &device);
                let loss = moved
                    .distribution(x.clone())
                    .negative_log_likelihood(&targets);
                host(loss)[0]
            };
            assert!(difference(&host(found), &differences(&values, slow)) < 1e-6);
            if let Some(noise) = &network.noise {
                let found = Tensor::<1>::from_inner(noise.val().grad(&gradients).unwrap());
                let slow = |values: &[f64]| {
                    let mut moved = network.clone();
                    let data = TensorData::new(values.to_vec(), [1]);
                    moved.noise = Some(Param::from_data(data, &device));
                    let loss = moved
                        .distribution(x.clone())
                        .negative_log_likelihood(&targets);
                    host(loss)[0]
                };
                let expected = differences(&host(noise.val()), slow);
                assert!(difference(&host(found), &expected) < 1e-6);
            }
        }
    }
}

/// Counts of a rate that is a straight line in the logarithm.
#[test]
fn counts_are_learned() {
    let device = common::double().autodiff();
    const ROWS: usize = 300;
    let inputs: Vec<f32> = numbers(4, ROWS).iter().map(|x| *x as f32).collect();
    let rate = |x: f32| (1.0 + 1.2 * f64::from(x)).exp();
    // The median count of every rate: close to the rate itself.
    let targets: Vec<f32> = inputs.iter().map(|&x| rate(x).round() as f32).collect();
    let set = RegressionData::counts(inputs.clone(), [ROWS, 1], &targets, &device).unwrap();
    let layers = ImageClassifierConfig::new(HiddenKind::Dense)
        .with_image([1, 1, 1])
        .with_width(Some(8));
    let network = TargetNetworkConfig::new(layers, Likelihood::Poisson).init(&device);
    let site = Site::default().with_relative_deviation(0.1);
    let network = BayesianConfig::new()
        .with_default(site)
        .init(network)
        .unwrap();
    let config = SviConfig::new()
        .with_steps(600)
        .with_batch(ROWS)
        .with_samples(2);
    let mut svi = Svi::new(network, config, ROWS).unwrap();
    svi.fit(&set, None, |_| ControlFlow::Continue(())).unwrap();
    let predictions = PredictiveConfig::new()
        .predict_targets(svi.network(), set.inputs())
        .unwrap();
    assert_eq!(predictions.family(), Family::Poisson);
    let mean = predictions.mean();
    let error = mean
        .iter()
        .zip(&inputs)
        .map(|(mean, &x)| (mean / rate(x) - 1.0).abs());
    assert!(error.sum::<f64>() / (ROWS as f64) < 0.15);
}

/// The KL of a posterior from a prior that is larger by a factor is least at the factor that the misfit says.
#[test]
fn misfits_of_priors_are_where_the_divergence_is_least() {
    let device = common::double().autodiff();
    let layers = || {
        let layers = ImageClassifierConfig::new(HiddenKind::SpectralCirculant);
        let layers = layers.with_image([1, 1, 3]).with_lift(Some(5));
        TargetNetworkConfig::new(layers, Likelihood::Gaussian).init(&device)
    };
    let layout = match &layers().layers.hidden {
        circulant::models::HiddenLayer::SpectralCirculant(layer) => layer.spectrum_layout(),
        _ => unreachable!(),
    };
    let with = |path: &str, factor: f64| {
        let spectral = Site::spectral(
            &layout,
            &circulant::bayes::Slope {
                deviation: if path == "layers.hidden.coordinates" {
                    factor
                } else {
                    1.0
                },
                alpha: 1.0,
            },
        );
        let output = if path == "layers.output.weight" {
            factor
        } else {
            1.0
        };
        BayesianConfig::new()
            .with_site(
                "layers.hidden.coordinates",
                spectral.unwrap().with_rank(2).with_initial_deviation(0.3),
            )
            .with_site(
                "layers.output.weight",
                Site::mean_field(output).with_initial_deviation(0.2),
            )
            .init(layers())
            .unwrap()
    };
    for path in ["layers.hidden.coordinates", "layers.output.weight"] {
        let network = with(path, 1.0);
        let misfit = |network: &circulant::bayes::Bayesian<_>| {
            let all: Vec<(&str, f64)> = circulant::bayes::Bayesian::<
                circulant::models::TargetNetwork,
            >::prior_misfits(network);
            all.iter().find(|(name, _)| *name == path).expect("there").1
        };
        let best = misfit(&network);
        assert!((misfit(&with(path, best)) - 1.0).abs() < 1e-9);
        let kl = |factor: f64| {
            let noise = circulant::noise::Noise::new(0, circulant::noise::Purpose::Training, 0, 0);
            host(with(path, factor).sample_with_kl(noise, 1.0).1)[0]
        };
        let least = kl(best);
        assert!(
            kl(best * 1.01) > least && kl(best * 0.99) > least,
            "{path} {best}"
        );
    }
}
