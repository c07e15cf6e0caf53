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

use rayon::prelude::*;

use crate::dense::large_product::{Matrix, product};
use crate::elements::elementwise::{bias_tanh, column_sums, tanh_backward};
use crate::error::{KernelError, expect_len, expect_volume};
use crate::operator::plan::Activation;
use crate::real::Real;
use crate::runtime::chunks::{fewest_chunks, rows_per_chunk};

/// Adds the bias to every row.
pub(crate) fn add_bias<T: Real>(y: &mut [T], bias: &[T]) {
    let (numbers, chunk) = (y.len(), rows_per_chunk(bias.len()) * bias.len());
    y.par_chunks_mut(chunk.max(1))
        .with_min_len(fewest_chunks(numbers))
        .for_each(|y| {
            for row in y.chunks_exact_mut(bias.len()) {
                row.iter_mut().zip(bias).for_each(|(y, b)| *y = *y + *b);
            }
        });
}

/// Rows of `x`, or an error that names the sizes.
pub(crate) fn rows_of(what: &'static str, len: usize, unit: usize) -> Result<usize, KernelError> {
    if unit == 0 || !len.is_multiple_of(unit) {
        return Err(KernelError::Multiple {
            what,
            unit,
            got: len,
        });
    }
    Ok(len / unit)
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
        Matrix::new(x, rows, inputs),
        Matrix::new(weight, inputs, outputs),
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
    /// Room for as many numbers.
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
    let grad_matrix = Matrix::new(grad, rows, outputs);
    if let Some(out) = gradients.x {
        expect_len("the gradient of x", out.len(), x.len())?;
        product(
            grad_matrix,
            Matrix::new(weight, inputs, outputs).transposed(),
            false,
            out,
        );
    }
    if let Some(out) = gradients.weight {
        expect_len("the gradient of W", out.len(), weight.len())?;
        let x = Matrix::new(x, rows, inputs).transposed();
        product(x, grad_matrix, false, out);
    }
    if let Some(out) = gradients.bias {
        expect_len("the gradient of b", out.len(), outputs)?;
        column_sums(grad, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// f64 sums of a few hundred terms of size one.
    const TOLERANCE: f64 = 1e-12;

    fn numbers(seed: usize, count: usize) -> Vec<f64> {
        (0..count)
            .map(|i| ((i * 7919 + seed * 104_729 + 13) % 2003) as f64 / 1001.5 - 1.0)
            .collect()
    }

    fn close(got: &[f64], expected: &[f64]) {
        assert_eq!(got.len(), expected.len());
        for (a, b) in got.iter().zip(expected) {
            assert!((a - b).abs() < TOLERANCE * b.abs().max(1.0), "{a} and {b}");
        }
    }

    #[test]
    fn equals_the_sums() {
        for (rows, inputs, outputs) in [(1, 1, 1), (3, 5, 2), (64, 49, 10), (130, 100, 97)] {
            let (x, weight) = (numbers(1, rows * inputs), numbers(2, inputs * outputs));
            let (bias, grad) = (numbers(3, outputs), numbers(4, rows * outputs));
            for activation in [Activation::Identity, Activation::Tanh] {
                let plain = |row: usize, column: usize| {
                    let sum: f64 = (0..inputs)
                        .map(|k| x[row * inputs + k] * weight[k * outputs + column])
                        .sum();
                    match activation {
                        Activation::Identity => sum + bias[column],
                        Activation::Tanh => (sum + bias[column]).tanh(),
                    }
                };
                let expected: Vec<f64> = (0..rows * outputs)
                    .map(|i| plain(i / outputs, i % outputs))
                    .collect();
                let mut y = vec![f64::NAN; rows * outputs];
                linear_into(&x, &weight, &bias, activation, &mut y).expect("sizes fit");
                close(&y, &expected);

                let inner: Vec<f64> = grad
                    .iter()
                    .zip(&expected)
                    .map(|(g, y)| match activation {
                        Activation::Identity => *g,
                        Activation::Tanh => g * (1.0 - y * y),
                    })
                    .collect();
                let mut scratch = vec![f64::NAN; rows * outputs];
                let mut dx = vec![f64::NAN; rows * inputs];
                let mut dw = vec![f64::NAN; inputs * outputs];
                let mut db = vec![f64::NAN; outputs];
                let gradients = LinearGradients {
                    x: Some(&mut dx),
                    weight: Some(&mut dw),
                    bias: Some(&mut db),
                };
                let output = LinearOutput {
                    activation,
                    y: &y,
                    grad: &grad,
                    scratch: &mut scratch,
                };
                linear_backward(&x, &weight, outputs, output, gradients).expect("sizes fit");
                let sum = |count: usize, term: &dyn Fn(usize) -> f64| (0..count).map(term).sum();
                let expected: Vec<f64> = (0..rows * inputs)
                    .map(|i| {
                        sum(outputs, &|o| {
                            inner[i / inputs * outputs + o] * weight[i % inputs * outputs + o]
                        })
                    })
                    .collect();
                close(&dx, &expected);
                let expected: Vec<f64> = (0..inputs * outputs)
                    .map(|i| {
                        sum(rows, &|row| {
                            x[row * inputs + i / outputs] * inner[row * outputs + i % outputs]
                        })
                    })
                    .collect();
                close(&dw, &expected);
                let expected: Vec<f64> = (0..outputs)
                    .map(|o| sum(rows, &|row| inner[row * outputs + o]))
                    .collect();
                close(&db, &expected);
            }
        }
    }

    #[test]
    fn wrong_sizes_are_named() {
        let mut y = [0.0; 4];
        let error = linear_into(
            &[0.0; 5],
            &[0.0; 6],
            &[0.0; 2],
            Activation::Identity,
            &mut y,
        );
        assert!(matches!(
            error,
            Err(KernelError::Multiple {
                unit: 3,
                got: 5,
                ..
            })
        ));
        let error = linear_into(
            &[0.0; 6],
            &[0.0; 6],
            &[0.0; 2],
            Activation::Identity,
            &mut y[1..],
        );
        assert!(matches!(
            error,
            Err(KernelError::Length {
                expected: 4,
                got: 3,
                ..
            })
        ));
    }
}
