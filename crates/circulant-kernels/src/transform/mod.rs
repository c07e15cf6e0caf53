//! Complex transforms of any length or grid on lanes: position `p` of a block is a pair of vectors
//! (Re, Im) whose lanes belong to different pairs of rows.
//!
//! The forward transform decimates in frequency, in place: a stage of radix `R` takes the elements
//! `j + k*span`, `k = 0..R`, through a butterfly and twiddles, and leaves `R` independent transforms
//! of length `span` behind. The result stays in that (digit-reversed) order; [`LanePlan::order`] tells
//! which frequency stands where, and the inverse transform runs the stages backwards, so nothing
//! is ever reordered. An image is the same with the stages of its height first: they span whole
//! rows of `inner = W` elements that share their twiddles.
//!
//! The first forward stage reads row-major rows, and the last inverse stage writes them, through a
//! small transposed tile, so rows and blocks are each touched once.
//!
//! With a length that is a power of two, the elements of a butterfly would all fall into the same
//! cache set. So a block then has a gap after every `1 << shift` positions: position `p` stands in
//! slot `p + (p >> shift)`.
//!
//! An axis with a prime factor above 13 goes lane by lane through rustfft, in natural order.
//!
//! `unsafe`: a [`BlockPass`] and a [`WeightGradient`] hold raw pointers. Whoever runs one makes a
//! [`Promised`] of it, and so promises that
//! - a block has as many slots as [`LanePlan::order`] is long, of `2*LANES` values each, and nobody else
//!   uses it meanwhile;
//! - rows have `len` values, or are null where a missing row would be written; rows that are written
//!   are nobody else's;
//! - what a read-out points to has the sizes that its fields say;
//! - `LANES` is that of the instruction set that runs the job.
//!
//! Then nothing is read or written outside: position `p < len` stands in slot `p + (p >> shift)`, and
//! the order ends with the slot of position `len - 1`. A stage cuts `len` into whole blocks of
//! `radix*span` positions, since the radices of all stages multiply to `len`, and touches the positions
//! `start + j + k*span` of a block with `j < span` and `k < radix`. It finds their slots as
//! `slot(start) + slot(j) + k*slot(span)`, which is the slot of the sum: either `span` is a multiple of
//! `1 << shift`, or the whole block lies between two gaps (`plan.rs` tests it). The tiles of the first
//! and the last stage have room for the largest radix, a cache line of columns and `MAX_LANES`.
//! The functions below are `unsafe` for these reasons, and because they need the instruction set of
//! their vector.

pub mod butterfly;
mod columns;
pub mod plan;
mod readout;
mod row_tiles;
mod spectra;
mod stages;

pub(crate) use columns::line_of;
pub use columns::{LaneBias, RowPointers};
pub use plan::LanePlan;
pub(crate) use plan::is_smooth;
pub use readout::{LaneReadout, LaneReadoutGradient, WeightGradient};
pub use spectra::{Adjoint, Product};

use std::ops::Range;

use crate::elements::gather::ByteQuotient;
use crate::real::Real;
use crate::transform::butterfly::Complexes;
use crate::vector::{Kernel, Present, Promised, Vector};
use columns::{finish_columns, load_columns};
use plan::{Step, slot};
use row_tiles::{first_stage, last_stage};
use stages::{Blocks, along_axis, decimate, interleave};

/// Rows -> spectrum of a block.
pub struct ForwardBlock<'a, T> {
    pub(crate) plan: &'a LanePlan<T>,
    pub(crate) source: Source<'a, T>,
    pub(crate) block: *mut T,
}

/// What is transformed.
pub enum Source<'a, T> {
    /// Row-major memory.
    Rows {
        rows: &'a RowPointers<T>,
        /// When there, the rows are gradients of `tanh` and these its values: `g*(1 - y^2)` is read.
        tanh: Option<&'a RowPointers<T>>,
    },
    /// Rows of bytes, each of which stands for a quotient.
    Bytes {
        rows: &'a RowPointers<u8>,
        quotient: ByteQuotient,
    },
    /// The gradient that a read-out leaves at its input.
    Readout(&'a LaneReadoutGradient<T>),
}

/// Where the result of an inverse transform goes.
pub enum Sink<'a, T> {
    /// Row-major memory.
    Rows(&'a RowPointers<T>),
    /// Into a read-out.
    Readout(&'a LaneReadout<T>),
}

/// Spectrum of a block -> rows, destroying the block.
pub struct InverseBlock<'a, T> {
    pub(crate) plan: &'a LanePlan<T>,
    /// When there, the block is set to this product first.
    pub(crate) product: Option<Product<T>>,
    pub(crate) block: *mut T,
    pub(crate) sink: Sink<'a, T>,
    pub(crate) bias: LaneBias<'a, T>,
    pub(crate) tanh: bool,
}

macro_rules! for_radix {
    ($radix:expr, $function:ident::<V, _>($($argument:expr),*)) => {
        match $radix {
            2 => $function::<V, 2>($($argument),*),
            3 => $function::<V, 3>($($argument),*),
            4 => $function::<V, 4>($($argument),*),
            5 => $function::<V, 5>($($argument),*),
            7 => $function::<V, 7>($($argument),*),
            8 => $function::<V, 8>($($argument),*),
            11 => $function::<V, 11>($($argument),*),
            13 => $function::<V, 13>($($argument),*),
            16 => $function::<V, 16>($($argument),*),
            other => unreachable!("radix {other} has no butterfly"),
        }
    };
}

/// One block from rows to rows: each of the three steps may be left out. What the first stage leaves
/// independent goes through all of them before its neighbour, and so stays in the L1 or L2 cache.
pub struct BlockPass<'a, T> {
    pub(crate) forward: Option<ForwardBlock<'a, T>>,
    pub(crate) adjoint: Option<Adjoint<T>>,
    pub(crate) inverse: Option<InverseBlock<'a, T>>,
}

impl<'a, T> From<ForwardBlock<'a, T>> for BlockPass<'a, T> {
    fn from(forward: ForwardBlock<'a, T>) -> Self {
        Self {
            forward: Some(forward),
            adjoint: None,
            inverse: None,
        }
    }
}

impl<'a, T> From<InverseBlock<'a, T>> for BlockPass<'a, T> {
    fn from(inverse: InverseBlock<'a, T>) -> Self {
        Self {
            forward: None,
            adjoint: None,
            inverse: Some(inverse),
        }
    }
}

impl<T: Real> Kernel<T> for Promised<BlockPass<'_, T>> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let job = self.job();
        let plans = (job.forward.as_ref().map(|forward| forward.plan))
            .or(job.inverse.as_ref().map(|inverse| inverse.plan));
        let Some(plan) = plans else { return };
        // SAFETY: see the head of the file.
        unsafe {
            if let Some(forward) = &job.forward {
                forward.first::<V>();
            }
            for part in plan.parts() {
                let slots = slot(part.start, plan.shift)..slot(part.end - 1, plan.shift) + 1;
                if let Some(forward) = &job.forward {
                    forward.rest::<V>(&part);
                }
                if let Some(adjoint) = &job.adjoint {
                    adjoint.run::<V>(slots.clone());
                }
                if let Some(inverse) = &job.inverse {
                    if let Some(product) = &inverse.product {
                        product.run::<V>(slots, inverse.block);
                    }
                    inverse.rest::<V>(&part);
                }
            }
            if let Some(inverse) = &job.inverse {
                inverse.last::<V>();
            }
        }
    }
}

impl<T: Real> ForwardBlock<'_, T> {
    /// Rows to the block, through the first stage.
    #[inline(always)]
    unsafe fn first<V: Vector<Scalar = T>>(&self) {
        // SAFETY: see the head of the file.
        unsafe {
            match self.plan.first_and_rest().0 {
                Some((radix, twiddles, stage)) => {
                    for_radix!(radix, first_stage::<V, _>(self, stage, twiddles));
                }
                None => {
                    let len = self.plan.len;
                    for column in (0..len).step_by(line_of::<T>()) {
                        let count = line_of::<T>().min(len - column);
                        let to = self.block.add(column * 2 * V::LANES);
                        load_columns::<V>(self, column, count, to);
                    }
                }
            }
        }
    }

    /// The other stages of one part.
    #[inline(always)]
    unsafe fn rest<V: Vector<Scalar = T>>(&self, part: &Range<usize>) {
        for stage in self.plan.first_and_rest().1 {
            let blocks = Blocks::new(self.block, part.clone(), stage, self.plan.shift);
            // SAFETY: see the head of the file.
            unsafe {
                match &stage.step {
                    Step::Butterfly { radix, twiddles } => {
                        for_radix!(*radix, decimate::<V, _>(&blocks, twiddles));
                    }
                    Step::Axis { forward, .. } => along_axis::<V>(&blocks, forward.as_ref()),
                }
            }
        }
    }
}

impl<T: Real> InverseBlock<'_, T> {
    /// All stages of one part but the last.
    #[inline(always)]
    unsafe fn rest<V: Vector<Scalar = T>>(&self, part: &Range<usize>) {
        for stage in self.plan.first_and_rest().1.iter().rev() {
            let blocks = Blocks::new(self.block, part.clone(), stage, self.plan.shift);
            // SAFETY: see the head of the file.
            unsafe {
                match &stage.step {
                    Step::Butterfly { radix, twiddles } => {
                        for_radix!(*radix, interleave::<V, _>(&blocks, twiddles));
                    }
                    Step::Axis { inverse, .. } => along_axis::<V>(&blocks, inverse.as_ref()),
                }
            }
        }
    }

    /// The block through the last stage to where it goes.
    #[inline(always)]
    unsafe fn last<V: Vector<Scalar = T>>(&self) {
        // SAFETY: see the head of the file.
        unsafe {
            match self.plan.first_and_rest().0 {
                Some((radix, twiddles, stage)) => {
                    for_radix!(radix, last_stage::<V, _>(self, stage, twiddles));
                }
                None => {
                    let bias = self.bias.of_lanes(Present::<V>::promised());
                    let len = self.plan.len;
                    for column in (0..len).step_by(line_of::<T>()) {
                        let count = line_of::<T>().min(len - column);
                        let from = self.block.add(column * 2 * V::LANES);
                        for j in 0..count {
                            let at = from.add(j * 2 * V::LANES);
                            let x = Complexes::load(at);
                            x.add(Complexes { re: bias, im: bias }).store(at);
                        }
                        finish_columns::<V>(self, column, count, from);
                    }
                }
            }
        }
    }
}
