//! The border to row-major memory: the first forward stage reads rows, the last inverse stage
//! adds the bias, applies the activation and writes rows, both through a transposed tile of
//! columns.
//!
//! `unsafe`: see the module above.

use num_complex::Complex;

use super::plan::{Stage, slot};
use super::stages::{gather, swap, twiddle};
use super::{ForwardBlock, InverseBlock};
use crate::butterfly::{Complexes, butterfly};
use crate::real::Real;
use crate::simd::{RealSimd, Tile, Vector};

const MAX_RADIX: usize = 16;
const MAX_LANES: usize = 16;
/// The most columns of a tile: a cache line of a row.
const MAX_COLUMNS: usize = 16;

/// Where the rows of a block lie in memory. Lane `l` of the real part is `rows[l]`, of the
/// imaginary part `rows[LANES + l]`. A row that is missing is null when rows are written, and the
/// plan's row of zeros when they are read.
pub struct RowPointers<T> {
    rows: [*mut T; 2 * MAX_LANES],
    /// Distance to the rows of the next block, which are fetched into the cache meanwhile.
    ahead: usize,
}

impl<T> RowPointers<T> {
    /// Rows from a function of (lane, imaginary).
    #[inline]
    pub(crate) fn new(
        lanes: usize,
        ahead: usize,
        mut row: impl FnMut(usize, bool) -> *mut T,
    ) -> Self {
        let mut rows = [std::ptr::null_mut(); 2 * MAX_LANES];
        for lane in 0..lanes {
            rows[lane] = row(lane, false);
            rows[lanes + lane] = row(lane, true);
        }
        Self { rows, ahead }
    }
}

/// What is added before the activation.
#[derive(Clone, Copy)]
pub enum LaneBias<'a, T> {
    None,
    /// One number per lane, the same for Re and Im.
    Lanes(&'a [T; MAX_LANES]),
    /// One row for all lanes.
    Row(*const T),
    /// One row per lane.
    Rows(&'a RowPointers<T>),
}

impl<T: Real> LaneBias<'_, T> {
    /// The part of the bias that does not depend on the position.
    #[inline(always)]
    pub(super) fn of_lanes<V: Vector<Scalar = T>>(&self) -> V {
        match self {
            // SAFETY: there are as many numbers as the widest vector has lanes.
            Self::Lanes(lanes) => unsafe { V::load(lanes.as_ptr()) },
            _ => V::splat(T::zero()),
        }
    }

    /// The part that does.
    #[inline(always)]
    unsafe fn at_position<V: Vector<Scalar = T>>(&self, position: usize) -> V {
        // SAFETY: rows of the bias hold as many numbers as the rows of the block.
        unsafe {
            match *self {
                Self::None | Self::Lanes(_) => V::splat(T::zero()),
                Self::Row(row) => V::splat(*row.add(position)),
                Self::Rows(rows) => {
                    let mut lanes = [T::zero(); MAX_LANES];
                    for (value, row) in lanes.iter_mut().zip(&rows.rows[..V::LANES]) {
                        *value = *row.add(position);
                    }
                    V::load(lanes.as_ptr())
                }
            }
        }
    }
}

/// Transposed columns: `[MAX_RADIX][MAX_COLUMNS][Re, Im][MAX_LANES]` at most.
#[repr(C, align(64))]
struct Columns<T>([T; MAX_RADIX * MAX_COLUMNS * 2 * MAX_LANES]);

/// Numbers of a cache line: rows are read and written by whole lines.
pub(super) const fn line_of<T>() -> usize {
    64 / size_of::<T>()
}

/// The first forward stage: rows -> tile -> butterfly -> block.
#[inline(always)]
pub(super) unsafe fn first_stage<V: Vector, const R: usize>(
    job: &ForwardBlock<'_, V::Scalar>,
    stage: &Stage<V::Scalar>,
    twiddles: &[Complex<V::Scalar>],
) {
    let (span, inner) = (stage.span, stage.inner);
    let mut tile = std::mem::MaybeUninit::<Columns<V::Scalar>>::uninit();
    let tile = tile.as_mut_ptr().cast::<V::Scalar>();
    let (width, shift) = (line_of::<V::Scalar>(), job.plan.shift);
    let (entry, step) = (2 * V::LANES, slot(span, shift) * 2 * V::LANES);
    let mut column = 0;
    while column < span {
        let count = width.min(span - column);
        // SAFETY: `load_columns` fills `count` entries for each `k`, which are then read; the
        // block positions `k*span + column + i` are below `R*span`.
        unsafe {
            for k in 0..R {
                load_columns::<V>(job, k * span + column, count, tile.add(k * width * entry));
            }
            for i in 0..count {
                let j = (column + i) / inner;
                let w = twiddles.as_ptr().add(j * (R - 1));
                let mut x: [Complexes<V>; R] = [Complexes::load(tile.add(i * entry)); R];
                for (k, value) in x.iter_mut().enumerate().skip(1) {
                    *value = Complexes::load(tile.add((k * width + i) * entry));
                }
                butterfly(&mut x);
                let at = job.block.add(slot(column + i, shift) * entry);
                x[0].store(at);
                for (k, value) in x.iter().enumerate().skip(1) {
                    value.mul(twiddle(w.add(k - 1))).store(at.add(k * step));
                }
            }
        }
        column += count;
    }
}

/// The last inverse stage: block -> butterfly -> tile -> bias, activation -> rows.
#[inline(always)]
pub(super) unsafe fn last_stage<V: Vector, const R: usize>(
    job: &InverseBlock<'_, V::Scalar>,
    stage: &Stage<V::Scalar>,
    twiddles: &[Complex<V::Scalar>],
) {
    let (span, inner) = (stage.span, stage.inner);
    let mut tile = std::mem::MaybeUninit::<Columns<V::Scalar>>::uninit();
    let tile = tile.as_mut_ptr().cast::<V::Scalar>();
    let (width, shift) = (line_of::<V::Scalar>(), job.plan.shift);
    let (entry, step) = (2 * V::LANES, slot(span, shift) * 2 * V::LANES);
    let bias: V = job.bias.of_lanes();
    let mut column = 0;
    while column < span {
        let count = width.min(span - column);
        // SAFETY: as in `first_stage`, in the other direction.
        unsafe {
            for i in 0..count {
                let j = (column + i) / inner;
                let w = twiddles.as_ptr().add(j * (R - 1));
                let mut x =
                    gather::<V, R>(job.block.add(slot(column + i, shift) * entry), step, 1, w);
                butterfly(&mut x);
                for (k, value) in x.iter().enumerate() {
                    let value = swap(*value).add(Complexes { re: bias, im: bias });
                    value.store(tile.add((k * width + i) * entry));
                }
            }
            for k in 0..R {
                finish_columns::<V>(job, k * span + column, count, tile.add(k * width * entry));
            }
        }
        column += count;
    }
}

/// Reads `count` columns of all rows, from `column` on, into `count` entries at `to`.
#[inline(always)]
pub(super) unsafe fn load_columns<V: Vector>(
    job: &ForwardBlock<'_, V::Scalar>,
    column: usize,
    count: usize,
    to: *mut V::Scalar,
) {
    // SAFETY: rows hold `len` numbers and `column + count <= len`.
    unsafe {
        match job.tanh {
            None => transpose_columns::<V>(
                job.rows,
                column,
                count,
                to,
                #[inline(always)]
                |_, at| V::Tile::load(at),
                #[inline(always)]
                |_, at| *at,
            ),
            Some(tanh) => transpose_columns::<V>(
                job.rows,
                column,
                count,
                to,
                #[inline(always)]
                |(row, column), at| {
                    let y = V::Tile::load(tanh.rows[row].add(column));
                    V::Tile::load(at).mul(y.neg_mul_add(y, V::Tile::splat(V::Scalar::of(1.0))))
                },
                #[inline(always)]
                |(row, column), at| {
                    let y = *tanh.rows[row].add(column);
                    *at * (V::Scalar::of(1.0) - y * y)
                },
            ),
        }
    }
}

/// Transposes columns into entries; `tile` and `scalar` read numbers of a (row, column).
#[inline(always)]
unsafe fn transpose_columns<V: Vector>(
    rows: &RowPointers<V::Scalar>,
    column: usize,
    count: usize,
    to: *mut V::Scalar,
    tile: impl Fn((usize, usize), *const V::Scalar) -> V::Tile,
    scalar: impl Fn((usize, usize), *const V::Scalar) -> V::Scalar,
) {
    let side = <V::Tile as Vector>::LANES;
    let entry = 2 * V::LANES;
    let whole = count / side * side;
    // Rows come in groups of a tile: Re lanes first, then Im lanes, as entries hold them.
    for group in (0..entry).step_by(side) {
        for row in &rows.rows[group..group + side] {
            V::Scalar::prefetch(row.wrapping_add(column + rows.ahead));
        }
        for start in (column..column + whole).step_by(side) {
            // SAFETY: the caller's promise.
            unsafe {
                V::Tile::transpose(
                    #[inline(always)]
                    |i| tile((group + i, start), rows.rows[group + i].add(start)),
                    #[inline(always)]
                    |j| to.add((start - column + j) * entry + group),
                );
            }
        }
        for row in group..group + side {
            for j in whole..count {
                // SAFETY: as above.
                unsafe {
                    *to.add(j * entry + row) =
                        scalar((row, column + j), rows.rows[row].add(column + j));
                }
            }
        }
    }
}

/// Adds the bias to `count` entries at `from` (unless it is one number per lane, which the caller
/// has added), applies the activation, and writes them to the rows.
#[inline(always)]
pub(super) unsafe fn finish_columns<V: Vector>(
    job: &InverseBlock<'_, V::Scalar>,
    column: usize,
    count: usize,
    from: *mut V::Scalar,
) {
    let side = <V::Tile as Vector>::LANES;
    let entry = 2 * V::LANES;
    if job.tanh || matches!(job.bias, LaneBias::Row(_) | LaneBias::Rows(_)) {
        for j in 0..count {
            // SAFETY: `from` holds `count` entries.
            unsafe {
                let at = from.add(j * entry);
                let bias = job.bias.at_position::<V>(column + j);
                let x = Complexes::load(at).add(Complexes { re: bias, im: bias });
                if job.tanh {
                    Complexes {
                        re: Real::tanh_lanes(x.re),
                        im: Real::tanh_lanes(x.im),
                    }
                    .store(at);
                } else {
                    x.store(at);
                }
            }
        }
    }
    for group in (0..entry).step_by(side) {
        let rows = &job.rows.rows[group..group + side];
        let complete = rows.iter().all(|row| !row.is_null());
        let whole = if complete { count / side * side } else { 0 };
        for row in rows {
            V::Scalar::prefetch(row.wrapping_add(column + job.rows.ahead));
        }
        for start in (0..whole).step_by(side) {
            // SAFETY: rows hold `len` numbers and `column + count <= len`.
            unsafe {
                V::Tile::transpose(
                    #[inline(always)]
                    |j| V::Tile::load(from.add((start + j) * entry + group)),
                    #[inline(always)]
                    |i| rows[i].add(column + start),
                );
            }
        }
        for (i, row) in rows.iter().enumerate().filter(|(_, row)| !row.is_null()) {
            for j in whole..count {
                // SAFETY: as above.
                unsafe { *row.add(column + j) = *from.add(j * entry + group + i) };
            }
        }
    }
}
