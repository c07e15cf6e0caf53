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
