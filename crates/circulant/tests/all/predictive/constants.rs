//! The Lipschitz constants of probabilities as functions of the logits.

use crate::common::numbers;
use crate::geometry::norm;

fn softmax(z: &[f64]) -> Vec<f64> {
    let top = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = z.iter().map(|z| (z - top).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| w / total).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
}

/// A name, what is computed of the probabilities, and its Lipschitz constant in the logits.
type Function = (&'static str, fn(&[f64]) -> f64, f64);

/// The functions of the logits whose constants are used, with their constants.
fn functions() -> [Function; 3] {
    let half = 0.5_f64.sqrt();
    [
        ("difference", |p| p[0] - p[1], half),
        ("artanh of the difference", |p| (p[0] - p[1]).atanh(), half),
        (
            "logarithm of the odds",
            |p| (p[0] / (1.0 - p[0])).ln(),
            2.0_f64.sqrt(),
        ),
    ]
}

/// Hill climbing over pairs of logits: no quotient is above the constant, and some come as near as one likes.
#[test]
fn the_lipschitz_constants_of_probabilities_hold_and_are_tight() {
    for (name, function, constant) in functions() {
        for classes in [2, 3, 5, 10] {
            let mut largest = 0.0_f64;
            for start in 0..12 {
                let scale = [0.5, 2.0, 6.0][start % 3];
                let seed = (start * 100 + classes) as u64;
                let near: Vec<f64> = numbers(seed, 2 * classes)
                    .iter()
                    .map(|x| scale * x)
                    .collect();
                let quotient = |pair: &[f64]| {
                    let (a, b) = pair.split_at(classes);
                    // Nearer pairs are rounding.
                    let apart = distance(a, b);
                    let pair = [softmax(a), softmax(b)];
                    let inner = pair
                        .iter()
                        .flatten()
                        .all(|p| (1e-6..1.0 - 1e-6).contains(p));
                    if apart < 1e-3 || !inner {
                        0.0
                    } else {
                        (function(&pair[0]) - function(&pair[1])).abs() / apart
                    }
                };
                let (mut at, mut best) = (near.clone(), quotient(&near));
                let mut step = 0.5;
                for trial in 0..1500 {
                    let move_by = numbers(seed + 7919 * (trial + 1), 2 * classes);
                    let next: Vec<f64> =
                        at.iter().zip(&move_by).map(|(x, d)| x + step * d).collect();
                    let found = quotient(&next);
                    assert!(
                        found <= constant * (1.0 + 1e-6),
                        "{name}, {classes} classes: {found} above {constant}"
                    );
                    if found > best {
                        (at, best) = (next, found);
                        step *= 1.3;
                    } else {
                        step = (step * 0.98).max(1e-3);
                    }
                }
                largest = largest.max(best);
            }
            assert!(
                largest > 0.95 * constant,
                "{name}, {classes} classes: {largest} is far below {constant}"
            );
        }
    }
}

/// The pairwise constants: behind a matrix `W`, `artanh(p_y - p_k)` changes by at most half of the largest distance of a column from column `y` or `k`, and the
/// logarithm of the odds of `y` by at most the largest distance from column `y`.
#[test]
fn the_constants_behind_a_matrix_hold() {
    const WIDTH: usize = 3;
    let mut nearest = [0.0_f64; 2];
    for seed in 0..40 {
        let classes = 2 + seed as usize % 4;
        let w = numbers(seed, WIDTH * classes);
        let column = |k: usize| -> Vec<f64> { (0..WIDTH).map(|i| w[i * classes + k]).collect() };
        let largest = |y: usize| {
            (0..classes)
                .map(|j| distance(&column(y), &column(j)))
                .fold(0.0, f64::max)
        };
        let constants = [0.5 * largest(0).max(largest(1)), largest(0)];
        for trial in 0..2000 {
            let h = numbers(seed * 3001 + trial, 2 * WIDTH);
            let scale = [0.1, 1.0, 5.0][trial as usize % 3];
            let p = |h: &[f64]| {
                let logit = |k: usize| {
                    h.iter()
                        .enumerate()
                        .map(|(i, h)| scale * h * w[i * classes + k])
                        .sum()
                };
                softmax(&(0..classes).map(logit).collect::<Vec<f64>>())
            };
            let (a, b) = h.split_at(WIDTH);
            let (pa, pb) = (p(a), p(b));
            let apart = scale * distance(a, b);
            for (which, (_, function, _)) in functions().into_iter().skip(1).enumerate() {
                let quotient = (function(&pa) - function(&pb)).abs() / apart / constants[which];
                assert!(quotient <= 1.0 + 1e-7, "{which}: {quotient}");
                nearest[which] = nearest[which].max(quotient);
            }
        }
    }
    assert!(nearest.iter().all(|&nearest| nearest > 0.95), "{nearest:?}");
}
