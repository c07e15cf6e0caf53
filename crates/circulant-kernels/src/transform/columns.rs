//! Columns of all rows of a block, as entries of lanes: read from row-major memory, and handed on
//! with bias and activation.
//!
//! `unsafe`: see the module above.

use circulant_core::Scalar;

use super::{ForwardBlock, InverseBlock, Sink, Source};
use crate::real::Real;
use crate::transform::butterfly::Complexes;
use crate::vector::{MAX_LANES, Present, Tile, Vector, prefetch};

/// Where the rows of a block lie in memory. Lane `l` of the real part is `rows[l]`, of the
/// imaginary part `rows[LANES + l]`. A row that is missing is null when rows are written, and the
/// plan's row of zeros when they are read.
pub struct RowPointers<T> {
    rows: [*mut T; 2 * MAX_LANES],
    /// What is fetched into the cache meanwhile: the rows of the next block, say.
    ahead: [*const T; 2 * MAX_LANES],
}

impl<T> RowPointers<T> {
    /// Rows, and what to fetch meanwhile, from a function of (lane, imaginary).
    #[inline]
    pub(crate) fn new(lanes: usize, row: impl Fn(usize, bool) -> (*mut T, *const T)) -> Self {
        let mut rows = [std::ptr::null_mut(); 2 * MAX_LANES];
        let mut ahead = [std::ptr::null(); 2 * MAX_LANES];
        for lane in 0..lanes {
            (rows[lane], ahead[lane]) = row(lane, false);
            (rows[lanes + lane], ahead[lanes + lane]) = row(lane, true);
        }
        Self { rows, ahead }
    }

    /// All rows, and what is fetched, `by` values further; rows that are `missing` stay.
    #[inline(always)]
    pub(crate) fn advance(&mut self, by: usize, missing: *mut T) {
        for (row, ahead) in self.rows.iter_mut().zip(&mut self.ahead) {
            *row = row.wrapping_add(if *row == missing { 0 } else { by });
            *ahead = ahead.wrapping_add(by);
        }
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
    pub(super) fn of_lanes<V: Vector<Scalar = T>>(&self, there: Present<V>) -> V {
        match self {
            // SAFETY: there are as many values as the widest vector has lanes.
            Self::Lanes(lanes) => unsafe { V::load(lanes.as_ptr()) },
            _ => there.splat(T::zero()),
        }
    }

    /// The part that does.
    #[inline(always)]
    unsafe fn at_position<V: Vector<Scalar = T>>(&self, position: usize) -> V {
        // SAFETY: rows of the bias hold as many values as the rows of the block.
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

/// Values of a cache line: rows are read and written by whole lines.
pub(crate) const fn line_of<T>() -> usize {
    64 / size_of::<T>()
}

/// Reads `count` columns, from `column` on, into `count` entries at `to`.
#[inline(always)]
pub(super) unsafe fn load_columns<V: Vector>(
    job: &ForwardBlock<'_, V::Scalar>,
    column: usize,
    count: usize,
    to: *mut V::Scalar,
) {
    // SAFETY: see the head of the module: the instruction set is there.
    let there = unsafe { Present::<V>::promised() };
    there.call(
        #[inline(always)]
        || {
            // SAFETY: the source holds `len` columns and `column + count <= len`.
            unsafe {
                match job.source {
                    Source::Rows { rows, tanh: None } => transpose_columns::<V, V::Scalar>(
                        rows,
                        column,
                        count,
                        to,
                        #[inline(always)]
                        |_, at| V::Tile::load(at),
                        #[inline(always)]
                        |_, at| *at,
                    ),
                    Source::Rows {
                        rows,
                        tanh: Some(tanh),
                    } => transpose_columns::<V, V::Scalar>(
                        rows,
                        column,
                        count,
                        to,
                        #[inline(always)]
                        |(row, column), at| {
                            let y = V::Tile::load(tanh.rows[row].add(column));
                            let one = V::Tile::splat(V::Scalar::of(1.0));
                            V::Tile::load(at).mul(y.neg_mul_add(y, one))
                        },
                        #[inline(always)]
                        |(row, column), at| {
                            let y = *tanh.rows[row].add(column);
                            *at * (V::Scalar::of(1.0) - y * y)
                        },
                    ),
                    Source::Bytes { rows, quotient } => transpose_columns::<V, u8>(
                        rows,
                        column,
                        count,
                        to,
                        #[inline(always)]
                        |_, at| quotient.tile::<V::Tile>(at),
                        #[inline(always)]
                        |_, at| quotient.number::<V>(*at),
                    ),
                    Source::Readout(gradient) => gradient.load_columns::<V>(column, count, to),
                }
            }
        },
    );
}

/// Transposes columns into entries; `tile` and `scalar` read numbers of a (row, column).
#[inline(always)]
unsafe fn transpose_columns<V: Vector, A>(
    rows: &RowPointers<A>,
    column: usize,
    count: usize,
    to: *mut V::Scalar,
    tile: impl Fn((usize, usize), *const A) -> V::Tile,
    scalar: impl Fn((usize, usize), *const A) -> V::Scalar,
) {
    let side = <V::Tile as Vector>::LANES;
    let entry = 2 * V::LANES;
    let whole = count / side * side;
    // Rows come in groups of a tile: Re lanes first, then Im lanes, as entries hold them.
    for group in (0..entry).step_by(side) {
        for ahead in &rows.ahead[group..group + side] {
            prefetch(ahead.wrapping_add(column));
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
/// has added), applies the activation, and hands them on.
#[inline(always)]
pub(super) unsafe fn finish_columns<V: Vector>(
    job: &InverseBlock<'_, V::Scalar>,
    column: usize,
    count: usize,
    from: *mut V::Scalar,
) {
    // SAFETY: see the head of the module: the instruction set is there.
    let there = unsafe { Present::<V>::promised() };
    there.call(
        #[inline(always)]
        || {
            let entry = 2 * V::LANES;
            let to = match job.sink {
                // SAFETY: rows that are kept have `len` entries.
                Sink::Readout(readout) if !readout.hidden.is_null() => unsafe {
                    readout.hidden.add(column * entry)
                },
                _ => from,
            };
            if job.tanh || matches!(job.bias, LaneBias::Row(_) | LaneBias::Rows(_)) {
                for j in 0..count {
                    // SAFETY: `from` holds `count` entries.
                    unsafe {
                        let at = to.add(j * entry);
                        let bias = job.bias.at_position::<V>(column + j);
                        let x = Complexes::load(from.add(j * entry));
                        let x = x.add(Complexes { re: bias, im: bias });
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
            } else if to != from {
                // SAFETY: both hold `count` entries, in different allocations.
                unsafe { std::ptr::copy_nonoverlapping(from, to, count * entry) };
            }
            // SAFETY: the sink holds `len` columns and `column + count <= len`.
            unsafe {
                match job.sink {
                    Sink::Rows(rows) => store_columns::<V>(rows, column, count, to),
                    Sink::Readout(readout) => readout.add_columns::<V>(column, count, to),
                }
            }
        },
    );
}

/// Transposes entries into rows.
#[inline(always)]
unsafe fn store_columns<V: Vector>(
    rows: &RowPointers<V::Scalar>,
    column: usize,
    count: usize,
    from: *const V::Scalar,
) {
    let side = <V::Tile as Vector>::LANES;
    let entry = 2 * V::LANES;
    for group in (0..entry).step_by(side) {
        for ahead in &rows.ahead[group..group + side] {
            prefetch(ahead.wrapping_add(column));
        }
        let rows = &rows.rows[group..group + side];
        let complete = rows.iter().all(|row| !row.is_null());
        let whole = if complete { count / side * side } else { 0 };
        for start in (0..whole).step_by(side) {
            // SAFETY: the caller's promise.
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
