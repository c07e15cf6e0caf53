//! GELU in its exact form and its gradient, alone or behind a bias, over matrices `[rows, n]`:
//! `gelu(x) = x P(x)`, `gelu'(x) = P(x) + x density(x)`, with `P` the normal distribution
//! `(1 + erf(x/sqrt(2)))/2`.
//!
//! With the tail `Q(a) = P(-a)` both are free of cases and cancellation but for the sign:
//! `gelu(x) = max(x, 0) - |x| Q(|x|)`, `gelu'(x) = u` for negative `x` and `1 - u` otherwise, with
//! `u = Q(|x|) - |x| density(|x|)`. The backward pass reads `x` again and saves nothing else: the
//! exponential costs less than another matrix from memory.
//!
//! In f32 the absolute error is below 2e-7 max(1, |x|) in both directions. Infinities give their
//! limits, `gelu(-inf) = 0` among them, NaN gives NaN.

use rayon::prelude::*;

use crate::error::{KernelError, expect_len};
use crate::real::Real;
use crate::runtime::chunks::{CHUNK, best_isa, fewest_chunks, rows_per_chunk};
use crate::runtime::partial_sums::{add_parts, rows_per_sum};
use crate::runtime::scratch::Scratch;
use crate::vector::normal_tail::NormalTail;
use crate::vector::{Kernel, Present, Vector};

/// `y = gelu::<V>(x)`.
///
/// ```
/// use circulant_kernels::gelu_into;
/// let mut y = [0.0f32; 2];
/// gelu_into(&[0.0, 1.0], &mut y)?;
/// assert!(y[0] == 0.0 && (y[1] - 0.841_344_7).abs() < 1e-6);
/// # Ok::<(), circulant_kernels::KernelError>(())
/// ```
pub fn gelu_into<T: Real>(x: &[T], y: &mut [T]) -> Result<(), KernelError> {
    forward(x, &[], CHUNK, y)
}

/// `y = gelu::<V>(x + bias)`, for rows as long as the bias.
pub fn bias_gelu_into<T: Real>(x: &[T], bias: &[T], y: &mut [T]) -> Result<(), KernelError> {
    expect_rows(x.len(), bias.len())?;
    forward(x, bias, rows_per_chunk(bias.len()) * bias.len(), y)
}

fn forward<T: Real>(x: &[T], bias: &[T], chunk: usize, y: &mut [T]) -> Result<(), KernelError> {
    expect_len("y", y.len(), x.len())?;
    x.par_chunks(chunk)
        .zip(y.par_chunks_mut(chunk))
        .with_min_len(fewest_chunks(x.len()))
        .for_each(|(x, y)| T::gelu_chunk(best_isa(), GeluChunk { x, bias, y }));
    Ok(())
}

/// `out = grad*gelu'(x)`: the gradient of `x` from that of `y = gelu::<V>(x)`.
pub fn gelu_backward<T: Real>(x: &[T], grad: &[T], out: &mut [T]) -> Result<(), KernelError> {
    backward(x, &[], CHUNK, grad, out)
}

/// `out = grad*gelu'(x + bias)`, the gradient of `x`, and the sum of its rows, that of the bias.
pub fn bias_gelu_backward<T: Real>(
    x: &[T],
    bias: &[T],
    grad: &[T],
    out: &mut [T],
    bias_gradient: Option<&mut [T]>,
) -> Result<(), KernelError> {
    let n = bias.len();
    expect_rows(x.len(), n)?;
    let Some(bias_gradient) = bias_gradient else {
        return backward(x, bias, rows_per_chunk(n) * n, grad, out);
    };
    expect_len("grad", grad.len(), x.len())?;
    expect_len("out", out.len(), x.len())?;
    expect_len("the gradient of the bias", bias_gradient.len(), n)?;
    let chunk = rows_per_sum(n) * n;
    let mut sums = Scratch::take(x.len().div_ceil(chunk) * n);
    x.par_chunks(chunk)
        .zip(grad.par_chunks(chunk))
        .zip(out.par_chunks_mut(chunk).zip(sums.par_chunks_mut(n)))
        .with_min_len(fewest_chunks(x.len()))
        .for_each(|((x, grad), (out, sums))| {
            let job = GeluBackwardChunk {
                x,
                bias,
                grad,
                out,
                sums: Some(sums),
            };
            T::gelu_backward_chunk(best_isa(), job);
        });
    add_parts(&sums, n, 0, bias_gradient);
    Ok(())
}

fn backward<T: Real>(
    x: &[T],
    bias: &[T],
    chunk: usize,
    grad: &[T],
    out: &mut [T],
) -> Result<(), KernelError> {
    expect_len("grad", grad.len(), x.len())?;
    expect_len("out", out.len(), x.len())?;
    x.par_chunks(chunk)
        .zip(grad.par_chunks(chunk))
        .zip(out.par_chunks_mut(chunk))
        .with_min_len(fewest_chunks(x.len()))
        .for_each(|((x, grad), out)| {
            let job = GeluBackwardChunk {
                x,
                bias,
                grad,
                out,
                sums: None,
            };
            T::gelu_backward_chunk(best_isa(), job);
        });
    Ok(())
}

pub(crate) fn expect_rows(got: usize, unit: usize) -> Result<(), KernelError> {
    if unit == 0 {
        return Err(KernelError::ZeroSize {
            what: "the length of a row",
        });
    }
    if got.is_multiple_of(unit) {
        Ok(())
    } else {
        Err(KernelError::Multiple {
            what: "x",
            unit,
            got,
        })
    }
}

#[inline(always)]
fn gelu<V: Vector>(x: V::Scalar) -> V::Scalar {
    let zero = num_traits::Zero::zero();
    let size = x.tail_argument();
    let tail = size.normal_tail::<V>();
    // Not the other way round: NaN stays NaN.
    let positive = if x < zero { zero } else { x };
    positive - tail.late * (tail.early * (tail.ratio * size))
}

#[inline(always)]
fn derivative<V: Vector>(x: V::Scalar) -> V::Scalar {
    let (zero, one): (V::Scalar, V::Scalar) = (num_traits::Zero::zero(), num_traits::One::one());
    let size = x.tail_argument();
    let tail = size.normal_tail::<V>();
    let left = tail.late * (tail.early * (tail.ratio - size));
    if x < zero { left } else { one - left }
}

/// Whole rows, or any chunk when there is no bias (an empty one).
pub struct GeluChunk<'a, T> {
    pub(crate) x: &'a [T],
    pub(crate) bias: &'a [T],
    pub(crate) y: &'a mut [T],
}

impl<T: Real> Kernel<T> for GeluChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        if self.bias.is_empty() {
            for (y, &x) in self.y.iter_mut().zip(self.x) {
                *y = gelu::<V>(x);
            }
            return;
        }
        let n = self.bias.len();
        for (x, y) in self.x.chunks_exact(n).zip(self.y.chunks_exact_mut(n)) {
            for ((y, &x), &bias) in y.iter_mut().zip(x).zip(self.bias) {
                *y = gelu::<V>(x + bias);
            }
        }
    }
}

/// The gradient of such a chunk, and the sums of its rows if they are asked for.
pub struct GeluBackwardChunk<'a, T> {
    pub(crate) x: &'a [T],
    pub(crate) bias: &'a [T],
    pub(crate) grad: &'a [T],
    pub(crate) out: &'a mut [T],
    pub(crate) sums: Option<&'a mut [T]>,
}

impl<T: Real> Kernel<T> for GeluBackwardChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        if self.bias.is_empty() {
            for ((out, &x), &g) in self.out.iter_mut().zip(self.x).zip(self.grad) {
                *out = g * derivative::<V>(x);
            }
            return;
        }
        let n = self.bias.len();
        let inputs = self.x.chunks_exact(n).zip(self.grad.chunks_exact(n));
        let rows = inputs.zip(self.out.chunks_exact_mut(n));
        let Some(sums) = self.sums else {
            for ((x, grad), out) in rows {
                for (((out, &x), &g), &bias) in out.iter_mut().zip(x).zip(grad).zip(self.bias) {
                    *out = g * derivative::<V>(x + bias);
                }
            }
            return;
        };
        sums.fill(T::zero());
        for ((x, grad), out) in rows {
            let inputs = x.iter().zip(grad).zip(self.bias);
            for ((out, sum), ((&x, &g), &bias)) in out.iter_mut().zip(sums.iter_mut()).zip(inputs) {
                *out = g * derivative::<V>(x + bias);
                *sum = *sum + *out;
            }
        }
    }
}
