//! Tells the program which commit and which versions it is built from, for the folders of its runs.

use std::fs;
use std::process::Command;

/// Dependencies that decide about the numbers.
const NAMED: [&str; 3] = ["burn", "faer", "rustfft"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    // Changes with every commit. Without a repository there is no such file, and no commit to name.
    if fs::exists("../../.git/logs/HEAD").unwrap_or(false) {
        println!("cargo::rerun-if-changed=../../.git/logs/HEAD");
    }
    println!("cargo::rustc-env=CIRCULANT_COMMIT={}", commit());
    println!("cargo::rustc-env=CIRCULANT_VERSIONS={}", versions());
}

/// The commit, or nothing where there is no repository.
fn commit() -> String {
    let output = Command::new("git").args(["rev-parse", "HEAD"]).output();
    let text = output
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok());
    text.map_or(String::new(), |text| text.trim().to_owned())
}

/// `name version` of the named dependencies as the lock file has them, separated by commas.
fn versions() -> String {
    let lock = fs::read_to_string("../../Cargo.lock").unwrap_or_default();
    let packages = lock.split("[[package]]").filter_map(|package| {
        let entry = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key))?;
            Some(
                line.trim_matches(|c| c == '"' || c == ' ' || c == '=')
                    .to_owned(),
            )
        };
        let name = entry("name = ").filter(|name| NAMED.contains(&name.as_str()))?;
        Some(format!("{name} {}", entry("version = ")?))
    });
    packages.collect::<Vec<_>>().join(",")
}
