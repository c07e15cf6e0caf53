//! Random numbers of one image.

use super::super::split_mix::SplitMix64;

/// A stream.
pub(super) struct Noise(SplitMix64);

impl Noise {
    /// The stream of one image.
    pub fn new(seed: u64, family: u64, index: u64) -> Self {
        Self(SplitMix64::new(seed, &[family, index]))
    }

    /// Uniform in 0..1.
    pub fn unit(&mut self) -> f32 {
        (self.0.next() >> 40) as f32 / (1_u64 << 24) as f32
    }

    /// Uniform between two numbers.
    pub fn range(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.unit()
    }

    /// Near a normal with mean 0 and the given deviation, but never beyond 3 deviations: a digit that is
    /// bent without limit is no digit.
    pub fn bell(&mut self, deviation: f32) -> f32 {
        let sum: f32 = (0..3).map(|_| self.unit()).sum();
        (sum - 1.5) * 2.0 * deviation
    }

    /// True with a probability.
    pub fn chance(&mut self, probability: f32) -> bool {
        self.unit() < probability
    }
}
