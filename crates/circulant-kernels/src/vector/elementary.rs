//! `exp`, `ln`, `sin` and `cos` that the compiler can turn into vector code.
//!
//! They are polynomials without branches (those of Cephes but for the logarithm), written on one
//! number: a loop over a slice below [`crate::vector::Isa::run`] becomes vector instructions. No
//! product is fused with a sum, so a number has the same bits on every instruction set.

/// Functions of one number, inlined into the loops of the kernels.
pub trait Elementary: Copy + Sized {
    /// `e^x`; zero where it is below `2^-125`, NaN for NaN.
    fn exponential(self) -> Self;
    /// Natural logarithm; NaN for NaN and for negative values, minus infinity for zero and, in f32,
    /// below the smallest normal number.
    fn logarithm(self) -> Self;
    /// Square root, correctly rounded.
    fn root(self) -> Self;
    /// The sum of the logarithms of at most [`LOGARITHMS`] values.
    fn sum_of_logarithms(numbers: &[Self]) -> f64;
}

/// Values of a [`Elementary::sum_of_logarithms`].
pub const LOGARITHMS: usize = 128;

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
pub fn sin_cos_of_octants(x: f32) -> (f32, f32) {
    let square = x * x;
    let sin = ((-1.951_529_6e-4 * square + 8.332_161e-3) * square - 1.666_665_5e-1) * (square * x);
    let cos =
        ((2.443_315_7e-5 * square - 1.388_731_6e-3) * square + 4.166_664_6e-2) * (square * square);
    (x + sin, (cos - 0.5 * square) + 1.0)
}
