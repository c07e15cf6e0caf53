//! A folder of C99, or a Rust crate, around a model.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Context;
use circulant_edge::{Draws, Model};

use super::network::{Outcome, PlainMap, PlainNetwork};
use crate::files::write;

/// Writes files into a folder, which may exist.
pub fn folder(path: &Path, files: &[(&str, &[u8])]) -> anyhow::Result<()> {
    for (name, bytes) in files {
        let file = path.join(name);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent).with_context(|| {
                format!(
                    "cannot make the folder {}; is there space, and may you write there?",
                    parent.display()
                )
            })?;
        }
        write(&file, bytes)?;
    }
    Ok(())
}

/// The files of the C program.
pub fn c(path: &Path, network: &PlainNetwork, model: &[u8]) -> anyhow::Result<()> {
    let header = header(network, model)?;
    folder(
        path,
        &[
            ("circulant.h", include_bytes!("../../../assets/circulant.h")),
            ("circulant.c", include_bytes!("../../../assets/circulant.c")),
            ("main.c", include_bytes!("../../../assets/main.c")),
            ("model.h", header.as_bytes()),
        ],
    )
}

/// `model.h`: sizes and the bytes.
fn header(network: &PlainNetwork, bytes: &[u8]) -> anyhow::Result<String> {
    let samples = Model::read(bytes)?.samples();
    let (mut complex, mut roots, mut coordinates, mut values, mut rows) = (1, 1, 1, 1, 0);
    let sums = Model::read(bytes)?.sums_len().max(1);
    let mut prime = 1;
    for layer in &network.layers {
        let [inputs, outputs] = layer.map.sizes();
        values = values.max(inputs).max(outputs);
        match layer.map {
            PlainMap::Circulant { length, .. } => {
                complex = complex.max(length);
                roots = roots.max(length);
                prime = prime.max(largest_factor(length));
            }
            PlainMap::Bccb { channels, grid, .. } => {
                let bins = grid[0] * (grid[1] / 2 + 1);
                rows += grid[0];
                // With what is left out.
                values = values.max(channels[1] * grid[0] * grid[1]);
                complex = complex.max(channels[0] * bins).max(grid[0]).max(grid[1]);
                roots = roots.max(grid[0]).max(grid[1]);
                prime = prime
                    .max(largest_factor(grid[0]))
                    .max(largest_factor(grid[1]));
                coordinates = coordinates.max(layer.weights.mean.len());
            }
            PlainMap::Dense { .. } => {}
        }
    }
    let inputs: usize = network.image.iter().product();
    let logits = network
        .layers
        .last()
        .map_or(0, |layer| layer.map.sizes()[1]);
    let (task, noise) = match network.outcome {
        Outcome::Classes => (0, 0),
        Outcome::Value(_) => (1, 0),
        Outcome::ValueWithNoise(_) => (1, 1),
        Outcome::Count => (2, 0),
    };
    let mut text =
        String::from("/* Written by `circulant export --to c`. */\n#include <stdint.h>\n\n");
    for (name, value) in [
        ("CLASSES", network.classes),
        ("LOGITS", logits),
        // 0 classes, 1 values, 2 counts.
        ("TASK", task),
        ("NOISE_PER_INPUT", noise),
        ("INPUTS", inputs),
        ("CHANNELS", network.image[0]),
        ("LAYERS", network.layers.len()),
        ("SAMPLES", samples as usize),
        ("COMPLEX", complex),
        ("ROOTS", roots),
        ("PRIME", prime),
        ("ROWS", rows.max(1)),
        ("COORDINATES", coordinates),
        // Compilers that see through everything want room for the pair that no layer of this model writes.
        ("SUMS", sums.max(2)),
        ("VALUES", inputs + values),
        ("MODEL_BYTES", bytes.len()),
    ] {
        let _ = writeln!(text, "#define CIRCULANT_{name} {value}");
    }
    text.push_str("\nstatic const uint8_t circulant_model[CIRCULANT_MODEL_BYTES] = {");
    for (index, byte) in bytes.iter().enumerate() {
        text.push_str(if index % 24 == 0 { "\n    " } else { "" });
        let _ = write!(text, "{byte},");
    }
    text.push_str("\n};\n\nstatic const int16_t circulant_quantiles[] = {");
    for (index, quantile) in circulant_edge::QUANTILES.iter().enumerate() {
        text.push_str(if index % 16 == 0 { "\n    " } else { "" });
        let _ = write!(text, "{quantile},");
    }
    text.push_str("\n};\n");
    // Only circulant.c has the bytes.
    let guard = "\nstatic const uint8_t circulant_model";
    let parts = text.split_once(guard).context("the header has the model")?;
    Ok(format!(
        "#ifndef CIRCULANT_MODEL_H\n#define CIRCULANT_MODEL_H\n{}\nextern const uint8_t circulant_model[CIRCULANT_MODEL_BYTES];\n\n#endif\n\n#ifdef CIRCULANT_MODEL_DATA\nconst uint8_t circulant_model{}#endif\n",
        parts.0, parts.1
    ))
}

fn largest_factor(mut n: usize) -> usize {
    let (mut largest, mut p) = (1, 2);
    while p * p <= n {
        if n.is_multiple_of(p) {
            n /= p;
            largest = p;
        } else {
            p += 1;
        }
    }
    largest.max(n)
}

/// The files of the Rust crate. `edge` is where `circulant-edge` comes from, as a line of `Cargo.toml` has it.
pub fn rust(path: &Path, model: &[u8], edge: &str) -> anyhow::Result<()> {
    let read = Model::read(model)?;
    let (inputs, outputs) = (read.inputs(), read.outputs());
    let (memory, sums) = (read.memory_len(), read.memory_len_for(Draws::Sums));
    let samples = read.samples();
    let manifest = format!(
        "[package]\nname = \"circulant-model\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\ncirculant-edge = {edge}\n\n[workspace]\n"
    );
    let library = format!(
        r#"//! A Bayesian network as a constant, written by `circulant export --to rust`.
//!
//! ```
//! use circulant_edge::{{Complex, Input, Runtime, Sampling}};
//!
//! let mut memory = [Complex::new(0.0_f32, 0.0); circulant_model::MEMORY];
//! let mut runtime = Runtime::new(circulant_model::model()?, &mut memory)?;
//! let prediction = runtime.predict(Input::Bytes(&[0; circulant_model::INPUTS]), &Sampling::new(circulant_model::SAMPLES))?;
//! assert!(prediction.class < circulant_model::OUTPUTS);
//! # Ok::<(), circulant_edge::EdgeError>(())
//! ```

#![no_std]
#![forbid(unsafe_code)]

use circulant_edge::{{EdgeError, Model}};

/// The file.
pub static BYTES: &[u8] = include_bytes!("model.circ");
/// Complex numbers of memory that a `Runtime` needs for everything.
pub const MEMORY: usize = {memory};
/// The same if only sums are drawn, as `Sampling::new` has it.
pub const MEMORY_FOR_SUMS: usize = {sums};
/// Values of an input.
pub const INPUTS: usize = {inputs};
/// Classes, or one number or count.
pub const OUTPUTS: usize = {outputs};
/// Posterior samples unless you choose others.
pub const SAMPLES: u32 = {samples};

/// Checks the file and gives the model.
pub fn model() -> Result<Model<'static>, EdgeError> {{
    Model::read(BYTES)
}}
"#
    );
    folder(
        path,
        &[
            ("Cargo.toml", manifest.as_bytes()),
            ("src/lib.rs", library.as_bytes()),
            ("src/model.circ", model),
        ],
    )
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use circulant::models::{HiddenKind, ImageClassifierConfig};
    use circulant_edge::write::{WrittenGaussian, WrittenNormalisation};
    use circulant_edge::{Complex, Format, Input, Runtime, Sampling};

    use super::super::device;
    use super::super::network::PlainLayer;
    use super::*;

    fn numbers(seed: usize, count: usize, size: f32) -> Vec<f32> {
        let number = |i: usize| ((i * 7919 + seed * 104_729) % 1009) as f32 / 504.5 - 1.0;
        (0..count).map(|i| size * number(i)).collect()
    }

    fn gaussian(stream: usize, count: usize, rank: usize, size: f32) -> WrittenGaussian {
        WrittenGaussian {
            mean: numbers(stream, count, size),
            factor: numbers(stream + 50, count * rank, 0.2 * size),
            deviation: numbers(stream + 90, count, 0.3 * size)
                .iter()
                .map(|x| x.abs() + 1e-3)
                .collect(),
            stream: stream as u16,
        }
    }

    /// Images of which only some bins are kept, one layer behind the other, and with sums over many channels.
    #[test]
    fn c_computes_masked_images_as_rust_does() {
        if Command::new("gcc").arg("--version").output().is_err() {
            eprintln!("no gcc: the C program is not compiled");
            return;
        }
        for (grid, cutoff, channels, rank) in [
            ([5, 6], 0.6, vec![2, 2, 1], 1),
            ([4, 7], 0.45, vec![1, 3], 2),
            ([6, 5], 0.7, vec![5, 1], 1),
            ([4, 4], 0.0, vec![1, 1], 1),
        ] {
            let plane = circulant_core::HalfPlane::with_radius(grid[0], grid[1], cutoff).unwrap();
            let pixels = grid[0] * grid[1];
            let mut layers = Vec::new();
            for (index, pair) in channels.windows(2).enumerate() {
                let count = plane.coordinates() * pair[0] * pair[1];
                layers.push(PlainLayer {
                    map: PlainMap::Bccb {
                        channels: [pair[0], pair[1]],
                        grid,
                        cutoff,
                        sizes: [pair[0] * pixels, pair[1] * pixels],
                    },
                    weights: gaussian(2 * index, count, rank, 1.0),
                    bias: gaussian(2 * index + 1, pair[1], 0, 0.5),
                });
            }
            let inputs = channels[channels.len() - 1] * pixels;
            layers.push(PlainLayer {
                map: PlainMap::Dense { sizes: [inputs, 3] },
                weights: gaussian(20, 3 * inputs, 0, 1.0),
                bias: gaussian(21, 3, 0, 0.5),
            });
            let network = PlainNetwork {
                image: [channels[0], grid[0], grid[1]],
                classes: 3,
                class_names: Vec::new(),
                outcome: Outcome::Classes,
                layers,
                mean: ImageClassifierConfig::new(HiddenKind::Dense)
                    .with_image([1, 1, 2])
                    .init(&circulant::cpu()),
            };
            let normalisation = WrittenNormalisation {
                unit: true,
                ..WrittenNormalisation::default()
            };
            let bytes =
                device::model_without_radii(&network, &normalisation, Format::F32, 4).unwrap();
            let folder = tempfile::tempdir().unwrap();
            c(folder.path(), &network, &bytes).unwrap();
            let program = folder.path().join("network");
            let compiled = Command::new("gcc")
                .args(["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-o"])
                .arg(&program)
                .args(["main.c", "circulant.c"].map(|file| folder.path().join(file)))
                .arg("-lm")
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&compiled.stderr);
            assert!(compiled.status.success(), "{told}");
            let size = channels[0] * pixels;
            let images: Vec<u8> = (0..4 * size).map(|i| (i * 37 % 256) as u8).collect();
            let file = folder.path().join("images.bin");
            fs::write(&file, &images).unwrap();
            let model = Model::read(&bytes).unwrap();
            assert_eq!(model.sums_len() > 0, channels[0] == 5);
            let mut memory = vec![Complex::new(0.0_f32, 0.0); model.memory_len()];
            let mut runtime = Runtime::new(model, &mut memory).unwrap();
            for (weights, draws) in [("0", Draws::Sums), ("1", Draws::Weights)] {
                let output = Command::new(&program)
                    .args(["4", weights])
                    .stdin(fs::File::open(&file).unwrap())
                    .output()
                    .unwrap();
                let text = String::from_utf8(output.stdout).unwrap();
                assert_eq!(text.lines().count(), 4);
                let sampling = Sampling {
                    draws,
                    ..Sampling::new(4)
                };
                for (line, image) in text.lines().zip(images.chunks(size)) {
                    let found: Vec<f32> = line.split(' ').map(|x| x.parse().unwrap()).collect();
                    let prediction = runtime.predict(Input::Bytes(image), &sampling).unwrap();
                    for (found, expected) in found[1..].iter().zip(prediction.probabilities()) {
                        let error = (found - expected).abs();
                        assert!(error < 2e-5, "{grid:?} {cutoff} {weights}: {error}");
                    }
                }
            }
        }
    }
}
