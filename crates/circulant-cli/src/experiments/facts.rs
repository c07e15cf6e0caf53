//! Where results come from: program, versions, commit, machine, time.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::ranks;
use crate::report::Provenance;

/// What is the same for everything that one process writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The command line.
    pub command: String,
    /// The program and the dependencies that decide its results, with their versions.
    pub versions: Vec<(String, String)>,
    /// The commit that the program was built from; empty if it was built outside of a repository.
    pub commit: String,
    /// Processor, cores, system.
    pub machine: String,
    /// Threads in use.
    pub threads: usize,
    /// Processes that worked together.
    #[serde(default = "one")]
    pub ranks: usize,
    /// When the process began to write, UTC.
    pub date: String,
}

impl Facts {
    /// Of this process, now.
    pub fn gather() -> Self {
        let own = ("circulant".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        let others = env!("CIRCULANT_VERSIONS").split(',').filter_map(|entry| {
            let (name, version) = entry.split_once(' ')?;
            Some((name.to_owned(), version.to_owned()))
        });
        let arguments: Vec<String> = std::env::args().skip(1).map(quoted).collect();
        Self {
            command: format!("circulant {}", arguments.join(" ")),
            versions: [own].into_iter().chain(others).collect(),
            commit: env!("CIRCULANT_COMMIT").to_owned(),
            machine: machine(),
            threads: rayon::current_num_threads(),
            ranks: ranks::size(),
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        }
    }

    /// The footer of a report.
    pub fn provenance(&self, seeds: Vec<u64>, duration: Duration, config: String) -> Provenance {
        Provenance {
            command: self.command.clone(),
            seeds,
            versions: self.versions.clone(),
            commit: self.commit.clone(),
            machine: match self.ranks {
                1 => format!("{}, {} threads", self.machine, self.threads),
                ranks => format!(
                    "{}, {ranks} ranks of {} threads",
                    self.machine, self.threads
                ),
            },
            date: self.date.clone(),
            duration: match duration.as_secs() {
                0 => String::new(),
                seconds => humantime::format_duration(Duration::from_secs(seconds)).to_string(),
            },
            config,
        }
    }
}

/// What files from before there were ranks leave out.
fn one() -> usize {
    1
}

/// As one would type it.
fn quoted(argument: String) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:@+".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let processor = std::fs::read_to_string("/proc/cpuinfo").ok();
    let processor = processor.as_deref().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let processor = processor.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    format!("{processor}, {cores} cores, {}", std::env::consts::OS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_typed_again() {
        assert_eq!(quoted("--out=runs/a-1".to_owned()), "--out=runs/a-1");
        assert_eq!(quoted("it's".to_owned()), r"'it'\''s'");
        assert_eq!(quoted(String::new()), "''");
    }

    #[test]
    fn versions_come_from_the_lock_file() {
        let facts = Facts::gather();
        let names: Vec<&str> = facts
            .versions
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["circulant", "burn", "faer", "rustfft"]);
        assert!(
            facts
                .versions
                .iter()
                .all(|(_, version)| version.contains('.'))
        );
    }
}
