//! Standard normal values as integers of `1/4096`, for devices: a hash of a counter and a table in the place of Philox and of
//! logarithms, about 25 instructions each.
//!
//! 16 bits choose among 65,536 values of equal probability: a sign, and a tail `q = (2 t + 1)/2^16` with `t` in `0..2^15`. The
//! magnitude `z` with `P(|Z| > z) = q` is interpolated between 16 points in every octave of `q`. The largest is 4.32; mean and
//! odd moments are zero, the variance is 1.0001 and the fourth moment 2.9995; no magnitude is off by more than 4.1e-4.

/// Binary logarithm of the unit of the values.
pub const FRACTION_BITS: u32 = 12;

/// `4096 z` for tails of `2^(i/16 - 16) (1 + (i mod 16)/16)`, whole octaves at multiples of 16.
pub static QUANTILES: [i16; 257] = [
    17715, 17660, 17608, 17559, 17512, 17468, 17425, 17384, 17345, 17308, 17271, 17237, 17203,
    17170, 17139, 17108, 17079, 17022, 16968, 16917, 16869, 16823, 16779, 16737, 16696, 16657,
    16620, 16584, 16549, 16515, 16482, 16451, 16420, 16361, 16306, 16253, 16203, 16155, 16109,
    16065, 16023, 15983, 15944, 15906, 15870, 15835, 15801, 15768, 15737, 15676, 15618, 15563,
    15511, 15461, 15413, 15368, 15324, 15282, 15242, 15203, 15165, 15128, 15093, 15059, 15025,
    14962, 14902, 14845, 14790, 14738, 14689, 14641, 14595, 14551, 14509, 14468, 14429, 14391,
    14354, 14318, 14283, 14217, 14154, 14094, 14037, 13983, 13931, 13881, 13833, 13787, 13742,
    13700, 13658, 13618, 13579, 13542, 13505, 13435, 13369, 13306, 13246, 13189, 13135, 13082,
    13032, 12983, 12936, 12891, 12848, 12805, 12765, 12725, 12686, 12613, 12543, 12476, 12413,
    12352, 12295, 12239, 12186, 12134, 12085, 12037, 11991, 11946, 11903, 11860, 11820, 11741,
    11667, 11596, 11529, 11464, 11403, 11344, 11287, 11232, 11179, 11128, 11079, 11031, 10984,
    10939, 10896, 10812, 10732, 10656, 10584, 10515, 10449, 10385, 10324, 10265, 10208, 10153,
    10100, 10048, 9998, 9950, 9902, 9812, 9725, 9643, 9565, 9490, 9418, 9349, 9282, 9218, 9156,
    9096, 9038, 8982, 8927, 8874, 8822, 8723, 8628, 8538, 8452, 8370, 8290, 8214, 8141, 8069, 8001,
    7934, 7870, 7807, 7746, 7687, 7630, 7519, 7413, 7312, 7216, 7123, 7034, 6948, 6865, 6784, 6706,
    6631, 6558, 6486, 6417, 6350, 6284, 6157, 6035, 5919, 5807, 5700, 5596, 5496, 5399, 5304, 5213,
    5124, 5038, 4953, 4871, 4790, 4712, 4560, 4414, 4273, 4137, 4005, 3878, 3754, 3634, 3516, 3402,
    3290, 3180, 3073, 2968, 2864, 2763, 2565, 2372, 2185, 2002, 1823, 1648, 1475, 1305, 1137, 972,
    807, 644, 482, 321, 160, 0,
];

/// Which values: two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterKey(pub [u32; 2]);

impl CounterKey {
    /// The key of a stream of a seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        let key = super::seed_for(seed, stream);
        Self([key as u32, (key >> 32) as u32])
    }

    /// Value `index`, as an integer of `1/4096`.
    #[inline]
    pub fn normal(self, index: u32) -> i32 {
        normal_of(self.word(index))
    }

    /// Two values, the first of them [`Self::normal`] of the same index.
    #[inline]
    pub fn two_normals(self, index: u32) -> (i32, i32) {
        let word = self.word(index);
        (normal_of(word), normal_of(word << 16))
    }

    /// 32 bits for an index: a hash of two products that Wellons' search found, with a key before it and one within.
    #[inline]
    fn word(self, index: u32) -> u32 {
        let mut x = index.wrapping_mul(0x9e37_79b9) ^ self.0[0];
        x = (x ^ (x >> 16))
            .wrapping_mul(0x21f0_aaad)
            .wrapping_add(self.0[1]);
        x = (x ^ (x >> 15)).wrapping_mul(0xd35a_2d97);
        x ^ (x >> 15)
    }
}

/// The value that the upper 16 bits of a word choose.
#[inline]
fn normal_of(word: u32) -> i32 {
    // The tail in units of 2^-16; its highest bit is the octave.
    let tail = (word >> 16 & 0x7fff) << 1 | 1;
    let shift = tail.leading_zeros();
    let mantissa = tail << shift;
    // A tail has 16 bits, so its octave is at most 15.
    let place = (((31 - shift) & 15) << 4 | mantissa >> 27 & 15) as usize;
    let (high, low) = (i32::from(QUANTILES[place]), i32::from(QUANTILES[place + 1]));
    let part = (mantissa >> 16 & 0x7ff) as i32;
    let size = high - (((high - low) * part + 1024) >> 11);
    if word >> 31 == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    /// `P(|Z| > z)`.
    fn tail(z: f64) -> f64 {
        libm::erfc(z * core::f64::consts::FRAC_1_SQRT_2)
    }

    #[test]
    fn magnitudes_have_the_tails_of_the_normal_distribution() {
        let (mut square, mut fourth) = (0.0, 0.0);
        for t in 0..1_u32 << 15 {
            let z = f64::from(normal_of(t << 16)) / 4096.0;
            assert_eq!(normal_of(t << 16 | 1 << 31), -normal_of(t << 16));
            let q = f64::from(2 * t + 1) / 65536.0;
            assert!(tail(z - 4.1e-4) > q && tail(z + 4.1e-4) < q, "{t}: {z}");
            square += z * z;
            fourth += z.powi(4);
        }
        let count = f64::from(1 << 15);
        assert!((square / count - 1.0001).abs() < 1e-5, "{}", square / count);
        assert!((fourth / count - 2.9995).abs() < 1e-4, "{}", fourth / count);
    }

    /// Values, neighbours and streams look independent: sums over 2^16 values within five standard errors.
    #[test]
    fn streams_are_independent() {
        let key = |stream| CounterKey::new(7, stream);
        let count = 1 << 16;
        let mean = |f: &dyn Fn(u32) -> f64| {
            let sum: f64 = (0..count).map(f).sum();
            sum / f64::from(count)
        };
        let z = |stream: u64, index: u32| f64::from(key(stream).normal(index)) / 4096.0;
        let near = |found: f64, expected: f64, deviation: f64| {
            let error = 5.0 * deviation / 256.0;
            assert!((found - expected).abs() < error, "{found} {expected}");
        };
        for stream in 0..8 {
            near(mean(&|i| z(stream, i)), 0.0, 1.0);
            let second = |i| f64::from(key(stream).two_normals(i).1) / 4096.0;
            near(mean(&second), 0.0, 1.0);
            near(mean(&|i| second(i) * z(stream, i)), 0.0, 1.0);
            near(mean(&|i| second(i) * z(stream, i + 1)), 0.0, 1.0);
            near(mean(&|i| second(i).powi(2)), 1.0, 2.0_f64.sqrt());
            near(mean(&|i| z(stream, i).powi(2)), 1.0, 2.0_f64.sqrt());
            for lag in [1, 2, 3, 16, 256, 784] {
                near(mean(&|i| z(stream, i) * z(stream, i + lag)), 0.0, 1.0);
            }
            for other in [stream + 1, stream | 1 << 16, stream | 1 << 63] {
                if other != stream {
                    near(mean(&|i| z(stream, i) * z(other, i)), 0.0, 1.0);
                    near(
                        mean(&|i| z(stream, i).powi(2) * z(other, i).powi(2)),
                        1.0,
                        8.0_f64.sqrt(),
                    );
                }
            }
        }
    }
}
