//! Random numbers of one picture: uniform, and normal by Box and Muller: `sqrt(-2 ln(1 - u)) (cos, sin)(2 pi v)`.

use std::f64::consts::TAU;

use super::super::split_mix::SplitMix64;

/// A stream.
pub(super) struct Random {
    bits: SplitMix64,
    /// The sine of the last pair.
    spare: Option<f64>,
}

impl Random {
    /// The stream of a seed and of what is drawn, here (corruption, severity, picture).
    pub fn new(seed: u64, words: [u64; 3]) -> Self {
        Self {
            bits: SplitMix64::new(seed, &words),
            spare: None,
        }
    }

    /// Uniform in 0..1, with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform between two numbers.
    pub fn range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A whole number in `0..count`, for small counts.
    pub fn below(&mut self, count: usize) -> usize {
        (self.unit() * count as f64) as usize
    }

    /// Normal.
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let standard = self.spare.take().unwrap_or_else(|| {
            let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
            let (sine, cosine) = (TAU * self.unit()).sin_cos();
            self.spare = Some(radius * sine);
            radius * cosine
        });
        mean + deviation * standard
    }

    /// `count` normal numbers.
    pub fn normals(&mut self, count: usize, mean: f64, deviation: f64) -> Vec<f64> {
        (0..count).map(|_| self.normal(mean, deviation)).collect()
    }

    /// `count` uniform numbers.
    pub fn uniforms(&mut self, count: usize, low: f64, high: f64) -> Vec<f64> {
        (0..count).map(|_| self.range(low, high)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_a_normal() {
        const COUNT: usize = 200_000;
        let values = Random::new(1, [2, 3, 4]).normals(COUNT, 0.0, 1.0);
        let moment = |power: i32| values.iter().map(|x| x.powi(power)).sum::<f64>() / COUNT as f64;
        // Five standard errors: sqrt(var(x^p) / COUNT) with var 1, 2, 15, 96.
        for (power, truth, variance) in
            [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)]
        {
            let error: f64 = moment(power) - truth;
            assert!(
                error.abs() < 5.0 * f64::sqrt(variance / COUNT as f64),
                "{power}: {error}"
            );
        }
    }

    #[test]
    fn small_whole_numbers_are_even() {
        let mut random = Random::new(5, [0; 3]);
        let mut counts = [0; 5];
        (0..10_000).for_each(|_| counts[random.below(5)] += 1);
        assert!(
            counts.iter().all(|n| (1800..2200).contains(n)),
            "{counts:?}"
        );
    }
}
