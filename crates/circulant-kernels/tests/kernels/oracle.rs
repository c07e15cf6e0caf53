//! Slow, obvious versions that the tests compare with. The naive DFT is itself checked against
//! known values below.

use std::f64::consts::TAU;
use std::fmt::{Debug, Display};

use circulant_core::Bin;
use circulant_kernels::{Activation, NoiseKey, Real, standard_normal};
use num_complex::Complex;

/// Values that look random and are the same every time, in `[-1, 1)`.
pub fn noise(seed: u64, len: usize) -> Vec<f64> {
    use rand::{RngExt, SeedableRng};
    let mut generator = rand::rngs::StdRng::seed_from_u64(seed);
    (0..len)
        .map(|_| generator.random_range(-1.0..1.0))
        .collect()
}

/// Standard normal values, the same every time.
pub fn normal<T: Real>(seed: u64, stream: u64, len: usize) -> Vec<T> {
    let mut out = vec![T::zero(); len];
    standard_normal(NoiseKey { seed, stream }, &mut out);
    out
}

pub fn wide<T: Real>(x: &[T]) -> Vec<f64> {
    x.iter().map(|x| x.wide()).collect()
}

pub fn narrow<T: Real>(x: &[f64]) -> Vec<T> {
    x.iter().map(|&x| T::of(x)).collect()
}

pub fn activation(tanh: bool) -> Activation {
    if tanh {
        Activation::Tanh
    } else {
        Activation::Identity
    }
}

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Every value within `tolerance` of what is expected, relative to numbers above one.
pub fn close<T: Real>(what: impl Display, got: &[T], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let bound = tolerance * expected.abs().max(1.0);
        let error = (got.wide() - expected).abs();
        assert!(error <= bound, "{what} {i}: {got:?} and {expected}");
    }
}

/// About `most` numbers of every gradient (all of them, if there are no more) against central differences of
/// `loss`, whose arguments begin as `inputs`.
pub fn check_differences<const N: usize>(
    inputs: &[Vec<f64>; N],
    gradients: &[Vec<f64>],
    tolerance: f64,
    most: usize,
    loss: impl Fn(&[Vec<f64>; N]) -> f64,
) {
    const STEP: f64 = 1e-5;
    for (which, gradient) in gradients.iter().enumerate() {
        assert_eq!(gradient.len(), inputs[which].len(), "gradient {which}");
        for i in (0..gradient.len()).step_by(1 + gradient.len().saturating_sub(1) / most) {
            let [above, below] = [STEP, -STEP].map(|step| {
                let mut moved = inputs.clone();
                moved[which][i] += step;
                loss(&moved)
            });
            let difference = (above - below) / (2.0 * STEP);
            let bound = tolerance * gradient[i].abs().max(1.0);
            assert!(
                (gradient[i] - difference).abs() <= bound,
                "gradient {which}, number {i}: {} and {difference}",
                gradient[i]
            );
        }
    }
}

/// The same to the last bit on any number of threads.
pub fn same_on_threads<R: PartialEq + Debug + Send>(run: impl Fn() -> R + Sync) -> R {
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(&run)
    };
    let alone = on(1);
    for threads in [2, 3, 7] {
        assert!(on(threads) == alone, "{threads} threads differ from one");
    }
    alone
}

/// `X[u,v] = sum_{s,t} x[s,t] exp(-2 pi i (us/H + vt/W))`, by definition.
pub fn naive_dft(height: usize, width: usize, x: &[f64]) -> Vec<Complex<f64>> {
    let roots = |n: usize| -> Vec<Complex<f64>> {
        (0..n)
            .map(|k| Complex::from_polar(1.0, -TAU * k as f64 / n as f64))
            .collect()
    };
    let (across, down) = (roots(width), roots(height));
    let mut rows = vec![Complex::new(0.0, 0.0); height * width];
    for s in 0..height {
        for v in 0..width {
            rows[s * width + v] = (0..width)
                .map(|t| across[v * t % width] * x[s * width + t])
                .sum();
        }
    }
    let mut out = vec![Complex::new(0.0, 0.0); height * width];
    for u in 0..height {
        for v in 0..width {
            out[u * width + v] = (0..height)
                .map(|s| down[u * s % height] * rows[s * width + v])
                .sum();
        }
    }
    out
}

/// The full spectrum of one channel pair from its coordinates.
pub fn spectrum(full: &[Bin], at: impl Fn(usize) -> f64) -> Vec<Complex<f64>> {
    full.iter().map(|bin| bin.value(&at)).collect()
}

/// `w[s,t] = (1/n) sum_{u,v} h[u,v] exp(+2 pi i (us/H + vt/W))`; panics when `w` is not real.
pub fn naive_filter(height: usize, width: usize, h: &[Complex<f64>]) -> Vec<f64> {
    let n = (height * width) as f64;
    let re: Vec<f64> = h.iter().map(|h| h.re).collect();
    let im: Vec<f64> = h.iter().map(|h| h.im).collect();
    // The inverse transform is the conjugate of the forward transform of the conjugate.
    let (re, im) = (naive_dft(height, width, &re), naive_dft(height, width, &im));
    re.iter()
        .zip(&im)
        .map(|(re, im)| {
            let value = (re.conj() + im.conj() * Complex::i()) / n;
            assert!(value.im.abs() < 1e-9, "a filter must be real, got {value}");
            value.re
        })
        .collect()
}

/// `y[s,t] = sum w[(s-s') mod H, (t-t') mod W] x[s',t']`.
pub fn convolve(height: usize, width: usize, w: &[f64], x: &[f64]) -> Vec<f64> {
    let mut y = vec![0.0; height * width];
    for s in 0..height {
        for t in 0..width {
            for i in 0..height {
                for j in 0..width {
                    let (u, v) = ((s + height - i) % height, (t + width - j) % width);
                    y[s * width + t] += w[u * width + v] * x[i * width + j];
                }
            }
        }
    }
    y
}

/// `|a - b|/max(|b|, tiny)` in the Euclidean norm.
pub fn relative_error(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let norm = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
    let difference = norm(&mut a.iter().zip(b).map(|(a, b)| a - b));
    difference / norm(&mut b.iter().copied()).max(1e-30)
}

/// `Q(a)` by the series near zero and the continued fraction in the tail.
pub fn slow_tail(a: f64) -> f64 {
    let density_at_zero = 1.0 / TAU.sqrt();
    let density = (-0.5 * a * a).exp() * density_at_zero;
    if a > 1.0 {
        return density / (1..400).rev().fold(a, |tail, k| a + f64::from(k) / tail);
    }
    let (mut term, mut sum) = (a, a);
    for k in 1..100 {
        term *= a * a / f64::from(2 * k + 1);
        sum += term;
    }
    0.5 - density * sum
}

#[test]
fn the_naive_dft_knows_cosines() {
    let n = 12;
    for k in 0..n {
        let x: Vec<f64> = (0..n)
            .map(|t| (TAU * (k * t) as f64 / n as f64).cos())
            .collect();
        let spectrum = naive_dft(1, n, &x);
        for (f, value) in spectrum.iter().enumerate() {
            let hits = usize::from(f == k) + usize::from(f == (n - k) % n);
            let expected = hits as f64 * n as f64 / 2.0;
            assert!((value - expected).norm() < 1e-12, "{k} {f} {value}");
        }
    }
}
