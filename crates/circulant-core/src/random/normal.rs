//! Standard normal f32 values by Box and Muller from the Philox generator:
//! `r = sqrt(-2 ln u)`, `z = r cos(2 pi v)` and `z' = r sin(2 pi v)`, with `u` in `(0, 1]`, so that
//! every number is finite.
//!
//! Number `i` depends on the key and on `i` alone: 64 blocks of the generator make a group of 256 values; values `j`
//! and `j + 128` of a group are the cosine and the sine of pair `j`, which takes `u` and `v` from block `j mod 64`: its
//! words 0 and 2 if `j < 64`, 1 and 3 otherwise.

use num_complex::Complex;

use super::{NoiseKey, words};
use crate::elementary::{direction_of, ln_of_normal};
use crate::error::{SizeError, expect_len};
use crate::scalar::Scalar;

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

/// Number types that can be normally distributed.
pub trait Normal: Scalar {
    /// Two independent values from two words, for the length and the direction of Box and Muller.
    fn normal_pair(length: u32, direction: u32) -> Complex<Self>;
}

impl Normal for f32 {
    #[inline]
    fn normal_pair(length: u32, direction: u32) -> Complex<Self> {
        let length = libm::sqrtf(squared_length_of(length));
        let (cosine, sine) = direction_of(direction);
        Complex::new(length * cosine, length * sine)
    }
}

/// The values `0, 1, ...` of a stream one after the other, a group at a time in memory of the caller.
///
/// ```
/// use circulant_core::Complex;
/// use circulant_core::random::{NoiseKey, Normals, PAIRS};
///
/// let mut memory = [Complex::new(0.0_f32, 0.0); PAIRS];
/// let mut normals = Normals::new(NoiseKey { seed: 1, stream: 0 }, 2, &mut memory)?;
/// let first = normals.draw();
/// assert!(first.is_finite() && first != normals.draw());
/// # Ok::<(), circulant_core::SizeError>(())
/// ```
#[derive(Debug)]
pub struct Normals<'a, T> {
    key: NoiseKey,
    next: usize,
    count: usize,
    pairs: &'a mut [Complex<T>],
}

impl<'a, T: Normal> Normals<'a, T> {
    /// The first `count` values of a stream; the memory has [`PAIRS`] values.
    pub fn new(
        key: NoiseKey,
        count: usize,
        memory: &'a mut [Complex<T>],
    ) -> Result<Self, SizeError> {
        expect_len("the memory of normal values", memory.len(), PAIRS)?;
        Ok(Self {
            key,
            next: 0,
            count,
            pairs: memory,
        })
    }

    /// The next value.
    #[inline]
    pub fn draw(&mut self) -> T {
        let place = self.next % GROUP;
        if place == 0 {
            self.fill();
        }
        self.next += 1;
        let pair = self.pairs[place % PAIRS];
        if place < PAIRS { pair.re } else { pair.im }
    }

    /// The group that begins here, as far as it is needed.
    #[inline(never)]
    fn fill(&mut self) {
        let needed = self.count.saturating_sub(self.next);
        let first = (self.next / 4) as u64;
        let (low, high) = self.pairs.split_at_mut(BLOCKS);
        let blocks = low.iter_mut().zip(high).enumerate().take(needed);
        for (block, (low, high)) in blocks {
            let words = words(self.key, first + block as u64).map(|word| word as u32);
            *low = T::normal_pair(words[0], words[2]);
            *high = T::normal_pair(words[1], words[3]);
        }
    }
}
