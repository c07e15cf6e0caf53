//! Several dense layers on one input, `y[i] = x W[i] + b[i]`: the queries, keys and values of attention.
//!
//! | matrix | shape, row-major |
//! | --- | --- |
//! | `x` | `[rows, inputs]` |
//! | `W` | `[layers, inputs, outputs]` |
//! | `b` | `[layers, outputs]` |
//! | `y`, its gradient `g` | `[layers, rows, outputs]` |
//!
//! `dx = sum over i of g[i] W[i]^T`, added up within the products.

use crate::dense::large_product::{MatrixView, product};
use crate::dense::linear::{LinearGradients, add_bias};
use crate::elements::elementwise::column_sums;
use crate::error::{KernelError, expect_len, expect_volume, rows_of};
use crate::real::Real;

/// Sizes of a stack.
struct Sizes {
    rows: usize,
    inputs: usize,
    outputs: usize,
}

impl Sizes {
    fn new<T>(x: &[T], weight: &[T], bias: usize, layers: usize) -> Result<Self, KernelError> {
        let outputs = rows_of("b", bias, layers)?;
        let inputs = rows_of("W", weight.len(), layers * outputs)?;
        let rows = rows_of("x", x.len(), inputs)?;
        Ok(Self {
            rows,
            inputs,
            outputs,
        })
    }
}

/// `y = x W` without a bias, for a `W` of `inputs` rows.
pub fn matrix_product_into<T: Real>(
    x: &[T],
    weight: &[T],
    inputs: usize,
    y: &mut [T],
) -> Result<(), KernelError> {
    let outputs = rows_of("W", weight.len(), inputs)?;
    let rows = rows_of("x", x.len(), inputs)?;
    expect_volume("y", y.len(), &[rows, outputs])?;
    let weight = MatrixView::new(weight, inputs, outputs);
    product(MatrixView::new(x, rows, inputs), weight, false, y);
    Ok(())
}

/// The outputs of `layers` layers.
pub fn linear_stack_into<T: Real>(
    x: &[T],
    weight: &[T],
    bias: &[T],
    layers: usize,
    y: &mut [T],
) -> Result<(), KernelError> {
    let Sizes {
        rows,
        inputs,
        outputs,
    } = Sizes::new(x, weight, bias.len(), layers)?;
    expect_volume("y", y.len(), &[layers, rows, outputs])?;
    if rows == 0 {
        return Ok(());
    }
    let parameters = weight
        .chunks_exact(inputs * outputs)
        .zip(bias.chunks_exact(outputs));
    for ((weight, bias), y) in parameters.zip(y.chunks_exact_mut(rows * outputs)) {
        let weight = MatrixView::new(weight, inputs, outputs);
        product(MatrixView::new(x, rows, inputs), weight, false, y);
        add_bias(y, bias);
    }
    Ok(())
}

/// The gradients of [`linear_stack_into`] from that of its output; a bias of `bias_len` values.
pub fn linear_stack_backward<T: Real>(
    x: &[T],
    weight: &[T],
    bias_len: usize,
    layers: usize,
    grad: &[T],
    mut gradients: LinearGradients<'_, T>,
) -> Result<(), KernelError> {
    let Sizes {
        rows,
        inputs,
        outputs,
    } = Sizes::new(x, weight, bias_len, layers)?;
    expect_volume("the gradient", grad.len(), &[layers, rows, outputs])?;
    let slots = [
        ("the gradient of x", &gradients.x, x.len()),
        ("the gradient of W", &gradients.weight, weight.len()),
        ("the gradient of b", &gradients.bias, bias_len),
    ];
    for (what, slot, expected) in slots {
        expect_len(what, slot.as_ref().map_or(expected, |s| s.len()), expected)?;
    }
    for layer in 0..layers {
        let grad = &grad[layer * rows * outputs..(layer + 1) * rows * outputs];
        let own = layer * inputs * outputs..(layer + 1) * inputs * outputs;
        let grad_matrix = MatrixView::new(grad, rows, outputs);
        if let Some(out) = gradients.x.as_deref_mut() {
            let weight = MatrixView::new(&weight[own.clone()], inputs, outputs).transposed();
            product(grad_matrix, weight, layer > 0, out);
        }
        if let Some(out) = gradients.weight.as_deref_mut() {
            let x = MatrixView::new(x, rows, inputs).transposed();
            product(x, grad_matrix, false, &mut out[own]);
        }
        if let Some(out) = gradients.bias.as_deref_mut() {
            column_sums(grad, &mut out[layer * outputs..(layer + 1) * outputs])?;
        }
    }
    Ok(())
}
