//! The number types.

use core::fmt::Debug;
use core::ops::Neg;

use num_traits::Num;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for crate::Fixed {}
}

/// `f32`, `f64` or [`Fixed`](crate::Fixed).
pub trait Scalar:
    sealed::Sealed + Copy + Debug + PartialOrd + Num + Neg<Output = Self> + Send + Sync + 'static
{
    /// Rounds an `f64` (a root of unity, a scale) to this type.
    fn of(value: f64) -> Self;

    /// Exact widening.
    fn wide(self) -> f64;
}

impl Scalar for f32 {
    #[inline(always)]
    fn of(value: f64) -> Self {
        value as f32
    }

    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl Scalar for f64 {
    #[inline(always)]
    fn of(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
}
