//! Readers of what the program writes and others may hand on: run folders, checkpoints, saved classifiers.

use std::fs;
use std::path::Path;

use circulant_cli::parts::LoadedRun;
use tempfile::TempDir;

/// The folder of a run by 0.1.0, small and whole.
const RUN: [(&str, &[u8]); 3] = [
    (
        "config.toml",
        include_bytes!("../../crates/circulant-cli/tests/fixtures/0.1.0/run/config.toml"),
    ),
    (
        "run.json",
        include_bytes!("../../crates/circulant-cli/tests/fixtures/0.1.0/run/run.json"),
    ),
    (
        "checkpoint.safetensors",
        include_bytes!(
            "../../crates/circulant-cli/tests/fixtures/0.1.0/run/checkpoint.safetensors"
        ),
    ),
];

thread_local! {
    /// Memory where there is such a folder: the disk is not what is tested.
    static FOLDER: TempDir = match Path::new("/dev/shm") {
        memory if memory.is_dir() => TempDir::new_in(memory),
        _ => TempDir::new(),
    }
    .expect("a folder for the files of a target");
}

/// Opens a run with one of its files replaced.
fn run_with(name: &str, bytes: &[u8]) {
    FOLDER.with(|folder| {
        for (file, content) in RUN {
            let content = if file == name { bytes } else { content };
            fs::write(folder.path().join(file), content).expect("a file of a target");
        }
        let _ = LoadedRun::open(folder.path());
    });
}

/// `config.toml` of a run.
pub fn run_config(bytes: &[u8]) {
    run_with("config.toml", bytes);
}

/// `run.json` of a run.
pub fn run_facts(bytes: &[u8]) {
    run_with("run.json", bytes);
}

/// `checkpoint.safetensors` of a run.
pub fn checkpoint(bytes: &[u8]) {
    run_with("checkpoint.safetensors", bytes);
}

/// The two files of a saved classifier, the JSON up to the first zero byte.
pub fn classifier(bytes: &[u8]) {
    let end = bytes.iter().position(|&byte| byte == 0);
    let (text, numbers) = bytes.split_at(end.unwrap_or(bytes.len()));
    FOLDER.with(|folder| {
        let path = folder.path().join("head.json");
        fs::write(&path, text).expect("a file of a target");
        let numbers = numbers.get(1..).unwrap_or_default();
        fs::write(path.with_extension("safetensors"), numbers).expect("a file of a target");
        let _ = LoadedRun::open(&path);
    });
}
