//! The products with the factor `U`, in f64 whatever the number type: `U^T D^-1 U` and `U B`.
//!
//! With a small `D` the entries of `M = I + diag(scale) U^T D^-1 U diag(scale)` are large, and what
//! matters in it, the identity, would be lost in f32. Rows are padded to whole tiles; sums of four
//! rows by one tile stay in registers.

use super::block::{BLOCK, Rows, TILE, Variances};
use crate::real::Real;
use crate::vector::{Kernel, Present, Vector};

/// Rows of a sum that stays in registers.
const SUM_ROWS: usize = 4;

/// The rank with its padding.
pub(super) fn padded(rank: usize) -> usize {
    rank.next_multiple_of(TILE)
}

/// The part of row `i` of `U` in one tile, zero in the padding.
#[inline(always)]
pub(super) fn factor_tile<T: Real>(rows: &Rows<'_, T>, i: usize, tile: usize) -> [f64; TILE] {
    let row = &rows.factor[i * rows.rank + tile * TILE..(i + 1) * rows.rank];
    let mut wide = [0.0; TILE];
    // The same loop twice: only with a constant length is it vector code.
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

/// One block of `U` or of a product with it, `[BLOCK, tiles]`.
pub(super) struct FactorBlock {
    pub(super) tiles: usize,
    pub(super) u: Vec<[f64; TILE]>,
}

impl FactorBlock {
    #[inline(always)]
    pub(super) fn new(padded: usize) -> Self {
        let tiles = padded / TILE;
        Self {
            tiles,
            u: vec![[0.0; TILE]; BLOCK * tiles],
        }
    }

    #[inline(always)]
    pub(super) fn read<T: Real>(&mut self, rows: &Rows<'_, T>) {
        if rows.rank == self.tiles * TILE {
            for (to, from) in self.u.as_flattened_mut().iter_mut().zip(rows.factor) {
                *to = from.wide();
            }
            return;
        }
        let factor = rows.factor.chunks_exact(rows.rank);
        for (to, from) in self.u.chunks_exact_mut(self.tiles).zip(factor) {
            for (to, from) in to.as_flattened_mut().iter_mut().zip(from) {
                *to = from.wide();
            }
        }
    }

    /// Rounds the block to the rows of `out`, without the padding.
    #[inline(always)]
    pub(super) fn write<T: Real>(&self, rank: usize, out: &mut [T]) {
        if rank == self.tiles * TILE {
            for (to, from) in out.iter_mut().zip(self.u.as_flattened()) {
                *to = T::of(*from);
            }
            return;
        }
        let rows = out.chunks_exact_mut(rank);
        for (to, from) in rows.zip(self.u.chunks_exact(self.tiles)) {
            for (to, from) in to.iter_mut().zip(from.as_flattened()) {
                *to = T::of(*from);
            }
        }
    }

    /// `gram += U^T diag(weights) U` of the rows of this block, in the upper triangle. `tiles` is
    /// that of the block, given apart so that it can be a constant.
    #[inline(always)]
    fn add_gram(&self, tiles: usize, weights: &[f64], gram: &mut [f64]) {
        let side = tiles * TILE;
        for a in 0..tiles {
            for b in a..tiles {
                let upper = self.sums::<TILE>(tiles, weights, (a, 0), (b, 0));
                add_to(&mut gram[a * TILE * side + b * TILE..], side, &upper);
                let below = &mut gram[(a * TILE + SUM_ROWS) * side + b * TILE..];
                if a == b {
                    let at = (a, SUM_ROWS);
                    let lower = self.sums::<SUM_ROWS>(tiles, weights, at, at);
                    add_to(&mut below[SUM_ROWS..], side, &lower);
                } else {
                    let lower = self.sums::<TILE>(tiles, weights, (a, SUM_ROWS), (b, 0));
                    add_to(below, side, &lower);
                }
            }
        }
    }

    /// The products of `SUM_ROWS` columns of `U` with `COLUMNS` others, each given by its tile and
    /// its place there.
    #[inline(always)]
    fn sums<const COLUMNS: usize>(
        &self,
        tiles: usize,
        weights: &[f64],
        left: (usize, usize),
        right: (usize, usize),
    ) -> [[f64; COLUMNS]; SUM_ROWS] {
        let mut sums = [[0.0; COLUMNS]; SUM_ROWS];
        for (row, weight) in self.u.chunks_exact(tiles).zip(weights) {
            let mut weighted = [0.0; COLUMNS];
            for (y, weighted) in weighted.iter_mut().enumerate() {
                *weighted = row[right.0][right.1 + y] * weight;
            }
            for (x, sums) in sums.iter_mut().enumerate() {
                for y in 0..COLUMNS {
                    sums[y] += row[left.0][left.1 + x] * weighted[y];
                }
            }
        }
        sums
    }

    /// `out = U B` with a square `B`.
    #[inline(always)]
    pub(super) fn times(&self, tiles: usize, rows: usize, b: &[f64], out: &mut Self) {
        let b = b.as_chunks::<TILE>().0;
        let taken = rows.next_multiple_of(SUM_ROWS) * tiles;
        let inputs = self.u[..taken].chunks_exact(SUM_ROWS * tiles);
        let outputs = out.u[..taken].chunks_exact_mut(SUM_ROWS * tiles);
        for (input, output) in inputs.zip(outputs) {
            for j in 0..tiles {
                let mut sums = [[0.0; TILE]; SUM_ROWS];
                for k in 0..tiles {
                    for l in 0..TILE {
                        let right = &b[(k * TILE + l) * tiles + j];
                        for x in 0..SUM_ROWS {
                            let left = input[x * tiles + k][l];
                            for y in 0..TILE {
                                sums[x][y] += left * right[y];
                            }
                        }
                    }
                }
                for (x, sums) in sums.iter().enumerate() {
                    output[x * tiles + j] = *sums;
                }
            }
        }
    }
}

#[inline(always)]
fn add_to<const COLUMNS: usize>(
    matrix: &mut [f64],
    stride: usize,
    sums: &[[f64; COLUMNS]; SUM_ROWS],
) {
    for (row, sums) in matrix.chunks_mut(stride).zip(sums) {
        for (entry, sum) in row.iter_mut().zip(sums) {
            *entry += sum;
        }
    }
}

/// `U^T D^-1 U` of consecutive rows, `[padded rank, padded rank]`, in the upper triangle.
pub struct GramChunk<'a, T> {
    pub(super) rows: Rows<'a, T>,
}

impl<T: Real> Kernel<T> for GramChunk<'_, T> {
    type Output = Vec<f64>;
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) -> Vec<f64> {
        let padded = self.rows.padded();
        let mut gram = vec![0.0; padded * padded];
        let mut variances = Variances::new();
        let mut factor = FactorBlock::new(padded);
        let mut inverse = [0.0; BLOCK];
        for range in self.rows.blocks() {
            let rows = self.rows.slice(range);
            variances.read(&rows);
            for (inverse, total) in inverse.iter_mut().zip(&variances.total) {
                *inverse = 1.0 / total.wide();
            }
            factor.read(&rows);
            let weights = &inverse[..rows.len()];
            match factor.tiles {
                // The usual rank of 8, with all bounds known to the compiler.
                1 => factor.add_gram(1, weights, &mut gram),
                tiles => factor.add_gram(tiles, weights, &mut gram),
            }
        }
        gram
    }
}
