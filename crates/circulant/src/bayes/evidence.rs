//! The evidence bound of a trained posterior on all of its data: what models of different sizes or priors are compared by, without
//! held-out data.
//!
//! `log p(D) >= E_q[sum log p(y|x, theta)] - KL(q, prior)`; the expectation is a mean over posterior samples.

use burn::tensor::Tensor;

use super::{BayesError, Bayesian, Network};
use crate::noise::{Noise, Purpose};
use crate::task::TrainingSet;

/// Examples at a time.
const BATCH: usize = 1024;

/// An estimate of the evidence bound.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Evidence {
    /// The bound on `log p(D)`, of all examples together.
    pub bound: f64,
    /// Its data part, `E_q[log p(D|theta)]`.
    pub data: f64,
    /// Its other part, which is subtracted.
    pub kl: f64,
}

/// Estimates the evidence bound from `samples` posterior samples.
pub fn evidence<M: Network, T: TrainingSet<M>>(
    network: &Bayesian<M>,
    data: &T,
    samples: usize,
    seed: u64,
) -> Result<Evidence, BayesError> {
    for (what, size) in [
        ("the data set", data.examples()),
        ("the set of posterior samples", samples),
    ] {
        if size == 0 {
            return Err(BayesError::Empty { what });
        }
    }
    let (mut likelihood, mut kl) = (0.0, 0.0);
    let indices: Vec<usize> = (0..data.examples()).collect();
    let scalar = |tensor: Tensor<1>| tensor.into_scalar::<f64>();
    for sample in 0..samples {
        let noise = Noise::new(seed, Purpose::Prediction, 1, sample);
        let (model, own) = network.sample_with_kl(noise, 1.0);
        kl += scalar(own);
        for part in indices.chunks(BATCH) {
            let mut batch = data.batch(part, false)?;
            if network.device().is_autodiff() {
                batch = T::into_autodiff(batch);
            }
            likelihood -= scalar(data.negative_log_likelihood(&model, batch));
        }
    }
    let (data, kl) = (likelihood / samples as f64, kl / samples as f64);
    Ok(Evidence {
        bound: data - kl,
        data,
        kl,
    })
}
