//! A residual connection with what usually stands before it, `y = x + dropout(a + b)`, over `[rows, n]`: `b` is the bias of the
//! layer that made `a`, added here because the sum passes through the L1 or L2 cache anyway.
//!
//! The gradient of `x` is that of `y`; the gradient of `a` is its [`dropout_into`](crate::dropout_into), and the sum of the rows of that
//! is the gradient of `b`.

use crate::error::{KernelError, expect_len, rows_of};
use crate::real::Real;
use crate::runtime::chunks::{best_isa, each_chunk, rows_per_chunk};
use crate::transformer::dropout::{Dropout, Place};
use crate::vector::{Kernel, Present, Vector};

/// `y = x + dropout(addend + bias)`; the rows are as long as the bias, which may be empty.
pub fn residual_into<T: Real>(
    x: &[T],
    addend: &[T],
    bias: &[T],
    dropout: Option<Dropout>,
    y: &mut [T],
) -> Result<(), KernelError> {
    expect_len("the addend", addend.len(), x.len())?;
    expect_len("y", y.len(), x.len())?;
    if !bias.is_empty() {
        rows_of("x", x.len(), bias.len())?;
    }
    let width = bias.len().max(1);
    let chunk = rows_per_chunk(width) * width;
    let inputs = [(x, chunk), (addend, chunk)];
    each_chunk(x.len(), inputs, [(y, chunk)], |index, [x, addend], [y]| {
        let job = ResidualSumChunk {
            x,
            addend,
            bias,
            dropout,
            place: Place::of(index * chunk),
            y,
        };
        T::residual_sum_chunk(best_isa(), job);
    });
    Ok(())
}

/// Whole rows, or any chunk when there is no bias (an empty one).
pub struct ResidualSumChunk<'a, T> {
    x: &'a [T],
    addend: &'a [T],
    bias: &'a [T],
    dropout: Option<Dropout>,
    place: Place,
    y: &'a mut [T],
}

impl<T: Real> Kernel<T> for ResidualSumChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let (x, y) = (self.x, self.y);
        if self.bias.is_empty() {
            y.copy_from_slice(self.addend);
        } else {
            let n = self.bias.len();
            for (y, addend) in y.chunks_exact_mut(n).zip(self.addend.chunks_exact(n)) {
                for ((y, &addend), &bias) in y.iter_mut().zip(addend).zip(self.bias) {
                    *y = addend + bias;
                }
            }
        }
        let Some(dropout) = self.dropout else {
            for (y, &x) in y.iter_mut().zip(x) {
                *y = x + *y;
            }
            return;
        };
        let (scale, threshold) = (T::of(dropout.scale()), dropout.threshold());
        dropout.for_groups(
            self.place,
            x.len(),
            #[inline(always)]
            |own, numbers| {
                let pairs = y[own.clone()].iter_mut().zip(&x[own]);
                for ((y, &x), &number) in pairs.zip(numbers) {
                    let kept = if number < threshold {
                        T::zero()
                    } else {
                        *y * scale
                    };
                    *y = x + kept;
                }
            },
        );
    }
}
