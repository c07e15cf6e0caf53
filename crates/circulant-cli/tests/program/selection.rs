//! Which examples are held out and taken, and what flags mean to a run that is resumed.

use std::fs;
use std::path::Path;

use circulant_cli::experiments::config::DataConfig;
use circulant_cli::experiments::{Held, source};
use circulant_data::Split;

use crate::support::{json, path, program, refusal, stderr, success, words};
use image::{GrayImage, Luma};
use tempfile::TempDir;

/// A folder per class, which is read class by class: the shade tells the class.
fn image_folder(root: &Path) -> std::path::PathBuf {
    let folder = root.join("pictures");
    for class in 0..3_u8 {
        let place = folder.join(format!("class-{class}"));
        fs::create_dir_all(&place).unwrap();
        for index in 0..8_u8 {
            let image = GrayImage::from_pixel(6, 6, Luma([80 * class + index]));
            image.save(place.join(format!("{index}.png"))).unwrap();
        }
    }
    folder
}

fn train(root: &Path, data: &Path, name: &str, more: &[&str]) -> std::path::PathBuf {
    let out = root.join(name);
    let flags = ["--data", path(data), "--steps", "3", "--batch", "6"];
    success(&[&["train", "--out", path(&out)][..], &flags, more].concat());
    out
}

#[test]
fn held_out_examples_are_of_every_class() {
    let root = TempDir::new().unwrap();
    let data = image_folder(root.path());
    let settings = DataConfig {
        validation: 6,
        ..DataConfig::default()
    };
    let set = source::images(path(&data), Split::Train, &settings).unwrap();
    let held = Held::out_of(set, &settings).unwrap();
    assert_eq!(held.validation.unwrap().labels().counts(), [2, 2, 2]);
    assert_eq!(held.training.labels().counts(), [6, 6, 6]);

    let run = train(root.path(), &data, "run", &["--validation", "6"]);
    let evaluated = json(&["evaluate", path(&run), "--held-out", "--json"]);
    assert_eq!(evaluated["inputs"], 6);
    let few = root.path().join("few.csv");
    let certify = ["certify", path(&run), "--data", path(&data), "--first", "6"];
    success(&[&certify[..], &["--samples", "0", "--out", path(&few)]].concat());
    let text = fs::read_to_string(few).unwrap();
    let labels: Vec<&str> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(2).unwrap())
        .collect();
    assert_eq!(labels, ["0", "0", "1", "1", "2", "2"]);
}

#[test]
fn a_resumed_run_keeps_its_settings() {
    let root = TempDir::new().unwrap();
    let data = image_folder(root.path());
    let more = ["--validation", "6", "--seed", "4"];
    let run = train(root.path(), &data, "run", &more);
    let resume = ["train", "--resume", path(&run)];
    for (flags, parts) in [
        (&["--seed", "5"][..], ["--seed", "training.seed = 4, got 5"]),
        (
            &["--validation", "7"],
            ["--validation", "data.validation = 6, got 7"],
        ),
        (
            &["--model", "dense"],
            ["--model", "\"spectral-circulant\", got \"dense\""],
        ),
        (&["--first", "9"], ["--first", "none, got 9"]),
        (
            &["--slope", "learned"],
            ["--slope", "learn_slope = false, got true"],
        ),
        (&["--standardise"], ["--standardise", "raw inputs"]),
        (&["--steps", "0"], ["training.steps", "1 or more"]),
    ] {
        refusal(1, &[&resume[..], flags].concat(), &parts);
    }
    // What the run has may be said again, and what does not matter to it may change.
    let same = ["--seed", "4", "--validation", "6", "--batch", "6"];
    let other = ["--steps", "5", "--checkpoint-every", "2", "--json"];
    let summary = json(&[&resume[..], &same, &other].concat());
    assert_eq!(summary["steps"], 5);
    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    assert!(config.contains("steps = 5") && config.contains("checkpoint_every = 2"));
}

#[test]
fn a_model_that_learned_nothing_says_so() {
    let root = TempDir::new().unwrap();
    let data = root.path().join("table.csv");
    let row = |i: usize| {
        format!(
            "{},{},{}\n",
            i % 5,
            i % 7,
            ["rare", "usual"][usize::from(!i.is_multiple_of(3))]
        )
    };
    let rows: String = (0..60).map(row).collect();
    fs::write(&data, format!("u,v,kind\n{rows}")).unwrap();
    let run = |out: &str, more: &[&str]| {
        let out = root.path().join(out);
        let flags = ["--data", path(&data), "--label-name", "kind", "--rank", "1"];
        let arguments = [&["train", "--out", path(&out)][..], &flags, more].concat();
        let output = program(&arguments).output().unwrap();
        let message = stderr(&output);
        assert!(output.status.success(), "{message}");
        message
    };
    let warning = "no better than always answering usual (0.667)";
    for (out, more) in [
        ("all", &["--steps", "3"][..]),
        ("held", &["--steps", "3", "--validation", "15"]),
    ] {
        let message = run(out, more);
        assert_eq!(message.matches(warning).count(), 1, "{message}");
    }
    // Classes that can be told apart are.
    let easy: String = (0..60)
        .map(|i| format!("{0},{0},{1}\n", [1, -1][i % 2], ["yes", "no"][i % 2]))
        .collect();
    fs::write(&data, format!("u,v,kind\n{easy}")).unwrap();
    let more = words("--steps 200 --model dense --learning-rate 0.05");
    let message = run("easy", &more);
    assert!(!message.contains("no better"), "{message}");
}
