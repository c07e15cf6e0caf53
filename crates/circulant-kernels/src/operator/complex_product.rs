//! A small complex matrix product on split planes, `C = A B` with
//! `C[i][n] = sum_k A[i][k] B[k][n]`, by three real products instead of four:
//! with `s` the plane `Re + Im`, `Re C = Re A Re B - Im A Im B` and
//! `Im C = A_s B_s - Re A Re B - Im A Im B`.
//!
//! Columns `n` lie in the lanes and `A` is broadcast. A tile of up to six rows and two vectors stays
//! in twelve registers, so a step of `k` is twelve fused multiply-adds for two loads and six
//! broadcasts. Written by hand because the matrices are small (channels x channels for one
//! frequency) and come as separate Re and Im planes; a general GEMM would pack each of them again.
//!
//! `unsafe`: matrices are pointers with strides; callers promise that the memory is there.

use crate::vector::Vector;

/// The most rows of `C` that are kept in registers.
const ROWS: usize = 6;

/// The planes Re, Im and Re + Im of a matrix: element `(i, k)` is at `i*row + k*column`.
#[derive(Clone, Copy)]
pub(crate) struct Strided<T> {
    pub(crate) planes: [*const T; 3],
    pub(crate) row: usize,
    pub(crate) column: usize,
}

/// The planes Re, Im and Re + Im of a matrix whose rows are contiguous and `row` apart; vectors may
/// overrun a row's end by less than their length.
#[derive(Clone, Copy)]
pub(crate) struct RowMajor<T> {
    pub(crate) planes: [*const T; 3],
    pub(crate) row: usize,
}

/// How many tiles a product has.
pub(crate) fn tiles<V: Vector>(rows: usize, columns: usize) -> usize {
    columns.div_ceil(2 * V::LANES) * rows.div_ceil(ROWS)
}

/// `rows x inner` times `inner x columns`; `columns` is rounded up to whole vectors, which are
/// handed to `store(row, column, Re, Im)`, each once.
///
/// # Safety
/// `a` must hold `rows x inner` values, `b` `inner` rows of `columns` values rounded up to whole
/// vectors, in all three planes. The instruction set of `V` must be there.
///
/// `ahead(tile)` is called before every one of the [`tiles`]: what is needed next can be fetched bit by bit, where one burst
/// would wait for memory.
#[inline(always)]
pub(crate) unsafe fn product<V: Vector>(
    (rows, inner, columns): (usize, usize, usize),
    a: Strided<V::Scalar>,
    b: RowMajor<V::Scalar>,
    ahead: impl Fn(usize),
    mut store: impl FnMut(usize, usize, V, V),
) {
    let mut done = 0;
    for n in (0..columns).step_by(2 * V::LANES) {
        let mut i = 0;
        // Tiles of equal height: one of few rows would wait for its own sums.
        for left in (1..=rows.div_ceil(ROWS)).rev() {
            ahead(done);
            done += 1;
            let height = (rows - i).div_ceil(left);
            let two = n + V::LANES < columns;
            // SAFETY: the caller's promise; `n` starts a vector inside the rounded row.
            unsafe {
                match (height, two) {
                    (1, true) => tile::<V, 1, 2>(inner, a, i, b, n, &mut store),
                    (2, true) => tile::<V, 2, 2>(inner, a, i, b, n, &mut store),
                    (3, true) => tile::<V, 3, 2>(inner, a, i, b, n, &mut store),
                    (4, true) => tile::<V, 4, 2>(inner, a, i, b, n, &mut store),
                    (5, true) => tile::<V, 5, 2>(inner, a, i, b, n, &mut store),
                    (_, true) => tile::<V, ROWS, 2>(inner, a, i, b, n, &mut store),
                    (1, false) => tile::<V, 1, 1>(inner, a, i, b, n, &mut store),
                    (2, false) => tile::<V, 2, 1>(inner, a, i, b, n, &mut store),
                    (3, false) => tile::<V, 3, 1>(inner, a, i, b, n, &mut store),
                    (4, false) => tile::<V, 4, 1>(inner, a, i, b, n, &mut store),
                    (5, false) => tile::<V, 5, 1>(inner, a, i, b, n, &mut store),
                    (_, false) => tile::<V, ROWS, 1>(inner, a, i, b, n, &mut store),
                }
            }
            i += height;
        }
    }
}

#[inline(always)]
unsafe fn tile<V: Vector, const R: usize, const C: usize>(
    inner: usize,
    a: Strided<V::Scalar>,
    i: usize,
    b: RowMajor<V::Scalar>,
    n: usize,
    store: &mut impl FnMut(usize, usize, V, V),
) {
    // SAFETY: the caller's promise.
    let (re, im, mixed) = unsafe {
        (
            real_tile::<V, R, C>(inner, a, 0, i, b, n),
            real_tile::<V, R, C>(inner, a, 1, i, b, n),
            real_tile::<V, R, C>(inner, a, 2, i, b, n),
        )
    };
    for r in 0..R {
        for c in 0..C {
            store(
                i + r,
                n + c * V::LANES,
                re[r][c].sub(im[r][c]),
                mixed[r][c].sub(re[r][c].add(im[r][c])),
            );
        }
    }
}

/// The product of two real planes.
#[inline(always)]
unsafe fn real_tile<V: Vector, const R: usize, const C: usize>(
    inner: usize,
    a: Strided<V::Scalar>,
    plane: usize,
    i: usize,
    b: RowMajor<V::Scalar>,
    n: usize,
) -> [[V; C]; R] {
    // SAFETY: the caller promises the instruction set.
    let zero = unsafe { V::splat(num_traits::Zero::zero()) };
    let mut sums = [[zero; C]; R];
    // SAFETY: the caller's promise.
    unsafe {
        let a_start = a.planes[plane].add(i * a.row);
        let b_start = b.planes[plane].add(n);
        for k in 0..inner {
            let mut vectors = [zero; C];
            for (c, vector) in vectors.iter_mut().enumerate() {
                *vector = V::load(b_start.add(k * b.row + c * V::LANES));
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                let factor = V::splat(*a_start.add(r * a.row + k * a.column));
                for (sum, &vector) in sums.iter_mut().zip(&vectors) {
                    *sum = factor.mul_add(vector, *sum);
                }
            }
        }
    }
    sums
}
