//! The MNIST models: a hidden layer, tanh, and a linear read-out to 10 classes.
//!
//! | hidden layer | read-out | parameters |
//! | --- | --- | --- |
//! | spectral or spatial circulant, 784 to 784 | 784 to 10 | 8,635 |
//! | spectral or spatial BCCB, 1 to 1 channel of 28 x 28 | 784 to 10 | 8,635 |
//! | convolution 1 to 8, 3 x 3, same size | 6272 to 10 | 62,810 |
//! | dense 784 to 784 | 784 to 10 | 623,290 |

use burn::config::Config;
use burn::module::Module;
use burn::nn::Linear;
use burn::nn::conv::Conv2d;
use burn::tensor::{Device, Tensor};
use circulant_kernels::Activation;

use super::initial::{Seeds, linear, same_convolution};
use crate::bayes::{BayesianConfig, Classifier, Ensemble, Site};
use crate::functions;
use crate::nn::{
    Bccb2d, Bccb2dConfig, Circulant1d, Circulant1dConfig, CirculantLayer, SpectralBccb2d,
    SpectralBccb2dConfig, SpectralCirculant1d, SpectralCirculant1dConfig,
};

const SIDE: usize = 28;
const PIXELS: usize = SIDE * SIDE;
const CLASSES: usize = 10;
/// Output channels of the convolution.
const CHANNELS: usize = 8;

/// Which hidden layer the model has.
#[derive(Config, Debug, Copy, PartialEq, Eq)]
pub enum HiddenKind {
    /// [`SpectralCirculant1d`].
    SpectralCirculant,
    /// [`SpectralBccb2d`].
    SpectralBccb,
    /// [`Circulant1d`].
    SpatialCirculant,
    /// [`Bccb2d`].
    SpatialBccb,
    /// `Conv2d`.
    Convolution,
    /// `Linear`.
    Dense,
}

/// Configuration of an [`MnistModel`].
#[derive(Config, Debug)]
pub struct MnistModelConfig {
    /// The hidden layer.
    pub hidden: HiddenKind,
    /// The seed of all initial parameters.
    #[config(default = 0)]
    pub seed: u64,
}

/// The hidden layer.
#[derive(Module, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one per model, and a Box is no Burn module"
)]
pub enum HiddenLayer {
    /// Circulant in the spectrum.
    SpectralCirculant(SpectralCirculant1d),
    /// BCCB in the spectrum.
    SpectralBccb(SpectralBccb2d),
    /// Circulant with a spatial filter.
    SpatialCirculant(Circulant1d),
    /// BCCB with a spatial filter.
    SpatialBccb(Bccb2d),
    /// An ordinary convolution.
    Convolution(Conv2d),
    /// A dense matrix.
    Dense(Linear),
}

/// A hidden layer, tanh, and a linear read-out. Made by [`MnistModelConfig`].
#[derive(Module, Debug)]
pub struct MnistModel {
    /// The hidden layer.
    pub hidden: HiddenLayer,
    /// The read-out.
    pub output: Linear,
}

impl MnistModelConfig {
    /// Makes the model.
    pub fn init(&self, device: &Device) -> MnistModel {
        let mut seeds = Seeds::new(self.seed);
        let seed = seeds.next();
        let mut features = PIXELS;
        let hidden = match self.hidden {
            HiddenKind::SpectralCirculant => HiddenLayer::SpectralCirculant(
                SpectralCirculant1dConfig::new(PIXELS)
                    .with_seed(seed)
                    .init(device),
            ),
            HiddenKind::SpectralBccb => HiddenLayer::SpectralBccb(
                SpectralBccb2dConfig::new([1, 1], [SIDE, SIDE])
                    .with_seed(seed)
                    .init(device),
            ),
            HiddenKind::SpatialCirculant => HiddenLayer::SpatialCirculant(
                Circulant1dConfig::new(PIXELS).with_seed(seed).init(device),
            ),
            HiddenKind::SpatialBccb => HiddenLayer::SpatialBccb(
                Bccb2dConfig::new([1, 1], [SIDE, SIDE])
                    .with_seed(seed)
                    .init(device),
            ),
            HiddenKind::Convolution => {
                features = CHANNELS * PIXELS;
                HiddenLayer::Convolution(same_convolution([1, CHANNELS], 3, seed, device))
            }
            HiddenKind::Dense => HiddenLayer::Dense(linear(PIXELS, PIXELS, seed, device)),
        };
        MnistModel {
            hidden,
            output: linear(features, CLASSES, seeds.next(), device),
        }
    }
}

impl MnistModel {
    /// The logits of a batch of images.
    ///
    /// # Shapes
    ///
    /// - images: `[batch, 1, 28, 28]`
    /// - output: `[batch, 10]`
    pub fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let rows = |images: Tensor<4>| images.flatten::<2>(1, 3);
        let output = &self.output;
        let features = match &self.hidden {
            HiddenLayer::SpectralCirculant(layer) => {
                return layer.forward_readout(rows(images), output, Activation::Tanh);
            }
            HiddenLayer::SpatialCirculant(layer) => {
                return layer.forward_readout(rows(images), output, Activation::Tanh);
            }
            HiddenLayer::SpectralBccb(layer) => {
                return layer.forward_readout(images, output, Activation::Tanh);
            }
            HiddenLayer::SpatialBccb(layer) => {
                return layer.forward_readout(images, output, Activation::Tanh);
            }
            HiddenLayer::Convolution(layer) => {
                rows(functions::conv2d(layer, images, Activation::Tanh))
            }
            HiddenLayer::Dense(layer) => functions::linear(layer, rows(images), Activation::Tanh),
        };
        functions::linear(output, features, Activation::Identity)
    }
}

impl MnistModel {
    /// Posterior and prior of the hidden layer's coordinates, if it is spectral: the paper's choice, to be given to
    /// [`BayesianConfig::with_site`] for `"hidden.coordinates"`.
    pub fn hidden_site(&self) -> Option<Site> {
        let layout = match &self.hidden {
            HiddenLayer::SpectralCirculant(layer) => layer.spectrum_layout(),
            HiddenLayer::SpectralBccb(layer) => layer.spectrum_layout(),
            _ => return None,
        };
        Some(Site::default_spectral(&layout))
    }

    /// The Bayesian model of the paper: a low-rank posterior with the spectral prior where the hidden layer is spectral,
    /// mean-field with a standard normal prior everywhere else.
    pub fn bayesian_config(&self) -> BayesianConfig {
        let config = BayesianConfig::new();
        match self.hidden_site() {
            Some(site) => config.with_site("hidden.coordinates", site),
            None => config,
        }
    }
}

impl Classifier<4> for MnistModel {
    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        self.forward(images)
    }

    fn ensemble(members: Vec<Self>) -> Ensemble<4> {
        /// The hidden layers, if all of them are of this kind.
        macro_rules! layers {
            ($kind:ident) => {
                members
                    .iter()
                    .map(|member| match &member.hidden {
                        HiddenLayer::$kind(layer) => Some(layer),
                        _ => None,
                    })
                    .collect::<Option<Vec<_>>>()
            };
        }
        let outputs: Vec<_> = members.iter().map(|member| &member.output).collect();
        let rows = |images: Tensor<4>| images.flatten::<2>(1, 3);
        if let Some(layers) = layers!(SpectralCirculant) {
            let logits = CirculantLayer::readout_of_members(&layers, &outputs, Activation::Tanh);
            Box::new(move |images| logits(rows(images)))
        } else if let Some(layers) = layers!(SpatialCirculant) {
            let logits = CirculantLayer::readout_of_members(&layers, &outputs, Activation::Tanh);
            Box::new(move |images| logits(rows(images)))
        } else if let Some(layers) = layers!(SpectralBccb) {
            CirculantLayer::readout_of_members(&layers, &outputs, Activation::Tanh)
        } else if let Some(layers) = layers!(SpatialBccb) {
            CirculantLayer::readout_of_members(&layers, &outputs, Activation::Tanh)
        } else {
            Box::new(move |images: Tensor<4>| {
                let logits = members.iter().map(|member| member.forward(images.clone()));
                Tensor::stack(logits.collect(), 0)
            })
        }
    }
}
