//! Initial numbers from a seed: the same seed gives the same numbers, whatever else draws.

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

    /// A seed for another generator.
    pub(crate) fn seed(&mut self) -> u64 {
        self.0.random()
    }

    /// `count` normal numbers of the given standard deviation.
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
