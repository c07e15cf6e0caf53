//! What cannot work: the exit code, a message that says what to do, nothing broken on the way.

mod support;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::{QUICK, contents, copy, npy, path, program, refusal, stderr, success, trained};
use tempfile::TempDir;

/// A run with images of 6 x 6 in three classes, and its data.
fn small(root: &Path) -> (PathBuf, PathBuf) {
    let data = root.join("images.npy");
    let images: Vec<f32> = (0..30 * 36).map(|i| (i % 17) as f32 / 17.0).collect();
    npy(&data, &[30, 1, 6, 6], &images);
    let labels: Vec<f32> = (0..30).map(|i| (i % 3) as f32).collect();
    npy(&root.join("labels.npy"), &[30], &labels);
    let flags = ["--data", path(&data), "--steps", "3", "--batch", "10"];
    (trained(root, "run", &flags), data)
}

/// All commands that use a run refuse it with these words.
fn unusable(run: &Path, data: &Path, parts: &[&str]) {
    let (run, data) = (path(run), path(data));
    for arguments in [
        &["predict", run, "--data", data][..],
        &["certify", run, "--data", data],
        &["inspect", run],
    ] {
        refusal(1, arguments, parts);
    }
}

#[test]
fn damaged_checkpoints() {
    let root = TempDir::new().unwrap();
    let (run, data) = small(root.path());
    let other = trained(
        root.path(),
        "other",
        &["--data", path(&data), "--steps", "1", "--model", "dense"],
    );
    let whole = fs::read(run.join("checkpoint.safetensors")).unwrap();
    let mut flipped = whole.clone();
    let middle = whole.len() / 2;
    flipped[middle] ^= 0x40;
    let broken = root.path().join("broken");
    for (what, bytes, part) in [
        (
            "truncated",
            whole[..middle].to_vec(),
            "not a complete checkpoint",
        ),
        ("corrupt", flipped, "checksum"),
        ("empty", Vec::new(), "not a complete checkpoint"),
        (
            "text",
            b"these are no numbers, but words".to_vec(),
            "not a complete checkpoint",
        ),
        (
            "foreign",
            fs::read(other.join("checkpoint.safetensors")).unwrap(),
            "was made with model",
        ),
    ] {
        copy(&run, &broken);
        let place = broken.join("checkpoint.safetensors");
        fs::write(&place, &bytes).unwrap();
        unusable(
            &broken,
            &data,
            &[part, "copy it again", "circulant train --config"],
        );
        let before = contents(&broken);
        refusal(
            1,
            &["train", "--resume", path(&broken), "--steps", "5"],
            &[part, "circulant train --config"],
        );
        assert!(fs::read(&place).unwrap() == bytes, "{what}: left as it is");
        assert_eq!(before.len(), contents(&broken).len());
        fs::remove_dir_all(&broken).unwrap();
    }
    copy(&run, &broken);
    fs::remove_file(broken.join("checkpoint.safetensors")).unwrap();
    unusable(
        &broken,
        &data,
        &["no checkpoint yet", "circulant train --resume"],
    );
}

#[test]
fn damaged_settings_and_facts() {
    let root = TempDir::new().unwrap();
    let (run, data) = small(root.path());
    let broken = root.path().join("broken");
    let text = |name: &str| fs::read_to_string(run.join(name)).unwrap();
    let (config, facts) = (text("config.toml"), text("run.json"));
    for (name, content, parts) in [
        (
            "config.toml",
            String::new(),
            ["is damaged", "put a whole copy back, or train again"],
        ),
        (
            "config.toml",
            config[..config.find("[training]").unwrap()].to_owned(),
            ["training is missing", "train again"],
        ),
        (
            "config.toml",
            config.replace("seed = 0\n", ""),
            ["training.seed is missing", "train again"],
        ),
        (
            "config.toml",
            config.replace("seed = 0", "sead = 0"),
            ["sead", "not understood"],
        ),
        (
            "config.toml",
            config.replace("steps = 3", "steps = 0"),
            ["training.steps", "expected 1 or more"],
        ),
        (
            "config.toml",
            config.replace("steps = 3", "steps = "),
            ["config.toml", "not understood"],
        ),
        (
            "config.toml",
            config.replace("\"spectral-circulant\"", "\"bccb\""),
            ["was made with model", "copy it again"],
        ),
        ("run.json", String::new(), ["is damaged", "train again"]),
        (
            "run.json",
            facts[..facts.len() / 2].to_owned(),
            ["is damaged", "train again"],
        ),
        (
            "run.json",
            "{\"an\": \"other thing\"}".to_owned(),
            ["is damaged", "train again"],
        ),
        (
            "run.json",
            facts.replace("\"classes\": 3", "\"classes\": 4"),
            ["was made with model", "copy it again"],
        ),
        (
            "run.json",
            facts.replace("\"classes\": 3", "\"classes\": 0"),
            ["cannot be made", "classes"],
        ),
    ] {
        assert!(
            content != config && content != facts,
            "{parts:?}: something is changed"
        );
        copy(&run, &broken);
        fs::write(broken.join(name), content).unwrap();
        unusable(&broken, &data, &parts);
        fs::remove_dir_all(&broken).unwrap();
    }
    copy(&run, &broken);
    fs::remove_file(broken.join("run.json")).unwrap();
    unusable(&broken, &data, &["run.json", "put it back, or train again"]);
    fs::remove_file(broken.join("config.toml")).unwrap();
    unusable(&broken, &data, &["holds no run", "circulant train"]);
    unusable(
        &root.path().join("nowhere"),
        &data,
        &["holds no run", "circulant train"],
    );
}

#[test]
fn inputs_that_do_not_fit() {
    let root = TempDir::new().unwrap();
    let (run, data) = small(root.path());
    let run = path(&run);
    let file = |name: &str| root.path().join(name);
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
                "--size 6x6",
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
            refusal(1, &[command, run, "--data", path(&file(name))], parts);
        }
    }
    let glyphs = ["--data", "glyphs", "--first", "5"];
    refusal(
        1,
        &[&["predict", run][..], &glyphs].concat(),
        &["expected images of 1 x 6 x 6", "1 x 28 x 28"],
    );
    // Labels that are no classes of the run.
    npy(&file("labels.npy"), &[30], &[3.0; 30]);
    let data = path(&data);
    refusal(
        1,
        &["certify", run, "--data", data],
        &[
            "class 3",
            "expected one of the run's 3 classes",
            "--predicted",
        ],
    );
    success(&[
        "certify",
        run,
        "--data",
        data,
        "--predicted",
        "--samples",
        "1",
    ]);
    success(&["predict", run, "--data", data, "--samples", "1"]);
    npy(&file("labels.npy"), &[29], &[0.0; 29]);
    refusal(
        1,
        &["predict", run, "--data", data],
        &["30 examples and 29 labels"],
    );
    refusal(
        1,
        &["certify", run, "--data", data, "--first", "0"],
        &["expected 1 or more"],
    );
    refusal(
        1,
        &["certify", run, "--data", data, "--radii", "-1"],
        &["--radii"],
    );
}

#[test]
fn wrong_usage() {
    for (arguments, part) in [
        (&["predict", "run"][..], "--data"),
        (
            &["predict", "run", "--data", "glyphs", "--samples", "0"],
            "1..=65536",
        ),
        (
            &["predict", "run", "--data", "glyphs", "--out", "p.parquet"],
            ".csv, .json, .jsonl, .npy, found .parquet",
        ),
        (
            &["predict", "run", "--data", "glyphs", "--out", "p"],
            "no extension",
        ),
        (
            &[
                "predict", "run", "--data", "glyphs", "--json", "--out", "p.csv",
            ],
            "--json",
        ),
        (
            &["certify", "run", "--data", "glyphs", "--out", "p.npy"],
            ".csv, .json, found .npy",
        ),
        (&["inspect"], "RUN"),
        (&["train", "--data", "glyphs"], "--out"),
        (
            &["train", "--out", "x", "--model", "spectral"],
            "spectral-bccb",
        ),
    ] {
        refusal(2, arguments, &[part]);
    }
}

#[test]
fn trainings_that_cannot_begin() {
    let root = TempDir::new().unwrap();
    let file = |name: &str| root.path().join(name);
    let out = file("run");
    let refused = |flags: &[&str], parts: &[&str]| {
        refusal(
            1,
            &[&["train", "--out", path(&out)][..], flags].concat(),
            parts,
        );
        assert!(!out.exists(), "{flags:?}: nothing is left");
    };
    let quick = |more: &[&'static str]| [&QUICK[..], more].concat();
    refused(
        &quick(&["--rank", "785"]),
        &["hidden.coordinates", "1..=784", "785"],
    );
    refused(
        &quick(&["--learning-rate", "0"]),
        &["training.learning_rate", "positive"],
    );
    refused(&quick(&["--slope", "steep"]), &["--slope", "learned"]);
    refused(
        &quick(&["--validation", "400"]),
        &["data.validation", "fewer than the 400"],
    );
    refused(
        &quick(&["--channels", "3"]),
        &["such a model cannot be made", "3"],
    );
    refused(&["--data", "mnist"], &["circulant data fetch mnist"]);
    refused(&["--data", "minst"], &["mnist, fashion-mnist"]);

    let settings = file("settings.toml");
    for (text, part) in [
        ("[training]\nstep = 7\n", "`step`"),
        ("[model]\nkind = \"spectrum\"\n", "spectral-bccb"),
        ("[training\n", "settings.toml"),
    ] {
        fs::write(&settings, text).unwrap();
        refused(&["--config", path(&settings)], &["not understood", part]);
    }
    refused(
        &["--config", path(&file("nowhere.toml"))],
        &["cannot read the settings"],
    );

    fs::write(file("empty.csv"), "").unwrap();
    fs::write(file("header.csv"), "a,b,label\n").unwrap();
    fs::write(file("nan.csv"), "a,label\nNaN,0\n").unwrap();
    fs::write(file("short.csv"), "a,b,label\n1,2,0\n1,2\n").unwrap();
    fs::write(file("unlabelled.csv"), "a,b\n1,2\n").unwrap();
    npy(&file("x_train.npy"), &[2, 3], &[1.0; 6]);
    npy(&file("y_train.npy"), &[3], &[0.0; 3]);
    for (name, part) in [
        ("empty.csv", "empty"),
        ("header.csv", "lines with a label"),
        ("nan.csv", "NaN"),
        ("short.csv", "line 3"),
        ("unlabelled.csv", "--label-name"),
        ("x_train.npy", "2 examples and 3 labels"),
        ("y_train.npy", "y_train.npy"),
    ] {
        refused(&["--data", path(&file(name))], &[part]);
    }
}

#[test]
fn folders_and_files_that_cannot_be_written() {
    let root = TempDir::new().unwrap();
    let (run, data) = small(root.path());
    // Another run in the same place is refused, and nothing in it is touched.
    let before = contents(&run);
    let train = |out: &Path, parts: &[&str]| {
        refusal(
            1,
            &[&["train", "--out", path(out)][..], &QUICK].concat(),
            parts,
        );
    };
    train(&run, &["already holds a run", "--resume", "--out"]);
    assert!(before == contents(&run), "left as it was");
    train(root.path(), &["is not empty", "another folder with --out"]);
    // Tests may run as root, who may write everywhere but into a file.
    let file = root.path().join("file");
    fs::write(&file, "a file").unwrap();
    train(&file.join("run"), &["cannot make the folder"]);
    train(&file, &["cannot"]);
    let (run, data) = (path(&run), path(&data));
    let csv = file.join("p.csv");
    refusal(
        1,
        &["predict", run, "--data", data, "--out", path(&csv)],
        &["cannot write", "may you write there"],
    );
    refusal(
        1,
        &["certify", run, "--data", data, "--out", path(&csv)],
        &["cannot write", "may you write there"],
    );
    refusal(
        1,
        &["inspect", run, "--out", path(&file.join("p.html"))],
        &["cannot write", "--out"],
    );
    refusal(
        1,
        &["inspect", run, "--out", path(root.path())],
        &["names a folder"],
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "a file");
}

#[test]
fn full_disks() {
    let root = TempDir::new().unwrap();
    let (run, data) = small(root.path());
    let (run, data) = (path(&run), path(&data));
    let full = root.path().join("full.csv");
    symlink("/dev/full", &full).unwrap();
    let page = root.path().join("full.html");
    symlink("/dev/full", &page).unwrap();
    refusal(
        1,
        &["predict", run, "--data", data, "--out", path(&full)],
        &["cannot write", "space"],
    );
    refusal(
        1,
        &["certify", run, "--data", data, "--out", path(&full)],
        &["cannot write", "space"],
    );
    refusal(
        1,
        &["inspect", run, "--out", path(&page)],
        &["cannot write", "make room"],
    );
    for arguments in [
        &["predict", run, "--data", data][..],
        &["certify", run, "--data", data, "--json"],
        &["inspect", run, "--json"],
    ] {
        let stdout = File::options().write(true).open("/dev/full").unwrap();
        let child = program(arguments)
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn();
        let output = child.unwrap().wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("cannot write to stdout"));
    }
}

/// The limit of a file's size stands for a disk that fills up during training.
#[test]
fn disks_that_fill_up_during_training() {
    let root = TempDir::new().unwrap();
    let train = |name: &str, steps: &str| {
        let out = root.path().join(name);
        let script = "trap '' XFSZ; ulimit -f 8; exec \"$@\"";
        let flags = [
            "--data",
            "glyphs",
            "--first",
            "20",
            "--batch",
            "2",
            "--model",
            "circulant",
        ];
        let output = Command::new("sh")
            .args(["-c", script, "sh", env!("CARGO_BIN_EXE_circulant"), "train"])
            .args(flags)
            .args([
                "--steps",
                steps,
                "--checkpoint-every",
                "100000",
                "--out",
                path(&out),
            ])
            .output()
            .expect("a shell");
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{message}");
        // Files that were being written are gone.
        assert_eq!(contents(&out).len(), 3);
        message
    };
    let message = train("checkpoint", "2");
    assert!(message.contains("checkpoint.safetensors"), "{message}");
    assert!(message.contains("space on the disk"), "{message}");
    let message = train("log", "300");
    assert!(message.contains("space on the disk"), "{message}");
}
