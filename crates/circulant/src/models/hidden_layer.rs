//! The hidden layers of an image classifier, all kinds behind one interface: images to images of the
//! same size.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::nn::conv::Conv2d;
use burn::tensor::{Device, Tensor};
use circulant_kernels::Activation;

use super::ImageClassifierConfig;
use super::seeds::{linear, same_convolution};
use crate::LayerError;
use crate::data::{Examples, Inputs};
use crate::functional;
use crate::nn::{
    Bccb2d, Bccb2dConfig, BlockCirculant1d, BlockCirculant1dConfig, Circulant1d, Circulant1dConfig,
    CirculantLayer, SpectralBccb2d, SpectralBccb2dConfig, SpectralCirculant1d,
    SpectralCirculant1dConfig, to_host, with_values,
};
use crate::operator::Layout;

/// Which hidden layers a model has.
#[derive(Config, Debug, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HiddenKind {
    /// [`SpectralCirculant1d`].
    SpectralCirculant,
    /// [`BlockCirculant1d`].
    BlockCirculant,
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

impl HiddenKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::SpectralBccb,
        Self::SpectralCirculant,
        Self::BlockCirculant,
        Self::SpatialBccb,
        Self::SpatialCirculant,
        Self::Convolution,
        Self::Dense,
    ];

    /// Output channels of a layer unless asked otherwise: the paper's convolution has 8, everything else one. Circulant
    /// and dense layers see no channels: their output has as many as their input.
    pub fn default_channels(self, channels_in: usize) -> usize {
        match self {
            Self::Convolution => 8,
            Self::SpectralBccb | Self::SpatialBccb => 1,
            _ => channels_in,
        }
    }

    /// Whether the parameters are coordinates of a spectrum.
    pub fn is_spectral(self) -> bool {
        matches!(
            self,
            Self::SpectralCirculant | Self::BlockCirculant | Self::SpectralBccb
        )
    }

    /// Whether the number of outputs can be chosen.
    pub fn has_width(self) -> bool {
        matches!(self, Self::Dense | Self::BlockCirculant)
    }

    /// Whether the number of bins can be chosen.
    pub fn has_modes(self) -> bool {
        matches!(self, Self::SpectralCirculant | Self::BlockCirculant)
    }

    /// Whether the number of output channels can be chosen.
    pub fn has_channels(self) -> bool {
        matches!(
            self,
            Self::SpectralBccb | Self::SpatialBccb | Self::Convolution
        )
    }
}

/// A hidden layer.
#[derive(Module, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there are few per model, and a Box is no Burn module"
)]
pub enum HiddenLayer {
    /// Circulant in the spectrum.
    SpectralCirculant(SpectralCirculant1d),
    /// Circulant blocks in the spectrum.
    BlockCirculant(BlockCirculant1d),
    /// BCCB in the spectrum.
    SpectralBccb(SpectralBccb2d),
    /// Circulant with a spatial filter.
    SpatialCirculant(Circulant1d),
    /// BCCB with a spatial filter.
    SpatialBccb(Bccb2d),
    /// An ordinary convolution, 3 x 3.
    Convolution(Conv2d),
    /// A dense matrix.
    Dense(Linear),
}

/// What [`HiddenLayer::new`] makes.
pub(super) struct HiddenShape {
    pub(super) kind: HiddenKind,
    /// `[in, out]`.
    pub(super) channels: [usize; 2],
    /// `[height, width]`.
    pub(super) grid: [usize; 2],
    /// Outputs of a dense or block-circulant layer, if not as many as inputs.
    pub(super) width: Option<usize>,
    /// The lowest bins of a spectral circulant or block-circulant layer, if not all.
    pub(super) modes: Option<usize>,
    /// The length of a block of a block-circulant layer, if not the default.
    pub(super) block: Option<usize>,
}

/// The length of a block for a layer of these sizes.
pub(super) fn default_block(block: Option<usize>, [inputs, outputs]: [usize; 2]) -> usize {
    block.unwrap_or(ImageClassifierConfig::DEFAULT_BLOCK.min(inputs.max(outputs)))
}

impl HiddenLayer {
    pub(super) fn new(shape: &HiddenShape, seed: u64, device: &Device) -> Result<Self, LayerError> {
        let &HiddenShape {
            kind,
            channels,
            grid,
            width,
            modes,
            block,
        } = shape;
        let pixels = channels[0] * grid[0] * grid[1];
        Ok(match kind {
            HiddenKind::SpectralCirculant => {
                let config = SpectralCirculant1dConfig::new(pixels)
                    .with_modes(modes)
                    .with_seed(Some(seed));
                Self::SpectralCirculant(config.try_init(device)?)
            }
            HiddenKind::BlockCirculant => {
                let sizes = [pixels, width.unwrap_or(pixels)];
                let block = default_block(block, sizes);
                let config = BlockCirculant1dConfig::new(sizes[0], sizes[1], block)
                    .with_modes(modes)
                    .with_seed(Some(seed));
                Self::BlockCirculant(config.try_init(device)?)
            }
            HiddenKind::SpectralBccb => {
                let config = SpectralBccb2dConfig::new(channels, grid).with_seed(Some(seed));
                Self::SpectralBccb(config.try_init(device)?)
            }
            HiddenKind::SpatialCirculant => {
                let config = Circulant1dConfig::new(pixels).with_seed(Some(seed));
                Self::SpatialCirculant(config.try_init(device)?)
            }
            HiddenKind::SpatialBccb => {
                let config = Bccb2dConfig::new(channels, grid).with_seed(Some(seed));
                Self::SpatialBccb(config.try_init(device)?)
            }
            HiddenKind::Convolution => {
                Self::Convolution(same_convolution(channels, 3, seed, device))
            }
            HiddenKind::Dense => Self::Dense(linear(pixels, width.unwrap_or(pixels), seed, device)),
        })
    }

    /// Which of the kinds it is.
    pub fn kind(&self) -> HiddenKind {
        match self {
            Self::SpectralCirculant(_) => HiddenKind::SpectralCirculant,
            Self::BlockCirculant(_) => HiddenKind::BlockCirculant,
            Self::SpectralBccb(_) => HiddenKind::SpectralBccb,
            Self::SpatialCirculant(_) => HiddenKind::SpatialCirculant,
            Self::SpatialBccb(_) => HiddenKind::SpatialBccb,
            Self::Convolution(_) => HiddenKind::Convolution,
            Self::Dense(_) => HiddenKind::Dense,
        }
    }

    /// Multiplies the weights, not the bias.
    pub(super) fn scale(&mut self, factor: f64) {
        fn scale<const D: usize>(parameter: &mut Param<Tensor<D>>, factor: f64) {
            let numbers = to_host(parameter.val()).into_iter();
            *parameter = with_values(parameter, numbers.map(|x| x * factor).collect());
        }
        match self {
            Self::SpectralCirculant(layer) => scale(&mut layer.coordinates, factor),
            Self::BlockCirculant(layer) => scale(&mut layer.coordinates, factor),
            Self::SpectralBccb(layer) => scale(&mut layer.coordinates, factor),
            Self::SpatialCirculant(layer) => scale(&mut layer.filter, factor),
            Self::SpatialBccb(layer) => scale(&mut layer.filter, factor),
            Self::Convolution(layer) => scale(&mut layer.weight, factor),
            Self::Dense(layer) => scale(&mut layer.weight, factor),
        }
    }

    /// `tanh(layer(images))`.
    ///
    /// # Shapes
    ///
    /// - images: `[batch, channels, height, width]`
    /// - output: the same grid, perhaps with other channels; `[batch, width, 1, 1]` of a layer with a width of its own
    pub fn forward_tanh(&self, images: Tensor<4>) -> Tensor<4> {
        let dims = images.dims();
        let rows = || images.clone().flatten::<2>(1, 3);
        let as_images = |y: Tensor<2>| {
            let [batch, width] = y.dims();
            if width == dims[1..].iter().product::<usize>() {
                y.reshape(dims)
            } else {
                y.reshape([batch, width, 1, 1])
            }
        };
        match self {
            Self::SpectralCirculant(layer) => as_images(layer.forward_tanh(rows())),
            Self::SpatialCirculant(layer) => as_images(layer.forward_tanh(rows())),
            Self::BlockCirculant(layer) => as_images(layer.forward_tanh(rows())),
            Self::SpectralBccb(layer) => layer.forward_tanh(images),
            Self::SpatialBccb(layer) => layer.forward_tanh(images),
            Self::Convolution(layer) => functional::conv2d(layer, images, Activation::Tanh),
            Self::Dense(layer) => as_images(functional::linear(layer, rows(), Activation::Tanh)),
        }
    }

    /// `tanh(layer(images)) W + c`: one pass where the layer is circulant.
    pub(super) fn forward_readout(&self, images: Tensor<4>, output: &Linear) -> Tensor<2> {
        let rows = |images: Tensor<4>| images.flatten::<2>(1, 3);
        match self {
            Self::SpectralCirculant(layer) => {
                layer.forward_readout(rows(images), output, Activation::Tanh)
            }
            Self::SpatialCirculant(layer) => {
                layer.forward_readout(rows(images), output, Activation::Tanh)
            }
            Self::BlockCirculant(layer) => {
                layer.forward_readout(rows(images), output, Activation::Tanh)
            }
            Self::SpectralBccb(layer) => layer.forward_readout(images, output, Activation::Tanh),
            Self::SpatialBccb(layer) => layer.forward_readout(images, output, Activation::Tanh),
            Self::Convolution(_) | Self::Dense(_) => {
                let features = rows(self.forward_tanh(images));
                functional::linear(output, features, Activation::Identity)
            }
        }
    }

    /// Whether layer and read-out run as one, and their cross-entropy with them.
    pub(super) fn is_circulant(&self) -> bool {
        !matches!(self, Self::Convolution(_) | Self::Dense(_))
    }

    /// The cross-entropy of [`Self::forward_readout`], summed: one pass where the layer is circulant.
    pub(super) fn readout_cross_entropy(
        &self,
        examples: Examples<4>,
        output: &Linear,
    ) -> Tensor<1> {
        const TANH: Activation = Activation::Tanh;
        match self {
            Self::SpectralCirculant(layer) => {
                layer.readout_cross_entropy(examples.map(Inputs::flatten), output, TANH)
            }
            Self::SpatialCirculant(layer) => {
                layer.readout_cross_entropy(examples.map(Inputs::flatten), output, TANH)
            }
            Self::BlockCirculant(layer) => {
                layer.readout_cross_entropy(examples.map(Inputs::flatten), output, TANH)
            }
            Self::SpectralBccb(layer) => layer.readout_cross_entropy(examples, output, TANH),
            Self::SpatialBccb(layer) => layer.readout_cross_entropy(examples, output, TANH),
            Self::Convolution(_) | Self::Dense(_) => {
                let logits = self.forward_readout(examples.batch(), output);
                functional::cross_entropy(logits, examples.labels)
            }
        }
    }

    /// Where the layer's coordinates lie in the spectrum, if its parameters are coordinates.
    pub fn spectrum_layout(&self) -> Option<Layout> {
        match self {
            Self::SpectralCirculant(layer) => Some(layer.spectrum_layout()),
            Self::BlockCirculant(layer) => Some(layer.spectrum_layout()),
            Self::SpectralBccb(layer) => Some(layer.spectrum_layout()),
            _ => None,
        }
    }
}
