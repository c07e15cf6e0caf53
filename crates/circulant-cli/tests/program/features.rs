//! `features` and `data corrupt` as a user runs them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{json, npy, path, refusal, success};
use image::{Rgb, RgbImage};
use tempfile::TempDir;

fn encoder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../circulant-data/tests/fixtures/encoder.onnx")
}

/// Ten small photographs in two classes.
fn photographs(root: &Path) -> PathBuf {
    let folder = root.join("photographs");
    for (class, tint) in [("cats", 40), ("dogs", 180)] {
        fs::create_dir_all(folder.join(class)).unwrap();
        for index in 0..5_u8 {
            let pixel = |x: u32, y: u32| Rgb([tint, (x * 20) as u8, (y as u8) * 12 + index]);
            let image = RgbImage::from_fn(12, 12, pixel);
            image
                .save(folder.join(class).join(format!("{index}.png")))
                .unwrap();
        }
    }
    folder
}

#[test]
fn features_are_stored_once_and_trained_on() {
    let root = TempDir::new().unwrap();
    let (folder, encoder) = (photographs(root.path()), encoder());
    let out = root.path().join("features.safetensors");
    let arguments = [
        "features",
        path(&encoder),
        "--data",
        path(&folder),
        "--resize",
        "24x24",
        "--out",
        path(&out),
        "--json",
    ];
    let summary = json(&arguments);
    assert_eq!(
        (
            &summary["images"],
            &summary["features"],
            &summary["computed"]
        ),
        (&10.into(), &6.into(), &10.into())
    );
    assert!(summary["images_per_second"].as_f64().unwrap() > 0.0);
    let whole = fs::read(&out).unwrap();
    // Whoever may read other new files here may read this one.
    let other = root.path().join("other");
    fs::write(&other, "").unwrap();
    let permissions = |path: &Path| fs::metadata(path).unwrap().permissions();
    assert_eq!(permissions(&out), permissions(&other));
    let again = json(&arguments);
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
    fs::write(root.path().join("features.safetensors.partial"), partial).unwrap();
    assert_eq!(json(&arguments)["computed"], 6);
    let info = json(&["data", "info", path(&out), "--json"]);
    assert_eq!(info["shape"], serde_json::json!([10, 6]));
    assert!(
        fs::read(&out).unwrap().ends_with(&whole[values..]),
        "the same numbers"
    );

    let run = root.path().join("run");
    success(&[
        "train",
        "--data",
        path(&out),
        "--modes",
        "2",
        "--steps",
        "3",
        "--batch",
        "5",
        "--rank",
        "1",
        "--out",
        path(&run),
    ]);
    let half = root.path().join("half.safetensors");
    success(&[
        "features",
        path(&encoder),
        "--data",
        path(&folder),
        "--half",
        "--out",
        path(&half),
    ]);
    assert_eq!(
        json(&["data", "info", path(&half), "--json"])["shape"],
        serde_json::json!([10, 6])
    );

    let text = root.path().join("text.onnx");
    fs::write(&text, "no encoder").unwrap();
    let data = ["--data", path(&folder), "--out"];
    let refused = |encoder: &Path, out: &Path, more: &[&str], parts: &[&str]| {
        let mut arguments = vec!["features", path(encoder)];
        arguments.extend(data);
        arguments.push(path(out));
        arguments.extend(more);
        refusal(1, &arguments, parts);
    };
    let new = root.path().join("new.safetensors");
    refused(&text, &new, &[], &["text.onnx", "ONNX"]);
    refused(&root.path().join("none.onnx"), &new, &[], &["none.onnx"]);
    refused(
        &encoder,
        &root.path().join("out.npy"),
        &[],
        &[".safetensors"],
    );
    refused(
        &encoder,
        &out,
        &["--mean", "1,2,3"],
        &["other content", "--out"],
    );
    refused(&encoder, &new, &["--std", "1,0,1"], &["positive"]);
    refused(
        &encoder,
        &new,
        &["--corrupt", "fog", "--severity", "6"],
        &["severity", "6"],
    );
    assert!(!new.exists());
}

#[test]
fn corrupted_images_have_the_published_layout() {
    let root = TempDir::new().unwrap();
    let folder = photographs(root.path());
    let out = root.path().join("corrupted");
    let arguments = [
        "data",
        "corrupt",
        "--data",
        path(&folder),
        "--corruptions",
        "fog,jpeg_compression",
        "--out",
        path(&out),
        "--json",
    ];
    let lines = success(&arguments);
    assert_eq!(lines.lines().count(), 2);
    for name in ["fog", "jpeg_compression"] {
        let info = json(&[
            "data",
            "info",
            path(&out.join(format!("{name}.npy"))),
            "--json",
        ]);
        assert_eq!(info["shape"], serde_json::json!([50, 3, 12, 12]));
    }
    refusal(1, &arguments, &["there already", "--out"]);
    let sheet = root.path().join("sheet.svg");
    success(&[
        "data",
        "corrupt",
        "--data",
        path(&folder),
        "--preview",
        path(&sheet),
    ]);
    let page = fs::read_to_string(&sheet).unwrap();
    assert!(
        page.contains("<image ") && page.contains("gaussian noise"),
        "{page}"
    );
    refusal(2, &["data", "corrupt", "--data", path(&folder)], &["--out"]);
    refusal(
        2,
        &["data", "corrupt", "--corruptions", "rain", "--out", "x"],
        &["rain", "fog"],
    );
    let floats = root.path().join("images.npy");
    npy(&floats, &[2, 3, 4, 4], &[0.5; 96]);
    npy(&root.path().join("labels.npy"), &[2], &[0.0, 1.0]);
    let new = root.path().join("new");
    let arguments = [
        "data",
        "corrupt",
        "--data",
        path(&floats),
        "--out",
        path(&new),
    ];
    refusal(1, &arguments, &["bytes", "floats"]);
    assert!(!new.exists());
}
