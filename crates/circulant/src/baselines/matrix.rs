//! Small symmetric matrices in f64, row-major.

use faer::{Mat, Side};

use crate::metrics::MetricError;

/// Rows of finite numbers as f64.
pub(super) fn rows<T: crate::metrics::Real>(
    what: &'static str,
    values: &[T],
    columns: usize,
) -> Result<Vec<f64>, MetricError> {
    if columns == 0 {
        return Err(MetricError::Zero { what: "features" });
    }
    if !values.len().is_multiple_of(columns) {
        return Err(MetricError::NotWholeRows {
            values: values.len(),
            classes: columns,
        });
    }
    crate::metrics::finite(what, values)
}

/// `X^T X / n` of rows `[n, columns]`.
pub(super) fn second_moment(values: &[f64], columns: usize) -> Mat<f64> {
    let count = values.len() / columns;
    let x = Mat::from_fn(count, columns, |row, column| values[row * columns + column]);
    let product = x.transpose() * &x;
    Mat::from_fn(columns, columns, |i, j| product[(i, j)] / count as f64)
}

/// Eigenvalues of a symmetric matrix, the largest first, and its eigenvectors as rows. `what` is named where there are none.
pub(super) fn eigen(
    matrix: &Mat<f64>,
    what: &'static str,
) -> Result<(Vec<f64>, Vec<Vec<f64>>), MetricError> {
    let size = matrix.nrows();
    let failed = |_| MetricError::NotFinite {
        what,
        index: 0,
        got: f64::NAN,
    };
    let found = matrix.self_adjoint_eigen(Side::Lower).map_err(failed)?;
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|&a, &b| found.S()[b].total_cmp(&found.S()[a]));
    let vector = |&k: &usize| (0..size).map(|i| found.U()[(i, k)]).collect();
    Ok((
        order.iter().map(|&k| found.S()[k]).collect(),
        order.iter().map(vector).collect(),
    ))
}

/// Eigenvalues of the covariance `X^T X / n` of centred rows `[n, columns]`, the largest first, and as many of its eigenvectors as are
/// not of the eigenvalue zero. Of fewer rows than columns they come from `X X^T / n`: `v = X^T u / sqrt(n lambda)`.
pub(super) fn principal(
    values: &[f64],
    columns: usize,
    what: &'static str,
) -> Result<(Vec<f64>, Vec<Vec<f64>>), MetricError> {
    let count = values.len() / columns;
    if count >= columns {
        return eigen(&second_moment(values, columns), what);
    }
    let x = Mat::from_fn(count, columns, |row, column| values[row * columns + column]);
    let product = &x * x.transpose();
    let gram = Mat::from_fn(count, count, |i, j| product[(i, j)] / count as f64);
    let (mut variances, of_rows) = eigen(&gram, what)?;
    // Centred rows have a sum of zero, so at least one of them is all rounding.
    let floor = variances[0] * 1e-12;
    let rank = variances.iter().take_while(|v| **v > floor).count();
    if rank == 0 {
        return eigen(&second_moment(values, columns), what);
    }
    let vectors = of_rows[..rank].iter().zip(&variances).map(|(u, variance)| {
        let scale = (count as f64 * variance).sqrt().recip();
        let mut vector = vec![0.0; columns];
        for (row, weight) in values.chunks_exact(columns).zip(u) {
            let terms = vector.iter_mut().zip(row);
            terms.for_each(|(sum, x)| *sum += scale * weight * x);
        }
        vector
    });
    let vectors = vectors.collect();
    variances.truncate(rank);
    variances.resize(columns, 0.0);
    Ok((variances, vectors))
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The lower factor of a positive definite matrix, row-major; none if it is not.
pub(super) fn cholesky(matrix: &[f64], size: usize) -> Option<Vec<f64>> {
    let mut lower = vec![0.0; size * size];
    for i in 0..size {
        for j in 0..=i {
            let rest = matrix[i * size + j] - dot(&lower[i * size..][..j], &lower[j * size..][..j]);
            lower[i * size + j] = if i == j {
                if rest.is_nan() || rest <= 0.0 {
                    return None;
                }
                rest.sqrt()
            } else {
                rest / lower[j * size + j]
            };
        }
    }
    Some(lower)
}

/// The squared norm of `L^-1 x`.
pub(super) fn squared_distance(lower: &[f64], x: &[f64]) -> f64 {
    let mut solved: Vec<f64> = Vec::with_capacity(x.len());
    for (i, (x, row)) in x.iter().zip(lower.chunks_exact(x.len())).enumerate() {
        solved.push((x - dot(&row[..i], &solved)) / row[i]);
    }
    dot(&solved, &solved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_have_the_eigenvectors_of_the_covariance() {
        for (count, columns) in [(2, 3), (5, 9), (7, 40)] {
            let mut values: Vec<f64> = (0..count * columns)
                .map(|i| (i as f64 * 1.7).sin() + 0.1 * (i as f64 * 0.31).cos())
                .collect();
            for column in 0..columns {
                let own = || (0..count).map(|row| row * columns + column);
                let mean = own().map(|i| values[i]).sum::<f64>() / count as f64;
                own().for_each(|i| values[i] -= mean);
            }
            let (variances, vectors) = principal(&values, columns, "rows").unwrap();
            let (expected, directions) = eigen(&second_moment(&values, columns), "rows").unwrap();
            assert_eq!(variances.len(), columns);
            assert!(!vectors.is_empty() && vectors.len() < count, "{columns}");
            for (found, expected) in variances.iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-12);
            }
            for (found, expected) in vectors.iter().zip(&directions) {
                assert!((dot(found, expected).abs() - 1.0).abs() < 1e-9, "{columns}");
            }
        }
    }

    #[test]
    fn rows_that_are_all_the_same_have_a_direction_still() {
        let (variances, vectors) = principal(&[0.0; 6], 3, "rows").unwrap();
        assert!(variances == [0.0; 3] && !vectors.is_empty());
    }
}
