//! What the methods of the Gaussian share: its rows in chunks, the small matrix
//! `M = I + diag(scale) U^T D^-1 U diag(scale)`, and the checks of sizes.

use std::ops::Range;

use super::block::{Prior, Rows};
use super::cholesky::Cholesky;
use super::low_rank::padded;
use super::{GramChunk, LogVarianceChunk, LowRank};
use crate::error::{KernelError, expect_len};
use crate::real::Real;
use crate::runtime::chunks::{best_isa, rows_per_chunk, run_all};

impl<T: Real> LowRank<'_, T> {
    /// Values that a pass over the rows touches.
    pub(super) fn numbers(&self) -> usize {
        self.dimension() * (self.rank() + 1)
    }

    /// The rows in chunks, with their range; `scale` is the padded one.
    pub(super) fn chunks<'b>(
        &'b self,
        scale: &'b [f64],
    ) -> impl Iterator<Item = (Rows<'b, T>, Range<usize>)> {
        let rows = Rows {
            mean: self.mean,
            factor: self.factor,
            log_deviation: self.log_deviation,
            jitter: T::of(self.jitter),
            scale,
            rank: self.rank(),
        };
        let (dimension, step) = (self.dimension(), rows_per_chunk(self.rank() + 1));
        (0..dimension).step_by(step).map(move |start| {
            let range = start..dimension.min(start + step);
            (rows.slice(range.clone()), range)
        })
    }

    /// The scale in f64, zero in the padding.
    pub(super) fn padded_scale(&self) -> Vec<f64> {
        let mut scale = vec![0.0; padded(self.rank())];
        for (wide, value) in scale.iter_mut().zip(self.scale) {
            *wide = value.wide();
        }
        scale
    }

    /// `scale*xi`.
    pub(super) fn direction(&self, low_rank_noise: &[T]) -> Vec<T> {
        let pairs = self.scale.iter().zip(low_rank_noise);
        pairs.map(|(&scale, &xi)| scale * xi).collect()
    }

    /// `M` with its padding, which is that of the identity and changes nothing.
    pub(super) fn cholesky(&self, scale: &[f64]) -> Cholesky {
        let n = scale.len();
        if n == 0 {
            return Cholesky::new(Vec::new(), 0);
        }
        let jobs = self.chunks(scale).map(|(rows, _)| GramChunk { rows });
        let grams = run_all(self.numbers(), jobs, |job| T::gram_chunk(best_isa(), job));
        let gram = add_up(grams);
        let mut matrix = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                matrix[i * n + j] = scale[i] * scale[j] * gram[j * n + i];
            }
            matrix[i * n + i] += 1.0;
        }
        Cholesky::new(matrix, n)
    }

    /// `ln det covariance = sum ln D + ln det M`.
    pub(super) fn log_determinant(&self, scale: &[f64], cholesky: &Cholesky) -> f64 {
        let jobs = self
            .chunks(scale)
            .map(|(rows, _)| LogVarianceChunk { rows });
        let sums = run_all(self.numbers(), jobs, |job| {
            T::log_variance_chunk(best_isa(), job)
        });
        sums.iter().sum::<f64>() + cholesky.log_determinant()
    }

    pub(super) fn prior<'b>(&self, prior_variance: &'b [T]) -> Result<Prior<'b, T>, KernelError> {
        if let [variance] = prior_variance {
            return Ok(Prior::Same(*variance));
        }
        expect_len("prior_variance", prior_variance.len(), self.dimension())?;
        Ok(Prior::Each(prior_variance))
    }

    pub(super) fn expect_gradients(
        &self,
        factor: &[T],
        scale: &[T],
        log_deviation: &[T],
    ) -> Result<(), KernelError> {
        expect_len("gradient of factor", factor.len(), self.factor.len())?;
        expect_len("gradient of scale", scale.len(), self.rank())?;
        let got = log_deviation.len();
        expect_len("gradient of log_deviation", got, self.dimension())
    }
}

/// Cuts the first `len` numbers off a slice.
pub(super) fn take_front<'a, T>(slice: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    slice
        .split_off_mut(..len)
        .expect("lengths are checked before the rows are cut")
}

/// Adds vectors of the same length, in their order.
pub(super) fn add_up(parts: Vec<Vec<f64>>) -> Vec<f64> {
    let mut parts = parts.into_iter();
    let mut total = parts.next().unwrap_or_default();
    for part in parts {
        for (total, value) in total.iter_mut().zip(part) {
            *total += value;
        }
    }
    total
}
