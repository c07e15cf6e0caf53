//! `circulant curvature`: how sharply the loss of a vision transformer bends around a checkpoint.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::Args;
use serde::Serialize;

use super::data::display::Display;
use super::flags::Fetching;
use super::output::print;
use crate::experiments::folder::{DataFacts, pretty};
use crate::experiments::vit::curvature::{CurvatureSettings, Space, SpaceCurvature, measure};
use crate::experiments::vit::folder::VitFolder;
use crate::experiments::vit::sets::{VitRequest, VitSets};

/// Measure the curvature of the validation loss at a checkpoint of `reproduce vit`.
///
/// Prints the eigenvalue of largest magnitude of the Hessian and the largest of the Gauss-Newton matrix, over all parameters or
/// over attention alone, each with a residual: an eigenvalue lies within this distance. Everything is in f64.
#[derive(Args)]
#[command(after_help = "Examples:
  circulant curvature runs/vit/runs/spectral/seed-0
  circulant curvature runs/vit/runs/dense/seed-0/last.safetensors --subspace attention --json
  circulant curvature runs/vit/runs/dense/seed-0 --images 512 --tolerance 1e-4")]
pub struct CurvatureCommand {
    /// The folder of a run, for its best checkpoint, or one of the checkpoints in it.
    checkpoint: PathBuf,
    /// Which parameters [default: both].
    #[arg(long, value_enum)]
    subspace: Option<Space>,
    #[command(flatten)]
    settings: CurvatureSettings,
    /// Where the run's data are now, if not where they were.
    #[arg(long, value_name = "NAME|PATH")]
    data: Option<String>,
    #[command(flatten)]
    fetching: Fetching,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct CurvatureOutput {
    checkpoint: PathBuf,
    steps: u64,
    settings: CurvatureSettings,
    spaces: Vec<SpaceCurvature>,
}

impl CurvatureCommand {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        let settings = self.settings;
        let (folder, checkpoint) = open(&self.checkpoint)?;
        let (model, steps) = folder.model(&checkpoint)?;
        let sets = self.sets(&folder)?;
        let spaces = self
            .subspace
            .map_or(Space::BOTH.to_vec(), |space| vec![space]);
        let images = &sets.images.validation;
        let name = folder.config.model.projection.name();
        let measured = spaces
            .into_iter()
            .map(|space| measure(&model, images, &folder, space, &settings, &name));
        let measured: anyhow::Result<Vec<SpaceCurvature>> = measured.collect();
        let output = CurvatureOutput {
            checkpoint,
            steps,
            settings,
            spaces: measured?,
        };
        if self.json {
            print(&pretty(&output)?)
        } else {
            print(&plain(&output))
        }
    }

    /// The run's own data, by which validation images are known.
    fn sets(&self, folder: &VitFolder) -> anyhow::Result<VitSets> {
        let options = self.fetching.options()?;
        let config = &folder.config.data;
        let [_, height, width] = folder.facts.data.image();
        let place = self.data.as_ref().unwrap_or(&config.train);
        let request = VitRequest {
            place: place.clone(),
            first: config.first,
            draw: config.draw,
            size: Path::new(place).is_dir().then_some([height, width]),
            validation: Some(config.validation),
        };
        let sets = VitSets::load(&request, &options, &Display::new())?;
        let found = DataFacts::of(&sets.images.training);
        ensure!(
            found.fingerprint == folder.facts.data.fingerprint,
            "{place} is not the data of this run: expected the fingerprint {}, found {}; say where they are with --data",
            folder.facts.data.fingerprint,
            found.fingerprint
        );
        Ok(sets)
    }
}

/// The run of a folder or a checkpoint, and the checkpoint.
fn open(path: &Path) -> anyhow::Result<(VitFolder, PathBuf)> {
    let is_checkpoint = path
        .extension()
        .is_some_and(|extension| extension == "safetensors");
    match path.parent().filter(|_| is_checkpoint) {
        Some(parent) => Ok((VitFolder::open(parent)?, path.to_owned())),
        None => {
            let folder = VitFolder::open(path)?;
            let best = folder.best();
            Ok((folder, best))
        }
    }
}

fn plain(output: &CurvatureOutput) -> String {
    let mut text = format!(
        "{}, {} steps, mean loss over {} validation images\n{:<18}{:>11}{:>10}{:>24}{:>24}\n",
        output.checkpoint.display(),
        output.steps,
        output.settings.images,
        "",
        "dimension",
        "loss",
        "Hessian",
        "Gauss-Newton"
    );
    for space in &output.spaces {
        let cells = [&space.hessian, &space.gauss_newton].map(|found| {
            let mark = if found.converged {
                ""
            } else {
                " (not converged)"
            };
            format!("{:>12.4} +- {:.4}{mark}", found.value, found.residual)
        });
        text.push_str(&format!(
            "{:<18}{:>11}{:>10.4}{:>24}{:>24}\n",
            space.subspace.title(),
            space.dimension,
            space.loss,
            cells[0],
            cells[1]
        ));
    }
    text
}
