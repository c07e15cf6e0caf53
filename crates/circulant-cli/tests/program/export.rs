//! Networks that leave the program, and what becomes of them elsewhere.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{
    compiled, compiles_at_every_level, json, npy, path, refusal, small, success, trained,
};
use circulant_edge::{Complex, Draws, Input, Model, Runtime, Sampling};
use serde_json::Value;
use tempfile::TempDir;

/// Two f32 forward passes whose sums have another order.
const SAME: f64 = 1e-5;
/// What one byte per weight does to the probabilities of these small networks.
const INT8: f64 = 0.05;

/// The rows of the comparison of an exported file.
fn rows(run: &Path, data: &Path, out: &Path, more: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["export", path(run), "--to", "edge", "--out", path(out)];
    arguments.extend(["--data", path(data), "--json"]);
    arguments.extend(more);
    json(&arguments)["rows"].as_array().expect("rows").clone()
}

fn difference(row: &Value) -> f64 {
    row["largest_difference"].as_f64().expect("a number")
}

#[test]
fn the_device_predicts_what_the_program_predicts() {
    let root = TempDir::new().unwrap();
    let (_, data) = small(root.path());
    let out = root.path().join("model.circ");
    let models: [&[&str]; 10] = [
        // Of many channels: their sums are drawn.
        &[
            "--model",
            "block-circulant",
            "--block",
            "3",
            "--width",
            "3",
            "--rank",
            "1",
        ],
        &[
            "--model",
            "block-circulant",
            "--block",
            "6",
            "--width",
            "12",
        ],
        // Blocks that divide neither 36 pixels nor 7 values, and of many channels.
        &[
            "--model",
            "block-circulant",
            "--block",
            "5",
            "--width",
            "7",
            "--depth",
            "2",
        ],
        &[
            "--model",
            "block-circulant",
            "--block",
            "5",
            "--width",
            "4",
            "--modes",
            "2",
            "--rank",
            "1",
        ],
        &["--model", "spectral-circulant"],
        &[
            "--model",
            "spectral-circulant",
            "--modes",
            "7",
            "--depth",
            "2",
        ],
        &[
            "--model",
            "spectral-bccb",
            "--channels",
            "2",
            "--standardise",
        ],
        &["--model", "spectral-bccb", "--depth", "2"],
        &["--model", "dense", "--width", "5"],
        &["--model", "spectral-circulant", "--inference", "point"],
    ];
    for (number, model) in models.iter().enumerate() {
        let mut flags = vec!["--data", path(&data), "--steps", "3", "--batch", "10"];
        flags.extend(*model);
        let run = trained(root.path(), &format!("run{number}"), &flags);
        let exact = rows(&run, &data, &out, &["--quantise", "f32"]);
        assert!(difference(&exact[1]) < SAME, "{model:?}: {exact:?}");
        assert!(exact[1]["entropy_correlation"].as_f64().unwrap() > 0.999);
        let short = rows(&run, &data, &out, &["--quantise", "int8"]);
        assert!(difference(&short[1]) < INT8, "{model:?}: {short:?}");
        // The file is whole in itself.
        let bytes = fs::read(&out).unwrap();
        assert!(Model::read(&bytes).unwrap().has_radii());
    }
}

#[test]
fn radii_of_the_device_are_those_of_the_certificates_or_less() {
    let root = TempDir::new().unwrap();
    let (run, data) = small(root.path());
    let out = root.path().join("model.circ");
    rows(&run, &data, &out, &["--quantise", "f32"]);
    let csv = root.path().join("radii.csv");
    let predicted = ["certify", path(&run), "--data", path(&data), "--predicted"];
    success([&predicted[..], &["--samples", "0", "--out", path(&csv)]].concat());
    let text = fs::read_to_string(&csv).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = header
        .iter()
        .position(|name| *name == "last_layer")
        .unwrap();
    let bytes = fs::read(&out).unwrap();
    let model = Model::read(&bytes).unwrap();
    let mut memory = vec![Complex::new(0.0_f32, 0.0); model.memory_len()];
    let mut runtime = Runtime::new(model, &mut memory).unwrap();
    let sampling = Sampling {
        radius: true,
        ..Sampling::new(1)
    };
    for (index, line) in lines.enumerate() {
        let image: Vec<f32> = (0..36)
            .map(|i| ((index * 36 + i) % 17) as f32 / 17.0)
            .collect();
        let prediction = runtime.predict(Input::Floats(&image), &sampling).unwrap();
        let (found, certified) = (
            prediction.radius.unwrap(),
            line[column].parse::<f32>().unwrap(),
        );
        assert!(found.radius <= certified * 1.0001 + 1e-6, "{index}");
        assert!(
            found.radius >= 0.9 * certified - 1e-2,
            "{index}: {found:?} {certified}"
        );
    }
}

#[test]
fn c_computes_what_rust_computes() {
    let root = TempDir::new().unwrap();
    let (_, data) = small(root.path());
    if Command::new("gcc").arg("--version").output().is_err() {
        eprintln!("no gcc: the C program is not compiled");
        return;
    }
    let models: [(&str, &[&str]); 7] = [
        (
            "circulant",
            &["--model", "spectral-circulant", "--depth", "2"],
        ),
        ("bccb", &["--model", "spectral-bccb", "--channels", "2"]),
        ("dense", &["--model", "dense", "--width", "5"]),
        // Of many channels: their sums are drawn.
        (
            "block",
            &[
                "--model",
                "block-circulant",
                "--block",
                "4",
                "--width",
                "4",
                "--rank",
                "2",
            ],
        ),
        // Some of the bins, as the network for a device has them.
        (
            "modes",
            &[
                "--model",
                "block-circulant",
                "--block",
                "6",
                "--width",
                "6",
                "--modes",
                "2",
                "--rank",
                "1",
            ],
        ),
        // Blocks that divide neither 36 pixels nor 7 values.
        (
            "padded",
            &[
                "--model",
                "block-circulant",
                "--block",
                "5",
                "--width",
                "7",
                "--depth",
                "2",
            ],
        ),
        // The same with sums over channels, which are drawn.
        (
            "padded-sums",
            &[
                "--model",
                "block-circulant",
                "--block",
                "5",
                "--width",
                "4",
                "--rank",
                "1",
            ],
        ),
    ];
    for (name, model) in models {
        let mut flags = vec!["--data", path(&data), "--steps", "3", "--batch", "10"];
        flags.extend(model);
        let run = trained(root.path(), name, &flags);
        for format in ["f32", "f16", "int8"] {
            let folder = root.path().join(format!("{name}-{format}"));
            let file = root.path().join(format!("{name}-{format}.circ"));
            for (to, out) in [("c", &folder), ("edge", &file)] {
                let to = [
                    "export",
                    path(&run),
                    "--to",
                    to,
                    "--quantise",
                    format,
                    "--out",
                    path(out),
                ];
                success([&to[..], &["--unchecked"]].concat());
            }
            let program = compiled(&folder);
            if format == "int8" {
                compiles_at_every_level(&folder);
            }
            let images: Vec<u8> = (0..5 * 36).map(|i| (i * 37 % 256) as u8).collect();
            let input = root.path().join("images.bin");
            fs::write(&input, &images).unwrap();
            let bytes = fs::read(&file).unwrap();
            let model = Model::read(&bytes).unwrap();
            let mut memory = vec![Complex::new(0.0_f32, 0.0); model.memory_len()];
            let mut runtime = Runtime::new(model, &mut memory).unwrap();
            for (weights, draws) in [("0", Draws::Sums), ("1", Draws::Weights)] {
                let output = Command::new(&program)
                    .args(["3", weights])
                    .stdin(fs::File::open(&input).unwrap())
                    .output()
                    .unwrap();
                let text = String::from_utf8(output.stdout).unwrap();
                assert_eq!(text.lines().count(), 5);
                let sampling = Sampling {
                    samples: 3,
                    seed: 0,
                    draws,
                    radius: true,
                };
                for (line, image) in text.lines().zip(images.chunks(36)) {
                    let found: Vec<f32> = line.split(' ').map(|x| x.parse().unwrap()).collect();
                    let prediction = runtime.predict(Input::Bytes(image), &sampling).unwrap();
                    // Rust sums int8 products as integers of 2^-14.
                    let tolerance = if format == "int8" { 2e-3 } else { 2e-5 };
                    let expected = prediction.probabilities().chain([
                        prediction.predictive_entropy,
                        prediction.expected_entropy,
                        prediction.radius.unwrap().radius,
                    ]);
                    for (found, expected) in found[1..].iter().zip(expected) {
                        assert!(
                            (found - expected).abs() < tolerance,
                            "{name} {format} {weights}: {line}"
                        );
                    }
                }
            }
        }
    }
}

/// The probabilities that an ONNX file gives, `[inputs, classes]`.
fn onnx(file: &Path, images: &[f32]) -> Vec<f32> {
    let model = rten::Model::load_file(file).unwrap();
    let input = rten_tensor::Tensor::from_data(&[images.len() / 36, 36], images.to_vec());
    let output = model.run_one(input.into(), None).unwrap();
    let output: rten_tensor::Tensor<f32> = output.try_into().unwrap();
    output.into_data()
}

#[test]
fn onnx_gives_what_the_program_predicts() {
    let root = TempDir::new().unwrap();
    let (_, data) = small(root.path());
    let images: Vec<f32> = (0..30 * 36).map(|i| (i % 17) as f32 / 17.0).collect();
    for (name, model) in [
        (
            "circulant",
            ["--model", "spectral-circulant", "--depth", "2"],
        ),
        ("bccb", ["--model", "spectral-bccb", "--channels", "2"]),
        ("dense", ["--model", "dense", "--width", "5"]),
    ] {
        let mut flags = vec!["--data", path(&data), "--steps", "3", "--batch", "10"];
        flags.extend(model);
        let run = trained(root.path(), name, &flags);
        let file = root.path().join(format!("{name}.onnx"));
        let export = ["export", path(&run), "--to", "onnx", "--out", path(&file)];
        success([&export[..], &["--samples", "4"]].concat());
        let predict = [
            "predict",
            path(&run),
            "--data",
            path(&data),
            "--samples",
            "4",
            "--json",
        ];
        let expected = success(predict);
        let expected = expected.lines().flat_map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            let probabilities = row["probabilities"].as_array().unwrap().clone();
            probabilities.into_iter().map(|p| p.as_f64().unwrap())
        });
        let found = onnx(&file, &images);
        assert_eq!(found.len(), 30 * 3);
        for (found, expected) in found.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < SAME, "{name}");
        }
        // The posterior's mean, and the same as dense layers: the first logits differ by the products alone.
        success(export);
        let mean = onnx(&file, &images);
        let folder = root.path().join(format!("{name}-dense"));
        success([
            "export",
            path(&run),
            "--to",
            "dense",
            "--out",
            path(&folder),
        ]);
        let bytes = fs::read(folder.join("network.safetensors")).unwrap();
        let (found, expected) = (dense_probabilities(&bytes, &images[..36]), &mean[..3]);
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - f64::from(*expected)).abs() < SAME, "{name}");
        }
    }
}

/// Runs of `--certified` leave as convolutions; the device does not know them.
#[test]
fn orthogonal_networks_leave_as_convolutions() {
    let root = TempDir::new().unwrap();
    let data = root.path().join("images.npy");
    let images: Vec<f32> = (0..4 * 784).map(|i| (i * 7 % 17) as f32 / 17.0).collect();
    npy(&data, &[4, 1, 28, 28], &images);
    for (name, more) in [("plain", &[][..]), ("hidden", &["--hidden-sizes", "12,6"])] {
        let run = root.path().join(name);
        let train = [
            "train",
            "--certified",
            "0.1",
            "--data",
            "glyphs",
            "--first",
            "60",
        ];
        let size = [
            "--batch",
            "20",
            "--widths",
            "4,4",
            "--stage-depth",
            "2",
            "--epochs",
            "1",
        ];
        success([&train[..], &size, more, &["--out", path(&run)]].concat());
        let rows = success(["predict", path(&run), "--data", path(&data), "--json"]);
        let rows = rows.lines().map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            let row = row["probabilities"].as_array().unwrap().clone();
            row.iter()
                .map(|p| p.as_f64().unwrap())
                .collect::<Vec<f64>>()
        });
        let expected: Vec<f64> = rows.flatten().collect();
        let file = root.path().join("model.onnx");
        for samples in ["1", "2"] {
            let onnx = ["export", path(&run), "--to", "onnx", "--samples", samples];
            success([&onnx[..], &["--out", path(&file)]].concat());
            let model = rten::Model::load_file(&file).unwrap();
            let input = rten_tensor::Tensor::from_data(&[4, 784], images.clone());
            let output = model.run_one(input.into(), None).unwrap();
            let output: rten_tensor::Tensor<f32> = output.try_into().unwrap();
            let found = output.into_data();
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    (f64::from(*found) - expected).abs() < SAME,
                    "{name} {samples}"
                );
            }
        }
        let folder = root.path().join("dense");
        success([
            "export",
            path(&run),
            "--to",
            "dense",
            "--out",
            path(&folder),
        ]);
        let text = fs::read_to_string(folder.join("network.py")).unwrap();
        assert!(
            text.contains("PixelUnshuffle(2)") && text.contains("MaxMin()"),
            "{text}"
        );
        for to in ["edge", "c", "rust", "html"] {
            let export = ["export", path(&run), "--to", to, "--out", path(&file)];
            refusal(1, export, &["--certified", "--to onnx", "--to dense"]);
        }
    }
}

/// A forward pass of the dense layers in a safetensors file, in f64.
fn dense_probabilities(bytes: &[u8], image: &[f32]) -> Vec<f64> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let tensor = |name: String| {
        let entry = header.get(&name)?;
        let [from, to] = [0, 1].map(|i| entry["data_offsets"][i].as_u64().unwrap() as usize);
        let data = bytes[8 + length..][from..to].chunks_exact(4);
        Some(
            data.map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap())))
                .collect::<Vec<_>>(),
        )
    };
    let mut x: Vec<f64> = image.iter().map(|&x| f64::from(x)).collect();
    for layer in (0..).step_by(2) {
        let (Some(weight), Some(bias)) = (
            tensor(format!("{layer}.weight")),
            tensor(format!("{layer}.bias")),
        ) else {
            break;
        };
        if layer > 0 {
            x.iter_mut().for_each(|x| *x = x.tanh());
        }
        let rows = weight.chunks_exact(x.len()).zip(&bias);
        x = rows
            .map(|(row, bias)| row.iter().zip(&x).map(|(w, x)| w * x).sum::<f64>() + bias)
            .collect();
    }
    let highest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = x.iter().map(|z| (z - highest).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| w / total).collect()
}

#[test]
fn pages_and_crates_hold_the_model() {
    let root = TempDir::new().unwrap();
    let run = trained(root.path(), "run", ["--model", "spectral-circulant"]);
    let (page, folder) = (root.path().join("page.html"), root.path().join("crate"));
    let html = [
        "export",
        path(&run),
        "--to",
        "html",
        "--data",
        "glyphs",
        "--first",
        "50",
        "--out",
        path(&page),
    ];
    success(html);
    let text = fs::read_to_string(&page).unwrap();
    assert!(
        !text.contains("{{") && text.len() < 300_000,
        "{}",
        text.len()
    );
    // Nothing is loaded from anywhere.
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!text.contains(outside), "{outside}");
    }
    success([
        "export",
        path(&run),
        "--to",
        "rust",
        "--unchecked",
        "--out",
        path(&folder),
    ]);
    let library = fs::read_to_string(folder.join("src/lib.rs")).unwrap();
    let bytes = fs::read(folder.join("src/model.circ")).unwrap();
    let memory = Model::read(&bytes).unwrap().memory_len();
    assert!(library.contains(&format!("MEMORY: usize = {memory};")));
}

#[test]
fn what_cannot_be_exported_is_named() {
    let root = TempDir::new().unwrap();
    let (_, data) = small(root.path());
    let flags = [
        "--data",
        path(&data),
        "--steps",
        "2",
        "--batch",
        "10",
        "--model",
        "conv2d",
    ];
    let run = trained(root.path(), "conv", flags);
    let out = root.path().join("model.circ");
    let export = ["export", path(&run), "--to", "edge", "--out", path(&out)];
    refusal(1, export, &["hidden", "Convolution", "spectral circulant"]);
    let (run, _) = (
        trained(
            root.path(),
            "dense",
            [&flags[..6], &["--model", "dense"]].concat(),
        ),
        (),
    );
    let dense = ["export", path(&run), "--to", "dense", "--out", path(&out)];
    refusal(
        1,
        [&dense[..], &["--quantise", "int8"]].concat(),
        &["--quantise"],
    );
    refusal(
        1,
        [&dense[..], &["--samples", "4"]].concat(),
        &["--samples", "onnx"],
    );
}
