//! `reproduce vit` and `curvature` as a user runs them, on drawn digits.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Place, json, program, refusal, stderr, success, words};
use image::{GrayImage, Luma, Rgb, RgbImage};
use serde_json::Value;

const WIDTH: usize = 32;

/// Four patches per digit and one narrow block: an epoch takes a moment.
fn reproduce(out: &Place, more: &str) -> String {
    let mut line = format!("reproduce vit --out {out} {more}");
    let width = format!("--width {WIDTH}");
    let usual = "--data glyphs,--first 80,--patch 14,--batch 20,--epochs 3,--warm-up 1,--depth 1";
    for flag in usual.split(',').chain([width.as_str()]) {
        if !words(more).contains(&words(flag)[0]) {
            line = format!("{line} {flag}");
        }
    }
    line
}

fn run(out: &Place, kind: &str) -> Place {
    out.at("runs").at(kind).at("seed-0")
}

/// Without what a clock says.
fn epochs(folder: &Place) -> Vec<Value> {
    let text = fs::read_to_string(folder.at("epochs.jsonl")).unwrap();
    let line = |line: &str| {
        let mut value: Value = serde_json::from_str(line).expect("whole lines");
        let fields = value.as_object_mut().unwrap();
        fields.remove("seconds");
        fields.remove("images_per_second");
        value
    };
    text.lines().map(line).collect()
}

#[test]
fn both_models_are_trained_tested_and_measured() {
    let root = Place::temporary();
    let out = root.at("vit");
    let line = reproduce(&out, "--json");
    let results = json(&line);
    assert_eq!(results["images"], serde_json::json!([72, 8, 80]));
    assert_eq!(results["stopped_by"], "schedule");
    let models = results["models"].as_array().unwrap();
    let d = WIDTH;
    let projections = [("dense", d * d + d), ("spectral", d + 1)];
    for (model, (name, projection)) in models.iter().zip(projections) {
        assert_eq!(model["name"], name);
        // Patches, class token, positions, the block without projections, final norm, head; then four projections.
        let block = 4 * d + 2 * d * 4 * d + 5 * d;
        let rest = (196 + 1) * d + d + 5 * d + block + 2 * d + 10 * d + 10;
        assert_eq!(model["parameters"], rest + 4 * projection);
        let run = &model["runs"][0];
        assert_eq!(run["epochs"], 3);
        assert_eq!(run["images"], 3 * 60);
        for space in run["curvature"]["spaces"].as_array().unwrap() {
            assert!(space["gauss_newton"]["value"].as_f64().unwrap() > 0.0);
            assert_eq!(space["hessian"]["converged"], true);
        }
        assert_eq!(run["curvature"]["spaces"][1]["dimension"], 4 * projection);
        let accuracy = model["accuracy"]["mean"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&accuracy));
    }
    let page = fs::read_to_string(out.at("report.html")).unwrap();
    assert!(page.contains("Gauss-Newton") && page.contains("</html>"));
    assert!(out.at("figures/learning-1.svg").exists());
    for kind in ["dense", "spectral"] {
        let folder = run(&out, kind);
        let lines = epochs(&folder);
        assert_eq!(lines.len(), 3);
        // The loss of the last epoch's checkpoint is the smallest, or an earlier one was kept.
        let losses: Vec<f64> = lines
            .iter()
            .map(|l| l["validation_loss"].as_f64().unwrap())
            .collect();
        let best = (0..3)
            .min_by(|&a, &b| losses[a].total_cmp(&losses[b]))
            .unwrap();
        let model = models.iter().find(|model| model["name"] == kind).unwrap();
        assert_eq!(model["runs"][0]["best_epoch"], best + 1);
        for file in words("config.toml run.json last.safetensors best.safetensors curves.svg") {
            assert!(folder.at(file).exists(), "{file}");
        }
    }

    // Again: nothing is trained or measured twice.
    let before = fs::read(run(&out, "dense").at("last.safetensors")).unwrap();
    let again = json(&line);
    assert_eq!(again, results);
    assert!(fs::read(run(&out, "dense").at("last.safetensors")).unwrap() == before);
    let other = reproduce(&out, "--epochs 4");
    refusal(1, other, &["other settings", "--out"]);

    // The command agrees with the report.
    let checkpoint = run(&out, "spectral").at("best.safetensors");
    let flags = "--images 8 --subspace attention --json";
    let measured = json(format!("curvature {checkpoint} {flags}"));
    assert_eq!(
        measured["spaces"][0]["hessian"],
        models[1]["runs"][0]["curvature"]["spaces"][1]["hessian"]
    );
    let dense = run(&out, "dense");
    let table = success(format!("curvature {dense} --images 4 --max-products 2"));
    assert!(
        table.contains("all parameters") && table.contains("attention only"),
        "{table}"
    );
    assert!(table.contains("not converged"), "{table}");
    let many = format!("curvature {checkpoint} --images 9");
    refusal(1, many, &["1 to 8", "got 9"]);
    let nothing = format!("curvature {root}");
    refusal(1, nothing, &["holds no run", "reproduce vit"]);
    let other = format!("curvature {checkpoint} --data shapes");
    refusal(1, &other, &["not the data of this run", "--data"]);
}

#[test]
fn a_killed_run_resumes_as_if_nothing_had_happened() {
    let root = Place::temporary();
    let [whole, killed] = ["whole", "killed"].map(|name| root.at(name));
    // A model that takes long enough to be interrupted.
    let more = "--width 64 --depth 2 --epochs 8 --no-curvature --flip --crop 2";
    success(reproduce(&whole, more));
    for signal in ["-KILL", "-INT"] {
        let mut command = program(reproduce(&killed, more));
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let begin = Instant::now();
        let folder = run(&killed, "spectral");
        let reached =
            || fs::read_to_string(folder.at("epochs.jsonl")).map_or(0, |text| text.lines().count());
        let already = reached();
        while reached() <= already {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "training does not resume"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        let sent = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
        let output = child.wait_with_output().unwrap();
        let message = stderr(&output);
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{message}"
        );
        if signal == "-INT" {
            assert!(
                message.contains("the same command resumes there"),
                "{message}"
            );
        }
    }
    success(reproduce(&killed, more));
    for kind in ["dense", "spectral"] {
        assert_eq!(epochs(&run(&killed, kind)), epochs(&run(&whole, kind)));
        let best = |out: &Place| fs::read(run(out, kind).at("best.safetensors")).unwrap();
        assert!(best(&killed) == best(&whole), "the same bytes");
    }
}

#[test]
fn a_budget_stops_both_models_alike() {
    let root = Place::temporary();
    let out = root.at("vit");
    let table = success(reproduce(&out, "--budget 1ms --epochs 50 --no-curvature"));
    assert!(
        table.contains("budget of 1ms") && table.contains("same 60 images"),
        "{table}"
    );
    for kind in ["dense", "spectral"] {
        assert_eq!(epochs(&run(&out, kind)).len(), 1);
    }
    // More time resumes where it stopped.
    let more = reproduce(&out, "--budget 1h --epochs 50 --no-curvature --patience 1");
    refusal(1, more, &["other settings"]);
}

#[test]
fn patience_ends_a_run() {
    let root = Place::temporary();
    let out = root.at("vit");
    // A rate that ruins the model: the first epochs are the best ones.
    let flags = "--epochs 60 --patience 2 --learning-rate 0.3 --no-curvature";
    let more = format!("{flags} --models dense --json");
    let results = json(reproduce(&out, &more));
    let run = &results["models"][0]["runs"][0];
    let (best, epochs) = (
        run["best_epoch"].as_u64().unwrap(),
        run["epochs"].as_u64().unwrap(),
    );
    assert!(epochs < 60 && epochs == best + 2, "{best} {epochs}");
}

#[test]
fn tiny_imagenet_is_read_from_its_folder() {
    let root = Place::temporary();
    let folder = root.at("tiny-imagenet-200");
    for class in 0..3_u8 {
        let name = format!("n0{class}");
        let images = folder.at("train").join(&name).join("images");
        fs::create_dir_all(&images).unwrap();
        for index in 0..6_u8 {
            let file = images.join(format!("{name}_{index}.JPEG"));
            if index == 0 {
                GrayImage::from_pixel(16, 16, Luma([class * 90]))
                    .save(file)
                    .unwrap();
            } else {
                RgbImage::from_pixel(16, 16, Rgb([class * 90, 20 * index, 7]))
                    .save(file)
                    .unwrap();
            }
        }
    }
    fs::create_dir_all(folder.at("val/images")).unwrap();
    let mut annotations = String::new();
    for index in 0..4 {
        let file = format!("val_{index}.JPEG");
        RgbImage::new(16, 16)
            .save(folder.at("val/images").join(&file))
            .unwrap();
        annotations += &format!("{file}\tn0{}\t0\t0\t15\t15\n", index % 3);
    }
    fs::write(folder.at("val/val_annotations.txt"), annotations).unwrap();
    let out = root.at("vit");
    let cache = root.at("cache");
    let flags = "--patch 8 --batch 8 --epochs 1 --warm-up 0 --depth 1 --json";
    let command = |from: &str| {
        let line =
            format!("reproduce vit --data tiny-imagenet --out {out} {flags} --width {WIDTH}");
        let mut command = program(format!("{line} {from}"));
        command.env("CIRCULANT_CACHE", &*cache).output().unwrap()
    };
    let missing = command("");
    let message = stderr(&missing);
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        message.contains("val_annotations.txt") && message.contains("unpack"),
        "{message}"
    );
    let output = command(&format!("--from {root}"));
    assert!(output.status.success(), "{}", stderr(&output));
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(results["images"], serde_json::json!([17, 1, 4]));
    assert_eq!(fs::read_dir(cache.at("decoded")).unwrap().count(), 2);
}

#[test]
fn what_cannot_run_is_refused() {
    let root = Place::temporary();
    let out = root.at("vit");
    for (more, parts) in [
        ("--data cifar10 --offline", &["cifar10"][..]),
        ("--data nowhere", &["nowhere", "data set"]),
        ("--batch 73", &["batch", "72", "73"]),
        ("--batch 0", &["batch", "1 or more"]),
        ("--patch 5", &["28", "5"]),
        ("--epochs 0", &["epochs", "1 or more"]),
        ("--warm-up 9", &["warm_up", "3", "9"]),
        ("--learning-rate nan", &["learning_rate", "NaN"]),
        ("--validation 80", &["validation", "80"]),
        ("--seeds 1,1", &["twice"]),
    ] {
        refusal(1, reproduce(&out, more), parts);
        assert!(!out.at("results.json").exists());
    }
    refusal(2, reproduce(&out, "--budget soon"), &["--budget"]);
    refusal(2, reproduce(&out, "--size 64"), &["HEIGHTxWIDTH"]);

    // Damage is noticed before anything is overwritten.
    let out = root.at("damaged");
    let line = reproduce(&out, "--models spectral --epochs 2 --no-curvature");
    success(&line);
    let last = run(&out, "spectral").at("last.safetensors");
    let whole = fs::read(&last).unwrap();
    fs::write(&last, &whole[..whole.len() / 2]).unwrap();
    refusal(1, &line, &["cannot resume", "put a whole copy"]);
    fs::write(&last, &whole).unwrap();
    let epochs = run(&out, "spectral").at("epochs.jsonl");
    let lines = fs::read_to_string(&epochs).unwrap();
    fs::write(&epochs, lines.lines().next().unwrap()).unwrap();
    refusal(1, &line, &["epochs.jsonl has 1 epochs", "2"]);
    fs::write(&epochs, &lines).unwrap();
    success(&line);
}
