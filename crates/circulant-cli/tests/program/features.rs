//! `features` and `data corrupt` as a user runs them.

use std::fs;
use std::path::Path;

use crate::support::{Place, json, npy, refusal, success};
use image::{Rgb, RgbImage};

const ENCODER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../circulant-data/tests/fixtures/encoder.onnx"
);

/// Ten small photographs in two classes.
fn photographs(root: &Place) -> Place {
    let folder = root.at("photographs");
    for (class, tint) in [("cats", 40), ("dogs", 180)] {
        fs::create_dir_all(folder.at(class)).unwrap();
        for index in 0..5_u8 {
            let pixel = |x: u32, y: u32| Rgb([tint, (x * 20) as u8, (y as u8) * 12 + index]);
            let image = RgbImage::from_fn(12, 12, pixel);
            image
                .save(folder.at(class).join(format!("{index}.png")))
                .unwrap();
        }
    }
    folder
}

#[test]
fn features_are_stored_once_and_trained_on() {
    let root = Place::temporary();
    let folder = photographs(&root);
    let out = root.at("features.safetensors");
    let line = format!("features {ENCODER} --data {folder} --resize 24x24 --out {out} --json");
    let summary = json(&line);
    let counts = ["images", "features", "computed"].map(|key| summary[key].as_u64().unwrap());
    assert_eq!(counts, [10, 6, 10]);
    assert!(summary["images_per_second"].as_f64().unwrap() > 0.0);
    let whole = fs::read(&out).unwrap();
    // Whoever may read other new files here may read this one.
    let other = root.at("other");
    fs::write(&other, "").unwrap();
    let permissions = |path: &Path| fs::metadata(path).unwrap().permissions();
    assert_eq!(permissions(&out), permissions(&other));
    let again = json(&line);
    assert_eq!(
        (&again["computed"], &again["images_per_second"]),
        (&0.into(), &serde_json::Value::Null)
    );

    // A process that ended early: its rows stay.
    let text = String::from_utf8_lossy(&whole).into_owned();
    let start = text.find("{\\\"encoder").unwrap();
    let end = start + text[start..].find("}\"").unwrap() + 1;
    let identity = text[start..end].replace("\\\"", "\"");
    let values = u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize + 8;
    let mut partial = format!("{identity}\n").into_bytes();
    // Tensors are in the order of their alignment; labels are eight bytes each.
    let features = &whole[values + 80..values + 80 + 4 * 24];
    partial.extend(features);
    partial.extend([7; 5]);
    fs::remove_file(&out).unwrap();
    fs::write(root.at("features.safetensors.partial"), partial).unwrap();
    assert_eq!(json(&line)["computed"], 6);
    let info = json(format!("data info {out} --json"));
    assert_eq!(info["shape"], serde_json::json!([10, 6]));
    assert!(
        fs::read(&out).unwrap().ends_with(&whole[values..]),
        "the same numbers"
    );

    let run = root.at("run");
    success(format!(
        "train --data {out} --modes 2 --steps 3 --batch 5 --rank 1 --out {run}"
    ));
    let half = root.at("half.safetensors");
    success(format!(
        "features {ENCODER} --data {folder} --half --out {half}"
    ));
    assert_eq!(
        json(format!("data info {half} --json"))["shape"],
        serde_json::json!([10, 6])
    );

    let text = root.at("text.onnx");
    fs::write(&text, "no encoder").unwrap();
    let new = root.at("new.safetensors");
    let wrong = root.at("out.npy");
    for (line, parts) in [
        (
            format!("features {text} --out {new}"),
            ["text.onnx", "ONNX"],
        ),
        (
            format!("features none.onnx --out {new}"),
            ["none.onnx", "check the path"],
        ),
        (
            format!("features {ENCODER} --out {wrong}"),
            ["out.npy", ".safetensors"],
        ),
        (
            format!("features {ENCODER} --out {out} --mean 1,2,3"),
            ["other content", "--out"],
        ),
        (
            format!("features {ENCODER} --out {new} --std 1,0,1"),
            ["positive", "1.0, 0.0"],
        ),
        (
            format!("features {ENCODER} --out {new} --corrupt fog --severity 6"),
            ["severity", "6"],
        ),
    ] {
        refusal(1, format!("{line} --data {folder}"), &parts);
    }
    assert!(!new.exists());
}

#[test]
fn corrupted_images_have_the_published_layout() {
    let root = Place::temporary();
    let folder = photographs(&root);
    let out = root.at("corrupted");
    let line = format!(
        "data corrupt --data {folder} --corruptions fog,jpeg_compression --out {out} --json"
    );
    let lines = success(&line);
    assert_eq!(lines.lines().count(), 2);
    for name in ["fog", "jpeg_compression"] {
        let file = out.at(format!("{name}.npy"));
        let info = json(format!("data info {file} --json"));
        assert_eq!(info["shape"], serde_json::json!([50, 3, 12, 12]));
    }
    refusal(1, &line, &["there already", "--out"]);
    let sheet = root.at("sheet.svg");
    success(format!("data corrupt --data {folder} --preview {sheet}"));
    let page = fs::read_to_string(&sheet).unwrap();
    assert!(
        page.contains("<image ") && page.contains("gaussian noise"),
        "{page}"
    );
    refusal(2, format!("data corrupt --data {folder}"), &["--out"]);
    refusal(
        2,
        "data corrupt --corruptions rain --out x",
        &["rain", "fog"],
    );
    let floats = root.at("images.npy");
    npy(&floats, &[2, 3, 4, 4], &[0.5; 96]);
    npy(&root.at("labels.npy"), &[2], &[0.0, 1.0]);
    let new = root.at("new");
    let line = format!("data corrupt --data {floats} --out {new}");
    refusal(1, line, &["bytes", "floats"]);
    assert!(!new.exists());
}
