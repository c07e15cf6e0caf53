//! `circulant reproduce vit`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;

use super::super::data::display::Display;
use super::super::flags::Fetching;
use super::super::reading::parse_size;
use super::finish;
use crate::experiments::config::Draw;
use crate::experiments::interrupt::Interrupt;
use crate::experiments::version::VERSION;
use crate::experiments::vit::curvature::CurvatureSettings;
use crate::experiments::vit::sets::{VitRequest, VitSets};
use crate::experiments::vit::settings::{Projections, VitConfig, VitData, VitModel, VitTraining};
use crate::experiments::vit::{VitPlan, plain};
use crate::ranks::{first_only, first_then_others, folder, say};
use circulant_data::Normalisation;

/// Vision transformers with dense and with spectral projections, trained alike on CIFAR-10 or Tiny ImageNet.
///
/// Trains both models, alternating between them epoch by epoch, keeps the checkpoint with the smallest validation loss, tests it, measures the
/// curvature of the loss there, and writes report.html, results.json, all figures and all run folders below --out. Prints
/// the table beside the paper's. What is already there is not repeated, so the same command resumes after Ctrl-C or
/// another day.
#[derive(Args)]
#[command(after_help = "Examples:
  circulant reproduce vit --epochs 16
  circulant reproduce vit --budget 60m
  circulant reproduce vit --models spectral+block-8,diagonal+block-16 --length-power 0.5 --epochs 6
  circulant reproduce vit --data pictures/ --size 64x64 --models spectral --flip --crop 4
  circulant reproduce vit --data glyphs --first 500 --epochs 2 --out runs/quick")]
pub(super) struct Vit {
    /// cifar10, tiny-imagenet, another name of `data list`, or a path with a training and a test part.
    #[arg(long, default_value = "cifar10", value_name = "NAME|PATH")]
    data: String,
    /// The folder for everything.
    #[arg(long, value_name = "FOLDER", default_value = "runs/vit")]
    out: PathBuf,
    /// Models, separated by commas. A model is its projections, role by role: ATTENTION[:VALUES][+MLP_IN[+MLP_OUT]], each `dense`, `spectral`
    /// (circulant), `diagonal` (a circulant matrix between two diagonal ones) or `block-16` (circulant blocks of that length). VALUES are
    /// those of values and output; the MLP is dense unless given, and MLP_OUT is as MLP_IN.
    #[arg(long, value_delimiter = ',', default_value = "dense,spectral")]
    models: Vec<Projections>,
    /// Seeds, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "0")]
    seeds: Vec<u64>,
    /// Training time of all models together, over all runs of this command, such as 60m or 2h. The models alternate, and all stop at
    /// the same number of images: when another epoch of each would not fit. The schedule stays that of --epochs.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    budget: Option<Duration>,
    #[command(flatten)]
    training: VitTraining,
    /// Images held out of training to choose the checkpoint by [default: a tenth].
    #[arg(long, value_name = "N")]
    validation: Option<usize>,
    /// The side of a patch [default: an eighth of the image, or 4].
    #[arg(long, value_name = "N")]
    patch: Option<usize>,
    /// The width of a token. The paper has 128.
    #[arg(long, default_value_t = 128, value_name = "N")]
    width: usize,
    /// The number of blocks. The paper has 6.
    #[arg(long, default_value_t = 6, value_name = "N")]
    depth: usize,
    /// Scale the images of a folder to HEIGHTxWIDTH.
    #[arg(long, value_name = "HxW", value_parser = parse_size)]
    size: Option<[usize; 2]>,
    /// Take only N images of every part, every class with its share, for a quick look.
    #[arg(long, value_name = "N")]
    first: Option<usize>,
    /// Do not measure the curvature, which takes some minutes per model.
    #[arg(long)]
    no_curvature: bool,
    #[command(flatten)]
    fetching: Fetching,
    /// Print results.json instead of the table.
    #[arg(long)]
    json: bool,
}

impl Vit {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let interrupt = Interrupt::listen()?;
        let options = self.fetching.options()?;
        let request = VitRequest {
            place: self.data.clone(),
            first: self.first,
            draw: Draw::default(),
            size: self.size,
            validation: self.validation,
        };
        let load = || VitSets::load(&request, &options, &Display::new());
        let sets = first_then_others(load)?;
        let configs = self.configs(&sets)?;
        let plan = VitPlan {
            configs,
            budget: self.budget,
            curvature: (!self.no_curvature).then(|| CurvatureSettings {
                // A quick look may hold fewer out.
                images: CurvatureSettings::default()
                    .images
                    .min(sets.images.validation.len()),
                ..CurvatureSettings::default()
            }),
            sets,
            out: folder(&self.out)?,
        };
        let experiment = plan.run(&interrupt)?;
        say!("writing the report");
        let Some(results) = first_only(|| experiment.write())? else {
            return Ok(());
        };
        let table = || plain(&results, experiment.plan.sets.paper);
        finish(self.json, &results, table, &self.out)
    }

    fn configs(&self, sets: &VitSets) -> anyhow::Result<Vec<VitConfig>> {
        let training = &sets.images.training;
        let patch = self
            .patch
            .unwrap_or_else(|| default_patch(training.shape()[2]));
        let data = VitData {
            train: self.data.clone(),
            first: self.first,
            draw: Draw::default(),
            validation: sets.images.validation.len(),
            normalisation: Normalisation::standard_of(training),
        };
        let mut configs = Vec::new();
        for &kind in &self.models {
            for &seed in &self.seeds {
                let config = VitConfig {
                    version: VERSION,
                    data: data.clone(),
                    model: VitModel {
                        d: self.width,
                        depth: self.depth,
                        ..VitModel::paper(kind, patch)
                    },
                    training: VitTraining {
                        seed,
                        ..self.training
                    },
                };
                config.check()?;
                ensure!(
                    !configs.contains(&config),
                    "--models or --seeds: {} with seed {seed} is there twice",
                    kind.name()
                );
                configs.push(config);
            }
        }
        Ok(configs)
    }
}

/// The paper's patches: 64 of them in an image.
fn default_patch(side: usize) -> usize {
    if side.is_multiple_of(8) { side / 8 } else { 4 }
}
