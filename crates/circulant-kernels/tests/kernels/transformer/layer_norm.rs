use circulant_kernels::Real;
use circulant_kernels::random::normal::standard_normal;
use circulant_kernels::random::philox::NoiseKey;
use circulant_kernels::transformer::layer_norm::*;

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

fn numbers<T: Real>(stream: u64, len: usize) -> Vec<T> {
    let mut out = vec![T::zero(); len];
    standard_normal(NoiseKey { seed: 6, stream }, &mut out);
    out
}

/// A layer with everything that goes in and comes out.
struct Case<T> {
    n: usize,
    x: Vec<T>,
    addend: Vec<T>,
    gamma: Vec<T>,
    beta: Vec<T>,
    grad: Vec<T>,
    residual: Vec<T>,
}

/// `[sum, y, mean, inverse]` and `[dx, dgamma, dbeta]`.
type Results<T> = ([Vec<T>; 4], [Vec<T>; 3]);

impl<T: Real> Case<T> {
    fn new(rows: usize, n: usize) -> Self {
        // An offset shows cancellation in the variance, if there is any.
        let x = numbers::<T>(0, rows * n)
            .into_iter()
            .map(|x| x + T::of(3.0));
        Self {
            n,
            x: x.collect(),
            addend: numbers(1, rows * n),
            gamma: numbers(2, n),
            beta: numbers(3, n),
            grad: numbers(4, rows * n),
            residual: numbers(5, rows * n),
        }
    }

    fn run(&self) -> Results<T> {
        let (len, rows) = (self.x.len(), self.x.len() / self.n);
        let empty = |len| vec![T::nan(); len];
        let (mut sum, mut y) = (empty(len), empty(len));
        let (mut mean, mut inverse_deviation) = (empty(rows), empty(rows));
        let layer = LayerNorm {
            gamma: &self.gamma,
            beta: &self.beta,
            epsilon: EPSILON,
        };
        let statistics = RowStatistics {
            mean: &mut mean[..],
            inverse_deviation: &mut inverse_deviation,
        };
        residual_layer_norm_into(&self.x, &self.addend, &mut sum, layer, &mut y, statistics)
            .unwrap();
        let statistics = RowStatistics {
            mean: &mean[..],
            inverse_deviation: &inverse_deviation,
        };
        let (mut dx, mut dgamma, mut dbeta) = (empty(len), empty(self.n), empty(self.n));
        let gradients = LayerNormGradients {
            x: &mut dx,
            gamma: &mut dgamma,
            beta: &mut dbeta,
        };
        let residual = Some(&self.residual[..]);
        layer_norm_backward(
            &sum,
            &self.gamma,
            statistics,
            &self.grad,
            residual,
            gradients,
        )
        .unwrap();
        ([sum, y, mean, inverse_deviation], [dx, dgamma, dbeta])
    }
}

/// `y` by the definition.
fn oracle(x: &[f64], gamma: &[f64], beta: &[f64]) -> Vec<f64> {
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

fn wide<T: Real>(values: &[T]) -> Vec<f64> {
    values.iter().map(|x| x.wide()).collect()
}

/// `close(a, b, t)`: within `t` of numbers of size one.
fn close(got: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len());
    for (got, expected) in got.iter().zip(expected) {
        let bound = tolerance * expected.abs().max(1.0);
        assert!((got - expected).abs() <= bound, "{got} and {expected}");
    }
}

fn check_forward<T: Real>(tolerance: f64) {
    for (rows, n) in SIZES {
        let case = Case::<T>::new(rows, n);
        let ([sum, y, ..], _) = case.run();
        for ((sum, x), addend) in sum.iter().zip(&case.x).zip(&case.addend) {
            assert!(*sum == *x + *addend);
        }
        let expected = oracle(&wide(&sum), &wide(&case.gamma), &wide(&case.beta));
        close(&wide(&y), &expected, tolerance);

        let (mut plain, mut mean, mut inverse) =
            (y.clone(), vec![T::nan(); rows], vec![T::nan(); rows]);
        let layer = LayerNorm {
            gamma: &case.gamma,
            beta: &case.beta,
            epsilon: EPSILON,
        };
        let statistics = RowStatistics {
            mean: &mut mean[..],
            inverse_deviation: &mut inverse,
        };
        layer_norm_into(&sum, layer, &mut plain, statistics).unwrap();
        assert!(plain == y, "without the addition");
    }
}

#[test]
fn forward_is_the_definition() {
    check_forward::<f32>(4e-6);
    check_forward::<f64>(1e-13);
}

/// Every gradient of `sum(grad*y) + sum(residual*x)`.
#[test]
fn gradients_are_those_of_central_differences() {
    const STEP: f64 = 1e-5;
    for (rows, n) in [(1, 1), (2, 2), (5, 7), (3, 33)] {
        let case = Case::<f64>::new(rows, n);
        let ([sum, ..], gradients) = case.run();
        let loss = |[x, gamma, beta]: [&[f64]; 3]| -> f64 {
            let y = oracle(x, gamma, beta);
            let outputs = y.iter().zip(&case.grad).map(|(y, g)| y * g);
            outputs
                .chain(x.iter().zip(&case.residual).map(|(x, g)| x * g))
                .sum()
        };
        let inputs = [&sum, &case.gamma, &case.beta];
        for (which, gradient) in gradients.iter().enumerate() {
            for (i, got) in gradient.iter().enumerate() {
                let [above, below] = [STEP, -STEP].map(|step| {
                    let mut moved = inputs.map(Clone::clone);
                    moved[which][i] += step;
                    loss([&moved[0], &moved[1], &moved[2]])
                });
                let expected = (above - below) / (2.0 * STEP);
                // The third derivative grows with the inverse of the deviation of a short row.
                assert!(
                    (got - expected).abs() < 1e-6 * expected.abs().max(1.0),
                    "{which}: {got} {expected}"
                );
            }
        }
    }
}

#[test]
fn f32_gradients_are_those_of_f64() {
    for (rows, n) in SIZES.into_iter().filter(|(_, n)| *n > 2) {
        let (_, narrow) = Case::<f32>::new(rows, n).run();
        let mut case = Case::<f64>::new(rows, n);
        let same = Case::<f32>::new(rows, n);
        (case.x, case.addend) = (wide(&same.x), wide(&same.addend));
        (case.gamma, case.beta) = (wide(&same.gamma), wide(&same.beta));
        (case.grad, case.residual) = (wide(&same.grad), wide(&same.residual));
        let (_, exact) = case.run();
        for (narrow, exact) in narrow.iter().zip(&exact) {
            close(&wide(narrow), exact, 3e-5);
        }
    }
}

#[test]
fn no_residual_gradient_adds_nothing() {
    let mut case = Case::<f64>::new(9, 13);
    case.residual.fill(0.0);
    let ([sum, _, mean, inverse], [expected, ..]) = case.run();
    let (mut dx, mut dgamma, mut dbeta) = (sum.clone(), vec![0.0; 13], vec![0.0; 13]);
    let gradients = LayerNormGradients {
        x: &mut dx,
        gamma: &mut dgamma,
        beta: &mut dbeta,
    };
    let statistics = RowStatistics {
        mean: &mean[..],
        inverse_deviation: &inverse,
    };
    layer_norm_backward(&sum, &case.gamma, statistics, &case.grad, None, gradients).unwrap();
    assert_eq!(dx, expected);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let case = Case::<f32>::new(1000, 128);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(|| case.run())
    };
    assert_eq!(run(1), run(3));
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
