//! `dropout(gelu(x + b))` over `[rows, n]` and its gradients in one pass over memory each: the hidden layer of a transformer's MLP, whose
//! matrices are its largest.
//!
//! A chunk of the one passes through scratch memory in the near cache on its way to the other; the mask is that of
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::normal::standard_normal;
    use crate::random::philox::NoiseKey;
    use crate::transformer::dropout::dropout_into;

    fn numbers(stream: u64, len: usize) -> Vec<f64> {
        let mut out = vec![0.0; len];
        standard_normal(NoiseKey { seed: 4, stream }, &mut out);
        out
    }

    #[test]
    fn equals_its_parts() {
        let key = NoiseKey { seed: 1, stream: 3 };
        for (rows, n) in [(0, 3), (1, 1), (3, 7), (31, 64), (200, 513), (2, 10_007)] {
            let (x, bias, grad) = (numbers(0, rows * n), numbers(1, n), numbers(2, rows * n));
            for dropout in [None, Some(Dropout::new(0.3, key).unwrap())] {
                let drop = |x: &[f64]| {
                    let mut y = x.to_vec();
                    if let Some(dropout) = dropout {
                        dropout_into(x, dropout, &mut y).unwrap();
                    }
                    y
                };
                let (mut plain, mut y) = (x.clone(), vec![f64::NAN; x.len()]);
                bias_gelu_into(&x, &bias, &mut plain).unwrap();
                bias_gelu_dropout_into(&x, &bias, dropout, &mut y).unwrap();
                assert_eq!(y, drop(&plain));

                let [mut expected, mut of_bias] = [vec![f64::NAN; n], vec![f64::NAN; n]];
                let dropped = drop(&grad);
                bias_gelu_backward(&x, &bias, &dropped, &mut plain, Some(&mut expected)).unwrap();
                bias_gelu_dropout_backward(&x, &bias, dropout, &grad, &mut y, &mut of_bias)
                    .unwrap();
                assert_eq!((y, of_bias), (plain, expected));
            }
        }
    }

    #[test]
    fn wrong_sizes_are_errors() {
        let dropout = Dropout::new(0.1, NoiseKey { seed: 1, stream: 3 }).ok();
        assert!(bias_gelu_dropout_into(&[0.0f32; 3], &[0.0; 2], dropout, &mut [0.0; 3]).is_err());
        assert!(bias_gelu_dropout_into(&[0.0f32; 3], &[0.0; 3], dropout, &mut [0.0; 2]).is_err());
        let (x, mut out, mut sums) = ([0.0f32; 3], [0.0; 3], [0.0; 2]);
        let result = bias_gelu_dropout_backward(&x, &x, dropout, &x, &mut out, &mut sums);
        assert!(result.is_err());
    }
}
