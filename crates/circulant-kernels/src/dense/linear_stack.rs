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

use crate::dense::large_product::{Matrix, product};
use crate::dense::linear::{LinearGradients, add_bias, rows_of};
use crate::elements::elementwise::column_sums;
use crate::error::{KernelError, expect_len, expect_volume};
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
    let weight = Matrix::new(weight, inputs, outputs);
    product(Matrix::new(x, rows, inputs), weight, false, y);
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
        let weight = Matrix::new(weight, inputs, outputs);
        product(Matrix::new(x, rows, inputs), weight, false, y);
        add_bias(y, bias);
    }
    Ok(())
}

/// The gradients of [`linear_stack_into`] from that of its output; a bias of `bias_len` numbers.
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
        let grad_matrix = Matrix::new(grad, rows, outputs);
        if let Some(out) = gradients.x.as_deref_mut() {
            let weight = Matrix::new(&weight[own.clone()], inputs, outputs).transposed();
            product(grad_matrix, weight, layer > 0, out);
        }
        if let Some(out) = gradients.weight.as_deref_mut() {
            let x = Matrix::new(x, rows, inputs).transposed();
            product(x, grad_matrix, false, &mut out[own]);
        }
        if let Some(out) = gradients.bias.as_deref_mut() {
            column_sums(grad, &mut out[layer * outputs..(layer + 1) * outputs])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::linear::{LinearOutput, linear_backward, linear_into};
    use crate::operator::plan::Activation;

    /// f64 sums of a few hundred terms of size one.
    const TOLERANCE: f64 = 1e-12;

    fn numbers(seed: usize, count: usize) -> Vec<f64> {
        (0..count)
            .map(|i| ((i * 7919 + seed * 104_729 + 13) % 2003) as f64 / 1001.5 - 1.0)
            .collect()
    }

    fn close(got: &[f64], expected: &[f64]) -> bool {
        let mut pairs = got.iter().zip(expected);
        got.len() == expected.len()
            && pairs.all(|(a, b)| (a - b).abs() < TOLERANCE * b.abs().max(1.0))
    }

    #[test]
    fn equals_the_layers_one_by_one() {
        for (layers, rows, inputs, outputs) in
            [(1, 1, 1, 1), (3, 5, 7, 2), (2, 130, 70, 33), (3, 0, 4, 2)]
        {
            let (x, weight) = (
                numbers(0, rows * inputs),
                numbers(1, layers * inputs * outputs),
            );
            let (bias, grad) = (
                numbers(2, layers * outputs),
                numbers(3, layers * rows * outputs),
            );
            let mut y = vec![f64::NAN; grad.len()];
            linear_stack_into(&x, &weight, &bias, layers, &mut y).unwrap();
            let [mut dx, mut dw, mut db] = [&x, &weight, &bias].map(|v| vec![f64::NAN; v.len()]);
            let slots = LinearGradients {
                x: Some(&mut dx),
                weight: Some(&mut dw),
                bias: Some(&mut db),
            };
            linear_stack_backward(&x, &weight, bias.len(), layers, &grad, slots).unwrap();
            let mut sum = vec![0.0; x.len()];
            for i in 0..layers {
                let weight = &weight[i * inputs * outputs..(i + 1) * inputs * outputs];
                let own = i * rows * outputs..(i + 1) * rows * outputs;
                let bias = &bias[i * outputs..(i + 1) * outputs];
                let mut one = vec![0.0; rows * outputs];
                linear_into(&x, weight, bias, Activation::Identity, &mut one).unwrap();
                assert!(close(&y[own.clone()], &one));
                let (mut ox, mut ow, mut ob) = (x.clone(), weight.to_vec(), bias.to_vec());
                let output = LinearOutput {
                    activation: Activation::Identity,
                    y: &[],
                    grad: &grad[own],
                    scratch: &mut [],
                };
                let slots = LinearGradients {
                    x: Some(&mut ox),
                    weight: Some(&mut ow),
                    bias: Some(&mut ob),
                };
                linear_backward(&x, weight, outputs, output, slots).unwrap();
                sum.iter_mut().zip(&ox).for_each(|(sum, x)| *sum += x);
                assert!(close(
                    &dw[i * inputs * outputs..(i + 1) * inputs * outputs],
                    &ow
                ));
                assert!(close(&db[i * outputs..(i + 1) * outputs], &ob));
            }
            assert!(close(&dx, &sum));
        }
    }

    #[test]
    fn wrong_sizes_are_errors() {
        let mut y = [0.0f32; 3];
        assert!(linear_stack_into(&[0.0; 2], &[0.0; 6], &[0.0; 3], 3, &mut y).is_ok());
        assert!(linear_stack_into(&[0.0; 2], &[0.0; 5], &[0.0; 3], 3, &mut y).is_err());
        assert!(linear_stack_into(&[0.0; 2], &[0.0; 6], &[0.0; 2], 3, &mut y).is_err());
        assert!(linear_stack_into(&[0.0; 3], &[0.0; 6], &[0.0; 3], 3, &mut y).is_err());
        assert!(matrix_product_into(&[0.0; 3], &[0.0; 6], 2, &mut y).is_err());
    }
}
