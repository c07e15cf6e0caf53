//! `circulant train` on a table of columns.

use std::path::Path;

use anyhow::{bail, ensure};
use circulant::bayes::Stop;
use circulant_data::{ImageSet, Missing, Normalisation, RawTable, TableOptions, TaskChoice};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::Train;
use crate::commands::output::{json_line, print};
use crate::experiments::config::{ClassWeight, ModelKind, RunConfig};
use crate::experiments::folder::{DataFacts, RunFolder};
use crate::experiments::interrupt::Interrupt;
use crate::experiments::regression::{LoadedRegression, TargetMetrics, labelled};
use crate::experiments::table::{LearnedTable, images, learn};
use crate::experiments::training::train_targets;
use crate::experiments::{Held, auto, source};
use crate::ranks::say;

/// Flags about the columns of a table.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Tables")]
pub struct TableFlags {
    /// The column to predict, by its name or its number from 0 [default: one called label, class, target or y, else the last one].
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Whether the target is a class, a number or a count [default: recognised, and told].
    #[arg(long, value_parser = parse_task, value_name = "classification|regression|counts|auto")]
    task: Option<TaskChoice>,
    /// What is done about missing cells [default: they are an error].
    #[arg(long, value_parser = parse_missing, value_name = "mean|median|drop|error")]
    missing: Option<Missing>,
    /// Columns to leave out, separated by commas.
    #[arg(long, value_name = "NAME,NAME,...", value_delimiter = ',')]
    drop: Vec<String>,
    /// Let all classes weigh the same in training, however many examples they have.
    #[arg(long, value_enum)]
    class_weight: Option<ClassWeight>,
}

impl TableFlags {
    /// Flags that are given replace settings.
    pub(super) fn apply(&self, config: &mut RunConfig) {
        if self.class_weight.is_some() {
            config.training.class_weight = self.class_weight;
        }
        if !self.about_columns() {
            return;
        }
        let table = config.data.table.get_or_insert_default();
        if self.target.is_some() {
            table.target.clone_from(&self.target);
        }
        table.task = self.task.unwrap_or(table.task);
        table.missing = self.missing.unwrap_or(table.missing);
        if !self.drop.is_empty() {
            table.drop.clone_from(&self.drop);
        }
    }

    fn about_columns(&self) -> bool {
        let given = [
            self.target.is_some(),
            self.task.is_some(),
            self.missing.is_some(),
        ];
        given.contains(&true) || !self.drop.is_empty()
    }
}

fn parse_task(text: &str) -> Result<TaskChoice, String> {
    word(text, "auto, classification, regression or counts")
}

fn parse_missing(text: &str) -> Result<Missing, String> {
    word(text, "error, mean, median or drop")
}

/// A setting as its file writes it.
fn word<T: serde::de::DeserializeOwned>(text: &str, expected: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|_| format!("expected {expected}"))
}

/// What `--model` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelChoice {
    /// By held-out rows.
    Auto,
    /// These layers.
    Kind(ModelKind),
}

/// For clap.
pub(super) fn parse_model(text: &str) -> Result<ModelChoice, String> {
    if text == "auto" {
        return Ok(ModelChoice::Auto);
    }
    let kind = ModelKind::from_str(text, false);
    kind.map(ModelChoice::Kind).map_err(|_| {
        let names = ModelKind::ALL.map(ModelKind::name);
        format!("expected auto, {}", names.join(", "))
    })
}

/// A run that can be trained.
#[expect(clippy::large_enum_variant, reason = "there is one, once per command")]
pub(super) enum Prepared {
    /// Classes of images or rows.
    Classes(RunFolder, Held),
    /// Numbers or counts.
    Numbers(RunFolder, Box<LearnedTable>),
}

/// An error that says how to go on if training was stopped.
pub(super) fn ensure_finished(folder: &RunFolder, stop: Stop, steps: u64) -> anyhow::Result<()> {
    if stop == Stop::Asked {
        bail!(
            "stopped at step {steps} of {}, with a checkpoint; resume with `circulant train --resume {}`",
            folder.config.training.steps,
            folder.path().display()
        );
    }
    Ok(())
}

/// What ties a regression to its data.
pub(super) fn fingerprint(learned: &LearnedTable) -> anyhow::Result<String> {
    let data = labelled(&learned.training, &learned.schema)?;
    let inputs = learned.training.inputs.fingerprint();
    Ok(format!("{inputs}{:016x}", data.fingerprint()))
}

/// What `--json` prints.
#[derive(Serialize)]
struct TargetSummary<'a> {
    out: &'a Path,
    model: &'static str,
    target: &'a str,
    weights: usize,
    biases: usize,
    steps: u64,
    seconds: f64,
    loss: Option<f64>,
    stopped: &'static str,
    /// On what was held out.
    validation: Option<TargetMetrics>,
}

/// Posterior samples of an evaluation.
const SAMPLES: usize = 50;
/// Training rows that are looked at where nothing is held out.
const ROWS: usize = 1000;

impl Train {
    /// Flags that only tables have are an error for anything else.
    pub(super) fn ensure_no_table_flags(&self, config: &RunConfig) -> anyhow::Result<()> {
        ensure!(
            config.data.table.is_none() && self.model != Some(ModelChoice::Auto),
            "{}: --target, --task, --missing, --drop and --model auto are for tables (CSV, or an array [n, d]), and this is \
             none; leave them out",
            config.data.train
        );
        Ok(())
    }

    /// Whether held-out rows choose the model.
    fn is_auto(&self) -> bool {
        match self.model {
            Some(choice) => choice == ModelChoice::Auto,
            None => {
                let sizes = [self.channels, self.width, self.modes, self.depth];
                let given = sizes.iter().any(Option::is_some) || self.initial_scale.is_some();
                self.config.is_none() && !given
            }
        }
    }

    pub(super) fn create_table(
        &self,
        out: &Path,
        config: RunConfig,
        raw: RawTable,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Prepared> {
        let auto = self.is_auto();
        let mut config = match auto {
            true => self.apply(auto::table_settings(raw.rows()))?,
            false => config,
        };
        // Columns are standardised one by one.
        config.data.normalisation = Normalisation::Raw;
        let learned = learn(raw, &config.data)?;
        let source = learned.training.inputs.source().to_owned();
        for note in &learned.notes {
            say!("{source}: {note}");
        }
        let target = config.data.table.get_or_insert_with(TableOptions::default);
        target.target = Some(learned.schema.target.clone());
        config.data.schema = Some(learned.schema.clone());
        let columns = learned.schema.inputs();
        let seed_of_facts = |set: &ImageSet| DataFacts {
            table: Some(learned.schema.clone()),
            ..DataFacts::of(set)
        };
        let set = images(learned.training.clone())?;
        let facts = seed_of_facts(&set);
        let watch = &mut auto::shown(interrupt, &config, facts.likelihood());
        let Some(likelihood) = facts.likelihood() else {
            let held = Held {
                training: set,
                validation: learned.validation.map(images).transpose()?,
            };
            if auto {
                let rows = held.training.len();
                config.training.kl_weight =
                    self.apply(auto::class_settings(rows))?.training.kl_weight;
                let (classes, weight) = (facts.classes, config.training.class_weight);
                let normalisation = &config.data.normalisation;
                let data = source::labelled(&held.training, normalisation, classes, weight)?;
                let chosen = auto::classifier(&config, &data, columns, watch)?;
                say!("{source}: {}", chosen.line);
                config = chosen.config;
            }
            return Ok(Prepared::Classes(
                RunFolder::create(out, config, facts)?,
                held,
            ));
        };
        ensure!(
            config.training.class_weight.is_none(),
            "--class-weight: the target {:?} is a number; leave it out, or use --task classification",
            learned.schema.target
        );
        let facts = DataFacts {
            fingerprint: fingerprint(&learned)?,
            ..facts
        };
        if auto {
            let data = labelled(&learned.training, &learned.schema)?;
            let chosen = auto::regression(&config, &data, columns, likelihood, watch)?;
            say!("{source}: {}", chosen.line);
            config = chosen.config;
        }
        let folder = RunFolder::create(out, config, facts)?;
        Ok(Prepared::Numbers(folder, Box::new(learned)))
    }

    pub(super) fn train_numbers(
        &self,
        folder: &RunFolder,
        learned: &LearnedTable,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let Some(likelihood) = folder.facts.data.likelihood() else {
            bail!("{} is no regression", folder.path().display());
        };
        let data = labelled(&learned.training, &learned.schema)?;
        let trained = train_targets(folder, likelihood, &data, interrupt)?;
        ensure_finished(folder, trained.stop, trained.steps)?;
        let loaded = LoadedRegression {
            folder: folder.clone(),
            schema: learned.schema.clone(),
            network: trained.network,
            steps: trained.steps,
        };
        let seed = folder.config.training.seed;
        let (part, what) = match &learned.validation {
            Some(held) => (held.clone(), "held-out"),
            None => (learned.training.first(ROWS)?, "training"),
        };
        let metrics = loaded.evaluate(&part, SAMPLES, seed)?;
        if metrics.report.rmse >= 0.95 * metrics.rmse_of_mean {
            say!(
                "warning: an error of {:.4} on {} {what} rows is no better than always answering the mean ({:.4}); try more \
                 --steps, or another --learning-rate",
                metrics.report.rmse,
                metrics.report.rows,
                metrics.rmse_of_mean
            );
        }
        let validation = learned.validation.is_some().then_some(metrics);
        if let Some(metrics) = &validation {
            folder.write_metrics(metrics)?;
        }
        let summary = TargetSummary {
            out: folder.path(),
            model: folder.config.model.kind.name(),
            target: &learned.schema.target,
            weights: folder.facts.weights,
            biases: folder.facts.biases,
            steps: trained.steps,
            seconds: trained.seconds,
            loss: trained.loss,
            stopped: match trained.stop {
                Stop::Converged => "converged",
                _ => "finished",
            },
            validation,
        };
        if self.json {
            return print(&json_line(&summary)?);
        }
        let place = folder.path().display();
        let mut text = format!(
            "{place}: {} weights, {} biases, {} steps in {:.1} s\n",
            summary.weights, summary.biases, summary.steps, summary.seconds
        );
        if let Some(metrics) = &summary.validation {
            let report = &metrics.report;
            text.push_str(&format!(
                "held out: {} rows, RMSE {:.4} (of the mean {:.4}), log likelihood {:.4}, CRPS {:.4}, 90 % intervals hold {:.3}\n",
                report.rows, report.rmse, metrics.rmse_of_mean, report.log_likelihood, report.crps, report.coverage90
            ));
        }
        text.push_str(&format!(
            "next: circulant evaluate {place} --data NEW.csv\n"
        ));
        print(&text)
    }
}
