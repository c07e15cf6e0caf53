//! The circulant matrix nearest to a dense one, and the way back.
//!
//! Matrices are `[in, out]`. The circulant ones, `C[s, t] = w[(t - s) mod n]` with `n = max(in, out)`, are a subspace with the
//! wrapped diagonals as an orthogonal basis; so the nearest one in the Frobenius norm has on each of them the mean of `W`:
//! `w_k = mean of W[s, t] over (t - s) mod n = k`. Each has `min(in, out)` entries.

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::{Tensor, TensorData};

use super::SurgeryError;
use crate::nn::{BiasKind, SpectralCirculant1d, SpectralCirculant1dConfig, to_host};

/// A structured layer in the place of a dense one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Nearest<L> {
    /// The layer.
    pub layer: L,
    /// `norm(W - C)/norm(W)` of the matrices, in the Frobenius norm: 0 is exact, 1 keeps nothing.
    pub relative_error: f64,
    /// The same of the biases.
    pub bias_error: f64,
}

/// The circulant layer nearest to `linear`. A vector bias keeps all of the bias, a scalar one its mean, [`BiasKind::None`]
/// nothing; a layer without a bias stays without one.
///
/// ```
/// use burn::nn::LinearConfig;
/// use circulant::nn::BiasKind;
/// use circulant::surgery::{nearest_circulant, to_dense};
///
/// let linear = LinearConfig::new(8, 8).init(&circulant::cpu());
/// let nearest = nearest_circulant(&linear, BiasKind::Vector)?;
/// assert!(nearest.relative_error > 0.0 && nearest.relative_error <= 1.0);
/// assert_eq!(nearest.bias_error, 0.0);
/// // The way back is exact up to rounding: a circulant matrix is its own projection.
/// let again = nearest_circulant(&to_dense(&nearest.layer), BiasKind::Vector)?;
/// assert!(again.relative_error < 1e-6);
/// # Ok::<(), circulant::surgery::SurgeryError>(())
/// ```
pub fn nearest_circulant(
    linear: &Linear,
    bias: BiasKind,
) -> Result<Nearest<SpectralCirculant1d>, SurgeryError> {
    let weight = linear.weight.val();
    let ([d_in, d_out], device) = (weight.dims(), weight.device());
    let bias = if linear.bias.is_some() {
        bias
    } else {
        BiasKind::None
    };
    let config = SpectralCirculant1dConfig::new(d_in)
        .with_d_out(Some(d_out))
        .with_bias(bias);
    let mut layer = config.try_init(&device)?;
    let values = finite(to_host(weight.clone()))?;
    let filter = mean_of_wrapped_diagonals(&values, [d_in, d_out]);
    let mut coordinates = vec![0.0; filter.len()];
    let transform = &layer.operator().plans::<f64>().filters;
    transform
        .analyse(&filter, &mut coordinates)
        .expect("without a mask there are as many coordinates as numbers in the filter");
    let length = filter.len();
    layer.coordinates = like(&weight, coordinates, [length]);
    let circulant = (0..d_in * d_out).map(|at| filter[diagonal(at, d_out, length)]);
    let relative_error = relative_distance(&values, circulant);
    let mut bias_error = 0.0;
    if let Some(dense) = &linear.bias {
        let dense = dense.val();
        let values = finite(to_host(dense.clone()))?;
        let kept = match bias {
            BiasKind::None => Vec::new(),
            BiasKind::Scalar => vec![values.iter().sum::<f64>() / values.len() as f64],
            BiasKind::Vector => values.clone(),
        };
        let repeated = (0..d_out).map(|t| match kept.len() {
            0 => 0.0,
            1 => kept[0],
            _ => kept[t],
        });
        bias_error = relative_distance(&values, repeated);
        let length = kept.len();
        layer.bias = (length > 0).then(|| like(&dense, kept, [length]));
    }
    Ok(Nearest {
        layer,
        relative_error,
        bias_error,
    })
}

/// The dense layer that computes the same as `layer`.
pub fn to_dense(layer: &SpectralCirculant1d) -> Linear {
    let coordinates = layer.coordinates.val();
    let mut filter = vec![0.0; layer.layout().length()];
    let transform = &layer.operator().plans::<f64>().filters;
    transform
        .synthesise(&to_host(coordinates.clone()), &mut filter)
        .expect("sizes of one layout");
    let (d_in, d_out, length) = (layer.d_in(), layer.d_out(), filter.len());
    let entries = (0..d_in * d_out).map(|at| filter[diagonal(at, d_out, length)]);
    let bias = layer.bias.as_ref().map(|bias| {
        let bias = bias.val();
        let values = to_host(bias.clone());
        let repeated = (0..d_out).map(|t| values[t % values.len()]).collect();
        like(&bias, repeated, [d_out])
    });
    Linear {
        weight: like(&coordinates, entries.collect(), [d_in, d_out]),
        bias,
    }
}

/// On which wrapped diagonal the entry at this place of a row-major matrix lies.
fn diagonal(at: usize, d_out: usize, length: usize) -> usize {
    let (s, t) = (at / d_out, at % d_out);
    (t + length - s) % length
}

pub(super) fn mean_of_wrapped_diagonals(values: &[f64], [d_in, d_out]: [usize; 2]) -> Vec<f64> {
    let length = d_in.max(d_out);
    let mut filter = vec![0.0; length];
    for (at, value) in values.iter().enumerate() {
        filter[diagonal(at, d_out, length)] += value;
    }
    let entries = d_in.min(d_out) as f64;
    filter.iter_mut().for_each(|w| *w /= entries);
    filter
}

/// `norm(a - b)/norm(a)`; 0 if both are zero.
pub(super) fn relative_distance(a: &[f64], b: impl Iterator<Item = f64>) -> f64 {
    let distance: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    let size: f64 = a.iter().map(|a| a * a).sum();
    if distance == 0.0 {
        0.0
    } else {
        (distance / size).sqrt()
    }
}

pub(super) fn finite(values: Vec<f64>) -> Result<Vec<f64>, SurgeryError> {
    if values.iter().all(|value| value.is_finite()) {
        Ok(values)
    } else {
        Err(SurgeryError::NotFinite {
            layer: "the layer".into(),
        })
    }
}

/// A parameter on the device of `source`, with its number type and as trainable as it.
pub(super) fn like<const S: usize, const D: usize>(
    source: &Tensor<S>,
    values: Vec<f64>,
    shape: [usize; D],
) -> Param<Tensor<D>> {
    let options = (&source.device(), source.dtype());
    let tensor = Tensor::from_data(TensorData::new(values, shape), options);
    let param = Param::from_tensor(tensor);
    if source.device().is_autodiff() {
        return param.set_require_grad(source.is_require_grad());
    }
    param
}
