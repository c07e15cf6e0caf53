//! `reproduce heads` as a user runs it, with a tiny encoder on small pictures.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{json, path, refusal, success};
use image::{Rgb, RgbImage};
use serde_json::Value;
use tempfile::TempDir;

/// Pictures of 12 x 12 in three classes, a training and a test part.
fn pictures(root: &Path) -> PathBuf {
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
                let picture = RgbImage::from_fn(12, 12, pixel);
                picture.save(place.join(format!("{index}.png"))).unwrap();
            }
        }
    }
    folder
}

#[test]
fn all_heads_are_trained_and_compared() {
    let root = TempDir::new().unwrap();
    let (data, out) = (pictures(root.path()), root.path().join("heads"));
    let encoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/encoder.onnx");
    let quick = [
        "--seeds",
        "0,3",
        "--steps",
        "12",
        "--samples",
        "3",
        "--corrupted",
        "5",
    ];
    let mut arguments = vec![
        "reproduce",
        "heads",
        "--encoder",
        path(&encoder),
        "--resize",
        "16x16",
    ];
    arguments.extend(["--data", path(&data), "--out", path(&out), "--json"]);
    arguments.extend(quick);
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
        "other pictures than the paper's: {table}"
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
    refusal(1, &again, &["no corrupted pictures", "--encoder"]);
}
