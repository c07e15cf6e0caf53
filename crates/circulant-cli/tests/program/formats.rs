//! Files of other versions: those of 0.1.0 (`tests/fixtures/0.1.0`) are read, those of a newer program are refused.

use std::fs;
use std::path::{Path, PathBuf};

use circulant_cli::experiments::config::Draw;
use circulant_cli::experiments::vit::folder::VitFolder;

use crate::support::{copy, json, path, program, refusal, small, stderr, success, words};
use serde_json::Value;
use tempfile::TempDir;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/0.1.0")
}

/// A copy of the fixtures, whose settings name the table beside them.
fn unpacked() -> TempDir {
    let root = TempDir::new().unwrap();
    for folder in ["run", "head"] {
        copy(&fixtures().join(folder), &root.path().join(folder));
    }
    fs::copy(fixtures().join("table.csv"), root.path().join("table.csv")).unwrap();
    root
}

/// Stdout of a program that succeeds in a folder.
fn within(root: &Path, arguments: &[&str]) -> String {
    let output = program(arguments).current_dir(root).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The same rows, up to rounding.
fn assert_close(found: &str, expected: &str) {
    assert_eq!(found.lines().count(), expected.lines().count());
    for (found, expected) in found.lines().zip(expected.lines()) {
        for (found, expected) in found.split(',').zip(expected.split(',')) {
            match (found.parse::<f64>(), expected.parse::<f64>()) {
                (Ok(found), Ok(expected)) => {
                    assert!((found - expected).abs() < 1e-4, "{found} {expected}");
                }
                _ => assert_eq!(found, expected),
            }
        }
    }
}

#[test]
fn runs_of_0_1_0_are_predicted_evaluated_and_resumed() {
    let root = unpacked();
    let root = root.path();
    let predict = ["predict", "run", "--data", "table.csv", "--samples", "5"];
    let expected = fs::read_to_string(fixtures().join("predictions.csv")).unwrap();
    assert_close(&within(root, &predict), &expected);

    // The examples that it held out were the last ones of the first thirty.
    let before = fs::read_to_string(root.join("run/metrics.json")).unwrap();
    let before: Value = serde_json::from_str(&before).unwrap();
    let evaluated = within(root, &["evaluate", "run", "--held-out", "--json"]);
    let evaluated: Value = serde_json::from_str(&evaluated).unwrap();
    assert_eq!(evaluated["inputs"], 12);
    let [nll, expected] = [&evaluated["nll"], &before["validation"]["nll"]];
    assert!((nll.as_f64().unwrap() - expected.as_f64().unwrap()).abs() < 1e-4);

    let resume = ["train", "--resume", "run", "--steps", "25", "--json"];
    let summary: Value = serde_json::from_str(&within(root, &resume)).unwrap();
    assert_eq!(summary["steps"], 25);
    let config = fs::read_to_string(root.join("run/config.toml")).unwrap();
    assert!(config.starts_with("version = 2\n"), "{config}");
    assert!(config.contains("draw = \"in-order\""), "{config}");
    let steps = fs::read_to_string(root.join("run/steps.jsonl")).unwrap();
    assert_eq!(steps.lines().count(), 25);
    // Again, from the settings as they are written by this version.
    within(root, &["train", "--resume", "run", "--steps", "26"]);
}

#[test]
fn heads_of_0_1_0_are_predicted_and_evaluated() {
    let root = unpacked();
    let flags = words("--data table.csv --label-name kind --samples 5");
    let predict = [&["predict", "head/head.json"][..], &flags].concat();
    let expected = fs::read_to_string(fixtures().join("head-predictions.csv")).unwrap();
    assert_close(&within(root.path(), &predict), &expected);
    let evaluate = [&["evaluate", "head/head.json", "--json"][..], &flags].concat();
    let evaluated: Value = serde_json::from_str(&within(root.path(), &evaluate)).unwrap();
    assert!(evaluated["accuracy"].as_f64().unwrap() > 0.9, "{evaluated}");
}

#[test]
fn folders_of_vision_transformers_of_0_1_0_are_read() {
    let folder = VitFolder::open(&fixtures().join("vit")).unwrap();
    let config = &folder.config;
    assert_eq!(
        (config.version, config.model.d, config.training.batch),
        (2, 128, 10)
    );
    assert_eq!(
        (config.data.first, config.data.draw),
        (Some(40), Draw::InOrder)
    );
    assert_eq!(folder.facts.data.classes, 10);
    assert_eq!(folder.epochs().unwrap().len(), 1);
}

#[test]
fn files_of_a_newer_program_are_refused() {
    let root = TempDir::new().unwrap();
    let (run, data) = small(root.path());
    let newer = root.path().join("newer");
    for (name, old, new) in [
        (
            "config.toml",
            "version = 2",
            "version = 3\nunheard_of = true",
        ),
        ("run.json", "\"version\": 2", "\"version\": 3"),
    ] {
        copy(&run, &newer);
        let file = newer.join(name);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(old), "{text}");
        fs::write(&file, text.replacen(old, new, 1)).unwrap();
        let parts = [
            name,
            "written by a newer circulant",
            "found version 3, this program reads up to 2",
            "update",
        ];
        let newer = path(&newer);
        refusal(1, &["predict", newer, "--data", path(&data)], &parts);
        refusal(1, &["train", "--resume", newer, "--steps", "5"], &parts);
        fs::remove_dir_all(newer).unwrap();
    }
}

#[test]
fn every_json_output_has_a_version() {
    let root = TempDir::new().unwrap();
    let (run, data) = small(root.path());
    let (run, data) = (path(&run), path(&data));
    let mut outputs = Vec::new();
    for arguments in [
        &["predict", run, "--data", data, "--samples", "1"][..],
        &["certify", run, "--data", data, "--samples", "1"],
        &["evaluate", run, "--data", data, "--samples", "1"],
        &["inspect", run],
        &["train", "--resume", run],
        &["params"],
        &["data", "list"],
        &["data", "info", data],
    ] {
        let text = success(&[arguments, &["--json"]].concat());
        outputs.extend(text.lines().map(str::to_owned));
    }
    for name in ["metrics.json", "run.json"] {
        outputs.push(fs::read_to_string(Path::new(run).join(name)).unwrap());
    }
    for output in outputs {
        let value: Value = serde_json::from_str(&output).expect("JSON");
        assert_eq!(value["version"], 2, "{output}");
    }
    // One schema, whoever wrote it.
    let held = root.path().join("held");
    let train = ["train", "--data", data, "--steps", "3", "--batch", "5"];
    let flags = ["--validation", "9", "--out", path(&held), "--json"];
    json(&[&train[..], &flags].concat());
    let keys = |run: &Path| -> Vec<String> {
        let text = fs::read_to_string(run.join("metrics.json")).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        value.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(keys(&held), keys(Path::new(run)));
}
