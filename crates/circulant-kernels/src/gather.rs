//! Rows of a matrix in a given order, copied by all threads.
//!
//! Rows in a random order come from main memory one cache line after the other, and the hardware
//! sees what is wanted only when a row has begun. So the rows ahead are asked for while one is
//! copied.

use rayon::prelude::*;

use crate::simd::prefetch;

/// Below this many bytes one thread is faster than waking another.
const SMALLEST: usize = 256 * 1024;

/// Rows that one thread copies at a time.
const PART: usize = 64;

/// How many rows before its turn a row is asked for.
const AHEAD: usize = 2;

/// `out[i] = matrix[rows[i]]`, where a row is `out.len()/rows.len()` numbers.
///
/// # Panics
///
/// Panics if a row does not exist, or if `out` is not a whole number of rows.
pub fn gather_rows<T: Copy + Send + Sync>(matrix: &[T], rows: &[usize], out: &mut [T]) {
    if rows.is_empty() || out.is_empty() {
        return;
    }
    let length = out.len() / rows.len();
    assert!(
        length * rows.len() == out.len(),
        "{} rows do not fill {} numbers",
        rows.len(),
        out.len()
    );
    let copy = |out: &mut [T], rows: &[usize]| {
        for (i, out) in out.chunks_exact_mut(length).enumerate() {
            if let Some(row) = rows.get(i + AHEAD) {
                fetch(&matrix[row * length..][..length]);
            }
            out.copy_from_slice(&matrix[rows[i] * length..][..length]);
        }
    };
    if size_of_val(out) < SMALLEST {
        copy(out, rows);
    } else {
        let parts = out.par_chunks_mut(PART * length).zip(rows.par_chunks(PART));
        parts.for_each(|(out, rows)| copy(out, rows));
    }
}

/// Asks for all cache lines of a row.
fn fetch<T>(row: &[T]) {
    let line = (64 / size_of::<T>().max(1)).max(1);
    for number in row.iter().step_by(line) {
        prefetch(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_in_the_order_asked_for() {
        // Small, and large enough for several threads.
        for (count, length) in [(5, 3), (700, 784)] {
            let matrix: Vec<f32> = (0..count * length).map(|i| i as f32).collect();
            let rows: Vec<usize> = (0..count).map(|i| i * 3 % count).collect();
            let mut out = vec![0.0; count * length];
            gather_rows(&matrix, &rows, &mut out);
            for (row, out) in rows.iter().zip(out.chunks_exact(length)) {
                assert_eq!(out, &matrix[row * length..][..length]);
            }
        }
    }
}
