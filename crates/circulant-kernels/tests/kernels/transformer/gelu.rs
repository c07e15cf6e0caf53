use crate::oracle::slow_tail;
use circulant_kernels::Real;
use circulant_kernels::random::normal::standard_normal;
use circulant_kernels::random::philox::NoiseKey;
use circulant_kernels::transformer::gelu::*;

/// The bound of the head of the file.
const ERROR: f64 = 2e-7;
/// Roundings of f64 beside values up to ten.
const WIDE_ERROR: f64 = 4e-15;

fn oracle(x: f64) -> f64 {
    x * if x < 0.0 {
        slow_tail(-x)
    } else {
        1.0 - slow_tail(x)
    }
}

fn slope(x: f64) -> f64 {
    let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    (if x < 0.0 {
        slow_tail(-x)
    } else {
        1.0 - slow_tail(x)
    }) + x * density
}

fn numbers<T: Real>(stream: u64, len: usize) -> Vec<T> {
    let mut out = vec![T::zero(); len];
    standard_normal(NoiseKey { seed: 4, stream }, &mut out);
    out
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
fn a_bias_is_added_first_and_gets_the_sum_of_the_rows() {
    for (rows, n) in [(0, 3), (1, 1), (3, 7), (31, 64), (200, 513), (2, 10_007)] {
        let (x, bias, grad): (Vec<f64>, Vec<f64>, Vec<f64>) =
            (numbers(0, rows * n), numbers(1, n), numbers(2, rows * n));
        let sums: Vec<f64> = (0..rows * n).map(|i| x[i] + bias[i % n]).collect();
        let (mut expected, mut y) = (x.clone(), x.clone());
        gelu_into(&sums, &mut expected).unwrap();
        bias_gelu_into(&x, &bias, &mut y).unwrap();
        assert_eq!(y, expected);

        let (mut of_bias, mut again) = (vec![f64::NAN; n], x.clone());
        gelu_backward(&sums, &grad, &mut expected).unwrap();
        bias_gelu_backward(&x, &bias, &grad, &mut y, Some(&mut of_bias)).unwrap();
        bias_gelu_backward(&x, &bias, &grad, &mut again, None).unwrap();
        assert!(y == expected && again == expected);
        for (j, sum) in of_bias.iter().enumerate() {
            let exact: f64 = y.iter().skip(j).step_by(n).sum();
            assert!((sum - exact).abs() < 1e-12);
        }
    }
}

#[test]
fn the_gradient_is_that_of_central_differences() {
    const STEP: f64 = 1e-5;
    let x: Vec<f64> = numbers(5, 101);
    let value = |shift: f64| {
        let moved: Vec<f64> = x.iter().map(|x| x + shift).collect();
        let mut y = moved.clone();
        gelu_into(&moved, &mut y).unwrap();
        y
    };
    let (above, below) = (value(STEP), value(-STEP));
    let mut gradient = x.clone();
    gelu_backward(&x, &[1.0; 101], &mut gradient).unwrap();
    for ((g, above), below) in gradient.iter().zip(above).zip(below) {
        assert!((g - (above - below) / (2.0 * STEP)).abs() < 1e-9);
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let (x, grad): (Vec<f32>, Vec<f32>) = (numbers(0, 300 * 512), numbers(1, 300 * 512));
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(|| {
            let (mut out, mut sums) = (x.clone(), vec![0.0; 512]);
            bias_gelu_backward(&x, &x[..512], &grad, &mut out, Some(&mut sums)).unwrap();
            (out, sums)
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn wrong_sizes_are_errors() {
    assert!(gelu_into(&[0.0f32; 3], &mut [0.0; 2]).is_err());
    assert!(gelu_backward(&[0.0f32; 3], &[0.0; 2], &mut [0.0; 3]).is_err());
    assert!(bias_gelu_into(&[0.0f32; 3], &[0.0; 2], &mut [0.0; 3]).is_err());
    assert!(bias_gelu_into(&[0.0f32; 3], &[], &mut [0.0; 3]).is_err());
    let mut of_bias = [0.0f32; 2];
    let result = bias_gelu_backward(
        &[0.0; 3],
        &[0.0; 3],
        &[0.0; 3],
        &mut [0.0; 3],
        Some(&mut of_bias),
    );
    assert!(result.is_err());
}
