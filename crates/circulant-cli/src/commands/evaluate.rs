//! `circulant evaluate`: how right a model is, how well it knows that, and whether it notices out-of-distribution inputs.

mod targets;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use circulant::bayes::Predictions;
use circulant::metrics::{Bootstrap, ClassificationIntervals, Probabilities};
use clap::{Args, ValueEnum};

use super::guarantee::Coverage;
use super::output::{json_line, print};
use super::reading::Reading;
use crate::experiments::config::DataConfig;
use crate::experiments::conformal::{CoverageReport, Guarantee, halves};
use crate::experiments::evaluation::Sampling;
use crate::experiments::facts::Facts;
use crate::experiments::figures;
use crate::experiments::folder::write_metrics;
use crate::experiments::gallery::galleries;
use crate::experiments::loaded::{self, TrainedRun};
use crate::experiments::metrics::{Metrics, OodEvaluation};
use crate::experiments::ood_score::{Score, Scorer};
use crate::experiments::regression::LoadedRegression;
use crate::experiments::source::part;
use crate::ranks::{self, say};
use crate::report::figure::{Drawing, Reliability};
use crate::report::{Document, Figure, Section};
use circulant::bayes::OodMetrics;
use circulant::metrics::{TABLE_BINS, class_metrics};
use circulant_data::{ImageSet, Split, folder};

/// Evaluate a trained model.
///
/// Accuracy, NLL, Brier score and calibration on labelled data, and how well the predictive entropy tells other
/// data apart (AUROC, FPR at 95 % true positives). Without --data the test part of the training data is
/// used. Where the target is a number: RMSE, log likelihood, CRPS, and how often intervals hold it.
#[derive(Args)]
#[command(after_help = "Examples:
  circulant evaluate runs/first --ood fashion-mnist
  circulant evaluate runs/first --held-out --ood fashion-mnist:train --json
  circulant evaluate runs/first --ood fashion-mnist --score feature-density
  circulant evaluate runs/first --coverage 0.9 --robust 0.05
  circulant evaluate runs/table --data more.csv --label-name class --intervals --report table.html")]
pub struct Evaluate {
    /// The folder of a run.
    run: PathBuf,
    /// A data set by name or a path, with `:train` or `:test` for one of its parts [default: the training data's
    /// test part, or what was held out of a folder without one].
    #[arg(long, value_name = "NAME|PATH")]
    data: Option<String>,
    /// Evaluate on what `train --validation` held out.
    #[arg(long, conflicts_with = "data")]
    held_out: bool,
    /// Out-of-distribution data, which the model should be unsure about; may be given several times.
    #[arg(long, value_name = "NAME|PATH")]
    ood: Vec<String>,
    /// Tell out-of-distribution data apart by this score too, beside entropy and mutual information [without a word: feature-density].
    #[arg(long, value_enum, requires = "ood", num_args = 0..=1, default_missing_value = "feature-density")]
    score: Option<Score>,
    #[command(flatten)]
    coverage: Coverage,
    #[command(flatten)]
    reading: Reading,
    /// Posterior samples.
    #[arg(long, default_value_t = 50, value_name = "N")]
    samples: usize,
    /// The seed of the samples and of the bootstrap.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Add 95 % intervals from 1000 bootstrap resamples.
    #[arg(long)]
    intervals: bool,
    /// Write figures and tables as one HTML file.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Evaluate {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        ensure!(self.samples > 0, "--samples: expected 1 or more, got 0");
        let place = ranks::folder(&self.run)?;
        if let Some(run) = LoadedRegression::open(&place)? {
            return self.targets(&run);
        }
        let guarantee = self.coverage.guarantee()?;
        let run = loaded::open(&place)?;
        let set = self.labelled(&*run)?;
        let labels = run.classes_of(&set)?;
        let labels = labels.with_context(|| {
            format!(
                "{} has no labels; `circulant predict` needs none",
                set.source()
            )
        })?;
        let id = self.predict(&*run, &set)?;
        let (class, diagram) = class_metrics(&id.class_probabilities()?, &labels)?;
        let bootstrap = self.intervals.then(|| Bootstrap::new(self.seed));
        let mut entropies = vec![(set.source().to_owned(), id.predictive_entropy.clone())];
        let mut evaluated = Metrics {
            run: self.run.clone(),
            model: run.model(),
            steps: run.steps(),
            samples: self.samples,
            data: set.source().to_owned(),
            class,
            intervals: match &bootstrap {
                None => None,
                Some(bootstrap) => {
                    let probabilities = Probabilities::new(&id.probabilities, id.classes)?;
                    Some(bootstrap.classification(&probabilities, &labels, TABLE_BINS)?)
                }
            },
            ood: Vec::new(),
            coverage: match &guarantee {
                None => None,
                Some(guarantee) => Some(self.covered(guarantee, &*run, &set)?),
            },
        };
        let scorer = match self.score {
            None => None,
            Some(score) => {
                let scorer = Scorer::new(score, &*run)?;
                let familiar = scorer.values(&*run, &set, &id)?;
                Some((scorer, familiar))
            }
        };
        for place in &self.ood {
            let (place, split) = part(place, Split::Test);
            let other = run.images(place, split, &self.reading(&*run))?;
            let predictions = self.predict(&*run, &other)?;
            let scores = |predictions: &Predictions| -> Vec<f32> {
                predictions.predictive_entropy.iter().map(|h| -h).collect()
            };
            let name = other.source().to_owned();
            entropies.push((name, predictions.predictive_entropy.clone()));
            evaluated.ood.push(OodEvaluation {
                data: other.source().to_owned(),
                metrics: id.ood_metrics(&predictions)?,
                chosen: match &scorer {
                    None => None,
                    Some((scorer, familiar)) => {
                        let others = scorer.values(&*run, &other, &predictions)?;
                        Some(scorer.report(familiar, &others)?)
                    }
                },
                intervals: match &bootstrap {
                    None => None,
                    Some(bootstrap) => Some(bootstrap.ood(&scores(&id), &scores(&predictions))?),
                },
            });
        }
        write_metrics(run.path(), &evaluated)?;
        if let Some(path) = &self.report {
            let reliability = Reliability::from_diagram("Calibration", &diagram);
            let entropies: Vec<(&str, &[f32])> = entropies
                .iter()
                .map(|(name, entropies)| (name.as_str(), entropies.as_slice()))
                .collect();
            let entropy = figures::entropies("Predictive entropy", id.classes, &entropies)?;
            let pictures = galleries(&*run, &set, &id, &labels)?;
            document(&*run, &evaluated, reliability, entropy, pictures).write(path)?;
            say!("wrote {}", path.display());
        }
        if self.json {
            return print(&json_line(&evaluated)?);
        }
        print(&table(&evaluated))
    }

    /// How a path given to this command is read: as the training data, unless flags say otherwise.
    fn reading(&self, run: &dyn TrainedRun) -> DataConfig {
        let mut reading = run.reading();
        self.reading.apply(&mut reading);
        reading
    }

    fn labelled(&self, run: &dyn TrainedRun) -> anyhow::Result<ImageSet> {
        let trained_on = run.data_config();
        ensure!(
            self.data.is_some() || !trained_on.train.is_empty(),
            "{}: a saved classifier does not say what it was trained on; name labelled data with --data NAME|PATH",
            self.run.display()
        );
        let no_test_part = self.data.is_none()
            && trained_on.validation > 0
            && folder::is_whole(Path::new(&trained_on.train));
        if self.held_out || no_test_part {
            return run.held_out()?.context(
                "nothing was held out of this run; name data with --data, or train with --validation",
            );
        }
        let place = self.data.as_deref().unwrap_or(&trained_on.train);
        let (place, split) = part(place, Split::Test);
        run.images(place, split, &self.reading(run))
    }

    fn sampling(&self) -> Sampling {
        Sampling {
            samples: self.samples,
            seed: self.seed,
        }
    }

    fn predict(&self, run: &dyn TrainedRun, set: &ImageSet) -> anyhow::Result<Predictions> {
        run.predict(&self.sampling(), set, set.source())
    }

    /// Calibrated on other data, or on one half of these and evaluated on the other.
    fn covered(
        &self,
        guarantee: &Guarantee,
        run: &dyn TrainedRun,
        set: &ImageSet,
    ) -> anyhow::Result<CoverageReport> {
        let sampling = self.sampling();
        let has_own = guarantee.calibration.is_some()
            || set.source() != run.data().source && run.data_config().validation > 0;
        let half;
        let (sets, set) = if has_own {
            (
                guarantee.calibrate(run, &sampling, &self.reading(run))?,
                set,
            )
        } else {
            let (calibration, rest) = halves(set, self.seed)?;
            half = rest;
            (guarantee.calibrate_on(run, &sampling, &calibration)?, &half)
        };
        let predictions = self.predict(run, set)?;
        let found = sets.of(run, &sampling, set, &predictions)?;
        let labels = run.classes_of(set)?.unwrap_or_default();
        sets.report(&found, &labels)
    }
}

fn table(evaluated: &Metrics) -> String {
    let metrics = &evaluated.class;
    let mut text = format!(
        "{} after {} steps, {} posterior samples\n{}: {} inputs\n",
        evaluated.model, evaluated.steps, evaluated.samples, evaluated.data, metrics.inputs
    );
    let intervals = evaluated.intervals.as_ref();
    let interval = |pick: fn(&ClassificationIntervals) -> circulant::metrics::Interval| {
        let interval = intervals.map(pick);
        interval.map_or(String::new(), |i| {
            format!("  [{:.4}, {:.4}]", i.lower, i.upper)
        })
    };
    for (name, value, interval) in [
        ("accuracy", metrics.accuracy, interval(|i| i.accuracy)),
        ("NLL", metrics.nll, interval(|i| i.nll)),
        ("Brier", metrics.brier, interval(|i| i.brier)),
        ("ECE, 10 bins", metrics.ece, interval(|i| i.ece)),
        ("ECE, 15 bins", metrics.ece15, String::new()),
        ("MCE, 10 bins", metrics.mce, interval(|i| i.mce)),
    ] {
        text.push_str(&format!("  {name:<14}{value:>8.4}{interval}\n"));
    }
    if let Some(coverage) = &evaluated.coverage {
        text.push_str(&covered(coverage));
    }
    for ood in &evaluated.ood {
        let OodMetrics {
            inputs,
            auroc,
            aupr,
            fpr95,
            auroc_mutual_information,
            ..
        } = ood.metrics;
        text.push_str(&format!("against {}: {inputs} inputs\n", ood.data));
        let auroc_interval = ood.intervals.as_ref().map_or(String::new(), |i| {
            format!("  [{:.4}, {:.4}]", i.auroc.lower, i.auroc.upper)
        });
        for (name, value, interval) in [
            ("AUROC", auroc, auroc_interval.as_str()),
            ("AUPR", aupr, ""),
            ("FPR@95", fpr95, ""),
            ("AUROC by MI", auroc_mutual_information, ""),
        ] {
            text.push_str(&format!("  {name:<14}{value:>8.4}{interval}\n"));
        }
        if let Some(chosen) = &ood.chosen {
            let name = chosen.score.to_possible_value();
            text.push_str(&format!(
                "by {}\n  {:<14}{:>8.4}\n  {:<14}{:>8.4}\n  {:<14}{:>8.4}\n",
                name.map_or(String::new(), |name| name.get_name().to_owned()),
                "AUROC",
                chosen.report.auroc,
                "AUPR",
                chosen.report.aupr,
                "FPR@95",
                chosen.report.fpr95
            ));
        }
    }
    text
}

fn covered(report: &CoverageReport) -> String {
    let found = &report.found;
    format!(
        "sets of classes for a coverage of {}{}, calibrated on {} examples of {}; {} inputs\n  {:<14}{:>8.4}\n  {:<14}{:>8.4}\n  \
         {:<14}{:>8.4}\n  {:<14}{:>8.4}\n",
        report.asked,
        report
            .robust
            .map_or(String::new(), |radius| format!(" within {radius}")),
        report.calibration_inputs,
        report.calibration,
        found.inputs,
        "coverage",
        found.coverage,
        "mean size",
        found.mean_size,
        "one class",
        found.single,
        "empty",
        found.empty
    )
}

fn document(
    run: &dyn TrainedRun,
    evaluated: &Metrics,
    reliability: Reliability,
    entropy: Drawing,
    pictures: Vec<(&str, &str, Drawing)>,
) -> Document {
    let section = Section::new("Calibration and entropy")
        .figure(Figure::new(
            "reliability",
            "How often the model is right, given how sure it is; on the diagonal it is exactly as sure as it should be.",
            reliability.draw(),
        ))
        .figure(Figure::new(
            "entropy",
            "Inputs like the training data should be on the left, out-of-distribution ones on the right.",
            entropy,
        ));
    Document {
        title: format!("{}: evaluation", evaluated.model),
        intro: vec![format!("The run {}.", evaluated.run.display())],
        warnings: Vec::new(),
        sections: vec![
            Section::new("Metrics").with(crate::report::Block::Code(table(evaluated))),
            section,
        ]
        .into_iter()
        .chain((!pictures.is_empty()).then(|| {
            let figures = pictures.into_iter();
            figures.fold(
                Section::new("Pictures"),
                |section, (id, caption, drawing)| section.figure(Figure::new(id, caption, drawing)),
            )
        }))
        .collect(),
        provenance: Facts::gather().provenance(
            vec![run.seed()],
            std::time::Duration::ZERO,
            run.to_toml(),
        ),
    }
}
