//! Rows of a matrix in a given order, copied by all threads.

use rayon::prelude::*;

/// Below this many bytes one thread is faster than waking another.
const SMALLEST: usize = 256 * 1024;

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
    let copy = |(out, &row): (&mut [T], &usize)| {
        out.copy_from_slice(&matrix[row * length..][..length]);
    };
    if size_of_val(out) < SMALLEST {
        out.chunks_exact_mut(length).zip(rows).for_each(copy);
    } else {
        let part = rows.len().div_ceil(rayon::current_num_threads());
        let parts = out.par_chunks_mut(part * length).zip(rows.par_chunks(part));
        parts.for_each(|(out, rows)| out.chunks_exact_mut(length).zip(rows).for_each(copy));
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
