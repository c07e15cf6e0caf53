//! The fused operations on the CPU, for f32 and f64.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{DType, ElementConversion, Shape, TensorData};
use burn_flex::FlexTensor;
use circulant_kernels::{
    Activation, ByteScale, Convolution, NoiseKey, cross_entropy, gather_bytes, gather_rows,
    tanh_backward, tanh_into,
};

use super::dense::{Conv, Linear};
use super::gaussian::{Gaussian, kl, sample};
use super::readout::{self, ReadoutLayer};
use super::{FusedOps, Labels, Selection, max_min};
use crate::backend::buffers::Buffer;
use crate::backend::circulant_flex::{Native, numbers, valid, with_native};
use crate::operator::Operator;

pub(super) fn scalar<T: Native>(value: f64) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(vec![value.elem::<T>()], [1]))
}

/// A number of the type of `tensor`.
pub(super) fn scalar_like(tensor: &FlexTensor, value: f64) -> FlexTensor {
    with_native!(tensor.dtype(), scalar(value))
}

/// An uninitialised buffer with the shape of `tensor`.
pub(in crate::backend) fn like<T: Native>(tensor: &FlexTensor) -> (Buffer<T>, Shape) {
    let shape = tensor.shape();
    (Buffer::any(shape.num_elements()), shape)
}

fn zeros_typed<T: Native>(tensor: &FlexTensor) -> FlexTensor {
    let shape = tensor.shape();
    Buffer::<T>::zeroed(shape.num_elements()).into_tensor(shape)
}

pub(super) fn zeros_like(tensor: &FlexTensor) -> FlexTensor {
    with_native!(tensor.dtype(), zeros_typed(tensor))
}

pub(in crate::backend) fn finish<T: Native>((buffer, shape): (Buffer<T>, Shape)) -> FlexTensor {
    buffer.into_tensor(shape)
}

fn tanh_typed<T: Native>(x: &FlexTensor) -> FlexTensor {
    let mut y = like::<T>(x);
    valid(tanh_into(numbers(x, "x"), y.0.as_mut()));
    finish(y)
}

fn tanh_backward_typed<T: Native>(y: &FlexTensor, grad: &FlexTensor) -> FlexTensor {
    let mut out = like::<T>(y);
    let (y, grad) = (numbers(y, "the output"), numbers(grad, "the gradient"));
    valid(tanh_backward(y, grad, out.0.as_mut()));
    finish(out)
}

pub(super) fn tanh_gradient(y: &FlexTensor, grad: FlexTensor) -> FlexTensor {
    let grad = grad.to_contiguous();
    with_native!(y.dtype(), tanh_backward_typed(y, &grad))
}

fn cross_entropy_typed<T: Native>(
    logits: &FlexTensor,
    labels: &Labels,
    keep: bool,
) -> (FlexTensor, Option<FlexTensor>) {
    let mut gradient = keep.then(|| like::<T>(logits));
    let slot = gradient.as_mut().map(|(buffer, _)| buffer.as_mut());
    let shape = logits.shape();
    let classes = shape.to_vec().last().copied().unwrap_or(1);
    let logits = numbers::<T>(logits, "the logits");
    let value = valid(cross_entropy(logits, classes, &labels.as_i64(), slot));
    (scalar::<T>(value), gradient.map(finish))
}

pub(super) fn cross_entropy_keeping(
    logits: FlexTensor,
    labels: &Labels,
    keep: bool,
) -> (FlexTensor, Option<FlexTensor>) {
    let logits = logits.to_contiguous();
    with_native!(logits.dtype(), cross_entropy_typed(&logits, labels, keep))
}

fn select_rows_typed<T: Native>(x: &FlexTensor, rows: &[usize]) -> FlexTensor {
    let mut shape = x.shape().to_vec();
    let row: usize = shape[1..].iter().product();
    shape[0] = rows.len();
    let mut out = Buffer::<T>::any(row * rows.len());
    gather_rows(numbers(x, "x"), rows, out.as_mut());
    out.into_tensor(Shape::from(shape))
}

pub(super) fn rows_of_bytes<const D: usize>(
    bytes: &[u8],
    rows: &[usize],
    scale: &ByteScale,
    shape: [usize; D],
) -> FlexTensor {
    let mut out = Buffer::<f32>::any(shape.iter().product());
    gather_bytes(bytes, rows, scale, out.as_mut());
    out.into_tensor(Shape::from(shape.to_vec()))
}

impl FusedOps for Flex {
    fn low_rank_sample(
        mean: FloatTensor<Self>,
        factor: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        log_deviation: FloatTensor<Self>,
        key: NoiseKey,
        jitter: f64,
    ) -> FloatTensor<Self> {
        let q = Gaussian::new(mean, Some((factor, scale)), log_deviation, jitter);
        sample(&q, key).0
    }

    fn mean_field_sample(
        mean: FloatTensor<Self>,
        log_deviation: FloatTensor<Self>,
        key: NoiseKey,
    ) -> FloatTensor<Self> {
        sample(&Gaussian::new(mean, None, log_deviation, 0.0), key).0
    }

    fn low_rank_kl(
        mean: FloatTensor<Self>,
        factor: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        log_deviation: FloatTensor<Self>,
        prior_variance: FloatTensor<Self>,
        jitter: f64,
        weight: f64,
    ) -> FloatTensor<Self> {
        let q = Gaussian::new(mean, Some((factor, scale)), log_deviation, jitter);
        kl(&q, prior_variance, weight)
    }

    fn mean_field_kl(
        mean: FloatTensor<Self>,
        log_deviation: FloatTensor<Self>,
        prior_variance: FloatTensor<Self>,
        weight: f64,
    ) -> FloatTensor<Self> {
        let q = Gaussian::new(mean, None, log_deviation, 0.0);
        kl(&q, prior_variance, weight)
    }

    fn linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self> {
        Linear::new(x, weight, bias, activation).forward()
    }

    fn convolution(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        convolution: Convolution,
        activation: Activation,
    ) -> FloatTensor<Self> {
        Conv::new(x, weight, bias, convolution, activation).forward()
    }

    fn circulant_readout(
        x: FloatTensor<Self>,
        coordinates: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        constant: FloatTensor<Self>,
        operator: Operator,
        shape: Shape,
    ) -> FloatTensor<Self> {
        let tensors = [x, coordinates, bias, weight, constant];
        ReadoutLayer::new(tensors, operator, shape).forward(false).0
    }

    fn circulant_cross_entropy(
        x: FloatTensor<Self>,
        coordinates: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        constant: FloatTensor<Self>,
        operator: Operator,
        selection: Selection,
    ) -> FloatTensor<Self> {
        let tensors = [x, coordinates, bias, weight, constant];
        readout::cross_entropy(tensors, operator, &selection, false).0
    }

    fn tanh_saving(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let x = x.to_contiguous();
        with_native!(x.dtype(), tanh_typed(&x))
    }

    fn max_min(x: FloatTensor<Self>, axis: usize) -> FloatTensor<Self> {
        max_min::sorted(&x.to_contiguous(), axis)
    }

    fn cross_entropy_sum(logits: FloatTensor<Self>, labels: Labels) -> FloatTensor<Self> {
        cross_entropy_keeping(logits, &labels, false).0
    }

    fn select_rows(x: FloatTensor<Self>, rows: Labels) -> FloatTensor<Self> {
        let x = x.to_contiguous();
        with_native!(x.dtype(), select_rows_typed(&x, &rows.0))
    }
}
