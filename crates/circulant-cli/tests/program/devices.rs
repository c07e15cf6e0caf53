//! `--device`: what is not there is named, and a model that another device trained is used and certified as any other.

use std::fs;

use crate::support::{Place, QUICK, refusal, small, success};

#[test]
fn a_device_that_is_not_there_is_one_error() {
    let root = Place::temporary();
    let (run, data) = small(&root);
    let out = root.at("none");
    let mut cases = vec![
        ("gpu", vec!["expected a device (flex, cpu, cuda", "\"gpu\""]),
        ("cuda:one", vec!["expected a device", "\"cuda:one\""]),
        ("flex:3", vec!["no device flex:3", "flex finds one, flex:0"]),
    ];
    if !cfg!(feature = "rocm") {
        let parts = vec![
            "rocm is not part of this build",
            "has flex",
            "--features rocm",
        ];
        cases.push(("rocm", parts));
    }
    for (device, mut parts) in cases {
        parts.push("--device");
        for line in [
            format!("train --out {out} {QUICK} --device {device}"),
            format!("predict {run} --data {data} --device {device}"),
            format!("evaluate {run} --data {data} --device {device}"),
        ] {
            let message = refusal(1, line, &parts);
            assert_eq!(message.lines().count(), 1, "{message}");
        }
        assert!(!out.exists(), "nothing was begun");
    }
    let line = format!("train --out {out} --data {data} --certified 0.3 --device flex");
    refusal(1, line, &["--device", "leave it out"]);
}

/// Also in the settings: runs of the processor do not say it, as before there were others.
#[test]
fn flex_is_the_default() {
    let root = Place::temporary();
    let (run, data) = small(&root);
    let out = root.at("flex");
    success(format!(
        "train --out {out} --data {data} --steps 3 --batch 10 --device flex"
    ));
    let config = |run: &Place| fs::read_to_string(run.at("config.toml")).expect("a file");
    assert_eq!(config(&out), config(&run));
    assert!(!config(&run).contains("device"));
    success(format!("predict {run} --data {data} --device flex:0"));
}

#[cfg(feature = "ndarray")]
mod others {
    use serde_json::Value;

    use super::*;
    use crate::support::{json, trained};

    /// The numbers of a JSON value.
    fn numbers(value: &Value) -> Vec<f64> {
        let array = value.as_array().expect("an array").iter();
        array.map(|x| x.as_f64().expect("a number")).collect()
    }

    fn losses(run: &Place) -> Vec<f64> {
        let lines = fs::read_to_string(run.at("steps.jsonl")).expect("a file");
        let loss = |line: &str| {
            let step: Value = serde_json::from_str(line).expect("JSON");
            step["loss"].as_f64().expect("a loss")
        };
        lines.lines().map(loss).collect()
    }

    fn near(one: &[f64], other: &[f64], tolerance: f64) {
        assert_eq!(one.len(), other.len());
        assert!(!one.is_empty());
        for (a, b) in one.iter().zip(other) {
            assert!((a - b).abs() <= tolerance * b.abs().max(0.1), "{a} and {b}");
        }
    }

    /// Trained there, stopped and resumed; predicted there and here; certified here.
    #[test]
    fn a_model_of_another_device_is_certified_on_the_processor() {
        let root = Place::temporary();
        let (_, data) = small(&root);
        let flags = format!("--data {data} --batch 10 --checkpoint-every 3");
        let here = trained(&root, "here", format!("{flags} --steps 6"));
        let there = trained(
            &root,
            "there",
            format!("{flags} --steps 3 --device ndarray"),
        );
        let config = fs::read_to_string(there.at("config.toml")).expect("a file");
        assert!(config.contains("device = \"ndarray\""), "{config}");
        refusal(
            1,
            format!("train --resume {there} --steps 6 --device flex"),
            &["--device: the run in", "\"ndarray\", got flex"],
        );
        success(format!("train --resume {there} --steps 6"));
        near(&losses(&there), &losses(&here), 1e-3);

        let probabilities = |run: &Place, device: &str| -> Vec<f64> {
            let line = format!("predict {run} --data {data} --samples 5 --json {device}");
            let rows = success(line);
            let row = |line: &str| -> Value { serde_json::from_str(line).expect("JSON") };
            let rows = rows.lines().map(row);
            rows.flat_map(|row| numbers(&row["probabilities"]))
                .collect()
        };
        let own = probabilities(&there, "");
        near(&own, &probabilities(&there, "--device ndarray"), 1e-5);
        near(&own, &probabilities(&here, ""), 1e-3);
        let accuracy = |device| {
            let found = json(format!(
                "evaluate {there} --data {data} --samples 5 --json {device}"
            ));
            found["accuracy"].clone()
        };
        assert_eq!(accuracy(""), accuracy("--device ndarray"));
        success(format!(
            "predict {there} --data {data} --samples 5 --score --device ndarray"
        ));

        let bound = |run: &Place| {
            let line = format!("certify {run} --data {data} --samples 3 --radii 0,0.01 --json");
            let summary = json(line);
            assert_eq!(summary["inputs"], 30);
            vec![summary["lipschitz"].as_f64().expect("a bound")]
        };
        near(&bound(&there), &bound(&here), 1e-3);
    }

    /// A regression, and a limit of the norms.
    #[test]
    fn tables_are_learned_there_too() {
        let root = Place::temporary();
        let table = root.at("table.csv");
        let mut text = "a,b,y\n".to_owned();
        for i in 0..60 {
            let (a, b) = (f64::from(i % 7), f64::from(i % 5));
            text.push_str(&format!("{a},{b},{}\n", a - 0.5 * b));
        }
        fs::write(&table, text).expect("space");
        let flags = format!("--data {table} --model dense --steps 20 --batch 20 --validation 12");
        let here = trained(&root, "here", &flags);
        let there = trained(&root, "there", format!("{flags} --device ndarray"));
        near(&losses(&there), &losses(&here), 1e-3);
        let rows = |device: &str| success(format!("predict {there} --data {table} {device}"));
        assert_eq!(
            rows("").lines().count(),
            rows("--device ndarray").lines().count()
        );
        let (_, data) = small(&root);
        let limited =
            format!("--data {data} --steps 3 --batch 10 --norm-limit 0.8 --device ndarray");
        trained(&root, "limited", limited);
    }

    /// No card of that number, or none at all.
    #[cfg(feature = "wgpu")]
    #[test]
    fn a_machine_without_such_a_card_says_so() {
        let root = Place::temporary();
        let out = root.at("none");
        let line = format!("train --out {out} {QUICK} --device wgpu:1000");
        let message = refusal(1, line, &["no device wgpu:1000", "wgpu finds "]);
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(!out.exists());
    }
}
