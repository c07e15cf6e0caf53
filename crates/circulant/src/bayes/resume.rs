//! Checkpoints of variational inference ([`crate::checkpoint`]): posterior parameters, optimiser, step, seed, settings, watch.
//!
//! Noise and data order follow from seed and step, so no generator state is needed.

use std::collections::BTreeMap;
use std::path::Path;

use super::network::Network;
use super::site_adam::SiteAdam;
use super::svi::Svi;
use super::svi_config::Watch;
use super::{BayesError, Bayesian, KlWeight, SviConfig};
use crate::parameters::with_stable_ids;
use crate::train::CheckpointError;
use crate::train::checkpoint::{self, Checkpoint};
use crate::train::find_not_finite;

/// The version is behind the last dash. Version 1 had all moments in Burn's record of the optimiser; its parameters are the same.
const FORMAT: &str = "circulant-svi-";
const VERSION: u64 = 2;

/// The entry of a number that is in the posteriors, but no tensor.
const JITTER: &str = "jitter";

/// What must agree between a checkpoint and the run that resumes from it.
pub(super) fn identity<M: Network>(
    svi: &Svi<M>,
    data_fingerprint: u64,
) -> [(&'static str, String); 8] {
    [
        ("format", format!("{FORMAT}{VERSION}")),
        ("model", svi.network().identity()),
        (JITTER, svi.network().jitter()),
        ("seed", svi.config.seed.to_string()),
        ("batch", svi.config.batch.to_string()),
        ("examples", svi.examples().to_string()),
        ("data", format!("{data_fingerprint:016x}")),
        (
            "projection",
            if svi.has_projection() { "yes" } else { "no" }.to_owned(),
        ),
    ]
}

/// The settings among them. A sum of steps and a patience only say when training ends, unless the learning rate falls with the steps.
fn settings(config: &SviConfig) -> [(&'static str, String); 3] {
    let rate = config.learning_rate;
    [
        ("samples per step", config.samples.to_string()),
        (
            "KL weight",
            match config.kl_weight {
                KlWeight::WarmUp(steps) => format!("growing to 1 over {steps} steps"),
                constant => constant.at(0).to_string(),
            },
        ),
        (
            "learning rate",
            match config.final_rate {
                None => rate.to_string(),
                Some(share) => {
                    let from = config.rate_from;
                    let from = from.map_or(String::new(), |step| format!(" from step {step}"));
                    format!(
                        "{rate} falling to {share} of it over {} steps{from}",
                        config.steps
                    )
                }
            },
        ),
    ]
}

impl<M: Network> Svi<M> {
    /// Writes a checkpoint; `data_fingerprint` ties it to the data set. An existing file is replaced in one step. Parameters that
    /// are not finite are refused, so that a good checkpoint is never replaced by a useless one. Of several ranks all call it and
    /// rank 0 writes; ranks whose parameters differ are refused too.
    pub fn save(&self, path: impl AsRef<Path>, data_fingerprint: u64) -> Result<(), BayesError> {
        self.compare_parameters()?;
        let written = if self.ranks().is_first() {
            self.write(path.as_ref(), data_fingerprint)
        } else {
            Ok(())
        };
        self.ranks().agree(written)
    }

    fn write(&self, path: &Path, data_fingerprint: u64) -> Result<(), BayesError> {
        if let Some(parameter) = find_not_finite(self.network(), None) {
            return Err(BayesError::Diverged {
                step: self.step,
                what: "a parameter",
                parameter,
            });
        }
        let mut metadata: BTreeMap<String, String> = identity(self, data_fingerprint)
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        let Watch {
            average,
            best,
            best_step,
        } = self.watch;
        // Bits, because a decimal number need not read back as itself, nor infinity at all.
        for (key, value) in [
            ("step", self.step),
            ("watch.average", average.to_bits()),
            ("watch.best", best.to_bits()),
            ("watch.best_step", best_step),
        ] {
            metadata.insert(key.to_owned(), value.to_string());
        }
        metadata.insert("settings".to_owned(), self.initial_settings());
        Ok(checkpoint::write(
            path,
            self.network(),
            &self.optimizer,
            self.site_adam.as_ref().map(SiteAdam::to_bytes),
            metadata,
        )?)
    }

    /// Resumes from a checkpoint: training then gives the same values, to the last bit, as if it had not stopped. On any error
    /// `self` is as it was. Of several ranks all call it and rank 0 reads; the checkpoint may come from another number of ranks.
    ///
    /// Model, priors, posteriors, data, seed, batch, samples, weight of the KL, learning rate and whether there is a projection must be those of the
    /// checkpoint; what differs is named. The number of steps (while the learning rate does not depend on it, or begins anew at the step of the
    /// checkpoint, [`SviConfig::rate_from`]) and the patience may differ. Not compared, and for the caller to keep: an optimiser of one's own, what the projection does, and a rate
    /// that was set by [`Self::set_learning_rate`].
    pub fn resume(
        &mut self,
        path: impl AsRef<Path>,
        data_fingerprint: u64,
    ) -> Result<(), BayesError> {
        let path = path.as_ref();
        let read = || checkpoint::bytes_of(path).map_err(BayesError::from);
        let checkpoint = Checkpoint::new(path, self.ranks().from_first(read)?)?;
        checkpoint.version(FORMAT, VERSION)?;
        for (what, expected) in identity(self, data_fingerprint) {
            // Files from before there were projections have no such entry, those of 0.1.0 do not say the jitter.
            let may_lack = what == JITTER || (what == "projection" && expected == "no");
            if may_lack && !checkpoint.metadata.contains_key(what) {
                continue;
            }
            checkpoint.check(what, expected)?;
        }
        let parse = |text: &str| -> Result<SviConfig, CheckpointError> {
            serde_json::from_str(text)
                .map_err(|error| checkpoint.broken(format!("settings: {error}")))
        };
        let number = |key| checkpoint.number(key);
        let step = number("step")?;
        // A schedule that begins here may differ from the one that led here.
        let begins = self.config.rate_from == Some(step);
        let compared = |text: &str| {
            let config = parse(text)?;
            let config = match begins {
                true => config.with_steps(0).with_rate_from(None),
                false => config,
            };
            Ok::<_, CheckpointError>(settings(&config))
        };
        let found = compared(checkpoint.entry("settings")?)?;
        // Through text as the checkpoint's: both are then rounded alike.
        let expected = compared(&self.initial_settings())?;
        for ((what, expected), (_, found)) in expected.into_iter().zip(found) {
            if expected != found {
                return Err(checkpoint.other_run(what, expected, found).into());
            }
        }
        let mut network: Bayesian<M> = self.network().clone();
        let state = checkpoint.load(&mut network)?;
        let fitting = match (&self.site_adam, &state.moments) {
            (None, None) => Some(None),
            (Some(adam), Some(moments)) => adam.with_bytes(&network, moments).map(Some),
            _ => None,
        };
        let Some(site_adam) = fitting else {
            let message = "the moments in it are not those of this optimiser on this device; resume with the optimiser and on \
                 the backend that the run began with";
            return Err(checkpoint.broken(message).into());
        };
        let watch = Watch {
            average: f64::from_bits(number("watch.average")?),
            best: f64::from_bits(number("watch.best")?),
            best_step: number("watch.best_step")?,
        };
        (self.step, self.watch) = (step, watch);
        self.set_network(with_stable_ids(network));
        self.optimizer = self.optimizer.clone().load_record(state.optimizer);
        self.site_adam = site_adam;
        Ok(())
    }
}

impl<M: Network> Bayesian<M> {
    /// The same model with the parameters of a checkpoint that [`Svi::save`] wrote, and the number of steps that it was
    /// trained for: what predictions need. Neither data nor settings of the run have to be known.
    pub fn load_checkpoint(mut self, path: impl AsRef<Path>) -> Result<(Self, u64), BayesError> {
        let checkpoint = Checkpoint::read(path.as_ref())?;
        checkpoint.version(FORMAT, VERSION)?;
        checkpoint.check("model", self.identity())?;
        if checkpoint.metadata.contains_key(JITTER) {
            checkpoint.check(JITTER, self.jitter())?;
        }
        checkpoint.load(&mut self)?;
        Ok((self, checkpoint.number("step")?))
    }
}
