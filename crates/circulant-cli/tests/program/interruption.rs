//! Training that is killed or interrupted, and resumed.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{contents, json, path, program, refusal, stderr, success};
use serde_json::Value;
use tempfile::TempDir;

const STEPS: &str = "200";

/// Long enough to be interrupted.
fn long(out: &Path) -> Vec<&str> {
    vec![
        "train",
        "--data",
        "glyphs",
        "--first",
        "400",
        "--model",
        "spectral-bccb",
        "--channels",
        "2",
        "--batch",
        "64",
        "--checkpoint-every",
        "7",
        "--steps",
        STEPS,
        "--out",
        path(out),
    ]
}

fn start(out: &Path) -> Child {
    let mut command = program(&long(out));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

/// Waits until that many steps are logged.
fn wait_for_steps(out: &Path, steps: usize) {
    let begin = Instant::now();
    let logged =
        || fs::read_to_string(out.join("steps.jsonl")).map_or(0, |text| text.lines().count());
    while logged() < steps {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "training does not begin"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Without the seconds, which differ.
fn steps(out: &Path) -> Vec<Value> {
    let text = fs::read_to_string(out.join("steps.jsonl")).unwrap();
    let line = |line: &str| {
        let mut value: Value = serde_json::from_str(line).expect("whole lines");
        value.as_object_mut().unwrap().remove("seconds");
        value
    };
    text.lines().map(line).collect()
}

fn checkpoint(out: &Path) -> Vec<u8> {
    fs::read(out.join("checkpoint.safetensors")).unwrap()
}

#[test]
fn a_killed_run_resumes_as_if_nothing_had_happened() {
    let root = TempDir::new().unwrap();
    let (whole, killed) = (root.path().join("whole"), root.path().join("killed"));
    let mut child = start(&killed);
    wait_for_steps(&killed, 25);
    child.kill().unwrap();
    assert_eq!(
        child.wait().unwrap().code(),
        None,
        "it was killed in the middle"
    );
    let reached = steps(&killed).len();
    assert!((25..200).contains(&reached), "{reached}");
    // A line that was being written is forgotten.
    let log = killed.join("steps.jsonl");
    let mut text = fs::read_to_string(&log).unwrap();
    text.push_str("{\"step\": 3");
    fs::write(&log, text).unwrap();
    // A checkpoint can be used before the run is whole.
    assert!(
        json(&["inspect", path(&killed), "--json"])["steps"]
            .as_u64()
            .unwrap()
            < 200
    );
    fs::remove_file(killed.join("inspect.html")).unwrap();

    let summary = json(&["train", "--resume", path(&killed), "--json"]);
    assert_eq!(summary["steps"], 200);
    success(&long(&whole));
    assert_eq!(steps(&killed), steps(&whole));
    assert!(checkpoint(&killed) == checkpoint(&whole), "the same bytes");
    // Nothing is left of files that were being written.
    assert_eq!(contents(&killed).len(), contents(&whole).len());

    // A finished run has nothing left to do, and more steps can be asked for.
    let before = checkpoint(&whole);
    success(&["train", "--resume", path(&whole)]);
    assert!(
        checkpoint(&whole) == before,
        "nothing to do changes nothing"
    );
    let summary = json(&[
        "train",
        "--resume",
        path(&whole),
        "--steps",
        "210",
        "--json",
    ]);
    assert_eq!(summary["steps"], 210);
    assert_eq!(steps(&whole).len(), 210);
}

#[test]
fn ctrl_c_leaves_a_checkpoint_and_says_how_to_resume() {
    let root = TempDir::new().unwrap();
    let out = root.path().join("run");
    let child = start(&out);
    wait_for_steps(&out, 10);
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(output.stdout.is_empty());
    let advice = format!("circulant train --resume {}", out.display());
    assert!(message.contains(&advice), "{message}");
    let reached = steps(&out).len();
    assert!(reached < 200, "{reached}");
    // The checkpoint is of the very step at which it stopped.
    let numbers = json(&["inspect", path(&out), "--json"]);
    assert_eq!(numbers["steps"], reached);
}

#[test]
fn a_run_is_not_resumed_with_other_data() {
    let root = TempDir::new().unwrap();
    let data = root.path().join("table.csv");
    let table = |last: &str| format!("x,y,label\n1,2,0\n3,4,1\n5,{last},1\n");
    fs::write(&data, table("6")).unwrap();
    let out = root.path().join("run");
    success(&[
        "train",
        "--data",
        path(&data),
        "--steps",
        "4",
        "--rank",
        "1",
        "--out",
        path(&out),
    ]);
    fs::write(&data, table("7")).unwrap();
    let resume = ["train", "--resume", path(&out), "--steps", "8"];
    refusal(
        1,
        &resume,
        &[
            "the data have changed",
            "put the old data back, or begin a new run",
        ],
    );
    fs::write(&data, table("6")).unwrap();
    success(&resume);
    refusal(
        2,
        &["train", "--resume", path(&out), "--data", "glyphs"],
        &["--data"],
    );
}
