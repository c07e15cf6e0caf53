//! Initial values from a seed: the same seed gives the same values, whatever else draws.

use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;

/// The random numbers of one seed.
#[derive(Debug)]
pub(crate) struct InitialNumbers(StdRng);

impl InitialNumbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// Those of a layer. Without a seed, of the next one in a sequence that is far from the small seeds that people choose.
    pub(crate) fn of_layer(seed: Option<u64>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0x9E37_79B9_7F4A_7C15);
        Self::new(seed.unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// A seed for another generator.
    pub(crate) fn seed(&mut self) -> u64 {
        self.0.random()
    }

    /// `count` normal values of the given standard deviation.
    pub(crate) fn normal(&mut self, count: usize, deviation: f64) -> Vec<f64> {
        let mut sample = || self.0.sample::<f64, _>(StandardNormal);
        (0..count).map(|_| deviation * sample()).collect()
    }

    /// `count` numbers uniform in `[-bound, bound)`.
    pub(crate) fn uniform(&mut self, count: usize, bound: f64) -> Vec<f64> {
        let mut sample = || self.0.random_range(-bound..bound);
        (0..count).map(|_| sample()).collect()
    }
}
