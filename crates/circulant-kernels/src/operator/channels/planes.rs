//! Between the lanes of a spectrum and the split planes of one frequency's matrices.
//!
//! `unsafe`: see the module above.

use super::frequencies::Frequency;
use crate::operator::batch::Batch;
use crate::operator::complex_product::{RowMajor, Strided};
use crate::real::Real;
use crate::runtime::scratch::Scratch;
use crate::runtime::shared::Shared;
use crate::vector::{MAX_LANES, Tile, Vector};

/// The planes Re, Im and Re + Im of complex numbers in one allocation.
pub(super) struct MixingPlanes<T: Real> {
    pub(super) memory: Scratch<T>,
    pub(super) plane: usize,
}

impl<T: Real> MixingPlanes<T> {
    /// MixingPlanes of `len` values, with room for a vector to overrun.
    pub(super) fn new(len: usize) -> Self {
        let plane = len + MAX_LANES;
        Self {
            memory: Scratch::zeroed(3 * plane),
            plane,
        }
    }

    /// All three planes, from one borrow: a second one would take the first pointers their right to write.
    pub(super) fn writers(&mut self) -> [*mut T; 3] {
        let base = self.memory.as_mut_ptr();
        [0, 1, 2].map(|plane| base.wrapping_add(plane * self.plane))
    }

    fn readers(&self) -> [*const T; 3] {
        let base = self.memory.as_ptr();
        [0, 1, 2].map(|plane| base.wrapping_add(plane * self.plane))
    }

    pub(super) fn strided(&self, row: usize, column: usize) -> Strided<T> {
        Strided {
            planes: self.readers(),
            row,
            column,
        }
    }

    pub(super) fn row_major(&self, row: usize) -> RowMajor<T> {
        RowMajor {
            planes: self.readers(),
            row,
        }
    }
}

/// Copies frequency `f` of all lanes to the planes, then `-f` conjugated behind it; with
/// `conjugate` it is the other way round. All is multiplied by `scale`.
#[inline(always)]
pub(super) unsafe fn gather<V: Vector>(
    batch: &Batch,
    spectrum: Shared<V::Scalar>,
    frequency: &Frequency,
    conjugate: bool,
    scale: V::Scalar,
    planes: &mut MixingPlanes<V::Scalar>,
) {
    let [re, im, sum] = planes.writers();
    let positions = [
        (Some(frequency.position), conjugate, 0),
        (frequency.mirror, !conjugate, batch.lanes_used()),
    ];
    for (position, conjugate, start) in positions {
        let Some(position) = position else { continue };
        let sign = if conjugate { -scale } else { scale };
        // SAFETY: the caller promises the instruction set.
        let (sign, scale) = unsafe { (V::splat(sign), V::splat(scale)) };
        for block in 0..batch.blocks() {
            let from = spectrum.at(block * batch.block_stride() + position * 2 * V::LANES);
            let to = start + block * V::LANES;
            // SAFETY: the block holds the entry; the planes hold both copies and an overrun.
            unsafe {
                let real = V::load(from).mul(scale);
                let imaginary = V::load(from.add(V::LANES)).mul(sign);
                real.store(re.add(to));
                imaginary.store(im.add(to));
                real.add(imaginary).store(sum.add(to));
            }
        }
    }
}

/// Where the rows of a product go: the way back of [`gather`], times `scale`.
#[derive(Clone, Copy)]
pub(super) struct Scatter<'a, T> {
    pub(super) batch: &'a Batch,
    pub(super) spectrum: Shared<T>,
    pub(super) scale: T,
    /// Add to what is there.
    pub(super) add: bool,
}

impl<T: Real> Scatter<'_, T> {
    /// Writes the lanes from `lane` on, at `f` or, conjugated, at `-f`.
    #[inline(always)]
    pub(super) unsafe fn entry<V: Vector<Scalar = T>>(
        &self,
        frequency: &Frequency,
        mirrored: bool,
        lane: usize,
        re: V,
        im: V,
    ) {
        let position = match frequency.mirror {
            Some(mirror) if mirrored => mirror,
            _ => frequency.position,
        };
        let sign = if mirrored { -self.scale } else { self.scale };
        let to = self
            .spectrum
            .at(lane / V::LANES * self.batch.block_stride() + position * 2 * V::LANES);
        let (mut re, mut im) = (re.mul(re.same(self.scale)), im.mul(im.same(sign)));
        // SAFETY: the block holds the entry.
        unsafe {
            if self.add {
                re = re.add(V::load(to));
                im = im.add(V::load(to.add(V::LANES)));
            }
            re.store(to);
            im.store(to.add(V::LANES));
        }
    }

    /// Writes planes that hold rows of all channels without gaps.
    #[inline(always)]
    pub(super) unsafe fn planes<V: Vector<Scalar = T>>(
        &self,
        frequency: &Frequency,
        planes: &mut MixingPlanes<T>,
    ) {
        let [re, im, _] = planes.writers();
        for (mirrored, start) in [(false, 0), (true, self.batch.lanes_used())] {
            if mirrored && frequency.mirror.is_none() {
                continue;
            }
            for lane in (0..self.batch.lanes_used()).step_by(V::LANES) {
                // SAFETY: as in `gather`.
                unsafe {
                    let (re, im) = (V::load(re.add(start + lane)), V::load(im.add(start + lane)));
                    self.entry(frequency, mirrored, lane, re, im);
                }
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
        // SAFETY: the caller promises the instruction set.
        let sign = unsafe { <V::Tile as Vector>::splat(sign) };
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
