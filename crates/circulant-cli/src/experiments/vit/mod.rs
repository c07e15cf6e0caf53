//! The paper's third experiment: vision transformers with dense and with spectral projections, trained alike.

mod augment;
mod evaluation;
pub mod folder;
pub mod sets;
pub mod settings;
pub mod training;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{bail, ensure};

use self::folder::VitFolder;
use self::sets::Sets;
use self::settings::VitConfig;
use self::training::Run;
use super::folder::DataFacts;
use super::interrupt::Interrupt;

/// What is asked for.
pub struct Plan {
    /// The data.
    pub sets: Sets,
    /// One run each.
    pub configs: Vec<VitConfig>,
    /// The training time of all runs together, in this process and earlier ones, after which no new round of epochs
    /// begins.
    pub budget: Option<Duration>,
    /// The folder for everything.
    pub out: PathBuf,
}

/// Why training ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Every run is at the end of its schedule, or of its patience.
    Finished,
    /// Another round would not have fitted into the budget.
    Budget,
}

impl Plan {
    /// Trains all runs, one epoch of each by turns, so that at every moment they have seen the same number of images.
    pub fn train(&self, interrupt: &Interrupt) -> anyhow::Result<(Vec<VitFolder>, End)> {
        ensure!(!self.configs.is_empty(), "expected at least one model and one seed");
        let facts = DataFacts::of(&self.sets.images.training);
        let mut runs = Vec::new();
        for config in &self.configs {
            let name = config.model.projection.name();
            let path = self.out.join("runs").join(name).join(format!("seed-{}", config.training.seed));
            let folder = VitFolder::at(&path, config.clone(), facts.clone())?;
            runs.push(Run::open(folder, &self.sets.images)?);
        }
        let end = self.rounds(&mut runs, interrupt)?;
        Ok((runs.iter().map(|run| run.folder().clone()).collect(), end))
    }

    fn rounds(&self, runs: &mut [Run<'_>], interrupt: &Interrupt) -> anyhow::Result<End> {
        loop {
            let open = runs.iter().filter(|run| run.finished().is_none());
            let Some(done) = open.map(|run| run.epochs().len()).min() else {
                return Ok(End::Finished);
            };
            if !self.has_time(runs, done) {
                return Ok(End::Budget);
            }
            for run in &mut *runs {
                if run.finished().is_some() || run.epochs().len() > done {
                    continue;
                }
                let config = &run.folder().config;
                let title = format!("{}, seed {}", config.model.projection.name(), config.training.seed);
                if !run.epoch(interrupt, &title)? || interrupt.is_asked() {
                    bail!(
                        "stopped in {title}; the same command goes on from there (--out {})",
                        self.out.display()
                    );
                }
            }
        }
    }

    /// Whether another round of epochs fits into the budget, if it takes as long as the last one. The first one always runs,
    /// and one that has begun is finished.
    fn has_time(&self, runs: &[Run<'_>], done: usize) -> bool {
        let begun = runs.iter().any(|run| run.epochs().len() > done);
        let Some(budget) = self.budget.filter(|_| done > 0 && !begun) else {
            return true;
        };
        let lines = || runs.iter().flat_map(|run| run.epochs().last());
        let spent: f64 = lines().map(|line| line.seconds).sum();
        let open = runs.iter().filter(|run| run.finished().is_none());
        let last: f64 = open
            .filter_map(|run| {
                let seconds = |epoch: usize| run.epochs().get(epoch).map(|line| line.seconds);
                let before = done.checked_sub(2).and_then(seconds).unwrap_or(0.0);
                Some(seconds(done - 1)? - before)
            })
            .sum();
        spent + last <= budget.as_secs_f64()
    }
}
