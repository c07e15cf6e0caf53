//! Philox4x32-10: four 32-bit words from a counter and a key, without a state.
//!
//! One round takes the counter `(c0, c1, c2, c3)` and the key `(k0, k1)` to
//! `(hi(M1 c2) ^ c1 ^ k0, lo(M1 c2), hi(M0 c0) ^ c3 ^ k1, lo(M0 c0))` and adds the Weyl constants
//! to the key; there are ten (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).

const MULTIPLIERS: [u64; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
const ROUNDS: u32 = 10;
const LOW: u64 = 0xffff_ffff;

/// Which random numbers: a seed and a stream of that seed.
///
/// Number `i` of a stream depends on the seed, the stream and `i` alone. Two streams of a seed,
/// or the same stream of two seeds, have nothing in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NoiseKey {
    /// The key of the generator.
    pub seed: u64,
    /// The upper half of the counter, for example `step*layers + layer`.
    pub stream: u64,
}

/// The counter as two halves, `block` and `stream`, to four words; each word is in the low half of
/// its number, with anything above it.
///
/// Words travel in 64-bit values because the vector product of two 32-bit words is one: its low
/// half serves as it is, so a round needs no shuffling.
#[inline(always)]
pub fn words(key: NoiseKey, block: u64) -> [u64; 4] {
    let [mut c0, mut c1] = [block, block >> 32];
    let [mut c2, mut c3] = [key.stream, key.stream >> 32];
    for round in 0..ROUNDS {
        let k0 = (key.seed as u32).wrapping_add(round.wrapping_mul(WEYL[0]));
        let k1 = ((key.seed >> 32) as u32).wrapping_add(round.wrapping_mul(WEYL[1]));
        let (p0, p1) = (MULTIPLIERS[0] * (c0 & LOW), MULTIPLIERS[1] * (c2 & LOW));
        (c0, c1) = ((p1 >> 32) ^ c1 ^ u64::from(k0), p1);
        (c2, c3) = ((p0 >> 32) ^ c3 ^ u64::from(k1), p0);
    }
    [c0, c1, c2, c3]
}

/// Number `index` of a stream of uniform 64-bit integers, for seeding and shuffling.
///
/// The counters of these values are never those of normal ones, so one key serves for both.
///
/// ```
/// use circulant_core::random::{NoiseKey, uniform_u64};
/// let key = NoiseKey { seed: 1, stream: 0 };
/// assert_ne!(uniform_u64(key, 0), uniform_u64(key, 1));
/// ```
pub fn uniform_u64(key: NoiseKey, index: u64) -> u64 {
    // No stream of normal values gets this far.
    let block = 1 << 63 | index >> 1;
    let words = words(key, block);
    let first = 2 * (index & 1) as usize;
    words[first] & LOW | words[first + 1] << 32
}
