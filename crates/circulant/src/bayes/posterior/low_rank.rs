//! `q(a) = N(mu, U diag(lambda^2) U^T + diag(sigma^2) + eps I)`.
//!
//! A sample is `a = mu + U(lambda * xi) + sqrt(sigma^2 + eps) * zeta`: the jitter `eps` is in the sample and in the
//! density. With `D = sigma^2 + eps` and `M = I_r + (U lambda)^T D^{-1} (U lambda)`,
//! `KL = 1/2 [sum (D + rowsq(U lambda) + mu^2)/tau^2 - d + sum log tau^2 - sum log D - log det M]`.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use circulant_kernels::{LowRank, NoiseKey, standard_normal};

use super::{FromNormals, Posterior, constant, map};
use crate::bayes::gaussian;
use crate::nn::{parameter, to_host};

/// The rank unless another is asked for.
pub const RANK: usize = 8;
/// `eps`: keeps the covariance well away from singular, and is far below any posterior variance that matters.
pub const JITTER: f64 = 1e-6;

/// A Gaussian with a low-rank plus diagonal covariance.
#[derive(Module, Debug)]
pub struct LowRankGaussian {
    /// `mu: [d]`.
    pub mean: Param<Tensor<1>>,
    /// `U: [d, r]`.
    pub factor: Param<Tensor<2>>,
    /// `lambda: [r]`, of either sign.
    pub scale: Param<Tensor<1>>,
    /// `ln sigma: [d]`.
    pub log_deviation: Param<Tensor<1>>,
    jitter: f64,
}

impl LowRankGaussian {
    /// Starts at `mean` with the given deviation: the diagonal and the low-rank part each add `deviation^2` to the
    /// variance of a coordinate. `key` draws the directions `U`, which must differ for their scales to learn
    /// different things.
    pub fn new(
        mean: Vec<f64>,
        rank: usize,
        deviation: f64,
        jitter: f64,
        key: NoiseKey,
        device: &Device,
    ) -> Self {
        let count = mean.len();
        let mut factor = vec![0.0; count * rank];
        standard_normal(key, &mut factor);
        let unit = (rank as f64).sqrt().recip();
        factor.iter_mut().for_each(|value| *value *= unit);
        Self {
            mean: parameter(mean, [count], device),
            factor: parameter(factor, [count, rank], device),
            scale: constant(deviation, rank, device),
            log_deviation: constant(deviation.ln(), count, device),
            jitter,
        }
    }

    /// The distribution of the values times a positive factor.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        Self {
            mean: map(&self.mean, |x| x * factor),
            factor: self.factor.clone(),
            scale: map(&self.scale, |x| x * factor),
            log_deviation: map(&self.log_deviation, |x| x + factor.ln()),
            jitter: self.jitter * factor * factor,
        }
    }

    /// The rank `r`.
    pub fn rank(&self) -> usize {
        self.scale.shape()[0]
    }

    /// `eps`.
    pub fn jitter(&self) -> f64 {
        self.jitter
    }
}

impl FromNormals for LowRankGaussian {
    fn normals(&self) -> usize {
        self.rank() + self.coordinates()
    }

    fn sample_of(&self, normals: Option<Tensor<1>>) -> Tensor<1> {
        gaussian::low_rank_sample_of(
            self.mean.val(),
            self.factor.val(),
            self.scale.val(),
            self.log_deviation.val(),
            normals.expect("a number per direction and coordinate"),
            self.jitter,
        )
    }
}

impl Posterior for LowRankGaussian {
    fn mean(&self) -> Tensor<1> {
        self.mean.val()
    }

    fn sample(&self, key: NoiseKey) -> Tensor<1> {
        gaussian::low_rank_sample(
            self.mean.val(),
            self.factor.val(),
            self.scale.val(),
            self.log_deviation.val(),
            key,
            self.jitter,
        )
    }

    fn kl(&self, prior_variance: Tensor<1>, weight: f64) -> Tensor<1> {
        gaussian::low_rank_kl(
            self.mean.val(),
            self.factor.val(),
            self.scale.val(),
            self.log_deviation.val(),
            prior_variance,
            self.jitter,
            weight,
        )
    }

    fn entropy(&self) -> f64 {
        let (mean, factor) = (to_host(self.mean.val()), to_host(self.factor.val()));
        let (scale, log_deviation) = (to_host(self.scale.val()), to_host(self.log_deviation.val()));
        LowRank::new(&mean, &factor, &scale, &log_deviation, self.jitter)
            .expect("the sizes were made together")
            .entropy()
    }
}
