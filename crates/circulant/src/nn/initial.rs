//! Initial numbers from a seed: the same seed gives the same numbers, whatever else draws.

use std::f64::consts::TAU;

/// Standard normal numbers by Box and Muller over the SplitMix64 sequence of a seed.
#[derive(Debug, Clone)]
pub(crate) struct Normal {
    state: u64,
}

impl Normal {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1], so that its logarithm exists.
    fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn sample(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (TAU * v).cos()
    }

    /// `count` numbers of the given standard deviation.
    pub(crate) fn samples(&mut self, count: usize, deviation: f64) -> Vec<f64> {
        (0..count).map(|_| deviation * self.sample()).collect()
    }

    /// `count` numbers uniform in `(-bound, bound]`.
    pub(crate) fn uniform_samples(&mut self, count: usize, bound: f64) -> Vec<f64> {
        (0..count)
            .map(|_| bound * (2.0 * self.uniform() - 1.0))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_matches_its_reference() {
        // The first values of the published C code for seed 1234567.
        let mut generator = Normal::new(1_234_567);
        assert_eq!(generator.bits(), 6_457_827_717_110_365_317);
        assert_eq!(generator.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn samples_are_standard_normal() {
        const COUNT: usize = 100_000;
        /// Five standard errors of the fourth moment, sqrt(96/n), cover all three.
        const TOLERANCE: f64 = 0.16;
        let samples = Normal::new(7).samples(COUNT, 1.0);
        let moment = |power: i32| samples.iter().map(|x| x.powi(power)).sum::<f64>() / COUNT as f64;
        assert!(moment(1).abs() < TOLERANCE / 10.0);
        assert!((moment(2) - 1.0).abs() < TOLERANCE / 5.0);
        assert!((moment(4) - 3.0).abs() < TOLERANCE);
    }
}
