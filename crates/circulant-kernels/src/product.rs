//! A small complex matrix product on split planes, `C = A B` with
//! `C[i][n] = sum_k A[i][k] B[k][n]`.
//!
//! Columns `n` lie in the lanes, `A` is broadcast, and six rows of `C` stay in twelve registers, so
//! the loop over `k` is 24 fused multiply-adds for two loads and twelve broadcasts. With four rows, eight
//! sums of two chained multiply-adds each would only just cover the latency. `A` is
//! stored by columns, so that its broadcasts are constant offsets from one pointer. Written by hand because the matrices
//! are small (channels x channels for one frequency) and come as separate Re and Im planes; a
//! general GEMM would pack each of them again.

use crate::simd::{RealSimd, Vector};

/// Rows of `C` that are kept in registers.
const ROWS: usize = 6;

/// Planes of a matrix whose columns are contiguous: element `(i, k)` is at `i + k*column`.
#[derive(Clone, Copy)]
pub(crate) struct ColumnMajor<T> {
    pub(crate) re: *const T,
    pub(crate) im: *const T,
    pub(crate) column: usize,
}

/// Planes of a matrix whose rows are contiguous and `row` apart; vectors may overrun a row's
/// end by less than their length.
#[derive(Clone, Copy)]
pub(crate) struct RowMajor<T> {
    pub(crate) re: *mut T,
    pub(crate) im: *mut T,
    pub(crate) row: usize,
}

/// Memory that is needed after a product, fetched bit by bit while it computes: matrices of many
/// channels come from main memory, and in one burst would wait for it.
#[derive(Clone, Copy)]
pub(crate) struct Ahead<T> {
    pub(crate) start: *const T,
    pub(crate) len: usize,
}

/// `rows x inner` times `inner x columns`; `columns` is rounded up to whole vectors.
///
/// # Safety
/// `a` must hold `rows x inner` numbers, `b` and `c` `inner` and `rows` rows of `columns` numbers
/// rounded up to whole vectors. `c` must not overlap the others.
#[inline(always)]
pub(crate) unsafe fn product<V: Vector>(
    (rows, inner, columns): (usize, usize, usize),
    a: ColumnMajor<V::Scalar>,
    b: RowMajor<V::Scalar>,
    c: RowMajor<V::Scalar>,
    ahead: Ahead<V::Scalar>,
) {
    let line = 64 / size_of::<V::Scalar>();
    let steps = columns.div_ceil(V::LANES) * rows.div_ceil(ROWS);
    let step = ahead.len.div_ceil(steps * line) * line;
    let mut fetched = 0;
    for n in (0..columns).step_by(V::LANES) {
        // SAFETY: the caller's promise; `n` starts a vector inside the rounded row.
        unsafe {
            let (b_re, b_im) = (b.re.cast_const().add(n), b.im.cast_const().add(n));
            let mut i = 0;
            while i + ROWS <= rows {
                for at in (fetched..fetched + step).step_by(line) {
                    V::Scalar::prefetch(ahead.start.wrapping_add(at));
                }
                fetched += step;
                tile::<V, ROWS>(inner, a, i, (b_re, b_im, b.row), c, n);
                i += ROWS;
            }
            let rest = (b_re, b_im, b.row);
            match rows - i {
                0 => {}
                1 => tile::<V, 1>(inner, a, i, rest, c, n),
                2 => tile::<V, 2>(inner, a, i, rest, c, n),
                3 => tile::<V, 3>(inner, a, i, rest, c, n),
                4 => tile::<V, 4>(inner, a, i, rest, c, n),
                _ => tile::<V, 5>(inner, a, i, rest, c, n),
            }
        }
    }
}

#[inline(always)]
unsafe fn tile<V: Vector, const R: usize>(
    inner: usize,
    a: ColumnMajor<V::Scalar>,
    i: usize,
    (b_re, b_im, b_row): (*const V::Scalar, *const V::Scalar, usize),
    c: RowMajor<V::Scalar>,
    n: usize,
) {
    let zero = V::splat(num_traits::Zero::zero());
    let mut re = [zero; R];
    let mut im = [zero; R];
    // SAFETY: the caller's promise.
    unsafe {
        let (a_re, a_im) = (a.re.add(i), a.im.add(i));
        for k in 0..inner {
            let (br, bi) = (V::load(b_re.add(k * b_row)), V::load(b_im.add(k * b_row)));
            for r in 0..R {
                let at = r + k * a.column;
                let ar = V::splat(*a_re.add(at));
                re[r] = ar.mul_add(br, re[r]);
                im[r] = ar.mul_add(bi, im[r]);
                let ai = V::splat(*a_im.add(at));
                re[r] = ai.neg_mul_add(bi, re[r]);
                im[r] = ai.mul_add(br, im[r]);
            }
        }
        for r in 0..R {
            re[r].store(c.re.add((i + r) * c.row + n));
            im[r].store(c.im.add((i + r) * c.row + n));
        }
    }
}
