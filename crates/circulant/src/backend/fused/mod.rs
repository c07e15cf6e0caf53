//! Operations around a circulant layer that stock Burn has only in many small pieces: draws from a Gaussian
//! posterior, its KL, dense layers, tanh and cross-entropy, each one node with its own backward pass.
//!
//! They exist on the CPU backend Flex. The functions that users call ([`functions`](crate::functional),
//! [`bayes`](crate::bayes)) compose them of ordinary tensor operations on every other device; [`is_native`] decides.
//!
//! | operation | what it saves |
//! | --- | --- |
//! | [`FusedOps::low_rank_sample`], [`FusedOps::mean_field_sample`] | the noise |
//! | [`FusedOps::low_rank_kl`], [`FusedOps::mean_field_kl`] | all gradients, which cost little beside the value |
//! | [`FusedOps::linear`], [`FusedOps::convolution`] | their input, and behind an activation their output |
//! | [`FusedOps::circulant_readout`] | the spectrum of its input, and the hidden rows |
//! | [`FusedOps::circulant_cross_entropy`] | all gradients, made block by block with the value |
//! | [`FusedOps::tanh_saving`] | its output: Burn's own computes the tanh a second time |
//! | [`FusedOps::max_min`] | its input |
//! | [`FusedOps::cross_entropy_sum`] | softmax minus one-hot |
//!
//! Those of a transformer are in [`transformer`](super::transformer).

pub(super) mod dense;
mod fused_autodiff;
pub(super) mod fused_flex;
mod gaussian;
mod max_min;
mod plain;
mod readout;

use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, backend_extension};
use burn::tensor::{Device, Shape, Tensor, TensorData};
use circulant_kernels::{Activation, ByteScale, Convolution, NoiseKey, gather_bytes};

pub(crate) use self::plain::{
    PlainGaussian, PlainGradients, PlainMoments, PlainNoise, PlainTensors,
};
use crate::data::Labels;
use crate::operator::Operator;

/// The rows of a matrix that make up a batch, all of them when absent, and a class for each.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The matrix, when it is one of bytes; the tensor that comes along is empty then.
    pub bytes: Option<(Arc<Vec<u8>>, ByteScale)>,
    /// Which rows, in which order.
    pub rows: Option<Labels>,
    /// Their classes.
    pub labels: Labels,
}

/// The rows of a matrix of bytes at `rows`, as the numbers that they stand for, in the shape `shape`. Not differentiable.
///
/// # Panics
///
/// Panics if a row does not exist.
pub(crate) fn rows_of_bytes<const D: usize>(
    bytes: &[u8],
    rows: &[usize],
    scale: &ByteScale,
    shape: [usize; D],
    device: &Device,
) -> Tensor<D> {
    if is_native(device) {
        return Tensor::from_primitive::<burn::backend::Flex>(fused_flex::rows_of_bytes(
            bytes, rows, scale, shape,
        ));
    }
    let mut out = vec![0.0_f32; shape.iter().product()];
    gather_bytes(bytes, rows, scale, &mut out);
    Tensor::from_data(TensorData::new(out, shape), device)
}

/// Whether the operations of [`FusedOps`] exist on `device`.
pub fn is_native(device: &Device) -> bool {
    let inner = device.clone().inner();
    matches!(inner.as_dispatch(), burn::backend::DispatchDevice::Flex(_))
}

/// Fused operations of the CPU backend.
#[backend_extension(Flex, Autodiff)]
pub trait FusedOps: Backend {
    /// `mean + U(scale * xi) + sqrt(exp(2 log_deviation) + jitter) * zeta: [d]`, where the stream `key` gives
    /// first `xi: [r]`, then `zeta: [d]`.
    fn low_rank_sample(
        mean: FloatTensor<Self>,
        factor: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        log_deviation: FloatTensor<Self>,
        key: NoiseKey,
        jitter: f64,
    ) -> FloatTensor<Self>;

    /// `mean + exp(log_deviation) * zeta: [d]`.
    fn mean_field_sample(
        mean: FloatTensor<Self>,
        log_deviation: FloatTensor<Self>,
        key: NoiseKey,
    ) -> FloatTensor<Self>;

    /// `weight * KL(q || N(0, diag(prior_variance))): [1]`.
    fn low_rank_kl(
        mean: FloatTensor<Self>,
        factor: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        log_deviation: FloatTensor<Self>,
        prior_variance: FloatTensor<Self>,
        jitter: f64,
        weight: f64,
    ) -> FloatTensor<Self>;

    /// [`Self::low_rank_kl`] of a diagonal covariance.
    fn mean_field_kl(
        mean: FloatTensor<Self>,
        log_deviation: FloatTensor<Self>,
        prior_variance: FloatTensor<Self>,
        weight: f64,
    ) -> FloatTensor<Self>;

    /// `act(x W + b)` of `x: [..., inputs]`, `W: [inputs, outputs]` and `b: [outputs]`.
    fn linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self>;

    /// `act(x (*) W + b)` of images `x: [batch, C_in, H, W]`, with zero padding to the same size.
    fn convolution(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        convolution: Convolution,
        activation: Activation,
    ) -> FloatTensor<Self>;

    /// `act(K x + b) W + c` for every filter. Elements: `x` is `[batch, C_in*H*W]`, `coordinates` `[filters, d_eff]`,
    /// `bias` one number per filter and output channel or output element, `weight` `[filters, C_out*H*W, classes]`,
    /// `constant` `[filters, classes]`. The output `[filters, batch, classes]` gets the shape `shape`.
    fn circulant_readout(
        x: FloatTensor<Self>,
        coordinates: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        constant: FloatTensor<Self>,
        operator: Operator,
        shape: Shape,
    ) -> FloatTensor<Self>;

    /// `-sum log softmax(act(K x + b) W + c)[label]: [1]` of one filter. The tensors are those of
    /// [`Self::circulant_readout`]; `x` has no gradient.
    fn circulant_cross_entropy(
        x: FloatTensor<Self>,
        coordinates: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        constant: FloatTensor<Self>,
        operator: Operator,
        selection: Selection,
    ) -> FloatTensor<Self>;

    /// `tanh(x)`.
    fn tanh_saving(x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// The larger values of the pairs that the halves of an axis make, then the smaller ones.
    fn max_min(x: FloatTensor<Self>, axis: usize) -> FloatTensor<Self>;

    /// `-sum_i log softmax(logits_i)[label_i]: [1]` of `logits: [rows, classes]`.
    fn cross_entropy_sum(logits: FloatTensor<Self>, labels: Labels) -> FloatTensor<Self>;

    /// The entries of the first dimension at `rows`. Not differentiable.
    fn select_rows(x: FloatTensor<Self>, rows: Labels) -> FloatTensor<Self>;
}
