//! The program as a user runs it.

use std::process::{Command, Output};

fn circulant(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_circulant"))
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

#[test]
fn version_is_that_of_the_package() {
    let output = circulant(&["--version"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        stdout(&output),
        format!("circulant {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn params_prints_the_honest_and_the_paper_count() {
    let output = circulant(&["params"]);
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    let row = text
        .lines()
        .find(|line| line.starts_with("ViT CIFAR-10 spectral"))
        .expect("the row is there");
    assert!(row.contains("812,706") && row.contains("811,218"), "{row}");
    assert!(output.stderr.is_empty());
}

#[test]
fn params_json_is_one_object_per_line() {
    let output = circulant(&["params", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let rows: Vec<serde_json::Value> = stdout(&output)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(rows.len(), 20);
    assert_eq!(rows[0]["total"], 8_635);
    assert_eq!(rows[0]["weights"], 8_624);
}

#[test]
fn wrong_usage_exits_with_2_and_says_so_on_stderr() {
    let output = circulant(&["parms"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("params"));
}
