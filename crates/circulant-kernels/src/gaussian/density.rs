//! Sums over the rows that entropy and log density need: `sum ln D`, `sum (a - mean)^2/D` and
//! `W^T D^-1 (a - mean)`, and the variances on the diagonal.

use super::block::{BLOCK, Rows, TILE, Variances};
use super::low_rank::factor_tile;
use crate::real::Real;
use crate::vector::{Kernel, Present, Vector};

/// `sum ln D` over consecutive rows.
pub struct LogVarianceChunk<'a, T> {
    pub(super) rows: Rows<'a, T>,
}

impl<T: Real> Kernel<T> for LogVarianceChunk<'_, T> {
    type Output = f64;
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) -> f64 {
        let mut variances = Variances::new();
        let mut total = 0.0;
        for range in self.rows.blocks() {
            let rows = self.rows.slice(range);
            variances.read(&rows);
            total += variances.sum_of_logarithms(&rows);
        }
        total
    }
}

/// `sum (a - mean)^2/D` and `W^T D^-1 (a - mean)` over consecutive rows.
pub struct ResidualChunk<'a, T> {
    pub(super) rows: Rows<'a, T>,
    pub(super) a: &'a [T],
}

impl<T: Real> Kernel<T> for ResidualChunk<'_, T> {
    type Output = (f64, Vec<f64>);
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) -> (f64, Vec<f64>) {
        let mut variances = Variances::new();
        let mut form = 0.0;
        let mut projection = vec![0.0; self.rows.padded()];
        let mut weighted = [0.0; BLOCK];
        for range in self.rows.blocks() {
            let rows = self.rows.slice(range.clone());
            let residuals = self.a[range].iter().zip(rows.mean);
            variances.read(&rows);
            for (i, (&a, &mean)) in residuals.enumerate() {
                let residual = a.wide() - mean.wide();
                weighted[i] = residual / variances.total[i].wide();
                form += residual * weighted[i];
            }
            let (scales, (sums, _)) =
                (rows.scale.as_chunks::<TILE>().0, projection.as_chunks_mut());
            for (tile, (scale, sums)) in scales.iter().zip(sums).enumerate() {
                let sums: &mut [f64; TILE] = sums;
                for (i, &weighted) in weighted[..rows.len()].iter().enumerate() {
                    let u = factor_tile(&rows, i, tile);
                    for l in 0..TILE {
                        sums[l] += u[l] * scale[l] * weighted;
                    }
                }
            }
        }
        (form, projection)
    }
}

/// `D + rowsq(W)` of consecutive rows.
pub struct DiagonalChunk<'a, T> {
    pub(super) rows: Rows<'a, T>,
    pub(super) out: &'a mut [T],
}

impl<T: Real> Kernel<T> for DiagonalChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let mut variances = Variances::new();
        for range in self.rows.blocks() {
            let rows = self.rows.slice(range.clone());
            let out = &mut self.out[range];
            variances.read(&rows);
            out.copy_from_slice(&variances.total[..rows.len()]);
            for (tile, scale) in rows.scale.as_chunks::<TILE>().0.iter().enumerate() {
                for (i, out) in out.iter_mut().enumerate() {
                    let u = factor_tile(&rows, i, tile);
                    let mut spread = 0.0;
                    for l in 0..TILE {
                        spread += (u[l] * scale[l]) * (u[l] * scale[l]);
                    }
                    *out = *out + T::of(spread);
                }
            }
        }
    }
}
