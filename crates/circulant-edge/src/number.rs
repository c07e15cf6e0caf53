//! What the runtime computes in: f32, or integers where there is no unit for floats.

use circulant_core::random::FRACTION_BITS;
use circulant_core::{Scalar, elementary};

use crate::values::share_of;

/// A number type of the runtime.
pub trait Number: Scalar {
    /// Whether rounding errors are those that a certificate of the file allows for.
    const CERTIFIED: bool;

    /// Numbers below one times two to this, as integers, are all that [`Self::fraction`] makes.
    const FRACTION: u32;

    /// The nearest number.
    fn single(value: f32) -> Self;

    /// As f32.
    fn to_single(self) -> f32;

    /// A normal value out of an integer of `2^-FRACTION_BITS`.
    fn normal(integer: i32) -> Self;

    /// `byte * scale + offset`.
    fn pixel(byte: u8, scale: f32, offset: f32) -> Self;

    /// Times a code.
    fn times_code(self, code: i8) -> Self;

    /// `sum * scale` of a sum of integers.
    fn of_sum(sum: i32, scale: f32) -> Self;

    /// Times a scale of codes.
    fn scaled(self, scale: f32) -> Self;

    /// Times `2^(-code/16)`.
    fn share(self, code: u8) -> Self;

    /// Times `share/2^14`.
    fn fraction_of(self, share: u16) -> Self;

    /// Divided by a size.
    fn divided(self, by: usize) -> Self;

    /// Hyperbolic tangent.
    fn tanh(self) -> Self;

    /// Hyperbolic tangent within 2e-4, for values that are rounded to `2^-14` next.
    fn coarse_tanh(self) -> Self;

    /// Times a factor that makes it at most `2^FRACTION`, as an integer.
    fn fraction(self, factor: f32) -> i32;

    /// A product of small numbers, in the units of [`Self::fine_root`].
    fn fine_product(self, other: Self) -> Self;

    /// The root of a sum of fine products, as a number.
    fn fine_root(self) -> Self;

    /// A sum of fine products divided by a number, as a number.
    fn fine_quotient(self, by: Self) -> Self;

    /// Whether it is a number.
    fn is_sound(self) -> bool;

    /// Keeps an f32 in the place of a number.
    fn hold(value: f32) -> Self;

    /// The f32 that was kept.
    fn held(self) -> f32;

    /// Keeps an integer in the place of a number.
    fn keep(integer: i32) -> Self;

    /// The integer that was kept.
    fn kept(self) -> i32;
}

impl Number for f32 {
    const CERTIFIED: bool = true;
    const FRACTION: u32 = 24;

    #[inline(always)]
    fn single(value: f32) -> Self {
        value
    }

    #[inline(always)]
    fn to_single(self) -> f32 {
        self
    }

    #[inline(always)]
    fn normal(integer: i32) -> Self {
        const UNIT: f32 = 1.0 / (1 << FRACTION_BITS) as f32;
        integer as f32 * UNIT
    }

    #[inline(always)]
    fn pixel(byte: u8, scale: f32, offset: f32) -> Self {
        f32::from(byte) * scale + offset
    }

    #[inline(always)]
    fn times_code(self, code: i8) -> Self {
        self * f32::from(code)
    }

    #[inline(always)]
    fn of_sum(sum: i32, scale: f32) -> Self {
        sum as f32 * scale
    }

    #[inline(always)]
    fn scaled(self, scale: f32) -> Self {
        self * scale
    }

    #[inline(always)]
    fn share(self, code: u8) -> Self {
        self * share_of(code)
    }

    #[inline(always)]
    fn fraction_of(self, share: u16) -> Self {
        self * (f32::from(share) * (1.0 / 16384.0))
    }

    #[inline(always)]
    fn divided(self, by: usize) -> Self {
        self / by as f32
    }

    #[inline(always)]
    fn tanh(self) -> Self {
        elementary::tanh(self)
    }

    /// The seventh convergent of Lambert's continued fraction, within 8e-5.
    #[inline(always)]
    fn coarse_tanh(self) -> Self {
        const END: f32 = 4.8;
        let x = if self > END { END } else { self };
        let x = if x < -END { -END } else { x };
        let square = x * x;
        let above = ((square + 378.0) * square + 17_325.0) * square + 135_135.0;
        let below = ((28.0 * square + 3_150.0) * square + 62_370.0) * square + 135_135.0;
        x * above / below
    }

    #[inline(always)]
    fn fraction(self, factor: f32) -> i32 {
        (self * factor) as i32
    }

    #[inline(always)]
    fn fine_product(self, other: Self) -> Self {
        self * other
    }

    #[inline(always)]
    fn fine_root(self) -> Self {
        elementary::near_root(self)
    }

    #[inline(always)]
    fn fine_quotient(self, by: Self) -> Self {
        self / by
    }

    #[inline(always)]
    fn is_sound(self) -> bool {
        self.is_finite()
    }

    #[inline(always)]
    fn hold(value: f32) -> Self {
        value
    }

    #[inline(always)]
    fn held(self) -> f32 {
        self
    }

    #[inline(always)]
    fn keep(integer: i32) -> Self {
        Self::from_bits(integer as u32)
    }

    #[inline(always)]
    fn kept(self) -> i32 {
        self.to_bits() as i32
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn the_coarse_tanh_is_within_a_ten_thousandth() {
        for step in -100_000..=100_000 {
            let x = step as f32 * 1e-4;
            let error = f64::from(Number::coarse_tanh(x)) - f64::from(x).tanh();
            assert!(error.abs() < 8e-5, "{x}: {error}");
        }
        assert!(Number::coarse_tanh(f32::NAN).is_nan());
    }
}
