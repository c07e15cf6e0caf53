use circulant_kernels::transformer::gelu::*;
use circulant_kernels::{Dropout, NoiseKey, Real, dropout_into};

use crate::oracle::{check_differences, close, normal, same_on_threads, slow_tail};

/// The bound of the head of the file.
const ERROR: f64 = 2e-7;
/// Roundings of f64 beside values up to ten.
const WIDE_ERROR: f64 = 4e-15;

fn distribution(x: f64) -> f64 {
    if x < 0.0 {
        slow_tail(-x)
    } else {
        1.0 - slow_tail(x)
    }
}

fn oracle(x: f64) -> f64 {
    x * distribution(x)
}

fn slope(x: f64) -> f64 {
    let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    distribution(x) + x * density
}

fn check_everywhere<T: Real>(error: f64) {
    let x: Vec<T> = (-150_000..150_000)
        .map(|i| T::of(f64::from(i) * 1e-4))
        .collect();
    let (mut y, mut d) = (x.clone(), x.clone());
    gelu_into(&x, &mut y).unwrap();
    gelu_backward(&x, &vec![T::one(); x.len()], &mut d).unwrap();
    for ((x, y), d) in x.iter().zip(&y).zip(&d) {
        let x = x.wide();
        let bound = error * x.abs().max(1.0);
        assert!((y.wide() - oracle(x)).abs() <= bound, "gelu({x}) = {y:?}");
        assert!((d.wide() - slope(x)).abs() <= bound, "gelu'({x}) = {d:?}");
    }
}

#[test]
fn accurate_everywhere() {
    check_everywhere::<f32>(ERROR);
    check_everywhere::<f64>(WIDE_ERROR);
}

/// `1 + erf` of f32 would be zero from -5.5 on.
#[test]
fn far_to_the_left_digits_remain() {
    let mut y = [0.0f32; 3];
    gelu_into(&[-6.0, -9.0, -12.0], &mut y).unwrap();
    for (y, x) in y.into_iter().zip([-6.0, -9.0, -12.0]) {
        assert!((f64::from(y) / oracle(x) - 1.0).abs() < 1e-5);
    }
}

#[test]
fn the_ends() {
    let x = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN, -0.0];
    let (mut y, mut d) = ([0.0; 5], [0.0; 5]);
    gelu_into(&x, &mut y).unwrap();
    gelu_backward(&x, &[1.0; 5], &mut d).unwrap();
    assert!(y[0] == f32::INFINITY && y[1] == 0.0 && y[2].is_nan());
    assert!(d[0] == 1.0 && d[1] == 0.0 && d[2].is_nan());
    assert!(y[3] == 0.0 && d[3] == 0.0 && y[4] == 0.0 && d[4] == 0.5);
}

#[test]
fn bias_and_dropout_are_their_parts() {
    let key = NoiseKey { seed: 1, stream: 3 };
    for (rows, n) in [(0, 3), (1, 1), (3, 7), (31, 64), (200, 513), (2, 10_007)] {
        let [x, grad] = [0, 2].map(|stream| normal::<f64>(4, stream, rows * n));
        let bias: Vec<f64> = normal(4, 1, n);
        let sums: Vec<f64> = (0..rows * n).map(|i| x[i] + bias[i % n]).collect();
        for dropout in [None, Some(Dropout::new(0.3, key).unwrap())] {
            let drop = |x: &[f64]| {
                let mut y = x.to_vec();
                if let Some(dropout) = dropout {
                    dropout_into(x, dropout, &mut y).unwrap();
                }
                y
            };
            let (mut plain, mut y) = (x.clone(), vec![f64::NAN; x.len()]);
            gelu_into(&sums, &mut plain).unwrap();
            bias_gelu_dropout_into(&x, &bias, dropout, &mut y).unwrap();
            assert_eq!(y, drop(&plain));

            let mut of_bias = vec![f64::NAN; n];
            gelu_backward(&sums, &drop(&grad), &mut plain).unwrap();
            bias_gelu_dropout_backward(&x, &bias, dropout, &grad, &mut y, &mut of_bias).unwrap();
            assert_eq!(y, plain);
            let columns = (0..n).map(|j| y.iter().skip(j).step_by(n).sum::<f64>());
            close("bias", &of_bias, &columns.collect::<Vec<_>>(), 1e-12);
        }
    }
}

#[test]
fn the_gradient_is_that_of_central_differences() {
    let x: Vec<f64> = normal(4, 5, 101);
    let mut gradient = x.clone();
    gelu_backward(&x, &[1.0; 101], &mut gradient).unwrap();
    check_differences(&[x], &[gradient], 1e-9, usize::MAX, |[x]| {
        let mut y = x.clone();
        gelu_into(x, &mut y).unwrap();
        y.iter().sum()
    });
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let [x, grad] = [0, 1].map(|stream| normal::<f32>(4, stream, 300 * 512));
    same_on_threads(|| {
        let (mut out, mut sums) = (x.clone(), vec![0.0; 512]);
        bias_gelu_dropout_backward(&x, &x[..512], None, &grad, &mut out, &mut sums).unwrap();
        (out, sums)
    });
}

#[test]
fn wrong_sizes_are_errors() {
    let (x, mut out) = ([0.0f32; 3], [0.0; 3]);
    assert!(gelu_into(&x, &mut out[1..]).is_err());
    assert!(gelu_backward(&x, &x[1..], &mut out).is_err());
    let dropout = Dropout::new(0.1, NoiseKey { seed: 1, stream: 3 }).ok();
    for dropout in [None, dropout] {
        assert!(bias_gelu_dropout_into(&x, &x[1..], dropout, &mut out).is_err());
        assert!(bias_gelu_dropout_into(&x, &[], dropout, &mut out).is_err());
        assert!(bias_gelu_dropout_into(&x, &x, dropout, &mut out[1..]).is_err());
        let of_bias = &mut [0.0; 2];
        let result = bias_gelu_dropout_backward(&x, &x, dropout, &x, &mut out, of_bias);
        assert!(result.is_err());
    }
}
