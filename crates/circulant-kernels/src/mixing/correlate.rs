//! The gradient of the matrices.
//!
//! `unsafe`: see the module above.

use super::Mixing;
use super::frequencies::Frequency;
use super::planes::{Planes, gather};
use crate::blocks::Shared;
use crate::product::{ColumnMajor, RowMajor, product};
use crate::real::Real;
use crate::simd::{Kernel, Vector};

/// `out(f) = X(f)^* W(f)` summed over the pairs, at some frequencies.
pub struct Correlate<'a, T> {
    pub(super) mixing: &'a Mixing<'a, T>,
    pub(super) frequencies: &'a [Frequency],
    pub(super) x: Shared<T>,
    pub(super) gradient: Shared<T>,
    pub(super) out: Shared<T>,
}

impl<T: Real> Kernel<T> for Correlate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        let (inputs, outputs) = (&self.mixing.inputs, &self.mixing.outputs);
        let padded = outputs.channels.next_multiple_of(V::LANES);
        let pairs = inputs.batch.div_ceil(2);
        let scale = T::one() / T::of(self.mixing.plan.len() as f64);
        let plane = inputs.channels * outputs.channels;
        let mut x = Planes::new(2 * inputs.lanes_used());
        let mut w = Planes::new(2 * outputs.lanes_used());
        let mut sums = Planes::new(inputs.channels * padded);
        for (index, frequency) in self.frequencies.iter().enumerate() {
            let next = self.frequencies.get(index + 1);
            let copies = 1 + usize::from(frequency.mirror.is_some());
            // SAFETY: frequencies belong to one task each; the planes have the sizes of the
            // product below, and `w` room for the last row's overrun.
            unsafe {
                gather::<V>(inputs, self.x, frequency, next, true, scale, &mut x);
                gather::<V>(
                    outputs,
                    self.gradient,
                    frequency,
                    next,
                    false,
                    T::one(),
                    &mut w,
                );
                let in_place = padded == outputs.channels && frequency.mirror.is_some();
                let to = |part: usize| self.out.at((frequency.coordinate + part) * plane);
                let target = if in_place {
                    RowMajor {
                        re: to(0),
                        im: to(1),
                        row: padded,
                    }
                } else {
                    sums.row_major(padded)
                };
                product::<V>(
                    (inputs.channels, pairs * copies, outputs.channels),
                    ColumnMajor {
                        re: x.re(),
                        im: x.im(),
                        column: inputs.channels,
                    },
                    w.row_major(outputs.channels),
                    target,
                    self.mixing.matrix_ahead(next, self.out.at(0)),
                );
                if !in_place {
                    // A self-conjugate bin has no imaginary coordinate.
                    for part in 0..copies {
                        for i in 0..inputs.channels {
                            let from = sums.memory[part * sums.plane + i * padded..].as_ptr();
                            let to = to(part).add(i * outputs.channels);
                            to.copy_from_nonoverlapping(from, outputs.channels);
                        }
                    }
                }
            }
        }
    }
}
