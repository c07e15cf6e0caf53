//! The small symmetric matrix `M = I + W^T D^-1 W` of the determinant lemma, `[n, n]` in f64, by
//! its Cholesky factor `M = L L^T`.
//!
//! `M >= I`, so the factorisation of finite values cannot fail; a NaN runs through it and comes out as
//! NaN, an infinity on the diagonal gives the limits.

/// `M` by its factor.
pub struct Cholesky {
    n: usize,
    /// The lower triangle, row-major; above the diagonal is whatever the matrix had there.
    lower: Vec<f64>,
}

impl Cholesky {
    /// Factors the matrix in place; only its lower triangle is read.
    pub fn new(mut matrix: Vec<f64>, n: usize) -> Self {
        for j in 0..n {
            let (above, rest) = matrix.split_at_mut(j * n + j);
            let row_j = &above[j * n..];
            let pivot = (rest[0] - dot(row_j, row_j)).sqrt();
            rest[0] = pivot;
            for i in j + 1..n {
                let row_i = &matrix[i * n..][..j];
                let sum = matrix[i * n + j] - dot(row_i, &matrix[j * n..][..j]);
                matrix[i * n + j] = sum / pivot;
            }
        }
        Self { n, lower: matrix }
    }

    /// `ln det M`.
    pub fn log_determinant(&self) -> f64 {
        let diagonal = (0..self.n).map(|i| self.lower[i * self.n + i]);
        2.0 * diagonal.map(f64::ln).sum::<f64>()
    }

    /// `M^-1`, the whole square.
    pub fn inverse(&self) -> Vec<f64> {
        let n = self.n;
        // Row `i` of the transposed inverse of L: its column `i`, zero before entry `i`.
        let mut columns = vec![0.0; n * n];
        for i in 0..n {
            let column = &mut columns[i * n..][..n];
            column[i] = 1.0 / self.lower[i * n + i];
            for k in i + 1..n {
                let sum = dot(&self.lower[k * n + i..][..k - i], &column[i..k]);
                column[k] = -sum / self.lower[k * n + k];
            }
        }
        let mut inverse = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let entry = dot(
                    &columns[i * n + i..][..n - i],
                    &columns[j * n + i..][..n - i],
                );
                inverse[i * n + j] = entry;
                inverse[j * n + i] = entry;
            }
        }
        inverse
    }

    /// `b^T M^-1 b`.
    pub fn inverse_form(&self, b: &[f64]) -> f64 {
        let mut solution = vec![0.0; self.n];
        for i in 0..self.n {
            let row = &self.lower[i * self.n..];
            solution[i] = (b[i] - dot(&row[..i], &solution[..i])) / row[i];
        }
        dot(&solution, &solution)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
