//! The dense layer `y = act(x W + b)` and its gradients, into memory that the caller reuses.
//!
//! | matrix | shape, row-major |
//! | --- | --- |
//! | `x` | `[rows, inputs]` |
//! | `W` | `[inputs, outputs]` |
//! | `y`, its gradient `g` | `[rows, outputs]` |
//!
//! With `g' = g` or, behind tanh, `g' = g (1 - y^2)`: `dx = g' W^T`, `dW = x^T g'`, `db = sum of the rows of g'`. What is
//! gained over a framework's own is the memory, no output is zeroed, copied or newly mapped first, and on AVX2 the products
//! (see `large_product/`).

use crate::dense::large_product::{MatrixView, product};
use crate::elements::activation::Activation;
use crate::elements::elementwise::{bias_tanh, column_sums, tanh_backward};
use crate::error::{KernelError, expect_len, expect_volume, rows_of};
use crate::real::Real;
use crate::runtime::chunks::{each_chunk, rows_per_chunk};

/// Adds the bias to every row.
pub(crate) fn add_bias<T: Real>(y: &mut [T], bias: &[T]) {
    let chunk = rows_per_chunk(bias.len()) * bias.len();
    each_chunk(y.len(), [], [(y, chunk)], |_, [], [y]| {
        for row in y.chunks_exact_mut(bias.len()) {
            row.iter_mut().zip(bias).for_each(|(y, b)| *y = *y + *b);
        }
    });
}

/// `y = act(x W + b)`; `W` has `b.len()` columns.
pub fn linear_into<T: Real>(
    x: &[T],
    weight: &[T],
    bias: &[T],
    activation: Activation,
    y: &mut [T],
) -> Result<(), KernelError> {
    let outputs = bias.len();
    let inputs = rows_of("W", weight.len(), outputs)?;
    let rows = rows_of("x", x.len(), inputs)?;
    expect_volume("y", y.len(), &[rows, outputs])?;
    product(
        MatrixView::new(x, rows, inputs),
        MatrixView::new(weight, inputs, outputs),
        false,
        y,
    );
    match activation {
        Activation::Identity => add_bias(y, bias),
        Activation::Tanh => bias_tanh(y, bias)?,
    }
    Ok(())
}

/// What a backward pass writes; what is `None` is not computed.
#[derive(Debug)]
pub struct LinearGradients<'a, T> {
    /// `[rows, inputs]`.
    pub x: Option<&'a mut [T]>,
    /// `[inputs, outputs]`.
    pub weight: Option<&'a mut [T]>,
    /// `[outputs]`.
    pub bias: Option<&'a mut [T]>,
}

/// What a backward pass reads of the output. Without an activation neither `y` nor `scratch` is looked at.
#[derive(Debug)]
pub struct LinearOutput<'a, T> {
    /// The activation.
    pub activation: Activation,
    /// The output, `[rows, outputs]`.
    pub y: &'a [T],
    /// Its gradient.
    pub grad: &'a [T],
    /// Room for as many values.
    pub scratch: &'a mut [T],
}

/// The gradients of [`linear_into`] for a layer of `outputs` outputs.
pub fn linear_backward<T: Real>(
    x: &[T],
    weight: &[T],
    outputs: usize,
    output: LinearOutput<'_, T>,
    gradients: LinearGradients<'_, T>,
) -> Result<(), KernelError> {
    let inputs = rows_of("W", weight.len(), outputs)?;
    let rows = rows_of("x", x.len(), inputs)?;
    expect_volume("the gradient", output.grad.len(), &[rows, outputs])?;
    let grad = match output.activation {
        Activation::Identity => output.grad,
        Activation::Tanh => {
            tanh_backward(output.y, output.grad, output.scratch)?;
            output.scratch
        }
    };
    let grad_matrix = MatrixView::new(grad, rows, outputs);
    if let Some(out) = gradients.x {
        expect_len("the gradient of x", out.len(), x.len())?;
        product(
            grad_matrix,
            MatrixView::new(weight, inputs, outputs).transposed(),
            false,
            out,
        );
    }
    if let Some(out) = gradients.weight {
        expect_len("the gradient of W", out.len(), weight.len())?;
        let x = MatrixView::new(x, rows, inputs).transposed();
        product(x, grad_matrix, false, out);
    }
    if let Some(out) = gradients.bias {
        expect_len("the gradient of b", out.len(), outputs)?;
        column_sums(grad, out)?;
    }
    Ok(())
}
