//! The features of a set, from a frozen encoder into a file, over several processes if need be.

use std::path::Path;
use std::time::Instant;

use anyhow::bail;

use super::interrupt::Interrupt;
use super::progress::WorkProgress;
use circulant_data::ImageSet;
use circulant_data::encode::{Encoder, FeatureFile, Identity, Numbers};

/// Images between two writes, which are also what a crash costs.
const AT_ONCE: usize = 64;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Done {
    /// Images of this process.
    pub images: usize,
    /// The time that they took.
    pub seconds: f64,
}

impl Done {
    /// Images per second, if there were any.
    pub fn speed(&self) -> Option<f64> {
        (self.images > 0).then(|| self.images as f64 / self.seconds)
    }
}

/// Writes the features of a set to a safetensors file. A file that is already there is left alone if it has these features, and
/// an unfinished one is continued.
pub fn compute(
    encoder: &Encoder,
    set: &ImageSet,
    path: &Path,
    numbers: Numbers,
    interrupt: &Interrupt,
    title: &str,
) -> anyhow::Result<Done> {
    let identity = Identity {
        encoder: encoder.fingerprint().to_string(),
        preprocessing: encoder.preprocessing().clone(),
        pictures: set.fingerprint().to_string(),
        shape: [set.len(), encoder.features()],
        numbers,
    };
    let mut done = Done {
        images: 0,
        seconds: 0.0,
    };
    if FeatureFile::is_finished(path, &identity)? {
        return Ok(done);
    }
    let mut file = FeatureFile::open(path, identity)?;
    let mut progress = WorkProgress::new(title, set.len() as u64);
    let start = Instant::now();
    while file.done() < set.len() {
        if interrupt.is_asked() {
            progress.clear();
            bail!(
                "stopped after {} of {} images of {title}; the same command resumes there",
                file.done(),
                set.len()
            );
        }
        let range = file.done()..(file.done() + AT_ONCE).min(set.len());
        done.images += range.len();
        file.add(&encoder.encode(set, range)?)?;
        done.seconds = start.elapsed().as_secs_f64();
        progress.at(file.done() as u64, || {
            format!("{:.1} images/s", done.speed().unwrap_or(0.0))
        });
    }
    file.finish(set)?;
    progress.finish(match done.speed() {
        Some(speed) => format!("{} images, {speed:.1} per second", set.len()),
        None => format!("{} images", set.len()),
    });
    Ok(done)
}
