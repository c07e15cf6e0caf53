//! `exp`, `ln`, `tanh`, `sin` and `cos` of one f32, without a standard library.
//!
//! They are polynomials without branches (those of Cephes but for the logarithm): a loop over a slice becomes vector
//! instructions. No product is fused with a sum, so a number has the same bits on every processor.

use core::f32::consts::LOG2_E;
use core::f64::consts::FRAC_PI_2;

/// `e^x`; zero where it is below `2^-125`, NaN for NaN.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    /// Above, the factors below overflow to infinity by themselves.
    const HIGHEST: f32 = 89.0;
    /// Below, the scale is zero by itself.
    const LOWEST: f32 = -87.4;
    /// `1.5*2^23`: a sum with it is rounded to an integer, found in its low bits.
    const ROUNDING: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;

    // Comparisons, not `clamp`: a NaN stays a NaN.
    let x = if x > HIGHEST { HIGHEST } else { x };
    let x = if x < LOWEST { LOWEST } else { x };
    let shifted = x * LOG2_E + ROUNDING;
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

/// Natural logarithm; NaN for NaN and for negative values, minus infinity for zero and below the smallest normal number.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    let below = if x < 0.0 { f32::NAN } else { f32::NEG_INFINITY };
    let result = ln_of_normal(x, 0);
    let result = if x < f32::MIN_POSITIVE { below } else { result };
    // Infinity and NaN are their own logarithms.
    if x < f32::INFINITY { result } else { x }
}

/// Hyperbolic tangent, within 2e-7; NaN for NaN.
///
/// `1 - 2/(e^2x + 1)` loses digits near zero, where there are five terms of the series instead.
///
/// ```
/// let expected = 0.3_f64.tanh();
/// assert!((f64::from(circulant_core::elementary::tanh(0.3)) - expected).abs() < 2e-7);
/// ```
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    if x * x < 0.0625 {
        let square = x * x;
        let sum = (2.186_949e-2 * square - 5.396_825_4e-2) * square + 1.333_333_4e-1;
        return x + x * square * (sum * square - 3.333_333_4e-1);
    }
    1.0 - 2.0 / (exp(2.0 * x) + 1.0)
}

/// Square root, correctly rounded.
#[inline(always)]
pub fn root(x: f32) -> f32 {
    libm::sqrtf(x)
}

/// Square root within three units in the last place, in a fraction of the time where there is no instruction for it: two steps of
/// Heron from a guess within 4 %. Zero for zero and below the smallest normal number, NaN for NaN and negative values.
///
/// ```
/// assert!((circulant_core::elementary::near_root(2.0) - 2.0_f32.sqrt()).abs() < 4e-7);
/// ```
#[inline(always)]
pub fn near_root(x: f32) -> f32 {
    if x < f32::MIN_POSITIVE {
        return if x >= 0.0 { 0.0 } else { f32::NAN };
    }
    if x == f32::INFINITY || x.is_nan() {
        return x;
    }
    // Half the exponent.
    let guess = f32::from_bits((x.to_bits() >> 1) + 0x1fbb_4f2e);
    let near = 0.5 * (guess + x / guess);
    0.5 * (near + x / near)
}

/// `ln(x / 2^halvings)` of a positive normal number.
///
/// The coefficients are a minimax fit of `(ln(1 + f) - f + f^2/2)/f^3` on `[sqrt(1/2), sqrt(2)]`,
/// good to 3e-8 of the logarithm.
#[inline(always)]
pub fn ln_of_normal(x: f32, halvings: u32) -> f32 {
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
pub fn mantissa_and_exponent(x: f32, halvings: u32) -> (f32, i32) {
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

/// `(cos, sin)` of `word/2^32` turns.
#[inline(always)]
pub fn direction_of(word: u32) -> (f32, f32) {
    const TO_ANGLE: f32 = (FRAC_PI_2 / 4_294_967_296.0) as f32;
    const SIGN: u32 = 1 << 31;
    // The nearest quarter turn is taken off exactly, in integers.
    let (sin, cos) = sin_cos_of_octants((word << 2) as i32 as f32 * TO_ANGLE);
    let quarters = word.wrapping_add(1 << 29) >> 30;
    let odd = quarters & 1 == 1;
    let (sin, cos) = if odd { (cos, sin) } else { (sin, cos) };
    (
        f32::from_bits(cos.to_bits() ^ ((quarters + 1) << 30 & SIGN)),
        f32::from_bits(sin.to_bits() ^ (quarters << 30 & SIGN)),
    )
}
