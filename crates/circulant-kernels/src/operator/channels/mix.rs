//! The channels of every image through the matrices of their frequencies.
//!
//! `unsafe`: see the module above.

use super::Mixing;
use super::frequencies::Frequency;
use super::planes::{MixingPlanes, Scatter, gather, transpose};
use crate::operator::batch::Batch;
use crate::operator::complex_product::{RowMajor, product, tiles};
use crate::real::Real;
use crate::runtime::shared::Shared;
use crate::vector::{Kernel, Present, Promised, Vector};

/// `to = from K` at some frequencies.
pub struct Mix<'a, T> {
    pub(super) frequencies: &'a [Frequency],
    pub(super) from: Shared<T>,
    pub(super) matrices: Matrices<'a, T>,
}

impl<T: Real> Kernel<T> for Promised<Mix<'_, T>> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let job = self.job();
        let inputs = &job.matrices.mixing.inputs;
        let mut sources = MixingPlanes::new(2 * inputs.lanes_used());
        let mut room = job.matrices.room::<V>();
        for (index, frequency) in job.frequencies.iter().enumerate() {
            let next = job.frequencies.get(index + 1);
            let one = T::one();
            // SAFETY: frequencies belong to one task each; the planes hold both copies.
            unsafe {
                gather::<V>(inputs, job.from, frequency, false, one, &mut sources);
                job.matrices
                    .apply::<V>((frequency, next), &sources, (inputs, job.from), &mut room);
            }
        }
    }
}

/// `to = sources K`, or `sources K^*` for the adjoint.
pub(super) struct Matrices<'a, T> {
    pub(super) mixing: &'a Mixing<'a, T>,
    pub(super) coordinates: &'a [T],
    pub(super) to: Shared<T>,
    pub(super) adjoint: bool,
    /// Add to what is there.
    pub(super) add: bool,
}

/// Memory of [`Matrices::apply`].
pub(super) struct MixRoom<T: Real> {
    weights: MixingPlanes<T>,
    products: MixingPlanes<T>,
}

impl<T: Real> Matrices<'_, T> {
    /// Channels of the sources and of the products.
    #[inline(always)]
    fn channels(&self) -> (usize, usize) {
        let (inputs, outputs) = (&self.mixing.inputs, &self.mixing.outputs);
        if self.adjoint {
            (outputs.channels, inputs.channels)
        } else {
            (inputs.channels, outputs.channels)
        }
    }

    #[inline(always)]
    pub(super) fn room<V: Vector<Scalar = T>>(&self) -> MixRoom<T> {
        let (from, to) = self.channels();
        let padded = to.next_multiple_of(V::LANES);
        let pairs = self.mixing.inputs.batch.div_ceil(2);
        MixRoom {
            weights: MixingPlanes::new(from * padded),
            products: MixingPlanes::new(if padded == to { 0 } else { 2 * pairs * padded }),
        }
    }

    /// One frequency; `sources` are its rows as `gather` leaves them from `spectrum`.
    #[inline(always)]
    pub(super) unsafe fn apply<V: Vector<Scalar = T>>(
        &self,
        (frequency, next): (&Frequency, Option<&Frequency>),
        sources: &MixingPlanes<T>,
        spectrum: (&Batch, Shared<T>),
        room: &mut MixRoom<T>,
    ) {
        let (from, to) = self.channels();
        let padded = to.next_multiple_of(V::LANES);
        let pairs = self.mixing.inputs.batch.div_ceil(2);
        let rows = pairs * (1 + usize::from(frequency.mirror.is_some()));
        let scatter = Scatter {
            batch: if self.adjoint {
                &self.mixing.inputs
            } else {
                &self.mixing.outputs
            },
            spectrum: self.to,
            scale: T::one() / T::of(self.mixing.plan.len() as f64),
            add: self.add,
        };
        let (tiles, coordinates) = (tiles::<V>(rows, to), self.coordinates.as_ptr());
        let ahead = self.mixing.fetch(next, coordinates, spectrum, tiles);
        let sources = sources.strided(from, 1);
        // SAFETY: the planes have the sizes of the product.
        unsafe {
            let matrix = self.matrix::<V>(frequency, padded, &mut room.weights);
            if padded == to {
                product::<V>(
                    (rows, from, to),
                    sources,
                    matrix,
                    ahead,
                    #[inline(always)]
                    |row, column, re, im| {
                        let mirrored = row >= pairs;
                        let pair = if mirrored { row - pairs } else { row };
                        scatter.entry(frequency, mirrored, pair * to + column, re, im);
                    },
                );
                return;
            }
            let [products_re, products_im, _] = room.products.writers();
            product::<V>(
                (rows, from, to),
                sources,
                matrix,
                ahead,
                #[inline(always)]
                |row, column, re, im| {
                    re.store(products_re.add(row * padded + column));
                    im.store(products_im.add(row * padded + column));
                },
            );
            for plane in room.products.memory.chunks_exact_mut(room.products.plane) {
                for row in 1..rows {
                    plane.copy_within(row * padded..row * padded + to, row * to);
                }
            }
            scatter.planes::<V>(frequency, &mut room.products);
        }
    }

    /// `K(f)`, read in place where its rows are whole vectors, or its conjugate transpose, with
    /// rows padded to whole vectors.
    #[inline(always)]
    unsafe fn matrix<V: Vector<Scalar = T>>(
        &self,
        frequency: &Frequency,
        padded: usize,
        room: &mut MixingPlanes<T>,
    ) -> RowMajor<T> {
        let (inputs, outputs) = (self.mixing.inputs.channels, self.mixing.outputs.channels);
        let plane = inputs * outputs;
        let part =
            |part: usize| &self.coordinates[(frequency.coordinate + part) * plane..][..plane];
        let [re, im, sum] = room.writers();
        let mut matrix = RowMajor {
            planes: [re.cast_const(), im, sum],
            row: padded,
        };
        let in_place = !self.adjoint && padded == outputs;
        if in_place {
            matrix.planes[0] = part(0).as_ptr();
        } else {
            // SAFETY: the planes have a row of `padded` values for every source channel.
            unsafe { self.copy::<V>(part(0), padded, T::one(), re) };
        }
        if frequency.mirror.is_none() {
            // SAFETY: the plane has this size.
            unsafe { im.write_bytes(0, room.plane) };
        } else if in_place {
            matrix.planes[1] = part(1).as_ptr();
        } else {
            let sign = if self.adjoint { -T::one() } else { T::one() };
            // SAFETY: as above.
            unsafe { self.copy::<V>(part(1), padded, sign, im) };
        }
        for at in (0..self.channels().0 * padded).step_by(V::LANES) {
            // SAFETY: a whole number of padded rows.
            unsafe {
                let re = V::load(matrix.planes[0].add(at));
                re.add(V::load(matrix.planes[1].add(at))).store(sum.add(at));
            }
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
