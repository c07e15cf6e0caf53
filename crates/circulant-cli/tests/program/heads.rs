//! `reproduce heads` as a user runs it, with a tiny encoder on small images.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{json, path, refusal, success, words};
use image::{Rgb, RgbImage};
use serde_json::Value;
use tempfile::TempDir;

/// Images of 12 x 12 in three classes, a training and a test part.
fn images(root: &Path) -> PathBuf {
    let folder = root.join("pictures");
    for (part, count) in [("train", 12), ("test", 6)] {
        for class in 0..3_u8 {
            let place = folder.join(part).join(format!("class-{class}"));
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
    let root = TempDir::new().unwrap();
    let (data, out) = (images(root.path()), root.path().join("heads"));
    let encoder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../circulant-data/tests/fixtures/encoder.onnx");
    let quick = words("--seeds 0,3 --steps 12 --samples 3 --corrupted 5");
    let mut arguments = vec![
        "reproduce",
        "heads",
        "--encoder",
        path(&encoder),
        "--resize",
        "16x16",
    ];
    arguments.extend(["--data", path(&data), "--out", path(&out), "--json"]);
    arguments.extend(&quick);
    let results = json(&arguments);
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
    let log = fs::read_to_string(out.join("runs/spectral/seed-0/lipschitz.jsonl")).unwrap();
    let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!(last["step"], 12);
    let bound = heads[3]["geometry"]["lipschitz"].as_f64().unwrap();
    assert!((last["bound"].as_f64().unwrap() / bound - 1.0).abs() < 1e-12);
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Corruption by corruption") && page.contains("</html>"));
    for figure in ["entropy-1", "lipschitz-training", "lipschitz", "certified"] {
        assert!(
            out.join(format!("figures/{figure}.svg")).exists(),
            "{figure}"
        );
    }

    // Again, without the encoder and for two heads: nothing is computed twice.
    let mut again = vec![
        "reproduce",
        "heads",
        "--heads",
        "spectral,dense-32",
        "--data",
        path(&data),
        "--out",
        path(&out),
    ];
    again.extend(quick);
    let table = success(&again);
    assert!(
        table.contains("spectral, K = 4") && !table.contains("dense 128"),
        "{table}"
    );
    assert!(
        !table.contains("paper"),
        "other images than the paper's: {table}"
    );

    let nowhere = root.path().join("nowhere");
    refusal(
        1,
        &["reproduce", "heads", "--out", path(&nowhere)],
        &["train.safetensors", "--encoder"],
    );
    let mut wrong = again.clone();
    wrong[3] = "spectral-9";
    refusal(1, &wrong, &["spectral-9", "dense-32"]);
    fs::remove_dir_all(out.join("features/corrupted")).unwrap();
    refusal(1, &again, &["no corrupted images", "--encoder"]);
}

#[test]
fn a_head_is_trained_calibrated_and_used_elsewhere() {
    let root = TempDir::new().unwrap();
    let table = root.path().join("features.csv");
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
    let out = root.path().join("head");
    let mut arguments = vec![
        "head",
        "--data",
        path(&table),
        "--test",
        path(&table),
        "--out",
        path(&out),
    ];
    arguments.extend(words(
        "--steps 150 --samples 8 --modes 4 --temperature --json",
    ));
    let summary = json(&arguments);
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
    let again = json(&arguments);
    assert_eq!(again["test"], summary["test"], "nothing is trained twice");

    // The two files are enough, wherever they are, and say the same.
    let elsewhere = root.path().join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    for file in ["head.json", "head.safetensors"] {
        fs::copy(out.join(file), elsewhere.join(file)).unwrap();
    }
    let run = out.join("run");
    let certified = ["--data", path(&table), "--samples", "2", "--json"];
    let of_run = json(&[&["certify", path(&run)][..], &certified].concat());
    fs::remove_dir_all(&out).unwrap();
    let head = elsewhere.join("head.json");
    // The slope of the prior is in the file, so its bound is that of the run.
    let of_head = json(&[&["certify", path(&head)][..], &certified].concat());
    let priors = |summary: &Value| -> Vec<f64> {
        let layers = summary["layers"].as_array().unwrap().iter();
        layers.filter_map(|layer| layer["prior"].as_f64()).collect()
    };
    assert_eq!(priors(&of_head).len(), 1);
    assert_eq!(priors(&of_head), priors(&of_run));
    // What it was trained on is not.
    refusal(1, &["evaluate", path(&head)], &["head.json", "--data"]);
    refusal(
        1,
        &["evaluate", path(&head), "--held-out"],
        &["head.json", "--data"],
    );
    let predictions = success(&[
        "predict",
        path(&head),
        "--data",
        path(&table),
        "--samples",
        "8",
        "--json",
    ]);
    let right = predictions.lines().enumerate().filter(|(index, line)| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["class"] == index % 3
    });
    let accuracy = right.count() as f64 / 120.0;
    assert!((accuracy - summary["test"]["accuracy"].as_f64().unwrap()).abs() < 1e-9);

    // Without the flag it stays at one.
    let plain = root.path().join("plain");
    let arguments = vec![
        "head",
        "--data",
        path(&table),
        "--out",
        path(&plain),
        "--steps",
        "20",
        "--width",
        "5",
        "--json",
    ];
    assert_eq!(json(&arguments)["temperature"], 1.0);
    refusal(
        1,
        &[
            "head",
            "--data",
            path(&table),
            "--out",
            path(&plain),
            "--steps",
            "21",
            "--width",
            "5",
        ],
        &["other settings"],
    );
    refusal(
        2,
        &[
            "head",
            "--data",
            path(&table),
            "--out",
            "x",
            "--modes",
            "2",
            "--width",
            "5",
        ],
        &["--modes"],
    );
    refusal(
        1,
        &[
            "head",
            "--data",
            path(&table),
            "--out",
            path(&root.path().join("y")),
            "--modes",
            "99",
        ],
        &["99"],
    );
    fs::write(&head, "{}").unwrap();
    refusal(
        1,
        &["predict", path(&head), "--data", path(&table)],
        &["head.json", "description of a classifier"],
    );
}
