//! `Y[o] = sum_c W[o,c] (*) X[c] + b[o]` with circular convolution over the whole grid: a BCCB layer whose
//! parameters are spatial filters, the baseline of the spectral layer.
//!
//! # Initialisation
//!
//! An output is a sum of `C_in*H*W` independent products, so filters of variance `1/(C_in*H*W)` keep the
//! variance of the input.

use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::tensor::{Device, Tensor};
use circulant_kernels::{Activation, Complex};

use super::image_map::ImageMap;
use super::{CirculantLayer, InitialNumbers, parameter, stacked, stacked_bias, to_host};
use crate::LayerError;
use crate::functional::{bccb_2d, bccb_2d_filters, coordinates_of_filter_2d};
use crate::operator::Operator;

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
    map: ImageMap,
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
        let map = ImageMap::new(self.channels, self.grid, 1.0)?;
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

impl Bccb2d {
    /// Applies the layer.
    ///
    /// # Shapes
    ///
    /// - input: `[batch, C_in, H, W]`
    /// - output: `[batch, C_out, H, W]`
    ///
    /// # Panics
    ///
    /// Panics if the channels or the grid of `input` differ from those of the layer.
    pub fn forward(&self, input: Tensor<4>) -> Tensor<4> {
        self.apply(input, Activation::Identity)
    }

    /// `tanh(forward(input))` in one pass.
    ///
    /// # Shapes
    ///
    /// - input: `[batch, C_in, H, W]`
    /// - output: `[batch, C_out, H, W]`
    ///
    /// # Panics
    ///
    /// Panics if the channels or the grid of `input` differ from those of the layer.
    pub fn forward_tanh(&self, input: Tensor<4>) -> Tensor<4> {
        self.apply(input, Activation::Tanh)
    }

    fn apply(&self, input: Tensor<4>, activation: Activation) -> Tensor<4> {
        let operator = self.map.operator().with_activation(activation);
        let coordinates = coordinates_of_filter_2d(self.filter.val(), &operator);
        bccb_2d(
            input,
            coordinates,
            self.bias.as_ref().map(Param::val),
            &operator,
        )
    }

    /// Several layers that differ in their values only (posterior samples) as one map, which transforms its input once.
    ///
    /// # Shapes
    ///
    /// - input: `[batch, C_in, H, W]`
    /// - output: `[members, batch, C_out, H, W]`
    ///
    /// # Panics
    ///
    /// Panics if there are no members; the map panics if its input does not fit them.
    pub fn ensemble(
        members: &[&Self],
        activation: Activation,
    ) -> impl Fn(Tensor<4>) -> Tensor<5> + use<> {
        let first = members.first().expect("at least one member");
        let operator = first.map.operator().with_activation(activation);
        let coordinates = stacked(members, |member| {
            coordinates_of_filter_2d(member.filter.val(), &operator)
        });
        let bias = stacked_bias(members, |member| member.bias.as_ref());
        move |input| bccb_2d_filters(input, coordinates.clone(), bias.clone(), &operator)
    }

    pub(crate) fn operator(&self) -> &Operator {
        self.map.operator()
    }

    /// The number of channels, `[C_in, C_out]`.
    pub fn channels(&self) -> [usize; 2] {
        self.map.channels()
    }

    /// The size of the images, `[H, W]`.
    pub fn grid(&self) -> [usize; 2] {
        self.map.grid()
    }

    /// Free real numbers of the linear map, without the bias: `C_out*C_in*H*W`.
    pub fn degrees_of_freedom(&self) -> usize {
        self.map.operator().coordinates()
    }

    fn coordinates(&self) -> Vec<f64> {
        let mut coordinates = vec![0.0; self.map.operator().coordinates()];
        let transform = &self.map.operator().plans::<f64>().filters;
        transform
            .analyse(&to_host(self.filter.val()), &mut coordinates)
            .expect("sizes of one layout");
        coordinates
    }

    /// The stored bins `[u, v, C_in, C_out]`, row-major.
    pub fn half_spectrum(&self) -> Vec<Complex<f64>> {
        self.map.half_spectrum(&self.coordinates())
    }

    /// The filters `[C_out, C_in, H, W]`, the parameter itself.
    pub fn spatial_filter(&self) -> Tensor<4> {
        self.filter.val()
    }

    /// The matrix of the layer as `[C_in*H*W, C_out*H*W]`.
    pub fn dense_matrix(&self) -> Tensor<2> {
        let filter = self.filter.val();
        let device = filter.device();
        self.map.dense_matrix(&to_host(filter), &device)
    }

    /// The largest singular value of the layer, `max over (u,v) of sigma_max(K(u,v))`. Not a
    /// number if a filter is not finite.
    pub fn operator_norm(&self) -> f64 {
        self.map.operator_norm(&self.coordinates())
    }
}

impl CirculantLayer<4> for Bccb2d {
    fn exact_operator(&self) -> Option<&Operator> {
        Some(self.map.operator())
    }

    fn spectrum_coordinates(&self) -> Tensor<1> {
        coordinates_of_filter_2d(self.filter.val(), self.map.operator()).flatten(0, 2)
    }

    fn bias(&self) -> Option<Tensor<1>> {
        self.bias.as_ref().map(Param::val)
    }

    fn features(&self, input: Tensor<4>, activation: Activation) -> Tensor<2> {
        self.apply(input, activation).flatten(1, 3)
    }

    fn features_of_members(
        members: &[&Self],
        activation: Activation,
    ) -> Box<dyn Fn(Tensor<4>) -> Tensor<3>> {
        let ensemble = Self::ensemble(members, activation);
        Box::new(move |input| ensemble(input).flatten(2, 4))
    }
}

impl ModuleDisplay for Bccb2d {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new()
            .with_new_line_after_attribute(false)
            .optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        content
            .add_debug_attribute("channels", &self.channels())
            .add_debug_attribute("grid", &self.grid())
            .add("degrees_of_freedom", &self.degrees_of_freedom())
            .add("bias", &self.bias.is_some())
            .optional()
    }
}
