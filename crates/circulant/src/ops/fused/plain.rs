//! Gaussian posteriors off the tape: draws, and gradients by their closed formulas. Nothing is recorded, so several
//! threads may work on several posteriors at once.

use burn::backend::Flex;
use burn::tensor::{DType, Tensor};
use burn_flex::FlexTensor;
use circulant_kernels::NoiseKey;

use super::gaussian::{Gaussian, KeptNoise, Samples, kl_keeping, noise, sample_at};
use super::is_native;

/// A Gaussian posterior without its history.
#[derive(Debug)]
pub(crate) struct PlainGaussian(Box<Gaussian>);

/// The noise of a draw.
#[derive(Debug)]
pub(crate) struct PlainNoise(KeptNoise);

/// What the noise of a draw depends on: it can be made before the posterior is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoiseShape {
    dtype: DType,
    count: usize,
}

impl NoiseShape {
    pub(crate) fn noise(self, key: NoiseKey) -> PlainNoise {
        PlainNoise(noise(self.dtype, key, self.count))
    }
}

/// The gradients of a posterior's parameters.
#[derive(Debug)]
pub(crate) struct PlainGradients {
    pub(crate) mean: Tensor<1>,
    /// Of `U` and `lambda`.
    pub(crate) low_rank: Option<(Tensor<2>, Tensor<1>)>,
    pub(crate) log_deviation: Tensor<1>,
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

    pub(crate) fn noise_shape(&self) -> NoiseShape {
        NoiseShape {
            dtype: self.0.mean.dtype(),
            count: self.0.noise_len(),
        }
    }

    /// The draw that belongs to a noise.
    pub(crate) fn draw(&self, noise: &PlainNoise) -> Tensor<1> {
        Tensor::from_primitive::<Flex>(sample_at(&self.0, &noise.0))
    }

    /// `weight*KL`, and the gradients of that plus `share` times what the gradients of the draws' numbers leave at the parameters.
    pub(crate) fn gradients(
        &self,
        prior_variance: Tensor<1>,
        weight: f64,
        draws: Vec<(PlainNoise, Tensor<1>)>,
        share: f64,
    ) -> (f64, PlainGradients) {
        let pair = |(noise, grad): (PlainNoise, Tensor<1>)| (noise.0, native(grad).to_contiguous());
        let pairs: Vec<(KeptNoise, FlexTensor)> = draws.into_iter().map(pair).collect();
        let samples = Samples {
            pairs: &pairs,
            share,
        };
        let prior = native(prior_variance);
        let (kl, kept) = kl_keeping(&self.0, prior, weight, false, &samples);
        let gradients = PlainGradients {
            mean: Tensor::from_primitive::<Flex>(kept.mean),
            low_rank: kept.low_rank.map(|(factor, scale)| {
                let scale = Tensor::from_primitive::<Flex>(scale);
                (Tensor::from_primitive::<Flex>(factor), scale)
            }),
            log_deviation: Tensor::from_primitive::<Flex>(kept.log_deviation),
        };
        (kl, gradients)
    }
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
