//! `reproduce mnist` and `evaluate` as a user runs them, on drawn digits and without a network.

use std::fs;
use std::path::PathBuf;

use crate::support::{
    Place, circulant, json, json_file, program, refusal, stderr, success, trained, words,
};
use serde_json::Value;

fn reproduce(out: &Place, more: &str) -> String {
    let steps = if more.contains("--steps") {
        ""
    } else {
        "--steps 4"
    };
    format!("reproduce mnist --first 200 --samples 3 --out {out} {more} {steps}")
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
    let root = Place::temporary();
    let out = root.at("mnist");
    let results = json(reproduce(&out, "--data glyphs --seeds 0,5 --json"));
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
    assert_eq!(json_file(out.at("results.json")), results);
    let page = fs::read_to_string(out.at("report.html")).unwrap();
    assert!(page.contains("not on MNIST") && page.contains("</html>"));
    for figure in words("size elbo entropy-6 reliability-1 spectrum-2 certified") {
        let figure = fs::read_to_string(out.at(format!("figures/{figure}.svg"))).unwrap();
        assert!(figure.starts_with("<svg") || figure.starts_with("<?xml"));
    }
    for file in words("config.toml run.json steps.jsonl checkpoint.safetensors") {
        assert!(out.at("runs/dense/seed-5").join(file).exists(), "{file}");
    }

    // Again, one of them: nothing is trained twice, and everything but the clock is the same.
    let one = "--data glyphs --seeds 0,5 --models circulant --json";
    let again = json(reproduce(&out, one));
    for key in ["accuracy", "nll", "auroc"] {
        assert_eq!(again["models"][0][key], models[3][key]);
    }
    let steps = fs::read_to_string(out.at("runs/circulant/seed-0/steps.jsonl")).unwrap();
    assert_eq!(steps.lines().count(), 4);

    // Other settings do not mix with these.
    let other = reproduce(&out, "--data glyphs --steps 5");
    refusal(1, &other, &["other settings", "--out"]);
}

#[test]
fn variants_run_and_the_table_warns_of_glyphs() {
    let root = Place::temporary();
    let out = root.at("mnist");
    let more = "--data glyphs --seeds 1 --models circulant --beyond --steps 1";
    let table = success(reproduce(&out, more));
    assert!(table.starts_with("NOT MNIST"), "{table}");
    assert!(table.contains("spatial circulant") && table.contains("three spectral circulant"));
    let results = json_file(out.at("results.json"));
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
fn other_methods_run_on_the_same_models() {
    let root = Place::temporary();
    let out = root.at("mnist");
    let line = reproduce(
        &out,
        "--data glyphs --seeds 3 --models circulant --baselines --json",
    );
    let results = json(&line);
    let lines = results["baselines"].as_array().unwrap();
    assert_eq!(lines.len(), 2 * 8);
    let find = |model: &str, method: &str| {
        let mut lines = lines.iter();
        let own = |line: &&Value| line["model"] == model && line["method"] == method;
        lines
            .find(own)
            .unwrap_or_else(|| panic!("{model} {method}"))
    };
    for (model, weights) in [
        ("spectral-circulant", 8_624),
        ("block-circulant-12", 60_112),
    ] {
        let softmax = find(model, "softmax");
        assert_eq!(softmax["weights"], weights);
        let stored = |method| find(model, method)["stored"].as_u64().unwrap();
        assert!(stored("softmax") > weights && stored("ours") > 2 * weights);
        assert_eq!(stored("ensemble"), 5 * stored("softmax"));
        assert_eq!(stored("temperature"), stored("softmax") + 1);
        // A temperature and a score leave the classes as they are.
        for method in ["temperature", "density"] {
            assert_eq!(find(model, method)["accuracy"], softmax["accuracy"]);
        }
        assert_ne!(find(model, "temperature")["nll"], softmax["nll"]);
        assert_ne!(find(model, "density")["auroc"], softmax["auroc"]);
        assert_eq!(find(model, "density")["nll"], softmax["nll"]);
    }
    let page = fs::read_to_string(out.at("report.html")).unwrap();
    assert!(page.contains("last-layer Laplace"));
    // Nothing is done twice, clocks included.
    assert_eq!(json(&line)["baselines"], results["baselines"]);
}

#[test]
fn without_data_and_network_it_falls_back_or_refuses() {
    let root = Place::temporary();
    let cache = root.at("cache");
    let out = root.at("auto");
    let more = "--offline --seeds 0 --models bccb --steps 1";
    let output = program(reproduce(&out, more))
        .env("CIRCULANT_CACHE", &*cache)
        .output()
        .unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert!(message.contains("NOT MNIST"), "{message}");
    let page = fs::read_to_string(out.at("report.html")).unwrap();
    assert!(page.contains("MNIST could not be had"));

    let refused = root.at("mnist");
    let more = format!("{more} --data mnist");
    let output = program(reproduce(&refused, &more))
        .env("CIRCULANT_CACHE", &*cache)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.contains("--data glyphs"), "{message}");
    assert!(!refused.exists());
}

#[test]
fn wrong_usage_is_told_from_failure() {
    let out = &Place::from(PathBuf::from("nowhere"));
    refusal(2, reproduce(out, "--seeds one"), &["one"]);
    refusal(2, reproduce(out, "--models resnet"), &["spectral-bccb"]);
    refusal(2, "reproduce imagenet", &["imagenet"]);
    let none = reproduce(out, "--data glyphs --steps 0");
    refusal(1, none, &["1 or more"]);
    let file = Place::temporary().at("file");
    fs::write(&file, "").unwrap();
    let line = reproduce(&file, "--data glyphs --seeds 0");
    refusal(1, line, &["cannot make the folder"]);
    assert_eq!(circulant("reproduce").status.code(), Some(2));
}

#[test]
fn a_run_is_evaluated_with_out_of_distribution_data() {
    let root = Place::temporary();
    let run = trained(&root, "run", "--validation 100");
    let page = root.at("page.html");
    let flags = "--first 150 --samples 4 --ood shapes --ood glyphs:train --intervals";
    let evaluated = json(format!("evaluate {run} --json {flags} --report {page}"));
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
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains("Predictive entropy"));

    let held_out = json(format!("evaluate {run} --held-out --json"));
    assert_eq!(held_out["inputs"], 100);
    let table = success(format!("evaluate {run} --first 50"));
    assert!(
        table.contains("accuracy") && table.contains("ECE, 15 bins"),
        "{table}"
    );

    let unknown = format!("evaluate {run} --ood shpaes");
    refusal(1, unknown, &["shpaes", "glyphs, shapes"]);
    refusal(
        1,
        format!("evaluate {root}"),
        &["holds no run", "circulant train"],
    );
    let plain = trained(&root, "plain", "");
    let nothing = format!("evaluate {plain} --held-out");
    refusal(1, &nothing, &["nothing was held out", "--validation"]);
}
