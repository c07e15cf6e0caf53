//! The fused operator for one channel, signals and images alike: a block of rows goes transform ->
//! multiply -> inverse while it sits in cache, for one filter or several that share the transform.
//!
//! With `Z` the transform of a packed pair of rows, `W` of its output gradient and `h` the filter:
//! output `IFFT(h Z)`, input gradient `IFFT(conj(h) W)`, and the gradient of the bins comes from
//! `A_f = sum over pairs of conj(Z_f) W_f` at all frequencies `f` of the full plane.
//!
//! A linear read-out behind the operator runs in the same pass, on rows that are still in lanes; with the cross-entropy
//! behind it, all gradients too.
//!
//! `unsafe`: see `blocks.rs` and `lane_fft/`, whose pointers meet here.

mod backward;
mod forward;
mod loss;

use circulant_core::Bin;
use rayon::prelude::*;

pub(crate) use self::loss::{FilterReadout, Wanted};

use crate::operator::batch::Batch;
use crate::real::Real;
use crate::runtime::scratch::Scratch;
use crate::runtime::shared::Shared;
use crate::transform::LanePlan;
use crate::vector::Isa;

/// Filters are read by several threads from twice as many bins on.
const BINS_PER_TASK: usize = 4096;

/// One channel: the transform and the bins in its order.
pub(crate) struct Single<'a, T> {
    pub(crate) isa: Isa,
    pub(crate) plan: &'a LanePlan<T>,
    pub(crate) bins: &'a [Bin],
    pub(crate) coordinates: usize,
}

/// A linear read-out per filter: `z = y W + c`.
#[derive(Clone, Copy)]
pub(crate) struct ReadoutWeights<'a, T> {
    /// `[filters, len, classes]`.
    pub(crate) weight: &'a [T],
    /// `[filters, classes]`.
    pub(crate) bias: &'a [T],
    pub(crate) classes: usize,
}

/// What the backward pass starts from.
#[derive(Clone, Copy)]
pub(crate) enum Outputs<'a, T> {
    /// The gradient of every filter's output.
    Rows(&'a [OutputGradient<'a, T>]),
    /// The gradient of a read-out of it.
    Readout {
        weights: ReadoutWeights<'a, T>,
        /// `[filters, batch, classes]`.
        grad: &'a [T],
        /// What the forward pass kept; see [`Single::hidden_len`].
        hidden: &'a [T],
        tanh: bool,
        want_weight: bool,
    },
}

/// What a filter's backward pass reads: output gradient, and output when it went through `tanh`.
#[derive(Clone, Copy)]
pub(crate) struct OutputGradient<'a, T> {
    pub(crate) grad: &'a [T],
    pub(crate) tanh: Option<&'a [T]>,
}

/// Sums over the batch that the backward pass collects.
pub(crate) struct Sums<T> {
    pub(crate) coordinates: Vec<T>,
    pub(crate) bias: Vec<T>,
    /// Of a read-out, `[filters, len, classes]`.
    pub(crate) weight: Vec<T>,
}

impl<T: Real> Single<'_, T> {
    /// Whether the batch is one of this channel's blocks.
    fn fits(&self, batch: &Batch) -> bool {
        batch.channels == 1 && batch.slots == self.bins.len() && batch.fits(self.isa, self.plan)
    }

    /// `h/n` at every position of a transformed block, for all filters. The two unitary
    /// transforms of the layer have the factor `1/n` together, which is applied here once.
    fn multipliers(&self, coordinates: &[T]) -> Scratch<T> {
        let scale = T::one() / T::of(self.plan.len() as f64);
        let filters = coordinates.len() / self.coordinates.max(1);
        let mut out = Scratch::take(filters * 2 * self.bins.len());
        for (filter, out) in coordinates
            .chunks_exact(self.coordinates)
            .zip(out.chunks_exact_mut(2 * self.bins.len()))
        {
            // The order of the transform is far from that of the coordinates: long filters wait for memory.
            out.par_chunks_exact_mut(2)
                .zip(self.bins)
                .with_min_len(BINS_PER_TASK)
                .for_each(|(h, bin)| {
                    let value = bin.value(|coordinate| filter[coordinate]);
                    (h[0], h[1]) = (value.re * scale, value.im * scale);
                });
        }
        out
    }

    /// Values of the outputs of one filter in lane form, `[block, len]` entries.
    pub(crate) fn hidden_len(batch: &Batch) -> usize {
        batch.blocks() * batch.len * 2 * batch.lanes
    }
}

/// Where the forward pass takes the spectrum of its input from.
#[derive(Clone, Copy)]
pub(crate) enum Input<'a, T> {
    /// Transform these rows and forget.
    Rows(&'a [T]),
    /// Transform these rows and keep their spectrum there.
    Keep(&'a [T], Shared<T>),
    /// A spectrum that was kept before.
    Kept(&'a [T]),
}
