//! `Y[o] = sum_c W[o,c] (*) X[c] + b[o]` with circular convolution over the whole grid: a BCCB layer whose
//! parameters are spatial filters, the baseline of the spectral layer.
//!
//! # Initialisation
//!
//! An output is a sum of `C_in*H*W` independent products, so filters of variance `1/(C_in*H*W)` keep the
//! variance of the input.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::layer_map::LayerMap;
use super::layers::{image_layer, spatial_layer};
use super::{InitialNumbers, parameter};
use crate::LayerError;
use crate::functional::coordinates_of_filter_2d;

/// Configuration of a [`Bccb2d`] layer.
#[derive(Config, Debug)]
pub struct Bccb2dConfig {
    /// The number of channels, `[C_in, C_out]`.
    pub channels: [usize; 2],
    /// The size of the images, `[H, W]`.
    pub grid: [usize; 2],
    /// If a bias per output channel is added.
    #[config(default = true)]
    pub bias: bool,
    /// The seed of the initial filters. Without one, every layer that a program makes gets the next seed of a fixed sequence: layers
    /// differ, and the same program makes the same layers.
    pub seed: Option<u64>,
}

/// A BCCB layer with spatial filters. Made by [`Bccb2dConfig`].
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Bccb2d {
    /// `[C_out, C_in, H, W]`.
    pub filter: Param<Tensor<4>>,
    /// `[C_out]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    map: LayerMap,
}

impl Bccb2dConfig {
    /// Makes the layer.
    ///
    /// # Panics
    ///
    /// Panics on sizes that [`Self::try_init`] refuses.
    pub fn init(&self, device: &Device) -> Bccb2d {
        self.try_init(device)
            .unwrap_or_else(|error| panic!("Bccb2d: {error}"))
    }

    /// Makes the layer, or says which size is wrong.
    pub fn try_init(&self, device: &Device) -> Result<Bccb2d, LayerError> {
        let map = LayerMap::image(self.channels, self.grid, 1.0)?;
        let ([channels_in, channels_out], [height, width]) = (self.channels, self.grid);
        let inputs = channels_in * height * width;
        let values = InitialNumbers::of_layer(self.seed)
            .normal(inputs * channels_out, (inputs as f64).sqrt().recip());
        Ok(Bccb2d {
            filter: parameter(values, [channels_out, channels_in, height, width], device),
            bias: self
                .bias
                .then(|| parameter(vec![0.0; channels_out], [channels_out], device)),
            map,
        })
    }
}

spatial_layer!(Bccb2d, coordinates_of_filter_2d, flatten(0, 2));

image_layer!(
    Bccb2d,
    "The stored bins `[u, v, C_in, C_out]`, row-major.",
    "The largest singular value of the layer, `max over (u,v) of sigma_max(K(u,v))`. Not a number if a filter is not finite.",
    []
);

impl Bccb2d {
    /// The filters `[C_out, C_in, H, W]`, the parameter itself.
    pub fn spatial_filter(&self) -> Tensor<4> {
        self.filter.val()
    }
}
