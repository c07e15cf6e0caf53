//! Random numbers that depend on a seed and on what they are for, never on what was drawn before.
//!
//! Every tensor of noise has its own stream of a counter-based generator, named by purpose, step, posterior
//! sample and position in the model. So a run that was interrupted resumes with the very values it would have had,
//! without any generator state to save.

use circulant_kernels::seed_for;
pub(crate) use circulant_kernels::uniform_u64;
pub use circulant_kernels::{NoiseKey, standard_normal};

/// Streams per draw and draws per step, as powers of two.
const SITE_BITS: u32 = 16;
const SAMPLE_BITS: u32 = 16;

/// What random numbers are for. Numbers for different purposes are unrelated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purpose {
    /// Initial posterior parameters.
    Initial = 1,
    /// The noise of training steps.
    Training = 2,
    /// The order of the examples.
    Order = 3,
    /// The posterior samples of predictions.
    Prediction = 4,
}

/// The streams of one draw from a posterior.
#[derive(Debug, Clone)]
pub struct Noise {
    seed: u64,
    stream: u64,
}

impl Noise {
    /// The noise of posterior sample `sample` at step `step`.
    ///
    /// # Panics
    ///
    /// Panics if there are more than 65,536 samples in a step, or 2^32 steps.
    pub fn new(seed: u64, purpose: Purpose, step: u64, sample: usize) -> Self {
        assert!(
            sample < 1 << SAMPLE_BITS && step < 1 << (64 - SITE_BITS - SAMPLE_BITS),
            "expected fewer than 2^16 samples and 2^32 steps, got sample {sample} of step {step}"
        );
        Self {
            seed: seed_for(seed, purpose as u64),
            stream: (step << SAMPLE_BITS | sample as u64) << SITE_BITS,
        }
    }

    /// The next stream of this draw.
    ///
    /// # Panics
    ///
    /// Panics after 65,535 streams.
    pub fn next_key(&mut self) -> NoiseKey {
        let key = NoiseKey {
            seed: self.seed,
            stream: self.stream,
        };
        self.stream += 1;
        assert!(
            !self.stream.is_multiple_of(1 << SITE_BITS),
            "a draw has fewer than 2^16 streams"
        );
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_streams_are_alike() {
        let mut keys = Vec::new();
        for purpose in [Purpose::Training, Purpose::Prediction] {
            for (seed, step, sample) in [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)] {
                let mut noise = Noise::new(seed, purpose, step, sample);
                keys.extend([noise.next_key(), noise.next_key()].map(|key| format!("{key:?}")));
            }
        }
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }
}
