//! What cannot work: the exit code, a message that says what to do, nothing broken on the way.

use std::fs;

use crate::support::{Place, QUICK, contents, copy, npy, refusal, small, success, trained};

/// All commands that use a run refuse it with these words.
fn unusable(run: &Place, data: &Place, parts: &[&str]) {
    refusal(1, format!("predict {run} --data {data}"), parts);
    refusal(1, format!("certify {run} --data {data}"), parts);
    refusal(1, format!("inspect {run}"), parts);
}

#[test]
fn damaged_checkpoints() {
    let root = Place::temporary();
    let (run, data) = small(&root);
    let flags = format!("--data {data} --steps 1 --model dense");
    let other = trained(&root, "other", flags);
    let whole = fs::read(run.at("checkpoint.safetensors")).unwrap();
    let mut flipped = whole.clone();
    let middle = whole.len() / 2;
    flipped[middle] ^= 0x40;
    let broken = root.at("broken");
    let incomplete = "not a complete checkpoint";
    let foreign = fs::read(other.at("checkpoint.safetensors")).unwrap();
    for (what, bytes, part) in [
        ("truncated", whole[..middle].to_vec(), incomplete),
        ("corrupt", flipped, "checksum"),
        ("empty", Vec::new(), incomplete),
        (
            "text",
            b"these are no numbers, but words".to_vec(),
            incomplete,
        ),
        ("foreign", foreign, "was made with model"),
    ] {
        copy(&run, &broken);
        let place = broken.at("checkpoint.safetensors");
        fs::write(&place, &bytes).unwrap();
        unusable(
            &broken,
            &data,
            &[part, "copy it again", "circulant train --config"],
        );
        let before = contents(&broken);
        refusal(
            1,
            format!("train --resume {broken} --steps 5"),
            &[part, "circulant train --config"],
        );
        assert!(fs::read(&place).unwrap() == bytes, "{what}: left as it is");
        assert_eq!(before.len(), contents(&broken).len());
        fs::remove_dir_all(&broken).unwrap();
    }
    copy(&run, &broken);
    fs::remove_file(broken.at("checkpoint.safetensors")).unwrap();
    unusable(
        &broken,
        &data,
        &["no checkpoint yet", "circulant train --resume"],
    );
}

#[test]
fn damaged_settings_and_facts() {
    let root = Place::temporary();
    let (run, data) = small(&root);
    let broken = root.at("broken");
    let text = |name: &str| fs::read_to_string(run.at(name)).unwrap();
    let (config, facts) = (text("config.toml"), text("run.json"));
    let damaged = |name: &str, content: &str, parts: [&str; 2]| {
        assert!(
            content != config && content != facts,
            "{parts:?}: something is changed"
        );
        copy(&run, &broken);
        fs::write(broken.at(name), content).unwrap();
        unusable(&broken, &data, &parts);
        fs::remove_dir_all(&broken).unwrap();
    };
    let settings = |content: &str, parts| damaged("config.toml", content, parts);
    let changed = |from, to, parts| settings(&config.replace(from, to), parts);
    settings("", ["is damaged", "put a whole copy back, or train again"]);
    let half = &config[..config.find("[training]").unwrap()];
    settings(half, ["training is missing", "train again"]);
    changed(
        "seed = 0\n",
        "",
        ["training.seed is missing", "train again"],
    );
    changed("seed = 0", "sead = 0", ["sead", "not understood"]);
    changed(
        "steps = 3",
        "steps = 0",
        ["training.steps", "expected 1 or more"],
    );
    changed("steps = 3", "steps = ", ["config.toml", "not understood"]);
    let other = ["was made with model", "copy it again"];
    changed("\"spectral-circulant\"", "\"bccb\"", other);
    for content in ["", &facts[..facts.len() / 2], "{\"an\": \"other thing\"}"] {
        damaged("run.json", content, ["is damaged", "train again"]);
    }
    let classes = |count| facts.replace("\"classes\": 3", &format!("\"classes\": {count}"));
    damaged("run.json", &classes(4), other);
    damaged("run.json", &classes(0), ["cannot be made", "classes"]);
    copy(&run, &broken);
    fs::remove_file(broken.at("run.json")).unwrap();
    unusable(&broken, &data, &["run.json", "put it back, or train again"]);
    fs::remove_file(broken.at("config.toml")).unwrap();
    unusable(&broken, &data, &["holds no run", "circulant train"]);
    unusable(
        &root.at("nowhere"),
        &data,
        &["holds no run", "circulant train"],
    );
}

#[test]
fn inputs_that_do_not_fit() {
    let root = Place::temporary();
    let (run, data) = small(&root);
    let file = |name: &str| root.at(name);
    npy(&file("wide.npy"), &[2, 1, 6, 7], &[0.5; 84]);
    npy(&file("nan.npy"), &[2, 1, 6, 6], &[f32::NAN; 72]);
    npy(&file("rows.npy"), &[2, 35], &[0.5; 70]);
    fs::write(file("empty.npy"), "").unwrap();
    let bytes = fs::read(&data).unwrap();
    fs::write(file("short.npy"), &bytes[..bytes.len() - 5]).unwrap();
    fs::write(file("words.csv"), "a,b\nsome,words\n").unwrap();
    for (name, parts) in [
        (
            "wide.npy",
            &[
                "expected images of 1 x 6 x 6",
                "found 1 x 6 x 7",
                "use other data or another run",
            ][..],
        ),
        (
            "nan.npy",
            &["NaN", "expected finite numbers", "remove or replace"],
        ),
        ("rows.npy", &["expected 36 numbers per row", "35"]),
        ("empty.npy", &["empty.npy"]),
        ("short.npy", &["cut short"]),
        ("words.csv", &["words.csv, line 2"]),
        ("nowhere.npy", &["nowhere.npy", "data set by name"]),
    ] {
        for command in ["predict", "certify"] {
            refusal(1, format!("{command} {run} --data {}", file(name)), parts);
        }
    }
    refusal(
        1,
        format!("predict {run} --data glyphs --first 5"),
        &["expected images of 1 x 6 x 6", "1 x 28 x 28"],
    );
    // Labels that are no classes of the run.
    npy(&file("labels.npy"), &[30], &[3.0; 30]);
    refusal(
        1,
        format!("certify {run} --data {data}"),
        &[
            "class 3",
            "expected one of the run's 3 classes",
            "--predicted",
        ],
    );
    success(format!(
        "certify {run} --data {data} --predicted --samples 1"
    ));
    success(format!("predict {run} --data {data} --samples 1"));
    npy(&file("labels.npy"), &[29], &[0.0; 29]);
    refusal(
        1,
        format!("predict {run} --data {data}"),
        &["30 examples and 29 labels"],
    );
    refusal(
        1,
        format!("certify {run} --data {data} --first 0"),
        &["expected 1 or more"],
    );
    refusal(
        1,
        format!("certify {run} --data {data} --radii -1"),
        &["--radii"],
    );
}

#[test]
fn wrong_usage() {
    for (line, part) in [
        ("predict run", "--data"),
        ("predict run --data glyphs --samples 0", "1..=65536"),
        (
            "predict run --data glyphs --out p.parquet",
            ".csv, .json, .jsonl, .npy, found .parquet",
        ),
        ("predict run --data glyphs --out p", "no extension"),
        ("predict run --data glyphs --json --out p.csv", "--json"),
        (
            "certify run --data glyphs --out p.npy",
            ".csv, .json, found .npy",
        ),
        ("inspect", "RUN"),
        ("train --data glyphs", "--out"),
        ("train --out x --model spectral", "spectral-bccb"),
    ] {
        refusal(2, line, &[part]);
    }
}

#[test]
fn trainings_that_cannot_begin() {
    let root = Place::temporary();
    let file = |name: &str| root.at(name);
    let out = file("run");
    let refused = |flags: &str, parts: &[&str]| {
        refusal(1, format!("train --out {out} {flags}"), parts);
        assert!(!out.exists(), "{flags}: nothing is left");
    };
    for (flags, parts) in [
        ("--rank 785", &["hidden.coordinates", "1..=784", "785"][..]),
        ("--learning-rate 0", &["training.learning_rate", "positive"]),
        ("--slope steep", &["--slope", "learned"]),
        (
            "--validation 400",
            &["data.validation", "fewer than the 400"],
        ),
        ("--channels 3", &["such a model cannot be made", "3"]),
    ] {
        refused(&format!("{QUICK} {flags}"), parts);
    }
    refused("--data mnist", &["circulant data fetch mnist"]);
    refused("--data minst", &["mnist, fashion-mnist"]);

    let settings = file("settings.toml");
    for (text, part) in [
        ("[training]\nstep = 7\n", "`step`"),
        ("[model]\nkind = \"spectrum\"\n", "spectral-bccb"),
        ("[training\n", "settings.toml"),
    ] {
        fs::write(&settings, text).unwrap();
        refused(&format!("--config {settings}"), &["not understood", part]);
    }
    let nowhere = format!("--config {}", file("nowhere.toml"));
    refused(&nowhere, &["cannot read the settings"]);

    fs::write(file("empty.csv"), "").unwrap();
    fs::write(file("header.csv"), "a,b,label\n").unwrap();
    fs::write(file("nan.csv"), "a,label\nNaN,0\n1,1\n").unwrap();
    fs::write(file("short.csv"), "a,b,label\n1,2,0\n1,2\n").unwrap();
    fs::write(file("unlabelled.csv"), "a,b\n1,2\n").unwrap();
    npy(&file("x_train.npy"), &[2, 3], &[1.0; 6]);
    npy(&file("y_train.npy"), &[3], &[0.0; 3]);
    for (name, part) in [
        ("empty.csv", "empty"),
        ("header.csv", "lines with a label"),
        ("nan.csv", "--missing mean"),
        ("short.csv", "line 3"),
        ("unlabelled.csv", "--target NAME"),
        ("x_train.npy", "2 examples and 3 labels"),
        ("y_train.npy", "y_train.npy"),
    ] {
        refused(&format!("--data {}", file(name)), &[part]);
    }
}

#[test]
fn classes_that_nothing_can_be_learned_from() {
    let root = Place::temporary();
    let (file, out) = (|name: &str| root.at(name), root.at("run"));
    npy(&file("x_train.npy"), &[4, 1, 2, 2], &[0.5; 16]);
    let refused = |labels: &[f32], parts: &[&str]| {
        npy(&file("y_train.npy"), &[4], labels);
        let line = format!("train --data {} --steps 1 --out {out}", file("x_train.npy"));
        refusal(1, line, parts);
        assert!(!out.exists(), "nothing is left");
    };
    refused(
        &[1.0; 4],
        &["two classes at least", "4 of the class 1 alone"],
    );
    refused(
        &[0.0, 5.0, 9.0, 2.0],
        &["10 classes in 4 examples", "without gaps"],
    );
    fs::remove_file(file("y_train.npy")).unwrap();
    let line = format!("train --data {} --out {out}", file("x_train.npy"));
    refusal(1, line, &["one folder per class", "--labels"]);
}
