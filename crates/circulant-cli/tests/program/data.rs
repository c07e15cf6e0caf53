//! `circulant data` as a user runs it, without a network.

use std::fs;
use std::process::Output;

use crate::support::{Place, json, program, stderr, success};

fn data(cache: &Place, line: &str) -> Output {
    let mut command = program(format!("data {line}"));
    command
        .env("CIRCULANT_CACHE", &**cache)
        .output()
        .expect("the program starts")
}

fn failure(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    stderr(output)
}

#[test]
fn list_names_all_sets() {
    let rows = success("data list --json");
    let rows = rows
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let rows: Vec<serde_json::Value> = rows.collect();
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(
        names,
        ["mnist", "fashion-mnist", "cifar10", "glyphs", "shapes"]
    );
    assert_eq!(rows[0]["state"], "not cached");
    assert_eq!(rows[3]["state"], "drawn");
    assert!(success("data list").contains("cache: "));
}

#[test]
fn info_describes_paths_and_names() {
    let folder = Place::temporary();
    let table = folder.at("table.csv");
    fs::write(&table, "a,b,label\n1,2,cat\n3,4.5,dog\n5,6,cat\n").unwrap();
    let info = json(format!("data info {table} --json"));
    assert_eq!(info["format"], "csv");
    assert_eq!(info["shape"], serde_json::json!([3, 2]));
    assert_eq!(
        info["classes"][0],
        serde_json::json!({"label": 0, "name": "cat", "count": 2})
    );
    assert_eq!(info["max"], 6.0);
    assert_eq!(info["fingerprint"].as_str().map(str::len), Some(64));
    let text = success("data info glyphs --split test");
    assert!(text.contains("[10000, 1, 28, 28]"), "{text}");
}

#[test]
fn failures_exit_with_1_and_say_what_to_do() {
    let root = &Place::temporary();
    let [path, from] = ["x.npy", "from"].map(|name| root.at(name));
    fs::write(&path, b"\x93NUMPY\x01\0\x10\0").unwrap();
    fs::create_dir(&from).unwrap();
    fs::write(from.at("train-images-idx3-ubyte"), "not these").unwrap();
    for (line, part) in [
        (&format!("info {path}")[..], "cut short"),
        ("info mnist", "circulant data fetch mnist"),
        ("fetch minst", "known are mnist"),
        ("fetch mnist --offline", "--from FOLDER"),
        (&format!("fetch mnist --offline --from {from}"), "SHA-256"),
    ] {
        let error = failure(&data(root, line));
        assert!(error.contains(part), "{error}");
    }
    assert!(!root.at("mnist/train-images-idx3-ubyte").exists());
}

#[test]
fn an_unwritable_cache_is_named() {
    let folder = Place::temporary();
    let file = folder.at("file");
    fs::write(&file, "").unwrap();
    let error = failure(&data(&file, "fetch mnist --offline"));
    assert!(error.contains("file"), "{error}");
}

#[test]
fn wrong_usage_exits_with_2() {
    let folder = Place::temporary();
    for line in ["fetch", "info x --size 3"] {
        assert_eq!(data(&folder, line).status.code(), Some(2));
    }
}

/// A folder that happens to be called like a data set does not hide it.
#[test]
fn names_win_over_folders_of_the_same_name() {
    let root = Place::temporary();
    fs::create_dir(root.at("glyphs")).expect("space");
    let info = |place: &str| {
        let mut command = program(format!("data info {place} --split test --json"));
        command
            .current_dir(&root)
            .output()
            .expect("the program starts")
    };
    assert_eq!(info("glyphs").status.code(), Some(0));
    assert_eq!(info("./glyphs").status.code(), Some(1));
}
