//! Networks whose Lipschitz constant is one by construction: orthogonal convolutions with MaxMin, images that are halved without loss, and a
//! read-out whose columns have norm one.
//!
//! | stage | image 28 x 28, widths 16 and 32 | parameters, 3 x 3 kernels |
//! | --- | --- | --- |
//! | unshuffle, convolution 4 to 16, convolution 16 to 16 | 14 x 14 | 502 + 16, 1,144 + 16 |
//! | unshuffle, convolution 64 to 32, convolution 32 to 32 | 7 x 7 | 13,808 + 32, 4,592 + 32 |
//! | read-out 1568 to 10, and its scale | | 15,680 + 10 + 1 |
//!
//! No gradient is lost on its way through the layers, and the margin of the logits, over `norm(W_y - W_k)`, is a certified radius.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};

use super::NormalisedReadout;
use super::seeds::Seeds;
use crate::LayerError;
use crate::functional::{max_min, pixel_unshuffle};
use crate::geometry::{GeometryError, Lipschitz, LipschitzActivation, NetworkBound};
use crate::nn::{
    OrthogonalBlock1d, OrthogonalBlock1dConfig, OrthogonalConv2d, OrthogonalConv2dConfig,
};
use crate::task::Classifier;

/// Configuration of an [`OrthogonalNetwork`].
///
/// ```
/// use circulant::geometry::Lipschitz;
/// use circulant::models::{OrthogonalNetworkConfig, ParameterCount};
///
/// let network = OrthogonalNetworkConfig::new(vec![16, 32]).init(&circulant::cpu());
/// assert_eq!(ParameterCount::of(&network).total(), 35_833);
/// // The read-out maps to ten numbers, each of them 1-Lipschitz.
/// let bound = network.network_bound()?.upper().get();
/// assert!(bound > 1.0 && bound < 10.0_f64.sqrt() + 1e-3);
/// # Ok::<(), circulant::geometry::GeometryError>(())
/// ```
#[derive(Config, Debug)]
pub struct OrthogonalNetworkConfig {
    /// The channels of every stage, each an even number; before every stage the images are halved.
    pub widths: Vec<usize>,
    /// `[channels, height, width]`; the sides are divided by two once per stage.
    #[config(default = "[1, 28, 28]")]
    pub image: [usize; 3],
    /// The number of classes.
    #[config(default = 10)]
    pub classes: usize,
    /// Convolutions per stage.
    #[config(default = 2)]
    pub depth: usize,
    /// The side of the kernels, odd; smaller where images are smaller.
    #[config(default = 3)]
    pub kernel: usize,
    /// The sizes of layers between the convolutions and the read-out, each an even number.
    #[config(default = "vec![]")]
    pub hidden: Vec<usize>,
    /// The length of the circulant blocks of these layers: 1 is an orthogonal dense layer.
    #[config(default = 1)]
    pub block: usize,
    /// The size of the generators at the start: 1 is far from any other network, 0 the identity.
    #[config(default = 1.0)]
    pub spread: f64,
    /// The seed of all initial parameters.
    #[config(default = 0)]
    pub seed: u64,
}

/// Orthogonal convolutions with MaxMin, and a read-out. Made by [`OrthogonalNetworkConfig`].
#[derive(Module, Debug)]
pub struct OrthogonalNetwork {
    /// All convolutions.
    pub layers: Vec<OrthogonalConv2d>,
    /// The layers behind them.
    pub hidden: Vec<OrthogonalBlock1d>,
    /// The read-out.
    pub output: NormalisedReadout,
    /// Convolutions per stage.
    #[module(skip)]
    depth: usize,
}

impl OrthogonalNetworkConfig {
    /// Makes the network.
    ///
    /// # Panics
    ///
    /// Panics on sizes that [`Self::try_init`] refuses.
    pub fn init(&self, device: &Device) -> OrthogonalNetwork {
        self.try_init(device)
            .unwrap_or_else(|error| panic!("OrthogonalNetwork: {error}"))
    }

    /// Makes the network, or says which size is wrong.
    pub fn try_init(&self, device: &Device) -> Result<OrthogonalNetwork, LayerError> {
        for (what, size) in [
            ("the stages", self.widths.len()),
            ("the convolutions of a stage", self.depth),
            ("the classes", self.classes),
            ("the side of the kernels", self.kernel),
        ] {
            if size == 0 {
                return Err(LayerError::Zero { what });
            }
        }
        let mut seeds = Seeds::new(self.seed);
        let [mut channels, mut height, mut width] = self.image;
        let mut layers = Vec::new();
        for &wanted in &self.widths {
            for (what, size) in [
                ("the height of an image, which every stage halves", height),
                ("the width of an image, which every stage halves", width),
                (
                    "the channels of a stage, which MaxMin takes in pairs",
                    wanted,
                ),
            ] {
                ensure_pairs(what, size)?;
            }
            (channels, height, width) = (4 * channels, height / 2, width / 2);
            let side = height.min(width);
            for _ in 0..self.depth {
                let config = OrthogonalConv2dConfig::new([channels, wanted], [height, width])
                    .with_kernel(self.kernel.min(side - usize::from(side.is_multiple_of(2))))
                    .with_spread(self.spread)
                    .with_seed(Some(seeds.next()));
                layers.push(config.try_init(device)?);
                channels = wanted;
            }
        }
        let mut features = channels * height * width;
        let mut hidden = Vec::new();
        for &wanted in &self.hidden {
            ensure_pairs(
                "the size of a hidden layer, which MaxMin takes in pairs",
                wanted,
            )?;
            let config = OrthogonalBlock1dConfig::new(features, wanted, self.block)
                .with_spread(self.spread)
                .with_seed(Some(seeds.next()));
            hidden.push(config.try_init(device)?);
            features = wanted;
        }
        Ok(OrthogonalNetwork {
            layers,
            hidden,
            output: NormalisedReadout::new([features, self.classes], seeds.next(), device),
            depth: self.depth,
        })
    }
}

fn ensure_pairs(what: &'static str, size: usize) -> Result<(), LayerError> {
    if size == 0 || !size.is_multiple_of(2) {
        return Err(LayerError::NotMultiple {
            what,
            size,
            unit: 2,
        });
    }
    Ok(())
}

impl OrthogonalNetwork {
    /// The logits of a batch of images.
    ///
    /// # Shapes
    ///
    /// - images: `[batch, channels, height, width]`
    /// - output: `[batch, classes]`
    pub fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let mut images = images;
        for (index, layer) in self.layers.iter().enumerate() {
            if index.is_multiple_of(self.depth) {
                images = pixel_unshuffle(images, 2);
            }
            images = max_min(layer.forward(images), 1);
        }
        let features = images.flatten::<2>(1, 3);
        let features = self.hidden.iter().fold(features, |features, layer| {
            max_min(layer.forward(features), 1)
        });
        self.output.forward(features)
    }

    /// The network with other biases: what enters MaxMin has the mean zero for these images, in every channel of the convolutions and every
    /// feature of the hidden layers. Pixels are all positive; where the means of a pair are far from each other its larger value is nearly
    /// always the same, and the activation does nothing. For the start of training.
    pub fn centred(mut self, images: Tensor<4>) -> Self {
        let mut images = images;
        for (index, layer) in self.layers.iter_mut().enumerate() {
            if index.is_multiple_of(self.depth) {
                images = pixel_unshuffle(images, 2);
            }
            let own = layer.forward(images);
            let mean = own.clone().mean_dims(&[0, 2, 3]);
            images = max_min(own - mean.clone(), 1);
            layer.bias = layer.bias.take().map(|bias| less(bias, mean));
        }
        let mut features = images.flatten::<2>(1, 3);
        for layer in &mut self.hidden {
            let own = layer.forward(features);
            let mean = own.clone().mean_dim(0);
            features = max_min(own - mean.clone(), 1);
            layer.bias = layer.bias.take().map(|bias| less(bias, mean));
        }
        self
    }

    /// Convolutions per stage; images are halved before each of them.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The read-out that is applied, as a dense layer. Gradients do not pass through it.
    pub fn readout(&self) -> Linear {
        self.output.linear()
    }
}

/// A bias less a mean of as many numbers.
fn less<const D: usize>(bias: Param<Tensor<1>>, mean: Tensor<D>) -> Param<Tensor<1>> {
    let value = bias.val();
    let count = value.dims();
    let value = (value - mean.reshape(count)).detach();
    Param::initialized(bias.id, value.set_require_grad(bias.is_require_grad()))
}

impl Classifier<4> for OrthogonalNetwork {
    fn logits(&self, inputs: Tensor<4>) -> Tensor<2> {
        self.forward(inputs)
    }
}

impl Lipschitz for OrthogonalNetwork {
    fn network_bound(&self) -> Result<NetworkBound, GeometryError> {
        let mut parts = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            parts.push(NetworkBound::layer(&format!("layers.{index}"), layer)?);
            parts.push(NetworkBound::activation(LipschitzActivation::MaxMin));
        }
        for (index, layer) in self.hidden.iter().enumerate() {
            parts.push(NetworkBound::layer(&format!("hidden.{index}"), layer)?);
            parts.push(NetworkBound::activation(LipschitzActivation::MaxMin));
        }
        parts.push(NetworkBound::layer("output", &self.readout())?);
        Ok(NetworkBound::sequence(parts))
    }
}
