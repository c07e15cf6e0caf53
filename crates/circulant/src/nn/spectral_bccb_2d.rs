//! `Y[o] = IRFFT2(sum_c K[o,c] * RFFT2(X[c])) + b[o]` with `K = T(a)`: a layer whose matrix is block-circulant
//! with circulant blocks (BCCB) per channel pair, in the free real coordinates `a` of its half
//! plane.
//!
//! A radial mask keeps the bins with `rho/max rho <= K_rad`; what it removes is not stored.
//!
//! # Initialisation
//!
//! As in 1D, with independent bins of `E|K|^2 = v` the filter of a channel pair has
//! `E w^2 = v m/(HW)^2`, where `m` of the `HW` bins of the full plane are kept. An output sums `C_in*H*W`
//! products, so `v = HW/(C_in m)` keeps the variance. A real bin's coordinate has variance `v`, each part of a complex
//! one `v/2`.

use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::tensor::{Device, Tensor, TensorData};
use circulant_kernels::{Activation, Bin, Complex};

use super::image_map::ImageMap;
use super::spectrum_mark::SpectrumMark;
use super::{CirculantLayer, InitialNumbers, parameter, stacked, stacked_bias, to_host};
use crate::LayerError;
use crate::functional::{bccb_2d, bccb_2d_filters};
use crate::operator::Operator;

/// Configuration of a [`SpectralBccb2d`] layer.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::nn::SpectralBccb2dConfig;
/// # let device = burn::tensor::Device::flex();
///
/// let layer = SpectralBccb2dConfig::new([3, 8], [32, 32]).init(&device);
/// assert_eq!(layer.degrees_of_freedom(), 8 * 3 * 32 * 32);
/// let y = layer.forward(Tensor::ones([2, 3, 32, 32], &device));
/// assert_eq!(y.dims(), [2, 8, 32, 32]);
/// ```
#[derive(Config, Debug)]
pub struct SpectralBccb2dConfig {
    /// The number of channels, `[C_in, C_out]`.
    pub channels: [usize; 2],
    /// The size of the images, `[H, W]`.
    pub grid: [usize; 2],
    /// The relative radius inside which bins are kept, `K_rad` in `[0, 1]`.
    #[config(default = 1.0)]
    pub radius: f64,
    /// If a bias per output channel is added.
    #[config(default = true)]
    pub bias: bool,
    /// The seed of the initial coordinates. Without one, every layer that a program makes gets the next seed of a fixed sequence: layers
    /// differ, and the same program makes the same layers.
    pub seed: Option<u64>,
}

/// A BCCB layer in the free real coordinates of its spectrum. Made by [`SpectralBccb2dConfig`].
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct SpectralBccb2d {
    /// `[coordinate, C_in, C_out]`; coordinates walk the half plane row by row.
    pub coordinates: Param<Tensor<3>>,
    /// `[C_out]`.
    pub bias: Option<Param<Tensor<1>>>,
    mark: SpectrumMark,
    #[module(skip)]
    map: ImageMap,
}

impl SpectralBccb2dConfig {
    /// Makes the layer.
    ///
    /// # Panics
    ///
    /// Panics on sizes that [`Self::try_init`] refuses.
    pub fn init(&self, device: &Device) -> SpectralBccb2d {
        self.try_init(device)
            .unwrap_or_else(|error| panic!("SpectralBccb2d: {error}"))
    }

    /// Makes the layer, or says which size is wrong.
    pub fn try_init(&self, device: &Device) -> Result<SpectralBccb2d, LayerError> {
        let map = ImageMap::new(self.channels, self.grid, self.radius)?;
        let plane = map.plane();
        let [channels_in, channels_out] = self.channels;
        let (pixels, kept) = (plane.height() * plane.width(), plane.coordinates());
        let pairs = channels_in * channels_out;
        let variance = pixels as f64 / (channels_in * kept) as f64;
        let mut values =
            InitialNumbers::of_layer(self.seed).normal(kept * pairs, (variance / 2.0).sqrt());
        for bin in 0..plane.bins() {
            if let Bin::Real { coordinate } =
                plane.bin(bin / plane.columns(), bin % plane.columns())
            {
                values[coordinate * pairs..(coordinate + 1) * pairs]
                    .iter_mut()
                    .for_each(|value| *value *= std::f64::consts::SQRT_2);
            }
        }
        Ok(SpectralBccb2d {
            coordinates: parameter(values, [kept, channels_in, channels_out], device),
            bias: self
                .bias
                .then(|| parameter(vec![0.0; channels_out], [channels_out], device)),
            mark: SpectrumMark::new(map.operator().layout()),
            map,
        })
    }
}

impl SpectralBccb2d {
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
        bccb_2d(
            input,
            self.coordinates.val(),
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
        let coordinates = stacked(members, |member| member.coordinates.val());
        let bias = stacked_bias(members, |member| member.bias.as_ref());
        move |input| bccb_2d_filters(input, coordinates.clone(), bias.clone(), &operator)
    }

    /// What a prior over the coordinates has to know.
    pub fn spectrum_layout(&self) -> crate::operator::Layout {
        self.map.operator().layout().clone()
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

    /// The layout of the spectrum of one channel pair.
    pub fn layout(&self) -> &circulant_kernels::HalfPlane {
        self.map.plane()
    }

    /// Free real numbers of the linear map, without the bias: `d_eff`.
    pub fn degrees_of_freedom(&self) -> usize {
        self.map.operator().coordinates()
    }

    /// The stored bins `[u, v, C_in, C_out]`, row-major; masked ones are zero.
    pub fn half_spectrum(&self) -> Vec<Complex<f64>> {
        self.map.half_spectrum(&to_host(self.coordinates.val()))
    }

    fn filter(&self) -> Vec<f64> {
        let mut filter = vec![0.0; self.channels()[0] * self.map.operator().output_len()];
        let transform = &self.map.operator().plans::<f64>().filters;
        transform
            .synthesise(&to_host(self.coordinates.val()), &mut filter)
            .expect("sizes of one layout");
        filter
    }

    /// The filters of the circular convolutions that the layer is, `[C_out, C_in, H, W]`.
    pub fn spatial_filter(&self) -> Tensor<4> {
        let ([channels_in, channels_out], [height, width]) = (self.channels(), self.grid());
        let data = TensorData::new(self.filter(), [channels_out, channels_in, height, width]);
        Tensor::from_data(data, &self.coordinates.val().device())
    }

    /// The matrix of the layer as `[C_in*H*W, C_out*H*W]`.
    pub fn dense_matrix(&self) -> Tensor<2> {
        self.map
            .dense_matrix(&self.filter(), &self.coordinates.val().device())
    }

    /// The largest singular value of the layer, `max over (u,v) of sigma_max(K(u,v))`. Not a
    /// number if a coordinate is not finite.
    pub fn operator_norm(&self) -> f64 {
        self.map.operator_norm(&to_host(self.coordinates.val()))
    }
}

impl CirculantLayer<4> for SpectralBccb2d {
    fn exact_operator(&self) -> Option<&Operator> {
        Some(self.map.operator())
    }

    fn spectrum_coordinates(&self) -> Tensor<1> {
        self.coordinates.val().flatten(0, 2)
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

impl ModuleDisplay for SpectralBccb2d {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new()
            .with_new_line_after_attribute(false)
            .optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        content
            .add_debug_attribute("channels", &self.channels())
            .add_debug_attribute("grid", &self.grid())
            .add("radius", &self.layout().cutoff())
            .add("degrees_of_freedom", &self.degrees_of_freedom())
            .add("bias", &self.bias.is_some())
            .optional()
    }
}
