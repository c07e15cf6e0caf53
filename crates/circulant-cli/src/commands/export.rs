//! `circulant export`: a trained network for other places.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use circulant::noise::{Noise, Purpose};
use circulant_data::{ImageSet, Split};
use circulant_edge::write::WrittenGaussian;
use circulant_edge::{Draws, Format, Model};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::output::{json_line, print};
use super::reading::Reading;
use crate::experiments::config::{DataConfig, Draw};
use crate::experiments::evaluation::Sampling;
use crate::experiments::exporting::agreement::{self, AgreementRow};
use crate::experiments::exporting::network::PlainNetwork;
use crate::experiments::exporting::{device, matrices, onnx, page, source};
use crate::experiments::loaded::LoadedRun;
use crate::files::write;

/// Export a trained network: for a device, as C, as a Rust crate, as ONNX, as dense layers, as a page.
///
/// `edge`, `c`, `rust` and `html` keep the posterior: they draw networks where they run, and say what they do not know.
/// `onnx` and `dense` have no Fourier transforms, only matrix products, so that everything can run them. Where the run's test
/// images are at hand, a table compares the exported network with this program.
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
    /// Images to compare predictions on [default: the run's own, the part for tests].
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

/// What `--json` prints.
#[derive(Serialize)]
struct ExportOutput {
    out: PathBuf,
    bytes: usize,
    /// Complex numbers for drawing weights, and for drawing sums alone.
    memory: Option<usize>,
    memory_for_sums: Option<usize>,
    samples: u32,
    images: Option<usize>,
    rows: Vec<AgreementRow>,
}

/// Test images with their classes.
struct TestImages {
    set: ImageSet,
    labels: Option<Vec<usize>>,
}

impl Export {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        let run = LoadedRun::open(&self.run)?;
        let network = PlainNetwork::of(&run)?;
        match self.to {
            Target::Onnx | Target::Dense => self.matrices(&run, &network),
            _ => self.device(&run, &network),
        }
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

    fn device(&self, run: &LoadedRun, network: &PlainNetwork) -> anyhow::Result<()> {
        let samples = self.samples.unwrap_or(8);
        let format = match self.quantise.unwrap_or(Quantisation::Int8) {
            Quantisation::F32 => Format::F32,
            Quantisation::F16 => Format::F16,
            Quantisation::Int8 => Format::Int8,
        };
        let normalisation = &run.folder.config.data.normalisation;
        let bytes = device::model(network, normalisation, format, samples)?;
        let images = self.images(run)?;
        match self.to {
            Target::Edge => write(&self.out, &bytes)?,
            Target::C => source::c(&self.out, network, &bytes)?,
            Target::Rust => source::rust(&self.out, &bytes, &self.edge_crate)?,
            _ => {
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
            }
        }
        let mut rows = Vec::new();
        let compared = images.as_ref().map(|images| images.set.len());
        if let Some(TestImages { set, labels }) = &images {
            let labels = labels.as_deref();
            let bayesian = run.is_bayesian();
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
                let found = agreement::predict(&bytes, set, way)?;
                rows.push(agreement::row(&name, &found, &program, labels)?);
            }
        }
        let model = Model::read(&bytes)?;
        let output = ExportOutput {
            out: self.out.clone(),
            bytes: bytes.len(),
            memory: Some(model.memory_len()),
            memory_for_sums: Some(model.memory_len_for(Draws::Sums)),
            samples,
            images: compared,
            rows,
        };
        self.report(&output)
    }

    fn matrices(&self, run: &LoadedRun, network: &PlainNetwork) -> anyhow::Result<()> {
        ensure!(
            matches!(self.quantise, None | Some(Quantisation::F32)),
            "--quantise: matrices are f32; leave the flag out, or use --to edge"
        );
        let samples = self.samples.unwrap_or(1);
        let (path, bytes) = if self.to == Target::Dense {
            ensure!(
                samples == 1,
                "--samples: dense layers are those of the posterior's mean; use --to onnx for an average of networks"
            );
            let matrices = matrices::matrices(network)?;
            let bytes = matrices::safetensors(&matrices);
            let preparation = format!(
                "`x` is [inputs, {}], normalised as in training: {:?}.",
                network.layers[0].map.sizes()[0],
                run.folder.config.data.normalisation
            );
            let snippet = matrices::snippet(network, &preparation);
            let files: [(&str, &[u8]); 2] = [
                ("network.safetensors", &bytes),
                ("network.py", snippet.as_bytes()),
            ];
            source::folder(&self.out, &files)?;
            (self.out.join("network.py"), bytes.len())
        } else {
            let draws = if samples == 1 {
                vec![matrices::matrices(network)?]
            } else {
                drawn(run, network, samples)?
            };
            let bytes = onnx::model(&draws);
            write(&self.out, &bytes)?;
            (self.out.clone(), bytes.len())
        };
        let output = ExportOutput {
            out: path,
            bytes,
            memory: None,
            memory_for_sums: None,
            samples,
            images: None,
            rows: Vec::new(),
        };
        self.report(&output)
    }

    fn report(&self, output: &ExportOutput) -> anyhow::Result<()> {
        if self.json {
            return print(&json_line(output)?);
        }
        let mut text = String::new();
        if let Some(images) = output.images {
            text.push_str(&format!(
                "{images} images, {} networks drawn\n{:<34}{:>10}{:>9}{:>9}{:>14}{:>14}\n",
                output.samples, "", "accuracy", "ECE", "NLL", "largest", "rank of"
            ));
            text.push_str(&format!("{:>76}{:>14}\n", "difference", "entropies"));
            for row in &output.rows {
                let share =
                    |value: Option<f64>| value.map_or("-".to_owned(), |x| format!("{x:.4}"));
                text.push_str(&format!(
                    "{:<34}{:>10}{:>9}{:>9}{:>14.2e}{:>14.5}\n",
                    row.name,
                    share(row.accuracy),
                    share(row.ece),
                    share(row.nll),
                    row.largest_difference,
                    row.entropy_correlation
                ));
            }
        }
        let memory = output.memory_for_sums.map_or(String::new(), |memory| {
            format!(", memory of {} bytes", 8 * memory)
        });
        text.push_str(&format!(
            "{}: {} bytes{memory}\n",
            output.out.display(),
            output.bytes
        ));
        print(&text)
    }
}

/// The matrices of networks that are drawn as `circulant predict` draws them.
fn drawn(
    run: &LoadedRun,
    network: &PlainNetwork,
    samples: u32,
) -> anyhow::Result<Vec<Vec<matrices::Matrix>>> {
    (0..samples as usize)
        .map(|sample| {
            let mut drawn = network.clone();
            let mut noise = Noise::new(0, Purpose::Prediction, 0, sample);
            let mut values = Vec::new();
            for (_, factor) in run.network.posteriors() {
                let tensor =
                    circulant::bayes::Posterior::sample(&factor.posterior, noise.next_key());
                let data = tensor.into_data().convert::<f32>();
                values.push(
                    data.try_into_vec::<f32>()
                        .ok()
                        .context("converted to f32")?,
                );
            }
            for layer in &mut drawn.layers {
                for gaussian in [&mut layer.weights, &mut layer.bias] {
                    let own = values[usize::from(gaussian.stream)].clone();
                    *gaussian = WrittenGaussian::point(own);
                }
            }
            matrices::matrices(&drawn)
        })
        .collect()
}
