//! `y = IRFFT(h * RFFT(x)) + b` with `|h_k| = 1`: an orthogonal circulant layer, whose parameters are the phases, `h_k = e^{i phi_k}`.
//! Self-conjugate bins, which are real, are 1. The norm is one whatever the phases are, and no gradient is lost on the way back.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use circulant_kernels::Bin;

use super::layer_map::LayerMap;
use super::layers::{orthogonal_layer, signal_layer};
use super::{BiasKind, InitialNumbers, parameter};
use crate::LayerError;

/// Configuration of an [`OrthogonalCirculant1d`] layer.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::nn::OrthogonalCirculant1dConfig;
/// # let device = burn::tensor::Device::flex();
///
/// let layer = OrthogonalCirculant1dConfig::new(64).init(&device);
/// assert_eq!(layer.degrees_of_freedom(), 31);
/// assert!((layer.operator_norm() - 1.0).abs() < 1e-6);
/// assert_eq!(layer.forward(Tensor::<2>::ones([8, 64], &device)).dims(), [8, 64]);
/// ```
#[derive(Config, Debug)]
pub struct OrthogonalCirculant1dConfig {
    /// The size of the features.
    pub d: usize,
    /// The kind of bias.
    #[config(default = "BiasKind::Vector")]
    pub bias: BiasKind,
    /// Phases begin uniform in this share of the circle: 1 is any filter of norm one, 0 the identity.
    #[config(default = 1.0)]
    pub spread: f64,
    /// The seed of the initial parameters. Without one, every layer that a program makes gets the next seed of a fixed sequence: layers
    /// differ, and the same program makes the same layers.
    pub seed: Option<u64>,
}

/// A circulant layer that keeps norms. Made by [`OrthogonalCirculant1dConfig`].
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct OrthogonalCirculant1d {
    /// `[(d - 1)/2]`, rounded down: those of the complex bins.
    pub phases: Param<Tensor<1>>,
    /// `[1]` or `[d]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    map: LayerMap,
}

impl OrthogonalCirculant1dConfig {
    /// Makes the layer.
    ///
    /// # Panics
    ///
    /// Panics on sizes that [`Self::try_init`] refuses.
    pub fn init(&self, device: &Device) -> OrthogonalCirculant1d {
        self.try_init(device)
            .unwrap_or_else(|error| panic!("OrthogonalCirculant1d: {error}"))
    }

    /// Makes the layer, or says which size is wrong.
    pub fn try_init(&self, device: &Device) -> Result<OrthogonalCirculant1d, LayerError> {
        let map = LayerMap::signal(self.d, self.d, None)?;
        let complex = |bin: &Bin| matches!(bin, Bin::Complex { .. });
        let count = map.half().iter().filter(complex).count();
        let bound = std::f64::consts::PI * self.spread;
        let values = match bound > 0.0 {
            true => InitialNumbers::of_layer(self.seed).uniform(count, bound),
            false => vec![0.0; count],
        };
        Ok(OrthogonalCirculant1d {
            phases: parameter(values, [count], device),
            bias: self.bias.init(map.d_out, device),
            map,
        })
    }
}

orthogonal_layer!(OrthogonalCirculant1d, phases);

signal_layer!(
    OrthogonalCirculant1d,
    "The stored bins `h_0 .. h_{d/2}`.",
    "The largest singular value, `max_k |h_k|`: 1, but for the rounding of cosines and sines. Not a number if a phase is not finite.",
    []
);

impl OrthogonalCirculant1d {
    /// `1, cos phi_1, sin phi_1, ...`, and 1 again where the length is even.
    fn spectrum(&self) -> Tensor<1> {
        let phases = self.phases.val();
        let one = Tensor::ones([1], (&phases.device(), phases.dtype()));
        let parts = Tensor::stack::<2>(vec![phases.clone().cos(), phases.sin()], 1);
        let mut parts = vec![one.clone(), parts.flatten(0, 1)];
        if self.d_in() > 1 && self.d_in().is_multiple_of(2) {
            parts.push(one);
        }
        Tensor::cat(parts, 0)
    }
}
