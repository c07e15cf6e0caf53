//! Files of other versions: those of 0.1.0 (`tests/fixtures/0.1.0`) are read, those of a newer program are refused.

use std::fs;
use std::path::{Path, PathBuf};

use circulant_cli::parts::{Draw, VitFolder};

use crate::support::{
    CommandLine, Place, copy, json, json_file, program, refusal, small, stderr, success,
};
use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/0.1.0")
}

/// A copy of the fixtures, whose settings name the table beside them.
fn unpacked() -> Place {
    let root = Place::temporary();
    for folder in ["run", "head"] {
        copy(&fixtures().join(folder), &root.at(folder));
    }
    fs::copy(fixtures().join("table.csv"), root.at("table.csv")).unwrap();
    root
}

/// Stdout of a program that succeeds in a folder.
fn within(root: &Place, line: impl CommandLine) -> String {
    let output = program(line).current_dir(root).output().unwrap();
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
    let root = &unpacked();
    let expected = fs::read_to_string(fixtures().join("predictions.csv")).unwrap();
    let found = within(root, "predict run --data table.csv --samples 5");
    assert_close(&found, &expected);

    // The examples that it held out were the last ones of the first thirty.
    let before = json_file(root.at("run/metrics.json"));
    let evaluated = within(root, "evaluate run --held-out --json");
    let evaluated: Value = serde_json::from_str(&evaluated).unwrap();
    assert_eq!(evaluated["inputs"], 12);
    let [nll, expected] = [&evaluated["nll"], &before["validation"]["nll"]];
    assert!((nll.as_f64().unwrap() - expected.as_f64().unwrap()).abs() < 1e-4);

    let summary = within(root, "train --resume run --steps 25 --json");
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["steps"], 25);
    let config = fs::read_to_string(root.at("run/config.toml")).unwrap();
    assert!(config.starts_with("version = 2\n"), "{config}");
    assert!(config.contains("draw = \"in-order\""), "{config}");
    let steps = fs::read_to_string(root.at("run/steps.jsonl")).unwrap();
    assert_eq!(steps.lines().count(), 25);
    // Again, from the settings as they are written by this version.
    within(root, "train --resume run --steps 26");
}

#[test]
fn heads_of_0_1_0_are_predicted_and_evaluated() {
    let root = &unpacked();
    let flags = "head/head.json --data table.csv --label-name kind --samples 5";
    let expected = fs::read_to_string(fixtures().join("head-predictions.csv")).unwrap();
    assert_close(&within(root, format!("predict {flags}")), &expected);
    let evaluated = within(root, format!("evaluate {flags} --json"));
    let evaluated: Value = serde_json::from_str(&evaluated).unwrap();
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
    let root = Place::temporary();
    let (run, data) = small(&root);
    let newer = root.at("newer");
    for (name, old, new) in [
        (
            "config.toml",
            "version = 2",
            "version = 3\nunheard_of = true",
        ),
        ("run.json", "\"version\": 2", "\"version\": 3"),
    ] {
        copy(&run, &newer);
        let file = newer.at(name);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(old), "{text}");
        fs::write(&file, text.replacen(old, new, 1)).unwrap();
        let parts = [
            name,
            "written by a newer circulant",
            "found version 3, this program reads up to 2",
            "update",
        ];
        refusal(1, format!("predict {newer} --data {data}"), &parts);
        refusal(1, format!("train --resume {newer} --steps 5"), &parts);
        fs::remove_dir_all(&newer).unwrap();
    }
}

#[test]
fn every_json_output_has_a_version() {
    let root = Place::temporary();
    let (run, data) = small(&root);
    let mut outputs = Vec::new();
    for line in [
        format!("predict {run} --data {data} --samples 1"),
        format!("certify {run} --data {data} --samples 1"),
        format!("evaluate {run} --data {data} --samples 1"),
        format!("inspect {run}"),
        format!("train --resume {run}"),
        "params".to_owned(),
        "data list".to_owned(),
        format!("data info {data}"),
    ] {
        let text = success(format!("{line} --json"));
        outputs.extend(text.lines().map(str::to_owned));
    }
    for name in ["metrics.json", "run.json"] {
        outputs.push(fs::read_to_string(run.at(name)).unwrap());
    }
    for output in outputs {
        let value: Value = serde_json::from_str(&output).expect("JSON");
        assert_eq!(value["version"], 2, "{output}");
    }
    // One schema, whoever wrote it.
    let held = root.at("held");
    let train = format!("train --data {data} --steps 3 --batch 5 --validation 9");
    json(format!("{train} --out {held} --json"));
    let keys = |run: &Path| -> Vec<String> {
        let value = json_file(run.join("metrics.json"));
        value.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(keys(&held), keys(&run));
}
