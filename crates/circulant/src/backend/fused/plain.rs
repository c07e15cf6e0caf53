//! Gaussian posteriors off the tape: draws, gradients by their closed formulas, and steps of Adam. Nothing is recorded, so
//! several threads may work on several posteriors at once.

use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{DType, Tensor};
use burn_flex::FlexTensor;
use circulant_kernels::{AdamSettings, NoiseKey};

use super::gaussian::{
    Gaussian, KeptGradients, KeptNoise, Moments, Samples, adam_step, kl_keeping, noise, sample_at,
};
use super::is_native;
use crate::backend::buffers::Buffer;
use crate::backend::circulant_flex::{Native, numbers, with_native};

/// A Gaussian posterior without its history.
#[derive(Debug)]
pub(crate) struct PlainGaussian(Box<Gaussian>);

/// The noise of a draw.
#[derive(Debug)]
pub(crate) struct PlainNoise(KeptNoise);

/// The gradients of a posterior's parameters.
#[derive(Debug)]
pub(crate) struct PlainGradients(Box<KeptGradients>);

/// Adam's moments of a posterior's parameters.
#[derive(Debug, Clone)]
pub(crate) struct PlainMoments(Moments);

/// A tensor for every parameter of a posterior.
#[derive(Debug)]
pub(crate) struct PlainTensors {
    pub(crate) mean: Tensor<1>,
    /// Of `U` and `lambda`.
    pub(crate) low_rank: Option<(Tensor<2>, Tensor<1>)>,
    pub(crate) log_deviation: Tensor<1>,
}

impl PlainTensors {
    fn new(
        mean: FlexTensor,
        low_rank: Option<(FlexTensor, FlexTensor)>,
        log_deviation: FlexTensor,
    ) -> Self {
        Self {
            mean: Tensor::from_primitive::<Flex>(mean),
            low_rank: low_rank.map(|(factor, scale)| {
                let scale = Tensor::from_primitive::<Flex>(scale);
                (Tensor::from_primitive::<Flex>(factor), scale)
            }),
            log_deviation: Tensor::from_primitive::<Flex>(log_deviation),
        }
    }
}

impl PlainGradients {
    pub(crate) fn into_tensors(self) -> PlainTensors {
        PlainTensors::new(self.0.mean, self.0.low_rank, self.0.log_deviation)
    }
}

impl PlainGaussian {
    /// `None` on devices without the native kernels.
    pub(crate) fn new(
        mean: Tensor<1>,
        low_rank: Option<(Tensor<2>, Tensor<1>)>,
        log_deviation: Tensor<1>,
        jitter: f64,
    ) -> Option<Self> {
        is_native(&mean.device()).then(|| {
            let low_rank = low_rank.map(|(factor, scale)| (native(factor), native(scale)));
            let (mean, log_deviation) = (native(mean), native(log_deviation));
            let q = Gaussian::new(mean, low_rank, log_deviation, jitter);
            Self(Box::new(q))
        })
    }

    pub(crate) fn tensors(&self) -> PlainTensors {
        let q = &self.0;
        PlainTensors::new(q.mean.clone(), q.low_rank.clone(), q.log_deviation.clone())
    }

    pub(crate) fn noise(&self, key: NoiseKey) -> PlainNoise {
        PlainNoise(noise(self.0.mean.dtype(), key, self.0.noise_len()))
    }

    /// The draw that belongs to a noise.
    pub(crate) fn draw(&self, noise: &PlainNoise) -> Tensor<1> {
        Tensor::from_primitive::<Flex>(sample_at(&self.0, &noise.0))
    }

    /// `weight*KL`, and the gradients of that plus `share` times what the gradients of the draws' values leave at the parameters.
    pub(crate) fn gradients(
        &self,
        prior_variance: Tensor<1>,
        weight: f64,
        draws: &[PlainNoise],
        of_draws: Vec<Tensor<1>>,
        share: f64,
    ) -> (f64, PlainGradients) {
        let of_draws = of_draws
            .into_iter()
            .map(|grad| native(grad).to_contiguous());
        let of_draws: Vec<FlexTensor> = of_draws.collect();
        let samples = Samples {
            pairs: draws.iter().map(|noise| &noise.0).zip(&of_draws).collect(),
            share,
        };
        let prior = native(prior_variance);
        let (kl, kept) = kl_keeping(&self.0, prior, weight, false, &samples);
        (kl, PlainGradients(Box::new(kept)))
    }

    /// The posterior and the moments after a step of Adam.
    pub(crate) fn adam(
        &self,
        gradients: &PlainGradients,
        moments: &PlainMoments,
        settings: AdamSettings,
    ) -> (Self, PlainMoments) {
        let (q, moments) = adam_step(&self.0, &gradients.0, &moments.0, settings);
        (Self(Box::new(q)), PlainMoments(moments))
    }
}

impl PlainMoments {
    /// Those before the first step.
    pub(crate) fn zero(q: &PlainGaussian) -> Self {
        Self(Moments::zero(&q.0))
    }

    /// All values, one after the other.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        for tensor in self.0.0.iter().flatten() {
            with_native!(tensor.dtype(), write_typed(tensor, bytes));
        }
    }

    /// Takes what [`Self::write`] wrote for a posterior like `q` off the front of `bytes`; `None` if there is too little.
    pub(crate) fn read(q: &PlainGaussian, bytes: &mut &[u8]) -> Option<Self> {
        let mut moments = Moments::zero(&q.0);
        for tensor in moments.0.iter_mut().flatten() {
            *tensor = with_native!(tensor.dtype(), read_typed(tensor, bytes))?;
        }
        Some(Self(moments))
    }
}

fn write_typed<T: Native>(tensor: &FlexTensor, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(bytemuck::cast_slice(numbers::<T>(tensor, "a moment")));
}

/// The tensor of the same shape.
fn read_typed<T: Native>(like: &FlexTensor, bytes: &mut &[u8]) -> Option<FlexTensor> {
    let shape = like.shape();
    let mut buffer = Buffer::<T>::any(shape.num_elements());
    let into: &mut [u8] = bytemuck::cast_slice_mut(buffer.as_mut());
    into.copy_from_slice(bytes.split_off(..into.len())?);
    Some(buffer.into_tensor(shape))
}

/// The tensor of the backend, without its history.
fn native<const D: usize>(tensor: Tensor<D>) -> FlexTensor {
    let tensor = if tensor.device().is_autodiff() {
        tensor.inner()
    } else {
        tensor
    };
    tensor
        .try_into_primitive::<Flex>()
        .expect("the device was asked before")
}
