//! The objective: `ELBO = (N/B) sum log p(y|x, theta) - w KL`, as its negative per example.

use burn::config::Config;
use burn::tensor::Tensor;

use super::{BayesError, Bayesian, Network};
use crate::noise::{Noise, Purpose};

/// The weight of the KL term.
#[derive(Config, Debug, Copy, PartialEq)]
#[non_exhaustive]
pub enum KlWeight {
    /// 1: the true ELBO.
    One,
    /// A constant; below 1 is a "cold" posterior.
    Constant(f64),
    /// Grows in equal parts over this many steps, up to 1.
    WarmUp(u64),
}

impl KlWeight {
    /// The weight at step 0, 1, ...
    pub fn at(self, step: u64) -> f64 {
        match self {
            Self::One => 1.0,
            Self::Constant(weight) => weight,
            Self::WarmUp(steps) => ((step + 1) as f64 / steps.max(1) as f64).min(1.0),
        }
    }
}

/// How the evidence lower bound is estimated from a minibatch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Elbo {
    examples: usize,
    samples: usize,
    kl_weight: KlWeight,
}

/// An estimate of the objective.
#[derive(Debug)]
#[non_exhaustive]
pub struct ElboEstimate {
    /// The negative ELBO per example, `[1]`, to be minimised.
    pub loss: Tensor<1>,
    /// The negative log likelihood per example, `[1]`.
    pub data: Tensor<1>,
    /// The weighted KL per example, `[1]`.
    pub kl: Tensor<1>,
}

impl Elbo {
    /// For `examples` (`N`) training examples, one Monte-Carlo sample, KL weight 1.
    pub fn new(examples: usize) -> Result<Self, BayesError> {
        if examples == 0 {
            return Err(BayesError::Empty {
                what: "the training set",
            });
        }
        Ok(Self {
            examples,
            samples: 1,
            kl_weight: KlWeight::One,
        })
    }

    /// The number of Monte-Carlo samples per step.
    pub fn with_samples(mut self, samples: usize) -> Result<Self, BayesError> {
        if samples == 0 {
            return Err(BayesError::Setting {
                what: "the number of Monte-Carlo samples",
                expected: "at least 1",
                got: "0".into(),
            });
        }
        self.samples = samples;
        Ok(self)
    }

    /// The weight of the KL term.
    pub fn with_kl_weight(mut self, kl_weight: KlWeight) -> Result<Self, BayesError> {
        if let KlWeight::Constant(weight) = kl_weight
            && !(weight >= 0.0 && weight.is_finite())
        {
            return Err(BayesError::Setting {
                what: "the KL weight",
                expected: "finite and at least 0",
                got: weight.to_string(),
            });
        }
        self.kl_weight = kl_weight;
        Ok(self)
    }

    /// The number of training examples, `N`.
    pub fn examples(&self) -> usize {
        self.examples
    }

    /// The estimate at one step from a batch of `batch` examples; `log_likelihood` gives the sum of
    /// `log p(y|x, theta)` over the batch, `[1]`, for a network of drawn parameters.
    pub fn estimate<M: Network>(
        &self,
        network: &Bayesian<M>,
        batch: usize,
        seed: u64,
        step: u64,
        log_likelihood: impl Fn(&M) -> Tensor<1>,
    ) -> ElboEstimate {
        let noises = self.noises(seed, step).into_iter();
        let weight = self.kl_weight(step) / self.samples as f64;
        let terms = noises.map(|noise| {
            let (model, kl) = network.sample_with_kl(noise, weight);
            (log_likelihood(&model).neg(), kl)
        });
        let sum = terms.reduce(|(data, kl), (more, more_kl)| (data + more, kl + more_kl));
        let (data, kl) = sum.expect("at least one sample");
        let data = data.mul_scalar(self.share(batch));
        ElboEstimate {
            loss: data.clone() + kl.clone(),
            data,
            kl,
        }
    }

    /// The noise of every sample of a step.
    pub(super) fn noises(&self, seed: u64, step: u64) -> Vec<Noise> {
        let noise = |sample| Noise::new(seed, Purpose::Training, step, sample);
        (0..self.samples).map(noise).collect()
    }

    /// The weight of the KL, all samples together: per example.
    pub(super) fn kl_weight(&self, step: u64) -> f64 {
        self.kl_weight.at(step) / self.examples as f64
    }

    /// The weight of one sample's sum over a batch: `(N/B)/N`, per example.
    pub(super) fn share(&self, batch: usize) -> f64 {
        1.0 / (self.samples * batch) as f64
    }
}
