//! Tables whose target is a number or a count: training data, a loaded run, predictions in the target's own unit.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use burn::tensor::{Tensor, TensorData};
use circulant::bayes::{Bayesian, PredictiveConfig};
use circulant::data::RegressionData;
use circulant::metrics::{IntervalCoverage, Mixtures, RegressionMetrics, RegressionReport};
use circulant::models::{Likelihood, TargetNetwork};
use circulant_data::{EncodedTable, Split, TableSchema, TableTask};
use serde::Serialize;

use super::certified::folder::CertifiedFolder;
use super::config::{DataConfig, Inference};
use super::folder::RunFolder;
use super::intervals::IntervalReport;
use super::progress::WorkProgress;
use super::source::reading;
use super::table;
use crate::ranks::ranks;

/// Rows with their targets, for training.
pub fn labelled(table: &EncodedTable, schema: &TableSchema) -> anyhow::Result<RegressionData<2>> {
    let place = table.inputs.source();
    let targets = table.targets.as_ref().with_context(|| {
        format!(
            "{place} has no column {:?}, which is to be predicted",
            schema.target
        )
    })?;
    let device = circulant::cpu();
    let (values, shape) = (table.inputs.values().to_vec(), table.inputs.shape());
    let data = match schema.task {
        TableTask::Regression { mean, deviation } => {
            let standard = |y: &f64| ((y - mean) / deviation) as f32;
            let targets: Vec<f32> = targets.iter().map(standard).collect();
            RegressionData::new(values, shape, &targets, &device)
        }
        _ => {
            let targets: Vec<f32> = targets.iter().map(|&y| y as f32).collect();
            RegressionData::counts(values, shape, &targets, &device)
        }
    };
    data.with_context(|| format!("{place} does not suit the model"))
}

/// Predicts rows, shared out among all ranks, in the unit of the target. Long work shows its progress under a title.
pub fn predict(
    network: &Bayesian<TargetNetwork>,
    table: &EncodedTable,
    schema: &TableSchema,
    samples: usize,
    seed: u64,
    title: &str,
) -> anyhow::Result<Mixtures> {
    let data = TensorData::new(table.inputs.values().to_vec(), table.inputs.shape());
    let inputs = Tensor::<2>::from_data(data, &circulant::cpu());
    let config = PredictiveConfig::new()
        .with_samples(samples)
        .with_seed(seed);
    let ranks = ranks();
    if !ranks.is_alone() {
        ranks.compare(&[("the data", table.inputs.fingerprint().to_string())])?;
    }
    let mut progress = WorkProgress::quiet(title, table.inputs.shape()[0] as u64);
    let report = |done: usize, all: usize| progress.of(all as u64).at(done as u64, String::new);
    let found = config.predict_targets_on(&ranks, network, inputs, report)?;
    progress.clear();
    Ok(match schema.task {
        TableTask::Regression { mean, deviation } => found.rescaled(mean, deviation)?,
        _ => found,
    })
}

/// `metrics.json` of a regression.
#[derive(Debug, Clone, Serialize)]
pub struct TargetMetrics {
    /// The folder of the run.
    pub run: PathBuf,
    /// The kind of its hidden layers.
    pub model: &'static str,
    /// Steps of training behind it.
    pub steps: u64,
    /// Posterior samples.
    pub samples: usize,
    /// The data.
    pub data: String,
    /// The name of the target.
    pub target: String,
    /// On them.
    #[serde(flatten)]
    pub report: RegressionReport,
    /// The root mean square error of always answering the mean of the training rows.
    pub rmse_of_mean: f64,
    /// How often intervals hold the target.
    pub coverage: Vec<IntervalCoverage>,
    /// Where a coverage was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promised: Option<IntervalReport>,
}

/// The run of a regression that is used.
pub struct LoadedRegression {
    /// Settings and facts.
    pub folder: RunFolder,
    /// What was learned from the columns.
    pub schema: TableSchema,
    /// At its last checkpoint.
    pub network: Bayesian<TargetNetwork>,
    /// Steps of training behind it.
    pub steps: u64,
}

impl LoadedRegression {
    /// Opens the folder of a run if it is a regression.
    pub fn open(path: &Path) -> anyhow::Result<Option<Self>> {
        if path.is_file() || !path.join(super::folder::CONFIG).is_file() {
            return Ok(None);
        }
        if CertifiedFolder::is_at(path) {
            return Ok(None);
        }
        let folder = RunFolder::open(path)?;
        match (
            folder.facts.data.likelihood(),
            folder.facts.data.table.clone(),
        ) {
            (Some(likelihood), Some(schema)) => Self::with(folder, likelihood, schema).map(Some),
            _ => Ok(None),
        }
    }

    fn with(
        folder: RunFolder,
        likelihood: Likelihood,
        schema: TableSchema,
    ) -> anyhow::Result<Self> {
        let (network, steps) = folder.target_network(likelihood)?;
        Ok(Self {
            folder,
            schema,
            network,
            steps,
        })
    }

    /// Reads a table as the training table was, all of its rows.
    pub fn table(&self, place: &str, split: Split) -> anyhow::Result<EncodedTable> {
        let options = DataConfig {
            labels: None,
            every_row: true,
            ..self.folder.config.data.clone()
        };
        table::encoded(place, &reading(split, &options), &self.schema, &options)
    }

    /// The rows that training held out.
    pub fn held_out(&self) -> anyhow::Result<EncodedTable> {
        let data = &self.folder.config.data;
        let learned = read_again(data)?;
        learned.validation.context(
            "nothing was held out of this run; name data with --data, or train with --validation",
        )
    }

    /// Whether there is a distribution, or a point only.
    pub fn is_bayesian(&self) -> bool {
        self.folder.config.posterior.inference == Inference::Bayesian
    }

    /// The predictions of a table.
    pub fn predict(
        &self,
        table: &EncodedTable,
        samples: usize,
        seed: u64,
    ) -> anyhow::Result<Mixtures> {
        // Draws from a point are all the same.
        let samples = if self.is_bayesian() { samples } else { 1 };
        predict(
            &self.network,
            table,
            &self.schema,
            samples,
            seed,
            "predicting",
        )
    }

    /// The targets of a table that must have some.
    pub fn targets_of<'a>(&self, table: &'a EncodedTable) -> anyhow::Result<&'a [f64]> {
        table.targets.as_deref().with_context(|| {
            format!(
                "{} has no column {:?} with a value in every row; `circulant predict` needs none",
                table.inputs.source(),
                self.schema.target
            )
        })
    }

    /// What the predictions of a table with targets are worth.
    pub fn evaluate(
        &self,
        table: &EncodedTable,
        samples: usize,
        seed: u64,
    ) -> anyhow::Result<TargetMetrics> {
        let place = table.inputs.source();
        let targets = self.targets_of(table)?;
        let predictions = self.predict(table, samples, seed)?;
        let mut metrics = RegressionMetrics::default();
        metrics.update(&predictions, targets)?;
        let mean = match self.schema.task {
            TableTask::Regression { mean, .. } | TableTask::Counts { mean } => mean,
            TableTask::Classification { .. } => f64::NAN,
        };
        let squares: f64 = targets.iter().map(|y| (y - mean).powi(2)).sum();
        Ok(TargetMetrics {
            run: self.folder.path().to_owned(),
            model: self.folder.config.model.kind.name(),
            steps: self.steps,
            samples,
            data: place.to_owned(),
            target: self.schema.target.clone(),
            report: metrics.finish()?,
            rmse_of_mean: (squares / targets.len() as f64).sqrt(),
            coverage: metrics.coverage()?,
            promised: None,
        })
    }
}

/// Reads the training data of a run and splits them as training did.
pub fn read_again(data: &DataConfig) -> anyhow::Result<table::LearnedTable> {
    let raw = table::read(data)?;
    let raw = raw.with_context(|| format!("{} is no table any more", data.train))?;
    let learned = table::learn(raw, data)?;
    ensure!(
        data.schema.as_ref() == Some(&learned.schema),
        "{}: the data have changed since this run began; put the old data back, or begin a new run",
        data.train
    );
    Ok(learned)
}
