//! Folders and files that cannot be written, and disks that are full or fill up.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{QUICK, contents, path, program, refusal, small, stderr, words};
use tempfile::TempDir;

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
        &["cannot write", "may you write there"],
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
        &["cannot write", "space"],
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
        let flags = words("--data glyphs --first 20 --batch 2 --model circulant");
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
