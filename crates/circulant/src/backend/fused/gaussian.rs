//! Gaussian posteriors on the CPU: samples and the KL, with what their backward passes need.

use burn::backend::TensorMetadata;
use burn::tensor::{DType, Shape};
use burn_flex::FlexTensor;
use circulant_kernels::{
    AdamSettings, KlGradients, LowRank, NoiseKey, SampleGradients, standard_normal,
};

use super::fused_flex::{finish, like, scalar, zeros_like};
use crate::backend::buffers::Buffer;
use crate::backend::circulant_flex::{Native, numbers, valid, with_native};
use crate::backend::optimizers::adam;

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

    /// Numbers of a sample's noise.
    pub(super) fn noise_len(&self) -> usize {
        self.rank() + self.mean.shape().num_elements()
    }

    /// Its parameters, in the order of [`KeptGradients::parts`].
    pub(super) fn parts(&self) -> Vec<&FlexTensor> {
        parts(&self.mean, &self.low_rank, &self.log_deviation)
    }

    /// The Gaussian of other values.
    fn with_parts(&self, parts: impl IntoIterator<Item = FlexTensor>) -> Self {
        let mut parts = parts.into_iter();
        let mut next = || parts.next().expect("one for every parameter");
        Self {
            mean: next(),
            low_rank: self.low_rank.as_ref().map(|_| (next(), next())),
            log_deviation: next(),
            jitter: self.jitter,
        }
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

fn parts<'a>(
    mean: &'a FlexTensor,
    low_rank: &'a Option<(FlexTensor, FlexTensor)>,
    log_deviation: &'a FlexTensor,
) -> Vec<&'a FlexTensor> {
    let low_rank = low_rank.iter().flat_map(|(factor, scale)| [factor, scale]);
    [mean]
        .into_iter()
        .chain(low_rank)
        .chain([log_deviation])
        .collect()
}

fn noise_typed<T: Native>(key: NoiseKey, count: usize) -> KeptNoise {
    let mut noise = Buffer::<T>::any(count);
    standard_normal(key, noise.as_mut());
    KeptNoise(noise.into_tensor(Shape::from(vec![count])))
}

/// The `count` values of a sample's noise.
pub(super) fn noise(dtype: DType, key: NoiseKey, count: usize) -> KeptNoise {
    with_native!(dtype, noise_typed(key, count))
}

fn sample_at_typed<T: Native>(q: &Gaussian, noise: &KeptNoise) -> FlexTensor {
    let (mut out, shape) = like::<T>(&q.mean);
    let (xi, zeta) = numbers::<T>(&noise.0, "the noise").split_at(q.rank());
    valid(q.view::<T>().sample_into(xi, zeta, out.as_mut()));
    out.into_tensor(shape)
}

/// The sample that belongs to a noise.
pub(super) fn sample_at(q: &Gaussian, noise: &KeptNoise) -> FlexTensor {
    with_native!(q.mean.dtype(), sample_at_typed(q, noise))
}

pub(super) fn sample(q: &Gaussian, key: NoiseKey) -> (FlexTensor, KeptNoise) {
    let noise = noise(q.mean.dtype(), key, q.noise_len());
    (sample_at(q, &noise), noise)
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

/// All gradients of a weighted KL.
#[derive(Debug, Clone)]
pub(super) struct KeptGradients {
    pub(super) mean: FlexTensor,
    pub(super) low_rank: Option<(FlexTensor, FlexTensor)>,
    pub(super) log_deviation: FlexTensor,
    /// Only if asked for: a fixed prior needs none.
    pub(super) prior_variance: Option<FlexTensor>,
}

impl KeptGradients {
    fn parts(&self) -> Vec<&FlexTensor> {
        parts(&self.mean, &self.low_rank, &self.log_deviation)
    }
}

/// Adam's moments, both of every parameter of a Gaussian.
#[derive(Debug, Clone)]
pub(super) struct Moments(pub(super) Vec<[FlexTensor; 2]>);

impl Moments {
    /// Those before the first step.
    pub(super) fn zero(q: &Gaussian) -> Self {
        let zeros = |part: &FlexTensor| [zeros_like(part), zeros_like(part)];
        Self(q.parts().into_iter().map(zeros).collect())
    }
}

/// The Gaussian and the moments after a step of Adam.
pub(super) fn adam_step(
    q: &Gaussian,
    gradients: &KeptGradients,
    moments: &Moments,
    settings: AdamSettings,
) -> (Gaussian, Moments) {
    let parts = q.parts().into_iter().zip(gradients.parts());
    let step = |((part, gradient), [first, second]): ((_, _), &[FlexTensor; 2])| {
        let (part, first, second) = adam([part, gradient, first, second], settings);
        (part, [first, second])
    };
    let (parts, moments): (Vec<_>, _) = parts.zip(&moments.0).map(step).unzip();
    (q.with_parts(parts), Moments(moments))
}

fn kl_typed<T: Native>(q: &Gaussian, prior: &FlexTensor, weight: f64) -> FlexTensor {
    let prior = numbers(prior, "the prior variance");
    scalar::<T>(weight * valid(q.view::<T>().kl(prior)))
}

pub(super) fn kl(q: &Gaussian, prior: FlexTensor, weight: f64) -> FlexTensor {
    let prior = prior.to_contiguous();
    with_native!(q.mean.dtype(), kl_typed(q, &prior, weight))
}

/// The KL times `weight`, and its gradients; `samples` may have theirs added, each from its noise and the gradient of its values.
fn kl_keeping_typed<T: Native>(
    q: &Gaussian,
    prior: &FlexTensor,
    weight: f64,
    of_prior: bool,
    samples: &Samples<'_>,
) -> (f64, KeptGradients) {
    let (mut mean, mut log_deviation) = (like::<T>(&q.mean), like::<T>(&q.log_deviation));
    let mut prior_variance = of_prior.then(|| like::<T>(prior));
    let mut low_rank = q
        .low_rank
        .as_ref()
        .map(|(factor, scale)| (like::<T>(factor), like::<T>(scale)));
    let (factor, scale) = match &mut low_rank {
        None => (&mut [][..], &mut [][..]),
        Some((factor, scale)) => (factor.0.as_mut(), scale.0.as_mut()),
    };
    let view = q.view::<T>();
    let gradients = KlGradients {
        mean: mean.0.as_mut(),
        factor: &mut *factor,
        scale: &mut *scale,
        log_deviation: log_deviation.0.as_mut(),
        prior_variance: prior_variance.as_mut().map(|(buffer, _)| buffer.as_mut()),
    };
    let prior = numbers(prior, "the prior variance");
    let value = valid(view.kl_with_gradients(prior, weight, gradients));
    for (noise, grad) in &samples.pairs {
        let (xi, zeta) = numbers::<T>(&noise.0, "the noise").split_at(q.rank());
        let sums = KlGradients {
            mean: mean.0.as_mut(),
            factor: &mut *factor,
            scale: &mut *scale,
            log_deviation: log_deviation.0.as_mut(),
            prior_variance: None,
        };
        let grad = numbers(grad, "the gradient");
        valid(view.add_sample_gradients(xi, zeta, grad, samples.share, sums));
    }
    let kept = KeptGradients {
        mean: finish(mean),
        low_rank: low_rank.map(|(factor, scale)| (finish(factor), finish(scale))),
        log_deviation: finish(log_deviation),
        prior_variance: prior_variance.map(finish),
    };
    (value, kept)
}

/// Samples whose gradients are added to those of the KL.
#[derive(Default)]
pub(super) struct Samples<'a> {
    /// The noise of each, and the gradient of its values, contiguous.
    pub(super) pairs: Vec<(&'a KeptNoise, &'a FlexTensor)>,
    /// What the gradients are multiplied by.
    pub(super) share: f64,
}

pub(super) fn kl_keeping(
    q: &Gaussian,
    prior: FlexTensor,
    weight: f64,
    of_prior: bool,
    samples: &Samples<'_>,
) -> (f64, KeptGradients) {
    let prior = prior.to_contiguous();
    with_native!(
        q.mean.dtype(),
        kl_keeping_typed(q, &prior, weight, of_prior, samples)
    )
}
