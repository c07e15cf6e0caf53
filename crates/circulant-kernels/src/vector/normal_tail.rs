//! The tail of the normal distribution, `Q(a) = erfc(a/sqrt(2))/2` for `a >= 0`, and its density, as
//! vector code: `Q(a) = density(a) m(a)` with Mills' ratio `m`, a rational function without branches.
//!
//! The quotients are minimax fits of `m` (relative error 5.5e-9 on `[0, 14]` in f32 and 5.1e-17 on
//! `[0, 39]` in f64). All their coefficients are positive, so nothing cancels, and the tail is good
//! to a few units in the last place where `1 + erf` has no digit left. From the tail come
//! `erf(z) = 1 - 2 Q(sqrt(2) z)` and, without any case, `gelu(x) = max(x, 0) - |x| Q(|x|)`.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use crate::vector::Vector;
use crate::vector::negative_exponential::{NegativeExponential, horner};

/// `1/sqrt(2 pi)`.
pub const DENSITY_AT_ZERO: f64 = 0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2;

/// The normal distribution of one number, inlined into the loops of the kernels.
pub trait NormalTail: Sized {
    /// `|self|`, but no more than the number from which on the tail is zero; NaN stays NaN.
    fn tail_argument(self) -> Self;

    /// The tail of an `a` from [`tail_argument`](Self::tail_argument).
    ///
    /// The relative error of `Q` and of the density is below `6 + a^2/2` units in the last place: the
    /// argument of the exponential is rounded once. From 13.3 (f32) or 37.7 (f64) on both are zero.
    fn normal_tail<V: Vector<Scalar = Self>>(self) -> Tail<Self>;
}

/// `density = late*early` and `Q = late*early*ratio`. Whatever else a formula has goes to the two
/// values that are known early, so that `late` is waited for once.
pub struct Tail<T> {
    /// A factor of the density near 1.
    pub late: T,
    /// The other factor of the density.
    pub early: T,
    /// Mills' ratio.
    pub ratio: T,
}

impl NormalTail for f32 {
    #[inline(always)]
    fn tail_argument(self) -> Self {
        /// The exponential is zero here.
        const ZERO_FROM: f32 = 13.266;
        let size = self.abs();
        // A comparison, not `min`: NaN stays NaN.
        if size > ZERO_FROM { ZERO_FROM } else { size }
    }

    #[inline(always)]
    fn normal_tail<V: Vector<Scalar = Self>>(self) -> Tail<Self> {
        const NUMERATOR: [f32; 5] = [
            0.010_220_664,
            0.101_196_68,
            0.457_357_56,
            1.096_017_5,
            1.253_314_1,
        ];
        const DENOMINATOR: [f32; 6] = [
            0.010_220_535,
            0.101_203_49,
            0.467_422_28,
            1.199_280_5,
            1.672_380_3,
            1.0,
        ];
        let (late, scale) = (-0.5 * self * self).exponential_parts::<V>();
        Tail {
            late,
            early: scale * DENSITY_AT_ZERO as f32,
            ratio: horner::<V, 5>(self, NUMERATOR) / horner::<V, 6>(self, DENOMINATOR),
        }
    }
}

impl NormalTail for f64 {
    #[inline(always)]
    fn tail_argument(self) -> Self {
        const ZERO_FROM: f64 = 37.656;
        let size = self.abs();
        if size > ZERO_FROM { ZERO_FROM } else { size }
    }

    #[inline(always)]
    fn normal_tail<V: Vector<Scalar = Self>>(self) -> Tail<Self> {
        const NUMERATOR: [f64; 10] = [
            3.472_135_321_565_982e-6,
            9.335_356_584_369_776e-5,
            0.001_228_981_351_767_385_5,
            0.010_248_248_486_176_838,
            0.059_202_644_047_917_516,
            0.244_863_460_858_679_35,
            0.725_177_403_240_239,
            1.488_953_004_262_441,
            1.942_252_211_875_635_3,
            1.253_314_137_315_500_1,
        ];
        const DENOMINATOR: [f64; 11] = [
            3.472_135_321_576_312e-6,
            9.335_356_584_155_913e-5,
            0.001_232_453_487_288_578_5,
            0.010_341_602_040_815_854,
            0.060_424_681_555_071_906,
            0.254_924_990_481_643_13,
            0.781_957_050_282_918_1,
            1.714_249_535_609_067_5,
            2.561_108_547_234_637_5,
            2.347_577_613_843_640_6,
            1.0,
        ];
        let (late, scale) = (-0.5 * self * self).exponential_parts::<V>();
        Tail {
            late,
            early: scale * DENSITY_AT_ZERO,
            ratio: horner::<V, 10>(self, NUMERATOR) / horner::<V, 11>(self, DENOMINATOR),
        }
    }
}
