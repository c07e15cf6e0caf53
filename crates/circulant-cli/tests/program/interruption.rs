//! Training that is killed or interrupted, and resumed.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Place, contents, json, program, refusal, stderr, success};
use serde_json::Value;

/// Long enough to be interrupted.
fn long(out: &Place) -> String {
    let model = "--model spectral-circulant --batch 64 --checkpoint-every 7 --steps 80";
    format!("train --data glyphs --first 400 {model} --out {out}")
}

fn start(out: &Place) -> Child {
    let mut command = program(long(out));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

/// Waits until that many steps are logged.
fn wait_for_steps(out: &Place, steps: usize) {
    let begin = Instant::now();
    let logged =
        || fs::read_to_string(out.at("steps.jsonl")).map_or(0, |text| text.lines().count());
    while logged() < steps {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "training does not begin"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Without the seconds, which differ.
fn steps(out: &Place) -> Vec<Value> {
    let text = fs::read_to_string(out.at("steps.jsonl")).unwrap();
    let line = |line: &str| {
        let mut value: Value = serde_json::from_str(line).expect("whole lines");
        value.as_object_mut().unwrap().remove("seconds");
        value
    };
    text.lines().map(line).collect()
}

fn checkpoint(out: &Place) -> Vec<u8> {
    fs::read(out.at("checkpoint.safetensors")).unwrap()
}

#[test]
fn a_killed_run_resumes_as_if_nothing_had_happened() {
    let root = Place::temporary();
    let (whole, killed) = (root.at("whole"), root.at("killed"));
    let mut child = start(&killed);
    wait_for_steps(&killed, 25);
    child.kill().unwrap();
    assert_eq!(
        child.wait().unwrap().code(),
        None,
        "it was killed in the middle"
    );
    let reached = steps(&killed).len();
    assert!((25..80).contains(&reached), "{reached}");
    // A line that was being written is forgotten.
    let log = killed.at("steps.jsonl");
    let mut text = fs::read_to_string(&log).unwrap();
    text.push_str("{\"step\": 3");
    fs::write(&log, text).unwrap();
    // A checkpoint can be used before the run is whole.
    let inspected = json(format!("inspect {killed} --json"));
    assert!(inspected["steps"].as_u64().unwrap() < 80);
    fs::remove_file(killed.at("inspect.html")).unwrap();

    let summary = json(format!("train --resume {killed} --json"));
    assert_eq!(summary["steps"], 80);
    success(long(&whole));
    assert_eq!(steps(&killed), steps(&whole));
    assert!(checkpoint(&killed) == checkpoint(&whole), "the same bytes");
    // Nothing is left of files that were being written.
    assert_eq!(contents(&killed).len(), contents(&whole).len());

    // A finished run has nothing left to do, and more steps can be asked for.
    let before = checkpoint(&whole);
    success(format!("train --resume {whole}"));
    assert!(
        checkpoint(&whole) == before,
        "nothing to do changes nothing"
    );
    let summary = json(format!("train --resume {whole} --steps 90 --json"));
    assert_eq!(summary["steps"], 90);
    assert_eq!(steps(&whole).len(), 90);
}

#[test]
fn ctrl_c_leaves_a_checkpoint_and_says_how_to_resume() {
    let root = Place::temporary();
    let out = root.at("run");
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
    let advice = format!("circulant train --resume {out}");
    assert!(message.contains(&advice), "{message}");
    let reached = steps(&out).len();
    assert!(reached < 80, "{reached}");
    // The checkpoint is of the very step at which it stopped.
    let numbers = json(format!("inspect {out} --json"));
    assert_eq!(numbers["steps"], reached);
}

#[test]
fn a_run_is_not_resumed_with_other_data() {
    let root = Place::temporary();
    let data = root.at("table.csv");
    let table = |last: &str| format!("x,y,label\n1,2,0\n3,4,1\n5,{last},1\n");
    fs::write(&data, table("6")).unwrap();
    let out = root.at("run");
    success(format!(
        "train --data {data} --model spectral-circulant --steps 4 --rank 1 --out {out}"
    ));
    fs::write(&data, table("7")).unwrap();
    let resume = format!("train --resume {out} --steps 8");
    let parts = [
        "the data have changed",
        "put the old data back, or begin a new run",
    ];
    refusal(1, &resume, &parts);
    fs::write(&data, table("6")).unwrap();
    success(&resume);
    refusal(
        2,
        format!("train --resume {out} --data glyphs"),
        &["--data"],
    );
}
