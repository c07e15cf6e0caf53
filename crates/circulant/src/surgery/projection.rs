//! The matrix of circulant blocks nearest to a dense one, on the host.
//!
//! Matrices are `[in, out]`. Those of circulant blocks of length `b` are a subspace with the wrapped diagonals of the blocks as an
//! orthogonal basis; so the nearest one in the Frobenius norm has on each of them the mean of `W`: `w[o, c, k]` is the mean of the
//! entries of block `(o, c)` with `(t - s) mod b = k`. A block at the end that is cropped counts the entries that are there (zero where there
//! are none). One block as long as the larger side is the circulant matrix.

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::{Tensor, TensorData};

use super::SurgeryError;
use crate::nn::{BiasKind, to_host};

/// The filters `[C_out, C_in, b]` nearest to a matrix.
pub(super) struct Projection {
    pub(super) filters: Vec<f64>,
    pub(super) relative_error: f64,
}

impl Projection {
    pub(super) fn of(values: &[f64], [d_in, d_out]: [usize; 2], block: usize) -> Self {
        let channels_in = d_in.div_ceil(block);
        let tap = |at: usize| {
            let (row, column) = (at / d_out, at % d_out);
            let (c, o) = (row / block, column / block);
            let offset = (column % block + block - row % block) % block;
            (o * channels_in + c) * block + offset
        };
        let len = channels_in * d_out.div_ceil(block) * block;
        let (mut filters, mut counts) = (vec![0.0; len], vec![0_usize; len]);
        for (at, value) in values.iter().enumerate() {
            filters[tap(at)] += value;
            counts[tap(at)] += 1;
        }
        for (sum, count) in filters.iter_mut().zip(counts) {
            *sum /= count.max(1) as f64;
        }
        let nearest = (0..values.len()).map(|at| filters[tap(at)]);
        let relative_error = relative_distance(values, nearest);
        Self {
            filters,
            relative_error,
        }
    }
}

/// What a structured layer keeps of a bias.
pub(super) struct KeptBias {
    pub(super) kind: BiasKind,
    pub(super) values: Option<Param<Tensor<1>>>,
    /// Relative, 0 is exact.
    pub(super) error: f64,
}

impl KeptBias {
    /// A vector keeps all of the bias, a scalar its mean; a layer without a bias stays without one.
    pub(super) fn of(linear: &Linear, kind: BiasKind) -> Result<Self, SurgeryError> {
        let Some(dense) = &linear.bias else {
            return Ok(Self {
                kind: BiasKind::None,
                values: None,
                error: 0.0,
            });
        };
        let dense = dense.val();
        let values = finite(to_host(dense.clone()))?;
        let kept = match kind {
            BiasKind::None => Vec::new(),
            BiasKind::Scalar => vec![values.iter().sum::<f64>() / values.len() as f64],
            BiasKind::Vector => values.clone(),
        };
        let repeated = (0..values.len()).map(|t| match kept.len() {
            0 => 0.0,
            1 => kept[0],
            _ => kept[t],
        });
        let error = relative_distance(&values, repeated);
        let length = kept.len();
        Ok(Self {
            kind,
            values: (length > 0).then(|| like(&dense, kept, [length])),
            error,
        })
    }
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
