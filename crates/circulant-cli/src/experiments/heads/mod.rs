//! The paper's second experiment: Bayesian heads on frozen features, with corrupted images as the out-of-distribution data.

pub mod paper;
mod report;
pub mod results;
pub mod sets;
pub mod settings;

use std::time::Instant;

use anyhow::Context;
use burn::module::Module;
use circulant::bayes::{Bayesian, Predictions};
use circulant::geometry::Lipschitz;
use circulant::models::ImageClassifier;
use serde::{Deserialize, Serialize};

use self::results::{CorruptionMetrics, HeadGeometry, HeadMetrics, HeadResult, HeadsResults};
use self::sets::FeatureSets;
use super::evaluation::labels_of;
use super::folder::{RunFolder, write_report};
use super::geometry::NetworkGeometry;
use super::interrupt::Interrupt;
use super::lines::{self, Log};
use super::training::{Observer, Trained};
use super::variant::{SharedPlan, SharedRuns, Variant};
use circulant::metrics::class_metrics;

pub use report::{document, plain};

/// How many inputs every network drawn from the posterior is certified at.
const PER_SAMPLE: usize = 200;
/// Looks at the Lipschitz bound during training.
const LOOKS: u64 = 40;

/// What is asked for.
pub struct HeadsPlan {
    pub sets: FeatureSets,
    /// What the images are called.
    pub data: String,
    pub heads: Vec<Variant>,
    pub shared: SharedPlan,
}

/// One look at the bound: a line of `lipschitz.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BoundLine {
    pub step: u64,
    /// The Lipschitz bound of the posterior's mean.
    pub bound: f64,
}

/// A head and all its runs.
pub struct HeadOutcome {
    pub variant: Variant,
    pub result: HeadResult,
    /// The bound during training, first seed.
    pub trajectory: Vec<BoundLine>,
    /// Of the first seed.
    pub geometry: NetworkGeometry,
    /// On the clean test features, first seed.
    pub id_entropy: Vec<f32>,
    /// On all corruptions of severity 5, first seed.
    pub ood_entropy: Vec<f32>,
}

pub struct HeadsExperiment {
    pub plan: HeadsPlan,
    pub heads: Vec<HeadOutcome>,
    pub start: Instant,
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

/// What the first seed is used for besides its metrics.
struct HeadExample {
    network: Bayesian<ImageClassifier>,
    trajectory: Vec<BoundLine>,
    id: Predictions,
    ood_entropy: Vec<f32>,
}

impl HeadsPlan {
    /// Whether the numbers may stand beside the paper's.
    pub fn is_the_papers(&self) -> bool {
        self.data == "cifar10"
    }

    /// Trains and evaluates everything. Runs that are already whole in the folder are not repeated.
    pub fn run(self, interrupt: &Interrupt) -> anyhow::Result<HeadsExperiment> {
        let start = Instant::now();
        let runs = SharedRuns::new(&self.shared, &self.sets.train, interrupt)?;
        let heads = self.heads.iter().map(|head| self.outcome(&runs, head));
        let heads: anyhow::Result<Vec<HeadOutcome>> = heads.collect();
        Ok(HeadsExperiment {
            heads: heads?,
            plan: self,
            start,
        })
    }

    fn outcome(&self, runs: &SharedRuns<'_>, variant: &Variant) -> anyhow::Result<HeadOutcome> {
        let (mut found, mut example, mut counts) = (Vec::new(), None, [0; 2]);
        for &seed in &self.shared.seeds {
            let (folder, metrics, first) = self.one(runs, variant, seed)?;
            counts = [folder.facts.weights, folder.facts.biases];
            found.push(metrics);
            example.get_or_insert(first);
        }
        let example = example.context("there is a seed")?;
        let (network, test) = (&example.network, &self.sets.test);
        let normalisation = &self.shared.settings.data.normalisation;
        let geometry = NetworkGeometry::measure(network, test, normalisation, PER_SAMPLE)?;
        let summary = HeadGeometry::new(&geometry);
        let modes = settings::modes(&variant.config, self.sets.features());
        Ok(HeadOutcome {
            result: HeadResult::new(variant.name.clone(), counts, modes, summary, found),
            variant: variant.clone(),
            trajectory: example.trajectory,
            geometry,
            id_entropy: example.id.predictive_entropy,
            ood_entropy: example.ood_entropy,
        })
    }

    fn one(
        &self,
        runs: &SharedRuns<'_>,
        variant: &Variant,
        seed: u64,
    ) -> anyhow::Result<(RunFolder, HeadMetrics, HeadExample)> {
        let folder = runs.folder(variant, seed)?;
        let log_path = folder.path().join("lipschitz.jsonl");
        // Lines of steps that no checkpoint has are forgotten with them.
        let done = folder.steps()?.len() as u64;
        let mut kept: Vec<BoundLine> = lines::read(&log_path)?;
        kept.retain(|line| folder.checkpoint().exists() && line.step <= done);
        let mut observer = BoundLog {
            every: (folder.config.training.steps / LOOKS).max(1),
            log: Log::open(&log_path, &kept)?,
        };
        let trained = runs.train(&folder, variant, Some(&mut observer))?;
        let (metrics, id, ood_entropy) = self.evaluate(runs, &trained, seed)?;
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
        runs: &SharedRuns<'_>,
        trained: &Trained,
        seed: u64,
    ) -> anyhow::Result<(HeadMetrics, Predictions, Vec<f32>)> {
        let sets = &self.sets;
        let predict = |set, name| runs.predict(&trained.network, seed, set, name);
        let id = predict(&sets.test, "test features")?;
        let (class, _) = class_metrics(&id.class_probabilities()?, &labels_of(&sets.test)?)?;
        let (mut corruptions, mut entropies) = (Vec::new(), Vec::new());
        for corrupted in &sets.corrupted {
            let name = corrupted.corruption.name();
            let ood = predict(&corrupted.set, name)?;
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
            seconds: trained.seconds,
        };
        Ok((metrics, id, entropies))
    }
}

impl HeadsExperiment {
    pub fn results(&self) -> HeadsResults {
        let (plan, sets) = (&self.plan, &self.plan.sets);
        let runs = self.heads.iter().flat_map(|head| &head.result.runs);
        HeadsResults {
            data: plan.data.clone(),
            inputs: [
                sets.train.len(),
                sets.test.len(),
                sets.corrupted[0].set.len(),
            ],
            features: sets.features(),
            seeds: plan.shared.seeds.clone(),
            samples: plan.shared.samples,
            heads: self.heads.iter().map(|head| head.result.clone()).collect(),
            settings: plan.shared.settings.clone(),
            training_seconds: runs.map(|run| run.seconds).sum(),
            wall_seconds: self.start.elapsed().as_secs_f64(),
        }
    }

    /// Writes `report.html`, its figures as files, and `results.json`, which is there only when everything else is.
    pub fn write(&self) -> anyhow::Result<HeadsResults> {
        let (out, results) = (&self.plan.shared.out, self.results());
        write_report(out, &document(self, &results)?, &results)?;
        Ok(results)
    }
}
