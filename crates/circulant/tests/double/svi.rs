//! Variational inference where everything is known in closed form: a circulant layer with Gaussian noise is linear in its
//! coordinates, so evidence and posterior are those of a linear-Gaussian model.

use std::ops::Range;

use crate::common;
use crate::common::ranks::on_ranks;
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use circulant::bayes::{
    AnyPosterior, Bayesian, BayesianConfig, Elbo, Posterior, Prior, Site, Slope, SpectralPrior,
    Svi, SviConfig,
};
use circulant::nn::{BiasKind, SpectralCirculant1d, SpectralCirculant1dConfig};
use circulant::noise::NoiseKey;
use circulant::parallel::Ranks;

const LENGTH: usize = 7;
const ROWS: usize = 5;
/// The standard deviation of the observation noise.
const SIGMA: f64 = 0.5;

fn device() -> Device {
    common::double().autodiff()
}

fn layer() -> SpectralCirculant1d {
    SpectralCirculant1dConfig::new(LENGTH)
        .with_seed(Some(0))
        .with_bias(BiasKind::None)
        .init(&device())
}

/// `y = A a + noise`, `a ~ N(0, diag(prior))`.
struct LinearGaussian {
    x: Tensor<2>,
    y: Vec<f64>,
    /// `[observation][coordinate]`.
    a: Vec<Vec<f64>>,
    prior: Vec<f64>,
}

/// Solves `matrix * x = right` for a positive definite matrix; returns `x` and `log det`.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> (Vec<f64>, f64) {
    let n = right.len();
    let mut log_det = 0.0;
    for k in 0..n {
        log_det += matrix[k][k].ln();
        for i in k + 1..n {
            let ratio = matrix[i][k] / matrix[k][k];
            let (above, below) = matrix.split_at_mut(i);
            for (entry, pivot) in below[0][k..].iter_mut().zip(&above[k][k..]) {
                *entry -= ratio * pivot;
            }
            right[i] -= ratio * right[k];
        }
    }
    for k in (0..n).rev() {
        let rest: f64 = (k + 1..n).map(|j| matrix[k][j] * right[j]).sum();
        right[k] = (right[k] - rest) / matrix[k][k];
    }
    (right, log_det)
}

impl LinearGaussian {
    fn new() -> Self {
        let layer = layer();
        let layout = layer.spectrum_layout();
        let prior = SpectralPrior::new(&layout, &Slope::default()).expect("valid");
        let x = common::random::<2>(1, [ROWS, LENGTH], &device());
        let truth = prior.draw(NoiseKey { seed: 1, stream: 1 });
        // The layer applied to unit coordinates.
        let column = |k: usize| {
            let mut unit = layer.clone();
            let values: Vec<f64> = (0..LENGTH).map(|j| f64::from(u8::from(j == k))).collect();
            unit.coordinates = unit.coordinates.map(|_| {
                Tensor::from_data(TensorData::new(values, [LENGTH]), &device()).require_grad()
            });
            common::host(unit.forward(x.clone()))
        };
        let columns: Vec<Vec<f64>> = (0..LENGTH).map(column).collect();
        let a: Vec<Vec<f64>> = (0..ROWS * LENGTH)
            .map(|i| columns.iter().map(|column| column[i]).collect())
            .collect();
        let noise = common::numbers(9, ROWS * LENGTH);
        let dot = |row: &[f64]| -> f64 { row.iter().zip(&truth).map(|(a, t)| a * t).sum() };
        let y = a
            .iter()
            .zip(noise)
            .map(|(row, e)| dot(row) + SIGMA * e)
            .collect();
        Self {
            x,
            y,
            a,
            prior: prior.variances().to_vec(),
        }
    }

    /// `log N(y; 0, A diag(prior) A^T + sigma^2 I)`.
    fn log_evidence(&self) -> f64 {
        let n = self.y.len();
        let entry = |i: usize, j: usize| {
            let shared: f64 = (0..LENGTH)
                .map(|k| self.a[i][k] * self.prior[k] * self.a[j][k])
                .sum();
            shared + if i == j { SIGMA * SIGMA } else { 0.0 }
        };
        let covariance = (0..n)
            .map(|i| (0..n).map(|j| entry(i, j)).collect())
            .collect();
        let (solution, log_det) = solve(covariance, self.y.clone());
        let quadratic: f64 = solution.iter().zip(&self.y).map(|(s, y)| s * y).sum();
        -0.5 * (quadratic + log_det + n as f64 * std::f64::consts::TAU.ln())
    }

    /// The posterior mean `(A^T A/sigma^2 + diag(1/prior))^{-1} A^T y/sigma^2`.
    fn posterior_mean(&self) -> Vec<f64> {
        let precision = (0..LENGTH)
            .map(|k| {
                (0..LENGTH)
                    .map(|l| {
                        let data: f64 = self.a.iter().map(|row| row[k] * row[l]).sum();
                        let prior = if k == l { 1.0 / self.prior[k] } else { 0.0 };
                        data / (SIGMA * SIGMA) + prior
                    })
                    .collect()
            })
            .collect();
        let right = (0..LENGTH)
            .map(|k| {
                let sum: f64 = self.a.iter().zip(&self.y).map(|(row, y)| row[k] * y).sum();
                sum / (SIGMA * SIGMA)
            })
            .collect();
        solve(precision, right).0
    }

    /// The sum over all observations.
    fn log_likelihood(&self, layer: &SpectralCirculant1d) -> Tensor<1> {
        self.log_likelihood_of(0..ROWS, layer)
    }

    /// The sum over the observations of some rows.
    fn log_likelihood_of(&self, rows: Range<usize>, layer: &SpectralCirculant1d) -> Tensor<1> {
        let y = Tensor::<2>::from_data(TensorData::new(self.y.clone(), [ROWS, LENGTH]), &device());
        let (count, start) = (rows.len(), rows.start);
        let (x, y) = (
            self.x.clone().narrow(0, start, count),
            y.narrow(0, start, count),
        );
        let squares = (layer.forward(x) - y).square().sum();
        let constant = (std::f64::consts::TAU * SIGMA * SIGMA).ln() * (count * LENGTH) as f64;
        squares
            .div_scalar(SIGMA * SIGMA)
            .add_scalar(constant)
            .mul_scalar(-0.5)
    }

    fn network(&self, site: Site) -> Bayesian<SpectralCirculant1d> {
        let site = site.with_prior(Prior::Diagonal(self.prior.clone()));
        BayesianConfig::new()
            .with_site("coordinates", site)
            .init(layer())
            .expect("valid")
    }
}

/// The true ELBO of a Gaussian `q` on this model, without Monte Carlo: `E log p` is quadratic.
fn exact_elbo(model: &LinearGaussian, network: &Bayesian<SpectralCirculant1d>) -> f64 {
    let (_, factor) = network.posteriors().next().expect("one site");
    let mean = common::host(factor.posterior.mean());
    // Var(A a) along the diagonal, from the covariance of q.
    let AnyPosterior::LowRank(q) = &factor.posterior else {
        panic!("low rank")
    };
    let (u, scale) = (common::host(q.factor.val()), common::host(q.scale.val()));
    let log_deviation = common::host(q.log_deviation.val());
    let r = scale.len();
    let expected: f64 = model
        .a
        .iter()
        .zip(&model.y)
        .map(|(row, y)| {
            let predicted: f64 = row.iter().zip(&mean).map(|(a, m)| a * m).sum();
            let low: f64 = (0..r)
                .map(|k| {
                    let dot: f64 = (0..LENGTH).map(|i| row[i] * u[i * r + k]).sum();
                    (dot * scale[k]).powi(2)
                })
                .sum();
            let diagonal: f64 = (0..LENGTH)
                .map(|i| row[i].powi(2) * ((2.0 * log_deviation[i]).exp() + q.jitter()))
                .sum();
            let squares = (y - predicted).powi(2) + low + diagonal;
            -0.5 * (squares / (SIGMA * SIGMA) + (std::f64::consts::TAU * SIGMA * SIGMA).ln())
        })
        .sum();
    let prior = Tensor::from_data(TensorData::new(model.prior.clone(), [LENGTH]), &device());
    let kl: f64 = factor.posterior.kl(prior, 1.0).into_scalar();
    expected - kl
}

#[test]
fn the_elbo_is_a_lower_bound_of_the_evidence() {
    let model = LinearGaussian::new();
    let evidence = model.log_evidence();
    for (rank, deviation) in [(1, 0.05), (3, 0.2), (7, 0.5), (2, 1.5)] {
        let site = Site::mean_field(1.0)
            .with_rank(rank)
            .with_initial_deviation(deviation);
        let network = model.network(site);
        let exact = exact_elbo(&model, &network);
        assert!(exact < evidence, "{exact} < {evidence}");
        // The estimate is unbiased: its mean over draws is the exact one.
        let draws = 400;
        let elbo = Elbo::new(ROWS).expect("valid");
        let estimates: Vec<f64> = (0..draws)
            .map(|step| {
                let estimate =
                    elbo.estimate(&network, ROWS, 3, step, |layer| model.log_likelihood(layer));
                -(ROWS as f64) * estimate.loss.into_scalar::<f64>()
            })
            .collect();
        let mean = estimates.iter().sum::<f64>() / draws as f64;
        let variance = estimates.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / draws as f64;
        let error = (variance / draws as f64).sqrt();
        assert!(
            (mean - exact).abs() < 4.0 * error,
            "{mean} instead of {exact} +- {error}"
        );
    }
}

/// With a learning rate that falls, the means converge to the exact posterior mean, and the bound comes close to the evidence, because a
/// low-rank posterior of full rank holds the exact one up to its jitter.
#[test]
fn svi_finds_the_exact_posterior() {
    let model = LinearGaussian::new();
    let site = Site::mean_field(1.0).with_rank(LENGTH);
    let config = SviConfig::new()
        .with_steps(3000)
        .with_samples(4)
        .with_learning_rate(0.05)
        .with_final_rate(Some(0.0));
    let mut svi = Svi::new(model.network(site), config, ROWS).expect("valid");
    for _ in 0..3000 {
        svi.step(ROWS, |layer| model.log_likelihood(layer))
            .expect("converges");
    }
    let (_, factor) = svi.network().posteriors().next().expect("one site");
    let mean = common::host(factor.posterior.mean());
    let gap = common::difference(&mean, &model.posterior_mean());
    assert!(gap < 0.01, "the means differ by {gap}");
    let slack = model.log_evidence() - exact_elbo(&model, svi.network());
    assert!(
        (0.0..0.05).contains(&slack),
        "the bound is {slack} below the evidence"
    );
}

/// In f64 ranks differ from one process by rounding alone, so every term is counted once: the data of each rank, and the KL.
#[test]
fn ranks_sum_the_data_and_count_the_divergence_once() {
    let model = LinearGaussian::new();
    for site in [
        Site::mean_field(1.0).with_rank(3),
        Site::mean_field(1.0),
        Site::point(1.0),
    ] {
        let network = model.network(site);
        let losses = |ranks: Ranks| -> Vec<f64> {
            let config = SviConfig::new().with_samples(2).with_learning_rate(0.05);
            let svi = Svi::new(network.clone(), config, ROWS).expect("valid");
            let mut svi = svi.with_ranks(ranks.clone());
            let mut step = || {
                let own = |layer: &_| model.log_likelihood_of(ranks.share(ROWS), layer);
                svi.step(ROWS, own).expect("finite").loss
            };
            (0..100).map(|_| step()).collect()
        };
        let alone = losses(Ranks::default());
        assert!(alone[99] < alone[0]);
        for size in [2, 3, ROWS] {
            for found in on_ranks(size, losses) {
                let gap = common::difference(&found, &alone);
                assert!(gap < 1e-11, "{size} ranks: {gap}");
            }
        }
    }
}

/// The point estimate through the same loop: for a Gaussian posterior the mode is the mean.
#[test]
fn the_same_loop_finds_the_map_estimate() {
    let model = LinearGaussian::new();
    let config = SviConfig::new().with_learning_rate(0.05);
    let mut svi = Svi::new(model.network(Site::point(1.0)), config, ROWS).expect("valid");
    for learning_rate in [0.05, 0.01, 0.001] {
        svi.set_learning_rate(learning_rate);
        for _ in 0..500 {
            svi.step(ROWS, |layer| model.log_likelihood(layer))
                .expect("converges");
        }
    }
    let mean = svi.network().mean();
    let gap = common::difference(
        &common::host(mean.coordinates.val()),
        &model.posterior_mean(),
    );
    assert!(gap < 1e-4, "{gap}");
}

/// A learned slope: more energy in the low bins than in the high ones must raise alpha.
#[test]
fn the_slope_is_learned() {
    let length = 64;
    let layer = SpectralCirculant1dConfig::new(length)
        .with_seed(Some(0))
        .with_bias(BiasKind::None)
        .init(&device());
    let layout = layer.spectrum_layout();
    let site = Site::learned_slope(&layout, 1.0).expect("valid");
    let network = BayesianConfig::new()
        .with_site("coordinates", site)
        .init(layer)
        .expect("valid");
    // Only the coordinates count: they are observed with little noise, and decay fast.
    let steep = SpectralPrior::new(
        &layout,
        &Slope {
            deviation: 1.0,
            alpha: 6.0,
        },
    )
    .expect("valid");
    let target = steep.draw(NoiseKey { seed: 2, stream: 0 });
    let target = Tensor::<1>::from_data(TensorData::new(target, [length]), &device());
    let mut svi = Svi::new(network, SviConfig::new().with_learning_rate(0.02), 1).expect("valid");
    let slope = |svi: &Svi<SpectralCirculant1d>| {
        let (_, factor) = svi.network().posteriors().next().expect("one site");
        common::host(factor.slope.as_ref().expect("learned").mean())[0]
    };
    let before = slope(&svi);
    for _ in 0..600 {
        svi.step(1, |layer| {
            (layer.coordinates.val() - target.clone())
                .square()
                .sum()
                .mul_scalar(-500.0)
        })
        .expect("converges");
    }
    let after = slope(&svi);
    assert!(after > before + 0.2, "z went from {before} to {after}");
    // Records hold the slope too.
    assert!(svi.network().num_params() > 3 * length);
}

#[test]
fn the_learning_rate_falls_along_half_a_cosine() {
    let constant = SviConfig::new().with_steps(11).with_learning_rate(0.5);
    let falling = constant.clone().with_final_rate(Some(0.1));
    for step in 0..20 {
        assert_eq!(constant.rate(step), 0.5);
        let along = step.min(10) as f64 / 10.0;
        let expected = 0.05 + 0.45 * (std::f64::consts::PI * along / 2.0).cos().powi(2);
        assert!((falling.rate(step) - expected).abs() < 1e-15, "{step}");
    }
    assert_eq!((falling.rate(0), falling.rate(10)), (0.5, 0.05));
    // Anew from step 11, as at first.
    let anew = falling.clone().with_steps(22).with_rate_from(Some(11));
    for step in 0..11 {
        assert_eq!(anew.rate(11 + step), falling.rate(step));
    }
    // One step has the whole rate.
    assert_eq!(falling.with_steps(1).rate(0), 0.5);
}
