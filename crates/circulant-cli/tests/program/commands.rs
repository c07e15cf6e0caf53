//! Train, predict, certify, inspect: what a user does on the first day, on drawn digits.

use std::fs;

use crate::support::{circulant, contents, json, npy, path, refusal, stderr, success, trained};
use serde_json::Value;
use tempfile::TempDir;

fn numbers(value: &Value) -> Vec<f64> {
    let array = value.as_array().expect("an array");
    array
        .iter()
        .map(|v| v.as_f64().expect("a number"))
        .collect()
}

#[test]
fn a_run_is_predicted_certified_and_inspected() {
    let root = TempDir::new().unwrap();
    let run = trained(root.path(), "run", &[]);
    let run = path(&run);
    predictions(root.path(), run);
    certificates(root.path(), run);
    inspection(root.path(), run);
}

fn predictions(root: &std::path::Path, run: &str) {
    let arguments = [
        "predict",
        run,
        "--data",
        "glyphs",
        "--first",
        "30",
        "--samples",
        "5",
    ];
    let csv = success(&arguments);
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(header[..4], ["index", "class", "name", "probability_0"]);
    assert_eq!(
        header[12..],
        [
            "probability_9",
            "predictive_entropy",
            "expected_entropy",
            "mutual_information"
        ]
    );
    assert_eq!(lines.count(), 30);

    let with = |more: &[&str]| success(&[&arguments[..], more].concat());
    let rows: Vec<Value> = with(&["--json"])
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(rows.len(), 30);
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(row["index"], index);
        let probabilities = numbers(&row["probabilities"]);
        assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-4);
        let class = row["class"].as_u64().unwrap() as usize;
        assert!(probabilities.iter().all(|&p| p <= probabilities[class]));
        assert_eq!(row["name"], class.to_string());
        let [predictive, expected, information] = [
            "predictive_entropy",
            "expected_entropy",
            "mutual_information",
        ]
        .map(|key| row[key].as_f64().unwrap());
        assert!((predictive - expected - information).abs() < 1e-4);
    }

    // The four files say the same.
    let file = |name: &str| {
        let place = root.join(name);
        assert_eq!(with(&["--out", path(&place)]), "");
        fs::read(place).unwrap()
    };
    assert_eq!(file("p.csv"), csv.as_bytes());
    let array: Value = serde_json::from_slice(&file("p.json")).expect("JSON");
    assert_eq!(array.as_array().unwrap(), &rows);
    assert_eq!(
        String::from_utf8(file("p.jsonl")).unwrap(),
        with(&["--json"])
    );
    let bytes = file("p.npy");
    assert_eq!(bytes.len(), 128 + 30 * 13 * 4);
    let first = f32::from_le_bytes(bytes[128..132].try_into().unwrap());
    assert_eq!(first, numbers(&rows[0]["probabilities"])[0] as f32);
    // Also for other readers of the format.
    let info = json(&["data", "info", path(&root.join("p.npy")), "--json"]);
    assert_eq!(info["shape"], serde_json::json!([30, 13]));

    // Another seed draws other networks; the same one the same.
    assert_ne!(with(&["--seed", "1"]), csv);
    assert_eq!(with(&["--seed", "0"]), csv);
}

fn certificates(root: &std::path::Path, run: &str) {
    let out = root.join("radii.csv");
    let arguments = [
        "certify",
        run,
        "--data",
        "glyphs",
        "--first",
        "40",
        "--samples",
        "3",
    ];
    let with = |more: &[&'static str]| [&arguments[..], more].concat();
    let mut all = with(&["--json", "--radii", "0,0.01,1000", "--out"]);
    all.push(path(&out));
    let summary = json(&all);
    assert_eq!(summary["inputs"], 40);
    assert_eq!(summary["target"], "label");
    let layers = summary["layers"].as_array().unwrap();
    let names: Vec<&str> = layers.iter().map(|l| l["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["hidden", "output"]);
    let mut product = 1.0;
    for layer in layers {
        let [lower, upper] = ["lower", "upper"].map(|key| layer[key].as_f64().unwrap());
        assert!(lower > 0.0 && lower <= upper);
        assert!(layer["posterior"]["q05"].as_f64() <= layer["posterior"]["q95"].as_f64());
        product *= upper;
    }
    // sqrt(2 log(2*393/0.05)), as in the paper.
    let prior = layers[0]["prior"].as_f64().unwrap();
    assert!((prior - (2.0 * (786.0_f64 / 0.05).ln()).sqrt()).abs() < 1e-9);
    assert_eq!(layers[1]["prior"], Value::Null);
    assert!((summary["lipschitz"].as_f64().unwrap() / product - 1.0).abs() < 1e-9);
    let medians = ["paper", "sqrt_two", "last_layer"]
        .map(|name| summary["radii"][name]["median"].as_f64().unwrap());
    assert!(
        medians[0] <= medians[1] && medians[1] <= medians[2],
        "{medians:?}"
    );
    let certified = summary["certified"].as_array().unwrap();
    assert!(certified[0]["paper"].as_f64() <= summary["accuracy"].as_f64());
    assert!(certified[1]["paper"].as_f64() <= certified[1]["last_layer"].as_f64());
    assert_eq!(certified[2]["last_layer"], 0.0);
    assert_eq!(summary["posterior"]["samples"], 3);

    let csv = fs::read_to_string(&out).unwrap();
    assert!(
        csv.starts_with("index,class,label,margin,certified_margin,paper,sqrt_two,last_layer\n")
    );
    assert_eq!(csv.lines().count(), 41);
    let right = csv.lines().skip(1).filter(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        fields[1] == fields[2]
    });
    assert_eq!(
        summary["accuracy"].as_f64().unwrap(),
        right.count() as f64 / 40.0
    );

    let text = success(&with(&[]));
    for part in [
        "paper",
        "sqrt(2)",
        "last layer",
        "Lipschitz bound",
        "right and certified at 0.01",
    ] {
        assert!(text.contains(part), "{text}");
    }
    // Other classes have no labels that fit; their predicted ones can be certified.
    let mut other = with(&["--predicted", "--json"]);
    other[3] = "shapes";
    let summary = json(&other);
    assert_eq!(
        (&summary["target"], &summary["accuracy"]),
        (&"predicted".into(), &Value::Null)
    );
}

fn inspection(root: &std::path::Path, run: &str) {
    let numbers = json(&["inspect", run, "--json"]);
    assert_eq!(numbers["model"], "spectral-circulant");
    assert_eq!(
        (&numbers["weights"], &numbers["biases"]),
        (&8_624.into(), &11.into())
    );
    assert_eq!(numbers["steps"], 20);
    let layer = &numbers["layers"][0];
    assert_eq!(layer["singular_count"], 784);
    assert!(layer["singular_values"]["q95"].as_f64() <= layer["upper"].as_f64());
    let page = fs::read_to_string(root.join("run/inspect.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(page.contains("prior, 5 to 95 %") && page.contains("posterior mean"));
    assert!(!page.contains("<script") && !page.contains("http://cdn"));
    let other = root.join("other.html");
    let checkpoint = root.join("run/checkpoint.safetensors");
    let text = success(&["inspect", path(&checkpoint), "--out", path(&other)]);
    assert!(text.ends_with(&format!("{}\n", other.display())), "{text}");
    assert_eq!(fs::read_to_string(other).unwrap(), page);
}

/// Every kind of model, with what only some of them have.
#[test]
fn all_models_are_inspected_and_certified() {
    let root = TempDir::new().unwrap();
    // Small images keep the dense matrices small.
    let images: Vec<f32> = (0..40 * 36)
        .map(|i| ((i * 37 % 101) as f32) / 101.0)
        .collect();
    let data = root.path().join("images.npy");
    npy(&data, &[40, 1, 6, 6], &images);
    let labels: Vec<f32> = (0..40).map(|i| (i % 3) as f32).collect();
    npy(&root.path().join("labels.npy"), &[40], &labels);
    for (model, more) in [
        (
            "spectral-bccb",
            &["--channels", "2", "--depth", "2", "--standardise"][..],
        ),
        ("spectral-circulant", &["--slope", "learned", "--rank", "3"]),
        ("bccb", &["--norm-limit", "1.5"]),
        ("circulant", &["--inference", "point"]),
        ("conv2d", &[]),
        ("dense", &["--validation", "10"]),
    ] {
        let flags = [
            "--data",
            path(&data),
            "--steps",
            "6",
            "--batch",
            "8",
            "--model",
            model,
        ];
        let run = trained(root.path(), model, &[&flags[..], more].concat());
        let numbers = json(&["inspect", path(&run), "--json"]);
        let layers = numbers["layers"].as_array().unwrap();
        assert_eq!(layers.len(), if model == "spectral-bccb" { 3 } else { 2 });
        let summary = json(&[
            "certify",
            path(&run),
            "--data",
            path(&data),
            "--samples",
            "2",
            "--json",
        ]);
        assert_eq!(summary["inputs"], 40);
        assert_eq!(summary["posterior"].is_null(), model == "circulant");
        for (layer, inspected) in summary["layers"].as_array().unwrap().iter().zip(layers) {
            assert_eq!(layer["upper"], inspected["upper"], "{model}");
            assert_eq!(
                layer["prior"].is_null(),
                !(model.starts_with("spectral") && layer["name"] != "output")
            );
            if model == "bccb" {
                assert!(layer["upper"].as_f64() <= Some(1.5 + 1e-6), "{layer}");
            }
        }
        let rows = success(&["predict", path(&run), "--data", path(&data), "--json"]);
        assert_eq!(rows.lines().count(), 40);
    }
}

/// Tables: with the labels in a column, and without them.
#[test]
fn tables_are_predicted_with_and_without_labels() {
    let root = TempDir::new().unwrap();
    let table = |name: &str, classes: &[&str], labelled: bool| {
        let mut text = String::from(if labelled { "u,v,w,kind\n" } else { "u,v,w\n" });
        for index in 0..30 {
            let kind = classes[index % classes.len()];
            let shift = (index % 7) as f32 * 0.01;
            let numbers = ["a", "bbb", "ccccc"].map(|other| {
                let sign = if other == kind { 1.0 } else { -1.0 };
                (sign + shift).to_string()
            });
            text.push_str(&numbers.join(","));
            if labelled {
                text.push_str(&format!(",{kind}"));
            }
            text.push('\n');
        }
        let place = root.path().join(name);
        fs::write(&place, text).unwrap();
        place
    };
    let all = table("all.csv", &["a", "bbb", "ccccc"], true);
    let part = table("part.csv", &["ccccc", "a"], true);
    let plain = table("plain.csv", &["a"], false);
    let flags = [
        "--data",
        path(&all),
        "--label-name",
        "kind",
        "--model",
        "dense",
        "--inference",
        "point",
    ];
    let quick = ["--steps", "200", "--batch", "30", "--learning-rate", "0.05"];
    let run = trained(root.path(), "run", &[&flags[..], &quick].concat());
    let names = |data: &std::path::Path| -> Vec<String> {
        let rows = success(&["predict", path(&run), "--data", path(data), "--json"]);
        rows.lines()
            .map(|line| {
                serde_json::from_str::<Value>(line).unwrap()["name"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    };
    assert_eq!(names(&all)[..3], ["a", "bbb", "ccccc"]);
    assert_eq!(names(&plain), ["a"; 30]);
    // Classes are found by name, though this table knows two of three only.
    let summary = json(&["certify", path(&run), "--data", path(&part), "--json"]);
    assert_eq!(summary["accuracy"], 1.0);
    let summary = json(&["certify", path(&run), "--data", path(&plain), "--json"]);
    assert_eq!(summary["target"], "predicted");
}

#[test]
fn results_of_train_are_json_too() {
    let root = TempDir::new().unwrap();
    let out = root.path().join("run");
    let summary = json(
        &[
            &[
                "train",
                "--out",
                path(&out),
                "--validation",
                "100",
                "--json",
            ][..],
            &crate::support::QUICK,
        ]
        .concat(),
    );
    assert_eq!(summary["steps"], 20);
    assert_eq!(summary["stopped"], "finished");
    assert_eq!(summary["validation"]["inputs"], 100);
    let metrics: Value =
        serde_json::from_slice(&fs::read(out.join("metrics.json")).unwrap()).unwrap();
    assert_eq!(metrics["accuracy"], summary["validation"]["accuracy"]);
    assert_eq!(metrics["inputs"], 100);
    let names: Vec<String> = contents(&out)
        .iter()
        .map(|(path, _)| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(
        names,
        [
            "checkpoint.safetensors",
            "config.toml",
            "metrics.json",
            "run.json",
            "steps.jsonl"
        ]
    );
    // The settings of one run make another.
    let again = root.path().join("again");
    let config = out.join("config.toml");
    let output = circulant(&["train", "--config", path(&config), "--out", path(&again)]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(
        fs::read(again.join("config.toml")).unwrap(),
        fs::read(config).unwrap()
    );
    let checkpoint = |run: &std::path::Path| fs::read(run.join("checkpoint.safetensors")).unwrap();
    assert!(
        checkpoint(&again) == checkpoint(&out),
        "the same settings give the same bytes"
    );
}

#[test]
fn heads_are_models_of_one_row() {
    let root = TempDir::new().unwrap();
    let table = root.path().join("features.csv");
    let row = |i: usize| {
        let numbers: Vec<String> = (0..9)
            .map(|j| (((i * 31 + j * 17) % 23) as f64 / 11.0 - 1.0).to_string())
            .collect();
        format!("{},{}\n", numbers.join(","), i % 3)
    };
    let head: String = (0..9).map(|j| format!("x{j},")).collect();
    fs::write(
        &table,
        format!("{head}label\n{}", (0..40).map(row).collect::<String>()),
    )
    .unwrap();
    for (name, flags, weights) in [
        // 2K - 1 coordinates, and 9 x 3 of the read-out.
        (
            "lowest",
            &["--model", "spectral-circulant", "--modes", "3"][..],
            5 + 27,
        ),
        ("narrow", &["--model", "dense", "--width", "4"], 36 + 12),
        (
            "deep",
            &["--model", "dense", "--width", "4", "--depth", "2"],
            36 + 16 + 12,
        ),
    ] {
        let mut flags = flags.to_vec();
        flags.extend([
            "--data",
            path(&table),
            "--steps",
            "5",
            "--batch",
            "10",
            "--rank",
            "2",
        ]);
        let run = trained(root.path(), name, &flags);
        let facts: Value =
            serde_json::from_str(&fs::read_to_string(run.join("run.json")).unwrap()).unwrap();
        assert_eq!(facts["weights"], weights, "{name}");
        let settings = fs::read_to_string(run.join("config.toml")).unwrap();
        assert_eq!(settings.contains("modes = 3"), name == "lowest");
        for command in ["predict", "certify"] {
            success(&[
                command,
                path(&run),
                "--data",
                path(&table),
                "--samples",
                "2",
            ]);
        }
        success(&["inspect", path(&run)]);
        success(&["train", "--resume", path(&run), "--steps", "7"]);
    }
    for (flags, part) in [
        (["--model", "spectral-circulant", "--modes", "6"], "6"),
        (["--model", "spectral-circulant", "--modes", "0"], "0"),
        (
            ["--model", "circulant", "--modes", "2"],
            "spectral circulant",
        ),
        (["--model", "circulant", "--width", "2"], "dense"),
        (["--model", "dense", "--width", "0"], "width"),
    ] {
        let out = root.path().join("refused");
        let mut arguments = vec!["train", "--data", path(&table), "--out", path(&out)];
        arguments.extend(flags);
        refusal(1, &arguments, &[part]);
        assert!(!out.exists());
    }
}
