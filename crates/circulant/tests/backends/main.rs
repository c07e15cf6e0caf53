//! The same computations on Flex, with the native kernels, and on every other backend that was compiled in, as numbers apart and as the
//! table of `docs/backends.md`:
//!
//! ```sh
//! ./deep-checks.sh backends
//! ```

#[path = "../common/mod.rs"]
mod common;
mod layers;
mod learning;
mod memory;
mod table;

use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::tensor::Device;
use circulant::device::{BackendKind, DeviceError, DeviceName};

/// A feature, how to try it, and how far a backend may be from Flex.
pub struct Check {
    name: &'static str,
    /// Relative to the largest number of each tensor.
    tolerance: f64,
    /// Runs it on Flex and on the device, and compares.
    deviation: fn(&Device) -> f64,
}

/// What a backend did.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// It works, and its numbers are so far from those of Flex.
    Deviation(f64),
    /// It failed with this message, or its numbers are too far off.
    Failed(String),
}

impl Check {
    fn run(&self, device: &Device) -> Found {
        let tried = catch_unwind(AssertUnwindSafe(|| (self.deviation)(device)));
        match tried {
            Ok(deviation) if deviation <= self.tolerance => Found::Deviation(deviation),
            Ok(deviation) => {
                Found::Failed(format!("{deviation:e} off, {:e} allowed", self.tolerance))
            }
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or(panic.downcast_ref::<&str>().copied());
                Found::Failed(text.unwrap_or("panicked").to_owned())
            }
        }
    }
}

/// The devices of the backends beside Flex that were compiled in, where the machine has one.
fn devices() -> Vec<(BackendKind, Device)> {
    let mut found = Vec::new();
    for backend in BackendKind::compiled().filter(|kind| *kind != BackendKind::Flex) {
        let index = None;
        match (DeviceName { backend, index }).open() {
            Ok(device) => found.push((backend, device)),
            Err(DeviceError::Absent { .. }) => {
                println!("{}: no device on this machine", backend.name());
            }
            Err(error) => panic!("{error}"),
        }
    }
    found
}

#[test]
fn every_backend_computes_what_flex_computes() {
    let devices = devices();
    assert!(!devices.is_empty(), "no device beside the processor");
    let checks: Vec<Check> = layers::checks()
        .into_iter()
        .chain(learning::checks())
        .collect();
    let mut failed = Vec::new();
    let mut rows = Vec::new();
    for check in &checks {
        let mut cells = Vec::new();
        for (backend, device) in &devices {
            let start = std::time::Instant::now();
            let found = check.run(device);
            println!(
                "{}, {}: {found:?}, {:.1?}",
                check.name,
                backend.name(),
                start.elapsed()
            );
            if let Found::Failed(message) = &found {
                failed.push(format!("{} on {}: {message}", check.name, backend.name()));
            }
            cells.push(found);
        }
        rows.push((check.name, cells));
    }
    let names: Vec<&str> = devices.iter().map(|(backend, _)| backend.name()).collect();
    table::write_if_asked(&names, &rows);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The largest distance, relative to the largest number of each vector of `expected`; of a vector of almost nothing, as the gradient of
/// a bias that changes nothing, relative to a hundredth of the largest of all.
fn deviation(got: &[Vec<f64>], expected: &[Vec<f64>]) -> f64 {
    assert_eq!(got.len(), expected.len());
    let largest = |values: &[f64]| values.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let all = expected.iter().map(|values| largest(values));
    let all = all.fold(0.0, f64::max);
    assert!(all > 0.0 && all.is_finite(), "nothing to compare");
    let of_one = |(got, expected): (&Vec<f64>, &Vec<f64>)| {
        assert_eq!(got.len(), expected.len());
        let gaps = got.iter().zip(expected).map(|(a, b)| match a.is_finite() {
            true => a - b,
            false => f64::INFINITY,
        });
        largest(&gaps.collect::<Vec<f64>>()) / largest(expected).max(0.01 * all)
    };
    got.iter().zip(expected).map(of_one).fold(0.0, f64::max)
}

/// The numbers on the device against those on Flex.
fn compare(device: &Device, numbers: impl Fn(&Device) -> Vec<Vec<f64>>) -> f64 {
    deviation(&numbers(device), &numbers(&circulant::cpu()))
}
