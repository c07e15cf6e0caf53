use circulant_core::HalfSpectrum;

use super::*;
use crate::oracle::{noise, same_on_threads};
use circulant_kernels::KernelError;
use circulant_kernels::norms::{
    NormEnclosure, matrix_norm, operator_norm_1d, operator_norm_2d, singular_values_2d,
};

fn assert_encloses(norm: NormEnclosure, expected: f64, width: f64, what: &str) {
    let error = DECOMPOSITION * expected;
    assert!(
        norm.lower <= expected + error && expected - error <= norm.upper,
        "{what}: {norm:?} {expected}"
    );
    assert!(
        norm.upper - norm.lower <= width * expected,
        "{what}: {norm:?} {expected}"
    );
}

#[test]
fn norms_equal_the_explicit_matrix() {
    for (height, width, inputs, outputs) in [
        (1, 1, 1, 1),
        (3, 4, 1, 1),
        (4, 5, 2, 3),
        (5, 3, 3, 1),
        (2, 2, 2, 2),
        (7, 7, 1, 2),
        (6, 8, 2, 1),
        (1, 9, 5, 4),
        (1, 1, 7, 9),
    ] {
        for cutoff in [1.0, 0.6, 0.0] {
            let layout = HalfPlane::with_radius(height, width, cutoff).expect("valid");
            let a = noise(7, layout.coordinates() * inputs * outputs);
            let full: Vec<Bin> = layout.full().collect();
            let expected = dense_values([height, width], &full, [inputs, outputs], &a);
            let norm = operator_norm_2d(&layout, inputs, outputs, &a).expect("finite");
            assert!(
                (norm.estimate() - expected[0]).abs() < TOLERANCE * expected[0],
                "{norm:?} {expected:?}"
            );
            let values = singular_values_2d(&layout, inputs, outputs, &a).expect("finite");
            assert_eq!(values.len(), expected.len());
            for (value, expected_value) in values.iter().zip(&expected) {
                assert!((value - expected_value).abs() < TOLERANCE * expected[0]);
            }
        }
    }
    for d in [1, 2, 5, 8, 13, 31, 40] {
        for modes in [d / 2 + 1, 1, (d / 4).max(1)] {
            let layout = HalfSpectrum::with_modes(d, modes).expect("valid");
            let a = noise(8, layout.coordinates());
            let norm = operator_norm_1d(&layout, &a).expect("finite").estimate();
            let expected = dense_values([1, d], &layout.full().collect::<Vec<_>>(), [1, 1], &a)[0];
            assert!(
                (norm - expected).abs() < TOLERANCE * expected,
                "{norm} {expected}"
            );
        }
    }
}

#[test]
fn enclosures_hold_and_are_narrow_at_every_scale() {
    for (seed, &(side, inputs, outputs)) in [
        (4, 3, 5),
        (5, 16, 9),
        (3, 33, 40),
        (2, 64, 64),
        (8, 1, 17),
        (6, 17, 17),
    ]
    .iter()
    .enumerate()
    {
        let layout = HalfPlane::new(side, side).expect("valid");
        let unit = noise(seed as u64, layout.coordinates() * inputs * outputs);
        let expected = largest_of_bins(&layout, [inputs, outputs], &unit);
        // Powers of two, so that the expected norm scales exactly.
        for exponent in [-1000, -500, 0, 500, 1000] {
            let scale = 2f64.powi(exponent);
            let a: Vec<f64> = unit.iter().map(|x| x * scale).collect();
            let norm = operator_norm_2d(&layout, inputs, outputs, &a).expect("finite");
            let what = format!("{side} {inputs} {outputs} 2^{exponent}");
            assert_encloses(norm, expected * scale, 1e-11, &what);
        }
    }
}

#[test]
fn coinciding_values_and_single_entries_are_enclosed() {
    let layout = HalfPlane::new(6, 6).expect("valid");
    let (channels, len) = (12, layout.coordinates() * 144);
    // Every bin is a multiple of a unitary matrix: all singular values are equal.
    let mut equal = vec![0.0; len];
    for k in 0..layout.coordinates() {
        for i in 0..channels {
            equal[k * 144 + i * channels + (i + k) % channels] = 1.0;
        }
    }
    let expected = largest_of_bins(&layout, [channels, channels], &equal);
    let norm = operator_norm_2d(&layout, channels, channels, &equal).expect("finite");
    assert_encloses(norm, expected, 1e-11, "equal");

    let mut single = vec![0.0; len];
    single[len - 5] = -3.5;
    let norm = operator_norm_2d(&layout, channels, channels, &single).expect("finite");
    assert_encloses(norm, 3.5, 1e-11, "single");

    // One bin far above the rest, late in the order of storage.
    let mut mixed = noise(3, len);
    for x in &mut mixed[len - 144..] {
        *x *= 1e200;
    }
    for x in &mut mixed[..144] {
        *x *= 1e-200;
    }
    let norm = operator_norm_2d(&layout, channels, channels, &mixed).expect("finite");
    let expected = largest_of_bins(&layout, [channels, channels], &mixed);
    assert_encloses(norm, expected, 1e-11, "mixed");
}

#[test]
fn zeros_have_norm_zero() {
    let zero = NormEnclosure {
        lower: 0.0,
        upper: 0.0,
    };
    let layout = HalfPlane::new(3, 3).expect("valid");
    assert_eq!(operator_norm_2d(&layout, 2, 2, &[0.0; 36]), Ok(zero));
    assert_eq!(operator_norm_2d(&layout, 1, 1, &[0.0; 9]), Ok(zero));
    assert_eq!(
        singular_values_2d(&layout, 2, 1, &[0.0; 18]),
        Ok(vec![0.0; 9])
    );
    let signal = HalfSpectrum::new(5).expect("valid");
    assert_eq!(operator_norm_1d(&signal, &[0.0; 5]), Ok(zero));
    assert_eq!(matrix_norm(2, 3, &[0.0; 6]), Ok(zero));
}

#[test]
fn numbers_at_the_ends_of_the_range_are_enclosed() {
    let layout = HalfSpectrum::new(4).expect("valid");
    for scale in [5e-324, 1e-310, 1e-200, 1e200, 4e307] {
        let a = [0.0, 3.0 * scale, 4.0 * scale, scale];
        let norm = operator_norm_1d(&layout, &a).expect("finite");
        let expected = a[1].hypot(a[2]);
        assert!(norm.lower <= expected && expected <= norm.upper, "{norm:?}");
        // Next to the smallest number one step is all the width there is.
        assert!(norm.upper - norm.lower <= 1e-14 * expected + 2e-323);
    }
    let tiny = matrix_norm(2, 2, &[5e-324, 0.0, 0.0, 0.0]).expect("finite");
    assert!(tiny.lower <= 5e-324 && 5e-324 <= tiny.upper && tiny.upper <= 1.5e-323);
    let huge = matrix_norm(2, 2, &[f64::MAX; 4]).expect("finite");
    assert!(huge.upper == f64::INFINITY && huge.lower.is_finite());
}

#[test]
fn dense_matrices_are_enclosed() {
    for (seed, &(rows, columns)) in [
        (1, 1),
        (1, 7),
        (7, 1),
        (3, 5),
        (50, 20),
        (33, 90),
        (150, 150),
    ]
    .iter()
    .enumerate()
    {
        let values = noise(seed as u64, rows * columns);
        let norm = matrix_norm(rows, columns, &values).expect("finite");
        let what = format!("{rows} {columns}");
        assert_encloses(norm, dense_norm(rows, columns, &values), 1e-11, &what);
    }
    // A rank-one matrix has the norm |a||b|, and a slowly falling spectrum has no gap.
    let (a, b) = (noise(1, 30), noise(2, 40));
    let outer: Vec<f64> = a
        .iter()
        .flat_map(|x| b.iter().map(move |y| x * y))
        .collect();
    let length = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let norm = matrix_norm(30, 40, &outer).expect("finite");
    assert_encloses(norm, length(&a) * length(&b), 1e-11, "rank one");
    let diagonal: Vec<f64> = (0..900)
        .map(|i| {
            if i / 30 == i % 30 {
                1.0 - 1e-9 * (i / 30) as f64
            } else {
                0.0
            }
        })
        .collect();
    assert_encloses(
        matrix_norm(30, 30, &diagonal).expect("finite"),
        1.0,
        1e-11,
        "no gap",
    );
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let layout = HalfPlane::new(12, 12).expect("valid");
    let a = noise(5, layout.coordinates() * 9 * 7);
    assert!(same_on_threads(|| operator_norm_2d(&layout, 9, 7, &a)).is_ok());
}

#[test]
fn wrong_input_is_an_error() {
    let signal = HalfSpectrum::new(3).expect("valid");
    let layout = HalfPlane::new(2, 2).expect("valid");
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(matches!(
            operator_norm_1d(&signal, &[1.0, bad, 0.0]),
            Err(KernelError::NotFinite { .. })
        ));
        for channels in [1, 2] {
            for at in [0, 4 * channels - 1] {
                let mut a = vec![1.0; 4 * channels];
                a[at] = bad;
                assert!(operator_norm_2d(&layout, channels, 1, &a).is_err());
                assert!(singular_values_2d(&layout, channels, 1, &a).is_err());
            }
        }
        assert!(matrix_norm(1, 2, &[1.0, bad]).is_err());
    }
    assert!(operator_norm_1d(&signal, &[1.0]).is_err());
    assert!(operator_norm_2d(&layout, 2, 1, &[1.0; 7]).is_err());
    assert!(operator_norm_2d(&layout, 0, 1, &[]).is_err());
    assert!(operator_norm_2d(&layout, usize::MAX, 2, &[1.0]).is_err());
    assert!(singular_values_2d(&layout, usize::MAX, usize::MAX, &[1.0]).is_err());
    assert!(matrix_norm(2, 2, &[1.0; 3]).is_err());
    assert!(matrix_norm(0, 2, &[]).is_err());
}
