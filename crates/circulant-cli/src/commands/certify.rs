//! `circulant certify`: norms, the Lipschitz bound, and radii inside which decisions cannot change.

mod certified;
mod targets;

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;
use serde::Serialize;

use super::output::{OutFile, RowFormat, json_line, print};
use super::reading::Reading;
use crate::experiments::certification::{
    AverageSummary, Certification, CertificationSummary, InputRow,
};
use crate::experiments::certified::folder::CertifiedFolder;
use crate::experiments::folder::pretty;
use crate::experiments::loaded::{LoadedRun, TrainedRun};
use crate::experiments::regression::LoadedRegression;
use crate::files::write;
use crate::ranks::{self, say};
use crate::report::figure::{Axis, Radii as CertifiedCurve, certified_accuracy};
use circulant::geometry::{Quantiles, Radii};
use circulant_data::Split;

/// Certify a trained network: how far inputs may move before its decision can change.
///
/// Bounds the norm of every layer and with it how fast the logits can change; from the margin of an input follows a
/// radius (2-norm, in the units of the normalised input) inside which the class cannot change, the rounding of the
/// f32 computation included. Three radii, all of them true: `paper` m/(2L), `sqrt(2)` m/(sqrt(2) L), and
/// `last layer`, which knows the weights of the read-out and is the largest as a rule. They are about the network at
/// the posterior's mean; networks drawn from the posterior give the distributions. Two more are about what `predict`
/// says, with the same samples and seed: the class of the largest probability averaged over networks. With labels, a radius counts where the
/// class is right; without, it is about the predicted class. Of a table, the
/// median radius is also given as the change of each column alone, in its own unit.
///
/// Where the target is a number: how fast its prediction, averaged over networks, can change, and per row the radius within which it moves by no
/// more than --tolerance.
#[derive(Args)]
#[command(
    after_help = "The file of --out has one row per input: index, file (of pictures), class (predicted), label (where known), margin,
certified_margin (in spite of rounding), paper, sqrt_two, last_layer; and of the averaged prediction
average_class, average_difference, average, per_sample. Where the target is a number: index, mean, tolerance, radius.

Examples:
  circulant certify runs/first --data mnist
  circulant certify runs/first --data mnist --first 1000 --samples 200 --out radii.csv
  circulant certify runs/first --data mnist --samples 0 --figure curve.svg
  circulant certify runs/houses --data houses.csv --tolerance 10
  circulant certify runs/first --data fashion-mnist --predicted --json"
)]
pub struct Certify {
    /// The folder of a run, as `circulant train` makes it.
    run: PathBuf,
    /// A data set by name (see `circulant data list`) or a path; for pictures also a folder without classes, one file,
    /// a pattern in quotes, or - for a list of files on stdin. Read as the run's own data were, unless flags say
    /// otherwise; pictures are scaled to the model's size.
    #[arg(long, value_name = "NAME|PATH")]
    data: String,
    /// The part to read, where there are two.
    #[arg(long, value_parser = super::flags::split(), default_value_t = Split::Test)]
    split: Split,
    /// Certify the predicted class, right or wrong, though there are labels.
    #[arg(long)]
    predicted: bool,
    /// Radii at which the certified accuracy is told.
    #[arg(
        long,
        value_name = "X,X,...",
        value_delimiter = ',',
        allow_negative_numbers = true,
        default_value = "0,0.01,0.02,0.05,0.1,0.2,0.5,1"
    )]
    radii: Vec<f64>,
    /// Where the target is a number: how far its prediction may move, in the unit of the target [default: half of its own 90 % interval].
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    tolerance: Option<f64>,
    /// Networks to draw from the posterior; 0 for its mean alone.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=65_536))]
    samples: u32,
    /// The seed of the networks that are drawn.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Write the radii of every input to this file.
    #[arg(long, value_name = "FILE.{csv,json}", value_parser = parse_out)]
    out: Option<OutFile>,
    /// Draw the share of inputs that is certified (and right, where labels are known) against the radius.
    #[arg(long, value_name = "FILE.svg")]
    figure: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    // Last: its heading holds for all flags that follow.
    #[command(flatten)]
    reading: Reading,
}

fn parse_out(text: &str) -> Result<OutFile, String> {
    OutFile::parse(text, &[RowFormat::Csv, RowFormat::Json])
}

/// The JSON file of `--out`.
#[derive(Serialize)]
struct Everything<'a> {
    #[serde(flatten)]
    summary: &'a CertificationSummary,
    rows: &'a [InputRow],
}

impl Certify {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        for &radius in &self.radii {
            ensure!(
                radius >= 0.0 && radius.is_finite(),
                "--radii: expected 0 or positive numbers, got {radius}"
            );
        }
        self.check_tolerance()?;
        let place = ranks::folder(&self.run)?;
        if CertifiedFolder::is_at(&place) {
            self.ensure_no_tolerance()?;
            let (summary, rows, set) = self.trained(&place)?;
            return self.tell(&summary, &rows, set.source());
        }
        if let Some(run) = LoadedRegression::open(&place)? {
            ensure!(
                self.figure.is_none(),
                "--figure: it is for runs that predict classes; leave it out"
            );
            return self.targets(&run);
        }
        self.ensure_no_tolerance()?;
        let run = LoadedRun::open(&place)?;
        let mut options = run.reading();
        self.reading.apply(&mut options);
        let set = run.images(&self.data, self.split, &options)?;
        let (summary, rows) = self.certification().certify(&run, &set)?;
        self.tell(&summary, &rows, set.source())
    }

    fn ensure_no_tolerance(&self) -> anyhow::Result<()> {
        ensure!(
            self.tolerance.is_none(),
            "--tolerance: it is for runs that predict a number; leave it out"
        );
        Ok(())
    }

    fn certification(&self) -> Certification {
        Certification {
            samples: self.samples as usize,
            seed: self.seed,
            radii: self.radii.clone(),
            predicted: self.predicted,
        }
    }

    /// Prints and writes what was found.
    fn tell(
        &self,
        summary: &CertificationSummary,
        rows: &[InputRow],
        source: &str,
    ) -> anyhow::Result<()> {
        if let Some(path) = &self.figure {
            let certain = rows.iter().filter(|row| row.certified_margin > 0.0);
            let largest = |row: &InputRow| {
                let last = row.radii.last_layer.unwrap_or(0.0);
                last.max(row.radii.sqrt_two)
            };
            let model = CertifiedCurve {
                name: summary.model.to_owned(),
                radii: certain.map(largest).collect(),
                inputs: rows.len(),
            };
            let axis = Axis::linear("radius (l2)");
            let drawing = certified_accuracy("Certified accuracy", axis, &[model]);
            write(path, drawing.standalone())?;
            say!("the curve is in {}", path.display());
        }
        if let Some(file) = &self.out {
            let text = match file.format {
                RowFormat::Json => pretty(&Everything { summary, rows })?,
                _ => csv(rows)?,
            };
            write(&file.path, text.as_bytes())?;
            say!("{} inputs in {}", rows.len(), file.path.display());
        }
        if self.json {
            print(&json_line(summary)?)
        } else {
            print(&plain(summary, source))
        }
    }
}

fn csv(rows: &[InputRow]) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let has_files = rows.iter().any(|row| row.file.is_some());
    let header = [
        "index",
        "file",
        "class",
        "label",
        "margin",
        "certified_margin",
        "paper",
        "sqrt_two",
        "last_layer",
        "average_class",
        "average_difference",
        "average",
        "per_sample",
    ];
    writer.write_record(header.iter().filter(|name| has_files || **name != "file"))?;
    for row in rows {
        let text = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        writer.write_field(row.index.to_string())?;
        if has_files {
            writer.write_field(row.file.as_deref().unwrap_or_default())?;
        }
        writer.write_record([
            row.class.to_string(),
            row.label.map_or(String::new(), |label| label.to_string()),
            row.margin.to_string(),
            row.certified_margin.to_string(),
            row.radii.paper.to_string(),
            row.radii.sqrt_two.to_string(),
            text(row.radii.last_layer),
            row.average
                .map_or(String::new(), |row| row.average_class.to_string()),
            text(row.average.map(|row| row.average_difference)),
            text(row.average.map(|row| row.average)),
            text(row.average.map(|row| row.per_sample)),
        ])?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn plain(summary: &CertificationSummary, source: &str) -> String {
    let mut text = format!(
        "{}: {}, {} steps\n\n{:<14}{:>12}{:>12}{:>22}{:>12}\n",
        summary.run,
        summary.model,
        summary.steps,
        "layer",
        "norm from",
        "to",
        "posterior 5 to 95 %",
        "prior 95 %"
    );
    for layer in &summary.layers {
        text.push_str(&format!(
            "{:<14}{:>12.5}{:>12.5}{:>22}{:>12}\n",
            layer.name,
            layer.lower,
            layer.upper,
            layer.posterior.as_ref().map_or("-".to_owned(), band),
            layer
                .prior
                .map_or("-".to_owned(), |bound| format!("{bound:.5}"))
        ));
    }
    let drawn = summary.posterior.as_ref();
    text.push_str(&format!(
        "\nLipschitz bound {:.5}{}\nrounding allowance {:.3e} in the logits, for inputs of norm up to {:.4}\n",
        summary.lipschitz,
        drawn.map_or(String::new(), |drawn| format!(
            " (posterior 5 to 95 %: {})",
            band(&drawn.lipschitz)
        )),
        summary.rounding,
        summary.input_norm
    ));
    let about = match summary.accuracy {
        Some(accuracy) => format!("accuracy {accuracy:.4} at the posterior's mean"),
        None => "about the predicted class, right or wrong".to_owned(),
    };
    text.push_str(&format!(
        "\n{source}: {} inputs, {about}\n\n{:<28}{:>18}{:>18}{:>18}\n",
        summary.inputs, "radius", "paper", "sqrt(2)", "last layer"
    ));
    let line = |name: &str, values: Radii<String>| {
        let last = values.last_layer.unwrap_or_else(|| "-".to_owned());
        format!(
            "{name:<28}{:>18}{:>18}{last:>18}\n",
            values.paper, values.sqrt_two
        )
    };
    let median = |radii: &Radii<Quantiles>| radii.map(|found| format!("{:.5}", found.median));
    text.push_str(&line("median", median(&summary.radii)));
    if let Some(drawn) = drawn {
        let name = format!("median, {} samples", drawn.samples);
        text.push_str(&line(&name, median(&drawn.radii)));
        text.push_str(&line("5 to 95 %, samples", drawn.radii.map(band)));
    }
    text.push('\n');
    let what = if summary.accuracy.is_some() {
        "right and certified at"
    } else {
        "certified at"
    };
    for at in &summary.certified {
        let name = format!("{what} {}", at.radius);
        text.push_str(&line(&name, at.share.map(|share| format!("{share:.4}"))));
    }
    if !summary.units.is_empty() {
        text.push_str("\none column alone may change by, at the median input\n");
        for unit in &summary.units {
            text.push_str(&format!("  {:<26}{:>18.6}\n", unit.column, unit.radius));
        }
    }
    if let (Some(average), Some(drawn)) = (&summary.average, drawn) {
        text.push_str(&of_average(average, drawn.samples));
    }
    text
}

/// What is promised about the class that `predict` gives.
fn of_average(average: &AverageSummary, samples: usize) -> String {
    let accuracy = average.accuracy;
    let mut text = format!(
        "\nthe prediction averaged over {samples} samples{}\n\n{:<28}{:>18}{:>18}\n{:<28}{:>18.5}{:>18.5}\n{:<28}{:>18}{:>18}\n\n",
        accuracy.map_or(String::new(), |share| format!(", accuracy {share:.4}")),
        "radius",
        "average",
        "per sample",
        "median",
        average.radius.median,
        average.per_sample.median,
        "5 to 95 %",
        band(&average.radius),
        band(&average.per_sample)
    );
    let what = if accuracy.is_some() {
        "right and certified at"
    } else {
        "certified at"
    };
    for at in &average.certified {
        let name = format!("{what} {}", at.radius);
        text.push_str(&format!("{name:<28}{:>18}{:>18.4}\n", "", at.share));
    }
    text
}

fn band(found: &Quantiles) -> String {
    format!("{:.4}..{:.4}", found.q05, found.q95)
}
