//! The bodies of `fuzz/` on the stable toolchain: every file of the corpora, then seeded mutations of them for
//! `CIRCULANT_FUZZ_SECONDS` per target (one by default).

#[path = "../../../../fuzz/src/data.rs"]
mod data;
#[path = "../../../../fuzz/src/device.rs"]
mod device;
#[path = "../../../../fuzz/src/models.rs"]
mod models;

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 13] = [
    ("annotations", data::annotations),
    ("checkpoint", models::checkpoint),
    ("cifar", data::cifar),
    ("classifier", models::classifier),
    ("csv", data::csv),
    ("device", device::device),
    ("idx", data::idx),
    ("npy", data::npy),
    ("npz", data::npz),
    ("picture", data::picture),
    ("run_config", models::run_config),
    ("run_facts", models::run_facts),
    ("safetensors", data::safetensors),
];
/// Longer than any file of the corpora.
const LONGEST: usize = 8192;
/// A second on a quiet machine with optimised code; tests have neither.
const SLOWEST: Duration = Duration::from_secs(10);
/// Of the whole process, in KiB.
const MOST_MEMORY: u64 = 1 << 20;

#[test]
fn no_reader_panics_hangs_or_fills_the_memory() {
    let seconds = std::env::var("CIRCULANT_FUZZ_SECONDS").ok();
    let seconds: f64 = seconds.map_or(1.0, |text| text.parse().unwrap());
    for (name, target) in TARGETS {
        let corpus = corpus(name);
        assert!(!corpus.is_empty(), "{name} has seeds");
        corpus.iter().for_each(|bytes| run(name, target, bytes));
        let (mut random, start) = (Random(name.len() as u64), Instant::now());
        while start.elapsed().as_secs_f64() < seconds {
            run(name, target, &mutated(&corpus, &mut random));
        }
    }
}

#[test]
fn every_corpus_has_its_target() {
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(TARGETS.iter().any(|(target, _)| *target == name), "{name}");
    }
}

fn run(name: &str, target: fn(&[u8]), bytes: &[u8]) {
    let start = Instant::now();
    let outcome = catch_unwind(|| target(bytes));
    let took = start.elapsed();
    assert!(
        outcome.is_ok() && took < SLOWEST && peak_memory() < MOST_MEMORY,
        "{name} panicked, took {took:?} or needed {} KiB with {:?}",
        peak_memory(),
        bytes.escape_ascii().to_string()
    );
}

/// The most memory that the process ever had, in KiB, where the system tells.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

/// In the order of their names, so that a seed means the same everywhere.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder().join(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Numbers that break things, as text too.
const NUMBERS: [&str; 10] = [
    "0",
    "-1",
    "1e999",
    "NaN",
    "255",
    "65536",
    "4294967296",
    "9223372036854775807",
    "1e18",
    "0.5",
];

/// One to four changes of a seed: bits, bytes, lengths, numbers, pieces of other seeds.
fn mutated(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = corpus[random.below(corpus.len())].clone();
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len() + 1);
        let end = at + random.below((bytes.len() - at).min(32) + 1);
        match random.below(8) {
            0 => {
                bytes.drain(at..end);
            }
            1 => bytes.truncate(at),
            2 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            3 => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len() + 1);
                let to = (from + random.below(64)).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            4 => {
                // A run of digits becomes another number.
                let digit = |byte: &u8| byte.is_ascii_digit();
                let start = at + bytes[at..].iter().position(digit).unwrap_or(0);
                let length = bytes[start..].iter().take_while(|byte| digit(byte)).count();
                let number = NUMBERS[random.below(NUMBERS.len())];
                bytes.splice(start..start + length, number.bytes());
            }
            5 => {
                let wide = [0, 1, u64::from(u32::MAX), u64::MAX, 1 << 31, 1 << 40][random.below(6)];
                let size = 1 << random.below(4);
                let end = (at + size).min(bytes.len());
                bytes[at..end].copy_from_slice(&wide.to_le_bytes()[..end - at]);
            }
            _ if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            _ => bytes.push(random.below(256) as u8),
        }
    }
    bytes.truncate(LONGEST);
    bytes
}

/// A linear congruential generator.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count
    }
}
