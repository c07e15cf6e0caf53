//! `Y[o] = IRFFT2(sum_c K[o,c] * RFFT2(X[c])) + b[o]` with `K = T(a)`: a layer whose matrix is block-circulant
//! with circulant blocks (BCCB) per channel pair, in the free real coordinates `a` of its half
//! plane.
//!
//! A radial mask keeps the bins with `rho/max rho <= K_rad`; what it removes is not stored.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::layer_map::LayerMap;
use super::layers::{image_layer, spectral_layer};
use super::spectrum_mark::SpectrumMark;
use super::{LayerValues, parameter, tensor};
use crate::LayerError;

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
    map: LayerMap,
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
        let map = LayerMap::image(self.channels, self.grid, self.radius)?;
        let (kept, [channels_in, channels_out]) = (map.plane().coordinates(), self.channels);
        let values = map.initial_coordinates(self.seed);
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

spectral_layer!(SpectralBccb2d, flatten(0, 2));

image_layer!(
    SpectralBccb2d,
    "The stored bins `[u, v, C_in, C_out]`, row-major; masked ones are zero.",
    "The largest singular value of the layer, `max over (u,v) of sigma_max(K(u,v))`. Not a number if a coordinate is not finite.",
    ["radius": |layer: &SpectralBccb2d| layer.layout().cutoff()]
);

impl SpectralBccb2d {
    /// The layout of the spectrum of one channel pair.
    pub fn layout(&self) -> &circulant_kernels::HalfPlane {
        self.map.plane()
    }

    /// The filters of the circular convolutions that the layer is, `[C_out, C_in, H, W]`.
    pub fn spatial_filter(&self) -> Tensor<4> {
        let ([channels_in, channels_out], [height, width]) = (self.channels(), self.grid());
        let shape = [channels_out, channels_in, height, width];
        tensor(self.host_filters(), shape, &self.device())
    }
}
