//! `dropout(gelu(x + b))` over `[rows, n]` and its gradients in one pass over memory each: the hidden layer of a transformer's MLP, whose
//! matrices are its largest.
//!
//! A chunk of the one passes through scratch memory in the L1 or L2 cache on its way to the other; the mask is that of
//! [`dropout_into`](crate::dropout_into).

use rayon::prelude::*;

use crate::error::{KernelError, expect_len};
use crate::real::Real;
use crate::runtime::chunks::{best_isa, fewest_chunks, rows_per_chunk};
use crate::runtime::partial_sums::{add_parts, rows_per_sum};
use crate::runtime::scratch::Scratch;
use crate::transformer::dropout::{Dropout, DropoutChunk, Place};
use crate::transformer::gelu::{
    GeluBackwardChunk, GeluChunk, bias_gelu_backward, bias_gelu_into, expect_rows,
};

/// `y = dropout(gelu(x + bias))`, for rows as long as the bias.
pub fn bias_gelu_dropout_into<T: Real>(
    x: &[T],
    bias: &[T],
    dropout: Option<Dropout>,
    y: &mut [T],
) -> Result<(), KernelError> {
    let Some(dropout) = dropout else {
        return bias_gelu_into(x, bias, y);
    };
    expect_rows(x.len(), bias.len())?;
    expect_len("y", y.len(), x.len())?;
    let chunk = rows_per_chunk(bias.len()) * bias.len();
    x.par_chunks(chunk)
        .zip(y.par_chunks_mut(chunk))
        .enumerate()
        .with_min_len(fewest_chunks(x.len()))
        .for_each_init(
            || Scratch::take(chunk),
            |scratch, (index, (x, y))| {
                let gelu = &mut scratch[..x.len()];
                T::gelu_chunk(best_isa(), GeluChunk { x, bias, y: gelu });
                let job = DropoutChunk {
                    x: gelu,
                    y,
                    dropout,
                    place: Place::of(index * chunk),
                };
                T::dropout_chunk(best_isa(), job);
            },
        );
    Ok(())
}

/// `out = dropout(grad)*gelu'(x + bias)`, the gradient of `x`, and the sum of its rows, that of the bias.
pub fn bias_gelu_dropout_backward<T: Real>(
    x: &[T],
    bias: &[T],
    dropout: Option<Dropout>,
    grad: &[T],
    out: &mut [T],
    bias_gradient: &mut [T],
) -> Result<(), KernelError> {
    let Some(dropout) = dropout else {
        return bias_gelu_backward(x, bias, grad, out, Some(bias_gradient));
    };
    let n = bias.len();
    expect_rows(x.len(), n)?;
    expect_len("grad", grad.len(), x.len())?;
    expect_len("out", out.len(), x.len())?;
    expect_len("the gradient of the bias", bias_gradient.len(), n)?;
    let chunk = rows_per_sum(n) * n;
    let mut sums = Scratch::take(x.len().div_ceil(chunk) * n);
    x.par_chunks(chunk)
        .zip(grad.par_chunks(chunk))
        .zip(out.par_chunks_mut(chunk).zip(sums.par_chunks_mut(n)))
        .enumerate()
        .with_min_len(fewest_chunks(x.len()))
        .for_each_init(
            || Scratch::take(chunk),
            |scratch, (index, ((x, grad), (out, sums)))| {
                let kept = &mut scratch[..x.len()];
                let job = DropoutChunk {
                    x: grad,
                    y: kept,
                    dropout,
                    place: Place::of(index * chunk),
                };
                T::dropout_chunk(best_isa(), job);
                let job = GeluBackwardChunk {
                    x,
                    bias,
                    grad: kept,
                    out,
                    sums: Some(sums),
                };
                T::gelu_backward_chunk(best_isa(), job);
            },
        );
    add_parts(&sums, n, 0, bias_gradient);
    Ok(())
}
