//! The program as a process, and small files for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program, with nothing of the user's around it.
pub fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_circulant"));
    command
        .args(arguments)
        .env("CIRCULANT_CACHE", "/nonexistent/cache")
        .env_remove("CIRCULANT_DATA")
        .env_remove("CIRCULANT_MIRROR");
    command
}

/// Runs it to its end.
pub fn circulant(arguments: &[&str]) -> Output {
    program(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Nothing panicked; what is on stderr.
pub fn stderr(output: &Output) -> String {
    let text = text(&output.stderr);
    assert!(!text.contains("panicked"), "{text}");
    text
}

/// Stdout of a program that succeeds.
pub fn success(arguments: &[&str]) -> String {
    let output = circulant(arguments);
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    text(&output.stdout)
}

/// The one JSON value on stdout of a program that succeeds, which has a version.
pub fn json(arguments: &[&str]) -> serde_json::Value {
    let value: serde_json::Value = serde_json::from_str(&success(arguments)).expect("JSON");
    assert_eq!(value["version"], 2, "{arguments:?}");
    value
}

/// The message of a program that ends with this code: it has all of `parts`, and nothing is on stdout.
pub fn refusal(code: i32, arguments: &[&str], parts: &[&str]) -> String {
    let output = circulant(arguments);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
    message
}

/// The words of a command line.
pub fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

/// Flags of a training that takes a moment.
pub const QUICK: [&str; 10] = [
    "--data",
    "glyphs",
    "--first",
    "400",
    "--steps",
    "20",
    "--batch",
    "32",
    "--checkpoint-every",
    "10",
];

/// Trains into `root/name`, with more flags.
pub fn trained(root: &Path, name: &str, more: &[&str]) -> PathBuf {
    let out = root.join(name);
    let mut arguments = vec!["train", "--out", path(&out)];
    if !more.contains(&"--data") {
        arguments.extend(QUICK);
    }
    arguments.extend(more);
    success(&arguments);
    out
}

/// A path as an argument.
pub fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// All files of a folder with their bytes, in order.
pub fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let bytes = fs::read(&path).expect("a file");
            (path, bytes)
        })
        .collect();
    files.sort();
    files
}

/// Copies the files of a folder.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a new folder");
    for (path, bytes) in contents(from) {
        fs::write(to.join(path.file_name().expect("a file")), bytes).expect("space");
    }
}

/// An NPY file of f32.
pub fn npy(path: &Path, shape: &[usize], values: &[f32]) {
    let sizes: Vec<String> = shape.iter().map(|size| format!("{size},")).collect();
    let header = format!(
        "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}\n",
        sizes.concat()
    );
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    fs::write(path, bytes).expect("space");
}

/// A run with images of 6 x 6 in three classes, and its data.
pub fn small(root: &Path) -> (PathBuf, PathBuf) {
    let data = root.join("images.npy");
    let images: Vec<f32> = (0..30 * 36).map(|i| (i % 17) as f32 / 17.0).collect();
    npy(&data, &[30, 1, 6, 6], &images);
    let labels: Vec<f32> = (0..30).map(|i| (i % 3) as f32).collect();
    npy(&root.join("labels.npy"), &[30], &labels);
    let flags = ["--data", path(&data), "--steps", "3", "--batch", "10"];
    (trained(root, "run", &flags), data)
}
