//! The paper's third experiment: vision transformers with dense and with spectral projections, trained alike.

pub mod curvature;
mod evaluation;
pub mod folder;
pub mod paper;
mod report;
pub mod results;
pub mod sets;
pub mod settings;
mod table;
pub mod training;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use circulant::metrics::{Logits, ReliabilityDiagram};

use self::curvature::{CurvatureSettings, Measured, measure_best};
use self::evaluation::{classify, logits};
use self::folder::{EpochLine, VitFolder, best_epoch};
use self::results::{VitResult, VitResults, VitRunResult};
use self::sets::VitSets;
use self::settings::VitConfig;
use self::training::VitRun;
use super::evaluation::labels_of;
use super::folder::{DataFacts, write_report};
use super::interrupt::Interrupt;
use crate::ranks::{bring, first_only, ranks};
use circulant::metrics::ClassMetrics;

pub use report::document;
pub use table::plain;

pub struct VitPlan {
    pub sets: VitSets,
    /// One run each.
    pub configs: Vec<VitConfig>,
    /// The training time of all runs together, in this process and earlier ones, after which no new round of epochs
    /// begins.
    pub budget: Option<Duration>,
    /// How the curvature is measured, if it is.
    pub curvature: Option<CurvatureSettings>,
    pub out: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainingEnd {
    /// Every run is at the end of its schedule, or of its patience.
    Finished,
    /// Another round would not have fitted into the budget.
    Budget,
}

/// A run after training.
pub struct VitOutcome {
    pub folder: VitFolder,
    pub epochs: Vec<EpochLine>,
    /// On the test set, at the best epoch.
    pub test: ClassMetrics,
    /// The same as a diagram.
    pub diagram: ReliabilityDiagram,
    /// At the best epoch.
    pub curvature: Option<Measured>,
}

impl VitOutcome {
    fn result(&self) -> anyhow::Result<VitRunResult> {
        let best = best_epoch(&self.epochs).context("no epoch is whole")?;
        let last = self.epochs.last().context("no epoch is whole")?;
        Ok(VitRunResult {
            seed: self.folder.config.training.seed,
            best_epoch: best.epoch,
            epochs: last.epoch,
            images: last.images,
            seconds: last.seconds,
            test: self.test,
            validation: *best,
            curvature: self.curvature.clone(),
        })
    }
}

pub struct VitExperiment {
    pub plan: VitPlan,
    /// In the order of the plan.
    pub outcomes: Vec<VitOutcome>,
    pub end: TrainingEnd,
    pub start: Instant,
}

impl VitPlan {
    /// All seeds, once.
    pub fn seeds(&self) -> Vec<u64> {
        let seeds = self.configs.iter().map(|config| config.training.seed);
        let mut seeds: Vec<u64> = seeds.collect();
        seeds.sort_unstable();
        seeds.dedup();
        seeds
    }

    /// Trains, tests and measures everything that is not there yet.
    pub fn run(self, interrupt: &Interrupt) -> anyhow::Result<VitExperiment> {
        let start = Instant::now();
        let (folders, end) = self.train(interrupt)?;
        let outcomes = folders.into_iter().map(|folder| self.outcome(folder));
        let outcomes = outcomes.collect::<anyhow::Result<_>>()?;
        Ok(VitExperiment {
            plan: self,
            outcomes,
            end,
            start,
        })
    }

    fn outcome(&self, folder: VitFolder) -> anyhow::Result<VitOutcome> {
        let config = &folder.config;
        let name = &config.model.projection.name();
        bring(&folder.best())?;
        let (model, _) = folder.model(&folder.best())?;
        let title = format!("{name}, test set");
        let values = logits(&model, &self.sets.test, &config.data.normalisation, &title)?;
        let values = Logits::new(&values, folder.facts.data.classes)?;
        let (test, diagram) = classify(&values, &labels_of(&self.sets.test)?)?;
        // One seed is enough for a look at the curvature, which takes as long as an epoch.
        let first = self
            .configs
            .iter()
            .find(|other| other.model == config.model);
        let settings = self.curvature.filter(|_| first == Some(config));
        let validation = &self.sets.images.validation;
        let measure = |settings| first_only(|| measure_best(&folder, validation, &settings, name));
        let curvature = settings.map(measure).transpose()?.flatten();
        Ok(VitOutcome {
            epochs: folder.epochs()?,
            folder,
            test,
            diagram,
            curvature,
        })
    }

    /// Trains all runs, one epoch of each, alternating, so that at every moment they have seen the same number of images.
    pub fn train(&self, interrupt: &Interrupt) -> anyhow::Result<(Vec<VitFolder>, TrainingEnd)> {
        ensure!(
            !self.configs.is_empty(),
            "expected at least one model and one seed"
        );
        let facts = DataFacts::of(&self.sets.images.training);
        let mut runs = Vec::new();
        for config in &self.configs {
            // A colon is no part of a file's name everywhere.
            let name = config.model.projection.name().replace(':', "_");
            let seed = format!("seed-{}", config.training.seed);
            let path = self.out.join("runs").join(name).join(seed);
            let folder = VitFolder::at(&path, config.clone(), facts.clone())?;
            runs.push(VitRun::open(folder, &self.sets.images)?);
        }
        let end = self.rounds(&mut runs, interrupt)?;
        Ok((runs.iter().map(|run| run.folder().clone()).collect(), end))
    }

    fn rounds(
        &self,
        runs: &mut [VitRun<'_>],
        interrupt: &Interrupt,
    ) -> anyhow::Result<TrainingEnd> {
        loop {
            let open = runs.iter().filter(|run| run.finished().is_none());
            let Some(done) = open.map(|run| run.epochs().len()).min() else {
                return Ok(TrainingEnd::Finished);
            };
            // By the clock of rank 0.
            let ranks = ranks();
            if ranks.any(ranks.is_first() && !self.has_time(runs, done))? {
                return Ok(TrainingEnd::Budget);
            }
            for run in &mut *runs {
                if run.finished().is_some() || run.epochs().len() > done {
                    continue;
                }
                let title = run.folder().config.name();
                if !run.epoch(interrupt, &title)? || interrupt.is_asked_anywhere()? {
                    bail!(
                        "stopped in {title}; the same command resumes there (--out {})",
                        self.out.display()
                    );
                }
            }
        }
    }

    /// Whether another round of epochs fits into the budget, if it takes as long as the last one. The first one always runs,
    /// and one that has begun is finished.
    fn has_time(&self, runs: &[VitRun<'_>], done: usize) -> bool {
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

impl VitExperiment {
    pub fn results(&self) -> anyhow::Result<VitResults> {
        let mut models: Vec<VitResult> = Vec::new();
        let kind = |outcome: &VitOutcome| outcome.folder.config.model.projection;
        for own in self
            .outcomes
            .chunk_by(|one, other| kind(one) == kind(other))
        {
            let facts = &own[0].folder.facts;
            let runs: anyhow::Result<Vec<VitRunResult>> =
                own.iter().map(VitOutcome::result).collect();
            let counts = [facts.parameters, facts.paper_count];
            models.push(VitResult::new(kind(&own[0]), counts, runs?));
        }
        let (images, test) = (&self.plan.sets.images, &self.plan.sets.test);
        Ok(VitResults {
            data: self.plan.sets.place.clone(),
            images: [images.training.len(), images.validation.len(), test.len()],
            stopped_by: match self.end {
                TrainingEnd::Finished => "schedule",
                TrainingEnd::Budget => "budget",
            },
            stopped: self.stopped(),
            models,
            settings: self.plan.configs[0].clone(),
        })
    }

    fn stopped(&self) -> String {
        let lines = self.outcomes.iter().map(|outcome| outcome.epochs.last());
        let last = lines.map(|line| line.map_or((0, 0), |line| (line.epoch, line.images)));
        let (epochs, images) = last.min().unwrap_or_default();
        let schedule = self.plan.configs[0].training.epochs;
        match (self.end, self.plan.budget) {
            (TrainingEnd::Budget, Some(budget)) => format!(
                "The budget of {} ended training after {epochs} of the {schedule} epochs of the schedule; all models saw the same \
                 {images} images.",
                humantime::format_duration(budget)
            ),
            _ => format!(
                "All models came to the end of the schedule of {schedule} epochs, or ran out of patience."
            ),
        }
    }

    /// Writes `report.html`, its figures as files, and `results.json`, which is there only when everything else is.
    pub fn write(&self) -> anyhow::Result<VitResults> {
        let (out, results) = (&self.plan.out, self.results()?);
        write_report(out, &document(self, &results), &results)?;
        Ok(results)
    }
}
