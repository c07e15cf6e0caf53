//! Tells the program which commit and which versions it is built from, for the folders of its runs.

use std::fs;
use std::process::Command;

/// Dependencies that decide about the results.
const NAMED: [&str; 3] = ["burn", "faer", "rustfft"];

/// The lock file: beside a package as it is published, or in the root of the repository.
const LOCKS: [&str; 2] = ["Cargo.lock", "../../Cargo.lock"];
/// What a published package says about its commit.
const PACKAGED: &str = ".cargo_vcs_info.json";
/// Changes with every commit. A package has no such file.
const HEAD: &str = "../../.git/logs/HEAD";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for file in LOCKS.iter().chain([&PACKAGED, &HEAD]) {
        // A file that is not there would run this again every time.
        if fs::exists(file).unwrap_or(false) {
            println!("cargo::rerun-if-changed={file}");
        }
    }
    println!("cargo::rustc-env=CIRCULANT_COMMIT={}", commit());
    println!("cargo::rustc-env=CIRCULANT_VERSIONS={}", versions());
}

/// The commit, or nothing where none is known.
fn commit() -> String {
    let packaged = fs::read_to_string(PACKAGED);
    if let Ok(text) = packaged {
        return packaged_commit(&text).unwrap_or_default().to_owned();
    }
    let output = Command::new("git").args(["rev-parse", "HEAD"]).output();
    let text = output
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok());
    text.map_or(String::new(), |text| text.trim().to_owned())
}

/// The value of `"sha1"`.
fn packaged_commit(text: &str) -> Option<&str> {
    let value = text.split_once("\"sha1\"")?.1.split('"').nth(1)?;
    value
        .chars()
        .all(|c| c.is_ascii_hexdigit())
        .then_some(value)
}

/// `name version` of the named dependencies as the lock file has them, separated by commas.
fn versions() -> String {
    let read = LOCKS.iter().find_map(|file| fs::read_to_string(file).ok());
    let lock = read.unwrap_or_default();
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
