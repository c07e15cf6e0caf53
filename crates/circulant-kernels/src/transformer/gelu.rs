//! GELU in its exact form and its gradient, alone, behind a bias, and before dropout (the hidden layer of a transformer's
//! MLP, whose matrices are its largest), over matrices `[rows, n]`:
//! `gelu(x) = x P(x)`, `gelu'(x) = P(x) + x density(x)`, with `P` the normal distribution
//! `(1 + erf(x/sqrt(2)))/2`.
//!
//! With the tail `Q(a) = P(-a)` both are free of cases and cancellation but for the sign:
//! `gelu(x) = max(x, 0) - |x| Q(|x|)`, `gelu'(x) = u` for negative `x` and `1 - u` otherwise, with
//! `u = Q(|x|) - |x| density(|x|)`. The backward pass reads `x` again and saves nothing else: the
//! exponential costs less than another matrix from memory. On its way to dropout a chunk passes through scratch memory in the
//! L1 or L2 cache; the mask is that of [`dropout_into`](crate::dropout_into).
//!
//! In f32 the absolute error is below 2e-7 max(1, |x|) in both directions. Infinities give their
//! limits, `gelu(-inf) = 0` among them, NaN gives NaN.

use crate::error::{KernelError, expect_len, rows_of};
use crate::real::Real;
use crate::runtime::chunks::{CHUNK, best_isa, each_chunk, rows_per_chunk};
use crate::runtime::partial_sums::{add_parts, rows_per_sum};
use crate::runtime::scratch::Scratch;
use crate::transformer::dropout::{Dropout, DropoutChunk};
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
    forward(x, &[], None, y)
}

/// `y = dropout(gelu(x + bias))`, for rows as long as the bias.
pub fn bias_gelu_dropout_into<T: Real>(
    x: &[T],
    bias: &[T],
    dropout: Option<Dropout>,
    y: &mut [T],
) -> Result<(), KernelError> {
    rows_of("x", x.len(), bias.len())?;
    forward(x, bias, dropout, y)
}

fn forward<T: Real>(
    x: &[T],
    bias: &[T],
    dropout: Option<Dropout>,
    y: &mut [T],
) -> Result<(), KernelError> {
    expect_len("y", y.len(), x.len())?;
    let chunk = chunk_of(bias);
    each_chunk(x.len(), [(x, chunk)], [(y, chunk)], |index, [x], [y]| {
        let Some(dropout) = dropout else {
            return T::gelu_chunk(best_isa(), GeluChunk { x, bias, y });
        };
        let mut gelu = Scratch::take(x.len());
        let y_of_gelu = &mut gelu[..];
        T::gelu_chunk(best_isa(), GeluChunk { x, bias, y: y_of_gelu });
        T::dropout_chunk(best_isa(), DropoutChunk::new(&gelu, dropout, index * chunk, y));
    });
    Ok(())
}

/// `out = grad*gelu'(x)`: the gradient of `x` from that of `y = gelu::<V>(x)`.
pub fn gelu_backward<T: Real>(x: &[T], grad: &[T], out: &mut [T]) -> Result<(), KernelError> {
    backward(x, &[], None, grad, out, None)
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
    rows_of("x", x.len(), bias.len())?;
    backward(x, bias, dropout, grad, out, Some(bias_gradient))
}

fn backward<T: Real>(
    x: &[T],
    bias: &[T],
    dropout: Option<Dropout>,
    grad: &[T],
    out: &mut [T],
    bias_gradient: Option<&mut [T]>,
) -> Result<(), KernelError> {
    expect_len("grad", grad.len(), x.len())?;
    expect_len("out", out.len(), x.len())?;
    let (mut chunk, mut own_sums) = (chunk_of(bias), 0);
    if let Some(gradient) = &bias_gradient {
        expect_len("the gradient of the bias", gradient.len(), bias.len())?;
        (chunk, own_sums) = (rows_per_sum(bias.len()) * bias.len(), bias.len());
    }
    let mut sums = Scratch::take(x.len().div_ceil(chunk) * own_sums);
    let outputs = [(out, chunk), (&mut sums[..], own_sums)];
    let inputs = [(x, chunk), (grad, chunk)];
    each_chunk(x.len(), inputs, outputs, |index, [x, grad], [out, sums]| {
        let mut kept = Scratch::take(if dropout.is_some() { x.len() } else { 0 });
        let mut job = GeluBackwardChunk {
            x,
            bias,
            grad,
            out,
            sums,
        };
        if let Some(dropout) = dropout {
            let place = index * chunk;
            T::dropout_chunk(best_isa(), DropoutChunk::new(grad, dropout, place, &mut kept));
            job.grad = &kept;
        }
        T::gelu_backward_chunk(best_isa(), job);
    });
    if let Some(gradient) = bias_gradient {
        add_parts(&sums, bias.len(), 0, gradient);
    }
    Ok(())
}

/// Values of a chunk: whole rows, if there is a bias.
fn chunk_of<T>(bias: &[T]) -> usize {
    if bias.is_empty() {
        CHUNK
    } else {
        rows_per_chunk(bias.len()) * bias.len()
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
    x: &'a [T],
    bias: &'a [T],
    y: &'a mut [T],
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

/// The gradient of such a chunk, and the sums of its rows unless there is no room for them.
pub struct GeluBackwardChunk<'a, T> {
    x: &'a [T],
    bias: &'a [T],
    grad: &'a [T],
    out: &'a mut [T],
    sums: &'a mut [T],
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
        if self.sums.is_empty() {
            for ((x, grad), out) in rows {
                for (((out, &x), &g), &bias) in out.iter_mut().zip(x).zip(grad).zip(self.bias) {
                    *out = g * derivative::<V>(x + bias);
                }
            }
            return;
        }
        let sums = self.sums;
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
