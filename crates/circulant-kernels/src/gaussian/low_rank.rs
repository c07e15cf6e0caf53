//! The products with `W = U diag(scale)`, `[rows, padded rank]` in f64: the Gram matrix
//! `W^T D^-1 W` and `W M^-1`.
//!
//! They are taken in f64 whatever the number type: with a small `D` the entries of `M` are large,
//! and what matters in it, the identity, would be lost in f32. Tiles of four rows by eight columns
//! keep their sums in registers.

use super::block::{BLOCK, Rows, TILE, Variances};
use crate::real::Real;
use crate::simd::{Kernel, Vector};

/// Rows of a tile.
const TILE_ROWS: usize = 4;

/// The rank with its padding.
pub(super) fn padded(rank: usize) -> usize {
    rank.next_multiple_of(TILE)
}

/// The part of row `i` of `U` in one tile, zero in the padding.
#[inline(always)]
pub(super) fn factor_tile<T: Real>(rows: &Rows<'_, T>, i: usize, tile: usize) -> [f64; TILE] {
    let row = &rows.factor[i * rows.rank + tile * TILE..(i + 1) * rows.rank];
    let mut wide = [0.0; TILE];
    if let Some(row) = row.first_chunk::<TILE>() {
        for (wide, u) in wide.iter_mut().zip(row) {
            *wide = u.wide();
        }
    } else {
        for (wide, u) in wide.iter_mut().zip(row) {
            *wide = u.wide();
        }
    }
    wide
}

/// One block of `W`.
pub(super) struct Weights {
    padded: usize,
    /// `[BLOCK, padded rank]`.
    pub(super) w: Vec<f64>,
}

impl Weights {
    #[inline(always)]
    pub(super) fn new(padded: usize) -> Self {
        Self {
            padded,
            w: vec![0.0; BLOCK * padded],
        }
    }

    #[inline(always)]
    pub(super) fn read<T: Real>(&mut self, rows: &Rows<'_, T>) {
        let (scales, _) = rows.scale.as_chunks::<TILE>();
        let (w, _) = self.w.as_chunks_mut::<TILE>();
        for (i, row) in w
            .chunks_exact_mut(scales.len())
            .enumerate()
            .take(rows.len())
        {
            for (tile, (w, scale)) in row.iter_mut().zip(scales).enumerate() {
                let u = factor_tile(rows, i, tile);
                for l in 0..TILE {
                    w[l] = u[l] * scale[l];
                }
            }
        }
    }

    /// The part of row `i` in one tile.
    #[inline(always)]
    pub(super) fn tile(&self, i: usize, tile: usize) -> &[f64; TILE] {
        at(&self.w, i * self.padded + tile * TILE)
    }

    /// Rows that the tiles of a block of `rows` rows touch.
    #[inline(always)]
    fn tiled(rows: usize) -> usize {
        rows.next_multiple_of(TILE_ROWS)
    }

    /// Every row times a factor.
    #[inline(always)]
    fn scale_rows(&mut self, factors: &[f64]) {
        for (row, factor) in self.w.chunks_exact_mut(self.padded).zip(factors) {
            for w in row {
                *w *= factor;
            }
        }
    }

    /// `gram += V^T V` of the rows `V` that this block holds; the lower triangle.
    #[inline(always)]
    fn add_gram(&self, rows: usize, gram: &mut [f64]) {
        for a in (0..self.padded).step_by(TILE_ROWS) {
            for b in (0..=a).step_by(TILE) {
                let mut sums = [[0.0; TILE]; TILE_ROWS];
                for row in self.w.chunks_exact(self.padded).take(rows) {
                    let (left, right) = (at::<TILE_ROWS>(row, a), at::<TILE>(row, b));
                    for x in 0..TILE_ROWS {
                        for y in 0..TILE {
                            sums[x][y] += left[x] * right[y];
                        }
                    }
                }
                for (x, sums) in sums.iter().enumerate() {
                    for (gram, sum) in gram[(a + x) * self.padded + b..].iter_mut().zip(sums) {
                        *gram += sum;
                    }
                }
            }
        }
    }

    /// `out = W matrix`, with a square `matrix`.
    #[inline(always)]
    pub(super) fn times(&self, rows: usize, matrix: &[f64], out: &mut Self) {
        let padded = self.padded;
        for i in (0..Self::tiled(rows)).step_by(TILE_ROWS) {
            let rows = &self.w[i * padded..][..TILE_ROWS * padded];
            for b in (0..padded).step_by(TILE) {
                let mut sums = [[0.0; TILE]; TILE_ROWS];
                for (k, row) in matrix.chunks_exact(padded).enumerate() {
                    let right = at::<TILE>(row, b);
                    for x in 0..TILE_ROWS {
                        let left = rows[x * padded + k];
                        for y in 0..TILE {
                            sums[x][y] += left * right[y];
                        }
                    }
                }
                for (x, sums) in sums.iter().enumerate() {
                    out.w[(i + x) * padded + b..][..TILE].copy_from_slice(sums);
                }
            }
        }
    }
}

/// `N` numbers from `start` on.
#[inline(always)]
fn at<const N: usize>(numbers: &[f64], start: usize) -> &[f64; N] {
    numbers[start..]
        .first_chunk()
        .expect("rows are padded to whole tiles")
}

/// `W^T D^-1 W` of consecutive rows, `[padded rank, padded rank]`, the lower triangle.
pub struct GramChunk<'a, T> {
    pub(super) rows: Rows<'a, T>,
}

impl<T: Real> Kernel<T> for GramChunk<'_, T> {
    type Output = Vec<f64>;
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) -> Vec<f64> {
        let padded = self.rows.padded();
        let mut gram = vec![0.0; padded * padded];
        let mut variances = Variances::new();
        let mut weights = Weights::new(padded);
        let mut inverse_roots = [0.0; BLOCK];
        for range in self.rows.blocks() {
            let rows = self.rows.slice(range);
            variances.read(&rows);
            for (root, total) in inverse_roots.iter_mut().zip(&variances.total) {
                *root = (1.0 / total.wide()).sqrt();
            }
            weights.read(&rows);
            weights.scale_rows(&inverse_roots[..rows.len()]);
            weights.add_gram(rows.len(), &mut gram);
        }
        gram
    }
}
