//! The `circulant` program.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 failed, 2 wrong usage.

use std::process::ExitCode;

use circulant_cli::commands;
use clap::{Parser, Subcommand};

/// Circulant and block-circulant spectral layers, and the experiments on them.
#[derive(Parser)]
#[command(
    name = "circulant",
    version,
    arg_required_else_help = true,
    after_help = "Examples:\n  circulant params          parameter counts of all models, as a table\n  circulant params --json   the same, one JSON object per line\n  circulant data list       data sets that can be fetched or drawn"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Data(commands::data::Data),
    Params(commands::params::Params),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Data(command) => command.run(),
        Command::Params(command) => command.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("circulant: {error:#}");
            ExitCode::FAILURE
        }
    }
}
