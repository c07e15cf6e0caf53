//! `circulant reproduce heads`.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;

use super::super::data::display::Display;
use super::super::flags::{Fetching, Preparing};
use super::finish;
use crate::experiments::heads::sets::FeatureRequest;
use crate::experiments::heads::settings::{heads, shared};
use crate::experiments::heads::{HeadsPlan, plain};
use crate::experiments::interrupt::Interrupt;
use crate::experiments::variant::SharedPlan;
use crate::ranks::{first_only, folder, say};
use circulant_data::Normalisation;

/// Bayesian heads on frozen features of CIFAR-10, with its corruptions as out-of-distribution data.
///
/// Computes the features of all images and of corrupted test images with an encoder (ONNX), once; trains nine heads with
/// every seed on them; evaluates accuracy, calibration, out-of-distribution detection per corruption and severity, norms, margins and certified
/// radii; and writes report.html, results.json, all figures and all run folders below --out. What is already there is
/// not repeated, so the same command resumes after Ctrl-C.
#[derive(Args)]
#[command(after_help = "Examples:
  circulant reproduce heads --encoder resnet50.onnx --resize 96x96
  circulant reproduce heads --encoder resnet50.onnx --resize 96x96 --cifar10-c CIFAR-10-C/
  circulant reproduce heads --features runs/heads/features --heads spectral,dense-32 --seeds 0 --out runs/two")]
pub(super) struct Heads {
    /// The encoder, an ONNX file with an image input [N, 3, H, W] and a pooled output; needed while features are missing.
    #[arg(long, value_name = "FILE.onnx")]
    encoder: Option<PathBuf>,
    /// The folder for the features [default: features below --out].
    #[arg(long, value_name = "FOLDER")]
    features: Option<PathBuf>,
    /// The images: a name of `data list`, or a path with a training and a test part.
    #[arg(long, default_value = "cifar10", value_name = "NAME|PATH")]
    data: String,
    /// The folder for everything.
    #[arg(long, value_name = "FOLDER", default_value = "runs/heads")]
    out: PathBuf,
    /// Heads by the names of their folders, separated by commas [default: all].
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    heads: Vec<String>,
    /// Seeds, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "0,1,2")]
    seeds: Vec<u64>,
    /// SVI steps per head.
    #[arg(long, value_name = "N", default_value_t = shared().training.steps)]
    steps: u64,
    /// Posterior samples per prediction.
    #[arg(long, default_value_t = 50, value_name = "N")]
    samples: usize,
    /// Test images that are corrupted.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    corrupted: usize,
    /// The folder of CIFAR-10-C, to use its images instead of our corruptions.
    #[arg(long, value_name = "FOLDER")]
    cifar10_c: Option<PathBuf>,
    #[command(flatten)]
    preparing: Preparing,
    /// Take only N images of every part, every class with its share, for a quick look.
    #[arg(long, value_name = "N")]
    first: Option<usize>,
    #[command(flatten)]
    fetching: Fetching,
    /// Print results.json instead of the table.
    #[arg(long)]
    json: bool,
}

impl Heads {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        for (flag, number) in [("--samples", self.samples), ("--corrupted", self.corrupted)] {
            ensure!(number > 0, "{flag}: expected 1 or more, got 0");
        }
        let interrupt = Interrupt::listen()?;
        let options = self.fetching.options()?;
        let features = self.features.clone();
        let request = FeatureRequest {
            folder: features.unwrap_or_else(|| self.out.join("features")),
            encoder: self.encoder.clone(),
            preprocessing: self.preparing.preprocessing(),
            data: self.data.clone(),
            first: self.first,
            corrupted: self.corrupted,
            published: self.cifar10_c.clone(),
        };
        let compute = || request.compute(&options, &Display::new(), &interrupt);
        if let Some(done) = first_only(compute)?
            && let Some(speed) = done.speed()
        {
            say!("features of {} images, {speed:.1} per second", done.images);
        }
        let sets = request.load()?;
        let mut settings = shared();
        settings.training.steps = self.steps;
        settings.data.train.clone_from(&self.data);
        settings.data.first = self.first;
        settings.data.normalisation = Normalisation::standard_of(&sets.train);
        settings.check()?;
        let mut chosen = heads(&settings, sets.features());
        let names: Vec<String> = chosen.iter().map(|head| head.name.clone()).collect();
        for name in &self.heads {
            ensure!(
                names.contains(name),
                "--heads: expected some of {}, got {name:?}",
                names.join(", ")
            );
        }
        if !self.heads.is_empty() {
            chosen.retain(|head| self.heads.contains(&head.name));
        }
        let plan = HeadsPlan {
            sets,
            data: self.data.clone(),
            heads: chosen,
            shared: SharedPlan {
                seeds: self.seeds.clone(),
                settings,
                samples: self.samples,
                out: folder(&self.out)?,
            },
        };
        let experiment = plan.run(&interrupt)?;
        say!("writing the report");
        let Some(results) = first_only(|| experiment.write())? else {
            return Ok(());
        };
        let table = || plain(&experiment, &results);
        finish(self.json, &results, table, &self.out)
    }
}
