//! Which examples are held out and taken, and what flags mean to a run that is resumed.

use std::fs;

use circulant_cli::parts::{DataConfig, Held, images};
use circulant_data::Split;

use crate::support::{Place, json, path, program, refusal, stderr, success};
use image::{GrayImage, Luma};

/// A folder per class, which is read class by class: the shade tells the class.
fn image_folder(root: &Place) -> Place {
    let folder = root.at("pictures");
    for class in 0..3_u8 {
        let place = folder.at(format!("class-{class}"));
        fs::create_dir_all(&place).unwrap();
        for index in 0..8_u8 {
            let image = GrayImage::from_pixel(6, 6, Luma([80 * class + index]));
            image.save(place.join(format!("{index}.png"))).unwrap();
        }
    }
    folder
}

fn train(root: &Place, data: &Place, name: &str, more: &str) -> Place {
    let out = root.at(name);
    success(format!(
        "train --out {out} --data {data} --steps 3 --batch 6 {more}"
    ));
    out
}

#[test]
fn held_out_examples_are_of_every_class() {
    let root = Place::temporary();
    let data = image_folder(&root);
    let settings = DataConfig {
        validation: 6,
        ..DataConfig::default()
    };
    let set = images(path(&data), Split::Train, &settings).unwrap();
    let held = Held::out_of(set, &settings).unwrap();
    assert_eq!(held.validation.unwrap().labels().counts(), [2, 2, 2]);
    assert_eq!(held.training.labels().counts(), [6, 6, 6]);

    let run = train(&root, &data, "run", "--validation 6");
    let evaluated = json(format!("evaluate {run} --held-out --json"));
    assert_eq!(evaluated["inputs"], 6);
    let few = root.at("few.csv");
    let certify = format!("certify {run} --data {data} --first 6");
    success(format!("{certify} --samples 0 --out {few}"));
    let text = fs::read_to_string(few).unwrap();
    let labels: Vec<&str> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(3).unwrap())
        .collect();
    assert_eq!(labels, ["0", "0", "1", "1", "2", "2"]);
}

#[test]
fn a_resumed_run_keeps_its_settings() {
    let root = Place::temporary();
    let data = image_folder(&root);
    let run = train(&root, &data, "run", "--validation 6 --seed 4");
    for (flags, parts) in [
        ("--seed 5", ["--seed", "training.seed = 4, got 5"]),
        (
            "--validation 7",
            ["--validation", "data.validation = 6, got 7"],
        ),
        (
            "--model dense",
            ["--model", "\"spectral-circulant\", got \"dense\""],
        ),
        ("--first 9", ["--first", "none, got 9"]),
        (
            "--slope learned",
            ["--slope", "learn_slope = false, got true"],
        ),
        ("--standardise", ["--standardise", "raw inputs"]),
        ("--steps 0", ["training.steps", "1 or more"]),
    ] {
        refusal(1, format!("train --resume {run} {flags}"), &parts);
    }
    // What the run has may be said again, and what does not matter to it may change.
    let same = "--seed 4 --validation 6 --batch 6";
    let other = "--steps 5 --checkpoint-every 2 --json";
    let summary = json(format!("train --resume {run} {same} {other}"));
    assert_eq!(summary["steps"], 5);
    let config = fs::read_to_string(run.at("config.toml")).unwrap();
    assert!(config.contains("steps = 5") && config.contains("checkpoint_every = 2"));
}

#[test]
fn a_model_that_learned_nothing_says_so() {
    let root = Place::temporary();
    let data = root.at("table.csv");
    let row = |i: usize| {
        let kind = ["rare", "usual"][usize::from(!i.is_multiple_of(3))];
        format!("{},{},{kind}\n", i % 5, i % 7)
    };
    let rows: String = (0..60).map(row).collect();
    fs::write(&data, format!("u,v,kind\n{rows}")).unwrap();
    let run = |out: &str, more: &str| {
        let flags = format!("--data {data} --label-name kind --rank 1 {more}");
        let line = format!("train --out {} {flags}", root.at(out));
        let output = program(line).output().unwrap();
        let message = stderr(&output);
        assert!(output.status.success(), "{message}");
        message
    };
    let warning = "no better than always answering usual (0.667)";
    for (out, more) in [("all", "--steps 3"), ("held", "--steps 3 --validation 15")] {
        let message = run(out, more);
        assert_eq!(message.matches(warning).count(), 1, "{message}");
    }
    // Classes that can be told apart are.
    let easy: String = (0..60)
        .map(|i| format!("{0},{0},{1}\n", [1, -1][i % 2], ["yes", "no"][i % 2]))
        .collect();
    fs::write(&data, format!("u,v,kind\n{easy}")).unwrap();
    let message = run("easy", "--steps 200 --model dense --learning-rate 0.05");
    assert!(!message.contains("no better"), "{message}");
}
