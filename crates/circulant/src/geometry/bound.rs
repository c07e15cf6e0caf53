//! Numbers that say on which side of the truth they are.
//!
//! | type | promise | arithmetic |
//! | --- | --- | --- |
//! | [`UpperBound`] | the true value is at most this | rounded up |
//! | [`LowerBound`] | the true value is at least this | rounded down |
//! | [`Estimate`] | none | ordinary |
//!
//! An f64 operation is exact up to half a unit in the last place, so the next number outward is on the safe side of the
//! true result. The types do not convert into each other by themselves: an estimate never becomes a bound.

use std::fmt::{Display, Formatter};
use std::ops::{Add, Div, Mul, Sub};

/// A number that the true value does not exceed: at least zero, perhaps infinite, never NaN.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct UpperBound(f64);

/// A number that the true value does not fall below; never NaN. May be negative.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct LowerBound(f64);

/// A number near the true value, without a promise.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Estimate(f64);

/// The next number above, unless the result is exact because it is zero or infinite.
fn up(value: f64) -> f64 {
    if value.is_nan() {
        f64::INFINITY
    } else {
        value.next_up()
    }
}

/// The next number below. What is not a number says nothing: minus infinity.
fn down(value: f64) -> f64 {
    if value.is_nan() {
        f64::NEG_INFINITY
    } else {
        value.next_down()
    }
}

impl UpperBound {
    /// Zero.
    pub const ZERO: Self = Self(0.0);
    /// One.
    pub const ONE: Self = Self(1.0);
    /// No bound at all.
    pub const INFINITE: Self = Self(f64::INFINITY);

    /// Declares that `value` is an upper bound of something that is not negative. NaN becomes infinity, which is always
    /// true; what is negative becomes zero.
    pub fn new(value: f64) -> Self {
        if value.is_nan() {
            Self::INFINITE
        } else {
            Self(value.max(0.0))
        }
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }

    /// Whether it says anything.
    pub fn is_finite(self) -> bool {
        self.0.is_finite()
    }

    /// The square root, rounded up.
    pub fn sqrt(self) -> Self {
        if self.0 == 0.0 {
            return self;
        }
        Self(up(self.0.sqrt()))
    }

    /// The square, rounded up.
    pub fn square(self) -> Self {
        self * self
    }

    /// The smaller of two bounds of the same value.
    pub fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// The larger of two bounds: a bound of both values.
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// The 2-norm of a slice, rounded up.
    ///
    /// A sum of `n` squares has a relative error of at most `(n + 1) 2^-53`; squares that underflow are covered by
    /// scaling with the largest number first.
    pub fn norm(values: &[f64]) -> Self {
        let largest = values.iter().fold(0.0_f64, |largest, value| {
            if value.is_nan() {
                f64::NAN
            } else {
                largest.max(value.abs())
            }
        });
        if largest.is_nan() || largest.is_infinite() || values.iter().any(|value| value.is_nan()) {
            return Self::INFINITE;
        }
        if largest == 0.0 {
            return Self::ZERO;
        }
        let sum: f64 = values.iter().map(|value| (value / largest).powi(2)).sum();
        let slack = 1.0 + (values.len() as f64 + 8.0) * f64::EPSILON;
        Self(up(sum.sqrt() * largest * slack))
    }
}

impl LowerBound {
    /// Zero.
    pub const ZERO: Self = Self(0.0);

    /// Declares that `value` is a lower bound. NaN becomes minus infinity, which is always true.
    pub fn new(value: f64) -> Self {
        if value.is_nan() {
            Self(f64::NEG_INFINITY)
        } else {
            Self(value)
        }
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }

    /// Zero in place of what is negative: for values that cannot be.
    pub fn at_least_zero(self) -> Self {
        Self(self.0.max(0.0))
    }

    /// The smaller of two bounds: a bound of both values.
    pub fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// The larger of two bounds of the same value.
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
}

impl Estimate {
    /// Declares an estimate.
    pub fn new(value: f64) -> Self {
        Self(value)
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Mul for UpperBound {
    type Output = Self;

    /// Zero times an infinite bound is infinite: true, if useless.
    fn mul(self, other: Self) -> Self {
        let is_zero = self.0 == 0.0 || other.0 == 0.0;
        if is_zero && self.is_finite() && other.is_finite() {
            return Self::ZERO;
        }
        Self(up(self.0 * other.0))
    }
}

impl Add for UpperBound {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        // A sum with zero is exact.
        if self.0 == 0.0 || other.0 == 0.0 {
            return Self(self.0 + other.0);
        }
        Self(up(self.0 + other.0))
    }
}

impl Div<LowerBound> for UpperBound {
    type Output = Self;

    /// Infinite where the divisor may be zero.
    fn div(self, divisor: LowerBound) -> Self {
        if divisor.0 <= 0.0 {
            return Self::INFINITE;
        }
        Self(up(self.0 / divisor.0))
    }
}

impl std::iter::Sum for UpperBound {
    fn sum<I: Iterator<Item = Self>>(values: I) -> Self {
        values.fold(Self::ZERO, Add::add)
    }
}

impl std::iter::Product for UpperBound {
    fn product<I: Iterator<Item = Self>>(values: I) -> Self {
        values.fold(Self::ONE, |product, value| {
            if product == Self::ONE {
                value
            } else if value == Self::ONE {
                product
            } else {
                product * value
            }
        })
    }
}

impl Add for LowerBound {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(down(self.0 + other.0))
    }
}

impl Sub<UpperBound> for LowerBound {
    type Output = Self;

    fn sub(self, other: UpperBound) -> Self {
        Self(down(self.0 - other.0))
    }
}

impl Div<UpperBound> for LowerBound {
    type Output = Self;

    /// For a value that is not negative, by a value that is not either. A divisor of zero gives infinity: whatever is
    /// divided stays positive however far one goes.
    fn div(self, divisor: UpperBound) -> Self {
        if self.0 <= 0.0 {
            return Self::ZERO;
        }
        if divisor.0 == 0.0 {
            return Self(f64::INFINITY);
        }
        Self(down(self.0 / divisor.0).max(0.0))
    }
}

macro_rules! display {
    ($($name:ident),*) => {$(
        impl Display for $name {
            fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

display!(UpperBound, LowerBound, Estimate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_rounded_outward() {
        let (a, b) = (0.1, 0.7);
        let (ua, ub) = (UpperBound::new(a), UpperBound::new(b));
        assert!((ua * ub).get() > a * b);
        assert!((ua + ub).get() > a + b);
        assert!((ua / LowerBound::new(b)).get() > a / b);
        assert!(ua.sqrt().get() > a.sqrt());
        let (la, lb) = (LowerBound::new(a), LowerBound::new(b));
        assert!((la + lb).get() < a + b);
        assert!((lb - ua).get() < b - a);
        assert!((lb / ua).get() < b / a);
    }

    #[test]
    fn exact_cases_stay_exact() {
        assert_eq!(UpperBound::ZERO * UpperBound::new(3.0), UpperBound::ZERO);
        assert_eq!(UpperBound::ZERO.sqrt(), UpperBound::ZERO);
        let one: UpperBound = [UpperBound::ONE; 3].into_iter().product();
        assert_eq!(one, UpperBound::ONE);
    }

    #[test]
    fn what_is_unknown_stays_unknown() {
        assert!(!UpperBound::new(f64::NAN).is_finite());
        assert!(!(UpperBound::ZERO * UpperBound::INFINITE).is_finite());
        assert!(!UpperBound::norm(&[1.0, f64::NAN]).is_finite());
        assert!(!UpperBound::norm(&[f64::NAN, 1.0]).is_finite());
        assert_eq!(LowerBound::new(f64::NAN).get(), f64::NEG_INFINITY);
        assert_eq!(
            LowerBound::new(1.0) / UpperBound::INFINITE,
            LowerBound::ZERO
        );
        assert!(!(UpperBound::ONE / LowerBound::ZERO).is_finite());
    }

    #[test]
    fn norms_do_not_underflow() {
        let norm = UpperBound::norm(&[3e-200, 4e-200]).get();
        assert!((5e-200..5.000_001e-200).contains(&norm), "{norm}");
        assert_eq!(UpperBound::norm(&[]), UpperBound::ZERO);
    }
}
