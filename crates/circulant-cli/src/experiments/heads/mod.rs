//! The paper's second experiment: Bayesian heads on frozen features, with corrupted images as the out-of-distribution data.

pub mod paper;
mod report;
pub mod results;
pub mod sets;
pub mod settings;
mod table;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use burn::module::Module;
use circulant::bayes::{Bayesian, Predictions};
use circulant::geometry::Lipschitz;
use circulant::models::ImageClassifier;
use serde::{Deserialize, Serialize};

use self::results::{CorruptionMetrics, HeadGeometry, HeadMetrics, HeadResult, HeadsResults};
use self::sets::FeatureSets;
use super::config::RunConfig;
use super::evaluation::{Sampling, labels_of};
use super::folder::{RunFolder, write_report};
use super::geometry::NetworkGeometry;
use super::interrupt::Interrupt;
use super::lines::{self, Log};
use super::training::Observer;
use super::variant::{SharedRuns, Variant};
use crate::report::figure::{Distribution, Radii};
use circulant::metrics::class_metrics;

pub use report::document;
pub use table::plain;

/// How many inputs every network drawn from the posterior is certified at.
const PER_SAMPLE: usize = 200;
/// Looks at the Lipschitz bound during training.
const LOOKS: u64 = 40;

/// What is asked for.
pub struct HeadsPlan {
    /// The features.
    pub sets: FeatureSets,
    /// What the images are called.
    pub data: String,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
    /// The heads.
    pub heads: Vec<Variant>,
    /// What they share.
    pub settings: RunConfig,
    /// Posterior samples of the predictions.
    pub samples: usize,
    /// The folder for everything.
    pub out: PathBuf,
}

/// One look at the bound: a line of `lipschitz.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BoundLine {
    /// Steps done.
    pub step: u64,
    /// The Lipschitz bound of the posterior's mean.
    pub bound: f64,
}

/// A head and all its runs.
pub struct HeadOutcome {
    /// The head.
    pub variant: Variant,
    /// Its numbers.
    pub result: HeadResult,
    /// The bound during training, first seed.
    pub trajectory: Vec<BoundLine>,
    /// Of networks drawn from the posterior, first seed.
    pub bounds: Distribution,
    /// Proven radii of the posterior's mean where the class is right, first seed.
    pub radii: Radii,
    /// On the clean test features, first seed.
    pub id_entropy: Vec<f32>,
    /// On all corruptions of severity 5, first seed.
    pub ood_entropy: Vec<f32>,
}

/// Everything that was run.
pub struct HeadsExperiment {
    /// What was asked for.
    pub plan: HeadsPlan,
    /// The heads.
    pub heads: Vec<HeadOutcome>,
    /// Since when.
    pub start: Instant,
}

impl HeadsPlan {
    /// Whether the numbers may stand beside the paper's.
    pub fn is_the_papers(&self) -> bool {
        self.data == "cifar10"
    }

    /// Trains and evaluates everything. Runs that are already whole in the folder are not repeated.
    pub fn run(self, interrupt: &Interrupt) -> anyhow::Result<HeadsExperiment> {
        let start = Instant::now();
        let normalisation = &self.settings.data.normalisation;
        let (seeds, train) = (&self.seeds, &self.sets.train);
        let runs = SharedRuns::new(&self.out, seeds, train, normalisation, interrupt)?;
        let work = HeadsWork { plan: &self, runs };
        let heads: anyhow::Result<Vec<HeadOutcome>> =
            self.heads.iter().map(|head| work.outcome(head)).collect();
        Ok(HeadsExperiment {
            heads: heads?,
            plan: self,
            start,
        })
    }
}

/// Writes the bound down while a head learns.
struct BoundLog {
    every: u64,
    log: Log<BoundLine>,
}

impl Observer for BoundLog {
    fn every(&self) -> u64 {
        self.every
    }

    fn see(&mut self, step: u64, network: &Bayesian<ImageClassifier>) -> anyhow::Result<()> {
        let bound = network.valid().mean().network_bound()?.upper().get();
        self.log.add(&BoundLine { step, bound })
    }
}

struct HeadsWork<'a> {
    plan: &'a HeadsPlan,
    runs: SharedRuns<'a>,
}

/// What the first seed is used for besides its metrics.
struct HeadExample {
    network: Bayesian<ImageClassifier>,
    trajectory: Vec<BoundLine>,
    id: Predictions,
    ood_entropy: Vec<f32>,
}

impl HeadsWork<'_> {
    fn outcome(&self, variant: &Variant) -> anyhow::Result<HeadOutcome> {
        let (mut runs, mut example, mut counts) = (Vec::new(), None, [0; 2]);
        for &seed in &self.plan.seeds {
            let (folder, metrics, found) = self.one(variant, seed)?;
            counts = [folder.facts.weights, folder.facts.biases];
            runs.push(metrics);
            example.get_or_insert(found);
        }
        let example = example.context("there is a seed")?;
        let (network, test) = (&example.network, &self.plan.sets.test);
        let normalisation = &self.plan.settings.data.normalisation;
        let found = NetworkGeometry::measure(network, test, normalisation, PER_SAMPLE)?;
        let geometry = HeadGeometry::new(&found);
        let modes = settings::modes(&variant.config, self.plan.sets.features());
        Ok(HeadOutcome {
            result: HeadResult::new(variant.name.clone(), counts, modes, geometry, runs),
            variant: variant.clone(),
            trajectory: example.trajectory,
            bounds: found.bounds(&variant.title),
            radii: found.radii(&variant.title),
            id_entropy: example.id.predictive_entropy,
            ood_entropy: example.ood_entropy,
        })
    }

    fn one(
        &self,
        variant: &Variant,
        seed: u64,
    ) -> anyhow::Result<(RunFolder, HeadMetrics, HeadExample)> {
        let folder = self.runs.folder(variant, seed)?;
        let log_path = folder.path().join("lipschitz.jsonl");
        // Lines of steps that no checkpoint has are forgotten with them.
        let done = folder.steps()?.len() as u64;
        let mut kept: Vec<BoundLine> = lines::read(&log_path)?;
        kept.retain(|line| folder.checkpoint().exists() && line.step <= done);
        let mut observer = BoundLog {
            every: (folder.config.training.steps / LOOKS).max(1),
            log: Log::open(&log_path, &kept)?,
        };
        let trained = self.runs.train(&folder, variant, Some(&mut observer))?;
        let (metrics, id, ood_entropy) = self.evaluate(&trained.network, seed, trained.seconds)?;
        let example = HeadExample {
            network: trained.network,
            trajectory: lines::read(&log_path)?,
            id,
            ood_entropy,
        };
        Ok((folder, metrics, example))
    }

    fn evaluate(
        &self,
        network: &Bayesian<ImageClassifier>,
        seed: u64,
        seconds: f64,
    ) -> anyhow::Result<(HeadMetrics, Predictions, Vec<f32>)> {
        let sets = &self.plan.sets;
        let sampling = Sampling {
            samples: self.plan.samples,
            seed,
        };
        let normalisation = &self.plan.settings.data.normalisation;
        let id = sampling.predict(network, &sets.test, normalisation, "test features")?;
        let (class, _) = class_metrics(&id.class_probabilities()?, &labels_of(&sets.test)?)?;
        let (mut corruptions, mut entropies) = (Vec::new(), Vec::new());
        for corrupted in &sets.corrupted {
            let name = corrupted.corruption.name();
            let ood = sampling.predict(network, &corrupted.set, normalisation, name)?;
            let metrics = id.ood_metrics(&ood)?;
            let (class, _) =
                class_metrics(&ood.class_probabilities()?, &labels_of(&corrupted.set)?)?;
            corruptions.push(CorruptionMetrics {
                corruption: name,
                severity: corrupted.severity.level(),
                auroc: metrics.auroc,
                fpr95: metrics.fpr95,
                accuracy: class.accuracy,
            });
            if corrupted.severity.level() == 5 {
                entropies.extend(ood.predictive_entropy);
            }
        }
        let metrics = HeadMetrics {
            seed,
            class,
            corruptions,
            seconds,
        };
        Ok((metrics, id, entropies))
    }
}

impl HeadsExperiment {
    /// The numbers.
    pub fn results(&self) -> HeadsResults {
        let (plan, sets) = (&self.plan, &self.plan.sets);
        let runs = self.heads.iter().flat_map(|head| &head.result.runs);
        HeadsResults {
            data: plan.data.clone(),
            inputs: [
                sets.train.len(),
                sets.test.len(),
                sets.corrupted
                    .first()
                    .map_or(0, |corrupted| corrupted.set.len()),
            ],
            features: sets.features(),
            seeds: plan.seeds.clone(),
            samples: plan.samples,
            heads: self.heads.iter().map(|head| head.result.clone()).collect(),
            settings: plan.settings.clone(),
            training_seconds: runs.map(|run| run.seconds).sum(),
            wall_seconds: self.start.elapsed().as_secs_f64(),
        }
    }

    /// Writes `report.html`, its figures as files, and `results.json`, which is there only when everything else is.
    pub fn write(&self) -> anyhow::Result<HeadsResults> {
        let (out, results) = (&self.plan.out, self.results());
        write_report(out, &document(self, &results)?, &results)?;
        Ok(results)
    }
}
