//! The fits: arrays as the program's training data, trained as the program does.

use std::path::Path;

use anyhow::ensure;
use circulant::bayes::{Bayesian, Network};
use circulant::data::{LabelledData, RegressionData};
use circulant::models::{ImageClassifier, Likelihood, ParameterCount, TargetNetwork};
use circulant_cli::bindings::{
    DataFacts, Facts, Fitted, LoadedRegression, LoadedRun, RunConfig, RunFacts, RunFolder,
    all_steps, class_settings, classifier_of, classifier_svi, fit_classifier, fit_further,
    fit_regression, regression_of, table_settings, target_svi,
};
use circulant_data::{Normalisation, TableTask};

use crate::arrays::Number;
use crate::classifier::Classifier;
use crate::familiar;
use crate::regressor::Regressor;
use crate::table::{Columns, Examples, Rows};
use crate::threads::Stop;
use crate::training::{Progress, settings_over};

/// What both fits are given.
pub struct Task<'a, T> {
    /// In JSON; what is left out has the program's default.
    pub settings: &'a str,
    /// Whether the settings are those of tables.
    pub table: bool,
    /// Whether the evidence chooses the size.
    pub choose: bool,
    /// What to learn from.
    pub rows: Rows<'a, T>,
    /// One per row.
    pub weights: Option<&'a [f64]>,
    /// Whether columns are shifted and scaled.
    pub standardise: bool,
    /// One per column.
    pub names: &'a [String],
    /// The name of the target.
    pub target_name: &'a str,
    /// Examples seen before, where training goes on.
    pub seen: usize,
}

/// The targets of a classifier.
pub struct Classes<'a> {
    /// One per row.
    pub labels: &'a [i64],
    /// As many as classes.
    pub names: Vec<String>,
    /// Rows as images `[channels, height, width]`.
    pub image: Option<[usize; 3]>,
}

/// The targets of a regression.
pub struct Targets<'a> {
    /// One per row.
    pub values: &'a [f64],
    /// Whether they are counts.
    pub counts: bool,
}

/// A network, and the settings and steps behind it.
struct Made<M> {
    config: RunConfig,
    line: String,
    network: Bayesian<M>,
    steps: u64,
    loss: Option<f64>,
}

impl<M: Network> From<Fitted<M>> for Made<M> {
    fn from(Fitted { chosen, trained }: Fitted<M>) -> Self {
        Self {
            config: chosen.config,
            line: chosen.line,
            network: trained.network,
            steps: trained.steps,
            loss: trained.loss,
        }
    }
}

impl<T: Number> Task<'_, T> {
    fn examples(&self, targets: &[u64]) -> anyhow::Result<Examples> {
        let rows = self.rows;
        ensure!(
            rows.columns > 0
                && self.names.len() == rows.columns
                && rows.values.len() == targets.len() * rows.columns,
            "x: expected {} rows of {} values, got {} values",
            targets.len(),
            rows.columns,
            rows.values.len()
        );
        ensure!(
            self.weights
                .is_none_or(|weights| weights.len() == targets.len()),
            "one weight per row is expected"
        );
        let examples = Examples::of(rows, targets, self.weights);
        ensure!(
            !examples.rows.is_empty(),
            "expected at least one example with a positive weight"
        );
        Ok(examples)
    }

    fn columns(&self, examples: &Examples, plane: usize) -> Columns {
        match self.standardise {
            true => Columns::of(self.rows, examples, plane),
            false => Columns::identity(self.rows.columns),
        }
    }

    /// The settings, over those of what training goes on from.
    fn config(
        &self,
        before: Option<&RunConfig>,
        of_tables: fn(usize) -> RunConfig,
    ) -> anyhow::Result<RunConfig> {
        let Some(before) = before else {
            let base = match self.table {
                true => of_tables(self.rows.count()),
                false => RunConfig::default(),
            };
            return settings_over(&base, self.settings);
        };
        let given = settings_over(before, self.settings)?;
        // The network is there already.
        Ok(RunConfig {
            training: given.training,
            ..before.clone()
        })
    }

    fn values(&self, columns: &Columns, examples: &Examples) -> Vec<f32> {
        columns.apply(self.rows, examples.rows.iter().copied())
    }
}

fn weights_of(examples: &Examples) -> Option<Vec<f32>> {
    let weights = examples.weights.as_ref()?;
    Some(weights.iter().map(|&weight| weight as f32).collect())
}

/// Trains a classifier until all steps are done or somebody asks to stop.
pub fn classifier<T: Number>(
    task: &Task<'_, T>,
    classes: &Classes<'_>,
    begin: Option<&Classifier>,
    stop: &Stop,
    told: &Progress,
) -> anyhow::Result<Classifier> {
    let (labels, count) = (classes.labels, classes.names.len());
    let is_class = |label: &i64| usize::try_from(*label).is_ok_and(|label| label < count);
    ensure!(
        labels.iter().all(is_class),
        "labels: expected classes from 0 to {count}, without the last"
    );
    let targets: Vec<u64> = labels.iter().map(|&label| label as u64).collect();
    let examples = task.examples(&targets)?;
    let image = classes.image.unwrap_or([1, 1, task.rows.columns]);
    let [channels, height, width] = image;
    let plane = height * width;
    let columns = match begin {
        Some(before) => before.columns().clone(),
        None if classes.image.is_some() => task.columns(&examples, plane).single(),
        None => task.columns(&examples, 1),
    };
    let mut config = task.config(
        begin
            .map(|before| before.lock().folder.config.clone())
            .as_ref(),
        class_settings,
    )?;
    config.data.train = String::new();
    let schema = match classes.image {
        // Rows of a table: every column is prepared on its own, which the schema tells.
        None => {
            config.data.normalisation = Normalisation::Raw;
            let task_of_table = TableTask::Classification {
                classes: classes.names.clone(),
            };
            Some(columns.schema(task.names, task.target_name, task_of_table))
        }
        Some(_) => {
            let of_channels = |values: &[f64]| -> Vec<f32> {
                let each = (0..channels).map(|channel| values[channel * plane] as f32);
                each.collect()
            };
            config.data.normalisation = match task.standardise {
                true => Normalisation::Standard {
                    mean: of_channels(&columns.mean),
                    std: of_channels(&columns.deviation),
                },
                false => Normalisation::Raw,
            };
            None
        }
    };
    config.data.schema.clone_from(&schema);
    let rows = examples.rows.len();
    let shape = [rows, channels, height, width];
    let chosen: Vec<i64> = examples.targets(labels).collect();
    let values = task.values(&columns, &examples);
    let some = familiar::some(&values, task.rows.columns);
    let mut data = LabelledData::new(values, shape, &chosen, count, &circulant::cpu())?;
    if let Some(weights) = weights_of(&examples) {
        data = data.weighted(weights)?;
    }
    // Then there was no right to record on the tape.
    ensure!(!stop.is_asked(), "asked to stop");
    let steps = steps_of(&config, task.choose && begin.is_none(), None);
    let mut watch = told.watch(steps, stop);
    let made: Made<ImageClassifier> = match begin {
        Some(before) => {
            let network = before.lock().network.clone();
            // The network has it already.
            config.posterior.temperature = None;
            let svi = classifier_svi(&config, network, rows + task.seen)?;
            let trained = fit_further(svi, &data, None, &mut watch)?;
            Made {
                config,
                line: before.line().to_owned(),
                network: trained.network,
                steps: trained.steps + before.steps_done(),
                loss: trained.loss,
            }
        }
        None if task.choose => {
            fit_classifier(&config, &data, task.rows.columns, &mut watch)?.into()
        }
        None => classifier_of(config, &data, image, &mut watch)?.into(),
    };
    let density = familiar::density(&made.network, |model| model, some, &chosen, count)?;
    let counted = ParameterCount::of(&made.network.mean());
    let facts = RunFacts {
        facts: Facts::gather(),
        data: DataFacts {
            source: SOURCE.to_owned(),
            shape,
            classes: count,
            class_names: classes.names.clone(),
            fingerprint: format!("{:016x}", data.fingerprint()),
            table: schema,
        },
        weights: counted.weights,
        biases: counted.biases,
    };
    let run = LoadedRun {
        folder: RunFolder::without_files(Path::new("."), made.config, facts),
        network: made.network,
        steps: made.steps,
    };
    Ok(Classifier::new(run, columns, made.line, made.loss).with_density(density))
}

/// Trains a regression until all steps are done or somebody asks to stop.
pub fn regressor<T: Number>(
    task: &Task<'_, T>,
    targets: &Targets<'_>,
    begin: Option<&Regressor>,
    stop: &Stop,
    told: &Progress,
) -> anyhow::Result<Regressor> {
    let bits: Vec<u64> = targets.values.iter().map(|y| y.to_bits()).collect();
    let examples = task.examples(&bits)?;
    let before = begin.map(|before| {
        let run = before.lock();
        (run.folder.config.clone(), run.schema.clone())
    });
    let columns = match begin {
        Some(before) => before.columns().clone(),
        None => task.columns(&examples, 1),
    };
    let mut config = task.config(before.as_ref().map(|(config, _)| config), table_settings)?;
    config.data.train = String::new();
    config.data.normalisation = Normalisation::Raw;
    let schema = match before {
        Some((_, schema)) => schema,
        None => {
            let (mean, deviation) = examples.moments(targets.values);
            let task_of_table = match targets.counts {
                true => TableTask::Counts { mean },
                false => TableTask::Regression { mean, deviation },
            };
            columns.schema(task.names, task.target_name, task_of_table)
        }
    };
    config.data.schema = Some(schema.clone());
    let (rows, inputs) = (examples.rows.len(), task.rows.columns);
    let values = task.values(&columns, &examples);
    let some = familiar::some(&values, inputs);
    let device = circulant::cpu();
    let (likelihood, data) = match schema.task {
        TableTask::Regression { mean, deviation } => {
            let standard = examples.targets(targets.values);
            let standard: Vec<f32> = standard.map(|y| ((y - mean) / deviation) as f32).collect();
            let data = RegressionData::new(values, [rows, inputs], &standard, &device)?;
            (Likelihood::Gaussian, data)
        }
        _ => {
            let counts: Vec<f32> = examples.targets(targets.values).map(|y| y as f32).collect();
            let data = RegressionData::counts(values, [rows, inputs], &counts, &device)?;
            (Likelihood::Poisson, data)
        }
    };
    let data = match weights_of(&examples) {
        Some(weights) => data.weighted(weights)?,
        None => data,
    };
    // Then there was no right to record on the tape.
    ensure!(!stop.is_asked(), "asked to stop");
    let chooses = task.choose && begin.is_none();
    let mut watch = told.watch(steps_of(&config, chooses, Some(likelihood)), stop);
    // A run of the program has a checkpoint, and so have its copies.
    let folder = tempfile::tempdir()?;
    let checkpoint = folder.path().join("checkpoint.safetensors");
    let place = Some(checkpoint.as_path());
    let made: Made<TargetNetwork> = match begin {
        Some(before) => {
            let network = before.lock().network.clone();
            // The network has it already.
            config.posterior.noise_factor = None;
            config.posterior.noise_spread = None;
            let svi = target_svi(&config, network, rows + task.seen)?;
            let trained = fit_further(svi, &data, place, &mut watch)?;
            Made {
                config,
                line: before.line().to_owned(),
                network: trained.network,
                steps: trained.steps + before.lock().steps,
                loss: trained.loss,
            }
        }
        None if task.choose => {
            fit_regression(&config, &data, inputs, likelihood, place, &mut watch)?.into()
        }
        None => regression_of(config, &data, inputs, likelihood, place, &mut watch)?.into(),
    };
    let same = vec![0; rows];
    let density = familiar::density(&made.network, |model| &model.layers, some, &same, 1)?;
    let counted = ParameterCount::of(&made.network.mean());
    let facts = RunFacts {
        facts: Facts::gather(),
        data: DataFacts {
            source: SOURCE.to_owned(),
            shape: [rows, 1, 1, inputs],
            classes: 0,
            class_names: Vec::new(),
            fingerprint: format!("{:016x}", data.fingerprint()),
            table: Some(schema.clone()),
        },
        weights: counted.weights,
        biases: counted.biases,
    };
    let run = LoadedRegression {
        folder: RunFolder::without_files(Path::new("."), made.config, facts),
        schema,
        network: made.network,
        steps: made.steps,
    };
    let checkpoint = std::fs::read(&checkpoint)?;
    Ok(Regressor::new(run, checkpoint, columns, made.line, made.loss).with_density(density))
}

/// What facts say about where the data came from.
const SOURCE: &str = "an array";

fn steps_of(config: &RunConfig, choose: bool, likelihood: Option<Likelihood>) -> u64 {
    match choose {
        true => all_steps(config, likelihood),
        false => config.training.steps,
    }
}
