//! The stages at the border to row-major memory: the first forward stage reads columns of all rows,
//! the last inverse stage hands columns on, both through a small tile (`columns.rs`).
//!
//! `unsafe`: see the module above.

use num_complex::Complex;

use super::columns::{finish_columns, line_of, load_columns};
use super::plan::{Stage, slot};
use super::stages::{gather, swap, twiddle};
use super::{ForwardBlock, InverseBlock};
use crate::transform::butterfly::{Complexes, butterfly};
use crate::vector::{MAX_LANES, Present, Vector};

const MAX_RADIX: usize = 16;
/// The most columns of a tile: a cache line of a row.
const MAX_COLUMNS: usize = 16;

/// Transposed columns: `[MAX_RADIX][MAX_COLUMNS][Re, Im][MAX_LANES]` at most.
#[repr(C, align(64))]
struct TileColumns<T>([T; MAX_RADIX * MAX_COLUMNS * 2 * MAX_LANES]);

/// Columns of a tile for each of the radix: a line, or the whole span where it is shorter and not made of squares that are
/// transposed in registers. Then the tile is one piece, all columns of the rows.
#[inline(always)]
fn tile_width<V: Vector>(span: usize) -> usize {
    let line = line_of::<V::Scalar>();
    if span < line && !span.is_multiple_of(<V::Tile as Vector>::LANES) {
        span
    } else {
        line
    }
}

/// The first forward stage: rows -> tile -> butterfly -> block.
#[inline(always)]
pub(super) unsafe fn first_stage<V: Vector, const R: usize>(
    job: &ForwardBlock<'_, V::Scalar>,
    stage: &Stage<V::Scalar>,
    twiddles: &[Complex<V::Scalar>],
) {
    // SAFETY: see the head of the module: the instruction set is there.
    let there = unsafe { Present::<V>::promised() };
    there.call(
        #[inline(always)]
        || {
            let (span, inner) = (stage.span, stage.inner);
            let mut tile = std::mem::MaybeUninit::<TileColumns<V::Scalar>>::uninit();
            let tile = tile.as_mut_ptr().cast::<V::Scalar>();
            let (width, shift) = (tile_width::<V>(span), job.plan.shift);
            let (entry, step) = (2 * V::LANES, slot(span, shift) * 2 * V::LANES);
            let mut column = 0;
            while column < span {
                let count = width.min(span - column);
                // SAFETY: `load_columns` fills `count` entries for each `k`, which are then read; the
                // block positions `k*span + column + i` are below `R*span`.
                unsafe {
                    if width == span {
                        load_columns::<V>(job, 0, R * span, tile);
                    } else {
                        for k in 0..R {
                            let to = tile.add(k * width * entry);
                            load_columns::<V>(job, k * span + column, count, to);
                        }
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
        },
    );
}

/// The last inverse stage: block -> butterfly -> tile -> bias, activation -> rows.
#[inline(always)]
pub(super) unsafe fn last_stage<V: Vector, const R: usize>(
    job: &InverseBlock<'_, V::Scalar>,
    stage: &Stage<V::Scalar>,
    twiddles: &[Complex<V::Scalar>],
) {
    // SAFETY: see the head of the module: the instruction set is there.
    let there = unsafe { Present::<V>::promised() };
    there.call(
        #[inline(always)]
        || {
            let (span, inner) = (stage.span, stage.inner);
            let mut tile = std::mem::MaybeUninit::<TileColumns<V::Scalar>>::uninit();
            let tile = tile.as_mut_ptr().cast::<V::Scalar>();
            let (width, shift) = (tile_width::<V>(span), job.plan.shift);
            let (entry, step) = (2 * V::LANES, slot(span, shift) * 2 * V::LANES);
            let bias: V = job.bias.of_lanes(there);
            let mut column = 0;
            while column < span {
                let count = width.min(span - column);
                // SAFETY: as in `first_stage`, in the other direction.
                unsafe {
                    for i in 0..count {
                        let j = (column + i) / inner;
                        let w = twiddles.as_ptr().add(j * (R - 1));
                        let mut x = gather::<V, R>(
                            job.block.add(slot(column + i, shift) * entry),
                            step,
                            1,
                            w,
                        );
                        butterfly(&mut x);
                        for (k, value) in x.iter().enumerate() {
                            let value = swap(*value).add(Complexes { re: bias, im: bias });
                            value.store(tile.add((k * width + i) * entry));
                        }
                    }
                    if width == span {
                        finish_columns::<V>(job, 0, R * span, tile);
                    } else {
                        for k in 0..R {
                            let from = tile.add(k * width * entry);
                            finish_columns::<V>(job, k * span + column, count, from);
                        }
                    }
                }
                column += count;
            }
        },
    );
}
