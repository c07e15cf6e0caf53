//! `reproduce heads` as a user runs it, with a tiny encoder on small images.

use std::fs;

use crate::support::{Place, json, refusal, success};
use image::{Rgb, RgbImage};
use serde_json::Value;

/// Images of 12 x 12 in three classes, a training and a test part.
fn images(root: &Place) -> Place {
    let folder = root.at("pictures");
    for (part, count) in [("train", 12), ("test", 6)] {
        for class in 0..3_u8 {
            let place = folder.at(part).join(format!("class-{class}"));
            fs::create_dir_all(&place).unwrap();
            for index in 0..count {
                let pixel = |x: u32, y: u32| {
                    Rgb([
                        class * 80 + index,
                        (x * 20) as u8,
                        (y as u8) * 12 + 3 * index,
                    ])
                };
                let image = RgbImage::from_fn(12, 12, pixel);
                image.save(place.join(format!("{index}.png"))).unwrap();
            }
        }
    }
    folder
}

#[test]
fn all_heads_are_trained_and_compared() {
    let root = Place::temporary();
    let (data, out) = (images(&root), root.at("heads"));
    let encoder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../circulant-data/tests/fixtures/encoder.onnx"
    );
    let quick =
        format!("--data {data} --out {out} --seeds 0,3 --steps 12 --samples 3 --corrupted 5");
    let flags = format!("--encoder {encoder} --resize 16x16 --json");
    let results = json(format!("reproduce heads {quick} {flags}"));
    assert_eq!(results["features"], 6);
    assert_eq!(results["inputs"], serde_json::json!([36, 18, 5]));
    let heads = results["heads"].as_array().unwrap();
    let names: Vec<&str> = heads
        .iter()
        .map(|head| head["name"].as_str().unwrap())
        .collect();
    // Six features have four frequencies: no head has fewer.
    assert_eq!(names, ["dense-32", "dense-128", "circulant", "spectral"]);
    let weights: Vec<u64> = heads
        .iter()
        .map(|head| head["weights"].as_u64().unwrap())
        .collect();
    assert_eq!(weights, [6 * 32 + 96, 6 * 128 + 384, 6 + 18, 6 + 18]);
    for head in heads {
        assert_eq!(head["runs"].as_array().unwrap().len(), 2);
        let rows = head["runs"][0]["corruptions"].as_array().unwrap();
        assert_eq!(rows.len(), 75);
        let mean: f64 = rows
            .iter()
            .map(|row| row["auroc"].as_f64().unwrap())
            .sum::<f64>()
            / 75.0;
        assert!((mean - head["auroc"]["values"][0].as_f64().unwrap()).abs() < 1e-12);
        let strong: Vec<f64> = rows
            .iter()
            .filter(|row| row["severity"] == 5)
            .map(|row| row["fpr95"].as_f64().unwrap())
            .collect();
        let mean = strong.iter().sum::<f64>() / 15.0;
        assert!((mean - head["fpr95_s5"]["values"][0].as_f64().unwrap()).abs() < 1e-12);
        assert!(head["geometry"]["lipschitz"].as_f64().unwrap() > 0.0);
    }
    // The last look at the bound is the bound of the report.
    let log = fs::read_to_string(out.at("runs/spectral/seed-0/lipschitz.jsonl")).unwrap();
    let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!(last["step"], 12);
    let bound = heads[3]["geometry"]["lipschitz"].as_f64().unwrap();
    assert!((last["bound"].as_f64().unwrap() / bound - 1.0).abs() < 1e-12);
    let page = fs::read_to_string(out.at("report.html")).unwrap();
    assert!(page.contains("Corruption by corruption") && page.contains("</html>"));
    for figure in ["entropy-1", "lipschitz-training", "lipschitz", "certified"] {
        assert!(out.at(format!("figures/{figure}.svg")).exists(), "{figure}");
    }

    // Again, without the encoder and for two heads: nothing is computed twice.
    let again = format!("reproduce heads {quick} --heads spectral,dense-32");
    let table = success(&again);
    assert!(
        table.contains("spectral, K = 4") && !table.contains("dense 128"),
        "{table}"
    );
    assert!(
        !table.contains("paper"),
        "other images than the paper's: {table}"
    );

    let nowhere = root.at("nowhere");
    refusal(
        1,
        format!("reproduce heads --out {nowhere}"),
        &["train.safetensors", "--encoder"],
    );
    let wrong = format!("reproduce heads {quick} --heads spectral-9,dense-32");
    refusal(1, wrong, &["spectral-9", "dense-32"]);
    fs::remove_dir_all(out.at("features/corrupted")).unwrap();
    refusal(1, &again, &["no corrupted images", "--encoder"]);
}

#[test]
fn a_head_is_trained_calibrated_and_used_elsewhere() {
    let root = Place::temporary();
    let table = root.at("features.csv");
    let row = |i: usize| {
        let class = i % 3;
        let number = |j: usize| {
            ((i * 31 + j * 17) % 23) as f64 / 23.0 + if j % 3 == class { 1.0 } else { 0.0 }
        };
        let numbers: Vec<String> = (0..8).map(|j| number(j).to_string()).collect();
        format!("{},{class}\n", numbers.join(","))
    };
    let header: String = (0..8).map(|j| format!("x{j},")).collect();
    let rows: String = (0..120).map(row).collect();
    fs::write(&table, format!("{header}label\n{rows}")).unwrap();
    let out = root.at("head");
    let flags = "--steps 150 --samples 8 --modes 4 --temperature --json";
    let line = format!("head --data {table} --test {table} --out {out} {flags}");
    let summary = json(&line);
    assert_eq!(
        (&summary["weights"], &summary["test"]["inputs"]),
        (&(7 + 24).into(), &120.into())
    );
    assert!(
        summary["test"]["accuracy"].as_f64().unwrap() > 0.8,
        "{summary}"
    );
    let temperature = summary["temperature"].as_f64().unwrap();
    assert!((0.05..20.0).contains(&temperature) && temperature != 1.0);
    let again = json(&line);
    assert_eq!(again["test"], summary["test"], "nothing is trained twice");

    // The two files are enough, wherever they are, and say the same.
    let elsewhere = root.at("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    for file in ["head.json", "head.safetensors"] {
        fs::copy(out.at(file), elsewhere.at(file)).unwrap();
    }
    let run = out.at("run");
    let certified = |run| json(format!("certify {run} --data {table} --samples 2 --json"));
    let of_run = certified(&run);
    fs::remove_dir_all(&out).unwrap();
    let head = elsewhere.at("head.json");
    // The slope of the prior is in the file, so its bound is that of the run.
    let of_head = certified(&head);
    let priors = |summary: &Value| -> Vec<f64> {
        let layers = summary["layers"].as_array().unwrap().iter();
        layers.filter_map(|layer| layer["prior"].as_f64()).collect()
    };
    assert_eq!(priors(&of_head).len(), 1);
    assert_eq!(priors(&of_head), priors(&of_run));
    // What it was trained on is not.
    refusal(1, format!("evaluate {head}"), &["head.json", "--data"]);
    refusal(
        1,
        format!("evaluate {head} --held-out"),
        &["head.json", "--data"],
    );
    let predictions = success(format!("predict {head} --data {table} --samples 8 --json"));
    let right = predictions.lines().enumerate().filter(|(index, line)| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["class"] == index % 3
    });
    let accuracy = right.count() as f64 / 120.0;
    assert!((accuracy - summary["test"]["accuracy"].as_f64().unwrap()).abs() < 1e-9);

    // Without the flag it stays at one.
    let plain = root.at("plain");
    let line = format!("head --data {table} --width 5");
    let first = json(format!("{line} --out {plain} --steps 20 --json"));
    assert_eq!(first["temperature"], 1.0);
    let other = format!("{line} --out {plain} --steps 21");
    refusal(1, other, &["other settings"]);
    refusal(2, format!("{line} --out x --modes 2"), &["--modes"]);
    let many = format!("head --data {table} --out {} --modes 99", root.at("y"));
    refusal(1, many, &["99"]);
    fs::write(&head, "{}").unwrap();
    refusal(
        1,
        format!("predict {head} --data {table}"),
        &["head.json", "description of a classifier"],
    );
}
