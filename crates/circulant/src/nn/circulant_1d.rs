//! `y_t = sum_s w[(t-s) mod n] x_s + b`: a circulant layer whose parameter is the spatial filter
//! `w`, the baseline of the spectral layer. It is computed in the spectrum as well:
//! `h_k = sum_t w_t exp(-2 pi i k t/n)`.
//!
//! # Initialisation
//!
//! An output is a sum of `d_in` independent products, so a filter of variance `1/d_in` keeps the
//! variance of the input.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::layer_map::LayerMap;
use super::layers::{signal_layer, spatial_layer};
use super::{BiasKind, InitialNumbers, parameter};
use crate::LayerError;
use crate::functional::coordinates_of_filter_1d;

/// Configuration of a [`Circulant1d`] layer.
#[derive(Config, Debug)]
pub struct Circulant1dConfig {
    /// The size of the input features.
    pub d_in: usize,
    /// The size of the output features; the same as `d_in` unless given. The filter then has the
    /// length `max(d_in, d_out)`: the input is padded with zeros, the output cropped.
    pub d_out: Option<usize>,
    /// The kind of bias.
    #[config(default = "BiasKind::Scalar")]
    pub bias: BiasKind,
    /// The seed of the initial filter. Without one, every layer that a program makes gets the next seed of a fixed sequence: layers
    /// differ, and the same program makes the same layers.
    pub seed: Option<u64>,
}

/// A circulant layer with a spatial filter. Made by [`Circulant1dConfig`].
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Circulant1d {
    /// `[max(d_in, d_out)]`.
    pub filter: Param<Tensor<1>>,
    /// `[1]` or `[d_out]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    map: LayerMap,
}

impl Circulant1dConfig {
    /// Makes the layer.
    ///
    /// # Panics
    ///
    /// Panics on sizes that [`Self::try_init`] refuses.
    pub fn init(&self, device: &Device) -> Circulant1d {
        self.try_init(device)
            .unwrap_or_else(|error| panic!("Circulant1d: {error}"))
    }

    /// Makes the layer, or says which size is wrong.
    pub fn try_init(&self, device: &Device) -> Result<Circulant1d, LayerError> {
        let map = LayerMap::signal(self.d_in, self.d_out.unwrap_or(self.d_in), None)?;
        let length = map.half().length();
        let values =
            InitialNumbers::of_layer(self.seed).normal(length, (self.d_in as f64).sqrt().recip());
        Ok(Circulant1d {
            filter: parameter(values, [length], device),
            bias: self.bias.init(map.d_out, device),
            map,
        })
    }
}

spatial_layer!(Circulant1d, coordinates_of_filter_1d);

signal_layer!(
    Circulant1d,
    "The stored bins `h_0 .. h_{n/2}`.",
    "The largest singular value `max_k |h_k|` of the circulant matrix; when `d_in != d_out`, a bound of the cropped matrix. \
     Not a number if the filter is not finite.",
    []
);

impl Circulant1d {
    /// The filter `w`, the parameter itself.
    pub fn spatial_filter(&self) -> Tensor<1> {
        self.filter.val()
    }
}
