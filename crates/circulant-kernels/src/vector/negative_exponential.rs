//! `e^x` for `x <= 0`, the only kind that a softmax and a normal density need, as vector code with
//! fused products: no bound above, and polynomials that are shorter by half.
//!
//! `e^x = 2^n e^r` with `n` the integer nearest to `x/ln 2`; the polynomial is that of Cephes in f32
//! and Taylor's up to `r^13` in f64, whose rest is below 5e-18 for `|r| <= ln(2)/2`.

use crate::vector::Vector;

/// The polynomial with these coefficients, the highest power first.
#[inline(always)]
pub(crate) fn horner<V: Vector, const N: usize>(
    x: V::Scalar,
    coefficients: [V::Scalar; N],
) -> V::Scalar {
    let mut sum = coefficients[0];
    for &c in &coefficients[1..] {
        sum = V::fused(sum, x, c);
    }
    sum
}

/// The exponential of one number that is not positive, inlined into the loops of the kernels.
pub trait NegativeExponential: Sized {
    /// `e^self`, good to two units in the last place; zero below -87.7 (f32) or
    /// -708.8 (f64), minus infinity included; NaN for NaN. Above zero it holds as long as
    /// the result is below two.
    #[inline(always)]
    fn exponential_of_negative<V: Vector<Scalar = Self>>(self) -> Self
    where
        Self: std::ops::Mul<Output = Self>,
    {
        let (mantissa, scale) = self.exponential_parts::<V>();
        mantissa * scale
    }

    /// Two factors of `e^self`: one near 1, known late, and a power of two, known early.
    fn exponential_parts<V: Vector<Scalar = Self>>(self) -> (Self, Self);
}

impl NegativeExponential for f32 {
    #[inline(always)]
    fn exponential_parts<V: Vector<Scalar = Self>>(self) -> (Self, Self) {
        /// Here the scale is zero by itself.
        const LOWEST: f32 = -88.0;
        /// `1.5*2^23`: a sum with it is rounded to an integer, found in its low bits.
        const ROUNDING: f32 = 12_582_912.0;
        // A comparison, not `max`: NaN stays NaN.
        let x = if self < LOWEST { LOWEST } else { self };
        let shifted = V::fused(x, std::f32::consts::LOG2_E, ROUNDING);
        let n = shifted - ROUNDING;
        // ln 2 in two parts: the large one has few bits, so its product is exact.
        let r = V::fused(n, -0.693_359_4, x);
        let r = V::fused(n, 2.121_944_4e-4, r);
        // By pairs, not one coefficient after the other: the sums are ready sooner.
        let square = r * r;
        let high = V::fused(1.987_569_1e-4, r, 1.398_2e-3);
        let middle = V::fused(8.333_452e-3, r, 4.166_579_6e-2);
        let low = V::fused(1.666_666_5e-1, r, 0.5);
        let sum = V::fused(V::fused(high, square, middle), square, low);
        let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
        (V::fused(sum, square, r + 1.0), scale)
    }
}

impl NegativeExponential for f64 {
    #[inline(always)]
    fn exponential_parts<V: Vector<Scalar = Self>>(self) -> (Self, Self) {
        const LOWEST: f64 = -709.0;
        /// `1.5*2^52`.
        const ROUNDING: f64 = 6_755_399_441_055_744.0;
        const COEFFICIENTS: [f64; 12] = [
            1.0 / 6_227_020_800.0,
            1.0 / 479_001_600.0,
            1.0 / 39_916_800.0,
            1.0 / 3_628_800.0,
            1.0 / 362_880.0,
            1.0 / 40_320.0,
            1.0 / 5_040.0,
            1.0 / 720.0,
            1.0 / 120.0,
            1.0 / 24.0,
            1.0 / 6.0,
            0.5,
        ];
        let x = if self < LOWEST { LOWEST } else { self };
        let shifted = V::fused(x, std::f64::consts::LOG2_E, ROUNDING);
        let n = shifted - ROUNDING;
        let r = V::fused(n, -0.693_145_751_953_125, x);
        let r = V::fused(n, -1.428_606_820_309_417_2e-6, r);
        let sum = horner::<V, 12>(r, COEFFICIENTS);
        let scale = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52));
        (V::fused(sum, r * r, r + 1.0), scale)
    }
}
