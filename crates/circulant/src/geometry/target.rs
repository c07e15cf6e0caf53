//! How far the prediction of a number can move: the mean over posterior samples `m(x) = mean_s m_s(x)`.
//!
//! Every sample `s` has a Lipschitz bound `L_s` of its mean: `L'_s norm(w_s)` where the last layer is dense with the column `w_s` behind a body of
//! the bound `L'_s`. So for all inputs whose norms are at most `input_norm`, in f32 as it is computed with errors of at most `e_s`,
//!
//! ```text
//! |m(x') - m(x)| <= mean_s L_s norm(x' - x) + 2 mean_s e_s
//! ```
//!
//! in the unit of the targets that the network has learned from. A tolerance `t` therefore holds within `(t - 2 mean_s e_s)/mean_s L_s`.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::Tensor;

use super::certificate::{MeasuredInputs, NumberTypes, checked_norm};
use super::{GeometryError, Lipschitz, LowerBound, NetworkBound, UpperBound};
use crate::bayes::Bayesian;
use crate::models::{Likelihood, TargetNetwork};
use crate::noise::{Noise, Purpose};

/// Which posterior samples are averaged, and for which inputs.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::bayes::BayesianConfig;
/// use circulant::geometry::TargetBoundsConfig;
/// use circulant::models::{HiddenKind, ImageClassifierConfig, Likelihood, TargetNetworkConfig};
///
/// let device = circulant::cpu();
/// let layers = ImageClassifierConfig::new(HiddenKind::SpectralCirculant).with_image([1, 1, 8]);
/// let model = TargetNetworkConfig::new(layers, Likelihood::Gaussian).init(&device);
/// let network = BayesianConfig::new().init(model)?;
/// let bounds = TargetBoundsConfig::new().with_samples(4).bound(&network, Tensor::ones([3, 8], &device))?;
/// // Within this distance of the first input the mean moves by at most one.
/// let radius = bounds.radius(0, 1.0);
/// assert!(bounds.change(radius.get()).get() <= 1.0 + 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Config, Debug)]
pub struct TargetBoundsConfig {
    /// Posterior samples.
    #[config(default = 50)]
    pub samples: usize,
    /// The seed of the samples.
    #[config(default = 0)]
    pub seed: u64,
    /// The largest norm of an input, the perturbed ones included; unless given, twice that of the largest input, and one.
    pub input_norm: Option<f64>,
}

/// What is known about the prediction at some inputs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TargetBounds {
    /// The mean of the samples' bounds of their means.
    pub lipschitz: UpperBound,
    /// One per sample.
    pub samples: Vec<UpperBound>,
    /// How far an averaged f32 mean can be from the exact one.
    pub rounding: UpperBound,
    /// The largest norm of an input for which the promise holds.
    pub input_norm: UpperBound,
    /// Whether every rounding error is proven.
    pub is_proven: bool,
    /// How far every input may move before its norm is larger.
    rooms: Vec<LowerBound>,
}

impl Lipschitz for TargetNetwork {
    /// Of the outputs: the mean or the log rate, and what decides the deviation.
    fn network_bound(&self) -> Result<NetworkBound, GeometryError> {
        self.layers.network_bound()
    }
}

impl TargetBoundsConfig {
    /// Draws the networks and bounds each of them. Counts are an error: their rate is an exponential.
    pub fn bound(
        &self,
        network: &Bayesian<TargetNetwork>,
        inputs: Tensor<2>,
    ) -> Result<TargetBounds, GeometryError> {
        if self.samples == 0 {
            return Err(GeometryError::Setting {
                what: "the number of posterior samples",
                expected: "at least 1",
                got: 0.0,
            });
        }
        let inputs = MeasuredInputs::new(inputs)?;
        let input_norm = match self.input_norm {
            Some(norm) => checked_norm(norm, &inputs, UpperBound::ZERO)?,
            None => UpperBound::new(2.0) * inputs.largest() + UpperBound::ONE,
        };
        let network = network.valid();
        let (mut samples, mut rounding, mut is_proven) = (Vec::new(), UpperBound::ZERO, true);
        for sample in 0..self.samples {
            let member = network.sample(Noise::new(self.seed, Purpose::Prediction, 0, sample));
            NumberTypes::check(&member)?;
            if member.likelihood() == Likelihood::Poisson {
                return Err(GeometryError::NoBound {
                    layer: "the rate of a count".to_owned(),
                    reason: "it is the exponential of what the network says, which has no global Lipschitz constant"
                        .to_owned(),
                });
            }
            let bound = member.network_bound()?;
            rounding = rounding + bound.rounding_error_of(input_norm, Some(inputs.size))?;
            is_proven &= bound.is_proven();
            samples.push(of_mean(&bound));
        }
        let all = LowerBound::new(self.samples as f64);
        let room = |norm: &UpperBound| (LowerBound::new(input_norm.get()) - *norm).at_least_zero();
        Ok(TargetBounds {
            lipschitz: samples.iter().copied().sum::<UpperBound>() / all,
            samples,
            rounding: rounding / all,
            input_norm,
            is_proven,
            rooms: inputs.norms.iter().map(room).collect(),
        })
    }
}

/// The bound of the first output.
fn of_mean(bound: &NetworkBound) -> UpperBound {
    let Some(read_out) = bound.read_out() else {
        return bound.upper();
    };
    let first = read_out.weights.iter().step_by(read_out.outputs.max(1));
    let column: Vec<f64> = first.copied().collect();
    (read_out.body * UpperBound::norm(&column)).min(bound.upper())
}

impl TargetBounds {
    /// At most so much does the prediction change between two inputs of at most this distance.
    pub fn change(&self, distance: f64) -> UpperBound {
        self.lipschitz * UpperBound::new(distance) + UpperBound::new(2.0) * self.rounding
    }

    /// How far an input may move in any direction before its prediction can have moved by more than `tolerance`.
    ///
    /// # Panics
    ///
    /// Panics if there is no such input.
    pub fn radius(&self, input: usize, tolerance: f64) -> LowerBound {
        let left = LowerBound::new(tolerance) - UpperBound::new(2.0) * self.rounding;
        (left / self.lipschitz)
            .min(self.rooms[input])
            .at_least_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bayes::{BayesianConfig, PredictiveConfig};
    use crate::models::{HiddenKind, ImageClassifierConfig, TargetNetworkConfig};
    use crate::nn::{to_host, with_values};
    use burn::module::Param;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    fn network(kind: HiddenKind, likelihood: Likelihood) -> Bayesian<TargetNetwork> {
        let layers = ImageClassifierConfig::new(kind)
            .with_image([1, 1, 6])
            .with_lift(Some(12));
        let model = TargetNetworkConfig::new(layers, likelihood).init(&crate::cpu());
        BayesianConfig::new().init(model).unwrap()
    }

    #[test]
    fn no_attack_moves_the_mean_further() {
        let mut random = StdRng::seed_from_u64(1);
        for kind in [HiddenKind::SpectralCirculant, HiddenKind::Dense] {
            let network = network(kind, Likelihood::GaussianPerInput);
            let values: Vec<f32> = (0..6).map(|_| random.random_range(-1.0..1.0)).collect();
            let rows =
                |values: &[f32]| Tensor::<1>::from_floats(values, &crate::cpu()).reshape([-1, 6]);
            let bounds = TargetBoundsConfig::new().with_samples(5);
            let bounds = bounds.bound(&network, rows(&values)).unwrap();
            let tolerance = 0.5;
            let radius = bounds.radius(0, tolerance).get();
            assert!(radius > 0.0 && bounds.is_proven);
            let mut tries = values.clone();
            for _ in 0..2000 {
                let step: Vec<f64> = (0..6).map(|_| random.random_range(-1.0..1.0)).collect();
                let norm = step.iter().map(|x| x * x).sum::<f64>().sqrt();
                let moved = values.iter().zip(&step);
                tries.extend(moved.map(|(x, s)| x + (0.999 * radius * s / norm) as f32));
            }
            let config = PredictiveConfig::new().with_samples(5);
            let means = config
                .predict_targets(&network, rows(&tries))
                .unwrap()
                .mean();
            let largest = means
                .iter()
                .map(|m| (m - means[0]).abs())
                .fold(0.0, f64::max);
            assert!(largest <= tolerance, "{largest}");
            assert!(largest > 0.0);
        }
    }

    #[test]
    fn the_bound_is_attained_where_nothing_is_lost() {
        // y = w tanh(x) at 0, where tanh has the slope 1.
        let layers = ImageClassifierConfig::new(HiddenKind::SpatialCirculant).with_image([1, 1, 4]);
        let mut model = TargetNetworkConfig::new(layers, Likelihood::Gaussian).init(&crate::cpu());
        let crate::models::HiddenLayer::SpatialCirculant(layer) = &mut model.layers.hidden else {
            panic!("another kind")
        };
        layer.filter = with_values(&layer.filter, vec![1.0, 0.0, 0.0, 0.0]);
        let zero = |bias: &Param<Tensor<1>>| with_values(bias, vec![0.0; bias.val().dims()[0]]);
        layer.bias = layer.bias.as_ref().map(zero);
        let weights = to_host(model.layers.output.weight.val());
        let norm = weights.iter().map(|w| w * w).sum::<f64>().sqrt();
        let config = BayesianConfig::new().into_point_estimate();
        let network = config.init(model).unwrap();
        let step = 1e-2;
        let mut rows = vec![0.0; 4];
        rows.extend(weights.iter().map(|w| (step * w / norm) as f32));
        let rows = Tensor::<1>::from_floats(rows.as_slice(), &crate::cpu()).reshape([2, 4]);
        let bounds = TargetBoundsConfig::new().with_samples(1);
        let bounds = bounds.bound(&network, rows.clone()).unwrap();
        assert!((bounds.lipschitz.get() / norm - 1.0).abs() < 1e-6);
        let config = PredictiveConfig::new().with_samples(1);
        let means = config.predict_targets(&network, rows).unwrap().mean();
        let slope = (means[1] - means[0]).abs() / step;
        assert!(slope > 0.999 * norm, "{slope} {norm}");
        assert!((means[1] - means[0]).abs() <= bounds.change(step).get());
    }

    #[test]
    fn counts_have_no_bound() {
        let network = network(HiddenKind::Dense, Likelihood::Poisson);
        let inputs = Tensor::<2>::zeros([1, 6], &crate::cpu());
        let error = TargetBoundsConfig::new().bound(&network, inputs);
        assert!(error.unwrap_err().to_string().contains("exponential"));
    }
}
