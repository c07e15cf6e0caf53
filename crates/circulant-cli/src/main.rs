//! The `circulant` program.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 failed, 2 wrong usage.

mod commands;
#[allow(
    dead_code,
    unused_imports,
    reason = "the commands that write reports are not there yet"
)]
mod report;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Circulant and block-circulant spectral layers, and the experiments on them.
#[derive(Parser)]
#[command(
    name = "circulant",
    version,
    arg_required_else_help = true,
    after_help = "Examples:\n  circulant params          parameter counts of all models, as a table\n  circulant params --json   the same, one JSON object per line"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Params(commands::params::Params),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
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
