//! The largest singular value over many bins, without a decomposition of each.
//!
//! A bin is either excluded, by a proof in f32 that its norm is at most the best lower bound so
//! far, or it gets a lower bound of its own. Bins come in rounds that double in size: of as many
//! bins as were seen before, one on average beats all of those, so few bins are ever refined. What
//! is left at the end is proven in f64. Rounds, not threads, decide what is compared with what, so
//! the result does not depend on the number of threads.

use rayon::prelude::*;

use crate::error::KernelError;
use crate::real::Real;
use crate::vector::Isa;

use super::leading::{exact_lower_bound, lower_bound};
use super::matrix::Matrix;
use super::proof::{Slack, proves};

/// The matrices of an operator, scaled so that the largest part of any entry is in `[1, 2)`.
pub(super) trait Bins: Sync {
    /// Rows and columns of every matrix, `rows >= columns`.
    fn shape(&self) -> (usize, usize);
    /// The bins, those with large norms first if that is known.
    fn order(&self) -> Vec<usize>;
    /// Whether a bin is complex.
    fn complex(&self, index: usize) -> bool;
    /// Writes the entries of a bin into a matrix of zeros or of an earlier bin.
    fn load<T: Real>(&self, index: usize, into: &mut Matrix<T>);
}

/// Bins of the first round, all of which are refined.
const FIRST_ROUND: usize = 4;
/// Residual at which a vector is good enough to compare bins with: the gain errs by its square.
const COARSE: f64 = 1e-3;
/// Residual at which the gain is as good as f64 allows.
const FINE: f64 = 1e-9;

/// No norm is smaller: the largest part of an entry is at least 1, or was before rounding. To start
/// here keeps a bad lower bound from stalling a proof.
const SMALLEST: f64 = 0.9;

/// A bin that was refined.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refined {
    pub(super) index: usize,
    /// A certified lower bound on its norm.
    pub(super) lower: f64,
}

/// Bounds on the norm, in the scaled values.
pub(super) struct Largest {
    pub(super) lower: f64,
    pub(super) upper: f64,
}

/// A search with its buffers' sizes and error bounds.
pub(super) struct Search<'a, B> {
    bins: &'a B,
    isa: Isa,
    single: Option<Slack>,
    double: Slack,
}

/// One buffer for complex and one for real bins, made when first needed.
struct Buffers<T>([Option<Matrix<T>>; 2]);

impl<T> Default for Buffers<T> {
    fn default() -> Self {
        Self([None, None])
    }
}

impl<'a, B: Bins> Search<'a, B> {
    pub(super) fn new(bins: &'a B) -> Result<Self, KernelError> {
        let (rows, columns) = bins.shape();
        Ok(Self {
            bins,
            isa: Isa::best(),
            single: Slack::single(rows, columns),
            double: Slack::double(rows, columns).ok_or(KernelError::Length {
                what: "rows and columns of a matrix whose norm can be certified",
                expected: 1 << 20,
                got: rows.max(columns),
            })?,
        })
    }

    pub(super) fn load<T: Real>(&self, index: usize) -> Matrix<T> {
        let (rows, columns) = self.bins.shape();
        let mut matrix = Matrix::zeros(rows, columns, self.bins.complex(index));
        self.bins.load(index, &mut matrix);
        matrix
    }

    fn load_into<'b, T: Real>(
        &self,
        index: usize,
        buffers: &'b mut Buffers<T>,
    ) -> &'b mut Matrix<T> {
        let (rows, columns) = self.bins.shape();
        let complex = self.bins.complex(index);
        let matrix = buffers.0[usize::from(complex)]
            .get_or_insert_with(|| Matrix::zeros(rows, columns, complex));
        self.bins.load(index, matrix);
        matrix
    }

    /// The bins of `indices` that a proof in f32 does not show to be at most `limit`.
    pub(super) fn not_below(&self, indices: &[usize], limit: f64) -> Vec<usize> {
        let Some(single) = self.single else {
            return indices.to_vec();
        };
        self.unproven::<f32>(indices, single.shift_below(limit))
    }

    /// The bins of `indices` for which the proof in this number type fails.
    fn unproven<T: Real>(&self, indices: &[usize], shift: f64) -> Vec<usize> {
        indices
            .par_iter()
            .map_init(Buffers::<T>::default, |buffers, &index| {
                let matrix = self.load_into(index, buffers);
                (!proves(self.isa, matrix, shift)).then_some(index)
            })
            .flatten_iter()
            .collect()
    }

    fn refine(&self, indices: &[usize], tolerance: f64) -> Vec<Refined> {
        indices
            .par_iter()
            .map_init(Buffers::<f64>::default, |buffers, &index| {
                let lower = lower_bound(self.load_into(index, buffers), tolerance);
                Refined { index, lower }
            })
            .collect()
    }

    /// Every bin that is not excluded, the one with the largest lower bound first. The norm of each
    /// bin that is not returned is at most that lower bound.
    pub(super) fn candidates(&self) -> Vec<Refined> {
        let order = self.bins.order();
        if let [only] = order[..] {
            return self.refine(&[only], FINE);
        }
        let mut refined: Vec<Refined> = Vec::new();
        let (mut seen, mut best) = (0, 0.0f64);
        while seen < order.len() {
            let round = &order[seen..order.len().min((2 * seen).max(FIRST_ROUND))];
            seen += round.len();
            let left = self.not_below(round, best);
            let more = self.refine(&left, COARSE);
            best = more.iter().fold(best, |best, bin| best.max(bin.lower));
            refined.extend(more);
        }
        // The last tolerance is for those that can still be the largest.
        let close: Vec<usize> = (refined.iter())
            .filter(|bin| bin.lower >= (1.0 - COARSE) * best)
            .map(|bin| bin.index)
            .collect();
        for fine in self.refine(&close, FINE) {
            let bin = refined.iter_mut().find(|bin| bin.index == fine.index);
            if let Some(bin) = bin {
                bin.lower = bin.lower.max(fine.lower);
            }
        }
        // A stable sort: equal bins stay in their order.
        refined.sort_by(|a, b| b.lower.total_cmp(&a.lower));
        refined
    }

    /// The norm over all bins, enclosed.
    pub(super) fn largest(&self) -> Largest {
        let candidates = self.candidates();
        let mut lower = candidates[0].lower;
        let others: Vec<usize> = candidates[1..].iter().map(|bin| bin.index).collect();
        let mut open = self.not_below(&others, lower);
        open.push(candidates[0].index);
        let upper = self.raise_until_proven(&open, &mut lower);
        Largest { lower, upper }
    }

    /// An upper bound for the bins of `open`, proven in f64 a little above `lower`. Where that
    /// fails, a decomposition may raise `lower`, and the margin grows.
    fn raise_until_proven(&self, open: &[usize], lower: &mut f64) -> f64 {
        let mut raise = 1.0;
        loop {
            let shift = self.double.shift_above(lower.max(SMALLEST), raise);
            let failed = self.unproven::<f64>(open, shift);
            if failed.is_empty() {
                return self.double.proven(shift);
            }
            let exact: Vec<f64> = failed
                .par_iter()
                .map(|&index| exact_lower_bound(&self.load(index)))
                .collect();
            *lower = exact.into_iter().fold(*lower, f64::max);
            raise *= 4.0;
        }
    }

    /// The smallest upper bound on the norm of a bin, at or a little above `proposal`, that a proof
    /// confirms.
    pub(super) fn confirm(&self, index: usize, proposal: f64) -> f64 {
        let mut matrix = self.load::<f64>(index);
        let mut raise = 1.0;
        loop {
            let shift = self.double.shift_above(proposal.max(SMALLEST), raise);
            if proves(self.isa, &mut matrix, shift) {
                return self.double.proven(shift);
            }
            raise *= 4.0;
        }
    }

    /// The bins of `indices` whose norm is not shown to be at most `limit`, in f32 or in f64.
    pub(super) fn not_bounded(&self, indices: &[usize], limit: f64) -> Vec<usize> {
        let left = self.not_below(indices, limit);
        self.unproven::<f64>(&left, self.double.shift_below(limit))
    }
}
