use circulant_kernels::dense::linear::*;
use circulant_kernels::dense::linear_stack::*;
use circulant_kernels::{Activation, KernelError};

use crate::oracle::{close, normal};

/// f64 sums of a few hundred terms of size one.
const TOLERANCE: f64 = 1e-12;

#[test]
fn equals_the_sums() {
    for (rows, inputs, outputs) in [(1, 1, 1), (3, 5, 2), (64, 49, 10), (130, 100, 97)] {
        let lengths = [rows * inputs, inputs * outputs, outputs, rows * outputs];
        let [x, weight, bias, grad] =
            [0, 1, 2, 3].map(|i| normal::<f64>(1, i, lengths[i as usize]));
        for activation in [Activation::Identity, Activation::Tanh] {
            let tanh = activation == Activation::Tanh;
            let (mut expected_y, mut expected_x) = (Vec::new(), vec![0.0; x.len()]);
            let (mut expected_weight, mut expected_bias) =
                (vec![0.0; weight.len()], vec![0.0; outputs]);
            for (row, o) in (0..rows).flat_map(|row| (0..outputs).map(move |o| (row, o))) {
                let terms = (0..inputs).map(|k| x[row * inputs + k] * weight[k * outputs + o]);
                let sum = terms.sum::<f64>() + bias[o];
                let y = if tanh { sum.tanh() } else { sum };
                let slope = if tanh { 1.0 - y * y } else { 1.0 };
                let inner = grad[row * outputs + o] * slope;
                for k in 0..inputs {
                    expected_x[row * inputs + k] += inner * weight[k * outputs + o];
                    expected_weight[k * outputs + o] += inner * x[row * inputs + k];
                }
                expected_bias[o] += inner;
                expected_y.push(y);
            }
            let nan = |len: usize| vec![f64::NAN; len];
            let (mut y, mut scratch) = (nan(grad.len()), nan(grad.len()));
            linear_into(&x, &weight, &bias, activation, &mut y).expect("sizes fit");
            close("y", &y, &expected_y, TOLERANCE);
            let [mut dx, mut dw, mut db] = [x.len(), weight.len(), outputs].map(nan);
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
            close("dx", &dx, &expected_x, TOLERANCE);
            close("dw", &dw, &expected_weight, TOLERANCE);
            close("db", &db, &expected_bias, TOLERANCE);
        }
    }
}

#[test]
fn wrong_sizes_are_named() {
    let run = |x: usize, y: usize| {
        let mut y = vec![0.0; y];
        linear_into(
            &vec![0.0; x],
            &[0.0; 6],
            &[0.0; 2],
            Activation::Identity,
            &mut y,
        )
    };
    let error = run(5, 4).unwrap_err();
    assert!(matches!(
        error,
        KernelError::Multiple {
            unit: 3,
            got: 5,
            ..
        }
    ));
    let error = run(6, 3).unwrap_err();
    assert!(matches!(
        error,
        KernelError::Length {
            expected: 4,
            got: 3,
            ..
        }
    ));
}

#[test]
fn a_stack_equals_its_layers_one_by_one() {
    for (layers, rows, inputs, outputs) in
        [(1, 1, 1, 1), (3, 5, 7, 2), (2, 130, 70, 33), (3, 0, 4, 2)]
    {
        let (one_weight, one_y) = (inputs * outputs, rows * outputs);
        let lengths = [
            rows * inputs,
            layers * one_weight,
            layers * outputs,
            layers * one_y,
        ];
        let [x, weight, bias, grad] =
            [0, 1, 2, 3].map(|i| normal::<f64>(1, i, lengths[i as usize]));
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
            let (weight, bias) = (
                &weight[i * one_weight..][..one_weight],
                &bias[i * outputs..][..outputs],
            );
            let mut one = vec![0.0; one_y];
            linear_into(&x, weight, bias, Activation::Identity, &mut one).unwrap();
            close("y", &y[i * one_y..][..one_y], &one, TOLERANCE);
            let (mut ox, mut ow, mut ob) = (x.clone(), weight.to_vec(), bias.to_vec());
            let output = LinearOutput {
                activation: Activation::Identity,
                y: &[],
                grad: &grad[i * one_y..][..one_y],
                scratch: &mut [],
            };
            let slots = LinearGradients {
                x: Some(&mut ox),
                weight: Some(&mut ow),
                bias: Some(&mut ob),
            };
            linear_backward(&x, weight, outputs, output, slots).unwrap();
            sum.iter_mut().zip(&ox).for_each(|(sum, x)| *sum += x);
            close("dw", &dw[i * one_weight..][..one_weight], &ow, TOLERANCE);
            close("db", &db[i * outputs..][..outputs], &ob, TOLERANCE);
        }
        close("dx", &dx, &sum, TOLERANCE);
    }
}

#[test]
fn wrong_sizes_of_a_stack_are_errors() {
    let mut y = [0.0f32; 3];
    let mut run = |x: usize, weight: usize, bias: usize| {
        let zeros = [0.0; 6];
        linear_stack_into(&zeros[..x], &zeros[..weight], &zeros[..bias], 3, &mut y)
    };
    assert!(run(2, 6, 3).is_ok());
    assert!(run(2, 5, 3).is_err());
    assert!(run(2, 6, 2).is_err());
    assert!(run(3, 6, 3).is_err());
    assert!(matrix_product_into(&[0.0; 3], &[0.0; 6], 2, &mut y).is_err());
}
