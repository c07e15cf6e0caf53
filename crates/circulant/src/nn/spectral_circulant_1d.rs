//! `y = IRFFT(h * RFFT(x)) + b` with `h = T(a)`: a circulant layer whose parameters are the free
//! real coordinates `a` of its half spectrum.
//!
//! The transforms are unitary, so `h` holds the eigenvalues of the layer. A mask keeps the
//! lowest `K` bins; what it removes is not stored.
//!
//! # Initialisation
//!
//! With `w = (1/n) sum_k h_k e^{2 pi i k t/n}` and independent bins of `E|h_k|^2 = v`,
//! `E w_t^2 = v m/n^2`, where `m` of the `n` bins of the full spectrum are kept (`m = d_eff`, one real
//! degree of freedom per bin). An output is a sum over `d_in` inputs, so its variance is
//! `d_in v m/n^2` times that of the input, and `v = n^2/(d_in d_eff)` keeps it. A real bin's coordinate has variance `v`, each part
//! of a complex one `v/2`. For a square layer without a mask `v = 1`: the layer is orthogonal on average.

use burn::config::Config;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::tensor::{Device, Tensor, TensorData};
use circulant_kernels::{Activation, Bin, Complex};

use super::signal_map::{SignalMap, bias_name};
use super::spectrum_mark::SpectrumMark;
use super::{BiasKind, CirculantLayer, InitialNumbers, parameter, stacked, stacked_bias, to_host};
use crate::LayerError;
use crate::operator::Operator;

/// Configuration of a [`SpectralCirculant1d`] layer.
///
/// ```
/// use circulant::nn::{BiasKind, SpectralCirculant1dConfig};
/// # let device = burn::tensor::Device::flex();
///
/// // The lowest 256 of 1025 bins of a layer from 2048 to 2048 features.
/// let layer = SpectralCirculant1dConfig::new(2048).with_modes(Some(256)).with_bias(BiasKind::Vector).init(&device);
/// assert_eq!(layer.degrees_of_freedom(), 511);
/// // Sizes from a file or a flag: an error instead of a panic.
/// let error = SpectralCirculant1dConfig::new(8).with_modes(Some(6)).try_init(&device).unwrap_err();
/// assert!(error.to_string().contains("1..=5"));
/// ```
#[derive(Config, Debug)]
pub struct SpectralCirculant1dConfig {
    /// The size of the input features.
    pub d_in: usize,
    /// The size of the output features; the same as `d_in` unless given. The transform then has
    /// the length `max(d_in, d_out)`: the input is padded with zeros, the output cropped.
    pub d_out: Option<usize>,
    /// The number of lowest bins to keep, `K`; all of them unless given.
    pub modes: Option<usize>,
    /// The kind of bias.
    #[config(default = "super::signal_map::DEFAULT_BIAS")]
    pub bias: BiasKind,
    /// The seed of the initial coordinates. Without one, every layer that a program makes gets the next seed of a fixed sequence: layers
    /// differ, and the same program makes the same layers.
    pub seed: Option<u64>,
}

/// A circulant layer in the free real coordinates of its spectrum. Made by
/// [`SpectralCirculant1dConfig`].
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct SpectralCirculant1d {
    /// `[d_eff]`: `Re h_0, Re h_1, Im h_1, ...`
    pub coordinates: Param<Tensor<1>>,
    /// `[1]` or `[d_out]`.
    pub bias: Option<Param<Tensor<1>>>,
    mark: SpectrumMark,
    #[module(skip)]
    map: SignalMap,
}

impl SpectralCirculant1dConfig {
    /// Makes the layer.
    ///
    /// # Panics
    ///
    /// Panics on sizes that [`Self::try_init`] refuses.
    pub fn init(&self, device: &Device) -> SpectralCirculant1d {
        self.try_init(device)
            .unwrap_or_else(|error| panic!("SpectralCirculant1d: {error}"))
    }

    /// Makes the layer, or says which size is wrong.
    pub fn try_init(&self, device: &Device) -> Result<SpectralCirculant1d, LayerError> {
        let map = SignalMap::new(self.d_in, self.d_out.unwrap_or(self.d_in), self.modes)?;
        let half = map.half();
        let (length, count) = (half.length() as f64, half.coordinates());
        let variance = length * length / (self.d_in as f64 * count as f64);
        let mut values = InitialNumbers::of_layer(self.seed).normal(count, (variance / 2.0).sqrt());
        for k in 0..half.modes() {
            if let Bin::Real { coordinate } = half.bin(k) {
                values[coordinate] *= std::f64::consts::SQRT_2;
            }
        }
        Ok(SpectralCirculant1d {
            coordinates: parameter(values, [count], device),
            bias: self.bias.init(map.d_out, device),
            mark: SpectrumMark::new(map.operator().layout()),
            map,
        })
    }
}

impl SpectralCirculant1d {
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

    /// `tanh(forward(input))` in one pass: several times faster than Burn's `tanh` after
    /// [`Self::forward`].
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
        self.map.apply(
            input,
            self.coordinates.val(),
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
        let coordinates = stacked(members, |member| member.coordinates.val());
        let bias = stacked_bias(members, |member| member.bias.as_ref());
        move |input| map.apply_members(input, coordinates.clone(), bias.clone(), activation)
    }

    /// What a prior over the coordinates has to know.
    pub fn spectrum_layout(&self) -> crate::operator::Layout {
        self.map.operator().layout().clone()
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

    /// The number of kept bins, `K`.
    pub fn modes(&self) -> usize {
        self.map.half().modes()
    }

    /// The layout of the spectrum.
    pub fn layout(&self) -> &circulant_kernels::HalfSpectrum {
        self.map.half()
    }

    /// Free real numbers of the linear map, without the bias: `d_eff`.
    pub fn degrees_of_freedom(&self) -> usize {
        self.map.half().coordinates()
    }

    /// The stored bins `h_0 .. h_{n/2}`; masked ones are zero.
    pub fn half_spectrum(&self) -> Vec<Complex<f64>> {
        self.map.half_spectrum(&to_host(self.coordinates.val()))
    }

    fn filter(&self) -> Vec<f64> {
        let mut filter = vec![0.0; self.map.length()];
        let transform = &self.map.operator().plans::<f64>().filters;
        transform
            .synthesise(&to_host(self.coordinates.val()), &mut filter)
            .expect("sizes of one layout");
        filter
    }

    /// The filter `w` of the circular convolution that the layer is, of length `max(d_in, d_out)`.
    pub fn spatial_filter(&self) -> Tensor<1> {
        let filter = self.filter();
        let shape = [filter.len()];
        Tensor::from_data(
            TensorData::new(filter, shape),
            &self.coordinates.val().device(),
        )
    }

    /// The matrix of the layer as `[d_in, d_out]`, so that `forward(x) = x.matmul(matrix) + bias`.
    pub fn dense_matrix(&self) -> Tensor<2> {
        self.map
            .dense_matrix(&self.filter(), &self.coordinates.val().device())
    }

    /// The largest singular value `max_k |h_k|` of the circulant matrix; when `d_in != d_out`, a bound of the
    /// cropped matrix. Not a number if a coordinate is not finite.
    pub fn operator_norm(&self) -> f64 {
        self.map.operator_norm(&to_host(self.coordinates.val()))
    }
}

impl CirculantLayer<2> for SpectralCirculant1d {
    fn exact_operator(&self) -> Option<&Operator> {
        self.map.exact_operator()
    }

    fn spectrum_coordinates(&self) -> Tensor<1> {
        self.coordinates.val()
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

impl ModuleDisplay for SpectralCirculant1d {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new()
            .with_new_line_after_attribute(false)
            .optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        content
            .add("d_in", &self.d_in())
            .add("d_out", &self.d_out())
            .add("modes", &self.modes())
            .add("degrees_of_freedom", &self.degrees_of_freedom())
            .add(
                "bias",
                &bias_name(self.bias.as_ref().map(|bias| bias.shape()[0])),
            )
            .optional()
    }
}
