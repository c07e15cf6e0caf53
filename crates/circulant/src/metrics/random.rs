//! Random rows from a seed.

/// SplitMix64 (Steele, Lea and Flood, 2014): a counter and a mixing function, so any resample can start
/// at once. Written out here because the bytes must not change with a dependency.
pub(super) struct Random {
    state: u64,
}

impl Random {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    pub(super) fn new(seed: u64, stream: usize) -> Self {
        let key = mix(seed.wrapping_add(Self::STEP));
        Self {
            // Mixed twice, so that the counters of neighbouring streams lie far apart.
            state: mix(key ^ mix((stream as u64).wrapping_mul(Self::STEP))),
        }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(Self::STEP);
        mix(self.state)
    }

    /// Draws as many rows as there are counts, with replacement, and counts each.
    pub(super) fn draw(&mut self, counts: &mut [u32]) {
        counts.fill(0);
        let rows = counts.len() as u128;
        for _ in 0..counts.len() {
            // The high word of the product is uniform up to a bias of rows / 2^64.
            let row = (u128::from(self.next()) * rows) >> 64;
            counts[row as usize] += 1;
        }
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        // The first outputs for seed 1234567 of the authors' Java version.
        let mut random = Random { state: 1_234_567 };
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn draws_are_uniform() {
        let mut counts = [0; 10];
        let mut sums = [0_u32; 10];
        for stream in 0..10_000 {
            Random::new(3, stream).draw(&mut counts);
            assert_eq!(counts.iter().sum::<u32>(), 10);
            sums.iter_mut()
                .zip(counts)
                .for_each(|(sum, count)| *sum += count);
        }
        // 10,000 expected each, with the deviation sqrt(100,000 * 0.09) = 95; five of these.
        assert!(
            sums.iter().all(|&sum| sum.abs_diff(10_000) < 475),
            "{sums:?}"
        );
    }
}
