//! `circulant evaluate`: how right a model is, how well it knows that, and whether it notices out-of-distribution inputs.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use circulant::bayes::Predictions;
use circulant::metrics::{Bootstrap, ClassificationIntervals, Probabilities};
use clap::Args;

use super::output::{json_line, print};
use super::reading::Reading;
use crate::experiments::config::DataConfig;
use crate::experiments::evaluation::Sampling;
use crate::experiments::facts::Facts;
use crate::experiments::figures;
use crate::experiments::loaded::LoadedRun;
use crate::experiments::metrics::{Metrics, OodEvaluation};
use crate::experiments::{Held, source};
use crate::report::figure::{Drawing, Reliability};
use crate::report::{Document, Figure, Section};
use circulant::bayes::OodMetrics;
use circulant::metrics::{TABLE_BINS, class_metrics};
use circulant_data::{ImageSet, Split};

/// Evaluate a trained model.
///
/// Accuracy, NLL, Brier score and calibration on labelled data, and how well the predictive entropy tells other
/// data apart (AUROC, FPR at 95 % true positives). Without --data the test part of the training data is
/// used.
#[derive(Args)]
#[command(after_help = "Examples:
  circulant evaluate runs/first --ood fashion-mnist
  circulant evaluate runs/first --held-out --ood fashion-mnist:train --json
  circulant evaluate runs/table --data more.csv --label-name class --intervals --report table.html")]
pub struct Evaluate {
    /// The folder of a run.
    run: PathBuf,
    /// A data set by name or a path, with `:train` or `:test` for one of its parts [default: the training data's
    /// test part].
    #[arg(long, value_name = "NAME|PATH")]
    data: Option<String>,
    /// Evaluate on what `train --validation` held out.
    #[arg(long, conflicts_with = "data")]
    held_out: bool,
    /// Out-of-distribution data, which the model should be unsure about; may be given several times.
    #[arg(long, value_name = "NAME|PATH")]
    ood: Vec<String>,
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
        let run = LoadedRun::open(&self.run)?;
        let set = self.labelled(&run)?;
        let labels = run.classes_of(&set)?;
        let labels = labels.with_context(|| {
            format!(
                "{} has no labels; `circulant predict` needs none",
                set.source()
            )
        })?;
        let id = self.predict(&run, &set)?;
        let (class, diagram) = class_metrics(&id.class_probabilities()?, &labels)?;
        let bootstrap = self.intervals.then(|| Bootstrap::new(self.seed));
        let mut entropies = vec![(set.source().to_owned(), id.predictive_entropy.clone())];
        let mut evaluated = Metrics {
            run: self.run.clone(),
            model: run.folder.config.model.kind.name(),
            steps: run.steps,
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
        };
        for place in &self.ood {
            let (place, split) = part(place, Split::Test);
            let other = run.images(place, split, &self.reading(&run))?;
            let predictions = self.predict(&run, &other)?;
            let scores = |predictions: &Predictions| -> Vec<f32> {
                predictions.predictive_entropy.iter().map(|h| -h).collect()
            };
            let name = other.source().to_owned();
            entropies.push((name, predictions.predictive_entropy.clone()));
            evaluated.ood.push(OodEvaluation {
                data: other.source().to_owned(),
                metrics: id.ood_metrics(&predictions)?,
                intervals: match &bootstrap {
                    None => None,
                    Some(bootstrap) => Some(bootstrap.ood(&scores(&id), &scores(&predictions))?),
                },
            });
        }
        run.folder.write_metrics(&evaluated)?;
        if let Some(path) = &self.report {
            let reliability = Reliability::from_diagram("Calibration", &diagram);
            let entropies: Vec<(&str, &[f32])> = entropies
                .iter()
                .map(|(name, entropies)| (name.as_str(), entropies.as_slice()))
                .collect();
            let entropy = figures::entropies("Predictive entropy", id.classes, &entropies)?;
            document(&run, &evaluated, reliability, entropy).write(path)?;
            eprintln!("wrote {}", path.display());
        }
        if self.json {
            return print(&json_line(&evaluated)?);
        }
        print(&table(&evaluated))
    }

    /// How a path given to this command is read: as the training data, unless flags say otherwise.
    fn reading(&self, run: &LoadedRun) -> DataConfig {
        let mut reading = run.reading();
        self.reading.apply(&mut reading);
        reading
    }

    fn labelled(&self, run: &LoadedRun) -> anyhow::Result<ImageSet> {
        let trained_on = &run.folder.config.data;
        ensure!(
            self.data.is_some() || !trained_on.train.is_empty(),
            "{}: a saved classifier does not say what it was trained on; name labelled data with --data NAME|PATH",
            self.run.display()
        );
        if self.held_out {
            let set = source::images(&trained_on.train, Split::Train, trained_on)?;
            let held = Held::out_of(set, trained_on)?;
            return held.validation.context(
                "nothing was held out of this run; name data with --data, or train with --validation",
            );
        }
        let place = self.data.as_deref().unwrap_or(&trained_on.train);
        let (place, split) = part(place, Split::Test);
        run.images(place, split, &self.reading(run))
    }

    fn predict(&self, run: &LoadedRun, set: &ImageSet) -> anyhow::Result<Predictions> {
        let sampling = Sampling {
            samples: self.samples,
            seed: self.seed,
        };
        let normalisation = &run.folder.config.data.normalisation;
        sampling.predict(&run.network, set, normalisation, set.source())
    }
}

/// `mnist:train` as a name and a part.
fn part(place: &str, default: Split) -> (&str, Split) {
    for (ending, split) in [(":train", Split::Train), (":test", Split::Test)] {
        if let Some(name) = place.strip_suffix(ending) {
            return (name, split);
        }
    }
    (place, default)
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
    }
    text
}

fn document(
    run: &LoadedRun,
    evaluated: &Metrics,
    reliability: Reliability,
    entropy: Drawing,
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
        ],
        provenance: Facts::gather().provenance(
            vec![run.folder.config.training.seed],
            std::time::Duration::ZERO,
            run.folder.config.to_toml(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_after_a_colon() {
        assert_eq!(part("mnist:train", Split::Test), ("mnist", Split::Train));
        assert_eq!(part("a:b/c:test", Split::Train), ("a:b/c", Split::Test));
        assert_eq!(part("mnist", Split::Test), ("mnist", Split::Test));
    }
}
