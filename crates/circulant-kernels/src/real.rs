//! The two number types, and what a kernel must know of each.
//!
//! `unsafe`: a vector is stored to and loaded from a buffer that holds the longest one.

use circulant_core::Scalar;
use realfft::FftNum;

use crate::kernels::Kernels;
use crate::random::normal::Normal;
use crate::runtime::scratch::Pool;
use crate::vector::elementary::Elementary;
use crate::vector::negative_exponential::NegativeExponential;
use crate::vector::normal_tail::NormalTail;
use crate::vector::{Lanes, MAX_LANES, RealSimd, Vector};

/// `f32` or `f64`.
pub trait Real:
    Scalar
    + FftNum
    + num_traits::Float
    + RealSimd
    + Kernels
    + Elementary
    + NegativeExponential
    + Normal
    + NormalTail
{
    /// `tanh` in every lane of a vector.
    #[doc(hidden)]
    fn tanh_lanes<V: Vector<Scalar = Self>>(lanes: V) -> V;

    /// Buffers that calls hand on to later calls.
    #[doc(hidden)]
    fn pool() -> &'static Pool<Self>;
}

impl Real for f32 {
    /// A rational function of degree 13/6 on a clamped argument (the coefficients of Eigen's
    /// `ptanh`); the test below measures its error.
    #[inline(always)]
    fn tanh_lanes<V: Vector<Scalar = Self>>(lanes: V) -> V {
        const NUMERATOR: [f32; 7] = [
            -2.760_768_5e-16,
            2.000_188e-13,
            -8.604_672e-11,
            5.122_297e-8,
            1.485_722_4e-5,
            6.372_619e-4,
            4.893_524_6e-3,
        ];
        const DENOMINATOR: [f32; 4] = [1.198_258_4e-6, 1.185_347e-4, 2.268_434_6e-3, 4.893_525e-3];
        const SATURATED: f32 = 7.905_311;

        // The bounds come first: where one operand is NaN, the second is taken, so NaN stays.
        let x = lanes.same(SATURATED).min(lanes.same(-SATURATED).max(lanes));
        let square = x.mul(x);
        let fourth = square.mul(square);
        // By pairs, not one coefficient after the other: what limits the loop is how long one result takes.
        let pair = |high: f32, low: f32| x.same(high).mul_add(square, x.same(low));
        let [n6, n5, n4, n3, n2, n1, n0] = NUMERATOR;
        let high = x.same(n6).mul_add(fourth, pair(n5, n4));
        let low = pair(n3, n2).mul_add(fourth, pair(n1, n0));
        let numerator = high.mul_add(fourth.mul(fourth), low);
        let [d3, d2, d1, d0] = DENOMINATOR;
        let denominator = pair(d3, d2).mul_add(fourth, pair(d1, d0));
        x.mul(numerator).div(denominator)
    }

    fn pool() -> &'static Pool<Self> {
        static POOL: Pool<f32> = Pool::new();
        &POOL
    }
}

impl Real for f64 {
    /// The standard library's `tanh` lane by lane: f64 is for checks, not for speed.
    #[inline(always)]
    fn tanh_lanes<V: Vector<Scalar = Self>>(lanes: V) -> V {
        let mut values = Lanes::<f64, MAX_LANES>::zero();
        // SAFETY: no vector has more lanes, so `values` holds all that is stored.
        unsafe {
            lanes.store(values.0.as_mut_ptr());
            for value in &mut values.0[..V::LANES] {
                *value = value.tanh();
            }
            V::load(values.0.as_ptr())
        }
    }

    fn pool() -> &'static Pool<Self> {
        static POOL: Pool<f64> = Pool::new();
        &POOL
    }
}
