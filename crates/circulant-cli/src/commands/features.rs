//! `circulant features`: images through a frozen encoder, into a file for `train` and `head`.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;
use serde::Serialize;

use super::flags::Preparing;
use super::output::{json_line, print};
use super::reading::Reading;
use crate::experiments::config::DataConfig;
use crate::experiments::features::compute;
use crate::experiments::interrupt::Interrupt;
use crate::experiments::progress::Busy;
use crate::experiments::source;
use circulant_data::Split;
use circulant_data::corrupt::{Corruption, Severity, corrupt};
use circulant_data::encode::{Encoder, Numbers};

/// Run a frozen encoder over images and store its pooled features with the labels.
///
/// The encoder is any ONNX file with an image input [N, 3, H, W] and a pooled output [N, features]. Images are bytes divided by
/// 255 before mean and deviation. The file is safetensors, `features` and `labels`, with the encoder's fingerprint and the
/// preprocessing in its metadata; `circulant train --data FILE` learns from it. Ctrl-C stops, the same command resumes.
#[derive(Args)]
#[command(after_help = "Examples:
  circulant features resnet50.onnx --data cifar10 --split train --resize 96x96 --out train.safetensors
  circulant features resnet50.onnx --data photos/ --size 224x224 --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 --out photos.safetensors
  circulant features resnet50.onnx --data cifar10 --resize 96x96 --corrupt fog --severity 5 --first 1000 --out fog-5.safetensors")]
pub struct Features {
    /// The encoder, an ONNX file.
    encoder: PathBuf,
    /// A data set by name (see `circulant data list`) or a path.
    #[arg(long, value_name = "NAME|PATH")]
    data: String,
    /// The part to read, where there are two.
    #[arg(long, value_parser = super::flags::split(), default_value_t = Split::Test)]
    split: Split,
    /// The file for the features.
    #[arg(long, value_name = "FILE.safetensors")]
    out: PathBuf,
    #[command(flatten)]
    preparing: Preparing,
    /// Store half precision.
    #[arg(long)]
    half: bool,
    /// Corrupt the images first, as CIFAR-10-C does.
    #[arg(long, value_name = "NAME", requires = "severity")]
    corrupt: Option<Corruption>,
    /// How strongly, 1 to 5.
    #[arg(long, value_name = "N", requires = "corrupt")]
    severity: Option<usize>,
    /// The seed of the corruption's noise.
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
struct FeaturesSummary {
    out: PathBuf,
    images: usize,
    features: usize,
    /// Those of this process.
    computed: usize,
    seconds: f64,
    images_per_second: Option<f64>,
}

impl Features {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        let extension = self
            .out
            .extension()
            .and_then(|extension| extension.to_str());
        ensure!(
            extension == Some("safetensors"),
            "--out: expected a file name that ends with .safetensors, found {}",
            self.out.display()
        );
        let interrupt = Interrupt::listen()?;
        let mut options = DataConfig {
            labels_optional: true,
            ..DataConfig::default()
        };
        self.reading.apply(&mut options);
        let mut set = source::images(&self.data, self.split, &options)?;
        if let (Some(corruption), Some(level)) = (self.corrupt, self.severity) {
            set = corrupt(&set, corruption, Severity::new(level)?, self.seed)?;
        }
        let [_, _, height, width] = set.shape();
        let busy = Busy::new("loading the encoder");
        let encoder = Encoder::open(
            &self.encoder,
            self.preparing.preprocessing(),
            [height, width],
        )?;
        drop(busy);
        let numbers = if self.half {
            Numbers::F16
        } else {
            Numbers::F32
        };
        let done = compute(&encoder, &set, &self.out, numbers, &interrupt, "features")?;
        let summary = FeaturesSummary {
            out: self.out.clone(),
            images: set.len(),
            features: encoder.features(),
            computed: done.images,
            seconds: done.seconds,
            images_per_second: done.speed(),
        };
        if self.json {
            return print(&json_line(&summary)?);
        }
        let speed = match summary.images_per_second {
            Some(speed) => format!("{} computed now, {speed:.1} per second", summary.computed),
            None => "already there".to_owned(),
        };
        print(&format!(
            "{}: {} images, {} features each; {speed}\n",
            summary.out.display(),
            summary.images,
            summary.features
        ))
    }
}
