//! `y_t = sum_s w[(t-s) mod n] x_s + b`: a circulant layer whose parameter is the spatial filter
//! `w`, the baseline of the spectral layer. It is computed in the spectrum as well:
//! `h_k = sum_t w_t exp(-2 pi i k t/n)`.
//!
//! # Initialisation
//!
//! An output is a sum of `d_in` independent products, so a filter of variance `1/d_in` keeps the
//! variance of the input.

use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::tensor::{Device, Tensor};
use circulant_kernels::{Activation, Complex};

use super::signal_map::{SignalMap, bias_name};
use super::{BiasKind, CirculantLayer, InitialNumbers, parameter, stacked, stacked_bias, to_host};
use crate::LayerError;
use crate::functional::coordinates_of_filter_1d;
use crate::operator::Operator;

/// Configuration of a [`Circulant1d`] layer.
#[derive(Config, Debug)]
pub struct Circulant1dConfig {
    /// The size of the input features.
    pub d_in: usize,
    /// The size of the output features; the same as `d_in` unless given. The filter then has the
    /// length `max(d_in, d_out)`: the input is padded with zeros, the output cropped.
    pub d_out: Option<usize>,
    /// The kind of bias.
    #[config(default = "super::signal_map::DEFAULT_BIAS")]
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
    map: SignalMap,
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
        let map = SignalMap::new(self.d_in, self.d_out.unwrap_or(self.d_in), None)?;
        let length = map.length();
        let values =
            InitialNumbers::of_layer(self.seed).normal(length, (self.d_in as f64).sqrt().recip());
        Ok(Circulant1d {
            filter: parameter(values, [length], device),
            bias: self.bias.init(map.d_out, device),
            map,
        })
    }
}

impl Circulant1d {
    /// Applies the layer over the last axis.
    ///
    /// # Shapes
    ///
    /// - input: `[..., d_in]`
    /// - output: `[..., d_out]`
    ///
    /// # Panics
    ///
    /// Panics if the last axis of `input` is not `d_in`.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        self.apply(input, Activation::Identity)
    }

    /// `tanh(forward(input))` in one pass.
    ///
    /// # Shapes
    ///
    /// - input: `[..., d_in]`
    /// - output: `[..., d_out]`
    ///
    /// # Panics
    ///
    /// Panics if the last axis of `input` is not `d_in`.
    pub fn forward_tanh<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        self.apply(input, Activation::Tanh)
    }

    fn apply<const D: usize>(&self, input: Tensor<D>, activation: Activation) -> Tensor<D> {
        let coordinates = coordinates_of_filter_1d(self.filter.val(), self.map.operator());
        self.map.apply(
            input,
            coordinates,
            self.bias.as_ref().map(Param::val),
            activation,
        )
    }

    /// Several layers that differ in their values only (posterior samples) as one map, which transforms its input once.
    ///
    /// # Shapes
    ///
    /// - input: `[batch, d_in]`
    /// - output: `[members, batch, d_out]`
    ///
    /// # Panics
    ///
    /// Panics if there are no members; the map panics if the last axis of its input is not `d_in`.
    pub fn ensemble(
        members: &[&Self],
        activation: Activation,
    ) -> impl Fn(Tensor<2>) -> Tensor<3> + use<> {
        let map = members.first().expect("at least one member").map.clone();
        let coordinates = stacked(members, |member| {
            coordinates_of_filter_1d(member.filter.val(), member.map.operator())
        });
        let bias = stacked_bias(members, |member| member.bias.as_ref());
        move |input| map.apply_members(input, coordinates.clone(), bias.clone(), activation)
    }

    pub(crate) fn operator(&self) -> &Operator {
        self.map.operator()
    }

    /// The size of the input.
    pub fn d_in(&self) -> usize {
        self.map.d_in
    }

    /// The size of the output.
    pub fn d_out(&self) -> usize {
        self.map.d_out
    }

    /// Free real numbers of the linear map, without the bias: the length of the filter.
    pub fn degrees_of_freedom(&self) -> usize {
        self.map.length()
    }

    fn coordinates(&self) -> Vec<f64> {
        let mut coordinates = vec![0.0; self.map.half().coordinates()];
        let transform = &self.map.operator().plans::<f64>().filters;
        transform
            .analyse(&to_host(self.filter.val()), &mut coordinates)
            .expect("sizes of one layout");
        coordinates
    }

    /// The stored bins `h_0 .. h_{n/2}`.
    pub fn half_spectrum(&self) -> Vec<Complex<f64>> {
        self.map.half_spectrum(&self.coordinates())
    }

    /// The filter `w`, the parameter itself.
    pub fn spatial_filter(&self) -> Tensor<1> {
        self.filter.val()
    }

    /// The matrix of the layer as `[d_in, d_out]`, so that `forward(x) = x.matmul(matrix) + bias`.
    pub fn dense_matrix(&self) -> Tensor<2> {
        let filter = self.filter.val();
        let device = filter.device();
        self.map.dense_matrix(&to_host(filter), &device)
    }

    /// The largest singular value `max_k |h_k|` of the circulant matrix; when `d_in != d_out`, a bound of the
    /// cropped matrix. Not a number if the filter is not finite.
    pub fn operator_norm(&self) -> f64 {
        self.map.operator_norm(&self.coordinates())
    }
}

impl CirculantLayer<2> for Circulant1d {
    fn exact_operator(&self) -> Option<&Operator> {
        self.map.exact_operator()
    }

    fn spectrum_coordinates(&self) -> Tensor<1> {
        coordinates_of_filter_1d(self.filter.val(), self.map.operator())
    }

    fn bias(&self) -> Option<Tensor<1>> {
        self.bias.as_ref().map(Param::val)
    }

    fn features(&self, input: Tensor<2>, activation: Activation) -> Tensor<2> {
        self.apply(input, activation)
    }

    fn features_of_members(
        members: &[&Self],
        activation: Activation,
    ) -> Box<dyn Fn(Tensor<2>) -> Tensor<3>> {
        Box::new(Self::ensemble(members, activation))
    }
}

impl ModuleDisplay for Circulant1d {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new()
            .with_new_line_after_attribute(false)
            .optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        content
            .add("d_in", &self.d_in())
            .add("d_out", &self.d_out())
            .add("degrees_of_freedom", &self.degrees_of_freedom())
            .add(
                "bias",
                &bias_name(self.bias.as_ref().map(|bias| bias.shape()[0])),
            )
            .optional()
    }
}
