//! Sums over all rows of a matrix, `[rows, n]` to `[n]`, from the sums of its chunks.
//!
//! A chunk adds up its own rows in the number type (at most [`ROWS`] of them, or one when rows are long); the chunks are added in f64, in their
//! order, so that the result does not depend on the number of threads.

use crate::real::Real;
use crate::runtime::chunks::rows_per_chunk;

/// More rows than fit the L1 or L2 cache: the sums of a chunk are written once per so many rows.
const CHUNKS: usize = 4;
/// Columns whose totals are kept on the stack.
const COLUMNS: usize = 64;

/// Rows of a chunk with its own sums.
pub fn rows_per_sum(width: usize) -> usize {
    (CHUNKS * rows_per_chunk(width)).min(ROWS)
}

/// The most rows that are added up in the number type: their rounding stays below 1e-5 in f32.
pub const ROWS: usize = 128;

/// `out[j]` is the sum of `parts[p][first + j]` over the parts, which are `stride` long.
pub fn add_parts<T: Real>(parts: &[T], stride: usize, first: usize, out: &mut [T]) {
    for (block, out) in out.chunks_mut(COLUMNS).enumerate() {
        let own = first + block * COLUMNS..first + block * COLUMNS + out.len();
        let mut totals = [0.0; COLUMNS];
        for part in parts.chunks_exact(stride) {
            for (total, value) in totals.iter_mut().zip(&part[own.clone()]) {
                *total += value.wide();
            }
        }
        for (out, total) in out.iter_mut().zip(totals) {
            *out = T::of(total);
        }
    }
}
