//! The point estimate: `-log p(mu) = 1/2 sum [mu^2/tau^2 + log(2 pi tau^2)]` in place of the KL makes the ELBO the
//! log joint density, so that its maximum is the MAP estimate.

use std::f64::consts::TAU;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use circulant_kernels::NoiseKey;

use super::{FromNormals, Posterior};
use crate::nn::parameter;

/// All mass at one point.
#[derive(Module, Debug)]
pub struct PointEstimate {
    /// `mu: [d]`.
    pub mean: Param<Tensor<1>>,
}

impl PointEstimate {
    /// Starts at `mean`.
    pub fn new(mean: Vec<f64>, device: &Device) -> Self {
        let count = mean.len();
        Self {
            mean: parameter(mean, [count], device),
        }
    }
}

impl FromNormals for PointEstimate {
    fn normals(&self) -> usize {
        0
    }

    fn sample_of(&self, _normals: Option<Tensor<1>>) -> Tensor<1> {
        self.mean.val()
    }
}

impl Posterior for PointEstimate {
    fn mean(&self) -> Tensor<1> {
        self.mean.val()
    }

    fn sample(&self, _key: NoiseKey) -> Tensor<1> {
        self.mean.val()
    }

    fn kl(&self, prior_variance: Tensor<1>, weight: f64) -> Tensor<1> {
        let mean = self.mean.val();
        // One variance for all values counts once per number.
        let repeats = mean.dims()[0] as f64 / prior_variance.dims()[0] as f64;
        let log_scale = prior_variance.clone().mul_scalar(TAU).log().sum();
        let quadratic = (mean.square() / prior_variance).sum();
        (quadratic + log_scale.mul_scalar(repeats)).mul_scalar(0.5 * weight)
    }

    /// Minus infinity: a point mass has no density.
    fn entropy(&self) -> f64 {
        f64::NEG_INFINITY
    }
}
