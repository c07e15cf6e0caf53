//! A model with settings of its own, and its training with several seeds into folders below `runs/`.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use circulant::bayes::{Bayesian, Predictions, Stop};
use circulant::data::LabelledData;
use circulant::models::ImageClassifier;

use super::config::RunConfig;
use super::evaluation::Sampling;
use super::folder::{DataFacts, RunFolder};
use super::interrupt::Interrupt;
use super::source;
use super::training::{Observer, Trained, train_observed};
use circulant_data::ImageSet;

#[derive(Debug, Clone)]
pub struct Variant {
    /// Of its folder and in `results.json`.
    pub name: String,
    pub title: String,
    pub config: RunConfig,
}

/// What is asked for of several variants.
pub struct SharedPlan {
    pub seeds: Vec<u64>,
    /// What the variants have in common.
    pub settings: RunConfig,
    /// Posterior samples of the predictions.
    pub samples: usize,
    /// The folder for everything.
    pub out: PathBuf,
}

/// What all runs of an experiment share.
pub struct SharedRuns<'a> {
    plan: &'a SharedPlan,
    facts: DataFacts,
    data: LabelledData<4>,
    interrupt: &'a Interrupt,
}

impl<'a> SharedRuns<'a> {
    /// Runs that learn from a set.
    pub fn new(
        plan: &'a SharedPlan,
        training: &ImageSet,
        interrupt: &'a Interrupt,
    ) -> anyhow::Result<Self> {
        ensure!(!plan.seeds.is_empty(), "expected at least one seed");
        let facts = DataFacts::of(training);
        let normalisation = &plan.settings.data.normalisation;
        let data = source::labelled(training, normalisation, facts.classes, None)?;
        Ok(Self {
            plan,
            facts,
            data,
            interrupt,
        })
    }

    /// What a network says of a set.
    pub fn predict(
        &self,
        network: &Bayesian<ImageClassifier>,
        seed: u64,
        set: &ImageSet,
        title: &str,
    ) -> anyhow::Result<Predictions> {
        let samples = self.plan.samples;
        let normalisation = &self.plan.settings.data.normalisation;
        Sampling { samples, seed }.predict(network, set, normalisation, title)
    }

    /// The folder of a run, new or of an earlier process.
    pub fn folder(&self, variant: &Variant, seed: u64) -> anyhow::Result<RunFolder> {
        let mut config = variant.config.clone();
        config.training.seed = seed;
        let path = self.plan.out.join("runs").join(&variant.name);
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
                self.plan.out.display()
            );
        }
        Ok(trained)
    }
}
