//! The paper's first experiment: six models on MNIST, with Fashion-MNIST as the out-of-distribution data.

pub mod baselines;
pub mod paper;
mod report;
pub mod results;
pub mod sets;
pub mod settings;

use std::time::Instant;

use circulant::bayes::{Bayesian, Predictions};
use circulant::metrics::ReliabilityDiagram;
use circulant::models::ImageClassifier;

use self::baselines::BaselineLine;
use self::results::{MnistResult, MnistResults, RunMetrics};
use self::sets::MnistSets;
use super::evaluation::labels_of;
use super::folder::{StepLine, write_report};
use super::interrupt::Interrupt;
use super::variant::{SharedPlan, SharedRuns, Variant};
use circulant::metrics::class_metrics;

pub use report::{document, plain};

/// What is asked for.
pub struct MnistPlan {
    pub sets: MnistSets,
    /// The paper's models.
    pub models: Vec<Variant>,
    /// Our variants.
    pub beyond: Vec<Variant>,
    /// Whether other methods run beside ours.
    pub baselines: bool,
    pub shared: SharedPlan,
}

/// The first seed of a model, for the figures.
pub struct MnistExample {
    pub network: Bayesian<ImageClassifier>,
    pub id: Predictions,
    pub ood: Predictions,
    pub diagram: ReliabilityDiagram,
}

/// A model and all its runs.
pub struct MnistOutcome {
    pub variant: Variant,
    pub result: MnistResult,
    pub steps: Vec<Vec<StepLine>>,
    /// The first seed.
    pub example: MnistExample,
}

pub struct MnistExperiment {
    pub plan: MnistPlan,
    pub models: Vec<MnistOutcome>,
    pub beyond: Vec<MnistOutcome>,
    /// Of other methods, if they were asked for.
    pub baselines: Vec<BaselineLine>,
    pub start: Instant,
}

impl MnistPlan {
    /// Trains and evaluates everything. Runs that are already whole in the folder are not repeated.
    pub fn run(self, interrupt: &Interrupt) -> anyhow::Result<MnistExperiment> {
        let start = Instant::now();
        let runs = SharedRuns::new(&self.shared, &self.sets.train, interrupt)?;
        let outcomes = |variants: &[Variant]| -> anyhow::Result<Vec<MnistOutcome>> {
            variants
                .iter()
                .map(|variant| self.outcome(&runs, variant))
                .collect()
        };
        let (models, beyond) = (outcomes(&self.models)?, outcomes(&self.beyond)?);
        let baselines = match self.baselines {
            true => baselines::run(&self.sets, &self.shared, interrupt)?,
            false => Vec::new(),
        };
        Ok(MnistExperiment {
            plan: self,
            models,
            beyond,
            baselines,
            start,
        })
    }

    fn outcome(&self, runs: &SharedRuns<'_>, variant: &Variant) -> anyhow::Result<MnistOutcome> {
        let (mut found, mut steps, mut example, mut count) = (Vec::new(), Vec::new(), None, [0; 2]);
        let sets = &self.sets;
        for &seed in &self.shared.seeds {
            let folder = runs.folder(variant, seed)?;
            count = [folder.facts.weights, folder.facts.biases];
            let trained = runs.train(&folder, variant, None)?;
            steps.push(folder.steps()?);
            let network = trained.network;
            let id = runs.predict(&network, seed, &sets.test, "test set")?;
            let ood = runs.predict(&network, seed, &sets.ood, sets.ood_name)?;
            let labels = labels_of(&sets.test)?;
            let (class, diagram) = class_metrics(&id.class_probabilities()?, &labels)?;
            found.push(RunMetrics {
                class,
                ood: id.ood_metrics(&ood)?,
                seconds: trained.seconds,
            });
            example.get_or_insert(MnistExample {
                network,
                id,
                ood,
                diagram,
            });
        }
        Ok(MnistOutcome {
            result: MnistResult::new(variant.name.clone(), count, &found),
            variant: variant.clone(),
            steps,
            example: example.expect("there is a seed"),
        })
    }
}

impl MnistExperiment {
    pub fn results(&self) -> MnistResults {
        let results = |outcomes: &[MnistOutcome]| {
            let results = outcomes.iter().map(|outcome| outcome.result.clone());
            results.collect()
        };
        MnistResults {
            data: self.plan.sets.name.to_owned(),
            ood: self.plan.sets.ood_name.to_owned(),
            seeds: self.plan.shared.seeds.clone(),
            samples: self.plan.shared.samples,
            models: results(&self.models),
            beyond: results(&self.beyond),
            baselines: self.baselines.clone(),
            settings: self.plan.shared.settings.clone(),
            wall_seconds: self.start.elapsed().as_secs_f64(),
        }
    }

    /// Writes `report.html`, its figures as files, and `results.json`, which is there only when everything else is.
    pub fn write(&self) -> anyhow::Result<MnistResults> {
        let results = self.results();
        write_report(&self.plan.shared.out, &document(self)?, &results)?;
        Ok(results)
    }
}
