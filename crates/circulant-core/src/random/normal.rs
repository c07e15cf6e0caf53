//! Standard normal f32 values by Box and Muller from the Philox generator:
//! `r = sqrt(-2 ln u)`, `z = r cos(2 pi v)` and `z' = r sin(2 pi v)`, with `u` in `(0, 1]`, so that
//! every number is finite.
//!
//! Number `i` depends on the key and on `i` alone: 64 blocks of the generator make a group of 256 values; values `j`
//! and `j + 128` of a group are the cosine and the sine of pair `j`, which takes `u` and `v` from block `j mod 64`: its
//! words 0 and 2 if `j < 64`, 1 and 3 otherwise.

use super::{NoiseKey, words};
use crate::elementary::{direction_of, ln_of_normal};

/// Blocks of the generator in a group of values.
pub const BLOCKS: usize = 64;
/// Pairs of values in a group.
pub const PAIRS: usize = 2 * BLOCKS;
/// Values of a group.
pub const GROUP: usize = 2 * PAIRS;

/// `-2 ln u` with `u = (word/2 + 1/2) / 2^31`, rounded.
#[inline(always)]
pub fn squared_length_of(word: u32) -> f32 {
    let u = (word >> 1) as i32 as f32 + 0.5;
    -2.0 * ln_of_normal(u, 31)
}

/// Value `index` of a stream, without any memory. Whoever needs all of a group in turn makes four from one block; the kernels
/// do.
///
/// ```
/// use circulant_core::random::{NoiseKey, normal_at};
///
/// let key = NoiseKey { seed: 1, stream: 0 };
/// assert!(normal_at(key, 0).is_finite() && normal_at(key, 0) != normal_at(key, 1));
/// ```
pub fn normal_at(key: NoiseKey, index: usize) -> f32 {
    let place = index % GROUP;
    let pair = place % PAIRS;
    let block = index / GROUP * BLOCKS + pair % BLOCKS;
    let words = words(key, block as u64).map(|word| word as u32);
    let (length, direction) = if pair < BLOCKS {
        (words[0], words[2])
    } else {
        (words[1], words[3])
    };
    let (cosine, sine) = direction_of(direction);
    let length = libm::sqrtf(squared_length_of(length));
    length * if place < PAIRS { cosine } else { sine }
}
