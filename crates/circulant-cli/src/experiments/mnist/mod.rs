//! The paper's first experiment: six models on MNIST, with Fashion-MNIST as the out-of-distribution data.

pub mod paper;
mod report;
pub mod results;
pub mod sets;
pub mod settings;
mod table;

use std::path::PathBuf;
use std::time::Instant;

use circulant::bayes::{Bayesian, Predictions};
use circulant::metrics::ReliabilityDiagram;
use circulant::models::ImageClassifier;

use self::results::{MnistResult, MnistResults, RunMetrics};
use self::sets::MnistSets;
use super::config::RunConfig;
use super::evaluation::{Sampling, labels_of};
use super::folder::{StepLine, write_report};
use super::interrupt::Interrupt;
use super::variant::{SharedRuns, Variant};
use circulant::metrics::class_metrics;

pub use report::document;
pub use table::plain;

/// What is asked for.
pub struct MnistPlan {
    /// The data.
    pub sets: MnistSets,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
    /// The paper's models.
    pub models: Vec<Variant>,
    /// Our variants.
    pub beyond: Vec<Variant>,
    /// What the paper's models share.
    pub settings: RunConfig,
    /// Posterior samples of the predictions.
    pub samples: usize,
    /// The folder for everything.
    pub out: PathBuf,
}

/// The first seed of a model, for the figures.
pub struct MnistExample {
    /// The trained network.
    pub network: Bayesian<ImageClassifier>,
    /// On the test set.
    pub id: Predictions,
    /// On the other set.
    pub ood: Predictions,
    /// On the test set.
    pub diagram: ReliabilityDiagram,
}

/// A model and all its runs.
pub struct MnistOutcome {
    /// The model.
    pub variant: Variant,
    /// Its numbers.
    pub result: MnistResult,
    /// The steps of every seed.
    pub steps: Vec<Vec<StepLine>>,
    /// The first seed.
    pub example: MnistExample,
}

/// Everything that was run.
pub struct MnistExperiment {
    /// What was asked for.
    pub plan: MnistPlan,
    /// The paper's models.
    pub models: Vec<MnistOutcome>,
    /// Our variants.
    pub beyond: Vec<MnistOutcome>,
    /// Since when.
    pub start: Instant,
}

impl MnistPlan {
    /// Trains and evaluates everything. Runs that are already whole in the folder are not repeated.
    pub fn run(self, interrupt: &Interrupt) -> anyhow::Result<MnistExperiment> {
        let start = Instant::now();
        let normalisation = &self.settings.data.normalisation;
        let (seeds, train) = (&self.seeds, &self.sets.train);
        let runs = SharedRuns::new(&self.out, seeds, train, normalisation, interrupt)?;
        let work = MnistWork { plan: &self, runs };
        let outcomes = |variants: &[Variant]| -> anyhow::Result<Vec<MnistOutcome>> {
            variants
                .iter()
                .map(|variant| work.outcome(variant))
                .collect()
        };
        let (models, beyond) = (outcomes(&self.models)?, outcomes(&self.beyond)?);
        Ok(MnistExperiment {
            plan: self,
            models,
            beyond,
            start,
        })
    }
}

struct MnistWork<'a> {
    plan: &'a MnistPlan,
    runs: SharedRuns<'a>,
}

impl MnistWork<'_> {
    fn outcome(&self, variant: &Variant) -> anyhow::Result<MnistOutcome> {
        let (mut runs, mut steps, mut example, mut count) = (Vec::new(), Vec::new(), None, [0; 2]);
        for &seed in &self.plan.seeds {
            let folder = self.runs.folder(variant, seed)?;
            count = [folder.facts.weights, folder.facts.biases];
            let trained = self.runs.train(&folder, variant, None)?;
            let (metrics, evaluated) = self.evaluate(trained.network, seed, trained.seconds)?;
            runs.push(metrics);
            steps.push(folder.steps()?);
            example.get_or_insert(evaluated);
        }
        Ok(MnistOutcome {
            result: MnistResult::new(variant.name.clone(), count, &runs),
            variant: variant.clone(),
            steps,
            example: example.expect("there is a seed"),
        })
    }

    fn evaluate(
        &self,
        network: Bayesian<ImageClassifier>,
        seed: u64,
        seconds: f64,
    ) -> anyhow::Result<(RunMetrics, MnistExample)> {
        let sets = &self.plan.sets;
        let sampling = Sampling {
            samples: self.plan.samples,
            seed,
        };
        let normalisation = &self.plan.settings.data.normalisation;
        let predict = |set, title| sampling.predict(&network, set, normalisation, title);
        let id = predict(&sets.test, "test set")?;
        let ood = predict(&sets.ood, sets.ood_name)?;
        let (class, diagram) = class_metrics(&id.class_probabilities()?, &labels_of(&sets.test)?)?;
        let metrics = RunMetrics {
            class,
            ood: id.ood_metrics(&ood)?,
            seconds,
        };
        let example = MnistExample {
            network,
            id,
            ood,
            diagram,
        };
        Ok((metrics, example))
    }
}

impl MnistExperiment {
    /// The numbers.
    pub fn results(&self) -> MnistResults {
        let results = |outcomes: &[MnistOutcome]| {
            let results = outcomes.iter().map(|outcome| outcome.result.clone());
            results.collect()
        };
        MnistResults {
            data: self.plan.sets.name.to_owned(),
            ood: self.plan.sets.ood_name.to_owned(),
            seeds: self.plan.seeds.clone(),
            samples: self.plan.samples,
            models: results(&self.models),
            beyond: results(&self.beyond),
            settings: self.plan.settings.clone(),
            wall_seconds: self.start.elapsed().as_secs_f64(),
        }
    }

    /// Writes `report.html`, its figures as files, and `results.json`, which is there only when everything else is.
    pub fn write(&self) -> anyhow::Result<MnistResults> {
        let results = self.results();
        write_report(&self.plan.out, &document(self)?, &results)?;
        Ok(results)
    }
}
