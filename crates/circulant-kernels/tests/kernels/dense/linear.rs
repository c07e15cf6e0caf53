use circulant_kernels::dense::linear::*;
use circulant_kernels::{Activation, KernelError};

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
