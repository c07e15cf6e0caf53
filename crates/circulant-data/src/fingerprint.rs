//! The content of a set as one number: SHA-256 over the kind, the shape, the numbers in little-endian
//! order and the labels. Names and paths are left out, so the same data from another format have the
//! same fingerprint.

use std::fmt;

use sha2::{Digest, Sha256};

use super::features::FeatureSet;
use super::images::{ImageSet, Pixels};
use super::labels::Labels;

/// A SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(crate) fn of_images(set: &ImageSet) -> Self {
        match set.pixels() {
            Pixels::U8(values) => Self::of(b"u8", &set.shape(), set.labels(), |hash| {
                hash.update(values);
            }),
            Pixels::F32(values) => Self::of(b"f32", &set.shape(), set.labels(), |hash| {
                floats(hash, values);
            }),
        }
    }

    pub(crate) fn of_features(set: &FeatureSet) -> Self {
        Self::of(b"f32", &set.shape(), set.labels(), |hash| {
            floats(hash, set.values());
        })
    }

    /// Of bytes that were hashed elsewhere.
    pub(crate) fn from_hash(hash: Sha256) -> Self {
        Self(hash.finalize().into())
    }

    fn of(kind: &[u8], shape: &[usize], labels: &Labels, values: impl FnOnce(&mut Sha256)) -> Self {
        let mut hash = Sha256::new();
        hash.update(kind);
        hash.update((shape.len() as u64).to_le_bytes());
        for &size in shape {
            hash.update((size as u64).to_le_bytes());
        }
        values(&mut hash);
        for label in labels.values.iter().flatten() {
            hash.update(label.to_le_bytes());
        }
        Self(hash.finalize().into())
    }
}

fn floats(hash: &mut Sha256, values: &[f32]) {
    let mut bytes = Vec::new();
    for part in values.chunks(4096) {
        bytes.clear();
        bytes.extend(part.iter().flat_map(|x| x.to_le_bytes()));
        hash.update(&bytes);
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
