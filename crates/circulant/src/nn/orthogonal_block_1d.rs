//! A [`BlockCirculant1d`](super::BlockCirculant1d) layer that keeps norms: at every frequency the matrix that mixes the parts of the input has
//! orthonormal columns, or rows. `|y| = |x|` where the block divides both sizes and there are at least as many outputs as inputs;
//! otherwise the norm is at most one.

use std::sync::Arc;

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::BiasKind;
use super::layer_map::LayerMap;
use super::layers::{orthogonal_layer, signal_layer};
use super::orthogonal_bccb_2d::generators;
use crate::LayerError;
use crate::functional::isometry_coordinates;
use crate::operator::Isometries;

/// Configuration of an [`OrthogonalBlock1d`] layer.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::nn::OrthogonalBlock1dConfig;
/// # let device = burn::tensor::Device::flex();
///
/// let layer = OrthogonalBlock1dConfig::new(64, 128, 16).init(&device);
/// assert!((layer.operator_norm() - 1.0).abs() < 1e-5);
/// assert_eq!(layer.forward(Tensor::<2>::ones([8, 64], &device)).dims(), [8, 128]);
/// ```
#[derive(Config, Debug)]
pub struct OrthogonalBlock1dConfig {
    /// The size of the input features.
    pub d_in: usize,
    /// The size of the output features.
    pub d_out: usize,
    /// The length of a block: 1 is an orthogonal dense layer.
    pub block: usize,
    /// The kind of bias.
    #[config(default = "BiasKind::Vector")]
    pub bias: BiasKind,
    /// The standard deviation of the initial generators, times the root of the larger number of parts: 1 is far from any other layer, 0
    /// the identity.
    #[config(default = 1.0)]
    pub spread: f64,
    /// The seed of the initial parameters. Without one, every layer that a program makes gets the next seed of a fixed sequence: layers
    /// differ, and the same program makes the same layers.
    pub seed: Option<u64>,
}

/// A layer of circulant blocks that keeps norms. Made by [`OrthogonalBlock1dConfig`].
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct OrthogonalBlock1d {
    /// The free numbers of the Cayley transforms, frequency by frequency.
    pub generators: Param<Tensor<1>>,
    /// `[1]` or `[d_out]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    isometries: Arc<Isometries>,
    #[module(skip)]
    map: LayerMap,
}

impl OrthogonalBlock1dConfig {
    /// Makes the layer.
    ///
    /// # Panics
    ///
    /// Panics on sizes that [`Self::try_init`] refuses.
    pub fn init(&self, device: &Device) -> OrthogonalBlock1d {
        self.try_init(device)
            .unwrap_or_else(|error| panic!("OrthogonalBlock1d: {error}"))
    }

    /// Makes the layer, or says which size is wrong.
    pub fn try_init(&self, device: &Device) -> Result<OrthogonalBlock1d, LayerError> {
        let map = LayerMap::blocks(self.d_in, self.d_out, self.block, None)?;
        let isometries = map.isometries()?;
        Ok(OrthogonalBlock1d {
            generators: generators(&isometries, map.channels(), self.spread, self.seed, device),
            bias: self.bias.init(map.d_out, device),
            isometries,
            map,
        })
    }
}

orthogonal_layer!(OrthogonalBlock1d, generators);

signal_layer!(
    OrthogonalBlock1d,
    "The stored bins `[k, C_in, C_out]` of all blocks.",
    "The largest singular value: 1, but for rounding; when `block` does not divide both sizes, a bound. Not a number if a generator is \
     not finite.",
    [block]
);

impl OrthogonalBlock1d {
    /// The length of a block.
    pub fn block(&self) -> usize {
        self.map.grid()[1]
    }

    fn spectrum(&self) -> Tensor<1> {
        isometry_coordinates(self.generators.val(), &self.isometries)
    }
}
