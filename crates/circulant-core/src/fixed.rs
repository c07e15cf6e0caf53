//! Numbers for processors without a unit for floats: 32 bits, 16 of them behind the point.

use core::num::ParseIntError;
use core::ops::{Add, Div, Mul, Neg, Rem, Sub};

use num_traits::{Num, One, Zero};

use crate::scalar::Scalar;

/// A multiple of `2^-16` between -32768 and 32768. What does not fit becomes the nearest that does.
///
/// ```
/// use circulant_core::{Fixed, Scalar};
///
/// let half = Fixed::of(0.5);
/// assert_eq!((half * half + half).wide(), 0.75);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fixed(i32);

impl Fixed {
    /// Bits behind the point.
    pub const FRACTION_BITS: u32 = 16;

    /// The number with these bits.
    #[inline(always)]
    pub const fn from_bits(bits: i32) -> Self {
        Self(bits)
    }

    /// The number times `2^16`.
    #[inline(always)]
    pub const fn to_bits(self) -> i32 {
        self.0
    }

    /// `bits / 2^16`, or the nearest that there is.
    #[inline]
    pub fn nearest(bits: i64) -> Self {
        Self(bits.clamp(i32::MIN.into(), i32::MAX.into()) as i32)
    }
}

impl Add for Fixed {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Fixed {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul for Fixed {
    type Output = Self;

    #[inline]
    fn mul(self, other: Self) -> Self {
        Self::nearest((i64::from(self.0) * i64::from(other.0)) >> Self::FRACTION_BITS)
    }
}

impl Div for Fixed {
    type Output = Self;

    /// Division by zero gives the number that is farthest from zero, or zero.
    fn div(self, other: Self) -> Self {
        if other.0 == 0 {
            return match self.0.signum() {
                1 => Self(i32::MAX),
                sign => Self(sign * i32::MAX),
            };
        }
        Self::nearest((i64::from(self.0) << Self::FRACTION_BITS) / i64::from(other.0))
    }
}

impl Rem for Fixed {
    type Output = Self;

    fn rem(self, other: Self) -> Self {
        Self(self.0.checked_rem(other.0).unwrap_or(0))
    }
}

impl Neg for Fixed {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Zero for Fixed {
    fn zero() -> Self {
        Self(0)
    }

    fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl One for Fixed {
    fn one() -> Self {
        Self(1 << Self::FRACTION_BITS)
    }
}

impl Num for Fixed {
    type FromStrRadixErr = ParseIntError;

    /// A whole number.
    fn from_str_radix(text: &str, radix: u32) -> Result<Self, ParseIntError> {
        let whole = i64::from_str_radix(text, radix)?;
        Ok(Self::nearest(
            whole.saturating_mul(1 << Self::FRACTION_BITS),
        ))
    }
}

impl Scalar for Fixed {
    #[inline(always)]
    fn of(value: f64) -> Self {
        Self((value * 65536.0) as i32)
    }

    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self.0) / 65536.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_exact_or_cut_off_or_saturates() {
        let of = Fixed::of;
        assert_eq!(of(1.5) * of(-2.25), of(-3.375));
        assert_eq!(of(3.0) / of(-2.0), of(-1.5));
        assert_eq!((of(1.5) + of(2.0)) - of(-0.25), of(3.75));
        let tiny = Fixed::from_bits(1);
        assert_eq!(tiny * of(0.5), Fixed::zero());
        let largest = Fixed::from_bits(i32::MAX);
        assert_eq!(of(300.0) * of(300.0), largest);
        assert_eq!(largest + tiny, largest);
        assert_eq!(-Fixed::from_bits(i32::MIN), largest);
        assert_eq!(of(-1.0) / Fixed::zero(), -largest);
        assert_eq!(Fixed::zero() / Fixed::zero(), Fixed::zero());
        assert_eq!(of(5.5) % of(2.0), of(1.5));
        assert_eq!(Fixed::from_str_radix("-7", 10), Ok(of(-7.0)));
    }
}
