//! Regression by the same layers as classification: the outputs are the mean of the target and perhaps the spread of its noise.
//!
//! | likelihood | outputs | noise |
//! | --- | --- | --- |
//! | Gaussian | mean | one learned deviation, `exp(n)` |
//! | Gaussian per input | mean, `u` | `exp(n + 3 tanh(u/3))`: a factor from `exp(-3)` to `exp(3)` that depends on the input |
//! | Poisson | log rate | that of counts |

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::{ImageClassifier, ImageClassifierConfig};
use crate::LayerError;
use crate::nn::parameter;
use crate::task::{Regressor, TargetDistribution};

/// The logarithm of the largest factor between the noise of an input and that of the data.
const LARGEST_FACTOR: f64 = 3.0;

/// How a target is distributed around what the network says.
#[derive(Config, Debug, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Likelihood {
    /// Gaussian noise, the same for all inputs.
    Gaussian,
    /// Gaussian noise that depends on the input.
    GaussianPerInput,
    /// Counts.
    Poisson,
}

impl Likelihood {
    /// Outputs of the network.
    pub fn outputs(self) -> usize {
        match self {
            Self::Gaussian | Self::Poisson => 1,
            Self::GaussianPerInput => 2,
        }
    }
}

/// Configuration of a [`TargetNetwork`].
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::models::{HiddenKind, ImageClassifierConfig, Likelihood, TargetNetworkConfig};
/// use circulant::task::{Regressor, TargetDistribution};
///
/// // Eight columns, lifted to 64 values, one spectral layer.
/// let layers = ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
///     .with_image([1, 1, 8])
///     .with_lift(Some(64));
/// let network = TargetNetworkConfig::new(layers, Likelihood::GaussianPerInput).init(&circulant::cpu());
/// match network.distribution(Tensor::ones([5, 8], &circulant::cpu())) {
///     TargetDistribution::Gaussian { mean, .. } => assert_eq!(mean.dims(), [5]),
///     _ => unreachable!(),
/// }
/// ```
#[derive(Config, Debug)]
pub struct TargetNetworkConfig {
    /// The layers; their classes are ignored.
    pub layers: ImageClassifierConfig,
    /// How the target is distributed.
    pub likelihood: Likelihood,
    /// The deviation of the noise that training starts with, for standardised targets.
    #[config(default = 0.5)]
    pub initial_noise: f64,
}

/// Layers with a distribution of targets. Made by [`TargetNetworkConfig`].
#[derive(Module, Debug)]
pub struct TargetNetwork {
    /// The layers.
    pub layers: ImageClassifier,
    /// The logarithm `n` of the noise's deviation, `[1]`; none for counts.
    pub noise: Option<Param<Tensor<1>>>,
    #[module(skip)]
    likelihood: Likelihood,
}

impl TargetNetworkConfig {
    /// Makes the model.
    ///
    /// # Panics
    ///
    /// Panics on sizes that [`Self::try_init`] refuses.
    pub fn init(&self, device: &Device) -> TargetNetwork {
        self.try_init(device)
            .unwrap_or_else(|error| panic!("TargetNetwork: {error}"))
    }

    /// Makes the model, or says which size is wrong.
    pub fn try_init(&self, device: &Device) -> Result<TargetNetwork, LayerError> {
        let layers = self.layers().try_init(device)?;
        let noise = match self.likelihood {
            Likelihood::Poisson => None,
            _ => Some(parameter(vec![self.initial_noise.ln()], [1], device)),
        };
        Ok(TargetNetwork {
            layers,
            noise,
            likelihood: self.likelihood,
        })
    }

    /// The layers with as many outputs as the likelihood has.
    pub fn layers(&self) -> ImageClassifierConfig {
        let layers = self.layers.clone();
        layers.with_classes(self.likelihood.outputs())
    }
}

impl TargetNetwork {
    /// How the target is distributed.
    pub fn likelihood(&self) -> Likelihood {
        self.likelihood
    }
}

impl Regressor<2> for TargetNetwork {
    fn distribution(&self, rows: Tensor<2>) -> TargetDistribution {
        let [batch, columns] = rows.dims();
        let [height, width] = self.layers.grid();
        let image = [batch, columns / (height * width), height, width];
        let outputs = self.layers.forward(rows.reshape(image));
        let output = |which: usize| outputs.clone().narrow(1, which, 1).reshape([batch]);
        let Some(noise) = &self.noise else {
            let log_rate = output(0);
            return TargetDistribution::Poisson { log_rate };
        };
        let log_deviation = match self.likelihood {
            Likelihood::GaussianPerInput => {
                let own = output(1).mul_scalar(LARGEST_FACTOR.recip()).tanh();
                own.mul_scalar(LARGEST_FACTOR) + noise.val()
            }
            _ => noise.val(),
        };
        TargetDistribution::Gaussian {
            mean: output(0),
            log_deviation,
        }
    }
}
