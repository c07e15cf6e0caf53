//! What the runtime computes in: f32, or integers where there is no unit for floats.

use circulant_core::random::Normal;
use circulant_core::{Scalar, elementary};

/// A number type of the runtime.
pub trait Number: Normal {
    /// Whether rounding errors are those that a certificate of the file allows for.
    const CERTIFIED: bool;

    /// The nearest number.
    fn single(value: f32) -> Self;

    /// As f32.
    fn to_single(self) -> f32;

    /// `code * scale`.
    fn scaled(code: i32, scale: f32) -> Self;

    /// Divided by a size.
    fn divided(self, by: usize) -> Self;

    /// Hyperbolic tangent.
    fn tanh(self) -> Self;

    /// Times a factor that makes it at most `2^14`, as an integer.
    fn fraction(self, factor: f32) -> i32;

    /// Whether it is a number.
    fn is_sound(self) -> bool;

    /// Keeps an f32 in the place of a number.
    fn hold(value: f32) -> Self;

    /// The f32 that was kept.
    fn held(self) -> f32;
}

impl Number for f32 {
    const CERTIFIED: bool = true;

    #[inline(always)]
    fn single(value: f32) -> Self {
        value
    }

    #[inline(always)]
    fn to_single(self) -> f32 {
        self
    }

    #[inline(always)]
    fn scaled(code: i32, scale: f32) -> Self {
        code as f32 * scale
    }

    #[inline(always)]
    fn divided(self, by: usize) -> Self {
        self * Self::of(1.0 / by as f64)
    }

    #[inline(always)]
    fn tanh(self) -> Self {
        elementary::tanh(self)
    }

    #[inline(always)]
    fn fraction(self, factor: f32) -> i32 {
        (self * factor) as i32
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
}
