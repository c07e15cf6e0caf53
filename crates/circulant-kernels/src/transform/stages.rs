//! The stages between the rows and the spectrum, in place on a block.
//!
//! `unsafe`: see the module above.

use std::ops::Range;

use circulant_core::Scalar;
use num_complex::Complex;
use rustfft::Fft;

use super::plan::{Stage, slot};
use crate::transform::butterfly::{Complexes, butterfly};
use crate::vector::{Present, Vector};

/// Exchanges Re and Im, which turns a forward butterfly into an inverse one.
#[inline(always)]
pub(super) fn swap<V>(x: Complexes<V>) -> Complexes<V> {
    Complexes { re: x.im, im: x.re }
}

#[inline(always)]
pub(super) unsafe fn twiddle<V: Vector>(twiddles: *const Complex<V::Scalar>) -> Complexes<V> {
    // SAFETY: the caller promises one twiddle.
    unsafe { Complexes::splat((*twiddles).re, (*twiddles).im) }
}

/// The blocks of one stage within some positions.
pub(super) struct Blocks<'a, T> {
    data: *mut T,
    positions: Range<usize>,
    stage: &'a Stage<T>,
    shift: u32,
}

impl<'a, T> Blocks<'a, T> {
    pub(super) fn new(
        data: *mut T,
        positions: Range<usize>,
        stage: &'a Stage<T>,
        shift: u32,
    ) -> Self {
        Self {
            data,
            positions,
            stage,
            shift,
        }
    }

    /// The slots where the blocks start.
    #[inline(always)]
    fn starts(&self) -> impl Iterator<Item = usize> {
        let shift = self.shift;
        let starts = self.positions.clone().step_by(self.stage.block);
        starts.map(move |position| slot(position, shift))
    }
}

/// A forward stage: butterfly, then twiddles.
#[inline(always)]
pub(super) unsafe fn decimate<V: Vector, const R: usize>(
    blocks: &Blocks<'_, V::Scalar>,
    twiddles: &[Complex<V::Scalar>],
) {
    // SAFETY: see the head of the module: the instruction set is there.
    let there = unsafe { Present::<V>::promised() };
    there.call(
        #[inline(always)]
        || {
            let (span, inner) = (blocks.stage.span, blocks.stage.inner);
            let step = slot(span, blocks.shift) * 2 * V::LANES;
            for start in blocks.starts() {
                for j in 0..span / inner {
                    // SAFETY: `j < m` and the table holds `m*(R - 1)` twiddles; elements are
                    // inside the block.
                    unsafe {
                        let block = blocks.data.add(start * 2 * V::LANES);
                        let w = twiddles.as_ptr().add(j * (R - 1));
                        for i in 0..inner {
                            let at = block.add(slot(j * inner + i, blocks.shift) * 2 * V::LANES);
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
        },
    );
}

/// An inverse stage: twiddles, then butterfly, with Re and Im exchanged throughout.
#[inline(always)]
pub(super) unsafe fn interleave<V: Vector, const R: usize>(
    blocks: &Blocks<'_, V::Scalar>,
    twiddles: &[Complex<V::Scalar>],
) {
    // SAFETY: see the head of the module: the instruction set is there.
    let there = unsafe { Present::<V>::promised() };
    there.call(
        #[inline(always)]
        || {
            let (span, inner) = (blocks.stage.span, blocks.stage.inner);
            let step = slot(span, blocks.shift) * 2 * V::LANES;
            for start in blocks.starts() {
                for j in 0..span / inner {
                    // SAFETY: as in `decimate`.
                    unsafe {
                        let block = blocks.data.add(start * 2 * V::LANES);
                        let w = twiddles.as_ptr().add(j * (R - 1));
                        for i in 0..inner {
                            let at = block.add(slot(j * inner + i, blocks.shift) * 2 * V::LANES);
                            let mut x = gather::<V, R>(at, step, j, w);
                            butterfly(&mut x);
                            for (k, value) in x.iter().enumerate() {
                                swap(*value).store(at.add(k * step));
                            }
                        }
                    }
                }
            }
        },
    );
}

/// The swapped and twiddled inputs of an inverse butterfly.
#[inline(always)]
pub(super) unsafe fn gather<V: Vector, const R: usize>(
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

/// A whole axis through rustfft: one gather, transform and scatter per lane and line.
pub(super) unsafe fn along_axis<V: Vector>(
    blocks: &Blocks<'_, V::Scalar>,
    fft: &dyn Fft<V::Scalar>,
) {
    let length = fft.len();
    let zero = Complex::new(V::Scalar::of(0.0), V::Scalar::of(0.0));
    let mut line = vec![zero; length];
    let mut scratch = vec![zero; fft.get_inplace_scratch_len()];
    let step = blocks.stage.inner * 2 * V::LANES;
    for start in blocks.starts() {
        for (i, lane) in
            (0..blocks.stage.inner).flat_map(|i| (0..V::LANES).map(move |lane| (i, lane)))
        {
            // SAFETY: the elements of the line are `inner` positions apart inside the block.
            unsafe {
                let at = blocks.data.add((start + i) * 2 * V::LANES + lane);
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
