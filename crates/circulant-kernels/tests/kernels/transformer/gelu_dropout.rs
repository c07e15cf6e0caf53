use circulant_kernels::random::normal::standard_normal;
use circulant_kernels::random::philox::NoiseKey;
use circulant_kernels::transformer::dropout::dropout_into;
use circulant_kernels::transformer::gelu_dropout::*;
use circulant_kernels::{Dropout, bias_gelu_backward, bias_gelu_into};

fn numbers(stream: u64, len: usize) -> Vec<f64> {
    let mut out = vec![0.0; len];
    standard_normal(NoiseKey { seed: 4, stream }, &mut out);
    out
}

#[test]
fn equals_its_parts() {
    let key = NoiseKey { seed: 1, stream: 3 };
    for (rows, n) in [(0, 3), (1, 1), (3, 7), (31, 64), (200, 513), (2, 10_007)] {
        let (x, bias, grad) = (numbers(0, rows * n), numbers(1, n), numbers(2, rows * n));
        for dropout in [None, Some(Dropout::new(0.3, key).unwrap())] {
            let drop = |x: &[f64]| {
                let mut y = x.to_vec();
                if let Some(dropout) = dropout {
                    dropout_into(x, dropout, &mut y).unwrap();
                }
                y
            };
            let (mut plain, mut y) = (x.clone(), vec![f64::NAN; x.len()]);
            bias_gelu_into(&x, &bias, &mut plain).unwrap();
            bias_gelu_dropout_into(&x, &bias, dropout, &mut y).unwrap();
            assert_eq!(y, drop(&plain));

            let [mut expected, mut of_bias] = [vec![f64::NAN; n], vec![f64::NAN; n]];
            let dropped = drop(&grad);
            bias_gelu_backward(&x, &bias, &dropped, &mut plain, Some(&mut expected)).unwrap();
            bias_gelu_dropout_backward(&x, &bias, dropout, &grad, &mut y, &mut of_bias).unwrap();
            assert_eq!((y, of_bias), (plain, expected));
        }
    }
}

#[test]
fn wrong_sizes_are_errors() {
    let dropout = Dropout::new(0.1, NoiseKey { seed: 1, stream: 3 }).ok();
    assert!(bias_gelu_dropout_into(&[0.0f32; 3], &[0.0; 2], dropout, &mut [0.0; 3]).is_err());
    assert!(bias_gelu_dropout_into(&[0.0f32; 3], &[0.0; 3], dropout, &mut [0.0; 2]).is_err());
    let (x, mut out, mut sums) = ([0.0f32; 3], [0.0; 3], [0.0; 2]);
    let result = bias_gelu_dropout_backward(&x, &x, dropout, &x, &mut out, &mut sums);
    assert!(result.is_err());
}
