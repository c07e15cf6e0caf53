//! Train, predict, certify, inspect: what a user does on the first day, on drawn digits.

use std::fs;

use crate::support::{
    Place, QUICK, contents, json, json_file, npy, refusal, success, trained, words,
};
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    let array = value.as_array().expect("an array");
    array
        .iter()
        .map(|v| v.as_f64().expect("a number"))
        .collect()
}

#[test]
fn a_run_is_predicted_certified_and_inspected() {
    let root = Place::temporary();
    let run = trained(&root, "run", "");
    predictions(&root, &run);
    certificates(&root, &run);
    inspection(&root, &run);
}

fn predictions(root: &Place, run: &Place) {
    let with = |more: &str| {
        success(format!(
            "predict {run} --data glyphs --first 30 --samples 5 {more}"
        ))
    };
    let csv = with("");
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(header[..4], ["index", "class", "name", "probability_0"]);
    const UNCERTAINTIES: [&str; 3] = [
        "predictive_entropy",
        "expected_entropy",
        "mutual_information",
    ];
    assert_eq!(header[12], "probability_9");
    assert_eq!(header[13..], UNCERTAINTIES);
    assert_eq!(lines.count(), 30);

    let rows: Vec<Value> = with("--json")
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
        let [predictive, expected, information] =
            UNCERTAINTIES.map(|key| row[key].as_f64().unwrap());
        assert!((predictive - expected - information).abs() < 1e-4);
    }

    // The four files say the same.
    let file = |name: &str| {
        let place = root.at(name);
        assert_eq!(with(&format!("--out {place}")), "");
        fs::read(place).unwrap()
    };
    assert_eq!(file("p.csv"), csv.as_bytes());
    let array: Value = serde_json::from_slice(&file("p.json")).expect("JSON");
    assert_eq!(array.as_array().unwrap(), &rows);
    assert_eq!(file("p.jsonl"), with("--json").as_bytes());
    let bytes = file("p.npy");
    assert_eq!(bytes.len(), 128 + 30 * 13 * 4);
    let first = f32::from_le_bytes(bytes[128..132].try_into().unwrap());
    assert_eq!(first, numbers(&rows[0]["probabilities"])[0] as f32);
    // Also for other readers of the format.
    let info = json(format!("data info {} --json", root.at("p.npy")));
    assert_eq!(info["shape"], serde_json::json!([30, 13]));

    // Another seed draws other networks; the same one the same.
    assert_ne!(with("--seed 1"), csv);
    assert_eq!(with("--seed 0"), csv);
}

fn certificates(root: &Place, run: &Place) {
    let out = root.at("radii.csv");
    let with = |data: &str, more: &str| {
        format!("certify {run} --data {data} --first 40 --samples 3 {more}")
    };
    let summary = json(with(
        "glyphs",
        &format!("--json --radii 0,0.01,1000 --out {out}"),
    ));
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
    assert!(csv.starts_with(
        "index,class,label,margin,certified_margin,paper,sqrt_two,last_layer,\
             average_class,average_difference,average,per_sample\n"
    ));
    assert_eq!(csv.lines().count(), 41);
    let right = csv.lines().skip(1).filter(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        fields[1] == fields[2]
    });
    assert_eq!(
        summary["accuracy"].as_f64().unwrap(),
        right.count() as f64 / 40.0
    );

    let text = success(with("glyphs", ""));
    for part in [
        "paper",
        "last layer",
        "Lipschitz bound",
        "right and certified at 0.01",
    ] {
        assert!(text.contains(part), "{text}");
    }
    // Other classes have no labels that fit; their predicted ones can be certified.
    let summary = json(with("shapes", "--predicted --json"));
    assert_eq!(
        (&summary["target"], &summary["accuracy"]),
        (&"predicted".into(), &Value::Null)
    );
}

fn inspection(root: &Place, run: &Place) {
    let numbers = json(format!("inspect {run} --json"));
    assert_eq!(numbers["model"], "spectral-circulant");
    assert_eq!(
        (&numbers["weights"], &numbers["biases"]),
        (&8_624.into(), &11.into())
    );
    assert_eq!(numbers["steps"], 20);
    let layer = &numbers["layers"][0];
    assert_eq!(layer["singular_count"], 784);
    assert!(layer["singular_values"]["q95"].as_f64() <= layer["upper"].as_f64());
    let page = fs::read_to_string(root.at("run/inspect.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(page.contains("prior, 5 to 95 %") && page.contains("posterior mean"));
    assert!(!page.contains("<script") && !page.contains("http://cdn"));
    let other = root.at("other.html");
    let checkpoint = root.at("run/checkpoint.safetensors");
    let text = success(format!("inspect {checkpoint} --out {other}"));
    assert!(text.ends_with(&format!("{other}\n")), "{text}");
    assert_eq!(fs::read_to_string(other).unwrap(), page);
}

/// Every kind of model, with what only some of them have.
#[test]
fn all_models_are_inspected_and_certified() {
    let root = Place::temporary();
    // Small images keep the dense matrices small.
    let images: Vec<f32> = (0..40 * 36)
        .map(|i| ((i * 37 % 101) as f32) / 101.0)
        .collect();
    let data = root.at("images.npy");
    npy(&data, &[40, 1, 6, 6], &images);
    let labels: Vec<f32> = (0..40).map(|i| (i % 3) as f32).collect();
    npy(&root.at("labels.npy"), &[40], &labels);
    for (model, more) in [
        ("spectral-bccb", "--channels 2 --depth 2 --standardise"),
        ("spectral-circulant", "--slope learned --rank 3"),
        ("bccb", "--norm-limit 1.5"),
        ("circulant", "--inference point"),
        ("conv2d", ""),
        ("dense", "--validation 10"),
    ] {
        let flags = format!("--data {data} --steps 6 --batch 8 --model {model} {more}");
        let run = trained(&root, model, flags);
        let numbers = json(format!("inspect {run} --json"));
        let layers = numbers["layers"].as_array().unwrap();
        assert_eq!(layers.len(), if model == "spectral-bccb" { 3 } else { 2 });
        let summary = json(format!("certify {run} --data {data} --samples 2 --json"));
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
        let rows = success(format!("predict {run} --data {data} --json"));
        assert_eq!(rows.lines().count(), 40);
    }
}

/// Tables: with the labels in a column, and without them.
#[test]
fn tables_are_predicted_with_and_without_labels() {
    let root = Place::temporary();
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
        let place = root.at(name);
        fs::write(&place, text).unwrap();
        place
    };
    let all = table("all.csv", &["a", "bbb", "ccccc"], true);
    let part = table("part.csv", &["ccccc", "a"], true);
    let plain = table("plain.csv", &["a"], false);
    let flags = format!("--data {all} --label-name kind --model dense --inference point");
    let quick = "--steps 200 --batch 30 --learning-rate 0.05";
    let run = trained(&root, "run", format!("{flags} {quick}"));
    let names = |data: &Place| -> Vec<String> {
        let rows = success(format!("predict {run} --data {data} --json"));
        let row = |line| serde_json::from_str::<Value>(line).unwrap();
        let name = |line| row(line)["name"].as_str().unwrap().to_owned();
        rows.lines().map(name).collect()
    };
    assert_eq!(names(&all)[..3], ["a", "bbb", "ccccc"]);
    assert_eq!(names(&plain), ["a"; 30]);
    // Classes are found by name, though this table knows two of three only.
    let summary = json(format!("certify {run} --data {part} --json"));
    assert_eq!(summary["accuracy"], 1.0);
    let summary = json(format!("certify {run} --data {plain} --json"));
    assert_eq!(summary["target"], "predicted");
}

#[test]
fn results_of_train_are_json_too() {
    let root = Place::temporary();
    let out = root.at("run");
    let summary = json(format!("train --out {out} --validation 100 --json {QUICK}"));
    assert_eq!(summary["steps"], 20);
    assert_eq!(summary["stopped"], "finished");
    assert_eq!(summary["validation"]["inputs"], 100);
    let metrics = json_file(out.at("metrics.json"));
    assert_eq!(metrics["accuracy"], summary["validation"]["accuracy"]);
    assert_eq!(metrics["inputs"], 100);
    let names: Vec<String> = contents(&out)
        .iter()
        .map(|(path, _)| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    let expected =
        "checkpoint.safetensors config.toml density.safetensors metrics.json run.json steps.jsonl";
    assert_eq!(names, words(expected));
    // The settings of one run make another.
    let again = root.at("again");
    let config = out.at("config.toml");
    success(format!("train --config {config} --out {again}"));
    assert_eq!(
        fs::read(again.join("config.toml")).unwrap(),
        fs::read(config).unwrap()
    );
    let checkpoint = |run: &Place| fs::read(run.at("checkpoint.safetensors")).unwrap();
    assert!(
        checkpoint(&again) == checkpoint(&out),
        "the same settings give the same bytes"
    );
}

#[test]
fn heads_are_models_of_one_row() {
    let root = Place::temporary();
    let table = root.at("features.csv");
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
        ("lowest", "--model spectral-circulant --modes 3", 5 + 27),
        ("narrow", "--model dense --width 4", 36 + 12),
        ("deep", "--model dense --width 4 --depth 2", 36 + 16 + 12),
    ] {
        let more = format!("--data {table} --steps 5 --batch 10 --rank 2 {flags}");
        let run = trained(&root, name, more);
        let facts = json_file(run.at("run.json"));
        assert_eq!(facts["weights"], weights, "{name}");
        let settings = fs::read_to_string(run.at("config.toml")).unwrap();
        assert_eq!(settings.contains("modes = 3"), name == "lowest");
        for command in ["predict", "certify"] {
            success(format!("{command} {run} --data {table} --samples 2"));
        }
        success(format!("inspect {run}"));
        success(format!("train --resume {run} --steps 7"));
    }
    for (flags, part) in [
        ("spectral-circulant --modes 6", "6"),
        ("spectral-circulant --modes 0", "0"),
        ("circulant --modes 2", "spectral circulant"),
        ("circulant --width 2", "dense"),
        ("dense --width 0", "width"),
    ] {
        let out = root.at("refused");
        refusal(
            1,
            format!("train --data {table} --out {out} --model {flags}"),
            &[part],
        );
        assert!(!out.exists());
    }
}
