//! `train --certified`, `certify` and `reproduce certified` as a user runs them, on drawn digits.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Place, json, program, refusal, stderr, success, words};

/// A small network, and epochs that take a moment.
const QUICK: &str =
    "--widths 4,4 --stage-depth 1 --epochs 2 --shift 1 --rate 0.01 --offset 1.5 --temperature 0.3";

fn reproduce(out: &Place, more: &str) -> String {
    let usual = "--data glyphs,--first 120,--validation 20,--radii 0.1,--seeds 0,--attack-images 20,--attack-steps 5,\
                 --attack-restarts 2,--samples 3,--bayesian-epochs 1,--ood shapes";
    let mut line = format!("reproduce certified --out {out} {more}");
    let quick = QUICK
        .split(" --")
        .map(|flag| format!("--{}", flag.trim_start_matches("--")));
    for flag in usual.split(',').map(str::to_owned).chain(quick) {
        if flag.starts_with("--") && !words(more).contains(&words(&flag)[0]) {
            line = format!("{line} {flag}");
        }
    }
    line
}

fn run(out: &Place) -> Place {
    out.at("runs").at("radius-0.1-4-4").at("seed-0")
}

/// Without what a clock says.
fn epochs(folder: &Place) -> Vec<Value> {
    let text = fs::read_to_string(folder.at("epochs.jsonl")).unwrap();
    let line = |line: &str| {
        let mut value: Value = serde_json::from_str(line).expect("whole lines");
        value.as_object_mut().unwrap().remove("seconds");
        value
    };
    text.lines().map(line).collect()
}

#[test]
fn networks_are_trained_attacked_and_compared() {
    let root = Place::temporary();
    let out = root.at("certified");
    let line = reproduce(&out, "--json --seeds 0,1");
    let results = json(&line);
    assert_eq!(results["images"], serde_json::json!([100, 20, 120]));
    let model = &results["models"][0];
    assert_eq!(model["widths"], "4-4");
    for run in model["runs"].as_array().unwrap() {
        let evaluation = &run["evaluation"];
        let number = |value: &Value| value.as_f64().expect("a number");
        let attack = &evaluation["attack"];
        let [certified, robust, clean] =
            ["certified", "robust", "accuracy"].map(|name| number(&attack[name]));
        assert!(certified <= robust && robust <= clean, "{attack}");
        assert!(number(&evaluation["certified"]) <= number(&evaluation["accuracy"]));
        let curve = evaluation["curve"].as_array().unwrap();
        let shares: Vec<f64> = curve.iter().map(|point| number(&point[1])).collect();
        assert!(shares.is_sorted_by(|one, other| one >= other), "{shares:?}");
        let bayesian = &evaluation["bayesian"];
        assert!(number(&bayesian["certified"]) <= number(&bayesian["accuracy"]));
        assert_eq!(bayesian["unfamiliar"][0]["name"], "shapes");
        assert_eq!(run["epochs"].as_array().unwrap().len(), 2);
    }
    let page = fs::read_to_string(out.at("report.html")).unwrap();
    assert!(page.contains("Certified by training") && page.contains("</html>"));
    for figure in ["certified", "radius", "training"] {
        assert!(out.at(format!("figures/{figure}.svg")).exists(), "{figure}");
    }
    for file in words(
        "config.toml run.json epochs.jsonl last.safetensors posterior.safetensors evaluation.json",
    ) {
        assert!(run(&out).at(file).exists(), "{file}");
    }
    // Again: nothing is trained or evaluated twice.
    let before = fs::read(run(&out).at("last.safetensors")).unwrap();
    assert_eq!(json(&line), results);
    assert!(fs::read(run(&out).at("last.safetensors")).unwrap() == before);
    let table = success(reproduce(&out, "--seeds 0,1"));
    assert!(
        table.contains("4-4") && table.contains("certified"),
        "{table}"
    );
    let other = reproduce(&out, "--epochs 3");
    refusal(1, other, &["other settings", "--out"]);
}

#[test]
fn a_killed_run_resumes_as_if_nothing_had_happened() {
    let root = Place::temporary();
    let [whole, killed] = ["whole", "killed"].map(|name| root.at(name));
    let more = "--first 400 --epochs 12 --attack-images 0 --flip";
    success(reproduce(&whole, more));
    for signal in ["-KILL", "-INT"] {
        let mut command = program(reproduce(&killed, more));
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let begin = Instant::now();
        let lines = || {
            let text = fs::read_to_string(run(&killed).at("epochs.jsonl"));
            text.map_or(0, |text| text.lines().count())
        };
        let already = lines();
        while lines() <= already {
            assert!(begin.elapsed() < Duration::from_secs(60), "no epoch ends");
            std::thread::sleep(Duration::from_millis(2));
        }
        let sent = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
        let output = child.wait_with_output().unwrap();
        let message = stderr(&output);
        assert!(!output.status.success(), "{message}");
        if signal == "-INT" {
            assert!(
                message.contains("the same command resumes there"),
                "{message}"
            );
        }
    }
    success(reproduce(&killed, more));
    assert_eq!(epochs(&run(&killed)), epochs(&run(&whole)));
    let posterior = |out: &Place| fs::read(run(out).at("posterior.safetensors")).unwrap();
    assert!(posterior(&killed) == posterior(&whole), "the same bytes");
}

#[test]
fn ones_own_data_are_trained_for_a_radius_and_certified() {
    let root = Place::temporary();
    let out = root.at("run");
    let line = format!(
        "train --certified 0.1 --data glyphs --first 120 --batch 20 --out {out} {QUICK} --json"
    );
    let summary = json(&line);
    assert_eq!(summary["radius"], 0.1);
    assert_eq!(summary["epochs"], 2);
    let [certified, accuracy] =
        ["certified", "accuracy"].map(|name| summary[name].as_f64().unwrap());
    assert!(certified <= accuracy);
    refusal(1, &line, &["already holds a run"]);
    let figure = root.at("curve.svg");
    let found = json(format!(
        "certify {out} --data glyphs --first 40 --radii 0,0.1,0.2 --figure {figure} --json"
    ));
    assert!(fs::read_to_string(&figure).unwrap().contains("</svg>"));
    // Layer by layer one, and at most ten logits of one each.
    for layer in found["layers"].as_array().unwrap() {
        let upper = layer["upper"].as_f64().unwrap();
        let is_read_out = layer["name"] == "output";
        assert!(upper < if is_read_out { 3.2 } else { 1.001 }, "{layer}");
    }
    let shares: Vec<f64> = found["certified"]
        .as_array()
        .unwrap()
        .iter()
        .map(|at| at["last_layer"].as_f64().unwrap())
        .collect();
    assert!(shares.is_sorted_by(|one, other| one >= other), "{shares:?}");
    let table = success(format!(
        "certify {out} --data glyphs --first 10 --predicted"
    ));
    assert!(table.contains("certified at 0.1"), "{table}");
    // A run that has come to its end goes no further.
    success(format!("train --resume {out}"));
    refusal(
        1,
        format!("train --resume {out} --epochs 5"),
        &["--resume", "its own settings"],
    );
    used_as_any_other_run(&root, &out, accuracy);
    refusal(
        1,
        format!("certify {out} --data glyphs --first 10 --tolerance 1"),
        &["--tolerance"],
    );
}

/// Predictions, an evaluation and a page.
fn used_as_any_other_run(root: &Place, out: &Place, held_out_accuracy: f64) {
    let found = json(format!("evaluate {out} --held-out --ood shapes --json"));
    assert_eq!(found["model"], "orthogonal");
    let accuracy = found["accuracy"].as_f64().unwrap();
    assert!((accuracy - held_out_accuracy).abs() < 1e-9, "{found}");
    assert!(found["nll"].as_f64().unwrap() < 10.0_f64.ln() * 1.1);
    let data = found["ood"][0]["data"].as_str().unwrap();
    assert!(data.starts_with("shapes"), "{data}");
    let page = root.at("page.html");
    success(format!(
        "evaluate {out} --data glyphs --first 60 --coverage 0.8 --report {page}"
    ));
    assert!(fs::read_to_string(&page).unwrap().contains("orthogonal"));
    let rows = success(format!(
        "predict {out} --data glyphs --first 60 --score entropy --json"
    ));
    let rows: Vec<Value> = rows
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for row in &rows {
        let probabilities = row["probabilities"].as_array().unwrap().iter();
        let sum: f64 = probabilities.map(|p| p.as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{row}");
    }
    refusal(
        1,
        format!("predict {out} --data glyphs --score"),
        &["feature-density", "trained for a radius", "--score entropy"],
    );
    let found = json(format!("inspect {out} --json"));
    assert_eq!(found["radius"], 0.1);
    for layer in found["layers"].as_array().unwrap() {
        let median = layer["singular_values"]["median"].as_f64().unwrap();
        let is_read_out = layer["name"] == "output";
        assert!(is_read_out || (median - 1.0).abs() < 1e-4, "{layer}");
    }
    let page = fs::read_to_string(out.at("inspect.html")).unwrap();
    assert!(page.contains("trained for a radius"));
    let table = success(format!("inspect {out}"));
    assert!(
        table.contains("layers.0") && table.contains("output"),
        "{table}"
    );
    fs::write(out.at("temperatures.json"), "{\"network\": -1}").unwrap();
    refusal(
        1,
        format!("predict {out} --data glyphs"),
        &["temperatures.json", "remove it"],
    );
    fs::remove_file(out.at("temperatures.json")).unwrap();
}

#[test]
fn what_cannot_be_certified_is_refused_by_name() {
    let root = Place::temporary();
    let out = root.at("run");
    let train = |more: &str| format!("train --data glyphs --first 60 --out {out} {more}");
    for radius in ["0", "-0.5", "nan"] {
        let line = train(&format!("--certified {radius}"));
        refusal(1, line, &["--certified", "positive"]);
        let line = format!("reproduce certified --data glyphs --out {out} --radii {radius}");
        refusal(1, line, &["--radii", "positive"]);
    }
    let odd = train("--certified 0.1 --widths 4,7");
    refusal(1, odd, &["MaxMin", "7", "--widths"]);
    let sides = train("--certified 0.1 --widths 4,4,4");
    refusal(1, sides, &["height", "7", "--widths"]);
    let kernel = train("--certified 0.1 --kernel 2");
    refusal(1, kernel, &["kernel", "odd"]);
    let other = train("--certified 0.1 --model dense");
    refusal(1, other, &["--model", "leave it out"]);
    let other = train("--certified 0.1 --temperature 0");
    refusal(1, other, &["temperature", "positive"]);
    refusal(1, train("--widths 4,4"), &["--widths", "--certified"]);
    let line = format!("reproduce certified --data glyphs --out {out} --attack-steps 0");
    refusal(1, line, &["--attack-steps"]);
    assert!(!out.exists(), "nothing was begun");
}
