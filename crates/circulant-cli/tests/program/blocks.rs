//! `circulant blocks`: the trade-off of a checkpoint's matrices.

use std::process::{Command, Output};

const CHECKPOINT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../circulant/tests/fixtures/timm.pt"
);

fn blocks(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_circulant"))
        .arg("blocks")
        .args(arguments)
        .output()
        .unwrap()
}

fn message(arguments: &[&str]) -> String {
    let output = blocks(arguments);
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_checkpoint_has_a_table_and_a_curve() {
    let folder = tempfile::tempdir().unwrap();
    let figure = folder.path().join("curve.svg");
    let path = figure.to_str().unwrap();
    let output = blocks(&[CHECKPOINT, "--lengths", "4,1,2", "--json", "--figure", path]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["version"].is_u64());
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let curve = json["curve"].as_array().unwrap();
    assert_eq!(curve.len(), 3);
    assert!(number(&curve[0]["relative_error"]) < 1e-9);
    assert_eq!(curve[0]["weights"], curve[0]["dense_weights"]);
    for pair in curve.windows(2) {
        assert!(number(&pair[0]["relative_error"]) < number(&pair[1]["relative_error"]));
    }
    let rows = json["matrices"].as_array().unwrap();
    let named = |row: &&serde_json::Value| row["path"] == "blocks.0.mlp.fc1.weight";
    assert_eq!(rows.iter().filter(named).count(), 3);
    assert!(std::fs::read_to_string(figure).unwrap().contains("<svg"));
    let output = blocks(&[CHECKPOINT, "--only", "mlp", "--lengths", "2"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("blocks.1.mlp.fc2.weight") && !text.contains("attn"),
        "{text}"
    );
    assert!(text.contains("blocks of 2"), "{text}");
}

#[test]
fn what_cannot_be_is_named() {
    assert!(message(&[CHECKPOINT, "--only", "nothing"]).contains("\"nothing\""));
    assert!(message(&[CHECKPOINT, "--lengths", "0"]).contains("--lengths"));
    assert!(message(&[CHECKPOINT, "--lengths", "4096"]).contains("4096"));
    assert!(message(&["absent.safetensors"]).contains("absent.safetensors"));
}
