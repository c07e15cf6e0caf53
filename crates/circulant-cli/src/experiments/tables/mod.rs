//! Tables with given splits: one default setting for all of them, every split on its own.
//!
//! A split learns from its training rows alone: columns, size of the model, posterior. Lines of finished splits are kept, so the
//! same command resumes.

pub mod results;
pub mod sets;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use circulant::bayes::PredictiveConfig;
use circulant::data::BatchOrder;
use circulant::metrics::{class_metrics, regression_report};
use circulant_data::{Normalisation, RawTable, TableOptions, TableSchema};

use self::results::{SetResult, SplitMetrics, SplitResult, TableResults, text};
use self::sets::TableSet;
use super::auto;
use super::config::RunConfig;
use super::evaluation::labels_of;
use super::facts::Facts;
use super::folder::{DataFacts, write_report};
use super::interrupt::Interrupt;
use super::lines::{self, Log};
use super::progress::WorkProgress;
use super::regression::{labelled, predict};
use super::source::{self, tensor};
use super::table::images;
use crate::ranks::{alone, first_only, ranks};
use crate::report::{Block, Document, Section};

/// What is to be done.
pub struct TablesPlan {
    /// Names and files.
    pub sets: Vec<(String, PathBuf)>,
    /// At most so many splits of each.
    pub splits: usize,
    /// Posterior samples per prediction.
    pub samples: usize,
    /// Of everything.
    pub seed: u64,
    /// Settings with a size, instead of the default ones with a size that is chosen.
    pub settings: Option<RunConfig>,
    /// Leaves the test parts alone: a tenth of the training rows takes their place.
    pub validate: bool,
    /// The folder for lines and report.
    pub out: PathBuf,
}

/// What every rank makes of its own split, by itself; on all ranks.
fn shared_out(
    round: &[usize],
    work: impl FnOnce(usize) -> anyhow::Result<SplitResult>,
) -> anyhow::Result<Vec<SplitResult>> {
    let ranks = ranks();
    let own = round.get(ranks.rank()).map(|&split| alone(|| work(split)));
    let own = ranks.agree(own.transpose())?;
    if ranks.is_alone() {
        return Ok(own.into_iter().collect());
    }
    let own = own.map(|result| serde_json::to_vec(&result)).transpose()?;
    let parts = ranks.gather(own.unwrap_or_default())?;
    let parts = parts.iter().filter(|part| !part.is_empty());
    Ok(parts
        .map(|part| serde_json::from_slice(part))
        .collect::<Result<_, _>>()?)
}

impl TablesPlan {
    /// Runs what is not done yet, and writes the report.
    pub fn run(&self, interrupt: &Interrupt) -> anyhow::Result<TableResults> {
        let start = Instant::now();
        std::fs::create_dir_all(&self.out)?;
        let place = self.out.join("splits.jsonl");
        let mut done: Vec<SplitResult> = lines::read(&place)?;
        let mut log = Log::open(&place, &done)?;
        for (name, path) in &self.sets {
            let set = sets::read(name, path)?;
            let splits = self.splits.min(set.splits.len());
            let mut progress = WorkProgress::new(name, splits as u64);
            let is_done = |split: usize| {
                done.iter()
                    .any(|line| line.set == *name && line.split == split)
            };
            let open: Vec<usize> = (0..splits).filter(|&split| !is_done(split)).collect();
            let mut finished = splits - open.len();
            // Every rank has a split of its own at a time.
            for round in open.chunks(ranks().size()) {
                let results = shared_out(round, |split| self.split(&set, split, interrupt))?;
                for result in results {
                    log.add(&result)?;
                    done.push(result);
                }
                finished += round.len();
                progress.at(finished as u64, String::new);
            }
            progress.clear();
        }
        let of_set = |(name, _): &(String, PathBuf)| {
            let own = |line: &&SplitResult| line.set == *name && line.split < self.splits;
            let own: Vec<SplitResult> = done.iter().filter(own).cloned().collect();
            SetResult::of(&own)
        };
        let results = TableResults {
            sets: self.sets.iter().filter_map(of_set).collect(),
            samples: self.samples,
            seed: self.seed,
            wall_seconds: start.elapsed().as_secs_f64(),
        };
        let document = Document {
            title: "Tables".to_owned(),
            intro: vec!["One default setting for all tables; the size of the model by a fifth of the training rows.".to_owned()],
            warnings: Vec::new(),
            sections: vec![Section::new("Results").with(Block::Code(text(&results)))],
            provenance: Facts::gather().provenance(
                vec![self.seed],
                Duration::from_secs_f64(results.wall_seconds),
                self.settings(0, false).to_toml(),
            ),
        };
        first_only(|| write_report(&self.out, &document, &results))?;
        Ok(results)
    }

    /// Rows to learn from, and rows to be judged by.
    fn parts(&self, set: &TableSet, split: usize) -> anyhow::Result<[RawTable; 2]> {
        let [training, test] = set.parts(split);
        if !self.validate {
            return Ok([training, test]);
        }
        let rows = training.rows();
        let mut order = BatchOrder::new(split as u64, rows, rows)?;
        let (held, kept) = order.at(0).split_at(rows.div_ceil(10));
        ensure!(
            !kept.is_empty(),
            "{}: too few rows to hold any out",
            set.name
        );
        Ok([kept, held].map(|part| training.select(part)))
    }

    fn settings(&self, rows: usize, classes: bool) -> RunConfig {
        let own = self.settings.clone();
        let mut config = own.unwrap_or_else(|| match classes {
            true => auto::class_settings(rows),
            false => auto::table_settings(rows),
        });
        config.training.seed = self.seed;
        config.data.normalisation = Normalisation::Raw;
        config
    }

    fn split(
        &self,
        set: &TableSet,
        split: usize,
        interrupt: &Interrupt,
    ) -> anyhow::Result<SplitResult> {
        let [training, test] = self.parts(set, split)?;
        let (start, rows) = (Instant::now(), training.rows());
        let (schema, _) = TableSchema::learn(&training, &TableOptions::default())?;
        let inputs = schema.inputs();
        let (chosen, metrics, seconds) = self.learn(&schema, &training, &test, start, interrupt)?;
        Ok(SplitResult {
            set: set.name.clone(),
            split,
            rows,
            inputs,
            model: chosen,
            seconds,
            metrics,
        })
    }

    fn learn(
        &self,
        schema: &TableSchema,
        training: &RawTable,
        test: &RawTable,
        start: Instant,
        interrupt: &Interrupt,
    ) -> anyhow::Result<(String, SplitMetrics, f64)> {
        let (training, test) = (schema.encode(training)?, schema.encode(test)?);
        let columns = schema.inputs();
        let facts = DataFacts {
            table: Some(schema.clone()),
            ..DataFacts::of(&images(training.clone())?)
        };
        let rows = training.inputs.shape()[0];
        let config = self.settings(rows, facts.likelihood().is_none());
        let chooses = self.settings.is_none();
        let watch = &mut auto::interrupted(interrupt);
        let Some(likelihood) = facts.likelihood() else {
            let (set, test) = (images(training)?, images(test)?);
            let data = source::labelled(&set, &Normalisation::Raw, facts.classes, None)?;
            let fitted = match chooses {
                true => auto::fit_classifier(&config, &data, columns, watch)?,
                false => auto::classifier_of(config, &data, [1, 1, columns], watch)?,
            }
            .finished()?;
            let seconds = start.elapsed().as_secs_f64();
            let predictive = PredictiveConfig::new()
                .with_samples(self.samples)
                .with_seed(self.seed);
            let network = &fitted.trained.network;
            let found = predictive.predict(network, tensor(&test, &Normalisation::Raw)?)?;
            let (metrics, _) = class_metrics(&found.class_probabilities()?, &labels_of(&test)?)?;
            let metrics = SplitMetrics::Classification {
                accuracy: metrics.accuracy,
                log_loss: metrics.nll,
                ece: metrics.ece15,
            };
            return Ok((fitted.chosen.name, metrics, seconds));
        };
        let data = labelled(&training, schema)?;
        let fitted = match chooses {
            true => auto::fit_regression(&config, &data, columns, likelihood, None, watch)?,
            false => auto::regression_of(config, &data, columns, likelihood, None, watch)?,
        }
        .finished()?;
        let seconds = start.elapsed().as_secs_f64();
        let found = predict(
            &fitted.trained.network,
            &test,
            schema,
            self.samples,
            self.seed,
            "predicting",
        )?;
        let Some(targets) = &test.targets else {
            bail!("the test part has no targets");
        };
        ensure!(!targets.is_empty(), "the test part has no rows");
        let report = regression_report(&found, targets)?;
        let metrics = SplitMetrics::Regression {
            rmse: report.rmse,
            log_likelihood: report.log_likelihood,
            crps: report.crps,
            coverage90: report.coverage90,
        };
        Ok((fitted.chosen.name, metrics, seconds))
    }
}
