//! The largest singular value of every kind of linear layer, enclosed from both sides.
//!
//! | layer | norm | exact? |
//! | --- | --- | --- |
//! | [`SpectralCirculant1d`], [`Circulant1d`] | `max_k abs(h_k)` (equation 13 of the paper) | yes; an upper bound when `d_in != d_out` |
//! | [`SpectralBccb2d`], [`Bccb2d`] | the largest `sigma_max(K(u, v))` over the half plane (equation 14) | yes |
//! | `Linear` | `sigma_max(W)` | yes |
//! | `Conv2d` with zeros around the image | that of the circular convolution on a padded grid | an upper bound |
//!
//! Numbers are the f32 parameters in f64. An enclosure contains the true norm in spite of the f64 rounding; for spatial
//! filters it includes the error of their f64 transform ([`rounding`](super::NetworkBound::rounding_error) says how large that can be).

use std::sync::Arc;

use burn::module::Param;
use burn::nn::conv::Conv2d;
use burn::nn::{Linear, PaddingConfig2d};
use burn::tensor::{DType, Tensor};
use circulant_kernels::{
    NormEnclosure, convolution_norm_bound, matrix_norm, operator_norm_1d, operator_norm_2d,
};

use super::rounding::{LinearRounding, UNIT_DOUBLE, filter_error};
use super::{Estimate, GeometryError, LayerBound, LowerBound, UpperBound};
use crate::nn::{Bccb2d, Circulant1d, SpectralBccb2d, SpectralCirculant1d, to_host};
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
fn bias_norm(
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

/// What the four circulant layers share.
struct CirculantSpectrum<'a> {
    layout: &'a Layout,
    coordinates: Vec<f64>,
    /// The norm of the spatial filters, where these are the parameters.
    filter: Option<UpperBound>,
    dtype: DType,
    bias: Option<&'a Param<Tensor<1>>>,
    inputs: usize,
    outputs: usize,
    /// Whether the input is padded or the output cropped.
    is_cropped: bool,
}

impl CirculantSpectrum<'_> {
    fn bound(self, name: &str) -> Result<LayerBound, GeometryError> {
        let (height, width) = self.layout.grid();
        let grid = [height, width];
        let channels = self.layout.channels().into();
        let enclosure = spectrum_norm(self.layout, &self.coordinates, name)?;
        let mut norm = match self.filter {
            None => NormBounds::exact(enclosure),
            Some(filter) => NormBounds::widened(enclosure, filter_error(grid, filter, UNIT_DOUBLE)),
        };
        // The transform is as long as the longer side, whatever is cropped.
        let whole = norm.upper;
        if self.is_cropped {
            norm = norm.only_upper();
        }
        let bias = bias_norm(self.bias, self.outputs, name)?;
        let rounding = LinearRounding::circulant(grid, channels, whole, bias, self.filter);
        let sizes = [self.inputs, self.outputs];
        Ok(LayerBound::new(
            name, norm, bias, sizes, rounding, self.dtype,
        ))
    }
}

impl OperatorNorm for SpectralCirculant1d {
    fn layer_bound(&self, name: &str) -> Result<LayerBound, GeometryError> {
        CirculantSpectrum {
            layout: self.operator().layout(),
            coordinates: to_host(self.coordinates.val()),
            dtype: self.coordinates.val().dtype(),
            filter: None,
            bias: self.bias.as_ref(),
            inputs: self.d_in(),
            outputs: self.d_out(),
            is_cropped: self.d_in() != self.d_out(),
        }
        .bound(name)
    }
}

impl OperatorNorm for SpectralBccb2d {
    fn layer_bound(&self, name: &str) -> Result<LayerBound, GeometryError> {
        CirculantSpectrum {
            layout: self.operator().layout(),
            coordinates: to_host(self.coordinates.val()),
            dtype: self.coordinates.val().dtype(),
            filter: None,
            bias: self.bias.as_ref(),
            inputs: self.operator().input_len(),
            outputs: self.operator().output_len(),
            is_cropped: false,
        }
        .bound(name)
    }
}

/// The spectrum of spatial filters and their norm.
fn analysed<const D: usize>(
    filter: Tensor<D>,
    operator: &crate::operator::Operator,
    name: &str,
) -> Result<(Vec<f64>, UpperBound), GeometryError> {
    let filter = to_host(filter);
    let norm = UpperBound::norm(&filter);
    if !norm.is_finite() {
        let layer = name.to_owned();
        return Err(GeometryError::NotFinite { layer });
    }
    let mut coordinates = vec![0.0; operator.coordinates()];
    operator
        .plans::<f64>()
        .filters
        .analyse(&filter, &mut coordinates)?;
    Ok((coordinates, norm))
}

impl OperatorNorm for Circulant1d {
    fn layer_bound(&self, name: &str) -> Result<LayerBound, GeometryError> {
        let (coordinates, filter) = analysed(self.filter.val(), self.operator(), name)?;
        CirculantSpectrum {
            layout: self.operator().layout(),
            coordinates,
            dtype: self.filter.val().dtype(),
            filter: Some(filter),
            bias: self.bias.as_ref(),
            inputs: self.d_in(),
            outputs: self.d_out(),
            is_cropped: self.d_in() != self.d_out(),
        }
        .bound(name)
    }
}

impl OperatorNorm for Bccb2d {
    fn layer_bound(&self, name: &str) -> Result<LayerBound, GeometryError> {
        let (coordinates, filter) = analysed(self.filter.val(), self.operator(), name)?;
        CirculantSpectrum {
            layout: self.operator().layout(),
            coordinates,
            dtype: self.filter.val().dtype(),
            filter: Some(filter),
            bias: self.bias.as_ref(),
            inputs: self.operator().input_len(),
            outputs: self.operator().output_len(),
            is_cropped: false,
        }
        .bound(name)
    }
}

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
