//! Checkpoints of a [`Trainer`].

use std::collections::BTreeMap;
use std::path::Path;

use burn::module::Module;

use super::checkpoint::{self, Checkpoint};
use super::{Trainer, TrainingError, TrainingLoss, WarmUpCosine, find_not_finite};
use crate::parameters::with_stable_ids;

/// The version is behind the last dash.
const FORMAT: &str = "circulant-training-";
const VERSION: u64 = 1;

const LOSS: &str = "loss";

/// Before the names of the caller's notes.
const NOTE: &str = "note.";

impl<M: Module> Trainer<M> {
    /// Writes a checkpoint with notes of the caller's. An existing file is replaced in one step. Parameters that are not finite
    /// are refused, so that a good checkpoint is never replaced by a useless one. Of several ranks all call it and rank 0 writes.
    pub fn save(
        &self,
        path: impl AsRef<Path>,
        notes: &BTreeMap<String, String>,
    ) -> Result<(), TrainingError> {
        self.compare_parameters()?;
        let written = if self.ranks.is_first() {
            self.write(path.as_ref(), notes)
        } else {
            Ok(())
        };
        self.ranks.agree(written)
    }

    fn write(&self, path: &Path, notes: &BTreeMap<String, String>) -> Result<(), TrainingError> {
        if let Some(name) = find_not_finite(self.model(), None) {
            return Err(TrainingError::Diverged {
                step: self.step,
                what: format!("the parameter {name}"),
            });
        }
        let mut metadata: BTreeMap<String, String> = self
            .identity()
            .map(|(key, value)| (key.to_owned(), value))
            .into();
        metadata.insert("step".to_owned(), self.step.to_string());
        let notes = notes.iter();
        metadata.extend(notes.map(|(key, value)| (format!("{NOTE}{key}"), value.clone())));
        Ok(checkpoint::write(
            path,
            self.model(),
            &self.optimizer,
            None,
            metadata,
        )?)
    }

    /// Goes on from a checkpoint of the same settings, and gives its notes back. On any error `self` is as it was. Of several ranks all
    /// call it and rank 0 reads; the checkpoint may come from another number of ranks.
    pub fn resume(
        &mut self,
        path: impl AsRef<Path>,
    ) -> Result<BTreeMap<String, String>, TrainingError> {
        let path = path.as_ref();
        let read = || checkpoint::bytes_of(path).map_err(TrainingError::from);
        let checkpoint = Checkpoint::new(path, self.ranks.from_first(read)?)?;
        checkpoint.version(FORMAT, VERSION)?;
        for (what, expected) in self.identity() {
            // Checkpoints of earlier versions know one loss only, and do not say it.
            let usual = self.config.loss == TrainingLoss::CrossEntropy;
            if what == LOSS && usual && !checkpoint.metadata.contains_key(LOSS) {
                continue;
            }
            checkpoint.check(what, expected)?;
        }
        let step = checkpoint.number("step")?;
        let mut model = self.model().clone();
        let state = checkpoint.load(&mut model)?;
        self.model = Some(with_stable_ids(model));
        self.optimizer = self.optimizer.clone().load_record(state.optimizer);
        self.step = step;
        let notes = checkpoint.metadata.iter().filter_map(|(key, value)| {
            let key = key.strip_prefix(NOTE)?;
            Some((key.to_owned(), value.clone()))
        });
        Ok(notes.collect())
    }

    /// What must agree between a checkpoint and the run that resumes from it.
    pub(super) fn identity(&self) -> [(&'static str, String); 6] {
        let WarmUpCosine {
            peak,
            warm_up,
            steps,
        } = self.config.schedule;
        let spectral = match self.config.spectral_rate {
            1.0 => String::new(),
            rate => format!(", {rate} times as much for spectral coordinates"),
        };
        let by_length = match self.config.length_power {
            0.0 => String::new(),
            power => format!(", times the length to the power of {power}"),
        };
        [
            ("format", format!("{FORMAT}{VERSION}")),
            ("seed", self.config.seed.to_string()),
            (
                "learning rate",
                format!("{peak}, {warm_up} steps of warm-up{spectral}{by_length}"),
            ),
            ("steps", steps.to_string()),
            ("weight decay", self.config.weight_decay.to_string()),
            (LOSS, format!("{:?}", self.config.loss)),
        ]
    }
}

/// Puts the parameters of a checkpoint that [`Trainer::save`] wrote into a model, and gives the number of its steps.
pub fn load_checkpoint<M: Module>(
    model: &mut M,
    path: impl AsRef<Path>,
) -> Result<u64, TrainingError> {
    let checkpoint = Checkpoint::read(path.as_ref())?;
    checkpoint.version(FORMAT, VERSION)?;
    let step = checkpoint.number("step")?;
    checkpoint.load(model)?;
    Ok(step)
}
