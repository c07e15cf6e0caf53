//! A model with settings of its own, and its training with several seeds into folders below `runs/`.

use std::path::Path;

use anyhow::{bail, ensure};
use circulant::bayes::Stop;
use circulant::data::LabelledData;

use super::config::RunConfig;
use super::folder::{DataFacts, RunFolder};
use super::interrupt::Interrupt;
use super::source;
use super::training::{Observer, Trained, train_observed};
use circulant_data::{ImageSet, Normalisation};

/// A model with settings of its own.
#[derive(Debug, Clone)]
pub struct Variant {
    /// Of its folder and in `results.json`.
    pub name: String,
    /// In tables.
    pub title: String,
    /// Its settings, apart from the seed.
    pub config: RunConfig,
}

/// What all runs of an experiment share.
pub struct SharedRuns<'a> {
    out: &'a Path,
    facts: DataFacts,
    data: LabelledData<4>,
    interrupt: &'a Interrupt,
}

impl<'a> SharedRuns<'a> {
    /// Runs below `out` that learn from a set.
    pub fn new(
        out: &'a Path,
        seeds: &[u64],
        training: &ImageSet,
        normalisation: &Normalisation,
        interrupt: &'a Interrupt,
    ) -> anyhow::Result<Self> {
        ensure!(!seeds.is_empty(), "expected at least one seed");
        let facts = DataFacts::of(training);
        let data = source::labelled(training, normalisation, facts.classes)?;
        Ok(Self {
            out,
            facts,
            data,
            interrupt,
        })
    }

    /// The folder of a run, new or of an earlier process.
    pub fn folder(&self, variant: &Variant, seed: u64) -> anyhow::Result<RunFolder> {
        let mut config = variant.config.clone();
        config.training.seed = seed;
        let path = self.out.join("runs").join(&variant.name);
        let path = path.join(format!("seed-{seed}"));
        RunFolder::at(&path, config, self.facts.clone())
    }

    /// Trains a run to its end. One that is already there is not repeated.
    pub fn train(
        &self,
        folder: &RunFolder,
        variant: &Variant,
        observer: Option<&mut dyn Observer>,
    ) -> anyhow::Result<Trained> {
        let title = format!("{}, seed {}", variant.title, folder.config.training.seed);
        let trained = train_observed(folder, &self.data, self.interrupt, &title, observer)?;
        if trained.stop == Stop::Asked {
            bail!(
                "stopped in {title}; the same command resumes there (--out {})",
                self.out.display()
            );
        }
        Ok(trained)
    }
}
