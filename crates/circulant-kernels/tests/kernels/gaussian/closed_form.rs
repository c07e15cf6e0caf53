//! KL, entropy and density against dense matrices, and their gradients.

use proptest::prelude::*;

use super::*;

#[test]
fn kl_entropy_and_density_are_those_of_the_dense_gaussian() {
    for (d, rank) in SHAPES {
        for jitter in [0.0, 1e-6, 0.3] {
            let problem = Problem::new(11, d, rank, jitter);
            let q = problem.gaussian();
            for prior in [&problem.prior[..], &problem.prior[..1]] {
                let (kl, expected) = (q.kl(prior).unwrap(), dense_kl(&problem, prior));
                assert!(close(kl, expected, DENSE), "{d}x{rank}: {kl} {expected}");
                assert_eq!(problem.kl_and_gradients(prior).0, kl);
            }
            let a: Vec<f64> = normal(12, 0, d);
            let residual: Vec<f64> = a
                .iter()
                .zip(&problem.parameters[0])
                .map(|(a, m)| a - m)
                .collect();
            let (log_det, form) = dense_log_det_and_form(&problem.covariance(), &residual);
            let entropy = 0.5 * (d as f64 * (1.0 + TAU.ln()) + log_det);
            assert!(close(q.entropy(), entropy, DENSE), "{d}x{rank}");
            let density = -0.5 * (d as f64 * TAU.ln() + log_det + form);
            assert!(
                close(q.log_density(&a).unwrap(), density, DENSE),
                "{d}x{rank}"
            );
            let mut diagonal = vec![0.0; d];
            q.diagonal_variance(&mut diagonal).unwrap();
            let covariance = problem.covariance();
            for (i, variance) in diagonal.iter().enumerate() {
                assert!(close(*variance, covariance[i * d + i], DENSE));
            }
        }
    }
}

#[test]
fn kl_of_the_prior_itself_is_zero() {
    for rank in [0, 3] {
        let mut problem = Problem::new(1, 17, rank, 0.0);
        let [mean, _, scale, log_deviation] = &mut problem.parameters;
        mean.fill(0.0);
        scale.fill(0.0);
        for (l, variance) in log_deviation.iter_mut().zip(&problem.prior) {
            *l = 0.5 * variance.ln();
        }
        let (kl, gradients) = problem.kl_and_gradients(&problem.prior);
        assert!(kl.abs() < 1e-13, "{kl}");
        assert!(gradients.iter().flatten().all(|g| g.abs() < 1e-13));
        let single = problem.single();
        assert!(single.gaussian().kl(&single.prior).unwrap().abs() < 1e-5);
    }
}
#[test]
fn kl_gradients_are_those_of_the_kl() {
    for (d, rank) in [(1, 0), (1, 1), (2, 5), (7, 3), (13, 8), (11, 9)] {
        for (jitter, each) in [(0.0, true), (0.2, true), (0.2, false)] {
            let problem = Problem::new(21, d, rank, jitter);
            let prior = &problem.prior[..if each { d } else { 1 }];
            let (_, gradients) = problem.kl_and_gradients(prior);
            let [mean, factor, scale, deviation] = problem.parameters.clone();
            let inputs = [mean, factor, scale, deviation, prior.to_vec()];
            check_differences(&inputs, &gradients, DIFFERENCES, usize::MAX, |moved| {
                let [parameters @ .., prior] = moved;
                problem.gaussian_of(parameters).kl(prior).unwrap()
            });
        }
    }
}

proptest! {
    #[test]
    fn kl_is_never_negative(
        seed in 0u64..1 << 40,
        d in 1usize..40,
        rank in 0usize..12,
        jitter in prop::sample::select(vec![0.0, 1e-6, 0.5]),
    ) {
        let problem = Problem::new(seed, d, rank, jitter);
        let kl = problem.gaussian().kl(&problem.prior).unwrap();
        prop_assert!(kl >= 0.0, "{}", kl);
        let single = problem.single();
        prop_assert!(close(single.gaussian().kl(&single.prior).unwrap(), kl, 1e-4));
    }
}
