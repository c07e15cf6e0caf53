use super::*;
use crate::oracle::{noise, relative_error};
use circulant_kernels::norms::{
    gram_bound_2d, gram_bound_2d_with_gradient, gram_bound_matrix, gram_bound_matrix_with_gradient,
};

/// Layers of the kinds on which a bound could fail, from a seed.
fn layer(seed: u64) -> (HalfPlane, [usize; 2], Vec<f64>) {
    let sizes = [(1, 1), (2, 3), (3, 2), (4, 4), (1, 5)];
    let (height, width) = sizes[seed as usize % sizes.len()];
    let channels = [1 + seed as usize / 5 % 5, 1 + seed as usize / 25 % 4];
    let layout = HalfPlane::new(height, width).expect("valid");
    let [inputs, outputs] = channels;
    let pairs = inputs * outputs;
    let mut a = noise(seed, layout.coordinates() * pairs);
    match seed % 7 {
        // Rank one: the bound is the norm itself.
        0 => {
            for matrix in a.chunks_exact_mut(pairs) {
                let first = matrix.to_vec();
                for (i, x) in matrix.iter_mut().enumerate() {
                    *x = first[i / outputs * outputs] * first[i % outputs];
                }
            }
        }
        1 => a.iter_mut().for_each(|x| *x *= 1e150),
        2 => a.iter_mut().for_each(|x| *x *= 1e-150),
        // Equal singular values.
        3 => {
            for (i, x) in a.iter_mut().enumerate() {
                *x = f64::from(u8::from(i % pairs / outputs == i % outputs));
            }
        }
        4 => a.iter_mut().skip(1).for_each(|x| *x = 0.0),
        _ => {}
    }
    (layout, channels, a)
}

#[test]
fn the_bound_is_never_below_the_norm() {
    for seed in 0..10_000 {
        let (layout, channels, a) = layer(seed);
        let [inputs, outputs] = channels;
        let squarings = seed as usize % 8;
        let bound = gram_bound_2d(&layout, inputs, outputs, &a, squarings).expect("finite");
        let norm = largest_of_bins(&layout, channels, &a);
        assert!(
            bound >= norm * (1.0 - DECOMPOSITION),
            "{seed}: {bound} {norm}"
        );
        // rank^(1/(2p)), p = 2^(squarings + 1)
        let rank = inputs.min(outputs) as f64;
        let most = rank.powf(0.5f64.powi(squarings as i32 + 2));
        assert!(
            bound <= norm * most * (1.0 + 1e-10),
            "{seed}: {bound} {norm}"
        );
    }
}

#[test]
fn more_squarings_are_tighter_until_the_norm_is_reached() {
    let layout = HalfPlane::new(6, 5).expect("valid");
    let a = noise(1, 30 * 20 * 16);
    let norm = largest_of_bins(&layout, [20, 16], &a);
    let mut last = f64::INFINITY;
    for squarings in 0..8 {
        let bound = gram_bound_2d(&layout, 20, 16, &a, squarings).expect("finite");
        assert!(bound <= last * (1.0 + 1e-11));
        last = bound;
    }
    assert!(last < norm * (1.0 + 1e-6), "{last} {norm}");
    let most = gram_bound_2d(&layout, 20, 16, &a, usize::MAX).expect("finite");
    assert!(most >= norm * (1.0 - DECOMPOSITION) && most < norm * (1.0 + 1e-6));
}

/// Central differences of `f` at `a`, in every coordinate of `at`.
fn differences(a: &[f64], step: f64, f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    (0..a.len())
        .map(|i| {
            let moved = |sign: f64| {
                let mut a = a.to_vec();
                a[i] += sign * step;
                f(&a)
            };
            (moved(1.0) - moved(-1.0)) / (2.0 * step)
        })
        .collect()
}

/// Differences with a step of 1e-5 of a bound that is rounded at 1e-13.
const DIFFERENCES: f64 = 1e-6;

#[test]
fn gradients_agree_with_differences() {
    for (height, width, inputs, outputs) in [(2, 3, 3, 2), (3, 4, 2, 4), (1, 1, 4, 4), (3, 3, 1, 1)]
    {
        let layout = HalfPlane::new(height, width).expect("valid");
        let a = noise(9, layout.coordinates() * inputs * outputs);
        for squarings in [0, 1, 3, 5] {
            let f =
                |a: &[f64]| gram_bound_2d(&layout, inputs, outputs, a, squarings).expect("finite");
            let (bound, gradient) =
                gram_bound_2d_with_gradient(&layout, inputs, outputs, &a, squarings)
                    .expect("finite");
            assert_eq!(bound, f(&a));
            let expected = differences(&a, 1e-5, f);
            let error = relative_error(&gradient, &expected);
            assert!(error < DIFFERENCES, "{height} {width} {squarings}: {error}");
        }
    }
    for (rows, columns) in [(3, 5), (5, 3), (4, 4), (1, 6)] {
        let a = noise(11, rows * columns);
        for scale in [1.0, 1e150, 1e-150] {
            let a: Vec<f64> = a.iter().map(|x| x * scale).collect();
            let f = |a: &[f64]| gram_bound_matrix(rows, columns, a, 2).expect("finite");
            let (bound, gradient) =
                gram_bound_matrix_with_gradient(rows, columns, &a, 2).expect("finite");
            assert_eq!(bound, f(&a));
            let error = relative_error(&gradient, &differences(&a, 1e-5 * scale, f));
            assert!(error < DIFFERENCES, "{rows} {columns}: {error}");
        }
    }
}

#[test]
fn gradients_exist_where_singular_values_coincide() {
    let identity = [1.0, 0.0, 0.0, 1.0];
    let (bound, gradient) = gram_bound_matrix_with_gradient(2, 2, &identity, 1).expect("finite");
    // B = (sum sigma^8)^(1/8), so dB/dK = 2^(1/8)/2 K.
    let expected = 2f64.powf(0.125);
    assert!((bound - expected).abs() < 1e-12);
    for (x, k) in gradient.iter().zip(identity) {
        assert!((x - 0.5 * expected * k).abs() < 1e-12, "{gradient:?}");
    }
}

#[test]
fn dense_bounds_hold() {
    for seed in 0..200 {
        let (rows, columns) = (1 + seed % 17, 1 + seed / 17);
        let a = noise(seed as u64, rows * columns);
        let bound = gram_bound_matrix(rows, columns, &a, seed % 6).expect("finite");
        assert!(bound >= dense_norm(rows, columns, &a) * (1.0 - DECOMPOSITION));
    }
}

#[test]
fn zeros_and_wrong_input() {
    let layout = HalfPlane::new(2, 2).expect("valid");
    assert_eq!(gram_bound_2d(&layout, 2, 2, &[0.0; 16], 3), Ok(0.0));
    let zero = gram_bound_2d_with_gradient(&layout, 2, 2, &[0.0; 16], 3);
    assert_eq!(zero, Ok((0.0, vec![0.0; 16])));
    assert_eq!(
        gram_bound_matrix_with_gradient(1, 2, &[0.0; 2], 3),
        Ok((0.0, vec![0.0; 2]))
    );
    assert!(gram_bound_2d(&layout, 2, 2, &[0.0; 15], 3).is_err());
    assert!(gram_bound_2d(&layout, 2, 0, &[], 3).is_err());
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(gram_bound_2d(&layout, 1, 1, &[bad, 0.0, 0.0, 0.0], 3).is_err());
        assert!(gram_bound_2d_with_gradient(&layout, 1, 1, &[0.0, 0.0, 0.0, bad], 3).is_err());
        assert!(gram_bound_matrix(1, 1, &[bad], 3).is_err());
    }
}
