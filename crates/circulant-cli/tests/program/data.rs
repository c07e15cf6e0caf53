//! `circulant data` as a user runs it, without a network.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

fn data(cache: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_circulant"))
        .arg("data")
        .args(arguments)
        .env("CIRCULANT_CACHE", cache)
        .env_remove("CIRCULANT_DATA")
        .env_remove("CIRCULANT_MIRROR")
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn failure(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

#[test]
fn list_names_all_sets() {
    let cache = TempDir::new().unwrap();
    let output = data(cache.path(), &["list", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let rows: Vec<serde_json::Value> = stdout(&output)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(
        names,
        ["mnist", "fashion-mnist", "cifar10", "glyphs", "shapes"]
    );
    assert_eq!(rows[0]["state"], "not cached");
    assert_eq!(rows[3]["state"], "drawn");
    assert!(stdout(&data(cache.path(), &["list"])).contains("cache: "));
}

#[test]
fn info_describes_paths_and_names() {
    let folder = TempDir::new().unwrap();
    let table = folder.path().join("table.csv");
    fs::write(&table, "a,b,label\n1,2,cat\n3,4.5,dog\n5,6,cat\n").unwrap();
    let path = table.to_str().unwrap();
    let output = data(folder.path(), &["info", path, "--json"]);
    let info: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(info["format"], "csv");
    assert_eq!(info["shape"], serde_json::json!([3, 2]));
    assert_eq!(
        info["classes"][0],
        serde_json::json!({"label": 0, "name": "cat", "count": 2})
    );
    assert_eq!(info["max"], 6.0);
    assert_eq!(info["fingerprint"].as_str().map(str::len), Some(64));
    let text = stdout(&data(folder.path(), &["info", "glyphs", "--split", "test"]));
    assert!(text.contains("[10000, 1, 28, 28]"), "{text}");
}

#[test]
fn failures_exit_with_1_and_say_what_to_do() {
    let folder = TempDir::new().unwrap();
    let root = folder.path();
    let path = root.join("x.npy");
    fs::write(&path, b"\x93NUMPY\x01\0\x10\0").unwrap();
    let error = failure(&data(root, &["info", path.to_str().unwrap()]));
    assert!(error.contains("cut short"), "{error}");
    let error = failure(&data(root, &["info", "mnist"]));
    assert!(error.contains("circulant data fetch mnist"), "{error}");
    let error = failure(&data(root, &["fetch", "minst"]));
    assert!(error.contains("known are mnist"), "{error}");
    let error = failure(&data(root, &["fetch", "mnist", "--offline"]));
    assert!(error.contains("--from FOLDER"), "{error}");
    let from = root.join("from");
    fs::create_dir(&from).unwrap();
    fs::write(from.join("train-images-idx3-ubyte"), "not these").unwrap();
    let from = from.to_str().unwrap();
    let error = failure(&data(
        root,
        &["fetch", "mnist", "--offline", "--from", from],
    ));
    assert!(error.contains("SHA-256"), "{error}");
    assert!(!root.join("mnist/train-images-idx3-ubyte").exists());
}

#[test]
fn an_unwritable_cache_is_named() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = failure(&data(&file, &["fetch", "mnist", "--offline"]));
    assert!(error.contains("file"), "{error}");
}

#[test]
fn wrong_usage_exits_with_2() {
    let folder = TempDir::new().unwrap();
    for arguments in [&["fetch"][..], &["info", "x", "--size", "3"]] {
        assert_eq!(data(folder.path(), arguments).status.code(), Some(2));
    }
}

/// A folder that happens to be called like a data set does not hide it.
#[test]
fn names_win_over_folders_of_the_same_name() {
    let root = TempDir::new().expect("a folder");
    fs::create_dir(root.path().join("glyphs")).expect("space");
    let info = |place: &str| {
        Command::new(env!("CARGO_BIN_EXE_circulant"))
            .args(["data", "info", place, "--split", "test", "--json"])
            .current_dir(root.path())
            .output()
            .expect("the program starts")
    };
    assert_eq!(info("glyphs").status.code(), Some(0));
    assert_eq!(info("./glyphs").status.code(), Some(1));
}
