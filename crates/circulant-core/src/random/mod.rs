//! Values from a counter: the same key and position give the same number on every machine.

mod integer;
mod normal;
mod philox;

pub use integer::{CounterKey, FRACTION_BITS, QUANTILES};
pub use normal::{BLOCKS, GROUP, PAIRS, normal_at, squared_length_of};
pub use philox::{NoiseKey, uniform_u64, words};

/// The seed of a purpose (by number) out of a user's seed, by the finaliser of SplitMix64: neighbouring seeds give
/// unrelated keys.
pub fn seed_for(seed: u64, purpose: u64) -> u64 {
    mix(seed ^ mix(purpose))
}

fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
