//! Shared by the test binaries: an f64 device, numbers, comparisons.
#![allow(dead_code, reason = "every test binary uses a part of it")]

pub mod ranks;

use std::sync::OnceLock;

use burn::tensor::{Device, FloatDType, Tensor, TensorData};

/// The CPU with f64 as its float type. Burn allows this once per process, before any tensor.
pub fn double() -> Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    DEVICE
        .get_or_init(|| {
            let mut device = Device::flex();
            device
                .configure(FloatDType::F64)
                .expect("no tensor exists yet");
            device
        })
        .clone()
}

/// `count` numbers in (-1, 1) that depend on the seed only.
pub fn numbers(seed: u64, count: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}

/// A tensor of such numbers.
pub fn random<const D: usize>(seed: u64, shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(
        TensorData::new(numbers(seed, shape.iter().product()), shape),
        device,
    )
}

/// A vector on the f64 device that differentiates.
pub fn vector(values: &[f64]) -> Tensor<1> {
    let data = TensorData::new(values.to_vec(), [values.len()]);
    Tensor::from_data(data, &double().autodiff())
}

/// The gradients of `sum(weight * map(inputs))` for every input, by autodiff and by central differences in f64, are the same.
pub fn assert_gradients<const N: usize>(
    map: impl Fn([Tensor<1>; N]) -> Tensor<1>,
    inputs: [Vec<f64>; N],
) {
    /// Central differences in f64 are good to about this.
    const CENTRAL: f64 = 1e-6;
    /// With this step truncation (step^2) and rounding (1e-16/step) are both near 1e-10.
    const STEP: f64 = 1e-5;
    let leaves = inputs.clone().map(|values| vector(&values).require_grad());
    let y = map(leaves.clone());
    let weight = numbers(99, y.dims()[0]);
    let gradients = (y * vector(&weight)).sum().backward();
    let value = |inputs: &[Vec<f64>; N]| -> f64 {
        let y = host(map(inputs.clone().map(|values| vector(&values))));
        y.iter().zip(&weight).map(|(y, w)| y * w).sum()
    };
    for (which, leaf) in leaves.iter().enumerate() {
        let gradient = leaf.grad(&gradients).expect("every input takes part");
        let expected: Vec<f64> = (0..inputs[which].len())
            .map(|i| {
                let moved = |by: f64| {
                    let mut inputs = inputs.clone();
                    inputs[which][i] += by;
                    value(&inputs)
                };
                (moved(STEP) - moved(-STEP)) / (2.0 * STEP)
            })
            .collect();
        let gap = difference(&host(gradient), &expected);
        assert!(gap < CENTRAL, "input {which}: {gap}");
    }
}

/// The numbers of a tensor.
pub fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor
        .into_data()
        .convert::<f64>()
        .try_into_vec()
        .expect("converted to f64")
}

/// The largest difference, relative to the largest expected number (or 1 if that is smaller).
pub fn difference(got: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(got.len(), expected.len(), "lengths");
    let scale = expected
        .iter()
        .fold(1.0_f64, |scale, value| scale.max(value.abs()));
    let worst = got.iter().zip(expected).fold(0.0_f64, |worst, (a, b)| {
        let gap = (a - b).abs();
        // `max` would drop a NaN.
        if gap.is_nan() {
            f64::INFINITY
        } else {
            worst.max(gap)
        }
    });
    worst / scale
}

/// The largest singular value of a row-major matrix by one-sided Jacobi rotations: slow, obvious and accurate to a few roundings.
pub fn largest_singular_value(rows: usize, columns: usize, values: &[f64]) -> f64 {
    assert_eq!(values.len(), rows * columns, "a whole matrix");
    let column = |c: usize| (0..rows).map(|r| values[r * columns + c]).collect();
    let mut matrix: Vec<Vec<f64>> = (0..columns).map(column).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    for _ in 0..100 {
        let mut rotated = false;
        for p in 0..columns {
            for q in p + 1..columns {
                let (alpha, beta) = (dot(&matrix[p], &matrix[p]), dot(&matrix[q], &matrix[q]));
                let gamma = dot(&matrix[p], &matrix[q]);
                if gamma.abs() <= 1e-15 * (alpha * beta).sqrt() || gamma == 0.0 {
                    continue;
                }
                rotated = true;
                let zeta = (beta - alpha) / (2.0 * gamma);
                let t = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
                let c = 1.0 / (1.0 + t * t).sqrt();
                let (before, after) = matrix.split_at_mut(q);
                for (x, y) in before[p].iter_mut().zip(&mut after[0]) {
                    (*x, *y) = (c * *x - c * t * *y, c * t * *x + c * *y);
                }
            }
        }
        if !rotated {
            break;
        }
    }
    matrix
        .iter()
        .map(|column| dot(column, column).sqrt())
        .fold(0.0, f64::max)
}
