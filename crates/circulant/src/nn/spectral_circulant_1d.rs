//! `y = IRFFT(h * RFFT(x)) + b` with `h = T(a)`: a circulant layer whose parameters are the free
//! real coordinates `a` of its half spectrum.
//!
//! The transforms are unitary, so `h` holds the eigenvalues of the layer. A mask keeps the
//! lowest `K` bins; what it removes is not stored.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::layer_map::LayerMap;
use super::layers::{signal_layer, spectral_layer};
use super::spectrum_mark::SpectrumMark;
use super::{BiasKind, LayerValues, parameter, tensor};
use crate::LayerError;

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
    #[config(default = "BiasKind::Scalar")]
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
    map: LayerMap,
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
        let map = LayerMap::signal(self.d_in, self.d_out.unwrap_or(self.d_in), self.modes)?;
        let values = map.initial_coordinates(self.seed);
        let count = values.len();
        Ok(SpectralCirculant1d {
            coordinates: parameter(values, [count], device),
            bias: self.bias.init(map.d_out, device),
            mark: SpectrumMark::new(map.operator().layout()),
            map,
        })
    }
}

spectral_layer!(SpectralCirculant1d);

signal_layer!(
    SpectralCirculant1d,
    "The stored bins `h_0 .. h_{n/2}`; masked ones are zero.",
    "The largest singular value `max_k |h_k|` of the circulant matrix; when `d_in != d_out`, a bound of the cropped matrix. \
     Not a number if a coordinate is not finite.",
    [modes]
);

impl SpectralCirculant1d {
    /// The number of kept bins, `K`.
    pub fn modes(&self) -> usize {
        self.map.half().modes()
    }

    /// The layout of the spectrum.
    pub fn layout(&self) -> &circulant_kernels::HalfSpectrum {
        self.map.half()
    }

    /// The filter `w` of the circular convolution that the layer is, of length `max(d_in, d_out)`.
    pub fn spatial_filter(&self) -> Tensor<1> {
        tensor(
            self.host_filters(),
            [self.map.half().length()],
            &self.device(),
        )
    }
}
