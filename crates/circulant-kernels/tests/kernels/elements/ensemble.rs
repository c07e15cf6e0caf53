use circulant_kernels::KernelError;
use circulant_kernels::elements::ensemble::*;

/// Single precision sums of a few dozen terms.
const TOLERANCE: f64 = 1e-5;

#[test]
fn equals_the_definition_in_f64() {
    let (members, rows, classes) = (7, 130, 10);
    let logits: Vec<f32> = (0..members * rows * classes)
        .map(|i| ((i * 7919 + 3) % 1009) as f32 / 60.0 - 8.0)
        .collect();
    let mut p = vec![0.0; rows * classes];
    let (mut predictive, mut expected) = (vec![0.0; rows], vec![0.0; rows]);
    ensemble_statistics(
        &logits,
        rows,
        classes,
        &mut p,
        &mut predictive,
        &mut expected,
    )
    .expect("sizes fit");
    let entropy = |p: &[f64]| -> f64 { p.iter().map(|p| -p * p.ln()).sum() };
    for row in 0..rows {
        let mut mean = vec![0.0; classes];
        let mut mean_entropy = 0.0;
        for member in 0..members {
            let z = &logits[(member * rows + row) * classes..][..classes];
            let weights: Vec<f64> = z.iter().map(|&z| f64::from(z).exp()).collect();
            let sum: f64 = weights.iter().sum();
            let softmax: Vec<f64> = weights.iter().map(|w| w / sum).collect();
            mean_entropy += entropy(&softmax) / members as f64;
            mean.iter_mut()
                .zip(&softmax)
                .for_each(|(m, p)| *m += p / members as f64);
        }
        for (got, expected) in p[row * classes..].iter().zip(&mean) {
            assert!((f64::from(*got) - expected).abs() < TOLERANCE);
        }
        assert!((f64::from(predictive[row]) - entropy(&mean)).abs() < TOLERANCE);
        assert!((f64::from(expected[row]) - mean_entropy).abs() < TOLERANCE);
    }
}

/// A probability below the smallest normal number: its logarithm is not to be had, and does not count.
#[test]
fn tiny_probabilities_leave_entropies_finite() {
    // One member in fifty gives the second class e^-85 or e^-86.
    for (below, is_tiny) in [(80.0, false), (85.0, true), (86.0, true), (1000.0, false)] {
        let mut logits = [0.0; 2 * 50];
        logits[1] = -below;
        (2..100).step_by(2).for_each(|i| logits[i + 1] = -1000.0);
        let (mut p, mut predictive, mut expected) = ([0.0; 2], [0.0], [0.0]);
        ensemble_statistics(&logits, 1, 2, &mut p, &mut predictive, &mut expected).expect("fits");
        assert_eq!((p[0], p[1].is_subnormal()), (1.0, is_tiny), "{below}");
        assert!((0.0..1e-30).contains(&predictive[0]), "{below}");
        assert!((0.0..1e-30).contains(&expected[0]), "{below}");
    }
}

#[test]
fn not_a_number_stays_visible() {
    let (mut p, mut predictive, mut expected) = ([0.0; 2], [0.0], [0.0]);
    let logits = [0.0, f32::NAN];
    ensemble_statistics(&logits, 1, 2, &mut p, &mut predictive, &mut expected).expect("fits");
    assert!(p[0].is_nan() && expected[0].is_nan());
}

#[test]
fn wrong_sizes_are_named() {
    let (mut p, mut predictive, mut expected) = ([0.0; 2], [0.0], [0.0]);
    let error = ensemble_statistics(&[0.0; 3], 1, 2, &mut p, &mut predictive, &mut expected);
    assert!(matches!(
        error,
        Err(KernelError::Multiple {
            unit: 2,
            got: 3,
            ..
        })
    ));
}
