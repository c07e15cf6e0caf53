use circulant_kernels::Activation;
use circulant_kernels::LinearGradients;
use circulant_kernels::dense::linear::{LinearOutput, linear_backward, linear_into};
use circulant_kernels::dense::linear_stack::*;

/// f64 sums of a few hundred terms of size one.
const TOLERANCE: f64 = 1e-12;

fn numbers(seed: usize, count: usize) -> Vec<f64> {
    (0..count)
        .map(|i| ((i * 7919 + seed * 104_729 + 13) % 2003) as f64 / 1001.5 - 1.0)
        .collect()
}

fn close(got: &[f64], expected: &[f64]) -> bool {
    let mut pairs = got.iter().zip(expected);
    got.len() == expected.len() && pairs.all(|(a, b)| (a - b).abs() < TOLERANCE * b.abs().max(1.0))
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
