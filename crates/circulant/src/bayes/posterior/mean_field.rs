//! `q(a) = N(mu, diag(sigma^2))`: a sample is `mu + sigma * zeta`, and
//! `KL = 1/2 sum [(sigma^2 + mu^2)/tau^2 - 1 - log(sigma^2/tau^2)]`.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use circulant_kernels::{LowRank, NoiseKey};

use super::{FromNormals, Posterior, constant};
use crate::bayes::gaussian;
use crate::nn::{parameter, to_host};

/// A Gaussian with independent coordinates.
#[derive(Module, Debug)]
pub struct MeanFieldGaussian {
    /// `mu: [d]`.
    pub mean: Param<Tensor<1>>,
    /// `ln sigma: [d]`.
    pub log_deviation: Param<Tensor<1>>,
}

impl MeanFieldGaussian {
    /// Starts at `mean` with the given deviation.
    pub fn new(mean: Vec<f64>, deviation: f64, device: &Device) -> Self {
        let count = mean.len();
        Self {
            mean: parameter(mean, [count], device),
            log_deviation: constant(deviation.ln(), count, device),
        }
    }
}

impl FromNormals for MeanFieldGaussian {
    fn normals(&self) -> usize {
        self.coordinates()
    }

    fn sample_of(&self, normals: Option<Tensor<1>>) -> Tensor<1> {
        let zeta = normals.expect("a number per coordinate");
        gaussian::mean_field_sample_of(self.mean.val(), self.log_deviation.val(), zeta)
    }
}

impl Posterior for MeanFieldGaussian {
    fn mean(&self) -> Tensor<1> {
        self.mean.val()
    }

    fn sample(&self, key: NoiseKey) -> Tensor<1> {
        gaussian::mean_field_sample(self.mean.val(), self.log_deviation.val(), key)
    }

    fn kl(&self, prior_variance: Tensor<1>, weight: f64) -> Tensor<1> {
        gaussian::mean_field_kl(
            self.mean.val(),
            self.log_deviation.val(),
            prior_variance,
            weight,
        )
    }

    fn entropy(&self) -> f64 {
        let (mean, log_deviation) = (to_host(self.mean.val()), to_host(self.log_deviation.val()));
        LowRank::new(&mean, &[], &[], &log_deviation, 0.0)
            .expect("the sizes were made together")
            .entropy()
    }
}
