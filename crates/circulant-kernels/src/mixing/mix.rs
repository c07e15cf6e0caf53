//! The channels of every image through the matrices of their frequencies.
//!
//! `unsafe`: see the module above.

use super::Mixing;
use super::frequencies::Frequency;
use super::planes::{Planes, gather, scatter, transpose};
use crate::blocks::Shared;
use crate::product::{ColumnMajor, RowMajor, product};
use crate::real::Real;
use crate::simd::{Kernel, Vector};

/// `to = from K`, or `from K^*` for the adjoint, at some frequencies.
pub struct Mix<'a, T> {
    pub(super) mixing: &'a Mixing<'a, T>,
    pub(super) frequencies: &'a [Frequency],
    pub(super) coordinates: &'a [T],
    pub(super) from: Shared<T>,
    pub(super) to: Shared<T>,
    pub(super) adjoint: bool,
    pub(super) add: bool,
}

impl<T: Real> Kernel<T> for Mix<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        let (inputs, outputs) = (&self.mixing.inputs, &self.mixing.outputs);
        let (from, to) = if self.adjoint {
            (outputs, inputs)
        } else {
            (inputs, outputs)
        };
        let padded = to.channels.next_multiple_of(V::LANES);
        let pairs = from.batch.div_ceil(2);
        let scale = T::one() / T::of(self.mixing.plan.len() as f64);
        let mut weights = Planes::new(from.channels * padded);
        let mut sources = Planes::new(2 * from.lanes_used());
        let mut turned = Planes::new(2 * from.lanes_used());
        let mut products = Planes::new(2 * pairs * padded);
        for (index, frequency) in self.frequencies.iter().enumerate() {
            let next = self.frequencies.get(index + 1);
            let rows = pairs * (1 + usize::from(frequency.mirror.is_some()));
            // SAFETY: frequencies belong to one task each; the planes have the sizes of the
            // product below.
            unsafe {
                let matrix = self.matrix::<V>(frequency, padded, &mut weights);
                gather::<V>(
                    from,
                    self.from,
                    frequency,
                    next,
                    false,
                    T::one(),
                    &mut sources,
                );
                let one = T::one();
                let (re, im) = sources.planes(rows * from.channels);
                transpose::<V>(re, rows, from.channels, rows, one, turned.re());
                transpose::<V>(im, rows, from.channels, rows, one, turned.im());
                product::<V>(
                    (rows, from.channels, to.channels),
                    ColumnMajor {
                        re: turned.re(),
                        im: turned.im(),
                        column: rows,
                    },
                    matrix,
                    products.row_major(padded),
                    self.mixing.matrix_ahead(next, self.coordinates.as_ptr()),
                );
            }
            if padded != to.channels {
                for plane in products.memory.chunks_exact_mut(products.plane) {
                    for row in 1..rows {
                        plane.copy_within(
                            row * padded..row * padded + to.channels,
                            row * to.channels,
                        );
                    }
                }
            }
            // SAFETY: as above.
            unsafe { scatter::<V>(to, self.to, frequency, scale, self.add, &mut products) };
        }
    }
}

impl<T: Real> Mix<'_, T> {
    /// `K(f)`, read in place where its rows are whole vectors, or its conjugate transpose, with
    /// rows padded to whole vectors.
    #[inline(always)]
    unsafe fn matrix<V: Vector<Scalar = T>>(
        &self,
        frequency: &Frequency,
        padded: usize,
        room: &mut Planes<T>,
    ) -> RowMajor<T> {
        let (inputs, outputs) = (self.mixing.inputs.channels, self.mixing.outputs.channels);
        let plane = inputs * outputs;
        let part =
            |part: usize| &self.coordinates[(frequency.coordinate + part) * plane..][..plane];
        let packed = room.row_major(padded);
        let in_place = !self.adjoint && padded == outputs;
        let mut matrix = packed;
        if in_place {
            matrix.re = part(0).as_ptr().cast_mut();
        } else {
            // SAFETY: the planes have a row of `padded` numbers for every source channel.
            unsafe { self.copy::<V>(part(0), padded, T::one(), packed.re) };
        }
        if frequency.mirror.is_none() {
            // SAFETY: the plane has this size.
            unsafe { packed.im.write_bytes(0, room.plane) };
        } else if in_place {
            matrix.im = part(1).as_ptr().cast_mut();
        } else {
            let sign = if self.adjoint { -T::one() } else { T::one() };
            // SAFETY: as above.
            unsafe { self.copy::<V>(part(1), padded, sign, packed.im) };
        }
        matrix
    }

    // A function and not a closure: it must be inlined, or it misses the instruction set.
    #[inline(always)]
    unsafe fn copy<V: Vector<Scalar = T>>(&self, from: &[T], padded: usize, sign: T, to: *mut T) {
        let (inputs, outputs) = (self.mixing.inputs.channels, self.mixing.outputs.channels);
        // SAFETY: the caller's promise.
        unsafe {
            if self.adjoint {
                transpose::<V>(from, inputs, outputs, padded, sign, to);
            } else {
                for (row, from) in from.chunks_exact(outputs).enumerate() {
                    to.add(row * padded)
                        .copy_from_nonoverlapping(from.as_ptr(), outputs);
                }
            }
        }
    }
}
