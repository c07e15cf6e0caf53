//! f32 against f64, any number of threads, NaN, and wrong sizes.

use super::*;

/// Returns the KL in f64.
fn check_single(single: &Problem<f32>) -> f64 {
    let double = single.double();
    let (kl, gradients) = single.kl_and_gradients(&single.prior);
    let (expected_kl, expected) = double.kl_and_gradients(&double.prior);
    assert!(close(kl, expected_kl, SINGLE), "{kl} {expected_kl}");
    for (gradient, expected) in gradients.iter().zip(&expected) {
        crate::oracle::close("gradient", gradient, expected, 4.0 * SINGLE);
    }
    expected_kl
}

#[test]
fn f32_agrees_with_f64() {
    for (d, rank) in [(784, 8), (784, 0), (131, 9), (40_000, 0), (20_000, 4)] {
        for jitter in [0.0, 1e-6] {
            let single = Problem::new(61, d, rank, jitter).single();
            let double = single.double();
            check_single(&single);
            let (q, expected) = (single.gaussian(), double.gaussian());
            assert!(close(q.entropy(), expected.entropy(), SINGLE));
            let density = q.log_density(&single.prior).unwrap();
            let expected = expected.log_density(&double.prior).unwrap();
            assert!(close(density, expected, SINGLE), "{density} {expected}");
        }
    }
}

/// With a tiny deviation `M` is huge; in f32 its identity would be lost.
#[test]
fn a_tiny_deviation_keeps_f32_accurate() {
    let mut problem = Problem::new(71, 50, 8, 0.0);
    problem.parameters[3].fill(-7.0);
    let single = problem.single();
    let (double, kl) = (single.double(), check_single(&single));
    assert!(close(kl, dense_kl(&double, &double.prior), 1e-6));
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    for (d, rank) in [(100_003, 0), (20_011, 8)] {
        let problem = Problem::new(81, d, rank, 1e-6).single();
        same_on_threads(|| {
            let (xi, zeta): (Vec<f32>, Vec<f32>) = (normal(82, 0, rank), normal(82, 1, d));
            let mut a = vec![0.0; d];
            let q = problem.gaussian();
            q.sample_into(&xi, &zeta, &mut a).unwrap();
            (problem.kl_and_gradients(&problem.prior), q.entropy(), a)
        });
    }
}

#[test]
fn nan_in_gives_nan_out() {
    for rank in [0, 3] {
        for which in 0..4 {
            let mut problem = Problem::new(91, 9, rank, 1e-6).single();
            let parameter = &mut problem.parameters[which];
            if parameter.is_empty() {
                continue;
            }
            parameter[0] = f32::NAN;
            let (kl, _) = problem.kl_and_gradients(&problem.prior);
            assert!(kl.is_nan(), "parameter {which}, rank {rank}");
            let q = problem.gaussian();
            assert!(q.log_density(&[0.5; 9]).unwrap().is_nan());
            assert!(which == 0 || q.entropy().is_nan());
            let mut a = [0.0; 9];
            q.sample_into(&vec![1.0; rank], &[1.0; 9], &mut a).unwrap();
            assert!(a[0].is_nan());
        }
        let mut problem = Problem::new(91, 9, rank, 1e-6).single();
        problem.prior[3] = f32::NAN;
        assert!(problem.kl_and_gradients(&problem.prior).0.is_nan());
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let x = [0.0f32; 12];
    assert!(LowRank::new(&x[..3], &x[..6], &x[..2], &x[..3], 0.0).is_ok());
    assert!(LowRank::new(&x[..0], &x[..0], &x[..0], &x[..0], 0.0).is_err());
    assert!(LowRank::new(&x[..3], &x[..5], &x[..2], &x[..3], 0.0).is_err());
    assert!(LowRank::new(&x[..3], &x[..6], &x[..2], &x[..2], 0.0).is_err());
    assert!(LowRank::new(&x[..3], &x[..6], &x[..2], &x[..3], -1.0).is_err());
    let q = LowRank::new(&x[..3], &x[..6], &x[..2], &x[..3], 0.0).unwrap();
    let mut out = [0.0; 12];
    assert!(q.kl(&x[..2]).is_err());
    assert!(q.kl(&[]).is_err());
    assert!(q.log_density(&x[..2]).is_err());
    assert!(q.diagonal_variance(&mut out[..4]).is_err());
    for (xi, zeta, a) in [(1, 3, 3), (2, 4, 3), (2, 3, 2)] {
        assert!(q.sample_into(&x[..xi], &x[..zeta], &mut out[..a]).is_err());
    }
    for lens in [
        [3, 6, 2, 3, 2],
        [2, 6, 2, 3, 3],
        [3, 5, 2, 3, 3],
        [3, 6, 3, 3, 3],
        [3, 6, 2, 4, 3],
    ] {
        let mut buffers = lens.map(|len| vec![0.0; len]);
        let [mean, factor, scale, log_deviation, prior] = &mut buffers;
        let gradients = KlGradients {
            mean,
            factor,
            scale,
            log_deviation,
            prior_variance: Some(prior),
        };
        assert!(q.kl_with_gradients(&[1.0; 3], 1.0, gradients).is_err());
    }
}
