//! `circulant inspect`: a page about what a run has learned.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::output::{json_line, print};
use crate::experiments::certified::folder::CertifiedFolder;
use crate::experiments::certified::inspection::CertifiedInspection;
use crate::experiments::inspection::Inspected;
use crate::experiments::loaded::LoadedRun;
use crate::experiments::regression::LoadedRegression;
use crate::report::number::grouped;

/// Look into a trained network: spectra, filters, singular values, and the prior.
///
/// Writes one HTML page that needs no other file: settings, parameter counts, the loss, the learned spectrum
/// and filters against the prior's range and draws, norms and singular values of every layer.
#[derive(Args)]
#[command(after_help = "Examples:
  circulant inspect runs/first
  circulant inspect runs/first --out first.html
  circulant inspect runs/first --json")]
pub struct Inspect {
    /// The folder of a run, as `circulant train` makes it, or its checkpoint.
    run: PathBuf,
    /// Where the page goes [default: inspect.html in the run's folder].
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
    /// Print the same as one JSON object.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct InspectOutput<'a, N> {
    report: PathBuf,
    #[serde(flatten)]
    numbers: &'a N,
}

impl Inspect {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        if CertifiedFolder::is_at(&self.run) {
            return self.trained_for_a_radius();
        }
        let (folder, inspected) = match LoadedRegression::open(&self.run)? {
            Some(run) => {
                let inspected = Inspected::new(&run.folder, &run.network, run.steps)?;
                (run.folder, inspected)
            }
            None => {
                let run = LoadedRun::open(&self.run)?;
                let inspected = Inspected::new(&run.folder, &run.network, run.steps)?;
                (run.folder, inspected)
            }
        };
        let default = || folder.path().join("inspect.html");
        let report = self.out.clone().unwrap_or_else(default);
        inspected.write(&folder, &report)?;
        let numbers = &inspected.numbers;
        if self.json {
            let output = InspectOutput { report, numbers };
            return print(&json_line(&output)?);
        }
        let mut text = format!(
            "{}: {}, {} weights, {} biases, {} steps\n{:<14}{:>12}{:>12}{:>17}{:>12}\n",
            numbers.run,
            numbers.model,
            grouped(numbers.weights as u64),
            grouped(numbers.biases as u64),
            numbers.steps,
            "layer",
            "norm from",
            "to",
            "singular median",
            "prior 95 %"
        );
        for layer in &numbers.layers {
            text.push_str(&format!(
                "{:<14}{:>12.5}{:>12.5}{:>17.5}{:>12}\n",
                layer.name,
                layer.lower,
                layer.upper,
                layer.singular_values.median,
                layer
                    .prior
                    .map_or("-".to_owned(), |bound| format!("{bound:.5}"))
            ));
        }
        text.push_str(&format!("{}\n", report.display()));
        print(&text)
    }

    fn trained_for_a_radius(&self) -> anyhow::Result<()> {
        let folder = CertifiedFolder::open(&self.run)?;
        let numbers = &CertifiedInspection::of(&folder)?;
        let default = || folder.path().join("inspect.html");
        let report = self.out.clone().unwrap_or_else(default);
        numbers.write(&folder, &report)?;
        if self.json {
            let output = InspectOutput { report, numbers };
            return print(&json_line(&output)?);
        }
        let mut text = format!(
            "{}: orthogonal, {} parameters, {} steps\n{:<14}{:>12}{:>12}{:>17}\n",
            numbers.run,
            grouped(numbers.parameters as u64),
            numbers.steps,
            "layer",
            "norm from",
            "to",
            "singular median",
        );
        for layer in &numbers.layers {
            text.push_str(&format!(
                "{:<14}{:>12.5}{:>12.5}{:>17.5}\n",
                layer.name, layer.lower, layer.upper, layer.singular_values.median
            ));
        }
        text.push_str(&format!("{}\n", report.display()));
        print(&text)
    }
}
