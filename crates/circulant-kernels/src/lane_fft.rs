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
//! `unsafe`: raw pointers to a block of `2*LANES*len` numbers and to rows of `len` numbers each,
//! which the callers in `single.rs` and `mixing.rs` own. Stages index below `len` only, because a
//! stage's `radix*span*blocks` is `len` by construction.

use std::f64::consts::TAU;
use std::ops::Range;
use std::sync::Arc;

use num_complex::Complex;
use rustfft::{Fft, FftPlanner};

use crate::butterfly::{Complexes, RADICES, butterfly};
use crate::real::Real;
use crate::simd::{Kernel, RealSimd, Tile, Vector};

const MAX_RADIX: usize = 16;
const MAX_LANES: usize = 16;
/// The most columns of a tile: a cache line of a row.
const MAX_COLUMNS: usize = 16;
/// Gaps are at least this many positions apart.
const GAP_UNIT: usize = 64;
/// A shift that leaves no gap.
const NO_GAPS: u32 = usize::BITS - 1;

/// A transform of `len` complex numbers per lane.
pub struct LanePlan<T> {
    len: usize,
    shift: u32,
    stages: Vec<Stage<T>>,
    order: Vec<Option<usize>>,
    /// What a missing row reads.
    zeros: Vec<T>,
}

struct Stage<T> {
    step: Step<T>,
    /// Elements of one block, `radix*span`.
    block: usize,
    /// Distance between the elements of a butterfly.
    span: usize,
    /// Neighbours that share their twiddles: 1, or the width for the stages of the height.
    inner: usize,
}

enum Step<T> {
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
    pub(crate) fn new(height: usize, width: usize) -> Self {
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
    fn first_and_rest(&self) -> (Option<(usize, &[Complex<T>], &Stage<T>)>, &[Stage<T>]) {
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
    fn parts(&self) -> impl Iterator<Item = Range<usize>> {
        let part = match self.first_and_rest().0 {
            Some((_, _, stage)) => stage.span,
            None => self.len,
        };
        (0..self.len).step_by(part).map(move |at| at..at + part)
    }

    /// The frequency, as index into the grid, in each slot of a transformed block; `None` in gaps.
    pub(crate) fn order(&self) -> &[Option<usize>] {
        &self.order
    }
}

#[inline(always)]
fn slot(position: usize, shift: u32) -> usize {
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

/// Where the rows of a block lie in memory. Lane `l` of the real part is `rows[l]`, of the
/// imaginary part `rows[LANES + l]`. A row that is missing is null when rows are written, and the
/// plan's row of zeros when they are read.
pub struct RowPointers<T> {
    rows: [*mut T; 2 * MAX_LANES],
    /// Distance to the rows of the next block, which are fetched into the cache meanwhile.
    ahead: usize,
}

impl<T> RowPointers<T> {
    /// Rows from a function of (lane, imaginary).
    #[inline]
    pub(crate) fn new(
        lanes: usize,
        ahead: usize,
        mut row: impl FnMut(usize, bool) -> *mut T,
    ) -> Self {
        let mut rows = [std::ptr::null_mut(); 2 * MAX_LANES];
        for lane in 0..lanes {
            rows[lane] = row(lane, false);
            rows[lanes + lane] = row(lane, true);
        }
        Self { rows, ahead }
    }
}

/// Rows -> spectrum of a block.
pub struct ForwardBlock<'a, T> {
    pub(crate) plan: &'a LanePlan<T>,
    pub(crate) rows: &'a RowPointers<T>,
    /// When there, the rows are gradients of `tanh` and these its values: `g*(1 - y^2)` is read.
    pub(crate) tanh: Option<&'a RowPointers<T>>,
    pub(crate) block: *mut T,
}

/// A spectrum times a filter.
pub struct Product<T> {
    pub(crate) spectrum: *const T,
    /// One complex number per slot.
    pub(crate) h: *const T,
}

/// Spectrum of a block -> rows, destroying the block.
pub struct InverseBlock<'a, T> {
    pub(crate) plan: &'a LanePlan<T>,
    /// When there, the block is set to this product first.
    pub(crate) product: Option<Product<T>>,
    pub(crate) block: *mut T,
    pub(crate) rows: &'a RowPointers<T>,
    pub(crate) bias: LaneBias<'a, T>,
    pub(crate) tanh: bool,
}

/// What is added before the activation.
#[derive(Clone, Copy)]
pub enum LaneBias<'a, T> {
    None,
    /// One number per lane, the same for Re and Im.
    Lanes(&'a [T; MAX_LANES]),
    /// One row for all lanes.
    Row(*const T),
    /// One row per lane.
    Rows(&'a RowPointers<T>),
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

impl<T: Real> Kernel<T> for ForwardBlock<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        let plan = self.plan;
        let (first, rest) = plan.first_and_rest();
        // SAFETY: see the head of the file.
        unsafe {
            match first {
                Some((radix, twiddles, stage)) => {
                    for_radix!(radix, first_stage::<V, _>(&self, stage, twiddles));
                }
                None => {
                    for column in (0..plan.len).step_by(line_of::<T>()) {
                        let count = line_of::<T>().min(plan.len - column);
                        let to = self.block.add(column * 2 * V::LANES);
                        load_columns::<V>(&self, column, count, to);
                    }
                }
            }
            // Part by part: what the first stage has left independent stays in the near cache.
            for part in plan.parts() {
                for stage in rest {
                    for at in part.clone().step_by(stage.block) {
                        let block = self.block.add(slot(at, plan.shift) * 2 * V::LANES);
                        match &stage.step {
                            Step::Butterfly { radix, twiddles } => {
                                for_radix!(
                                    *radix,
                                    decimate::<V, _>(block, stage, plan.shift, twiddles)
                                );
                            }
                            Step::Axis { forward, .. } => {
                                along_axis::<V>(block, stage, forward.as_ref());
                            }
                        }
                    }
                }
            }
        }
    }
}

impl<T: Real> Kernel<T> for InverseBlock<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        let plan = self.plan;
        let (first, rest) = plan.first_and_rest();
        // SAFETY: see the head of the file.
        unsafe {
            for part in plan.parts() {
                if let Some(product) = &self.product {
                    product.run::<V>(
                        slot(part.start, plan.shift)..slot(part.end - 1, plan.shift) + 1,
                        self.block,
                    );
                }
                for stage in rest.iter().rev() {
                    for at in part.clone().step_by(stage.block) {
                        let block = self.block.add(slot(at, plan.shift) * 2 * V::LANES);
                        match &stage.step {
                            Step::Butterfly { radix, twiddles } => {
                                for_radix!(
                                    *radix,
                                    interleave::<V, _>(block, stage, plan.shift, twiddles)
                                );
                            }
                            Step::Axis { inverse, .. } => {
                                along_axis::<V>(block, stage, inverse.as_ref());
                            }
                        }
                    }
                }
            }
            match first {
                Some((radix, twiddles, stage)) => {
                    for_radix!(radix, last_stage::<V, _>(&self, stage, twiddles));
                }
                None => {
                    let bias: V = self.bias.of_lanes();
                    for column in (0..plan.len).step_by(line_of::<T>()) {
                        let count = line_of::<T>().min(plan.len - column);
                        let from = self.block.add(column * 2 * V::LANES);
                        for j in 0..count {
                            let at = from.add(j * 2 * V::LANES);
                            let x = Complexes::load(at);
                            x.add(Complexes { re: bias, im: bias }).store(at);
                        }
                        finish_columns::<V>(&self, column, count, from);
                    }
                }
            }
        }
    }
}

impl<T: Real> Product<T> {
    /// `block = spectrum*h` in some slots.
    #[inline(always)]
    unsafe fn run<V: Vector<Scalar = T>>(&self, slots: Range<usize>, block: *mut T) {
        for slot in slots {
            let at = slot * 2 * V::LANES;
            // SAFETY: spectrum and block hold these slots, and `h` a number for each.
            unsafe {
                let h = Complexes::splat(*self.h.add(2 * slot), *self.h.add(2 * slot + 1));
                let x: Complexes<V> = Complexes::load(self.spectrum.add(at));
                x.mul(h).store(block.add(at));
            }
        }
    }
}

/// Exchanges Re and Im, which turns a forward butterfly into an inverse one.
#[inline(always)]
fn swap<V>(x: Complexes<V>) -> Complexes<V> {
    Complexes { re: x.im, im: x.re }
}

#[inline(always)]
unsafe fn twiddle<V: Vector>(twiddles: *const Complex<V::Scalar>) -> Complexes<V> {
    // SAFETY: the caller promises one twiddle.
    let w = unsafe { *twiddles };
    Complexes::splat(w.re, w.im)
}

/// One block of a forward stage: butterfly, then twiddles.
#[inline(always)]
unsafe fn decimate<V: Vector, const R: usize>(
    block: *mut V::Scalar,
    stage: &Stage<V::Scalar>,
    shift: u32,
    twiddles: &[Complex<V::Scalar>],
) {
    let (span, inner) = (stage.span, stage.inner);
    let step = slot(span, shift) * 2 * V::LANES;
    for j in 0..span / inner {
        // SAFETY: `j < m` and the table holds `m*(R - 1)` twiddles; elements are inside the block.
        unsafe {
            let w = twiddles.as_ptr().add(j * (R - 1));
            for i in 0..inner {
                let at = block.add(slot(j * inner + i, shift) * 2 * V::LANES);
                let mut x: [Complexes<V>; R] = [Complexes::load(at); R];
                for (k, value) in x.iter_mut().enumerate().skip(1) {
                    *value = Complexes::load(at.add(k * step));
                }
                butterfly(&mut x);
                x[0].store(at);
                for (k, value) in x.iter().enumerate().skip(1) {
                    let value = if j > 0 {
                        value.mul(twiddle(w.add(k - 1)))
                    } else {
                        *value
                    };
                    value.store(at.add(k * step));
                }
            }
        }
    }
}

/// One block of an inverse stage: twiddles, then butterfly, with Re and Im exchanged throughout.
#[inline(always)]
unsafe fn interleave<V: Vector, const R: usize>(
    block: *mut V::Scalar,
    stage: &Stage<V::Scalar>,
    shift: u32,
    twiddles: &[Complex<V::Scalar>],
) {
    let (span, inner) = (stage.span, stage.inner);
    let step = slot(span, shift) * 2 * V::LANES;
    for j in 0..span / inner {
        // SAFETY: as in `decimate`.
        unsafe {
            let w = twiddles.as_ptr().add(j * (R - 1));
            for i in 0..inner {
                let at = block.add(slot(j * inner + i, shift) * 2 * V::LANES);
                let mut x = gather::<V, R>(at, step, j, w);
                butterfly(&mut x);
                for (k, value) in x.iter().enumerate() {
                    swap(*value).store(at.add(k * step));
                }
            }
        }
    }
}

/// The swapped and twiddled inputs of an inverse butterfly.
#[inline(always)]
unsafe fn gather<V: Vector, const R: usize>(
    at: *const V::Scalar,
    step: usize,
    j: usize,
    w: *const Complex<V::Scalar>,
) -> [Complexes<V>; R] {
    // SAFETY: the caller promises `R` elements and `R - 1` twiddles.
    unsafe {
        let mut x: [Complexes<V>; R] = [swap(Complexes::load(at)); R];
        for (k, value) in x.iter_mut().enumerate().skip(1) {
            let raw = swap(Complexes::load(at.add(k * step)));
            *value = if j > 0 {
                raw.mul(twiddle(w.add(k - 1)))
            } else {
                raw
            };
        }
        x
    }
}

/// Transposed columns: `[MAX_RADIX][MAX_COLUMNS][Re, Im][MAX_LANES]` at most.
#[repr(C, align(64))]
struct Columns<T>([T; MAX_RADIX * MAX_COLUMNS * 2 * MAX_LANES]);

/// Numbers of a cache line: rows are read and written by whole lines.
const fn line_of<T>() -> usize {
    64 / size_of::<T>()
}

/// The first forward stage: rows -> tile -> butterfly -> block.
#[inline(always)]
unsafe fn first_stage<V: Vector, const R: usize>(
    job: &ForwardBlock<'_, V::Scalar>,
    stage: &Stage<V::Scalar>,
    twiddles: &[Complex<V::Scalar>],
) {
    let (span, inner) = (stage.span, stage.inner);
    let mut tile = std::mem::MaybeUninit::<Columns<V::Scalar>>::uninit();
    let tile = tile.as_mut_ptr().cast::<V::Scalar>();
    let (width, shift) = (line_of::<V::Scalar>(), job.plan.shift);
    let (entry, step) = (2 * V::LANES, slot(span, shift) * 2 * V::LANES);
    let mut column = 0;
    while column < span {
        let count = width.min(span - column);
        // SAFETY: `load_columns` fills `count` entries for each `k`, which are then read; the
        // block positions `k*span + column + i` are below `R*span`.
        unsafe {
            for k in 0..R {
                load_columns::<V>(job, k * span + column, count, tile.add(k * width * entry));
            }
            for i in 0..count {
                let j = (column + i) / inner;
                let w = twiddles.as_ptr().add(j * (R - 1));
                let mut x: [Complexes<V>; R] = [Complexes::load(tile.add(i * entry)); R];
                for (k, value) in x.iter_mut().enumerate().skip(1) {
                    *value = Complexes::load(tile.add((k * width + i) * entry));
                }
                butterfly(&mut x);
                let at = job.block.add(slot(column + i, shift) * entry);
                x[0].store(at);
                for (k, value) in x.iter().enumerate().skip(1) {
                    value.mul(twiddle(w.add(k - 1))).store(at.add(k * step));
                }
            }
        }
        column += count;
    }
}

/// The last inverse stage: block -> butterfly -> tile -> bias, activation -> rows.
#[inline(always)]
unsafe fn last_stage<V: Vector, const R: usize>(
    job: &InverseBlock<'_, V::Scalar>,
    stage: &Stage<V::Scalar>,
    twiddles: &[Complex<V::Scalar>],
) {
    let (span, inner) = (stage.span, stage.inner);
    let mut tile = std::mem::MaybeUninit::<Columns<V::Scalar>>::uninit();
    let tile = tile.as_mut_ptr().cast::<V::Scalar>();
    let (width, shift) = (line_of::<V::Scalar>(), job.plan.shift);
    let (entry, step) = (2 * V::LANES, slot(span, shift) * 2 * V::LANES);
    let bias: V = job.bias.of_lanes();
    let mut column = 0;
    while column < span {
        let count = width.min(span - column);
        // SAFETY: as in `first_stage`, in the other direction.
        unsafe {
            for i in 0..count {
                let j = (column + i) / inner;
                let w = twiddles.as_ptr().add(j * (R - 1));
                let mut x =
                    gather::<V, R>(job.block.add(slot(column + i, shift) * entry), step, 1, w);
                butterfly(&mut x);
                for (k, value) in x.iter().enumerate() {
                    let value = swap(*value).add(Complexes { re: bias, im: bias });
                    value.store(tile.add((k * width + i) * entry));
                }
            }
            for k in 0..R {
                finish_columns::<V>(job, k * span + column, count, tile.add(k * width * entry));
            }
        }
        column += count;
    }
}

/// Reads `count` columns of all rows, from `column` on, into `count` entries at `to`.
#[inline(always)]
unsafe fn load_columns<V: Vector>(
    job: &ForwardBlock<'_, V::Scalar>,
    column: usize,
    count: usize,
    to: *mut V::Scalar,
) {
    // SAFETY: rows hold `len` numbers and `column + count <= len`.
    unsafe {
        match job.tanh {
            None => transpose_columns::<V>(
                job.rows,
                column,
                count,
                to,
                #[inline(always)]
                |_, at| V::Tile::load(at),
                #[inline(always)]
                |_, at| *at,
            ),
            Some(tanh) => transpose_columns::<V>(
                job.rows,
                column,
                count,
                to,
                #[inline(always)]
                |(row, column), at| {
                    let y = V::Tile::load(tanh.rows[row].add(column));
                    V::Tile::load(at).mul(y.neg_mul_add(y, V::Tile::splat(V::Scalar::of(1.0))))
                },
                #[inline(always)]
                |(row, column), at| {
                    let y = *tanh.rows[row].add(column);
                    *at * (V::Scalar::of(1.0) - y * y)
                },
            ),
        }
    }
}

/// Transposes columns into entries; `tile` and `scalar` read numbers of a (row, column).
#[inline(always)]
unsafe fn transpose_columns<V: Vector>(
    rows: &RowPointers<V::Scalar>,
    column: usize,
    count: usize,
    to: *mut V::Scalar,
    tile: impl Fn((usize, usize), *const V::Scalar) -> V::Tile,
    scalar: impl Fn((usize, usize), *const V::Scalar) -> V::Scalar,
) {
    let side = <V::Tile as Vector>::LANES;
    let entry = 2 * V::LANES;
    let whole = count / side * side;
    // Rows come in groups of a tile: Re lanes first, then Im lanes, as entries hold them.
    for group in (0..entry).step_by(side) {
        for row in &rows.rows[group..group + side] {
            V::Scalar::prefetch(row.wrapping_add(column + rows.ahead));
        }
        for start in (column..column + whole).step_by(side) {
            // SAFETY: the caller's promise.
            unsafe {
                V::Tile::transpose(
                    #[inline(always)]
                    |i| tile((group + i, start), rows.rows[group + i].add(start)),
                    #[inline(always)]
                    |j| to.add((start - column + j) * entry + group),
                );
            }
        }
        for row in group..group + side {
            for j in whole..count {
                // SAFETY: as above.
                unsafe {
                    *to.add(j * entry + row) =
                        scalar((row, column + j), rows.rows[row].add(column + j));
                }
            }
        }
    }
}

/// Adds the bias to `count` entries at `from` (unless it is one number per lane, which the caller
/// has added), applies the activation, and writes them to the rows.
#[inline(always)]
unsafe fn finish_columns<V: Vector>(
    job: &InverseBlock<'_, V::Scalar>,
    column: usize,
    count: usize,
    from: *mut V::Scalar,
) {
    let side = <V::Tile as Vector>::LANES;
    let entry = 2 * V::LANES;
    if job.tanh || matches!(job.bias, LaneBias::Row(_) | LaneBias::Rows(_)) {
        for j in 0..count {
            // SAFETY: `from` holds `count` entries.
            unsafe {
                let at = from.add(j * entry);
                let bias = job.bias.at_position::<V>(column + j);
                let x = Complexes::load(at).add(Complexes { re: bias, im: bias });
                if job.tanh {
                    Complexes {
                        re: Real::tanh_lanes(x.re),
                        im: Real::tanh_lanes(x.im),
                    }
                    .store(at);
                } else {
                    x.store(at);
                }
            }
        }
    }
    for group in (0..entry).step_by(side) {
        let rows = &job.rows.rows[group..group + side];
        let complete = rows.iter().all(|row| !row.is_null());
        let whole = if complete { count / side * side } else { 0 };
        for row in rows {
            V::Scalar::prefetch(row.wrapping_add(column + job.rows.ahead));
        }
        for start in (0..whole).step_by(side) {
            // SAFETY: rows hold `len` numbers and `column + count <= len`.
            unsafe {
                V::Tile::transpose(
                    #[inline(always)]
                    |j| V::Tile::load(from.add((start + j) * entry + group)),
                    #[inline(always)]
                    |i| rows[i].add(column + start),
                );
            }
        }
        for (i, row) in rows.iter().enumerate().filter(|(_, row)| !row.is_null()) {
            for j in whole..count {
                // SAFETY: as above.
                unsafe { *row.add(column + j) = *from.add(j * entry + group + i) };
            }
        }
    }
}

impl<T: Real> LaneBias<'_, T> {
    /// The part of the bias that does not depend on the position.
    #[inline(always)]
    fn of_lanes<V: Vector<Scalar = T>>(&self) -> V {
        match self {
            // SAFETY: there are as many numbers as the widest vector has lanes.
            Self::Lanes(lanes) => unsafe { V::load(lanes.as_ptr()) },
            _ => V::splat(T::zero()),
        }
    }

    /// The part that does.
    #[inline(always)]
    unsafe fn at_position<V: Vector<Scalar = T>>(&self, position: usize) -> V {
        // SAFETY: rows of the bias hold as many numbers as the rows of the block.
        unsafe {
            match *self {
                Self::None | Self::Lanes(_) => V::splat(T::zero()),
                Self::Row(row) => V::splat(*row.add(position)),
                Self::Rows(rows) => {
                    let mut lanes = [T::zero(); MAX_LANES];
                    for (value, row) in lanes.iter_mut().zip(&rows.rows[..V::LANES]) {
                        *value = *row.add(position);
                    }
                    V::load(lanes.as_ptr())
                }
            }
        }
    }
}

/// A whole axis through rustfft: one gather, transform and scatter per lane and line.
unsafe fn along_axis<V: Vector>(
    block: *mut V::Scalar,
    stage: &Stage<V::Scalar>,
    fft: &dyn Fft<V::Scalar>,
) {
    let length = fft.len();
    let zero = Complex::new(V::Scalar::of(0.0), V::Scalar::of(0.0));
    let mut line = vec![zero; length];
    let mut scratch = vec![zero; fft.get_inplace_scratch_len()];
    for i in 0..stage.inner {
        for lane in 0..V::LANES {
            // SAFETY: the elements of the line are `inner` positions apart inside the block.
            unsafe {
                let at = block.add(i * 2 * V::LANES + lane);
                let step = stage.inner * 2 * V::LANES;
                for (k, value) in line.iter_mut().enumerate() {
                    let from = at.add(k * step);
                    *value = Complex::new(*from, *from.add(V::LANES));
                }
                fft.process_with_scratch(&mut line, &mut scratch);
                for (k, value) in line.iter().enumerate() {
                    let to = at.add(k * step);
                    *to = value.re;
                    *to.add(V::LANES) = value.im;
                }
            }
        }
    }
}
