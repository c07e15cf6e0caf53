//! Sums over all rows of a matrix, `[rows, n]` to `[n]`, from the sums of its chunks.
//!
//! A chunk adds up its own rows in the number type (at most [`ROWS`] of them, or one when rows are long); the chunks are added in f64, in their
//! order, so that the result does not depend on the number of threads.

use crate::real::Real;
use crate::runtime::chunks::rows_per_chunk;

/// More rows than fit the near cache: the sums of a chunk are written once per so many rows.
const CHUNKS: usize = 4;
/// Columns whose totals are kept on the stack.
const COLUMNS: usize = 64;

/// Rows of a chunk with its own sums.
pub(crate) fn rows_per_sum(width: usize) -> usize {
    (CHUNKS * rows_per_chunk(width)).min(ROWS)
}

/// The most rows that are added up in the number type: their rounding stays below 1e-5 in f32.
const ROWS: usize = 128;

/// `out[j]` is the sum of `parts[p][first + j]` over the parts, which are `stride` long.
pub(crate) fn add_parts<T: Real>(parts: &[T], stride: usize, first: usize, out: &mut [T]) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_added_by_column() {
        for columns in [1, 7, 64, 65, 200] {
            let stride = columns + 3;
            let parts: Vec<f32> = (0..5 * stride).map(|i| i as f32).collect();
            let mut out = vec![-1.0; columns];
            add_parts(&parts, stride, 2, &mut out);
            for (j, sum) in out.iter().enumerate() {
                let expected: f32 = (0..5).map(|p| parts[p * stride + 2 + j]).sum();
                assert_eq!(*sum, expected);
            }
        }
    }

    #[test]
    fn a_chunk_has_a_few_rows() {
        assert_eq!(rows_per_sum(1), ROWS);
        assert_eq!(rows_per_sum(512), 64);
        assert_eq!(rows_per_sum(1 << 20), 4);
    }
}
