//! Folders and files that cannot be written, and disks that are full or fill up.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use crate::support::{Place, QUICK, contents, program, refusal, small, stderr};

#[test]
fn folders_and_files_that_cannot_be_written() {
    let root = Place::temporary();
    let (run, data) = small(&root);
    // Another run in the same place is refused, and nothing in it is touched.
    let before = contents(&run);
    let train = |out: &Place, parts: &[&str]| {
        refusal(1, format!("train --out {out} {QUICK}"), parts);
    };
    train(&run, &["already holds a run", "--resume", "--out"]);
    assert!(before == contents(&run), "left as it was");
    train(&root, &["is not empty", "another folder with --out"]);
    // Tests may run as root, who may write everywhere but into a file.
    let file = root.at("file");
    fs::write(&file, "a file").unwrap();
    train(&file.at("run"), &["cannot make the folder"]);
    train(&file, &["cannot"]);
    let csv = file.at("p.csv");
    let unwritable = |line: String| refusal(1, line, &["cannot write", "may you write there"]);
    unwritable(format!("predict {run} --data {data} --out {csv}"));
    unwritable(format!("certify {run} --data {data} --out {csv}"));
    unwritable(format!("inspect {run} --out {}", file.at("p.html")));
    refusal(
        1,
        format!("inspect {run} --out {root}"),
        &["names a folder"],
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "a file");
}

#[test]
fn full_disks() {
    let root = Place::temporary();
    let (run, data) = small(&root);
    let [full, page] = ["full.csv", "full.html"].map(|name| root.at(name));
    symlink("/dev/full", &full).unwrap();
    symlink("/dev/full", &page).unwrap();
    for line in [
        format!("predict {run} --data {data} --out {full}"),
        format!("certify {run} --data {data} --out {full}"),
        format!("inspect {run} --out {page}"),
    ] {
        refusal(1, line, &["cannot write", "space"]);
    }
    for line in [
        format!("predict {run} --data {data}"),
        format!("certify {run} --data {data} --json"),
        format!("inspect {run} --json"),
    ] {
        let stdout = File::options().write(true).open("/dev/full").unwrap();
        let child = program(line).stdout(stdout).stderr(Stdio::piped()).spawn();
        let output = child.unwrap().wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("cannot write to stdout"));
    }
}

/// The limit of a file's size stands for a disk that fills up during training.
#[test]
fn disks_that_fill_up_during_training() {
    let root = Place::temporary();
    let train = |name: &str, steps: &str| {
        let out = root.at(name);
        let script = "trap '' XFSZ; ulimit -f 8; exec \"$@\"";
        let flags = format!(
            "--data glyphs --first 20 --batch 2 --model circulant --steps {steps} --checkpoint-every 100000 --out {out}"
        );
        let output = Command::new("sh")
            .args(["-c", script, "sh", env!("CARGO_BIN_EXE_circulant"), "train"])
            .args(flags.split(' '))
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
