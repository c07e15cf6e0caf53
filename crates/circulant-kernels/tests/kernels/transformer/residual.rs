use circulant_kernels::transformer::residual::*;
use circulant_kernels::{Dropout, NoiseKey, dropout_into};

use crate::oracle::normal;

#[test]
fn equals_its_parts() {
    let key = NoiseKey { seed: 1, stream: 3 };
    for (rows, n) in [(0, 3), (1, 1), (3, 7), (200, 513), (70, 128), (2, 10_007)] {
        let (x, a, b): (Vec<f64>, Vec<f64>, Vec<f64>) = (
            normal(4, 0, rows * n),
            normal(4, 1, rows * n),
            normal(4, 2, n),
        );
        for (bias, rate) in [(&b[..], 0.3), (&b, 0.0), (&[], 0.3), (&[], 0.0)] {
            let dropout = (rate > 0.0).then(|| Dropout::new(rate, key).unwrap());
            let sums = a.iter().enumerate();
            let sums: Vec<f64> = sums
                .map(|(i, a)| a + bias.get(i % n).unwrap_or(&0.0))
                .collect();
            let mut expected = sums.clone();
            if let Some(dropout) = dropout {
                dropout_into(&sums, dropout, &mut expected).unwrap();
            }
            let mut y = vec![f64::NAN; x.len()];
            residual_into(&x, &a, bias, dropout, &mut y).unwrap();
            assert!(
                y.iter()
                    .zip(x.iter().zip(&expected))
                    .all(|(y, (x, e))| *y == x + e)
            );
        }
    }
}

#[test]
fn wrong_sizes_are_errors() {
    assert!(residual_into(&[0.0f32; 3], &[0.0; 2], &[], None, &mut [0.0; 3]).is_err());
    assert!(residual_into(&[0.0f32; 3], &[0.0; 3], &[0.0; 2], None, &mut [0.0; 3]).is_err());
    assert!(residual_into(&[0.0f32; 3], &[0.0; 3], &[], None, &mut [0.0; 2]).is_err());
}
