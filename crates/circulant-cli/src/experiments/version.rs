//! The version of what the program writes: `config.toml`, `run.json`, `metrics.json`, `results.json`, `curvature.json` and
//! every `--json` output. Files of 0.1.0 have none and count as version 1. A file of an older version is read, one of a
//! newer version is refused.

use std::path::Path;

use anyhow::ensure;
use serde::{Deserialize, Serialize};

/// What this program writes, and the newest that it reads.
pub const VERSION: u32 = 2;

/// That of files which do not tell it.
pub fn first() -> u32 {
    1
}

/// An object with the version as its first entry.
#[derive(Debug, Serialize)]
pub struct Versioned<T> {
    version: u32,
    #[serde(flatten)]
    value: T,
}

impl<T: Serialize> Versioned<T> {
    /// Of this program.
    pub fn new(value: T) -> Self {
        let version = VERSION;
        Self { version, value }
    }
}

#[derive(Deserialize)]
struct VersionHeader {
    #[serde(default = "first")]
    version: u32,
}

/// The version of a TOML file that this program can read. What is no TOML is left to whoever reads all of it.
pub fn of_toml(text: &str, place: &Path) -> anyhow::Result<u32> {
    readable(toml::from_str(text).ok(), place)
}

/// The same of a JSON file.
pub fn of_json(text: &str, place: &Path) -> anyhow::Result<u32> {
    readable(serde_json::from_str(text).ok(), place)
}

fn readable(header: Option<VersionHeader>, place: &Path) -> anyhow::Result<u32> {
    let version = header.map_or_else(first, |header| header.version);
    ensure!(
        version <= VERSION,
        "{} was written by a newer circulant: found version {version}, this program reads up to {VERSION}; update circulant",
        place.display()
    );
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_files_are_refused_and_older_ones_known() {
        let place = Path::new("run/config.toml");
        assert_eq!(of_toml("[data]\n", place).unwrap(), 1);
        assert_eq!(of_json("{\"version\": 2}", place).unwrap(), 2);
        for error in [
            of_toml("version = 3\nunheard = 1\n", place),
            of_json("{\"version\": 3}", place),
        ] {
            let message = error.unwrap_err().to_string();
            assert!(
                message.contains("found version 3, this program reads up to 2"),
                "{message}"
            );
            assert!(message.contains("config.toml") && message.contains("update"));
        }
    }
}
