//! A sample `a = mean + U (scale*xi) + sqrt(D) zeta`, with `xi` of length r and `zeta` of length d,
//! and its gradients: with `g` the gradient of `a`,
//!
//! | of | gradient |
//! | --- | --- |
//! | mean | `g` |
//! | factor | `g (scale*xi)^T` |
//! | scale | `xi * (U^T g)` |
//! | log_deviation | `g*zeta * exp(2 log_deviation)/sqrt(D)` |

use super::block::{BLOCK, Rows, TILE, Variances};
use super::low_rank::factor_tile;
use crate::real::Real;
use crate::vector::{Kernel, Present, Vector};

/// Consecutive rows of a sample.
pub struct SampleChunk<'a, T> {
    pub(super) rows: Rows<'a, T>,
    /// `scale*xi`, `[rank]`.
    pub(super) direction: &'a [T],
    pub(super) noise: &'a [T],
    pub(super) out: &'a mut [T],
}

impl<T: Real> Kernel<T> for SampleChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let mut variances = Variances::new();
        for range in self.rows.blocks() {
            let rows = self.rows.slice(range.clone());
            let (noise, out) = (&self.noise[range.clone()], &mut self.out[range]);
            variances.read(&rows);
            let inputs = rows.mean.iter().zip(noise).zip(&variances.total);
            for (out, ((&mean, &zeta), total)) in out.iter_mut().zip(inputs) {
                *out = mean + total.root() * zeta;
            }
            if rows.rank > 0 {
                let factor = rows.factor.chunks_exact(rows.rank);
                for (out, row) in out.iter_mut().zip(factor) {
                    *out = *out + dot(row, self.direction);
                }
            }
        }
    }
}

#[inline(always)]
fn dot<T: Real>(row: &[T], direction: &[T]) -> T {
    let ((tiles, rest), (others, other_rest)) =
        (row.as_chunks::<TILE>(), direction.as_chunks::<TILE>());
    let mut lanes = [T::zero(); TILE];
    for (a, b) in tiles.iter().zip(others) {
        for l in 0..TILE {
            lanes[l] = lanes[l] + a[l] * b[l];
        }
    }
    for (lane, (&a, &b)) in lanes.iter_mut().zip(rest.iter().zip(other_rest)) {
        *lane = *lane + a * b;
    }
    let mut quarters = [T::zero(); TILE / 2];
    for (l, quarter) in quarters.iter_mut().enumerate() {
        *quarter = lanes[l] + lanes[l + TILE / 2];
    }
    (quarters[0] + quarters[2]) + (quarters[1] + quarters[3])
}

/// The gradients of consecutive rows of a sample.
pub struct SampleBackwardChunk<'a, T> {
    pub(super) rows: Rows<'a, T>,
    /// `scale*xi`, `[rank]`.
    pub(super) direction: &'a [T],
    pub(super) noise: &'a [T],
    pub(super) grad: &'a [T],
    pub(super) grad_factor: &'a mut [T],
    pub(super) grad_log_deviation: &'a mut [T],
    /// Gradients times this are added to what is there; without it, they overwrite it.
    pub(super) add: Option<T>,
}

impl<T: Real> Kernel<T> for SampleBackwardChunk<'_, T> {
    /// `U^T g`, `[padded rank]`.
    type Output = Vec<f64>;
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) -> Vec<f64> {
        let rank = self.rows.rank;
        let mut projection = vec![0.0; self.rows.padded()];
        let mut variances = Variances::new();
        let mut free_share = [T::zero(); BLOCK];
        for range in self.rows.blocks() {
            let rows = self.rows.slice(range.clone());
            let (noise, grad) = (&self.noise[range.clone()], &self.grad[range.clone()]);
            variances.read(&rows);
            variances.free_share(&rows, &mut free_share);
            let grad_log = &mut self.grad_log_deviation[range.clone()];
            for (i, (out, (&zeta, &g))) in
                grad_log.iter_mut().zip(noise.iter().zip(grad)).enumerate()
            {
                let gradient = g * zeta * (free_share[i] * variances.total[i].root());
                *out = match self.add {
                    Some(share) => *out + share * gradient,
                    None => gradient,
                };
            }
            let grad_factor = &mut self.grad_factor[range.start * rank..range.end * rank];
            for (tile, sums) in projection.as_chunks_mut::<TILE>().0.iter_mut().enumerate() {
                let direction = direction_tile(self.direction, tile);
                let share = self.add.unwrap_or(T::one());
                let mut lanes = *sums;
                for (i, &g) in grad.iter().enumerate() {
                    let u = factor_tile(&rows, i, tile);
                    let mut grad_u = [T::zero(); TILE];
                    for l in 0..TILE {
                        lanes[l] += u[l] * g.wide();
                        grad_u[l] = share * (g * direction[l]);
                    }
                    let row = &mut grad_factor[i * rank + tile * TILE..(i + 1) * rank];
                    store_tile(&grad_u, row, self.add.is_some());
                }
                *sums = lanes;
            }
        }
        projection
    }
}

#[inline(always)]
fn direction_tile<T: Real>(direction: &[T], tile: usize) -> [T; TILE] {
    let mut out = [T::zero(); TILE];
    for (out, &value) in out.iter_mut().zip(&direction[tile * TILE..]) {
        *out = value;
    }
    out
}

/// Writes a tile into what is left of a row, without the padding, or adds it to what is there.
#[inline(always)]
fn store_tile<T: Real>(tile: &[T; TILE], row: &mut [T], add: bool) {
    let store = |out: &mut T, value: T| *out = if add { *out + value } else { value };
    if let Some(row) = row.first_chunk_mut::<TILE>() {
        for l in 0..TILE {
            store(&mut row[l], tile[l]);
        }
    } else {
        for (out, &value) in row.iter_mut().zip(tile) {
            store(out, value);
        }
    }
}
