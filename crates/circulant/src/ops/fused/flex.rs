//! The fused operations on the CPU, for f32 and f64.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{DType, ElementConversion, Shape, TensorData};
use burn_flex::FlexTensor;
use circulant_kernels::{
    KlGradients, LowRank, NoiseKey, SampleGradients, cross_entropy, gather_rows, standard_normal,
    tanh_backward, tanh_into,
};

use super::{FusedOps, Labels};
use crate::ops::buffers::Buffer;
use crate::ops::flex::{Native, numbers, valid, with_native};

/// The parameters of a Gaussian, contiguous; `low_rank` is `U` and `lambda`.
#[derive(Debug, Clone)]
pub(super) struct Gaussian {
    pub(super) mean: FlexTensor,
    pub(super) low_rank: Option<(FlexTensor, FlexTensor)>,
    pub(super) log_deviation: FlexTensor,
    pub(super) jitter: f64,
}

/// The noise of a sample, kept for the backward pass: `xi`, then `zeta`.
#[derive(Debug, Clone)]
pub(super) struct KeptNoise(FlexTensor);

impl Gaussian {
    pub(super) fn new(
        mean: FlexTensor,
        low_rank: Option<(FlexTensor, FlexTensor)>,
        log_deviation: FlexTensor,
        jitter: f64,
    ) -> Self {
        Self {
            mean: mean.to_contiguous(),
            low_rank: low_rank
                .map(|(factor, scale)| (factor.to_contiguous(), scale.to_contiguous())),
            log_deviation: log_deviation.to_contiguous(),
            jitter,
        }
    }

    fn rank(&self) -> usize {
        self.low_rank
            .as_ref()
            .map_or(0, |(_, scale)| scale.shape().num_elements())
    }

    fn view<T: Native>(&self) -> LowRank<'_, T> {
        let (factor, scale) = match &self.low_rank {
            None => (&[][..], &[][..]),
            Some((factor, scale)) => (numbers(factor, "U"), numbers(scale, "lambda")),
        };
        let mean = numbers(&self.mean, "the mean");
        let log_deviation = numbers(&self.log_deviation, "the log deviation");
        valid(LowRank::new(
            mean,
            factor,
            scale,
            log_deviation,
            self.jitter,
        ))
    }
}

fn scalar<T: Native>(value: f64) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(vec![value.elem::<T>()], [1]))
}

/// An uninitialised buffer with the shape of `tensor`.
fn like<T: Native>(tensor: &FlexTensor) -> (Buffer<T>, Shape) {
    let shape = tensor.shape();
    (Buffer::any(shape.num_elements()), shape)
}

fn finish<T: Native>((buffer, shape): (Buffer<T>, Shape)) -> FlexTensor {
    buffer.into_tensor(shape)
}

fn sample_typed<T: Native>(q: &Gaussian, key: NoiseKey) -> (FlexTensor, KeptNoise) {
    let (mut out, shape) = like::<T>(&q.mean);
    let count = q.rank() + shape.num_elements();
    let mut noise = Buffer::<T>::any(count);
    standard_normal(key, noise.as_mut());
    let (xi, zeta) = noise.as_mut().split_at(q.rank());
    valid(q.view::<T>().sample_into(xi, zeta, out.as_mut()));
    let noise = noise.into_tensor(Shape::from(vec![count]));
    (out.into_tensor(shape), KeptNoise(noise))
}

pub(super) fn sample(q: &Gaussian, key: NoiseKey) -> (FlexTensor, KeptNoise) {
    with_native!(q.mean.dtype(), sample_typed(q, key))
}

/// Gradients of `log_deviation`, then `U` and `lambda` if there are any; that of the mean is `grad`.
fn sample_backward_typed<T: Native>(
    q: &Gaussian,
    noise: &KeptNoise,
    grad: &FlexTensor,
) -> (FlexTensor, Option<(FlexTensor, FlexTensor)>) {
    let (xi, zeta) = numbers::<T>(&noise.0, "the noise").split_at(q.rank());
    let mut log_deviation = like::<T>(&q.log_deviation);
    let mut low_rank = q
        .low_rank
        .as_ref()
        .map(|(factor, scale)| (like::<T>(factor), like::<T>(scale)));
    let (factor, scale) = match &mut low_rank {
        None => (&mut [][..], &mut [][..]),
        Some((factor, scale)) => (factor.0.as_mut(), scale.0.as_mut()),
    };
    let gradients = SampleGradients {
        factor,
        scale,
        log_deviation: log_deviation.0.as_mut(),
    };
    let grad = numbers(grad, "the gradient");
    valid(q.view::<T>().sample_backward(xi, zeta, grad, gradients));
    let low_rank = low_rank.map(|(factor, scale)| (finish(factor), finish(scale)));
    (finish(log_deviation), low_rank)
}

pub(super) fn sample_backward(
    q: &Gaussian,
    noise: &KeptNoise,
    grad: &FlexTensor,
) -> (FlexTensor, Option<(FlexTensor, FlexTensor)>) {
    let grad = grad.to_contiguous();
    with_native!(grad.dtype(), sample_backward_typed(q, noise, &grad))
}

/// All gradients of a KL.
#[derive(Debug, Clone)]
pub(super) struct KeptGradients {
    pub(super) mean: FlexTensor,
    pub(super) low_rank: Option<(FlexTensor, FlexTensor)>,
    pub(super) log_deviation: FlexTensor,
    pub(super) prior_variance: FlexTensor,
}

fn kl_typed<T: Native>(q: &Gaussian, prior: &FlexTensor, weight: f64) -> FlexTensor {
    let prior = numbers(prior, "the prior variance");
    scalar::<T>(weight * valid(q.view::<T>().kl(prior)))
}

fn kl(q: &Gaussian, prior: FlexTensor, weight: f64) -> FlexTensor {
    let prior = prior.to_contiguous();
    with_native!(q.mean.dtype(), kl_typed(q, &prior, weight))
}

fn kl_keeping_typed<T: Native>(
    q: &Gaussian,
    prior: &FlexTensor,
    weight: f64,
) -> (FlexTensor, KeptGradients) {
    let (mut mean, mut log_deviation) = (like::<T>(&q.mean), like::<T>(&q.log_deviation));
    let mut prior_variance = like::<T>(prior);
    let mut low_rank = q
        .low_rank
        .as_ref()
        .map(|(factor, scale)| (like::<T>(factor), like::<T>(scale)));
    let (factor, scale) = match &mut low_rank {
        None => (&mut [][..], &mut [][..]),
        Some((factor, scale)) => (factor.0.as_mut(), scale.0.as_mut()),
    };
    let gradients = KlGradients {
        mean: mean.0.as_mut(),
        factor,
        scale,
        log_deviation: log_deviation.0.as_mut(),
        prior_variance: Some(prior_variance.0.as_mut()),
    };
    let prior = numbers(prior, "the prior variance");
    let value = valid(q.view::<T>().kl_with_gradients(prior, gradients));
    let kept = KeptGradients {
        mean: finish(mean),
        low_rank: low_rank.map(|(factor, scale)| (finish(factor), finish(scale))),
        log_deviation: finish(log_deviation),
        prior_variance: finish(prior_variance),
    };
    (scalar::<T>(weight * value), kept)
}

pub(super) fn kl_keeping(
    q: &Gaussian,
    prior: FlexTensor,
    weight: f64,
) -> (FlexTensor, KeptGradients) {
    let prior = prior.to_contiguous();
    with_native!(q.mean.dtype(), kl_keeping_typed(q, &prior, weight))
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
    let labels: Vec<i64> = labels.0.iter().map(|&label| label as i64).collect();
    let logits = numbers::<T>(logits, "the logits");
    let value = valid(cross_entropy(logits, classes, &labels, slot));
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

    fn tanh_saving(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let x = x.to_contiguous();
        with_native!(x.dtype(), tanh_typed(&x))
    }

    fn cross_entropy_sum(logits: FloatTensor<Self>, labels: Labels) -> FloatTensor<Self> {
        cross_entropy_keeping(logits, &labels, false).0
    }

    fn select_rows(x: FloatTensor<Self>, rows: Labels) -> FloatTensor<Self> {
        let x = x.to_contiguous();
        with_native!(x.dtype(), select_rows_typed(&x, &rows.0))
    }
}
