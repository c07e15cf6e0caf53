//! The largest singular value of every kind of linear layer, enclosed from both sides.
//!
//! | layer | norm | exact? |
//! | --- | --- | --- |
//! | [`SpectralCirculant1d`], [`Circulant1d`] | `max_k abs(h_k)` (equation 13 of the paper) | yes; an upper bound when `d_in != d_out` |
//! | [`BlockCirculant1d`] | the largest `sigma_max(K(k))` over the bins | yes; an upper bound when `block` does not divide both sizes |
//! | [`SpectralBccb2d`], [`Bccb2d`] | the largest `sigma_max(K(u, v))` over the half plane (equation 14) | yes |
//! | [`DiagonalCirculant1d`](crate::nn::DiagonalCirculant1d) | `sum_j max abs(D2_j) max_k abs(h_k) max abs(D1_j)` | an upper bound |
//! | [`OrthogonalCirculant1d`], [`OrthogonalBlock1d`], [`OrthogonalBccb2d`], [`OrthogonalConv2d`] | one, and what f32 makes of it | as for the layers above |
//! | `Linear` | `sigma_max(W)` | yes |
//! | `Conv2d` with zeros around the image | that of the circular convolution on a padded grid | an upper bound |
//!
//! Numbers are the f32 parameters in f64. An enclosure contains the true norm in spite of the f64 rounding; for spatial
//! filters it includes the error of their f64 transform ([`rounding`](super::NetworkBound::rounding_error) says how large that can be).

use std::sync::Arc;

use burn::module::Param;
use burn::nn::conv::Conv2d;
use burn::nn::{Linear, PaddingConfig2d};
use burn::tensor::Tensor;
use circulant_kernels::{
    NormEnclosure, convolution_norm_bound, matrix_norm, operator_norm_1d, operator_norm_2d,
};

use super::rounding::{LinearRounding, UNIT_DOUBLE, filter_error};
use super::{Estimate, GeometryError, LayerBound, LowerBound, UpperBound};
use crate::nn::{
    Bccb2d, BlockCirculant1d, Circulant1d, LayerValues, OrthogonalBccb2d, OrthogonalBlock1d,
    OrthogonalCirculant1d, OrthogonalConv2d, SpectralBccb2d, SpectralCirculant1d, to_host,
};
use crate::operator::Layout;

/// An operator norm from both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct NormBounds {
    lower: LowerBound,
    upper: UpperBound,
}

impl NormBounds {
    /// The norm is at least this.
    pub fn lower(&self) -> LowerBound {
        self.lower
    }

    /// The norm is at most this.
    pub fn upper(&self) -> UpperBound {
        self.upper
    }

    /// The middle.
    pub fn estimate(&self) -> Estimate {
        Estimate::new((self.lower.get() + self.upper.get()) / 2.0)
    }

    pub(super) fn new(lower: LowerBound, upper: UpperBound) -> Self {
        Self { lower, upper }
    }

    /// From an enclosure, wider by `error` on both sides.
    fn widened(enclosure: NormEnclosure, error: UpperBound) -> Self {
        Self {
            lower: (LowerBound::new(enclosure.lower) - error).at_least_zero(),
            upper: UpperBound::new(enclosure.upper) + error,
        }
    }

    fn exact(enclosure: NormEnclosure) -> Self {
        Self {
            lower: LowerBound::new(enclosure.lower),
            upper: UpperBound::new(enclosure.upper),
        }
    }

    /// Only from above: a part of an operator is not larger than the whole.
    fn only_upper(self) -> Self {
        Self {
            lower: LowerBound::ZERO,
            ..self
        }
    }
}

/// A linear layer whose operator norm is known.
pub trait OperatorNorm {
    /// The norm, its bias and its rounding, under a name for reports.
    fn layer_bound(&self, name: &str) -> Result<LayerBound, GeometryError>;

    /// The norm alone.
    fn norm_bounds(&self) -> Result<NormBounds, GeometryError> {
        Ok(self.layer_bound("the layer")?.norm())
    }
}

/// The 2-norm of a bias that is repeated to `outputs` values.
pub(super) fn bias_norm(
    bias: Option<&Param<Tensor<1>>>,
    outputs: usize,
    name: &str,
) -> Result<UpperBound, GeometryError> {
    let Some(bias) = bias else {
        return Ok(UpperBound::ZERO);
    };
    let values = to_host(bias.val());
    let repeats = (outputs / values.len().max(1)) as f64;
    let norm = UpperBound::norm(&values) * UpperBound::new(repeats).sqrt();
    if norm.is_finite() {
        Ok(norm)
    } else {
        let layer = name.to_owned();
        Err(GeometryError::NotFinite { layer })
    }
}

/// The enclosure of a spectrum in any layout.
pub(super) fn spectrum_norm(
    layout: &Layout,
    coordinates: &[f64],
    name: &str,
) -> Result<NormEnclosure, GeometryError> {
    match layout {
        Layout::Signal(half) => operator_norm_1d(half, coordinates),
        Layout::Image {
            plane,
            channels_in,
            channels_out,
        } => operator_norm_2d(plane, *channels_in, *channels_out, coordinates),
    }
    .map_err(GeometryError::of_layer(name))
}

/// The bound of any circulant layer.
fn circulant_bound(layer: &impl LayerValues, name: &str) -> Result<LayerBound, GeometryError> {
    let map = layer.layer_map();
    let (layout, sizes) = (map.operator().layout(), [map.d_in(), map.d_out()]);
    // The norm of the spatial filters, where these are the parameters.
    let filter = if layer.is_spatial() {
        let norm = UpperBound::norm(&layer.host_filters());
        if !norm.is_finite() {
            let layer = name.to_owned();
            return Err(GeometryError::NotFinite { layer });
        }
        Some(norm)
    } else {
        None
    };
    let grid = layout.grid().into();
    let enclosure = spectrum_norm(layout, &layer.host_coordinates(), name)?;
    let mut norm = match filter {
        None => NormBounds::exact(enclosure),
        Some(filter) => NormBounds::widened(enclosure, filter_error(grid, filter, UNIT_DOUBLE)),
    };
    // The operator is larger than the layer where the input is padded or the output cropped.
    let whole = norm.upper;
    if map.exact_operator().is_none() {
        norm = norm.only_upper();
    }
    let bias = bias_norm(layer.bias_parameter(), map.d_out(), name)?;
    let channels = layout.channels().into();
    let rounding = LinearRounding::circulant(grid, channels, whole, bias, filter);
    let dtype = layer.dtype();
    Ok(LayerBound::new(name, norm, bias, sizes, rounding, dtype))
}

macro_rules! circulant {
    ($($layer:ty),*) => {$(
        impl OperatorNorm for $layer {
            fn layer_bound(&self, name: &str) -> Result<LayerBound, GeometryError> {
                circulant_bound(self, name)
            }
        }
    )*};
}

circulant!(
    SpectralCirculant1d,
    BlockCirculant1d,
    SpectralBccb2d,
    OrthogonalCirculant1d,
    OrthogonalBlock1d,
    OrthogonalBccb2d,
    OrthogonalConv2d,
    Circulant1d,
    Bccb2d
);

impl OperatorNorm for Linear {
    fn layer_bound(&self, name: &str) -> Result<LayerBound, GeometryError> {
        let [inputs, outputs] = self.weight.dims();
        let weights = to_host(self.weight.val());
        let enclosure =
            matrix_norm(inputs, outputs, &weights).map_err(GeometryError::of_layer(name))?;
        let norm = NormBounds::exact(enclosure);
        let bias = bias_norm(self.bias.as_ref(), outputs, name)?;
        let absolute = UpperBound::norm(&weights);
        let rounding = LinearRounding::sums(inputs, outputs, absolute, norm.upper, bias);
        let (sizes, dtype) = ([inputs, outputs], self.weight.val().dtype());
        let mut bound = LayerBound::new(name, norm, bias, sizes, rounding, dtype);
        bound.set_weights(Arc::new(weights));
        Ok(bound)
    }
}

/// A convolution of stride 1 that keeps the size of its images, together with that size.
///
/// ```
/// use burn::nn::PaddingConfig2d;
/// use burn::nn::conv::Conv2dConfig;
/// use circulant::geometry::{OperatorNorm, SameConvolution};
///
/// let layer = Conv2dConfig::new([1, 8], [3, 3]).with_padding(PaddingConfig2d::Same).init(&circulant::cpu());
/// let bounds = SameConvolution::new(&layer, [28, 28]).norm_bounds()?;
/// assert!(bounds.upper().is_finite());
/// # Ok::<(), circulant::geometry::GeometryError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SameConvolution<'a> {
    pub(super) layer: &'a Conv2d,
    pub(super) grid: [usize; 2],
}

impl<'a> SameConvolution<'a> {
    /// The layer on images of `[H, W]`.
    pub fn new(layer: &'a Conv2d, grid: [usize; 2]) -> Self {
        Self { layer, grid }
    }

    fn check(&self, name: &str) -> Result<(), GeometryError> {
        let layer = self.layer;
        let [_, _, rows, columns] = layer.weight.dims();
        let keeps_size = match layer.padding {
            PaddingConfig2d::Same => true,
            PaddingConfig2d::Valid => [rows, columns] == [1, 1],
            PaddingConfig2d::Explicit(top, left, bottom, right) => {
                [top, bottom] == [rows / 2; 2] && [left, right] == [columns / 2; 2]
            }
        };
        let is_plain = layer.stride == [1, 1] && layer.dilation == [1, 1] && layer.groups == 1;
        if keeps_size && is_plain && rows % 2 == 1 && columns % 2 == 1 {
            return Ok(());
        }
        Err(GeometryError::NoBound {
            layer: name.to_owned(),
            reason: "only convolutions of stride 1 without dilation or groups, with odd kernels and an output of \
                     the input's size, are bounded"
                .to_owned(),
        })
    }

    /// Weights as they are in memory, `[C_out, C_in, k_h, k_w]`.
    fn upper(&self, weights: &[f64], name: &str) -> Result<UpperBound, GeometryError> {
        let [channels_out, channels_in, rows, columns] = self.layer.weight.dims();
        let bound = convolution_norm_bound(
            weights,
            channels_in,
            channels_out,
            [rows, columns],
            self.grid,
        );
        Ok(UpperBound::new(
            bound.map_err(GeometryError::of_layer(name))?,
        ))
    }
}

impl OperatorNorm for SameConvolution<'_> {
    fn layer_bound(&self, name: &str) -> Result<LayerBound, GeometryError> {
        self.check(name)?;
        let [channels_out, channels_in, rows, columns] = self.layer.weight.dims();
        let weights = to_host(self.layer.weight.val());
        let norm = NormBounds {
            lower: LowerBound::ZERO,
            upper: self.upper(&weights, name)?,
        };
        let outputs = channels_out * self.grid[0] * self.grid[1];
        let bias = bias_norm(self.layer.bias.as_ref(), outputs, name)?;
        let taps = channels_in * rows * columns;
        let sum = |filter: &[f64]| filter.iter().map(|weight| weight.abs()).sum::<f64>();
        let sums: Vec<f64> = weights.chunks_exact(rows * columns).map(sum).collect();
        // A sum of few positive numbers: one part in 1e12 is far more than its rounding.
        let absolute = UpperBound::norm(&sums) * UpperBound::new(1.0 + 1e-12);
        let rounding = LinearRounding::sums(taps, outputs, absolute, norm.upper, bias);
        let inputs = channels_in * self.grid[0] * self.grid[1];
        Ok(LayerBound::new(
            name,
            norm,
            bias,
            [inputs, outputs],
            rounding,
            self.layer.weight.val().dtype(),
        ))
    }
}
