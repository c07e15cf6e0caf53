//! SplitMix64: random bits that stay the same in every version, one stream per picture.

/// A stream.
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    /// The stream of a seed and of the words that say what is drawn.
    pub fn new(seed: u64, words: &[u64]) -> Self {
        let mut stream = Self(seed);
        for word in words {
            stream.0 = stream.next() ^ word.wrapping_mul(0xd1b5_4a32_d192_ed03);
        }
        stream
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of seed 1234567 in the reference implementation.
    #[test]
    fn numbers_are_those_of_the_reference() {
        let mut stream = SplitMix64::new(1_234_567, &[]);
        let numbers = [(); 3].map(|()| stream.next());
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
            ]
        );
    }

    #[test]
    fn every_word_changes_the_stream() {
        let first = |seed, words: [u64; 3]| SplitMix64::new(seed, &words).next();
        let base = first(1, [2, 3, 4]);
        let others = [
            first(0, [2, 3, 4]),
            first(1, [3, 3, 4]),
            first(1, [2, 2, 4]),
            first(1, [2, 3, 5]),
            first(1, [3, 2, 4]),
        ];
        assert!(others.iter().all(|&other| other != base));
        assert_eq!(base, first(1, [2, 3, 4]));
    }
}
