//! Predictions of numbers and counts: what every drawn network says about a target, as one mixture per input.

use std::ops::Range;

use burn::module::Module;
use burn::tensor::Tensor;

use super::{BayesError, Bayesian, Drawn, PredictiveConfig};
use crate::metrics::{Family, Mixtures};
use crate::nn::to_host;
use crate::parallel::Ranks;
use crate::task::{Regressor, TargetDistribution, TargetEnsemble};

impl PredictiveConfig {
    /// The predictive distributions of the targets of all inputs `[n, ...]`: with one component per posterior sample.
    /// Distributions that are not finite are an error.
    pub fn predict_targets<const D: usize, M: Regressor<D>>(
        &self,
        network: &Bayesian<M>,
        inputs: Tensor<D>,
    ) -> Result<Mixtures, BayesError> {
        self.predict_targets_with_progress(network, inputs, |_, _| {})
    }

    /// [`Self::predict_targets`] that calls `progress(done, all)` after every batch.
    pub fn predict_targets_with_progress<const D: usize, M: Regressor<D>>(
        &self,
        network: &Bayesian<M>,
        inputs: Tensor<D>,
        progress: impl FnMut(usize, usize),
    ) -> Result<Mixtures, BayesError> {
        self.predict_targets_on(&Ranks::default(), network, inputs, progress)
    }

    /// [`Self::predict_targets_with_progress`] on several ranks ([`crate::parallel`]): all of them call it with all inputs, each computes
    /// whole batches of them, and all get everything, the same to the last bit as from a single process.
    pub fn predict_targets_on<const D: usize, M: Regressor<D>>(
        &self,
        ranks: &Ranks,
        network: &Bayesian<M>,
        inputs: Tensor<D>,
        progress: impl FnMut(usize, usize),
    ) -> Result<Mixtures, BayesError> {
        let own = self.check(inputs.dims()[0]).and_then(|()| {
            let share = self.share(ranks, inputs.dims()[0]);
            self.draw_targets(network)?
                .components(inputs, share, progress)
        });
        let own = ranks.agree(own)?;
        let counts = ranks.any(own.family == Family::Poisson)?;
        Components {
            family: if counts {
                Family::Poisson
            } else {
                Family::Gaussian
            },
            locations: ranks.concatenate(own.locations)?,
            deviations: ranks.concatenate(own.deviations)?,
        }
        .mixtures(self.samples)
    }

    /// Draws the networks of the samples once, for predictions of many small sets of inputs.
    pub fn draw_targets<const D: usize, M: Regressor<D>>(
        &self,
        network: &Bayesian<M>,
    ) -> Result<Drawn<TargetEnsemble<D>>, BayesError> {
        // The networks do not depend on how many inputs there are.
        self.check(1)?;
        Ok(Drawn {
            ensemble: M::ensemble(self.members(&network.valid())),
            config: self.clone(),
        })
    }
}

impl<const D: usize> Drawn<TargetEnsemble<D>> {
    /// [`PredictiveConfig::predict_targets`], without drawing again.
    pub fn predict_targets(&self, inputs: Tensor<D>) -> Result<Mixtures, BayesError> {
        let all = inputs.dims()[0];
        self.config.check(all)?;
        self.components(inputs, 0..all, |_, _| {})?
            .mixtures(self.config.samples)
    }

    /// What every network says of a share of the inputs.
    fn components(
        &self,
        inputs: Tensor<D>,
        share: Range<usize>,
        mut progress: impl FnMut(usize, usize),
    ) -> Result<Components, BayesError> {
        let all = share.len();
        let (inputs, samples) = (inputs.inner(), self.config.samples);
        let mut family = Family::Gaussian;
        let (mut locations, mut deviations) = (vec![0.0; all * samples], Vec::new());
        for start in (0..all).step_by(self.config.batch) {
            let rows = self.config.batch.min(all - start);
            let said = (self.ensemble)(inputs.clone().narrow(0, share.start + start, rows));
            for (sample, distribution) in said.into_iter().enumerate() {
                family = distribution.family();
                let at = |row: usize| (start + row) * samples + sample;
                let (location, log_deviation) = match distribution {
                    TargetDistribution::Gaussian {
                        mean,
                        log_deviation,
                    } => (to_host(mean), Some(to_host(log_deviation))),
                    TargetDistribution::Poisson { log_rate } => (to_host(log_rate.exp()), None),
                };
                for row in 0..rows {
                    locations[at(row)] = location[row];
                }
                let Some(log_deviation) = log_deviation else {
                    continue;
                };
                deviations.resize(locations.len(), 0.0);
                for row in 0..rows {
                    // One for all inputs, or one each.
                    let own = log_deviation[row.min(log_deviation.len() - 1)];
                    deviations[at(row)] = own.exp();
                }
            }
            let range = start * samples..(start + rows) * samples;
            let scale = deviations.get(range.clone()).unwrap_or_default();
            let fits = |x: &f64| x.is_finite();
            let bad = locations[range].iter().position(|x| !fits(x));
            let bad = bad.or_else(|| scale.iter().position(|x| !fits(x) || *x == 0.0));
            if let Some(position) = bad {
                let input = share.start + start + position / samples;
                return Err(BayesError::NotFinitePrediction { input });
            }
            progress(start + rows, all);
        }
        Ok(Components {
            family,
            locations,
            deviations,
        })
    }
}

/// What every network says, `[inputs, samples]`, row-major.
struct Components {
    family: Family,
    locations: Vec<f64>,
    /// None for counts.
    deviations: Vec<f64>,
}

impl Components {
    fn mixtures(self, samples: usize) -> Result<Mixtures, BayesError> {
        Ok(match self.family {
            Family::Poisson => Mixtures::poisson(samples, self.locations)?,
            Family::Gaussian => Mixtures::gaussian(samples, self.locations, self.deviations)?,
        })
    }
}
