//! The plan of a transform: its stages, their twiddles, the order that they leave behind, and the
//! gaps of a block.

use std::f64::consts::TAU;
use std::ops::Range;
use std::sync::Arc;

use num_complex::Complex;
use rustfft::{Fft, FftPlanner};

use crate::real::Real;
use crate::transform::butterfly::RADICES;

/// Gaps are at least this many positions apart.
const GAP_UNIT: usize = 64;
/// A shift that leaves no gap.
const NO_GAPS: u32 = usize::BITS - 1;

/// A transform of `len` complex numbers per lane.
pub struct LanePlan<T> {
    pub(super) len: usize,
    pub(super) shift: u32,
    stages: Vec<Stage<T>>,
    order: Vec<Option<usize>>,
    /// What a missing row reads.
    zeros: Vec<T>,
}

pub struct Stage<T> {
    pub step: Step<T>,
    /// Elements of one block, `radix*span`.
    pub block: usize,
    /// Distance between the elements of a butterfly.
    pub span: usize,
    /// Neighbours that share their twiddles: 1, or the width for the stages of the height.
    pub inner: usize,
}

pub enum Step<T> {
    /// A butterfly; `twiddles[j*(radix - 1) + k - 1] = exp(-2 pi i jk/(radix*span/inner))`.
    Butterfly {
        radix: usize,
        twiddles: Vec<Complex<T>>,
    },
    /// A whole axis of awkward length.
    Axis {
        forward: Arc<dyn Fft<T>>,
        inverse: Arc<dyn Fft<T>>,
    },
}

impl<T: Real> LanePlan<T> {
    /// The plan for signals (`height = 1`) or images.
    pub fn new(height: usize, width: usize) -> Self {
        let mut stages = Vec::new();
        let rows = push_axis(&mut stages, height, width);
        let columns = push_axis(&mut stages, width, 1);
        let len = height * width;
        let shift = gap_shift(len, &stages);
        let mut order = vec![None; slot(len - 1, shift) + 1];
        for (position, (u, v)) in rows
            .iter()
            .flat_map(|u| columns.iter().map(move |v| (u, v)))
            .enumerate()
        {
            order[slot(position, shift)] = Some(u * width + v);
        }
        Self {
            len,
            shift,
            stages,
            order,
            zeros: vec![T::zero(); len],
        }
    }

    /// Positions between two gaps of a block, as a power of two.
    #[cfg(feature = "internals")]
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// The stages of the transform.
    #[cfg(feature = "internals")]
    pub fn stages(&self) -> &[Stage<T>] {
        &self.stages
    }

    /// A row of zeros.
    pub(crate) fn zeros(&self) -> *mut T {
        self.zeros.as_ptr().cast_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The first stage when it can be joined with the rows: its radix and twiddles; and the others.
    #[inline(always)]
    #[allow(clippy::type_complexity, reason = "used twice, just below")]
    pub(super) fn first_and_rest(
        &self,
    ) -> (Option<(usize, &[Complex<T>], &Stage<T>)>, &[Stage<T>]) {
        match self.stages.split_first() {
            Some((stage, rest)) => match &stage.step {
                Step::Butterfly { radix, twiddles } => (Some((*radix, twiddles, stage)), rest),
                Step::Axis { .. } => (None, &self.stages),
            },
            None => (None, &[]),
        }
    }

    /// The positions that are independent of each other after the first stage.
    #[inline(always)]
    pub(super) fn parts(&self) -> impl Iterator<Item = Range<usize>> {
        let part = match self.first_and_rest().0 {
            Some((_, _, stage)) => stage.span,
            None => self.len,
        };
        (0..self.len).step_by(part).map(move |at| at..at + part)
    }

    /// The frequency, as index into the grid, in each slot of a transformed block; `None` in gaps.
    pub fn order(&self) -> &[Option<usize>] {
        &self.order
    }
}

#[inline(always)]
pub fn slot(position: usize, shift: u32) -> usize {
    position + (position >> shift)
}

/// Gaps after the spans of one stage: coarser stages see them at regular distances, finer ones
/// work between them.
fn gap_shift<T>(len: usize, stages: &[Stage<T>]) -> u32 {
    if !len.is_power_of_two() || len < 2 * GAP_UNIT {
        return NO_GAPS;
    }
    let spans = stages.iter().map(|stage| stage.span);
    spans
        .filter(|&span| span >= GAP_UNIT)
        .min()
        .map_or(NO_GAPS, usize::ilog2)
}

/// Whether the lanes cover this length with butterflies alone.
pub(crate) fn is_smooth(mut length: usize) -> bool {
    for prime in [2, 3, 5, 7, 11, 13] {
        while length.is_multiple_of(prime) {
            length /= prime;
        }
    }
    length == 1
}

/// Appends the stages of one axis, whose elements are `inner` apart, and returns its order.
fn push_axis<T: Real>(stages: &mut Vec<Stage<T>>, length: usize, inner: usize) -> Vec<usize> {
    if !is_smooth(length) {
        let mut planner = FftPlanner::new();
        stages.push(Stage {
            step: Step::Axis {
                forward: planner.plan_fft_forward(length),
                inverse: planner.plan_fft_inverse(length),
            },
            block: length * inner,
            span: inner,
            inner,
        });
        return (0..length).collect();
    }
    let radices = radices_of(length);
    let mut rest = length;
    for &radix in &radices {
        let m = rest / radix;
        let twiddles = (0..m)
            .flat_map(|j| (1..radix).map(move |k| root(j * k, rest)))
            .collect();
        stages.push(Stage {
            step: Step::Butterfly { radix, twiddles },
            block: rest * inner,
            span: m * inner,
            inner,
        });
        rest = m;
    }
    // The digit of the first stage is the lowest digit of the frequency.
    let mut order = vec![0];
    for &radix in radices.iter().rev() {
        order = (0..radix)
            .flat_map(|k| order.iter().map(move |&f| k + radix * f))
            .collect();
    }
    order
}

/// `exp(-2 pi i k/n)` in f64, rounded once.
fn root<T: Real>(k: usize, n: usize) -> Complex<T> {
    let angle = -TAU * (k % n) as f64 / n as f64;
    Complex::new(T::of(angle.cos()), T::of(angle.sin()))
}

/// Few, large radices: every stage is a pass over the block. The odd primes come first, because
/// the tile of the first stage wants a span that is a multiple of its width.
fn radices_of(mut length: usize) -> Vec<usize> {
    let mut radices = Vec::new();
    for prime in [13, 11, 7, 5, 3] {
        while length.is_multiple_of(prime) {
            radices.push(prime);
            length /= prime;
        }
    }
    // Eights, which just fit sixteen registers; sixteen only where it saves a whole stage.
    let bits: &[u32] = match length.trailing_zeros() {
        0 => &[],
        1 => &[1],
        2 => &[2],
        3 => &[3],
        4 if !radices.is_empty() => &[4],
        4 => &[2, 2],
        5 => &[3, 2],
        6 => &[3, 3],
        7 => &[3, 2, 2],
        8 => &[3, 3, 2],
        9 => &[3, 3, 3],
        10 => &[3, 3, 4],
        11 => &[3, 3, 2, 3],
        12 => &[3, 3, 3, 3],
        13 => &[3, 3, 3, 4],
        14 => &[3, 3, 4, 4],
        _ => &[3, 3, 3, 3, 3],
    };
    radices.extend(bits.iter().map(|bits| 1 << bits));
    let mut rest = length >> bits.iter().sum::<u32>();
    while rest > 1 {
        let radix = rest.min(8);
        radices.push(radix);
        rest /= radix;
    }
    debug_assert!(radices.iter().all(|r| RADICES.contains(r)));
    radices
}
