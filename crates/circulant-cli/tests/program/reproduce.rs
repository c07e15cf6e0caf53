//! `reproduce mnist` and `evaluate` as a user runs them, on drawn digits and without a network.

use std::fs;
use std::path::Path;

use crate::support::{circulant, json, path, refusal, stderr, success, trained, words};
use serde_json::Value;
use tempfile::TempDir;

fn reproduce<'a>(out: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["reproduce", "mnist", "--first", "200", "--samples", "3"];
    arguments.extend(["--out", path(out)]);
    arguments.extend(more);
    if !more.contains(&"--steps") {
        arguments.extend(["--steps", "4"]);
    }
    arguments
}

/// The form that the README promises.
fn check_values(model: &Value, seeds: usize) {
    for key in [
        "accuracy", "nll", "brier", "ece", "ece15", "mce", "auroc", "fpr95", "seconds",
    ] {
        let entry = &model[key];
        let values = entry["values"].as_array().unwrap();
        assert_eq!(values.len(), seeds, "{key}");
        let sum: f64 = values.iter().map(|value| value.as_f64().unwrap()).sum();
        let mean = entry["mean"].as_f64().unwrap();
        assert!((sum / seeds as f64 - mean).abs() < 1e-12, "{key}");
        assert!(entry["std"].as_f64().unwrap() >= 0.0, "{key}");
    }
}

#[test]
fn all_six_models_are_reproduced_on_glyphs() {
    let root = TempDir::new().unwrap();
    let out = root.path().join("mnist");
    let arguments = reproduce(&out, &["--data", "glyphs", "--seeds", "0,5", "--json"]);
    let results = json(&arguments);
    assert_eq!(results["data"], "glyphs");
    assert_eq!(results["seeds"], serde_json::json!([0, 5]));
    let models = results["models"].as_array().unwrap();
    let names: Vec<&str> = models.iter().map(|m| m["name"].as_str().unwrap()).collect();
    let all = words("spectral-bccb spectral-circulant bccb circulant conv2d dense");
    assert_eq!(names, all);
    let count = |model: &Value| ["weights", "biases"].map(|key| model[key].as_u64().unwrap());
    let counts: Vec<[u64; 2]> = models.iter().map(count).collect();
    assert_eq!(counts[..4], [[8_624, 11]; 4]);
    assert_eq!(counts[4..], [[62_792, 18], [622_496, 794]]);
    models.iter().for_each(|model| check_values(model, 2));

    // What is on disk says the same, and the report says loudly that this is not MNIST.
    let file = fs::read_to_string(out.join("results.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&file).unwrap(), results);
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("not on MNIST") && page.contains("</html>"));
    for figure in words("size elbo entropy-6 reliability-1 spectrum-2 certified") {
        let figure = fs::read_to_string(out.join(format!("figures/{figure}.svg"))).unwrap();
        assert!(figure.starts_with("<svg") || figure.starts_with("<?xml"));
    }
    for file in words("config.toml run.json steps.jsonl checkpoint.safetensors") {
        assert!(out.join("runs/dense/seed-5").join(file).exists(), "{file}");
    }

    // Again, one of them: nothing is trained twice, and everything but the clock is the same.
    let one = [
        "--data",
        "glyphs",
        "--seeds",
        "0,5",
        "--models",
        "circulant",
    ];
    let again = json(&reproduce(&out, &[&one[..], &["--json"]].concat()));
    for key in ["accuracy", "nll", "auroc"] {
        assert_eq!(again["models"][0][key], models[3][key]);
    }
    let steps = fs::read_to_string(out.join("runs/circulant/seed-0/steps.jsonl")).unwrap();
    assert_eq!(steps.lines().count(), 4);

    // Other settings do not mix with these.
    let other = reproduce(&out, &["--data", "glyphs", "--steps", "5"]);
    refusal(1, &other, &["other settings", "--out"]);
}

#[test]
fn variants_run_and_the_table_warns_of_glyphs() {
    let root = TempDir::new().unwrap();
    let out = root.path().join("mnist");
    let more = words("--data glyphs --seeds 1 --models circulant --beyond");
    let table = success(&reproduce(&out, &[&more[..], &["--steps", "1"]].concat()));
    assert!(table.starts_with("NOT MNIST"), "{table}");
    assert!(table.contains("spatial circulant") && table.contains("three spectral circulant"));
    let results = fs::read_to_string(out.join("results.json")).unwrap();
    let results: Value = serde_json::from_str(&results).unwrap();
    let beyond = results["beyond"].as_array().unwrap();
    let weights: Vec<u64> = beyond
        .iter()
        .map(|m| m["weights"].as_u64().unwrap())
        .collect();
    // A filter of 784 more per layer; a channel brings 784 per input channel and 7840 of the read-out.
    assert_eq!(
        weights,
        [8_624, 8_624, 8_624, 9_408, 10_192, 17_248, 25_872]
    );
}

#[test]
fn without_data_and_network_it_falls_back_or_refuses() {
    let root = TempDir::new().unwrap();
    let cache = root.path().join("cache");
    let out = root.path().join("auto");
    let more = words("--offline --seeds 0 --models bccb --steps 1");
    let output = crate::support::program(&reproduce(&out, &more))
        .env("CIRCULANT_CACHE", &cache)
        .output()
        .unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert!(message.contains("NOT MNIST"), "{message}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("MNIST could not be had"));

    let refused = root.path().join("mnist");
    let more = [&more[..], &["--data", "mnist"]].concat();
    let output = crate::support::program(&reproduce(&refused, &more))
        .env("CIRCULANT_CACHE", &cache)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.contains("--data glyphs"), "{message}");
    assert!(!refused.exists());
}

#[test]
fn wrong_usage_is_told_from_failure() {
    let out = Path::new("nowhere");
    refusal(2, &reproduce(out, &["--seeds", "one"]), &["one"]);
    refusal(
        2,
        &reproduce(out, &["--models", "resnet"]),
        &["spectral-bccb"],
    );
    refusal(2, &["reproduce", "imagenet"], &["imagenet"]);
    refusal(
        1,
        &reproduce(out, &["--data", "glyphs", "--steps", "0"]),
        &["1 or more"],
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    let arguments = reproduce(file.path(), &["--data", "glyphs", "--seeds", "0"]);
    refusal(1, &arguments, &["cannot make the folder"]);
    assert_eq!(circulant(&["reproduce"]).status.code(), Some(2));
}

#[test]
fn a_run_is_evaluated_with_out_of_distribution_data() {
    let root = TempDir::new().unwrap();
    let run = trained(root.path(), "run", &["--validation", "100"]);
    let page = root.path().join("page.html");
    let flags = words("--first 150 --samples 4 --ood shapes --ood glyphs:train");
    let mut arguments = vec!["evaluate", path(&run), "--json", "--intervals"];
    arguments.extend(flags);
    arguments.extend(["--report", path(&page)]);
    let evaluated = json(&arguments);
    assert_eq!(evaluated["inputs"], 150);
    assert_eq!(evaluated["steps"], 20);
    let number = |value: &Value| value.as_f64().unwrap();
    for key in ["accuracy", "nll", "brier", "ece", "mce"] {
        let interval = &evaluated["intervals"][key];
        assert_eq!(interval["estimate"], evaluated[key], "{key}");
        assert!(
            number(&interval["lower"]) <= number(&interval["upper"]),
            "{key}"
        );
    }
    let ood = evaluated["ood"].as_array().unwrap();
    assert_eq!(ood.len(), 2);
    // Images of the training distribution are not out of it: the score cannot tell them apart.
    let same = number(&ood[1]["auroc"]);
    assert!((same - 0.5).abs() < 0.15, "{same}");
    assert!(
        fs::read_to_string(&page)
            .unwrap()
            .contains("Predictive entropy")
    );

    let held_out = json(&["evaluate", path(&run), "--held-out", "--json"]);
    assert_eq!(held_out["inputs"], 100);
    let table = success(&["evaluate", path(&run), "--first", "50"]);
    assert!(
        table.contains("accuracy") && table.contains("ECE, 15 bins"),
        "{table}"
    );

    let unknown = ["evaluate", path(&run), "--ood", "shpaes"];
    refusal(1, &unknown, &["shpaes", "glyphs, shapes"]);
    refusal(
        1,
        &["evaluate", path(root.path())],
        &["holds no run", "circulant train"],
    );
    let plain = trained(root.path(), "plain", &[]);
    let nothing = ["evaluate", path(&plain), "--held-out"];
    refusal(1, &nothing, &["nothing was held out", "--validation"]);
}
