//! Values from a counter: the same key and position give the same number on every machine.

pub mod normal;

/// The generator of `circulant-core`.
pub mod philox {
    pub use circulant_core::random::{NoiseKey, uniform_u64, words};
}
