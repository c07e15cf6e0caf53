//! `circulant reproduce`: the paper's experiments.

mod certified;
mod heads;
mod tables;
mod vit;

use std::path::{Path, PathBuf};

use anyhow::ensure;
use clap::{Args, Subcommand};
use serde::Serialize;

use super::data::display::Display;
use super::flags::Fetching;
use super::output::print;
use crate::experiments::config::ModelKind;
use crate::experiments::folder::pretty;
use crate::experiments::interrupt::Interrupt;
use crate::experiments::mnist::sets::{MnistChoice, MnistSets};
use crate::experiments::mnist::{MnistPlan, plain, settings};
use crate::experiments::variant::SharedPlan;
use crate::ranks::{first_only, first_then_others, folder, say};

/// Run the paper's experiments and compare with its tables.
#[derive(Args)]
pub struct Reproduce {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    Mnist(Mnist),
    Heads(Box<heads::Heads>),
    Vit(vit::Vit),
    Tables(tables::Tables),
    Certified(Box<certified::Certified>),
}

impl Reproduce {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        match &self.experiment {
            Experiment::Mnist(command) => command.run(),
            Experiment::Heads(command) => command.run(),
            Experiment::Vit(command) => command.run(),
            Experiment::Tables(command) => command.run(),
            Experiment::Certified(command) => command.run(),
        }
    }
}

/// Prints what an experiment gave, and says where the report is.
fn finish(
    json: bool,
    results: &impl Serialize,
    table: impl FnOnce() -> String,
    out: &Path,
) -> anyhow::Result<()> {
    print(&if json { pretty(results)? } else { table() })?;
    say!("look at {}", out.join("report.html").display());
    Ok(())
}

/// Six Bayesian models on MNIST, with Fashion-MNIST as out-of-distribution data.
///
/// Trains every model with every seed, evaluates it, and writes report.html, results.json, all figures and all run
/// folders below --out. Prints the table beside the paper's. Runs that are already there are not repeated, so the
/// same command resumes after Ctrl-C. The data are fetched if they are not cached; where that is
/// impossible it runs on drawn digits instead, and says so.
#[derive(Args)]
#[command(after_help = "Examples:
  circulant reproduce mnist
  circulant reproduce mnist --beyond --baselines
  circulant reproduce mnist --models spectral-bccb,dense --seeds 0 --out runs/two
  circulant reproduce mnist --data glyphs --first 2000 --steps 100 --out runs/quick")]
struct Mnist {
    /// Which data to run on.
    #[arg(long, value_enum, default_value_t = MnistChoice::Auto)]
    data: MnistChoice,
    /// The folder for everything.
    #[arg(long, value_name = "FOLDER", default_value = "runs/mnist")]
    out: PathBuf,
    /// Seeds, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "0,1,2")]
    seeds: Vec<u64>,
    /// Models, separated by commas [default: the six of the paper].
    #[arg(long, value_enum, value_delimiter = ',')]
    models: Vec<ModelKind>,
    /// SVI steps per model.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    steps: u64,
    /// Posterior samples per prediction.
    #[arg(long, default_value_t = 50, value_name = "N")]
    samples: usize,
    /// Take only N images of every part, every class with its share, for a quick look.
    #[arg(long, value_name = "N")]
    first: Option<usize>,
    /// Add a table of our own variants: more steps, other priors, more layers. Takes as long as all the rest.
    #[arg(long)]
    beyond: bool,
    /// Add tables of other methods on two of the models: softmax, temperature scaling, MC dropout, a deep ensemble, a last-layer Laplace
    /// approximation, feature density.
    #[arg(long)]
    baselines: bool,
    #[command(flatten)]
    fetching: Fetching,
    /// Print results.json instead of the table.
    #[arg(long)]
    json: bool,
}

impl Mnist {
    fn run(&self) -> anyhow::Result<()> {
        ensure!(self.samples > 0, "--samples: expected 1 or more, got 0");
        let interrupt = Interrupt::listen()?;
        let options = self.fetching.options()?;
        let mut shared = settings::shared();
        shared.training.steps = self.steps;
        shared.check()?;
        let out = folder(&self.out)?;
        let sets = first_then_others(|| {
            MnistSets::load(self.data, self.first, &options, &Display::new())
        })?;
        if let Some(reason) = &sets.fallback {
            say!("NOT MNIST: running on drawn glyphs, because {reason}");
        }
        sets.name.clone_into(&mut shared.data.train);
        shared.data.first = self.first;
        let kinds = match &self.models[..] {
            [] => &ModelKind::PAPER,
            kinds => kinds,
        };
        let models = kinds
            .iter()
            .map(|&kind| settings::paper_model(kind, &shared));
        let beyond = if self.beyond {
            settings::beyond(&shared)
        } else {
            Vec::new()
        };
        let plan = MnistPlan {
            models: models.collect(),
            beyond,
            baselines: self.baselines,
            sets,
            shared: SharedPlan {
                seeds: self.seeds.clone(),
                settings: shared,
                samples: self.samples,
                out,
            },
        };
        let experiment = plan.run(&interrupt)?;
        say!("writing the report");
        let Some(results) = first_only(|| experiment.write())? else {
            return Ok(());
        };
        say!("{:.0} s", results.wall_seconds);
        let table = || plain(&experiment, &results);
        finish(self.json, &results, table, &self.out)
    }
}
