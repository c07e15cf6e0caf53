//! The whole program, for `main` and for other languages that carry it along.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use crate::commands;
use crate::ranks::{self, World, first_only};

/// Circulant and block-circulant spectral layers, and the experiments on them.
#[derive(Parser)]
#[command(
    name = "circulant",
    version,
    arg_required_else_help = true,
    after_help = "Examples:\n  circulant train --data mnist --out runs/first   train on MNIST\n  circulant predict runs/first --data mnist --out predictions.csv\n                            classes, probabilities and uncertainties\n  circulant certify runs/first --data mnist\n                            norms, and radii inside which decisions hold\n  circulant inspect runs/first\n                            spectra, filters and the prior, as a page\n  circulant params          parameter counts of all models, as a table\n  circulant data list       data sets that can be fetched or drawn\n\nExit codes: 0 done, 1 failed, 2 wrong usage."
)]
struct Cli {
    /// The number of threads [default: one per core, which the ranks of a machine share].
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Blocks(commands::blocks::Blocks),
    Certify(commands::certify::Certify),
    Curvature(commands::curvature::CurvatureCommand),
    Data(commands::data::Data),
    Evaluate(commands::evaluate::Evaluate),
    Export(commands::export::Export),
    Features(commands::features::Features),
    Head(Box<commands::head::Head>),
    Inspect(commands::inspect::Inspect),
    Params(commands::params::Params),
    Predict(commands::predict::Predict),
    Reproduce(commands::reproduce::Reproduce),
    Train(Box<commands::train::Train>),
}

/// Runs the program with its arguments, the name first, on a thread that nothing has used for parallel work yet. Returns the exit
/// code: 0 done, 1 failed, 2 wrong usage.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let world = match World::join() {
        Ok(world) => world,
        Err(error) => {
            if ranks::speaks() {
                tell(&error);
            }
            return 1;
        }
    };
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            if ranks::speaks() {
                // Nothing can be said any more if that fails.
                error.print().ok();
            }
            return match world.end(Ok(()), tell) {
                Ok(()) => u8::try_from(error.exit_code()).unwrap_or(2),
                Err(_) => 1,
            };
        }
    };
    circulant::join_pool(ranks::threads(cli.threads)).expect("nothing has used the pool yet");
    match world.end(cli.command.run(), tell) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn tell(error: &anyhow::Error) {
    match commands::advice(error) {
        Some(help) => eprintln!("circulant: {error:#}; {help}"),
        None => eprintln!("circulant: {error:#}"),
    }
}

impl Command {
    /// Trains, predicts and certifies on all ranks; everything else is for rank 0 alone.
    fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Certify(command) => command.run(),
            Self::Evaluate(command) => command.run(),
            Self::Predict(command) => command.run(),
            Self::Reproduce(command) => command.run(),
            Self::Train(command) => command.run(),
            Self::Blocks(command) => on_one(|| command.run()),
            Self::Curvature(command) => on_one(|| command.run()),
            Self::Data(command) => on_one(|| command.run()),
            Self::Export(command) => on_one(|| command.run()),
            Self::Features(command) => on_one(|| command.run()),
            Self::Head(command) => on_one(|| command.run()),
            Self::Inspect(command) => on_one(|| command.run()),
            Self::Params(command) => on_one(|| command.run()),
        }
    }
}

fn on_one(run: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    first_only(run).map(|_| ())
}
