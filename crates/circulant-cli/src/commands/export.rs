//! `circulant export`: a trained network for other places.

use std::path::PathBuf;

use anyhow::bail;
use circulant_data::{ImageSet, Pixels, Split};
use circulant_edge::write::WrittenNormalisation;
use circulant_edge::{Draws, Format, Model};
use clap::{Args, ValueEnum};

use self::matrices::drawn;
use self::report::{ExportOutput, Rows};
use super::output::{json_line, print};
use super::reading::Reading;
use crate::experiments::certified::folder::CertifiedFolder;
use crate::experiments::config::{DataConfig, Draw};
use crate::experiments::evaluation::Sampling;
use crate::experiments::exporting::agreement::{self, Inputs};
use crate::experiments::exporting::network::PlainNetwork;
use crate::experiments::exporting::{device, page, source};
use crate::experiments::loaded::{LoadedRun, TrainedRun};
use crate::experiments::regression::LoadedRegression;
use crate::files::write;

mod matrices;
mod report;

/// Export a trained network: for a device, as C, as a Rust crate, as ONNX, as dense layers, as a page.
///
/// `edge`, `c`, `rust` and `html` keep the posterior: they draw networks where they run, and say what they do not know.
/// `onnx` and `dense` have no Fourier transforms, only matrix products or convolutions, so that everything can run them. Where the run's
/// test images or held-out rows are at hand, a table compares the exported network with this program. Classes, numbers (with noise of
/// one deviation or one that depends on the row) and counts can be exported; of a table the device takes the columns as they are, in
/// order, one input per level of a category. Runs of `train --certified` leave as `onnx` and `dense`.
#[derive(Args)]
#[command(after_help = "What --out is:
  edge   a .circ file for the crate circulant-edge (no_std), from flash as it is
  c      a folder with C99: circulant.h, circulant.c, model.h, and a main.c that reads images from stdin
  rust   a folder with a crate that has the model as a constant
  onnx   a .onnx file: the network at the posterior's mean, or an average of --samples networks
  dense  a folder with network.safetensors (names of torch.nn.Sequential) and network.py, at the posterior's mean
  html   one page that draws, predicts and explains, without a server

Examples:
  circulant export runs/first --to edge --out first.circ
  circulant export runs/first --to c --quantise int8 --samples 8 --out first-c
  circulant export runs/first --to html --out first.html")]
pub struct Export {
    /// The folder of a run, as `circulant train` makes it, or a saved classifier.
    run: PathBuf,
    /// What to make.
    #[arg(long, value_enum)]
    to: Target,
    /// Where it goes, a file or a folder.
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    /// How numbers are stored: `f32`, `f16`, or one byte with a scale per group [default: int8; f32 with --to dense and onnx].
    #[arg(long, value_enum)]
    quantise: Option<Quantisation>,
    /// Networks to draw: the device's default; for `onnx` the networks that are averaged, 1 for the posterior's mean [default: 8;
    /// 1 with --to onnx].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    samples: Option<u32>,
    /// Data to compare predictions on [default: the run's own, the part for tests or what was held out].
    #[arg(long, value_name = "NAME|PATH")]
    data: Option<String>,
    /// Compare nothing.
    #[arg(long, conflicts_with = "data")]
    unchecked: bool,
    /// Where the crate comes from in the manifest of --to rust.
    #[arg(long, value_name = "REQUIREMENT", default_value = concat!("\"", env!("CARGO_PKG_VERSION"), "\""))]
    edge_crate: String,
    /// Print sizes and the comparison as one JSON object.
    #[arg(long)]
    json: bool,
    // Last: its heading holds for all flags that follow.
    #[command(flatten)]
    reading: Reading,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    Edge,
    C,
    Rust,
    Onnx,
    Dense,
    Html,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Quantisation {
    F32,
    F16,
    Int8,
}

/// Test images with their classes.
struct TestImages {
    set: ImageSet,
    labels: Option<Vec<usize>>,
}

impl Export {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        if CertifiedFolder::is_at(&self.run) {
            return self.orthogonal();
        }
        if let Some(run) = LoadedRegression::open(&self.run)? {
            return self.numbers(&run);
        }
        let run = LoadedRun::open(&self.run)?;
        let network = PlainNetwork::of(&run)?;
        let config = &run.folder.config.data;
        let schema = run.folder.facts.data.table.as_ref();
        match self.to {
            Target::Onnx | Target::Dense => {
                let normalised = match schema {
                    Some(_) => "standardised as in training".to_owned(),
                    None => format!("normalised as in training: {:?}", config.normalisation),
                };
                let draw = |samples| drawn(run.network.posteriors(), &network, samples);
                self.matrices(&network, &normalised, draw)
            }
            _ => {
                let normalisation = device::normalisation(&config.normalisation, schema);
                self.device(&run, &network, &normalisation)
            }
        }
    }

    fn numbers(&self, run: &LoadedRegression) -> anyhow::Result<()> {
        let network = PlainNetwork::of_regression(run)?;
        match self.to {
            Target::Onnx | Target::Dense => {
                let draw = |samples| drawn(run.network.posteriors(), &network, samples);
                return self.matrices(&network, "standardised as in training", draw);
            }
            Target::Html => bail!(
                "{}: a page shows classes of images, and this run predicts numbers; use --to edge, c, rust, onnx or dense",
                self.run.display()
            ),
            Target::Edge | Target::C | Target::Rust => {}
        }
        let normalisation =
            device::normalisation(&run.folder.config.data.normalisation, Some(&run.schema));
        let (samples, format) = (self.samples.unwrap_or(8), self.format());
        let bytes = device::model(&network, &normalisation, format, samples)?;
        self.write(&network, &bytes)?;
        let table = match &self.data {
            _ if self.unchecked => None,
            Some(place) => Some(run.table(place, Split::Test)?),
            None => match run.held_out() {
                Ok(table) => Some(table),
                Err(error) => {
                    eprintln!("circulant: compares nothing: {error:#}");
                    None
                }
            },
        };
        let mut rows = Vec::new();
        if let Some(table) = &table {
            let inputs = Inputs::of_standardised(table.inputs.values(), &normalisation);
            let targets = table.targets.as_deref();
            let program = run.predict(table, samples as usize, 0)?;
            rows.push(agreement::own_value_row("this program", &program, targets));
            for (name, way) in agreement::ways(samples, run.is_bayesian()) {
                let found = agreement::predict_values(&bytes, &inputs, way)?;
                rows.push(agreement::value_row(&name, &found, &program, targets));
            }
        }
        let compared = table.map(|table| table.inputs.shape()[0]);
        self.report(&self.output(&bytes, samples, compared, Rows::Values(rows))?)
    }

    fn format(&self) -> Format {
        match self.quantise.unwrap_or(Quantisation::Int8) {
            Quantisation::F32 => Format::F32,
            Quantisation::F16 => Format::F16,
            Quantisation::Int8 => Format::Int8,
        }
    }

    /// Writes a model for a device.
    fn write(&self, network: &PlainNetwork, bytes: &[u8]) -> anyhow::Result<()> {
        match self.to {
            Target::C => source::c(&self.out, network, bytes),
            Target::Rust => source::rust(&self.out, bytes, &self.edge_crate),
            _ => write(&self.out, bytes),
        }
    }

    fn output(
        &self,
        bytes: &[u8],
        samples: u32,
        compared: Option<usize>,
        rows: Rows,
    ) -> anyhow::Result<ExportOutput> {
        let model = Model::read(bytes)?;
        Ok(ExportOutput {
            out: self.out.clone(),
            bytes: bytes.len(),
            memory: Some(model.memory_len()),
            memory_for_sums: Some(model.memory_len_for(Draws::Sums)),
            samples,
            images: compared,
            rows,
        })
    }

    /// The images to compare on; none if there are none at hand.
    fn images(&self, run: &LoadedRun) -> anyhow::Result<Option<TestImages>> {
        if self.unchecked {
            return Ok(None);
        }
        let own = run.folder.config.data.train.clone();
        let place = self.data.clone().unwrap_or(own);
        let mut options = DataConfig {
            draw: Draw::InOrder,
            ..run.reading()
        };
        self.reading.apply(&mut options);
        if place.is_empty() {
            return Ok(None);
        }
        let set = match run.images(&place, Split::Test, &options) {
            Ok(set) => set,
            Err(error) if self.data.is_some() => return Err(error),
            Err(error) => {
                eprintln!("circulant: compares nothing: {error:#}; name test images with --data");
                return Ok(None);
            }
        };
        let labels = run.classes_of(&set)?;
        Ok(Some(TestImages { set, labels }))
    }

    fn device(
        &self,
        run: &LoadedRun,
        network: &PlainNetwork,
        written: &WrittenNormalisation,
    ) -> anyhow::Result<()> {
        let (samples, format) = (self.samples.unwrap_or(8), self.format());
        let normalisation = &run.folder.config.data.normalisation;
        let bytes = device::model(network, written, format, samples)?;
        let images = self.images(run)?;
        if self.to == Target::Html {
            let Some(images) = &images else {
                bail!(
                    "a page compares with test images, and there are none at hand; name some with --data"
                );
            };
            let slope = run.folder.config.posterior.slope;
            let labels = images.labels.as_deref();
            let page = page::page(
                network,
                normalisation,
                &bytes,
                samples,
                slope,
                &images.set,
                labels,
            )?;
            write(&self.out, page)?;
        } else {
            self.write(network, &bytes)?;
        }
        let mut rows = Vec::new();
        let compared = images.as_ref().map(|images| images.set.len());
        if let Some(TestImages { set, labels }) = &images {
            let labels = labels.as_deref();
            let bayesian = run.is_bayesian();
            let inputs = match (&run.folder.facts.data.table, set.pixels()) {
                (Some(_), Pixels::F32(values)) => Inputs::of_standardised(values, written),
                _ => Inputs::of(set),
            };
            let draw = |samples: u32| {
                let sampling = Sampling {
                    samples: if bayesian { samples as usize } else { 1 },
                    seed: 0,
                };
                sampling.predict(&run.network, set, normalisation, "predicting")
            };
            let program = draw(samples)?;
            rows.push(agreement::own_row("this program", &program, labels)?);
            for (name, way) in agreement::ways(samples, bayesian) {
                let found = agreement::predict(&bytes, &inputs, way)?;
                rows.push(agreement::row(&name, &found, &program, labels)?);
            }
        }
        self.report(&self.output(&bytes, samples, compared, Rows::Classes(rows))?)
    }

    fn report(&self, output: &ExportOutput) -> anyhow::Result<()> {
        if self.json {
            print(&json_line(output)?)
        } else {
            print(&output.text())
        }
    }
}
