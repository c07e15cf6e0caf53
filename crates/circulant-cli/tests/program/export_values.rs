//! Networks of tables that leave the program: numbers with their deviations, classes of raw columns.

use std::fs;
use std::path::Path;
use std::process::Command;

use circulant_edge::{Complex, Draws, Input, Model, Runtime, Sampling, Task};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{compiled, compiles_at_every_level, json, path, refusal, success, trained};

/// The unit of the target, some 200, times what sums of another order change.
const SAME: f64 = 0.02;

/// `y = 3 x + noise`, beside three levels of text; raw rows as the device gets them: x, then blue, green, red.
fn prices(root: &Path) -> (std::path::PathBuf, Vec<[f32; 4]>) {
    let (mut text, mut rows) = ("x,colour,price\n".to_owned(), Vec::new());
    for row in 0..120 {
        let x = (f64::from(row) * 0.37).sin() * 100.0;
        let noise = (f64::from(row) * 12.9898).sin() * 5.0;
        let level = row as usize % 3;
        let (colour, more) = [("red", 0.0), ("blue", 50.0), ("green", -20.0)][level];
        text.push_str(&format!(
            "{x},{colour},{}\n",
            1000.0 + 3.0 * x + more + noise
        ));
        let mut raw = [x as f32, 0.0, 0.0, 0.0];
        raw[[3, 1, 2][level]] = 1.0;
        rows.push(raw);
    }
    let place = root.join("prices.csv");
    fs::write(&place, text).unwrap();
    (place, rows)
}

/// Mean, deviation and noise of every row.
fn device(bytes: &[u8], rows: &[[f32; 4]], draws: Draws) -> Vec<[f64; 3]> {
    let model = Model::read(bytes).unwrap();
    assert_eq!((model.task(), model.name(0)), (Task::Values, Some("price")));
    let mut memory = vec![Complex::new(0.0_f32, 0.0); model.memory_len()];
    let mut runtime = Runtime::new(model, &mut memory).unwrap();
    let sampling = Sampling {
        draws,
        ..Sampling::new(8)
    };
    let predict = |row: &[f32; 4]| {
        let found = runtime.predict(Input::Floats(row), &sampling).unwrap();
        [found.mean(0), found.deviation(0), found.noise(0)].map(f64::from)
    };
    rows.iter().map(predict).collect()
}

fn near(found: &[f64], expected: &[f64], tolerance: f64) {
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < tolerance, "{found} {expected}");
    }
}

#[test]
fn numbers_leave_with_their_deviations() {
    let root = TempDir::new().unwrap();
    let (data, rows) = prices(root.path());
    let flags = ["--data", path(&data), "--validation", "20", "--steps", "40"];
    let more = ["--model", "block-circulant", "--block", "2", "--width", "6"];
    let run = trained(root.path(), "run", [&flags[..], &more].concat());
    let expected = success([
        "predict",
        path(&run),
        "--data",
        path(&data),
        "--samples",
        "8",
        "--json",
    ]);
    let expected: Vec<[f64; 3]> = expected
        .lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            ["mean", "epistemic", "aleatoric"].map(|name| row[name].as_f64().unwrap())
        })
        .collect();
    let file = root.path().join("model.circ");
    let export = |to: &str, out: &Path, more: &[&str]| {
        let all = [
            "export",
            path(&run),
            "--to",
            to,
            "--out",
            path(out),
            "--json",
        ];
        json([&all[..], more].concat())
    };
    let told = export("edge", &file, &["--quantise", "f32"]);
    assert_eq!(told["images"], 20);
    assert!(
        told["rows"][1]["largest_difference"].as_f64().unwrap() < SAME,
        "{told}"
    );
    assert!(
        told["rows"][1]["largest_of_deviations"].as_f64().unwrap() < SAME,
        "{told}"
    );
    assert!(told["rows"][0]["rmse"].as_f64().is_some());
    let bytes = fs::read(&file).unwrap();
    let found = device(&bytes, &rows, Draws::Weights);
    for (found, expected) in found.iter().zip(&expected) {
        near(&found[..2], &expected[..2], SAME);
        // The noise of eight draws, and that of all.
        assert!(
            (found[2] / expected[2] - 1.0).abs() < 0.2,
            "{found:?} {expected:?}"
        );
    }
    // int8, in Rust and in C.
    export("edge", &file, &["--quantise", "int8"]);
    let bytes = fs::read(&file).unwrap();
    for (found, expected) in device(&bytes, &rows, Draws::Weights).iter().zip(&expected) {
        near(&found[..2], &expected[..2], 10.0);
    }
    if Command::new("gcc").arg("--version").output().is_ok() {
        let folder = root.path().join("c");
        export("c", &folder, &["--quantise", "int8"]);
        for (weights, draws) in [("0", Draws::Sums), ("1", Draws::Weights)] {
            let found = answers(&folder, &rows, weights);
            for (found, expected) in found.iter().zip(device(&bytes, &rows, draws)) {
                near(found, &expected, 1.0);
            }
        }
    }
    // Matrix products take standardised columns.
    let facts = fs::read_to_string(run.join("run.json")).unwrap();
    let facts: Value = serde_json::from_str(&facts).unwrap();
    let number = |name: &str| facts["data"]["table"]["columns"][0][name].as_f64().unwrap();
    let (mean, deviation) = (number("mean"), number("deviation"));
    let standard: Vec<f32> = rows
        .iter()
        .flat_map(|row| {
            let x = (f64::from(row[0]) - mean) / deviation;
            [x as f32, row[1], row[2], row[3]]
        })
        .collect();
    let file = root.path().join("model.onnx");
    export("onnx", &file, &["--samples", "8"]);
    let model = rten::Model::load_file(&file).unwrap();
    let input = rten_tensor::Tensor::from_data(&[rows.len(), 4], standard);
    let ids = ["values", "deviations"].map(|name| model.node_id(name).unwrap());
    let inputs = vec![(model.node_id("x").unwrap(), input.into())];
    let output = model.run(inputs, &ids, None).unwrap();
    for (which, output) in output.into_iter().enumerate() {
        let output: rten_tensor::Tensor<f32> = output.try_into().ok().unwrap();
        let expected: Vec<f64> = expected.iter().map(|row| row[which]).collect();
        let found: Vec<f64> = output.into_data().iter().map(|x| f64::from(*x)).collect();
        assert_eq!(found.len(), rows.len());
        near(&found, &expected, SAME);
    }
    let folder = root.path().join("dense");
    export("dense", &folder, &[]);
    let text = fs::read_to_string(folder.join("network.py")).unwrap();
    assert!(
        text.contains("The target is") && text.contains("standardised"),
        "{text}"
    );
    let page = root.path().join("page.html");
    let html = ["export", path(&run), "--to", "html", "--out", path(&page)];
    refusal(1, html, &["numbers", "--to edge"]);
}

/// What the C program says about rows of floats.
fn answers<const N: usize>(folder: &Path, rows: &[[f32; N]], weights: &str) -> Vec<[f64; 3]> {
    let program = compiled(folder);
    compiles_at_every_level(folder);
    let bytes: Vec<u8> = rows
        .as_flattened()
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let input = folder.join("rows.bin");
    fs::write(&input, bytes).unwrap();
    let output = Command::new(&program)
        .args(["8", weights, "floats"])
        .stdin(fs::File::open(&input).unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), rows.len());
    let numbers = |line: &str| {
        let numbers: Vec<f64> = line.split(' ').map(|x| x.parse().unwrap()).collect();
        <[f64; 3]>::try_from(numbers).unwrap()
    };
    text.lines().map(numbers).collect()
}

/// Mean, deviation over networks and noise of every row of a table, as the program, the device, C and ONNX have them.
fn leaves_as_it_is(root: &Path, run: &Path, data: &Path, rows: &[[f32; 1]], tolerance: f64) {
    let predict = ["predict", path(run), "--data", path(data)];
    let expected = success([&predict[..], &["--samples", "8", "--json"]].concat());
    let expected: Vec<[f64; 3]> = expected
        .lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            ["mean", "epistemic", "aleatoric"].map(|name| row[name].as_f64().unwrap())
        })
        .collect();
    let export = |to: &str, out: &Path, more: &[&str]| {
        let all = ["export", path(run), "--to", to, "--out", path(out)];
        json([&all[..], &["--json"], more].concat())
    };
    let file = root.join("model.circ");
    let told = export("edge", &file, &["--quantise", "f32"]);
    let row = &told["rows"][1];
    for name in ["largest_difference", "largest_of_deviations"] {
        assert!(row[name].as_f64().unwrap() < tolerance, "{told}");
    }
    let device = |draws: Draws| {
        let bytes = fs::read(&file).unwrap();
        let model = Model::read(&bytes).unwrap();
        let mut memory = vec![Complex::new(0.0_f32, 0.0); model.memory_len()];
        let mut runtime = Runtime::new(model, &mut memory).unwrap();
        let sampling = Sampling {
            draws,
            ..Sampling::new(8)
        };
        let predict = |row: &[f32; 1]| {
            let found = runtime.predict(Input::Floats(row), &sampling).unwrap();
            [found.mean(0), found.deviation(0), found.noise(0)].map(f64::from)
        };
        rows.iter().map(predict).collect::<Vec<_>>()
    };
    for (found, expected) in device(Draws::Weights).iter().zip(&expected) {
        near(&found[..2], &expected[..2], tolerance);
        // One number in it is a mean over all networks, not over these eight.
        let ratio = found[2] / expected[2];
        assert!((ratio - 1.0).abs() < 0.2, "{found:?} {expected:?}");
    }
    if Command::new("gcc").arg("--version").output().is_ok() {
        for format in ["f32", "int8"] {
            let folder = root.join(format!("c-{format}"));
            export("c", &folder, &["--quantise", format]);
            export("edge", &file, &["--quantise", format]);
            for (weights, draws) in [("0", Draws::Sums), ("1", Draws::Weights)] {
                let found = answers(&folder, rows, weights);
                for (found, expected) in found.iter().zip(device(draws)) {
                    near(
                        found,
                        &expected,
                        if format == "f32" {
                            tolerance
                        } else {
                            50.0 * tolerance
                        },
                    );
                }
            }
        }
        export("edge", &file, &["--quantise", "f32"]);
    }
    let facts = fs::read_to_string(run.join("run.json")).unwrap();
    let facts: Value = serde_json::from_str(&facts).unwrap();
    let number = |name: &str| facts["data"]["table"]["columns"][0][name].as_f64().unwrap();
    let (mean, deviation) = (number("mean"), number("deviation"));
    let standard = |row: &[f32; 1]| ((f64::from(row[0]) - mean) / deviation) as f32;
    let standard: Vec<f32> = rows.iter().map(standard).collect();
    let place = root.join("model.onnx");
    for samples in ["8", "1"] {
        export("onnx", &place, &["--samples", samples]);
        let model = rten::Model::load_file(&place).unwrap();
        let input = rten_tensor::Tensor::from_data(&[rows.len(), 1], standard.clone());
        let noisy = model.node_id("noises").is_ok();
        let mut names = vec!["values"];
        if samples == "8" {
            names.push("deviations");
        }
        if noisy {
            names.push("noises");
        }
        let ids: Vec<_> = names
            .iter()
            .map(|name| model.node_id(name).unwrap())
            .collect();
        let inputs = vec![(model.node_id("x").unwrap(), input.into())];
        let output = model.run(inputs, &ids, None).unwrap();
        let output: Vec<Vec<f64>> = output
            .into_iter()
            .map(|output| {
                let output: rten_tensor::Tensor<f32> = output.try_into().ok().unwrap();
                output.into_data().iter().map(|x| f64::from(*x)).collect()
            })
            .collect();
        assert_eq!(output[0].len(), rows.len());
        if samples == "1" {
            continue;
        }
        for part in 0..2 {
            let expected: Vec<f64> = expected.iter().map(|row| row[part]).collect();
            near(&output[part], &expected, tolerance);
        }
        if noisy {
            let device: Vec<f64> = device(Draws::Weights).iter().map(|row| row[2]).collect();
            near(&output[2], &device, tolerance);
        }
    }
}

/// `y = 3 x + noise`, noise that grows with `x`, as `--model auto` may choose it.
#[test]
fn noise_that_depends_on_the_row_leaves_with_the_network() {
    let root = TempDir::new().unwrap();
    let xs: Vec<f64> = (0..150).map(|row| f64::from(row) / 150.0).collect();
    let line = |(row, x): (usize, &f64)| {
        let noise = (row as f64 * 12.9898).sin() * 20.0 * x;
        format!("{x},{}\n", 100.0 + 30.0 * x + noise)
    };
    let lines: String = xs.iter().enumerate().map(line).collect();
    let data = root.path().join("spread.csv");
    fs::write(&data, format!("x,y\n{lines}")).unwrap();
    let settings = root.path().join("settings.toml");
    fs::write(
        &settings,
        "[model]\nlift = 6\n[posterior]\nnoise_per_input = true\n",
    )
    .unwrap();
    let flags = ["--config", path(&settings), "--data", path(&data)];
    let more = ["--validation", "30", "--steps", "300"];
    let model = ["--model", "block-circulant", "--block", "4", "--width", "5"];
    let run = trained(root.path(), "run", [&flags[..], &more, &model].concat());
    let rows: Vec<[f32; 1]> = xs.iter().map(|x| [*x as f32]).collect();
    leaves_as_it_is(root.path(), &run, &data, &rows, 2e-3);
    let folder = root.path().join("dense");
    let export = [
        "export",
        path(&run),
        "--to",
        "dense",
        "--out",
        path(&folder),
    ];
    success(export);
    let text = fs::read_to_string(folder.join("network.py")).unwrap();
    assert!(text.contains("second output"), "{text}");
}

#[test]
fn counts_leave_with_their_rates() {
    let root = TempDir::new().unwrap();
    let xs: Vec<f64> = (0..60).map(|row| f64::from(row % 7) * 1.5).collect();
    let line = |(row, x): (usize, &f64)| format!("{x},{}\n", row % 5 + *x as usize);
    let lines: String = xs.iter().enumerate().map(line).collect();
    let data = root.path().join("counts.csv");
    fs::write(&data, format!("x,visits\n{lines}")).unwrap();
    let flags = ["--data", path(&data), "--task", "counts", "--steps", "50"];
    let more = ["--model", "dense", "--width", "3", "--validation", "10"];
    let run = trained(root.path(), "run", [&flags[..], &more].concat());
    let rows: Vec<[f32; 1]> = xs.iter().map(|x| [*x as f32]).collect();
    leaves_as_it_is(root.path(), &run, &data, &rows, 1e-3);
    let page = root.path().join("page.html");
    let html = ["export", path(&run), "--to", "html", "--out", path(&page)];
    refusal(1, html, &["numbers", "--to edge"]);
}

/// Classes of a table: the device takes the columns as they are.
#[test]
fn tables_of_classes_leave_with_their_normalisation() {
    let root = TempDir::new().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/wine.csv");
    let flags = ["--data", path(&data), "--validation", "60", "--steps", "30"];
    let more = ["--model", "spectral-circulant"];
    let run = trained(root.path(), "run", [&flags[..], &more].concat());
    let file = root.path().join("model.circ");
    let export = ["export", path(&run), "--to", "edge", "--out", path(&file)];
    let told = json(
        [
            &export[..],
            &["--quantise", "f32", "--data", path(&data), "--json"],
        ]
        .concat(),
    );
    let rows = told["rows"].as_array().unwrap();
    assert!(
        rows[1]["largest_difference"].as_f64().unwrap() < 1e-4,
        "{told}"
    );
    // A row of the file as it stands there.
    let text = fs::read_to_string(&data).unwrap();
    let header: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let class = header.iter().position(|name| *name == "class").unwrap();
    let cells: Vec<&str> = text.lines().nth(1).unwrap().split(',').collect();
    let columns = cells
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != class);
    let row: Vec<f32> = columns.map(|(_, cell)| cell.parse().unwrap()).collect();
    let bytes = fs::read(&file).unwrap();
    let model = Model::read(&bytes).unwrap();
    let mut memory = vec![Complex::new(0.0_f32, 0.0); model.memory_len()];
    let mut runtime = Runtime::new(model, &mut memory).unwrap();
    let sampling = Sampling {
        draws: Draws::Weights,
        ..Sampling::new(8)
    };
    let found = runtime.predict(Input::Floats(&row), &sampling).unwrap();
    let expected = success([
        "predict",
        path(&run),
        "--data",
        path(&data),
        "--samples",
        "8",
        "--json",
    ]);
    let expected: Value = serde_json::from_str(expected.lines().next().unwrap()).unwrap();
    for (k, found) in found.probabilities().enumerate() {
        let expected = expected["probabilities"][k].as_f64().unwrap();
        assert!(
            (f64::from(found) - expected).abs() < 1e-4,
            "{k}: {found} {expected}"
        );
    }
}
