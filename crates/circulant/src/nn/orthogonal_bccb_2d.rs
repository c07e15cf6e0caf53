//! `Y[o] = IRFFT2(sum_c K[o,c] * RFFT2(X[c])) + b[o]` where every `K(u, v)` has orthonormal columns (or rows, if there are fewer outputs
//! than inputs): a convolution over the whole circular image that keeps norms, `|y| = |x|` for at least as many outputs as inputs.
//!
//! The parameters are those of the Cayley transform at every frequency
//! ([`functional::isometry_coordinates`](crate::functional::isometry_coordinates)), as many as such matrices have degrees of freedom.

use std::sync::Arc;

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::layer_map::LayerMap;
use super::layers::{image_layer, orthogonal_layer};
use super::{InitialNumbers, parameter};
use crate::LayerError;
use crate::functional::isometry_coordinates;
use crate::operator::Isometries;

/// Configuration of an [`OrthogonalBccb2d`] layer.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::nn::OrthogonalBccb2dConfig;
/// # let device = burn::tensor::Device::flex();
///
/// let layer = OrthogonalBccb2dConfig::new([4, 4], [14, 14]).init(&device);
/// let x = Tensor::<4>::random([2, 4, 14, 14], burn::tensor::Distribution::Default, &device);
/// let norms = |x: Tensor<4>| x.square().sum().sqrt().into_scalar::<f32>();
/// let (before, after) = (norms(x.clone()), norms(layer.forward(x)));
/// assert!((after / before - 1.0).abs() < 1e-5);
/// ```
#[derive(Config, Debug)]
pub struct OrthogonalBccb2dConfig {
    /// The number of channels, `[C_in, C_out]`.
    pub channels: [usize; 2],
    /// The size of the images, `[H, W]`.
    pub grid: [usize; 2],
    /// If a bias per output channel is added.
    #[config(default = true)]
    pub bias: bool,
    /// The standard deviation of the initial generators, times the root of the larger number of channels: 1 is far from any other layer, 0
    /// the identity.
    #[config(default = 1.0)]
    pub spread: f64,
    /// The seed of the initial parameters. Without one, every layer that a program makes gets the next seed of a fixed sequence: layers
    /// differ, and the same program makes the same layers.
    pub seed: Option<u64>,
}

/// A BCCB layer that keeps norms. Made by [`OrthogonalBccb2dConfig`].
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct OrthogonalBccb2d {
    /// The free numbers of the Cayley transforms, frequency by frequency.
    pub generators: Param<Tensor<1>>,
    /// `[C_out]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    isometries: Arc<Isometries>,
    #[module(skip)]
    map: LayerMap,
}

impl OrthogonalBccb2dConfig {
    /// Makes the layer.
    ///
    /// # Panics
    ///
    /// Panics on sizes that [`Self::try_init`] refuses.
    pub fn init(&self, device: &Device) -> OrthogonalBccb2d {
        self.try_init(device)
            .unwrap_or_else(|error| panic!("OrthogonalBccb2d: {error}"))
    }

    /// Makes the layer, or says which size is wrong.
    pub fn try_init(&self, device: &Device) -> Result<OrthogonalBccb2d, LayerError> {
        let map = LayerMap::image(self.channels, self.grid, 1.0)?;
        let isometries = map.isometries()?;
        let [_, channels_out] = self.channels;
        let bias = parameter(vec![0.0; channels_out], [channels_out], device);
        Ok(OrthogonalBccb2d {
            generators: generators(&isometries, self.channels, self.spread, self.seed, device),
            bias: self.bias.then_some(bias),
            isometries,
            map,
        })
    }
}

/// Initial parameters of isometries between so many channels.
pub(super) fn generators(
    isometries: &Isometries,
    [channels_in, channels_out]: [usize; 2],
    spread: f64,
    seed: Option<u64>,
    device: &Device,
) -> Param<Tensor<1>> {
    let (count, most) = (isometries.parameters(), channels_in.max(channels_out));
    let deviation = spread / (most as f64).sqrt();
    let values = InitialNumbers::of_layer(seed).normal(count, deviation);
    parameter(values, [count], device)
}

orthogonal_layer!(OrthogonalBccb2d, generators);

image_layer!(
    OrthogonalBccb2d,
    "The stored bins `[u, v, C_in, C_out]`, row-major.",
    "The largest singular value of the layer: 1, but for rounding. Not a number if a generator is not finite.",
    []
);

impl OrthogonalBccb2d {
    fn spectrum(&self) -> Tensor<1> {
        isometry_coordinates(self.generators.val(), &self.isometries)
    }
}
