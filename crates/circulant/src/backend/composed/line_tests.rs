//! Transforms along one axis against sums in f64.

use burn::backend::Flex;
use burn::tensor::{Shape, TensorData};
use burn_flex::FlexTensor;

use super::*;
use crate::nn::InitialNumbers;

fn make(values: Vec<f64>, shape: &[usize]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, Shape::from(shape.to_vec())))
}

fn host(x: FlexTensor) -> Vec<f64> {
    x.into_data().try_into_vec::<f64>().expect("f64")
}

fn normal(seed: u64, count: usize) -> Vec<f64> {
    InitialNumbers::new(seed).normal(count, 1.0)
}

/// Against the sum, for every way: short lengths, lengths with good factors, primes, twice a prime.
#[test]
fn bins_are_those_of_the_sum_and_back_is_the_adjoint() {
    const ROWS: usize = 3;
    for (n, bins, way) in [
        (1, 1, "matrix"),
        (2, 2, "matrix"),
        (97, 49, "matrix"),
        (784, 8, "matrix"),
        (128, 65, "stages"),
        (784, 393, "stages"),
        (225, 225, "stages"),
        (720, 100, "stages"),
        (787, 394, "chirp"),
        (1018, 510, "chirp"),
        (211, 211, "stages"),
        (1021, 1021, "chirp"),
    ] {
        let line = Line::<Flex>::new(n, bins, &make);
        let found = match line.way {
            Way::Matrix(_) => "matrix",
            Way::Stages(_) => "stages",
            Way::Chirp(_) => "chirp",
        };
        assert_eq!(found, way, "{n} to {bins}");
        let (re, im) = (normal(1, ROWS * n), normal(2, ROWS * n));
        let all = line.there(
            make(re.clone(), &[ROWS, n]),
            Some(make(im.clone(), &[ROWS, n])),
        );
        let real = line.there(make(re.clone(), &[ROWS, n]), None);
        let (y_re, y_im) = (host(all.re), host(all.im));
        let (real_re, real_im) = (host(real.re), host(real.im));
        let (g_re, g_im) = (normal(3, ROWS * bins), normal(4, ROWS * bins));
        let back = line.back(ComplexPair {
            re: make(g_re.clone(), &[ROWS, bins]),
            im: make(g_im.clone(), &[ROWS, bins]),
        });
        let (b_re, b_im) = (host(back.re), host(back.im));
        let real = host(line.back_real(ComplexPair {
            re: make(g_re.clone(), &[ROWS, bins]),
            im: make(g_im.clone(), &[ROWS, bins]),
        }));
        let close = |what: &str, got: [f64; 2], expected: [f64; 2]| {
            for (got, expected) in got.into_iter().zip(expected) {
                assert!(
                    (got - expected).abs() < 1e-10,
                    "{what} of {n}: {got}, {expected}"
                );
            }
        };
        for row in 0..ROWS {
            for v in 0..bins {
                let (mut sum, mut of_real) = ([0.0; 2], [0.0; 2]);
                for w in 0..n {
                    let (sin, cos) = turn(v, w, n).sin_cos();
                    let [x, y] = [re[row * n + w], im[row * n + w]];
                    sum[0] += x * cos + y * sin;
                    sum[1] += y * cos - x * sin;
                    of_real[0] += x * cos;
                    of_real[1] -= x * sin;
                }
                let (at, scale) = (row * bins + v, scale_of(n));
                close("bin", [y_re[at], y_im[at]], sum.map(|x| x * scale));
                let found = [real_re[at], real_im[at]];
                close("bin of a real row", found, of_real.map(|x| x * scale));
            }
            for w in 0..n {
                let mut sum = [0.0; 2];
                for v in 0..bins {
                    let (sin, cos) = turn(v, w, n).sin_cos();
                    let [x, y] = [g_re[row * bins + v], g_im[row * bins + v]];
                    sum[0] += x * cos - y * sin;
                    sum[1] += y * cos + x * sin;
                }
                let at = row * n + w;
                close("value", [b_re[at], b_im[at]], sum.map(|x| x * scale_of(n)));
                close("real part", [real[at], 0.0], [sum[0] * scale_of(n), 0.0]);
            }
        }
    }
}

/// A matrix of 16384 bins would have 268 million values.
#[test]
fn constants_grow_with_the_length() {
    use std::cell::Cell;
    for n in [1 << 14, 16_381] {
        let values = Cell::new(0);
        let count = |numbers: Vec<f64>, shape: &[usize]| {
            values.set(values.get() + numbers.len());
            make(numbers, shape)
        };
        Line::<Flex>::new(n, n / 2 + 1, &count);
        assert!(values.get() < 24 * n, "{} for {n}", values.get());
    }
}
