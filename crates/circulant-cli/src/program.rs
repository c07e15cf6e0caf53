//! The whole program, for `main` and for other languages that carry it along.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use crate::commands;

/// Circulant and block-circulant spectral layers, and the experiments on them.
#[derive(Parser)]
#[command(
    name = "circulant",
    version,
    arg_required_else_help = true,
    after_help = "Examples:\n  circulant train --data mnist --out runs/first   train on MNIST\n  circulant predict runs/first --data mnist --out predictions.csv\n                            classes, probabilities and uncertainties\n  circulant certify runs/first --data mnist\n                            norms, and radii inside which decisions hold\n  circulant inspect runs/first\n                            spectra, filters and the prior, as a page\n  circulant params          parameter counts of all models, as a table\n  circulant data list       data sets that can be fetched or drawn\n\nExit codes: 0 done, 1 failed, 2 wrong usage."
)]
struct Cli {
    /// The number of threads [default: one per core].
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
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing can be said any more if that fails.
            error.print().ok();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    circulant::join_pool(cli.threads.unwrap_or(0).into()).expect("nothing has used the pool yet");
    let result = match cli.command {
        Command::Blocks(command) => command.run(),
        Command::Certify(command) => command.run(),
        Command::Curvature(command) => command.run(),
        Command::Data(command) => command.run(),
        Command::Evaluate(command) => command.run(),
        Command::Export(command) => command.run(),
        Command::Features(command) => command.run(),
        Command::Head(command) => command.run(),
        Command::Inspect(command) => command.run(),
        Command::Params(command) => command.run(),
        Command::Predict(command) => command.run(),
        Command::Reproduce(command) => command.run(),
        Command::Train(command) => command.run(),
    };
    match result {
        Ok(()) => 0,
        Err(error) => {
            match commands::advice(&error) {
                Some(help) => eprintln!("circulant: {error:#}; {help}"),
                None => eprintln!("circulant: {error:#}"),
            }
            1
        }
    }
}
