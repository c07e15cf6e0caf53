//! Between the lanes of a spectrum and the split planes of one frequency's matrices.
//!
//! `unsafe`: see the module above.

use super::frequencies::Frequency;
use crate::blocks::{Batch, Shared};
use crate::product::RowMajor;
use crate::real::Real;
use crate::scratch::Scratch;
use crate::simd::{RealSimd, Tile, Vector};

/// Split planes of complex numbers in one allocation.
pub(super) struct Planes<T: Real> {
    pub(super) memory: Scratch<T>,
    pub(super) plane: usize,
}

impl<T: Real> Planes<T> {
    /// Two planes of `len` numbers, with room for a vector to overrun.
    pub(super) fn new(len: usize) -> Self {
        let plane = len + 16;
        Self {
            memory: Scratch::zeroed(2 * plane),
            plane,
        }
    }

    pub(super) fn re(&mut self) -> *mut T {
        self.memory.as_mut_ptr()
    }

    pub(super) fn im(&mut self) -> *mut T {
        self.memory[self.plane..].as_mut_ptr()
    }

    /// The first `len` numbers of both.
    pub(super) fn planes(&self, len: usize) -> (&[T], &[T]) {
        (&self.memory[..len], &self.memory[self.plane..][..len])
    }

    pub(super) fn row_major(&mut self, row: usize) -> RowMajor<T> {
        RowMajor {
            re: self.re(),
            im: self.im(),
            row,
        }
    }
}

/// Copies frequency `f` of all lanes to the planes, then `-f` conjugated behind it; with
/// `conjugate` it is the other way round. All is multiplied by `scale`. The next frequency is
/// fetched meanwhile: its entries are one cache line each, far apart.
#[inline(always)]
pub(super) unsafe fn gather<V: Vector>(
    batch: &Batch,
    spectrum: Shared<V::Scalar>,
    frequency: &Frequency,
    next: Option<&Frequency>,
    conjugate: bool,
    scale: V::Scalar,
    planes: &mut Planes<V::Scalar>,
) {
    let (re, im) = (planes.re(), planes.im());
    let positions = [
        (Some(frequency.position), conjugate, 0),
        (frequency.mirror, !conjugate, batch.lanes_used()),
    ];
    let next = next.map_or([None; 2], |next| [Some(next.position), next.mirror]);
    for ((position, conjugate, start), next) in positions.into_iter().zip(next) {
        let Some(position) = position else { continue };
        for block in 0..batch.blocks() {
            if let Some(next) = next {
                V::Scalar::prefetch(
                    spectrum.at(block * batch.block_stride() + next * 2 * V::LANES),
                );
            }
            let from = spectrum.at(block * batch.block_stride() + position * 2 * V::LANES);
            let to = start + block * V::LANES;
            // SAFETY: the block holds the entry; the planes hold both copies and an overrun.
            unsafe {
                let sign = if conjugate { -scale } else { scale };
                V::load(from).mul(V::splat(scale)).store(re.add(to));
                V::load(from.add(V::LANES))
                    .mul(V::splat(sign))
                    .store(im.add(to));
            }
        }
    }
}

/// The way back of [`gather`], times `scale`.
#[inline(always)]
pub(super) unsafe fn scatter<V: Vector>(
    batch: &Batch,
    spectrum: Shared<V::Scalar>,
    frequency: &Frequency,
    scale: V::Scalar,
    add: bool,
    planes: &mut Planes<V::Scalar>,
) {
    let (re, im) = (planes.re(), planes.im());
    let positions = [
        (Some(frequency.position), false, 0),
        (frequency.mirror, true, batch.lanes_used()),
    ];
    for (position, conjugate, start) in positions {
        let Some(position) = position else { continue };
        for block in 0..batch.blocks() {
            let to = spectrum.at(block * batch.block_stride() + position * 2 * V::LANES);
            let from = start + block * V::LANES;
            // SAFETY: as in `gather`.
            unsafe {
                let mut real = V::load(re.add(from)).mul(V::splat(scale));
                let sign = if conjugate { -scale } else { scale };
                let mut imaginary = V::load(im.add(from)).mul(V::splat(sign));
                if add {
                    real = real.add(V::load(to));
                    imaginary = imaginary.add(V::load(to.add(V::LANES)));
                }
                real.store(to);
                imaginary.store(to.add(V::LANES));
            }
        }
    }
}

/// `to = sign*from^T` for a `rows x columns` matrix, into rows `padded` apart.
#[inline(always)]
pub(super) unsafe fn transpose<V: Vector>(
    from: &[V::Scalar],
    rows: usize,
    columns: usize,
    padded: usize,
    sign: V::Scalar,
    to: *mut V::Scalar,
) {
    let side = <V::Tile as Vector>::LANES;
    if rows.is_multiple_of(side) && columns.is_multiple_of(side) {
        let sign = <V::Tile as Vector>::splat(sign);
        for row in (0..rows).step_by(side) {
            for column in (0..columns).step_by(side) {
                // SAFETY: the tile lies inside both matrices.
                unsafe {
                    V::Tile::transpose(
                        #[inline(always)]
                        |i| {
                            V::Tile::load(from.as_ptr().add((row + i) * columns + column)).mul(sign)
                        },
                        #[inline(always)]
                        |j| to.add((column + j) * padded + row),
                    );
                }
            }
        }
    } else {
        for row in 0..rows {
            for column in 0..columns {
                // SAFETY: `row < padded`, and there is a row for every column.
                unsafe { *to.add(column * padded + row) = from[row * columns + column] * sign };
            }
        }
    }
}
