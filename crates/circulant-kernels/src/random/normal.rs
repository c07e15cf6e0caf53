//! Standard normal values by Box and Muller from the Philox generator:
//! `r = sqrt(-2 ln u)`, `z = r cos(2 pi v)` and `z' = r sin(2 pi v)`, with `u` in `(0, 1]`, so that
//! every number is finite.
//!
//! Number `i` depends on the key and on `i` alone. f32: 64 blocks of the generator make a group of
//! 256 values; values `j` and `j + 128` of a group are the cosine and the sine of pair `j`, which
//! takes `u` and `v` from block `j mod 64`: its words 0 and 2 if `j < 64`, 1 and 3 otherwise. f64:
//! block `b` makes the values `2b` and `2b + 1`.

use std::f64::consts::FRAC_PI_2;

pub use circulant_core::elementary::direction_of;
use circulant_core::random::BLOCKS;
pub use circulant_core::random::{GROUP, PAIRS};

use crate::random::philox::{NoiseKey, words};
use crate::real::Real;
use crate::runtime::chunks::{CHUNK, best_isa, each_chunk};
use crate::vector::{Isa, Kernel, Present, Vector};

// Every chunk begins with a group.
const _: () = assert!(CHUNK.is_multiple_of(GROUP));

/// Fills `out` with values `0, 1, ...` of a stream of standard normal values.
///
/// The same key gives the same values on every run, whatever the length, the number of threads
/// and, in f32, the processor.
///
/// ```
/// use circulant_kernels::{NoiseKey, standard_normal};
/// let mut values = [0.0f32; 4];
/// standard_normal(NoiseKey { seed: 1, stream: 0 }, &mut values);
/// assert!(values.iter().all(|z| z.is_finite()));
/// ```
pub fn standard_normal<T: Real>(key: NoiseKey, out: &mut [T]) {
    fill(best_isa(), key, out);
}

pub fn fill<T: Real>(isa: Isa, key: NoiseKey, out: &mut [T]) {
    each_chunk(out.len(), [], [(out, CHUNK)], |chunk, [], [out]| {
        let first = (chunk * CHUNK) as u64;
        T::normal_chunk(isa, NormalChunk { key, first, out });
    });
}

/// The values from `first` on, a multiple of a group.
pub struct NormalChunk<'a, T> {
    key: NoiseKey,
    first: u64,
    out: &'a mut [T],
}

impl<T: Real> Kernel<T> for NormalChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        T::normals(self.key, self.first, self.out);
    }
}

/// The normal numbers of a number type.
pub trait Normal: Sized {
    /// Values from `first` on, a multiple of a group.
    fn normals(key: NoiseKey, first: u64, out: &mut [Self]);
}

impl Normal for f32 {
    #[inline(always)]
    fn normals(key: NoiseKey, first: u64, out: &mut [Self]) {
        let blocks_of = |group: usize| first / 4 + (group * BLOCKS) as u64;
        let (groups, rest) = out.as_chunks_mut::<GROUP>();
        let whole = groups.len();
        let mut scratch = GroupScratch::new();
        for (group, numbers) in groups.iter_mut().enumerate() {
            normal_group(key, blocks_of(group), &mut scratch, numbers);
        }
        if !rest.is_empty() {
            let mut numbers = [0.0; GROUP];
            normal_group(key, blocks_of(whole), &mut scratch, &mut numbers);
            rest.copy_from_slice(&numbers[..rest.len()]);
        }
    }
}

/// Words and lengths of the pairs of a group, by the halves of the group.
struct GroupScratch {
    radii: [[u32; BLOCKS]; 2],
    angles: [[u32; BLOCKS]; 2],
    lengths: [f32; PAIRS],
}

impl GroupScratch {
    #[inline(always)]
    fn new() -> Self {
        Self {
            radii: [[0; BLOCKS]; 2],
            angles: [[0; BLOCKS]; 2],
            lengths: [0.0; PAIRS],
        }
    }
}

/// Short loops one after the other: more of their turns are under way at the same time than of a
/// long one.
#[inline(always)]
fn normal_group(
    key: NoiseKey,
    first_block: u64,
    scratch: &mut GroupScratch,
    out: &mut [f32; GROUP],
) {
    // Two independent blocks at a time: one alone would wait for its own products.
    for i in 0..BLOCKS / 2 {
        for j in [i, i + BLOCKS / 2] {
            let words = words(key, first_block + j as u64);
            scratch.radii[0][j] = words[0] as u32;
            scratch.radii[1][j] = words[1] as u32;
            scratch.angles[0][j] = words[2] as u32;
            scratch.angles[1][j] = words[3] as u32;
        }
    }
    let radii = scratch.radii.as_flattened();
    for (length, &radius) in scratch.lengths.iter_mut().zip(radii) {
        *length = length_of(radius);
    }
    let (cosines, sines) = out.split_at_mut(PAIRS);
    let inputs = scratch.lengths.iter().zip(scratch.angles.as_flattened());
    for ((cosine, sine), (length, &angle)) in cosines.iter_mut().zip(sines).zip(inputs) {
        let direction = direction_of(angle);
        *cosine = length * direction.0;
        *sine = length * direction.1;
    }
}

/// `sqrt(-2 ln u)` with `u = (word/2 + 1/2) / 2^31`, rounded.
#[inline(always)]
pub fn length_of(word: u32) -> f32 {
    circulant_core::random::squared_length_of(word).sqrt()
}

impl Normal for f64 {
    #[inline(always)]
    fn normals(key: NoiseKey, first: u64, out: &mut [Self]) {
        for (i, numbers) in out.chunks_mut(2).enumerate() {
            let pair = wide_pair(words(key, first / 2 + i as u64));
            numbers.copy_from_slice(&pair[..numbers.len()]);
        }
    }
}

/// 53 bits for `u` and for the part of a quarter turn.
fn wide_pair(words: [u64; 4]) -> [f64; 2] {
    const TO_UNIT: f64 = 1.0 / (1u64 << 53) as f64;
    let [radius, angle] = [0, 2].map(|i| words[i] & 0xffff_ffff | words[i + 1] << 32);
    let u = ((radius >> 11) + 1) as f64 * TO_UNIT;
    let r = (-2.0 * u.ln()).sqrt();
    let (sin, cos) = ((angle << 2 >> 11) as f64 * TO_UNIT * FRAC_PI_2).sin_cos();
    let (cosine, sine) = match angle >> 62 {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    };
    [r * cosine, r * sine]
}
