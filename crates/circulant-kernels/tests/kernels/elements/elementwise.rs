use circulant_kernels::Real;
use circulant_kernels::elements::elementwise::*;
use circulant_kernels::runtime::chunks::CHUNK;

use crate::oracle::{normal, same_on_threads};

/// Four units in the last place of an f32, as of `tanh_lanes`.
const RELATIVE: f64 = 4.0 * 1.2e-7;
/// Empty, shorter than a vector, a chunk and a rest, many chunks.
const LENGTHS: [usize; 6] = [0, 1, 7, 33, CHUNK + 5, 3 * CHUNK + 1];

fn numbers<T: Real>(len: usize) -> Vec<T> {
    normal(3, 1, len)
}

#[test]
fn tanh_is_that_of_the_standard_library() {
    for len in LENGTHS {
        let x: Vec<f32> = numbers(len);
        let mut y = vec![0.0; len];
        tanh_into(&x, &mut y).unwrap();
        for (x, y) in x.iter().zip(&y) {
            let exact = f64::from(*x).tanh();
            assert!((f64::from(*y) - exact).abs() <= RELATIVE * exact.abs());
        }
        let x: Vec<f64> = numbers(len);
        let mut y = vec![0.0; len];
        tanh_into(&x, &mut y).unwrap();
        assert!(x.iter().zip(&y).all(|(x, y)| x.tanh() == *y));
    }
}

#[test]
fn nan_stays_nan() {
    let mut y = [0.0f32; 9];
    tanh_into(&[f32::NAN; 9], &mut y).unwrap();
    assert!(y.iter().all(|y| y.is_nan()));
}

#[test]
fn the_gradient_is_one_minus_the_square() {
    for len in LENGTHS {
        let (y, grad): (Vec<f32>, Vec<f32>) = (numbers(len), numbers(len));
        let mut out = vec![0.0; len];
        tanh_backward(&y, &grad, &mut out).unwrap();
        for ((out, y), g) in out.iter().zip(&y).zip(&grad) {
            assert_eq!(*out, g * (1.0 - y * y));
        }
    }
}

#[test]
fn the_bias_is_added_before_tanh() {
    for (rows, n) in [(1, 1), (3, 10), (40, 784), (2, 10_000)] {
        let x: Vec<f32> = numbers(rows * n);
        let bias: Vec<f32> = numbers(n);
        let sums: Vec<f32> = (0..rows * n).map(|i| x[i] + bias[i % n]).collect();
        let mut expected = vec![0.0; rows * n];
        tanh_into(&sums, &mut expected).unwrap();
        let mut y = x;
        bias_tanh(&mut y, &bias).unwrap();
        for (y, expected) in y.iter().zip(&expected) {
            assert!((y - expected).abs() <= 4.0 * f32::EPSILON);
        }
    }
}

#[test]
fn column_sums_are_exact_to_a_rounding() {
    for (rows, n) in [(0, 3), (1, 1), (4000, 10), (512, 784), (3, 50_000)] {
        let x: Vec<f32> = numbers(rows * n);
        let mut sums = vec![1.0; n];
        column_sums(&x, &mut sums).unwrap();
        for (j, sum) in sums.iter().enumerate() {
            let exact: f64 = x.iter().skip(j).step_by(n).map(|x| f64::from(*x)).sum();
            assert!((f64::from(*sum) - exact).abs() <= 1e-7 * exact.abs() + 1e-10);
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let x: Vec<f32> = numbers(512 * 784);
    same_on_threads(|| {
        let (mut y, mut sums) = (vec![0.0; x.len()], vec![0.0; 784]);
        tanh_into(&x, &mut y).unwrap();
        column_sums(&x, &mut sums).unwrap();
        (y, sums)
    });
}

#[test]
fn wrong_sizes_are_errors() {
    assert!(tanh_into(&[0.0f32; 3], &mut [0.0; 2]).is_err());
    assert!(tanh_backward(&[0.0f32; 3], &[0.0; 3], &mut [0.0; 2]).is_err());
    assert!(tanh_backward(&[0.0f32; 3], &[0.0; 2], &mut [0.0; 3]).is_err());
    assert!(bias_tanh(&mut [0.0f32; 3], &[0.0; 2]).is_err());
    assert!(bias_tanh(&mut [0.0f32; 3], &[]).is_err());
    assert!(column_sums(&[0.0f32; 3], &mut [0.0; 2]).is_err());
}
