//! `exp`, `ln`, `sin` and `cos` that the compiler can turn into vector code.
//!
//! They are polynomials without branches (those of Cephes but for the logarithm), written on one
//! number: a loop over a slice below [`crate::vector::Isa::run`] becomes vector instructions. No
//! product is fused with a sum, so a number has the same bits on every instruction set.

/// Functions of one number, inlined into the loops of the kernels.
pub trait Elementary: Copy + Sized {
    /// `e^x`; zero where it is below `2^-125`, NaN for NaN.
    fn exponential(self) -> Self;
    /// Natural logarithm; NaN for NaN and for negative numbers, minus infinity for zero and, in f32,
    /// below the smallest normal number.
    fn logarithm(self) -> Self;
    /// Square root, correctly rounded.
    fn root(self) -> Self;
    /// The sum of the logarithms of at most [`LOGARITHMS`] numbers.
    fn sum_of_logarithms(numbers: &[Self]) -> f64;
}

/// Numbers of a [`Elementary::sum_of_logarithms`].
pub(crate) const LOGARITHMS: usize = 128;

impl Elementary for f32 {
    #[inline(always)]
    fn exponential(self) -> Self {
        /// Above, the factors below overflow to infinity by themselves.
        const HIGHEST: f32 = 89.0;
        /// Below, the scale is zero by itself.
        const LOWEST: f32 = -87.4;
        /// `1.5*2^23`: a sum with it is rounded to an integer, found in its low bits.
        const ROUNDING: f32 = 12_582_912.0;
        const LN_2_HIGH: f32 = 0.693_359_4;
        const LN_2_LOW: f32 = -2.121_944_4e-4;

        // Comparisons, not `clamp`: a NaN stays a NaN.
        let x = if self > HIGHEST { HIGHEST } else { self };
        let x = if x < LOWEST { LOWEST } else { x };
        let shifted = x * std::f32::consts::LOG2_E + ROUNDING;
        let n = shifted - ROUNDING;
        let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
        // By pairs, not one coefficient after the other: the sums are ready sooner.
        let square = r * r;
        let high = 3.975_138_2e-4 * r + 2.796_4e-3;
        let middle = 1.666_690_4e-2 * r + 8.333_159e-2;
        let low = 3.333_333e-1 * r + 1.0;
        let sum = (high * square + middle) * square + low;
        // Twice e^r times 2^(n - 1), for 2^128 is not a number.
        let twice = sum * square + (2.0 * r + 2.0);
        twice * f32::from_bits((shifted.to_bits() << 23).wrapping_add(126 << 23))
    }

    #[inline(always)]
    fn logarithm(self) -> Self {
        let below = if self < 0.0 {
            f32::NAN
        } else {
            f32::NEG_INFINITY
        };
        let result = ln_of_normal(self, 0);
        let result = if self < f32::MIN_POSITIVE {
            below
        } else {
            result
        };
        // Infinity and NaN are their own logarithms.
        if self < f32::INFINITY { result } else { self }
    }

    #[inline(always)]
    fn root(self) -> Self {
        self.sqrt()
    }

    /// `sum ln x = ln 2 * sum e + ln prod m` with `x = m 2^e`: one logarithm for all.
    #[inline(always)]
    fn sum_of_logarithms(numbers: &[Self]) -> f64 {
        const LANES: usize = 8;
        const SIGN: u32 = 1 << 31;
        debug_assert!(numbers.len() <= LOGARITHMS);
        let mut products = [1.0; LANES];
        let mut exponents = [0; LANES];
        let mut flags = [0; LANES];
        let (groups, rest) = numbers.as_chunks::<LANES>();
        let mut last = [1.0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        for group in groups.iter().chain([&last]) {
            for l in 0..LANES {
                let (m, e) = mantissa_and_exponent(group[l], 0);
                products[l] *= m;
                exponents[l] += e;
                // The sign of one of these is set unless the number is positive and normal.
                let bits = group[l].to_bits();
                let above = bits.wrapping_sub(f32::MIN_POSITIVE.to_bits());
                flags[l] |= bits | above | f32::MAX.to_bits().wrapping_sub(bits);
            }
        }
        let (mut product, mut exponent, mut flag) = (1.0, 0, 0);
        for l in 0..LANES {
            product *= f64::from(products[l]);
            exponent += exponents[l];
            flag |= flags[l];
        }
        if flag & SIGN != 0 {
            return numbers.iter().map(|x| f64::from(*x).ln()).sum();
        }
        product.ln() + f64::from(exponent) * std::f64::consts::LN_2
    }
}

/// The standard library's functions: f64 is for checks, not for speed.
impl Elementary for f64 {
    #[inline(always)]
    fn exponential(self) -> Self {
        self.exp()
    }
    #[inline(always)]
    fn logarithm(self) -> Self {
        self.ln()
    }
    #[inline(always)]
    fn root(self) -> Self {
        self.sqrt()
    }
    #[inline(always)]
    fn sum_of_logarithms(numbers: &[Self]) -> f64 {
        let mut sum = 0.0;
        for x in numbers {
            sum += x.ln();
        }
        sum
    }
}

/// `ln(x / 2^halvings)` of a positive normal number.
///
/// The coefficients are a minimax fit of `(ln(1 + f) - f + f^2/2)/f^3` on `[sqrt(1/2), sqrt(2)]`,
/// good to 3e-8 of the logarithm.
#[inline(always)]
pub(crate) fn ln_of_normal(x: f32, halvings: u32) -> f32 {
    let (mantissa, e) = mantissa_and_exponent(x, halvings);
    let (f, e) = (mantissa - 1.0, e as f32);
    let square = f * f;
    let high = (-0.142_674_86 * f + 0.149_147_67) + 0.087_004_356 * square;
    let low = (-0.165_775_85 * f + 0.199_630_63) * square + (-0.250_013_38 * f + 0.333_339_1);
    let sum = high * (square * square) + low;
    // ln 2 in two parts: the large one has few bits, so its product is exact.
    let small = sum * (f * square) + (e * -2.121_944_4e-4 - 0.5 * square);
    (e * 0.693_359_4 + f) + small
}

/// `(m, e)` with `x / 2^halvings = m 2^e` and `m` in `[sqrt(1/2), sqrt(2))`, for a positive normal
/// number.
#[inline(always)]
pub(crate) fn mantissa_and_exponent(x: f32, halvings: u32) -> (f32, i32) {
    const SQRT_HALF: u32 = 0x3f35_04f3;
    let bits = x.to_bits().wrapping_sub(SQRT_HALF + (halvings << 23));
    let mantissa = f32::from_bits((bits & 0x007f_ffff) + SQRT_HALF);
    (mantissa, bits as i32 >> 23)
}

/// `(sin, cos)` of an angle in `[-pi/4, pi/4]`.
#[inline(always)]
pub(crate) fn sin_cos_of_octants(x: f32) -> (f32, f32) {
    let square = x * x;
    let sin = ((-1.951_529_6e-4 * square + 8.332_161e-3) * square - 1.666_665_5e-1) * (square * x);
    let cos =
        ((2.443_315_7e-5 * square - 1.388_731_6e-3) * square + 4.166_664_6e-2) * (square * square);
    (x + sin, (cos - 0.5 * square) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two units in the last place of an f32.
    const RELATIVE: f64 = 2.0 * 1.2e-7;

    #[test]
    fn exponential_is_accurate_everywhere() {
        for i in -86_600..88_700 {
            let x = i as f32 * 1e-3;
            let exact = f64::from(x).exp();
            let error = (f64::from(x.exponential()) - exact).abs();
            assert!(error <= RELATIVE * exact, "{x}: {}", x.exponential());
        }
    }

    #[test]
    fn exponential_at_the_ends() {
        assert_eq!(f32::INFINITY.exponential(), f32::INFINITY);
        assert_eq!(89.0f32.exponential(), f32::INFINITY);
        assert_eq!(f32::NEG_INFINITY.exponential(), 0.0);
        assert_eq!((-87.0f32).exponential(), 0.0);
        assert_eq!(0.0f32.exponential(), 1.0);
        assert!(f32::NAN.exponential().is_nan());
    }

    #[test]
    fn logarithm_is_accurate_everywhere() {
        let numbers = (0..2_000_000u32).map(|i| f32::from_bits(0x0080_0000 + i * 1059));
        let near_one = (0..100_000u32).map(|i| f32::from_bits(0x3f7f_0000 + i));
        for x in numbers.chain(near_one).filter(|x| x.is_finite()) {
            let exact = f64::from(x).ln();
            let error = (f64::from(x.logarithm()) - exact).abs();
            assert!(error <= RELATIVE * exact.abs(), "{x}: {}", x.logarithm());
        }
    }

    #[test]
    fn logarithm_at_the_ends() {
        assert_eq!(0.0f32.logarithm(), f32::NEG_INFINITY);
        assert_eq!(1e-40f32.logarithm(), f32::NEG_INFINITY);
        assert_eq!(f32::INFINITY.logarithm(), f32::INFINITY);
        assert_eq!(1.0f32.logarithm(), 0.0);
        assert!((-1.0f32).logarithm().is_nan());
        assert!((-1e-40f32).logarithm().is_nan());
        assert!(f32::NAN.logarithm().is_nan());
    }

    #[test]
    fn a_sum_of_logarithms_is_accurate() {
        for len in 0..=LOGARITHMS {
            let number = |i: usize| (i as f32 * 1.7 - 80.0).exp() * (1.0 + 0.37 * i as f32);
            let numbers: Vec<f32> = (0..len).map(|i| number(i % 70)).collect();
            let exact: f64 = numbers.iter().map(|x| f64::from(*x).ln()).sum();
            let error = (f32::sum_of_logarithms(&numbers) - exact).abs();
            assert!(error < 1e-7 * (1 + len) as f64, "{len}: {error}");
        }
    }

    #[test]
    fn a_sum_of_logarithms_at_the_ends() {
        let sum = |x: f32| f32::sum_of_logarithms(&[2.0, x, 3.0]);
        for (x, expected) in [
            (0.0, f64::NEG_INFINITY),
            (f32::INFINITY, f64::INFINITY),
            (1e-40, 6.0f64.ln() + f64::from(1e-40f32).ln()),
        ] {
            assert_eq!(sum(x), expected);
        }
        for x in [
            f32::NAN,
            -f32::NAN,
            -1.0,
            -1e-40,
            f32::NEG_INFINITY,
            -f32::MAX,
        ] {
            assert!(sum(x).is_nan());
        }
    }

    #[test]
    fn sine_and_cosine_are_accurate_up_to_an_octant() {
        for i in -78_539..=78_539 {
            let x = i as f32 * 1e-5;
            let (sin, cos) = sin_cos_of_octants(x);
            let (exact_sin, exact_cos) = f64::from(x).sin_cos();
            assert!((f64::from(sin) - exact_sin).abs() <= RELATIVE * exact_sin.abs());
            assert!((f64::from(cos) - exact_cos).abs() <= RELATIVE * exact_cos.abs());
        }
    }
}
