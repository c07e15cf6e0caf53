//! `exp`, `ln`, `sin` and `cos` that the compiler can turn into vector code.
//!
//! They are polynomials without branches (those of Cephes, `expf`, `logf`, `sinf`), written on one
//! number: a loop over a slice below [`crate::simd::Isa::run`] becomes vector instructions. No
//! product is fused with a sum, so a number has the same bits on every instruction set.

/// Functions of one number, inlined into the loops of the kernels.
pub trait Elementary: Copy + Sized {
    /// `e^x`; zero below the smallest normal number, NaN for NaN.
    fn exponential(self) -> Self;
    /// Natural logarithm; NaN for NaN and for negative numbers, minus infinity for zero.
    fn logarithm(self) -> Self;
    /// Square root, correctly rounded.
    fn root(self) -> Self;
}

impl Elementary for f32 {
    #[inline(always)]
    fn exponential(self) -> Self {
        /// Above, the result is larger than every f32.
        const OVERFLOW: f32 = 88.722_84;
        /// Below, the result is less than twice the smallest normal number, `2^-125`.
        const UNDERFLOW: f32 = -86.643_394;
        /// `1.5*2^23`: a sum with it is rounded to an integer, found in its low bits.
        const ROUNDING: f32 = 12_582_912.0;
        const LN_2_HIGH: f32 = 0.693_359_4;
        const LN_2_LOW: f32 = -2.121_944_4e-4;

        // Comparisons, not `clamp`: a NaN stays a NaN.
        let x = if self > OVERFLOW { OVERFLOW } else { self };
        let x = if x < UNDERFLOW { UNDERFLOW } else { x };
        let shifted = x * std::f32::consts::LOG2_E + ROUNDING;
        let n = shifted - ROUNDING;
        let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
        let mut sum = 1.987_569_1e-4;
        for c in [
            1.398_2e-3,
            8.333_452e-3,
            4.166_579_6e-2,
            1.666_666_5e-1,
            0.5,
        ] {
            sum = sum * r + c;
        }
        let mantissa = sum * (r * r) + r + 1.0;
        // 2^(n - 1), for 2^128 is not a number; the missing factor 2 follows.
        let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(126 << 23));
        let result = mantissa * scale * 2.0;
        let result = if self > OVERFLOW {
            f32::INFINITY
        } else {
            result
        };
        if self < UNDERFLOW { 0.0 } else { result }
    }

    #[inline(always)]
    fn logarithm(self) -> Self {
        const LIFT: f32 = 8_388_608.0;
        let tiny = self < f32::MIN_POSITIVE;
        let lifted = if tiny { self * LIFT } else { self };
        let result = ln_of_normal(lifted, if tiny { -23.0 } else { 0.0 });
        let result = if self == 0.0 {
            f32::NEG_INFINITY
        } else {
            result
        };
        // True for infinity, NaN and negative numbers, which the polynomial takes for others.
        if self >= 0.0 && self < f32::INFINITY {
            result
        } else if self == f32::INFINITY {
            self
        } else {
            f32::NAN
        }
    }

    #[inline(always)]
    fn root(self) -> Self {
        self.sqrt()
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
}

/// `ln(x 2^exponent)` of a positive normal number.
#[inline(always)]
pub(crate) fn ln_of_normal(x: f32, exponent: f32) -> f32 {
    /// The bits of `sqrt(1/2)`: the mantissa is taken from `[sqrt(1/2), sqrt(2))`.
    const SQRT_HALF: u32 = 0x3f35_04f3;
    let bits = x.to_bits().wrapping_sub(SQRT_HALF);
    let e = (bits as i32 >> 23) as f32 + exponent;
    let f = f32::from_bits((bits & 0x007f_ffff) + SQRT_HALF) - 1.0;
    let square = f * f;
    let mut sum = 7.037_683_6e-2;
    for c in [
        -1.151_461e-1,
        1.167_699_9e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_8e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333e-1,
    ] {
        sum = sum * f + c;
    }
    // ln 2 in two parts, the small one first: the large one has few bits, so its product is exact.
    let small = sum * (f * square) + e * -2.121_944_4e-4 - 0.5 * square;
    (f + small) + e * 0.693_359_4
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
        let numbers = (0..2_000_000u32).map(|i| f32::from_bits(1 + i * 1063));
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
        assert_eq!(f32::INFINITY.logarithm(), f32::INFINITY);
        assert_eq!(1.0f32.logarithm(), 0.0);
        assert!((-1.0f32).logarithm().is_nan());
        assert!((-1e-40f32).logarithm().is_nan());
        assert!(f32::NAN.logarithm().is_nan());
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
