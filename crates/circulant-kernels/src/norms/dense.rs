//! Norms of dense matrices, `rows x columns`, row-major.

use crate::error::{KernelError, expect_positive, expect_volume};
use crate::real::Real;

use super::gram::{Bound, bound_of, write_gradient};
use super::matrix::{Matrix, Scale};
use super::search::{Bins, Search};
use super::{NormEnclosure, expect_finite};

/// A dense matrix as an operator with one real bin.
struct Dense<'a> {
    shape: (usize, usize),
    values: &'a [f64],
    scale: Scale,
}

impl<'a> Dense<'a> {
    /// `None` for a zero matrix.
    fn new(rows: usize, columns: usize, values: &'a [f64]) -> Result<Option<Self>, KernelError> {
        expect_positive(&[
            ("the number of rows", rows),
            ("the number of columns", columns),
        ])?;
        expect_volume("the matrix", values.len(), &[rows, columns])?;
        expect_finite("the matrix", values)?;
        Ok(Scale::of(values).map(|scale| Self {
            shape: (rows, columns),
            values,
            scale,
        }))
    }
}

impl Bins for Dense<'_> {
    fn shape(&self) -> (usize, usize) {
        let (a, b) = self.shape;
        (a.max(b), a.min(b))
    }

    fn order(&self) -> Vec<usize> {
        vec![0]
    }

    fn complex(&self, _index: usize) -> bool {
        false
    }

    fn load<T: Real>(&self, _index: usize, into: &mut Matrix<T>) {
        let (rows, columns) = self.shape;
        into.load(rows, columns, self.values, self.scale);
    }
}

/// The largest singular value of a dense matrix, enclosed.
///
/// ```
/// use circulant_kernels::matrix_norm;
///
/// let norm = matrix_norm(2, 2, &[3.0, 0.0, 4.0, 0.0])?;
/// assert!(norm.lower <= 5.0 && 5.0 <= norm.upper);
/// # Ok::<(), circulant_kernels::KernelError>(())
/// ```
pub fn matrix_norm(
    rows: usize,
    columns: usize,
    values: &[f64],
) -> Result<NormEnclosure, KernelError> {
    let Some(dense) = Dense::new(rows, columns, values)? else {
        return Ok(NormEnclosure::ZERO);
    };
    let largest = Search::new(&dense)?.largest();
    Ok(NormEnclosure {
        lower: dense.scale.undo_down(largest.lower),
        upper: dense.scale.undo_up(largest.upper),
    })
}

/// A certified upper bound on the norm of a dense matrix, see [`gram_bound_2d`].
///
/// [`gram_bound_2d`]: super::gram_bound_2d
pub fn gram_bound_matrix(
    rows: usize,
    columns: usize,
    values: &[f64],
    squarings: usize,
) -> Result<f64, KernelError> {
    let Some(dense) = Dense::new(rows, columns, values)? else {
        return Ok(0.0);
    };
    let Bound { upper, .. } = bound_of(&dense, squarings)?;
    Ok(dense.scale.undo_up(upper))
}

/// [`gram_bound_matrix`] with the gradient of the bound before rounding, zero for a zero matrix.
pub fn gram_bound_matrix_with_gradient(
    rows: usize,
    columns: usize,
    values: &[f64],
    squarings: usize,
) -> Result<(f64, Vec<f64>), KernelError> {
    let mut gradient = vec![0.0; values.len()];
    let Some(dense) = Dense::new(rows, columns, values)? else {
        return Ok((0.0, gradient));
    };
    let bound = bound_of(&dense, squarings)?;
    write_gradient(
        &bound.powers.gradient(),
        rows,
        |row, column| row * columns + column,
        |i, x| gradient[i] = x.re,
    );
    Ok((dense.scale.undo_up(bound.upper), gradient))
}
