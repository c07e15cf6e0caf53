//! Predictions with uncertainty, from `S` posterior samples:
//!
//! | quantity | formula |
//! | --- | --- |
//! | probabilities | `p = (1/S) sum_s softmax(f_s(x))` |
//! | predictive entropy | `H(p)`: all uncertainty |
//! | expected entropy | `(1/S) sum_s H(softmax(f_s(x)))`: what no amount of data removes |
//! | mutual information | the difference: what more data would remove |

use std::ops::Range;

use burn::config::Config;
use burn::module::Module;
use burn::tensor::Tensor;
use circulant_kernels::ensemble_statistics;

use super::{BayesError, Bayesian, Network};
use crate::noise::{Noise, Purpose};
use crate::parallel::Ranks;
use crate::task::{Classifier, Ensemble};

/// Predictions from a posterior.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::bayes::{BayesianConfig, PredictiveConfig};
/// use circulant::models::{HiddenKind, ImageClassifierConfig};
///
/// let device = circulant::cpu();
/// let model = ImageClassifierConfig::new(HiddenKind::SpectralCirculant).init(&device);
/// let network = BayesianConfig::new().init(model)?;
/// let images = Tensor::<4>::ones([3, 1, 28, 28], &device);
/// let predictions = PredictiveConfig::new().with_samples(10).predict(&network, images)?;
/// assert_eq!(predictions.probabilities.len(), 3 * 10);
/// let entropies = predictions.mutual_information().zip(&predictions.predictive_entropy);
/// assert!(entropies.into_iter().all(|(information, entropy)| information < *entropy));
/// # Ok::<(), circulant::bayes::BayesError>(())
/// ```
#[derive(Config, Debug)]
pub struct PredictiveConfig {
    /// Posterior samples, `S`.
    #[config(default = 50)]
    pub samples: usize,
    /// Inputs at a time: bounds the memory, which is `S` times that of the logits where a model reads them out of a
    /// circulant layer, and `S` times that of a forward pass otherwise.
    #[config(default = 256)]
    pub batch: usize,
    /// The seed of the samples.
    #[config(default = 0)]
    pub seed: u64,
}

/// What is known about the classes of some inputs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Predictions {
    /// The number of classes.
    pub classes: usize,
    /// `[inputs, classes]`, row-major: the mean over samples.
    pub probabilities: Vec<f32>,
    /// Per input, in nats.
    pub predictive_entropy: Vec<f32>,
    /// Per input, in nats.
    pub expected_entropy: Vec<f32>,
}

impl Predictions {
    /// Per input, in nats; rounding below zero is cut off, NaN stays NaN.
    pub fn mutual_information(&self) -> impl Iterator<Item = f32> + '_ {
        let entropies = self.predictive_entropy.iter().zip(&self.expected_entropy);
        // `max` would turn NaN into 0, which says that nothing is left to learn.
        entropies.map(|(predictive, expected)| match predictive - expected {
            below if below < 0.0 => 0.0,
            information => information,
        })
    }

    /// The most probable class per input; the first of equals, as in the metrics.
    pub fn classes_of_inputs(&self) -> impl Iterator<Item = usize> + '_ {
        let rows = self.probabilities.chunks_exact(self.classes);
        rows.map(|row| (1..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best }))
    }
}

impl PredictiveConfig {
    /// Predicts all inputs `[n, ...]`. Logits that are not finite are an error.
    pub fn predict<const D: usize, M: Classifier<D>>(
        &self,
        network: &Bayesian<M>,
        inputs: Tensor<D>,
    ) -> Result<Predictions, BayesError> {
        self.predict_with_progress(network, inputs, |_, _| {})
    }

    /// [`Self::predict`] that calls `progress(done, all)` after every batch.
    pub fn predict_with_progress<const D: usize, M: Classifier<D>>(
        &self,
        network: &Bayesian<M>,
        inputs: Tensor<D>,
        progress: impl FnMut(usize, usize),
    ) -> Result<Predictions, BayesError> {
        self.predict_on(&Ranks::default(), network, inputs, progress)
    }

    /// [`Self::predict_with_progress`] on several ranks ([`crate::parallel`]): all of them call it with all inputs, each computes whole
    /// batches of them, and all get everything, the same to the last bit as from a single process.
    pub fn predict_on<const D: usize, M: Classifier<D>>(
        &self,
        ranks: &Ranks,
        network: &Bayesian<M>,
        inputs: Tensor<D>,
        progress: impl FnMut(usize, usize),
    ) -> Result<Predictions, BayesError> {
        let all = inputs.dims()[0];
        let own = self.check(all).and_then(|()| {
            self.draw(network)?
                .predict_share(inputs, self.share(ranks, all), progress)
        });
        if ranks.is_alone() {
            return own;
        }
        let own = ranks.agree(own)?;
        let probabilities = ranks.concatenate(own.probabilities)?;
        Ok(Predictions {
            classes: probabilities.len() / all,
            probabilities,
            predictive_entropy: ranks.concatenate(own.predictive_entropy)?,
            expected_entropy: ranks.concatenate(own.expected_entropy)?,
        })
    }

    /// Draws the networks of the samples once, for predictions of many small sets of inputs: a row at a time, say.
    pub fn draw<const D: usize, M: Classifier<D>>(
        &self,
        network: &Bayesian<M>,
    ) -> Result<Drawn<Ensemble<D>>, BayesError> {
        // The networks do not depend on how many inputs there are.
        self.check(1)?;
        Ok(Drawn {
            ensemble: M::ensemble(self.members(&network.valid())),
            config: self.clone(),
        })
    }

    /// The inputs of this rank: whole batches, so that they are computed as by a single process.
    pub(super) fn share(&self, ranks: &Ranks, all: usize) -> Range<usize> {
        let batches = ranks.share(all.div_ceil(self.batch));
        let rows = |batch: usize| (batch * self.batch).min(all);
        rows(batches.start)..rows(batches.end)
    }

    /// Names what is missing for predictions of so many inputs.
    pub(super) fn check(&self, inputs: usize) -> Result<(), BayesError> {
        for (what, size) in [
            ("the set of inputs", inputs),
            ("the set of posterior samples", self.samples),
            ("the batch", self.batch),
        ] {
            if size == 0 {
                return Err(BayesError::Empty { what });
            }
        }
        Ok(())
    }

    /// The networks of the samples.
    pub(super) fn members<M: Network>(&self, network: &Bayesian<M>) -> Vec<M> {
        (0..self.samples)
            .map(|sample| network.sample(Noise::new(self.seed, Purpose::Prediction, 0, sample)))
            .collect()
    }
}

/// Networks that were drawn from a posterior, [`Ensemble`] or [`TargetEnsemble`](crate::task::TargetEnsemble).
pub struct Drawn<E> {
    pub(super) ensemble: E,
    pub(super) config: PredictiveConfig,
}

impl<const D: usize> Drawn<Ensemble<D>> {
    /// [`PredictiveConfig::predict`], without drawing again.
    pub fn predict(&self, inputs: Tensor<D>) -> Result<Predictions, BayesError> {
        let all = inputs.dims()[0];
        self.config.check(all)?;
        self.predict_share(inputs, 0..all, |_, _| {})
    }

    fn predict_share(
        &self,
        inputs: Tensor<D>,
        share: Range<usize>,
        mut progress: impl FnMut(usize, usize),
    ) -> Result<Predictions, BayesError> {
        let all = share.len();
        let inputs = inputs.inner();
        let mut predictions = Predictions {
            classes: 0,
            probabilities: Vec::new(),
            predictive_entropy: vec![0.0; all],
            expected_entropy: vec![0.0; all],
        };
        for start in (0..all).step_by(self.config.batch) {
            let rows = self.config.batch.min(all - start);
            let batch = inputs.clone().narrow(0, share.start + start, rows);
            let logits = (self.ensemble)(batch);
            let classes = logits.dims()[2];
            if start == 0 {
                predictions.classes = classes;
                predictions.probabilities = vec![0.0; all * classes];
            }
            let logits = logits.into_data().convert::<f32>();
            ensemble_statistics(
                logits.as_slice::<f32>().expect("converted just before"),
                rows,
                classes,
                &mut predictions.probabilities[start * classes..][..rows * classes],
                &mut predictions.predictive_entropy[start..][..rows],
                &mut predictions.expected_entropy[start..][..rows],
            )?;
            let entropies = &predictions.predictive_entropy[start..][..rows];
            if let Some(row) = entropies.iter().position(|entropy| !entropy.is_finite()) {
                let input = share.start + start + row;
                return Err(BayesError::NotFiniteLogits { input });
            }
            progress(start + rows, all);
        }
        Ok(predictions)
    }
}

#[cfg(test)]
mod tests {
    use burn::module::Param;

    use super::*;
    use crate::bayes::BayesianConfig;
    use crate::models::{HiddenKind, ImageClassifierConfig};

    #[test]
    fn what_is_not_a_number_is_not_certainty() {
        let predictions = Predictions {
            classes: 2,
            probabilities: vec![f32::NAN, f32::NAN, 0.5, 0.5, 0.5, 0.5],
            predictive_entropy: vec![f32::NAN, 0.25, 0.75],
            expected_entropy: vec![0.5, 0.5, 0.5],
        };
        let information: Vec<f32> = predictions.mutual_information().collect();
        assert!(information[0].is_nan(), "{information:?}");
        assert_eq!(information[1..], [0.0, 0.25]);
    }

    #[test]
    fn broken_logits_are_an_error() {
        let device = crate::cpu();
        let config = ImageClassifierConfig::new(HiddenKind::Dense).with_image([1, 1, 3]);
        for broken in [f32::NAN, f32::INFINITY] {
            let mut model = config.init(&device);
            let bias: Vec<f32> = (0..10).map(|k| if k == 2 { broken } else { 0.0 }).collect();
            model.output.bias = Some(Param::from_data(bias.as_slice(), &device));
            let network = BayesianConfig::new().init(model).expect("valid");
            let inputs = Tensor::<4>::ones([3, 1, 1, 3], &device);
            let config = PredictiveConfig::new().with_samples(2).with_batch(2);
            let error = config.predict(&network, inputs).expect_err("not finite");
            assert!(error.to_string().contains("input 0"), "{error}");
        }
    }
}
