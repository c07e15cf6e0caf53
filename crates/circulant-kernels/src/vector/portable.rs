//! Vectors as plain arrays. The loops are over a constant number of lanes, so the compiler turns
//! them into the vector instructions that every processor of the target has.
//!
//! `unsafe`: reads and writes pass the caller's promise on; there are no instructions that may be missing.

use super::{Tile, Vector};
use crate::real::Real;

/// `N` lanes as an array.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub struct Lanes<T, const N: usize>(pub [T; N]);

impl<T: Real, const N: usize> Lanes<T, N> {
    /// Zero in every lane.
    pub fn zero() -> Self {
        Self([T::zero(); N])
    }

    #[inline(always)]
    fn map2(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        let mut out = self;
        for i in 0..N {
            out.0[i] = f(self.0[i], other.0[i]);
        }
        out
    }
}

impl<T: Real, const N: usize> Vector for Lanes<T, N> {
    type Scalar = T;
    type Tile = Self;
    const LANES: usize = N;
    const FUSED: bool = false;

    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: the caller promises `N` readable values; the read is unaligned.
        Self(unsafe { from.cast::<[T; N]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: the caller promises room for `N` values; the write is unaligned.
        unsafe { to.cast::<[T; N]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn splat(value: T) -> Self {
        Self([value; N])
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.map2(other, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.map2(other, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.map2(other, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.map2(other, |a, b| a / b)
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.map2(other, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.map2(other, |a, b| if a > b { a } else { b })
    }
    // Two roundings: a fused multiply-add without hardware is a slow function call.
    #[inline(always)]
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        self.mul(factor).add(addend)
    }
    #[inline(always)]
    fn neg_mul_add(self, factor: Self, addend: Self) -> Self {
        addend.sub(self.mul(factor))
    }
    #[inline(always)]
    fn folded(self) -> Self {
        self
    }
    #[inline(always)]
    fn fused(a: T, b: T, c: T) -> T {
        a * b + c
    }
    #[inline(never)]
    unsafe fn call<R>(work: impl FnOnce() -> R) -> R {
        work()
    }
}

impl<T: Real, const N: usize> Tile for Lanes<T, N> {
    #[inline(always)]
    unsafe fn transpose(
        mut row: impl FnMut(usize) -> Self,
        mut column: impl FnMut(usize) -> *mut T,
    ) {
        let mut rows = [Self::zero(); N];
        for (i, slot) in rows.iter_mut().enumerate() {
            *slot = row(i);
        }
        for j in 0..N {
            let mut out = Self::zero();
            for (slot, row) in out.0.iter_mut().zip(&rows) {
                *slot = row.0[j];
            }
            // SAFETY: the caller promises room for `N` values in every column.
            unsafe { out.store(column(j)) };
        }
    }

    #[inline(always)]
    fn sums(mut row: impl FnMut(usize) -> Self) -> Self {
        let mut out = Self::zero();
        for (i, sum) in out.0.iter_mut().enumerate() {
            let mut lanes = row(i).0;
            let mut width = N;
            // By halves, as registers do it: `N` is a power of two.
            while width > 1 {
                width /= 2;
                for j in 0..width {
                    lanes[j] = lanes[j] + lanes[j + width];
                }
            }
            *sum = lanes[0];
        }
        out
    }
}
