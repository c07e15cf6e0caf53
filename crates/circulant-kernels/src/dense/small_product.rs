//! A small real matrix product, `C = A B` with `C[i][n] = sum_k A[i][k] B[k][n]`, for matrices that
//! fit the L1 and L2 caches together.
//!
//! Columns `n` lie in the lanes and `A` is broadcast, so `A` may have any strides: a transposed `A`
//! costs nothing. Twelve sums stay in registers, six rows of two vectors, and a step of `k` is twelve fused
//! multiply-adds for eight loads. A general GEMM would pack both
//! matrices again and choose a strategy, which takes as long as a product of this size.
//!
//! `unsafe`: matrices are pointers with strides; callers promise that the memory is there.

use crate::vector::Vector;

/// The most rows of `C` that are kept in registers.
const ROWS: usize = 6;

/// A matrix whose element `(i, k)` is at `i*row + k*column`.
#[derive(Clone, Copy)]
pub struct Strided<T> {
    pub start: *const T,
    pub row: usize,
    pub column: usize,
}

/// A matrix whose rows are `row` apart and hold whole vectors.
#[derive(Clone, Copy)]
pub struct RowMajor<P> {
    pub start: P,
    pub row: usize,
}

/// `rows x inner` times `inner x columns`; `columns` is a multiple of the vector's lanes.
///
/// # Safety
/// `a` must be valid for reading `rows x inner` values, `b` for `inner` and `c` for writing `rows`
/// rows of `columns` values; `c` must not overlap the others. The instruction set of `V` must be there.
#[inline(always)]
pub unsafe fn small_product<V: Vector>(
    (rows, inner, columns): (usize, usize, usize),
    a: Strided<V::Scalar>,
    b: RowMajor<*const V::Scalar>,
    c: RowMajor<*mut V::Scalar>,
) {
    let vectors = columns / V::LANES;
    let mut i = 0;
    // Tiles of equal height: one of few rows would wait for its own sums.
    for left in (1..=rows.div_ceil(ROWS)).rev() {
        let height = (rows - i).div_ceil(left);
        // SAFETY: rows `i..i + height` are within `rows`; the rest is the caller's promise.
        unsafe {
            let a = Strided {
                start: a.start.add(i * a.row),
                ..a
            };
            let c = RowMajor {
                start: c.start.add(i * c.row),
                ..c
            };
            match height {
                1 => band::<V, 1>(inner, vectors, a, b, c),
                2 => band::<V, 2>(inner, vectors, a, b, c),
                3 => band::<V, 3>(inner, vectors, a, b, c),
                4 => band::<V, 4>(inner, vectors, a, b, c),
                5 => band::<V, 5>(inner, vectors, a, b, c),
                _ => band::<V, ROWS>(inner, vectors, a, b, c),
            }
        }
        i += height;
    }
}

/// `R` rows, all columns, two vectors at a time.
#[inline(always)]
unsafe fn band<V: Vector, const R: usize>(
    inner: usize,
    vectors: usize,
    a: Strided<V::Scalar>,
    b: RowMajor<*const V::Scalar>,
    c: RowMajor<*mut V::Scalar>,
) {
    let pairs = vectors / 2;
    for pair in 0..pairs {
        // SAFETY: the caller's promise.
        unsafe { tile::<V, R, 2>(inner, 2 * pair * V::LANES, a, b, c) };
    }
    if vectors > 2 * pairs {
        // SAFETY: as above.
        unsafe { tile::<V, R, 1>(inner, 2 * pairs * V::LANES, a, b, c) };
    }
}

#[inline(always)]
unsafe fn tile<V: Vector, const R: usize, const W: usize>(
    inner: usize,
    n: usize,
    a: Strided<V::Scalar>,
    b: RowMajor<*const V::Scalar>,
    c: RowMajor<*mut V::Scalar>,
) {
    // SAFETY: the caller promises the instruction set.
    let zero = unsafe { V::splat(num_traits::Zero::zero()) };
    let mut sums = [[zero; W]; R];
    // SAFETY: the caller's promise.
    unsafe {
        let mut from = b.start.add(n);
        // A pointer per row: the compiler would add up the strides in every step.
        let mut factors = [a.start; R];
        for (r, factor) in factors.iter_mut().enumerate() {
            *factor = a.start.add(r * a.row);
        }
        for _ in 0..inner {
            let mut vectors = [zero; W];
            for (w, vector) in vectors.iter_mut().enumerate() {
                *vector = V::load(from.add(w * V::LANES));
            }
            for (sums, at) in sums.iter_mut().zip(&mut factors) {
                let factor = V::splat(**at);
                *at = at.wrapping_add(a.column);
                for (sum, &vector) in sums.iter_mut().zip(&vectors) {
                    *sum = factor.mul_add(vector, *sum);
                }
            }
            from = from.wrapping_add(b.row);
        }
        for (r, sums) in sums.into_iter().enumerate() {
            for (w, sum) in sums.into_iter().enumerate() {
                sum.store(c.start.add(r * c.row + n + w * V::LANES));
            }
        }
    }
}
