//! Heads on frozen features: a dense bottleneck, or a spectral circulant layer with `K` modes,
//! each followed by tanh and a linear read-out.
//!
//! Weights for 2048 features and 10 classes: dense 32 has `2048*32 + 32*10 = 65,856`, spectral with the whole
//! spectrum `2048 + 2048*10 = 22,528`.

use burn::config::Config;
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};
use circulant_kernels::Activation;

use super::seeds::{Seeds, linear};
use crate::LayerError;
use crate::data::Examples;
use crate::functional;
use crate::nn::{CirculantLayer, SpectralCirculant1d, SpectralCirculant1dConfig};
use crate::task::{Classifier, Ensemble};

/// Configuration of a [`FeatureHead`].
#[derive(Config, Debug)]
pub struct FeatureHeadConfig {
    /// The number of features.
    #[config(default = 2048)]
    pub features: usize,
    /// The number of classes.
    #[config(default = 10)]
    pub classes: usize,
    /// The width of a dense hidden layer; spectral unless given.
    pub dense: Option<usize>,
    /// The number of lowest bins of a spectral hidden layer, `K`; all unless given.
    pub modes: Option<usize>,
    /// The seed of all initial parameters.
    #[config(default = 0)]
    pub seed: u64,
}

/// The hidden layer of a head.
#[derive(Module, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one per model, and a Box is no Burn module"
)]
pub enum FeatureLayer {
    /// A dense bottleneck.
    Dense(Linear),
    /// A spectral circulant layer.
    Spectral(SpectralCirculant1d),
}

/// A head on frozen features. Made by [`FeatureHeadConfig`].
#[derive(Module, Debug)]
pub struct FeatureHead {
    /// The hidden layer.
    pub hidden: FeatureLayer,
    /// The read-out.
    pub output: Linear,
}

impl FeatureHeadConfig {
    /// Makes the head, or says which size is wrong.
    pub fn try_init(&self, device: &Device) -> Result<FeatureHead, LayerError> {
        let mut seeds = Seeds::new(self.seed);
        let seed = seeds.next();
        let (hidden, width) = match self.dense {
            Some(width) => (
                FeatureLayer::Dense(linear(self.features, width, seed, device)),
                width,
            ),
            None => {
                let config = SpectralCirculant1dConfig::new(self.features)
                    .with_modes(self.modes)
                    .with_seed(seed);
                (
                    FeatureLayer::Spectral(config.try_init(device)?),
                    self.features,
                )
            }
        };
        Ok(FeatureHead {
            hidden,
            output: linear(width, self.classes, seeds.next(), device),
        })
    }

    /// Makes the head.
    ///
    /// # Panics
    ///
    /// Panics on sizes that [`Self::try_init`] refuses.
    pub fn init(&self, device: &Device) -> FeatureHead {
        self.try_init(device)
            .unwrap_or_else(|error| panic!("FeatureHead: {error}"))
    }
}

impl FeatureHead {
    /// The logits of a batch of features.
    ///
    /// # Shapes
    ///
    /// - features: `[batch, features]`
    /// - output: `[batch, classes]`
    pub fn forward(&self, features: Tensor<2>) -> Tensor<2> {
        match &self.hidden {
            FeatureLayer::Dense(layer) => {
                let hidden = functional::linear(layer, features, Activation::Tanh);
                functional::linear(&self.output, hidden, Activation::Identity)
            }
            FeatureLayer::Spectral(layer) => {
                layer.forward_readout(features, &self.output, Activation::Tanh)
            }
        }
    }
}

impl Classifier<2> for FeatureHead {
    fn logits(&self, features: Tensor<2>) -> Tensor<2> {
        self.forward(features)
    }

    fn cross_entropy(&self, examples: Examples<2>) -> Tensor<1> {
        match &self.hidden {
            FeatureLayer::Spectral(layer) => {
                layer.readout_cross_entropy(examples, &self.output, Activation::Tanh)
            }
            FeatureLayer::Dense(_) => {
                functional::cross_entropy(self.forward(examples.batch()), examples.labels)
            }
        }
    }

    fn reads_in_place(&self) -> bool {
        matches!(self.hidden, FeatureLayer::Spectral(_))
    }

    fn ensemble(members: Vec<Self>) -> Ensemble<2> {
        let layers = members.iter().map(|member| match &member.hidden {
            FeatureLayer::Spectral(layer) => Some(layer),
            FeatureLayer::Dense(_) => None,
        });
        if let Some(layers) = layers.collect::<Option<Vec<_>>>() {
            let outputs: Vec<_> = members.iter().map(|member| &member.output).collect();
            return CirculantLayer::readout_of_members(&layers, &outputs, Activation::Tanh);
        }
        Box::new(move |features: Tensor<2>| {
            let logits = members
                .iter()
                .map(|member| member.forward(features.clone()));
            Tensor::stack(logits.collect(), 0)
        })
    }
}
