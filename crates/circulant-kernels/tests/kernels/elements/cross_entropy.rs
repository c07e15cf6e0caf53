use circulant_kernels::Real;
use circulant_kernels::elements::cross_entropy::*;
use circulant_kernels::random::philox::{NoiseKey, uniform_u64};

use crate::oracle::{check_differences, close, narrow, normal, wide};

/// Rounding of an f32 row.
const RELATIVE: f64 = 1e-6;
/// Central differences of the f64 loss, relative to a gradient of order one.
const DIFFERENCES: f64 = 1e-8;

fn problem<T: Real>(rows: usize, classes: usize) -> (Vec<T>, Vec<i64>) {
    let key = NoiseKey { seed: 1, stream: 2 };
    let logits: Vec<f64> = normal(1, 2, rows * classes);
    let logits: Vec<f64> = logits.iter().map(|x| 5.0 * x).collect();
    let label = |row| (uniform_u64(key, row) % classes as u64) as i64;
    (narrow(&logits), (0..rows as u64).map(label).collect())
}

fn naive(logits: &[f64], classes: usize, labels: &[i64]) -> f64 {
    let rows = logits.chunks(classes).zip(labels);
    rows.map(|(row, &label)| {
        let sum: f64 = row.iter().map(|x| x.exp()).sum();
        -(row[label as usize].exp() / sum).ln()
    })
    .sum()
}

fn check<T: Real>(rows: usize, classes: usize, tolerance: f64) {
    let (logits, labels) = problem::<T>(rows, classes);
    let expected = naive(&wide(&logits), classes, &labels);
    let loss = cross_entropy(&logits, classes, &labels, None).unwrap();
    assert!((loss - expected).abs() <= tolerance * (1.0 + expected));
}

#[test]
fn the_loss_is_the_naive_one() {
    for (rows, classes) in [(0, 3), (1, 1), (7, 10), (512, 10), (3000, 10), (5, 200)] {
        check::<f64>(rows, classes, 1e-12);
        check::<f32>(rows, classes, RELATIVE);
    }
}

#[test]
fn the_gradient_is_that_of_the_loss() {
    let (rows, classes) = (5, 7);
    let (logits, labels) = problem::<f64>(rows, classes);
    let mut gradient = vec![0.0; logits.len()];
    let with = cross_entropy(&logits, classes, &labels, Some(&mut gradient)).unwrap();
    let loss = |logits: &Vec<f64>| cross_entropy(logits, classes, &labels, None).unwrap();
    assert_eq!(with, loss(&logits));
    check_differences(&[logits], &[gradient], DIFFERENCES, usize::MAX, |[x]| {
        loss(x)
    });
}

#[test]
fn the_gradient_of_f32_is_that_of_f64() {
    for (rows, classes) in [(512, 10), (4000, 10), (3, 1000)] {
        let (logits, labels) = problem::<f32>(rows, classes);
        let mut gradient = vec![0.0; logits.len()];
        cross_entropy(&logits, classes, &labels, Some(&mut gradient)).unwrap();
        let mut exact = vec![0.0; logits.len()];
        cross_entropy(&wide(&logits), classes, &labels, Some(&mut exact)).unwrap();
        close("gradient", &gradient, &exact, RELATIVE);
    }
}

#[test]
fn large_logits_do_not_overflow_and_nan_is_seen() {
    let mut gradient = [0.0f32; 2];
    let loss = cross_entropy(&[1e30, -1e30], 2, &[0], Some(&mut gradient)).unwrap();
    assert_eq!((loss, gradient), (0.0, [0.0, 0.0]));
    assert!(cross_entropy(&[1e30f32, -1e30], 2, &[1], None).unwrap() > 1e30);
    for nan in [
        [f32::NAN, 0.0, 1.0],
        [0.0, f32::NAN, 1.0],
        [0.0, 1.0, f32::NAN],
    ] {
        assert!(cross_entropy(&nan, 3, &[0], None).unwrap().is_nan());
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let error = cross_entropy(&[0.0f32; 6], 3, &[0, 3], None).unwrap_err();
    let text = error.to_string();
    assert_eq!(text, "label 3 of row 1: expected a class in 0..3");
    assert!(cross_entropy(&[0.0f32; 6], 3, &[-1, 0], None).is_err());
    assert!(cross_entropy(&[0.0f32; 6], 3, &[0], None).is_err());
    assert!(cross_entropy::<f32>(&[], 0, &[], None).is_err());
    assert!(cross_entropy(&[0.0f32; 6], 3, &[0, 0], Some(&mut [0.0; 3])).is_err());
}
