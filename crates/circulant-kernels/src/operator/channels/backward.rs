//! Both gradients of the mixing: of the matrices and of the input, from one copy of the output
//! gradient's spectrum.
//!
//! `unsafe`: see the module above.

use super::Mixing;
use super::frequencies::Frequency;
use super::mix::Matrices;
use super::planes::{MixingPlanes, gather};
use crate::operator::complex_product::{product, tiles};
use crate::real::Real;
use crate::runtime::shared::Shared;
use crate::vector::{Kernel, Present, Promised, Vector};

/// The gradients at some frequencies.
pub struct MixBackward<'a, T> {
    pub(super) frequencies: &'a [Frequency],
    pub(super) gradient: Shared<T>,
    pub(super) correlate: Option<Correlate<'a, T>>,
    /// The adjoint.
    pub(super) matrices: Option<Matrices<'a, T>>,
    pub(super) mixing: &'a Mixing<'a, T>,
}

impl<T: Real> Kernel<T> for Promised<MixBackward<'_, T>> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let job = self.job();
        let outputs = &job.mixing.outputs;
        let mut gradient = MixingPlanes::new(2 * outputs.lanes_used());
        let mut correlating = job.correlate.as_ref().map(|part| (part, part.room::<V>()));
        let mut mixing = job.matrices.as_ref().map(|part| (part, part.room::<V>()));
        for (index, frequency) in job.frequencies.iter().enumerate() {
            let next = job.frequencies.get(index + 1);
            let one = T::one();
            // SAFETY: frequencies belong to one task each; the planes hold both copies.
            unsafe {
                gather::<V>(outputs, job.gradient, frequency, false, one, &mut gradient);
                if let Some((part, room)) = &mut correlating {
                    part.apply::<V>(frequency, next, &gradient, room);
                }
                if let Some((part, room)) = &mut mixing {
                    let spectrum = (outputs, job.gradient);
                    part.apply::<V>((frequency, next), &gradient, spectrum, room);
                }
            }
        }
    }
}

/// `out(f) = X(f)^* W(f)` summed over the pairs.
pub(super) struct Correlate<'a, T> {
    pub(super) mixing: &'a Mixing<'a, T>,
    pub(super) x: Shared<T>,
    pub(super) out: Shared<T>,
}

/// Memory of [`Correlate::apply`]: the input's rows, and sums that cannot be written in place.
pub(super) struct BackwardRoom<T: Real> {
    x: MixingPlanes<T>,
    sums: MixingPlanes<T>,
}

impl<T: Real> Correlate<'_, T> {
    #[inline(always)]
    fn room<V: Vector<Scalar = T>>(&self) -> BackwardRoom<T> {
        let (inputs, outputs) = (&self.mixing.inputs, &self.mixing.outputs);
        let padded = outputs.channels.next_multiple_of(V::LANES);
        BackwardRoom {
            x: MixingPlanes::new(2 * inputs.lanes_used()),
            sums: MixingPlanes::new(inputs.channels * padded),
        }
    }

    /// One frequency; `gradient` are its rows as `gather` leaves them.
    #[inline(always)]
    unsafe fn apply<V: Vector<Scalar = T>>(
        &self,
        frequency: &Frequency,
        next: Option<&Frequency>,
        gradient: &MixingPlanes<T>,
        BackwardRoom { x, sums }: &mut BackwardRoom<T>,
    ) {
        let inputs = &self.mixing.inputs;
        let (rows, columns) = (inputs.channels, self.mixing.outputs.channels);
        let padded = columns.next_multiple_of(V::LANES);
        let copies = 1 + usize::from(frequency.mirror.is_some());
        let inner = inputs.batch.div_ceil(2) * copies;
        let scale = T::one() / T::of(self.mixing.plan.len() as f64);
        let to = |part: usize| self.out.at((frequency.coordinate + part) * rows * columns);
        let in_place = padded == columns && copies == 2;
        let (re, im) = if in_place {
            (to(0), to(1))
        } else {
            let [re, im, _] = sums.writers();
            (re, im)
        };
        let (tiles, spectrum) = (tiles::<V>(rows, columns), (inputs, self.x));
        let ahead = self.mixing.fetch(next, self.out.at(0), spectrum, tiles);
        // SAFETY: the planes have the sizes of the product, and those of the gradient room for
        // the last row's overrun.
        unsafe {
            gather::<V>(inputs, self.x, frequency, true, scale, x);
            product::<V>(
                (rows, inner, columns),
                x.strided(1, rows),
                gradient.row_major(columns),
                ahead,
                #[inline(always)]
                |row, column, real, imaginary| {
                    real.store(re.add(row * padded + column));
                    imaginary.store(im.add(row * padded + column));
                },
            );
            if !in_place {
                // A self-conjugate bin has no imaginary coordinate.
                for (part, from) in [re, im].into_iter().enumerate().take(copies) {
                    for row in 0..rows {
                        to(part)
                            .add(row * columns)
                            .copy_from_nonoverlapping(from.add(row * padded), columns);
                    }
                }
            }
        }
    }
}
