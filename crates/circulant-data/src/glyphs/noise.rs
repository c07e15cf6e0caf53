//! Random numbers that stay the same in every version: SplitMix64, one stream per image.

/// A stream.
pub(super) struct Noise(u64);

impl Noise {
    /// The stream of one image.
    pub fn new(seed: u64, family: u64, index: u64) -> Self {
        let mut stream = Self(seed);
        for word in [family, index] {
            stream.0 = stream.next() ^ word.wrapping_mul(0xd1b5_4a32_d192_ed03);
        }
        stream
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Uniform in 0..1.
    pub fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u64 << 24) as f32
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
