//! A differentiable upper bound of a layer's norm, to be added to a loss.
//!
//! | layer | bound |
//! | --- | --- |
//! | [`SpectralCirculant1d`], [`Circulant1d`] | `max_k abs(h_k)`, the norm itself |
//! | [`BlockCirculant1d`], [`SpectralBccb2d`], [`Bccb2d`] | the Gram bound `(sum_i sigma_i^p)^(1/p)` of the matrix with the largest norm, `p = 2^(squarings + 2)` |
//! | [`DiagonalCirculant1d`](crate::nn::DiagonalCirculant1d) | `sum_j max abs(D2_j) max_k abs(h_k) max abs(D1_j)` |
//! | `Linear` | the Gram bound of its matrix |
//!
//! The Gram bound is smooth where singular values meet and never below the norm. It is positively homogeneous of degree one in the parameters `a`,
//! so by Euler's theorem `sum_i a_i dB/da_i = B(a)`. With the gradient from the kernel as a constant `g`, the tensor `sum(a * g)` therefore has the value `B`
//! and exactly the gradient `g`: no backward pass of its own is needed.
//!
//! The value is an f32 sum and as exact as that. For a certified number use [`OperatorNorm`](super::OperatorNorm).

use burn::nn::Linear;
use burn::tensor::{Tensor, TensorData};
use circulant_kernels::{
    Bin, HalfSpectrum, gram_bound_2d_with_gradient, gram_bound_matrix_with_gradient,
};

use super::GeometryError;
use crate::nn::{
    Bccb2d, BlockCirculant1d, Circulant1d, CirculantLayer, LayerValues, SpectralBccb2d,
    SpectralCirculant1d, to_host,
};
use crate::operator::Layout;

/// A layer whose norm can be part of a loss.
pub trait NormPenalty {
    /// An upper bound of the norm as a tensor `[1]` through which gradients flow to the parameters. `squarings`, 4 to 6, decides how close it is to the
    /// norm; layers of one channel do not need it.
    ///
    /// ```
    /// use burn::tensor::Tensor;
    /// use circulant::geometry::{NormPenalty, OperatorNorm};
    /// use circulant::nn::SpectralBccb2dConfig;
    ///
    /// let device = circulant::cpu().autodiff();
    /// let layer = SpectralBccb2dConfig::new([2, 3], [4, 4]).init(&device);
    /// let penalty = layer.gram_bound(5)?;
    /// let value: f64 = penalty.clone().into_scalar();
    /// let norm = layer.norm_bounds()?.upper().get();
    /// assert!(value > norm * (1.0 - 1e-6) && value < norm * 1.1);
    /// let gradients = penalty.backward();
    /// assert!(layer.coordinates.val().grad(&gradients).is_some());
    /// # Ok::<(), circulant::geometry::GeometryError>(())
    /// ```
    fn gram_bound(&self, squarings: usize) -> Result<Tensor<1>, GeometryError>;
}

/// `sum(parameters * gradient)`: the bound itself, with that gradient.
fn homogeneous<const D: usize>(parameters: Tensor<D>, gradient: Vec<f64>) -> Tensor<1> {
    let data = TensorData::new(gradient, parameters.shape());
    let gradient = Tensor::from_data(data, (&parameters.device(), parameters.dtype()));
    (parameters * gradient).sum()
}

/// The gradient of `max_k abs(h_k)`: the direction of the largest bin.
fn largest_bin_gradient(half: &HalfSpectrum, coordinates: &[f64]) -> Vec<f64> {
    let mut gradient = vec![0.0; coordinates.len()];
    let parts = |k: usize| match half.bin(k) {
        Bin::Real { coordinate } => Some(coordinate..coordinate + 1),
        Bin::Complex { coordinate } => Some(coordinate..coordinate + 2),
        Bin::Conjugate { .. } | Bin::Masked => None,
    };
    let size = |range: &std::ops::Range<usize>| {
        let values = &coordinates[range.clone()];
        values
            .iter()
            .fold(0.0_f64, |size, value| size.hypot(*value))
    };
    let largest = (0..half.modes())
        .filter_map(parts)
        .map(|range| (size(&range), range))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((size, range)) = largest.filter(|(size, _)| *size > 0.0) {
        for at in range {
            gradient[at] = coordinates[at] / size;
        }
    }
    gradient
}

/// The bound of a spectrum.
fn spectrum_bound(
    coordinates: Tensor<1>,
    layout: &Layout,
    squarings: usize,
) -> Result<Tensor<1>, GeometryError> {
    let values = to_host(coordinates.clone());
    if values.iter().any(|value| !value.is_finite()) {
        let layer = "the layer".to_owned();
        return Err(GeometryError::NotFinite { layer });
    }
    let gradient = match layout {
        Layout::Signal(half) => largest_bin_gradient(half, &values),
        Layout::Image {
            plane,
            channels_in,
            channels_out,
        } => gram_bound_2d_with_gradient(plane, *channels_in, *channels_out, &values, squarings)?.1,
    };
    Ok(homogeneous(coordinates, gradient))
}

macro_rules! circulant {
    ($($layer:ty),*) => {$(
        impl NormPenalty for $layer {
            fn gram_bound(&self, squarings: usize) -> Result<Tensor<1>, GeometryError> {
                spectrum_bound(self.spectrum_coordinates(), self.layer_map().operator().layout(), squarings)
            }
        }
    )*};
}

circulant!(
    SpectralCirculant1d,
    BlockCirculant1d,
    SpectralBccb2d,
    Circulant1d,
    Bccb2d
);

impl NormPenalty for Linear {
    fn gram_bound(&self, squarings: usize) -> Result<Tensor<1>, GeometryError> {
        let [inputs, outputs] = self.weight.dims();
        let values = to_host(self.weight.val());
        let (_, gradient) = gram_bound_matrix_with_gradient(inputs, outputs, &values, squarings)
            .map_err(GeometryError::of_layer("the layer"))?;
        Ok(homogeneous(self.weight.val(), gradient))
    }
}
