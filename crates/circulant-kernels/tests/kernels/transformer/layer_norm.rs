use circulant_kernels::Real;
use circulant_kernels::transformer::layer_norm::*;

use crate::oracle::{check_differences, close, dot, narrow, normal, same_on_threads, wide};

/// Rows and their length: one number, odd, prime, more than one chunk.
const SIZES: [(usize, usize); 7] = [
    (0, 3),
    (1, 1),
    (5, 2),
    (3, 7),
    (300, 31),
    (17, 128),
    (2, 9001),
];
const EPSILON: f64 = 1e-5;

/// `x`, gamma, beta; and the gradients of `y` and of the way around the layer.
#[derive(Clone)]
struct Case<T> {
    inputs: [Vec<T>; 3],
    grad: Vec<T>,
    residual: Vec<T>,
}

/// `[y, mean, inverse]` and `[dx, dgamma, dbeta]`.
type Results<T> = ([Vec<T>; 3], [Vec<T>; 3]);

impl<T: Real> Case<T> {
    fn new(rows: usize, n: usize) -> Self {
        let values = |stream, len| narrow::<T>(&normal::<f64>(6, stream, len));
        // An offset shows cancellation in the variance, if there is any.
        let x = values(0, rows * n).into_iter().map(|x| x + T::of(3.0));
        Self {
            inputs: [x.collect(), values(2, n), values(3, n)],
            grad: values(4, rows * n),
            residual: values(5, rows * n),
        }
    }

    fn wide(&self) -> Case<f64> {
        Case {
            inputs: self.inputs.each_ref().map(|values| wide(values)),
            grad: wide(&self.grad),
            residual: wide(&self.residual),
        }
    }

    fn run(&self, residual: Option<&[T]>) -> Results<T> {
        let [x, gamma, beta] = &self.inputs;
        let (len, n) = (x.len(), gamma.len());
        let [
            mut y,
            mut mean,
            mut inverse_deviation,
            mut dx,
            mut dgamma,
            mut dbeta,
        ] = [len, len / n, len / n, len, n, n].map(|len| vec![T::nan(); len]);
        let layer = LayerNorm {
            gamma,
            beta,
            epsilon: EPSILON,
        };
        let statistics = RowStatistics {
            mean: &mut mean[..],
            inverse_deviation: &mut inverse_deviation,
        };
        layer_norm_into(x, layer, &mut y, statistics).unwrap();
        let statistics = RowStatistics {
            mean: &mean[..],
            inverse_deviation: &inverse_deviation,
        };
        let gradients = LayerNormGradients {
            x: &mut dx,
            gamma: &mut dgamma,
            beta: &mut dbeta,
        };
        layer_norm_backward(x, gamma, statistics, &self.grad, residual, gradients).unwrap();
        ([y, mean, inverse_deviation], [dx, dgamma, dbeta])
    }
}

/// `y` by the definition.
fn oracle([x, gamma, beta]: &[Vec<f64>; 3]) -> Vec<f64> {
    let n = gamma.len();
    let mut y = x.to_vec();
    for row in y.chunks_mut(n) {
        let mean = row.iter().sum::<f64>() / n as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        for (j, y) in row.iter_mut().enumerate() {
            *y = (*y - mean) / (variance + EPSILON).sqrt() * gamma[j] + beta[j];
        }
    }
    y
}

fn check_forward<T: Real>(tolerance: f64) {
    for (rows, n) in SIZES {
        let case = Case::<T>::new(rows, n);
        let ([y, ..], _) = case.run(None);
        close("y", &y, &oracle(&case.wide().inputs), tolerance);
    }
}

#[test]
fn forward_is_the_definition() {
    check_forward::<f32>(4e-6);
    check_forward::<f64>(1e-13);
}

/// Every gradient of `sum(grad*y) + sum(residual*x)`; without a residual, of the first sum alone.
#[test]
fn gradients_are_those_of_central_differences() {
    for (rows, n) in [(1, 1), (2, 2), (5, 7), (3, 33)] {
        let mut case = Case::<f64>::new(rows, n);
        let residual = case.residual.clone();
        for residual in [Some(&residual[..]), None] {
            if residual.is_none() {
                case.residual.fill(0.0);
            }
            let (_, gradients) = case.run(residual);
            let loss = |inputs: &[Vec<f64>; 3]| {
                dot(&oracle(inputs), &case.grad) + dot(&inputs[0], &case.residual)
            };
            // The third derivative grows with the inverse of the deviation of a short row.
            check_differences(&case.inputs, &gradients, 1e-6, usize::MAX, loss);
        }
    }
}

#[test]
fn f32_gradients_are_those_of_f64() {
    for (rows, n) in SIZES.into_iter().filter(|(_, n)| *n > 2) {
        let case = Case::<f32>::new(rows, n);
        let wide = case.wide();
        let (_, exact) = wide.run(Some(&wide.residual));
        let (_, narrow) = case.run(Some(&case.residual));
        for (narrow, exact) in narrow.iter().zip(&exact) {
            close("gradient", narrow, exact, 3e-5);
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let case = Case::<f32>::new(1000, 128);
    same_on_threads(|| case.run(Some(&case.residual)));
}

#[test]
fn wrong_sizes_are_errors() {
    let run = |x: usize, n: usize, y: usize, rows: usize| {
        let (mut mean, mut inverse) = (vec![0.0f32; rows], vec![0.0; rows]);
        let layer = LayerNorm {
            gamma: &vec![0.0; n],
            beta: &vec![0.0; n],
            epsilon: EPSILON,
        };
        let statistics = RowStatistics {
            mean: &mut mean[..],
            inverse_deviation: &mut inverse,
        };
        layer_norm_into(&vec![0.0; x], layer, &mut vec![0.0; y], statistics)
    };
    assert!(run(6, 3, 6, 2).is_ok());
    assert!(run(6, 0, 6, 2).is_err());
    assert!(run(7, 3, 7, 2).is_err());
    assert!(run(6, 3, 5, 2).is_err());
    assert!(run(6, 3, 6, 3).is_err());
}
