//! `circulant head`: a small Bayesian head on somebody's features, ready to be used elsewhere.

use std::path::PathBuf;

use anyhow::bail;
use circulant::bayes::{Stop, calibrate};
use clap::Args;
use serde::Serialize;

use super::output::{json_line, print};
use super::reading::Reading;
use crate::experiments::baseline::warning;
use crate::experiments::config::{DataConfig, ModelKind};
use crate::experiments::evaluation::{Sampling, labels_of};
use crate::experiments::exported::describe;
use crate::experiments::folder::{DataFacts, RunFolder};
use crate::experiments::heads::settings::{complete, shared};
use crate::experiments::interrupt::Interrupt;
use crate::experiments::training::train;
use crate::experiments::{Held, source};
use circulant::metrics::{ClassMetrics, class_metrics};
use circulant_data::{Normalisation, Split};

/// Train a Bayesian head on features, calibrate and evaluate it, and save it in two files.
///
/// Features are rows of values with labels: safetensors (as `circulant features` writes), NPY, NPZ or CSV. A tenth is held out.
/// Writes head.json and head.safetensors into --out, which `circulant predict OUT/head.json`, `evaluate` and `certify` use,
/// and so does `circulant::models::SavedClassifier` in Rust. The same command resumes after Ctrl-C.
#[derive(Args)]
#[command(after_help = "Examples:
  circulant head --data train.safetensors --test test.safetensors --out heads/first
  circulant head --data train.safetensors --modes 256 --temperature --out heads/small
  circulant head --data table.csv --label-name class --width 32 --out heads/dense
  circulant predict heads/first/head.json --data test.safetensors")]
pub struct Head {
    /// The features to learn from.
    #[arg(long, value_name = "PATH")]
    data: String,
    /// Features to test on.
    #[arg(long, value_name = "PATH")]
    test: Option<String>,
    /// The folder for everything.
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Keep only the K lowest frequencies of the spectral layer.
    #[arg(long, value_name = "K", conflicts_with_all = ["width", "spatial"])]
    modes: Option<usize>,
    /// A dense layer of so many outputs instead of the spectral one.
    #[arg(long, value_name = "N", conflicts_with = "spatial")]
    width: Option<usize>,
    /// A circulant layer with a spatial filter instead of the spectral one.
    #[arg(long)]
    spatial: bool,
    /// Fit a temperature to the held-out features, and put it into the read-out.
    #[arg(long)]
    temperature: bool,
    /// Features held out [default: a tenth].
    #[arg(long, value_name = "N")]
    validation: Option<usize>,
    /// Gradient steps.
    #[arg(long, value_name = "N", default_value_t = shared().training.steps)]
    steps: u64,
    /// Posterior samples per prediction.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    samples: u32,
    /// The seed of the held-out features, initial parameters, batches and samples.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    // Last: its heading holds for all flags that follow.
    #[command(flatten)]
    reading: Reading,
}

/// What `--json` prints.
#[derive(Serialize)]
struct HeadSummary {
    head: PathBuf,
    model: &'static str,
    weights: usize,
    biases: usize,
    steps: u64,
    seconds: f64,
    temperature: f64,
    held_out: ClassMetrics,
    test: Option<ClassMetrics>,
}

impl Head {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        let interrupt = Interrupt::listen()?;
        let mut reading = DataConfig::default();
        self.reading.apply(&mut reading);
        let set = source::images(&self.data, Split::Train, &reading)?;
        let count = self.validation.unwrap_or((set.len() / 10).max(1));
        let held = Held::stratified(&set, count, self.seed)?;
        let Some(validation) = &held.validation else {
            bail!("some features are held out");
        };
        let mut config = shared();
        config.data = DataConfig {
            train: self.data.clone(),
            validation: count,
            normalisation: Normalisation::standard_of(&held.training),
            ..reading.clone()
        };
        (config.training.steps, config.training.seed) = (self.steps, self.seed);
        (config.model.modes, config.model.width) = (self.modes, self.width);
        config.model.kind = match (self.width, self.spatial) {
            (Some(_), _) => ModelKind::Dense,
            (None, true) => ModelKind::Circulant,
            (None, false) => ModelKind::SpectralCirculant,
        };
        complete(&mut config, set.row());
        config.check()?;
        let facts = DataFacts::of(&held.training);
        let normalisation = config.data.normalisation.clone();
        let data = source::labelled(&held.training, &normalisation, facts.classes, None)?;
        let folder = RunFolder::at(&self.out.join("run"), config, facts)?;
        let trained = train(&folder, &data, &interrupt, folder.config.model.kind.title())?;
        if trained.stop == Stop::Asked {
            bail!(
                "stopped at step {} of {}; the same command resumes there",
                trained.steps,
                self.steps
            );
        }
        let sampling = Sampling {
            samples: self.samples as usize,
            seed: self.seed,
        };
        let (temperature, network) = if self.temperature {
            calibrate(
                &trained.network,
                "output",
                &labels_of(validation)?,
                |network| sampling.predict(network, validation, &normalisation, "calibrating"),
            )?
        } else {
            (1.0, trained.network)
        };
        let evaluate = |set, title| -> anyhow::Result<ClassMetrics> {
            let predictions = sampling.predict(&network, set, &normalisation, title)?;
            Ok(class_metrics(&predictions.class_probabilities()?, &labels_of(set)?)?.0)
        };
        let held_out = evaluate(validation, "held out")?;
        if let Some(warning) = warning(held_out.accuracy, validation, "held-out") {
            eprintln!("{warning}");
        }
        let test = match &self.test {
            None => None,
            Some(place) => {
                let options = DataConfig {
                    image: Some(folder.facts.data.image()),
                    ..reading
                };
                Some(evaluate(
                    &source::images(place, Split::Test, &options)?,
                    "test",
                )?)
            }
        };
        let mut saved = describe(&folder, trained.steps);
        saved.temperature = temperature;
        saved.notes.insert(
            "held-out accuracy".to_owned(),
            held_out.accuracy.to_string(),
        );
        let head = self.out.join("head.json");
        saved.write(&network, &head)?;
        let summary = HeadSummary {
            head,
            model: folder.config.model.kind.name(),
            weights: folder.facts.weights,
            biases: folder.facts.biases,
            steps: trained.steps,
            seconds: trained.seconds,
            temperature,
            held_out,
            test,
        };
        if self.json {
            return print(&json_line(&summary)?);
        }
        print(&plain(&summary))
    }
}

fn plain(summary: &HeadSummary) -> String {
    let mut text = format!(
        "{}: {} weights, {} biases, {} steps in {:.1} s, temperature {:.3}\n",
        summary.head.display(),
        summary.weights,
        summary.biases,
        summary.steps,
        summary.seconds,
        summary.temperature
    );
    let sets = [
        ("held out", Some(&summary.held_out)),
        ("test", summary.test.as_ref()),
    ];
    for (name, metrics) in sets {
        if let Some(metrics) = metrics {
            text.push_str(&format!(
                "{name}: {} inputs, accuracy {:.4}, NLL {:.4}, Brier {:.4}, ECE {:.4}\n",
                metrics.inputs, metrics.accuracy, metrics.nll, metrics.brier, metrics.ece
            ));
        }
    }
    text + &format!(
        "next: circulant predict {} --data FEATURES\n",
        summary.head.display()
    )
}
