//! Values to work on, and what moving them costs.

use rayon::prelude::*;

use crate::timing::numbers;

/// Uniform numbers of variance 1.
pub fn noise(stream: u64, len: usize) -> Vec<f32> {
    numbers(stream, len).map(|x| x as f32).collect()
}

/// As many values as both have, on all threads: what moving them costs without computing.
pub fn copy(from: &[f32], to: &mut [f32]) {
    const PART: usize = 1 << 14;
    to.par_chunks_mut(PART)
        .zip(from.par_chunks(PART))
        .for_each(|(to, from)| {
            let len = to.len().min(from.len());
            to[..len].copy_from_slice(&from[..len]);
        });
}
