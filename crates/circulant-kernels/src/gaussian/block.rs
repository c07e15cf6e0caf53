//! Rows of the Gaussian in blocks that stay in the L1 or L2 cache: the variances
//! `D = exp(2 log_deviation) + jitter`, the prior's `1/tau^2` and `ln tau^2`, and sums in f64.
//!
//! Everything here is inlined into the kernels, where its loops become vector code.

use std::ops::Range;

use crate::real::Real;
use crate::vector::elementary::LOGARITHMS;

/// Rows of a block.
pub(super) const BLOCK: usize = LOGARITHMS;
/// Columns of `W` that are worked on together; rows of `W` are padded to a multiple of it.
pub(super) const TILE: usize = 8;

/// Consecutive rows of the Gaussian.
#[derive(Clone, Copy)]
pub struct Rows<'a, T> {
    pub(super) mean: &'a [T],
    /// `[rows, rank]`.
    pub(super) factor: &'a [T],
    pub(super) log_deviation: &'a [T],
    pub(super) jitter: T,
    /// `[padded rank]`, zero in the padding.
    pub(super) scale: &'a [f64],
    pub(super) rank: usize,
}

impl<'a, T: Real> Rows<'a, T> {
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.mean.len()
    }

    #[inline(always)]
    pub(super) fn slice(&self, rows: Range<usize>) -> Self {
        Self {
            mean: &self.mean[rows.clone()],
            factor: &self.factor[rows.start * self.rank..rows.end * self.rank],
            log_deviation: &self.log_deviation[rows],
            ..*self
        }
    }

    /// The ranges of the blocks.
    #[inline(always)]
    pub(super) fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<T> {
        let len = self.len();
        (0..len)
            .step_by(BLOCK)
            .map(move |start| start..len.min(start + BLOCK))
    }

    /// Values of a padded row of `W`.
    #[inline(always)]
    pub(super) fn padded(&self) -> usize {
        self.scale.len()
    }
}

/// `D` and its parts in one block.
pub(super) struct Variances<T> {
    /// `exp(2 log_deviation)`.
    pub(super) free: [T; BLOCK],
    /// `D = free + jitter`.
    pub(super) total: [T; BLOCK],
}

impl<T: Real> Variances<T> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self {
            free: [T::zero(); BLOCK],
            total: [T::one(); BLOCK],
        }
    }

    #[inline(always)]
    pub(super) fn read(&mut self, rows: &Rows<'_, T>) {
        let slots = self.free.iter_mut().zip(&mut self.total);
        for ((free, total), &l) in slots.zip(rows.log_deviation) {
            *free = (l + l).exponential();
            *total = *free + rows.jitter;
        }
    }

    /// `sum ln D`, without a logarithm where there is no jitter.
    #[inline(always)]
    pub(super) fn sum_of_logarithms(&self, rows: &Rows<'_, T>) -> f64 {
        if rows.jitter == T::zero() {
            2.0 * sum(rows.log_deviation)
        } else {
            T::sum_of_logarithms(&self.total[..rows.len()])
        }
    }

    /// `exp(2 log_deviation)/D`, one where there is no jitter, even if `D` is zero by underflow.
    #[inline(always)]
    pub(super) fn free_share(&self, rows: &Rows<'_, T>, out: &mut [T; BLOCK]) {
        if rows.jitter == T::zero() {
            out.fill(T::one());
            return;
        }
        let slots = out[..rows.len()].iter_mut().zip(&self.free);
        for ((out, &free), &total) in slots.zip(&self.total) {
            *out = free / total;
        }
    }
}

/// The prior variances `tau^2` of consecutive rows.
#[derive(Clone, Copy)]
pub enum Prior<'a, T> {
    /// The same for all rows.
    Same(T),
    /// One per row.
    Each(&'a [T]),
}

impl<'a, T: Real> Prior<'a, T> {
    #[inline(always)]
    pub(super) fn slice(&self, rows: Range<usize>) -> Self {
        match self {
            Self::Same(variance) => Self::Same(*variance),
            Self::Each(variances) => Self::Each(&variances[rows]),
        }
    }
}

/// What the KL needs of the prior in one block.
pub(super) struct PriorBlock<T> {
    /// `1/tau^2`.
    pub(super) inverse: [T; BLOCK],
    /// `ln tau^2`, if it is the same for all rows.
    logarithm: f64,
}

impl<T: Real> PriorBlock<T> {
    #[inline(always)]
    pub(super) fn new(prior: Prior<'_, T>) -> Self {
        let variance = match prior {
            Prior::Same(variance) => variance,
            Prior::Each(_) => T::one(),
        };
        Self {
            inverse: [T::one() / variance; BLOCK],
            logarithm: variance.wide().ln(),
        }
    }

    /// Returns `sum ln tau^2` over the rows.
    #[inline(always)]
    pub(super) fn read(&mut self, rows: usize, prior: Prior<'_, T>) -> f64 {
        match prior {
            Prior::Same(_) => rows as f64 * self.logarithm,
            Prior::Each(variances) => {
                for (inverse, &variance) in self.inverse.iter_mut().zip(variances) {
                    *inverse = T::one() / variance;
                }
                T::sum_of_logarithms(variances)
            }
        }
    }
}

/// The sum in f64, in an order that depends on the length alone.
#[inline(always)]
pub(super) fn sum<T: Real>(terms: &[T]) -> f64 {
    let (groups, rest) = terms.as_chunks::<TILE>();
    let mut lanes = [0.0; TILE];
    for group in groups {
        for (lane, term) in lanes.iter_mut().zip(group) {
            *lane += term.wide();
        }
    }
    for (lane, term) in lanes.iter_mut().zip(rest) {
        *lane += term.wide();
    }
    sum_lanes(lanes)
}

/// Halves first, as registers are added.
#[inline(always)]
pub(super) fn sum_lanes(lanes: [f64; TILE]) -> f64 {
    let mut halves = [0.0; TILE / 2];
    for (l, half) in halves.iter_mut().enumerate() {
        *half = lanes[l] + lanes[l + TILE / 2];
    }
    (halves[0] + halves[2]) + (halves[1] + halves[3])
}
