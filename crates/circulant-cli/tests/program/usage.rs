//! The program as a user runs it.

use crate::support::{circulant, refusal, success};

#[test]
fn version_is_that_of_the_package() {
    let version = format!("circulant {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(success("--version"), version);
}

#[test]
fn params_prints_the_honest_and_the_paper_count() {
    let text = success("params");
    let row = text
        .lines()
        .find(|line| line.starts_with("ViT CIFAR-10 spectral"))
        .expect("the row is there");
    assert!(row.contains("812,706") && row.contains("811,218"), "{row}");
    assert!(circulant("params").stderr.is_empty());
}

#[test]
fn params_json_is_one_object_per_line() {
    let rows: Vec<serde_json::Value> = success("params --json")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(rows.len(), 20);
    assert_eq!(rows[0]["total"], 8_635);
    assert_eq!(rows[0]["weights"], 8_624);
}

#[test]
fn wrong_usage_exits_with_2_and_says_so_on_stderr() {
    refusal(2, "parms", &["params"]);
}
