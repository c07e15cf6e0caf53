//! Samples, their covariance and their gradients.

use super::*;

#[test]
fn sample_gradients_are_those_of_the_sample() {
    for (d, rank) in [(1, 0), (1, 1), (2, 5), (7, 3), (13, 8), (11, 17)] {
        for jitter in [0.0, 0.2] {
            let problem = Problem::new(31, d, rank, jitter);
            let (xi, zeta): (Vec<f64>, Vec<f64>) = (normal(32, 0, rank), normal(32, 1, d));
            let grad: Vec<f64> = normal(32, 2, d);
            let (mut factor, mut scale) = (vec![9.0; d * rank], vec![9.0; rank]);
            let mut log_deviation = vec![9.0; d];
            let gradients = SampleGradients {
                factor: &mut factor,
                scale: &mut scale,
                log_deviation: &mut log_deviation,
            };
            problem
                .gaussian()
                .sample_backward(&xi, &zeta, &grad, gradients)
                .unwrap();
            let gradients = [grad.clone(), factor, scale, log_deviation];
            let loss = |parameters: &_| {
                let mut a = vec![0.0; d];
                let q = problem.gaussian_of(parameters);
                q.sample_into(&xi, &zeta, &mut a).unwrap();
                dot(&a, &grad)
            };
            let parameters = &problem.parameters;
            check_differences(parameters, &gradients, DIFFERENCES, usize::MAX, loss);
            check_added(&problem, (&xi, &zeta), &gradients);
        }
    }
}

/// `add_sample_gradients` adds a share of `gradients` to what is there.
fn check_added(problem: &Problem<f64>, (xi, zeta): (&[f64], &[f64]), gradients: &[Vec<f64>; 4]) {
    const SHARE: f64 = 0.3;
    let before = |which: usize| -> Vec<f64> {
        let number = |i: usize| ((i * 7 + which) % 5) as f64 - 2.0;
        (0..gradients[which].len()).map(number).collect()
    };
    let mut sums = [0, 1, 2, 3].map(before);
    let [mean, factor, scale, log_deviation] = sums.each_mut().map(|sums| &mut sums[..]);
    let added_to = KlGradients {
        mean,
        factor,
        scale,
        log_deviation,
        prior_variance: None,
    };
    let q = problem.gaussian();
    q.add_sample_gradients(xi, zeta, &gradients[0], SHARE, added_to)
        .unwrap();
    for (which, sums) in sums.iter().enumerate() {
        let expected = before(which).into_iter().zip(&gradients[which]);
        for (sum, (before, gradient)) in sums.iter().zip(expected) {
            assert!(close(*sum, before + SHARE * gradient, 1e-14));
        }
    }
}

/// A sample is linear in its noise, so unit vectors of noise give the factors of the covariance.
#[test]
fn the_covariance_of_samples_is_the_formula() {
    for (d, rank) in SHAPES.into_iter().filter(|(d, _)| *d < 100) {
        let problem = Problem::new(41, d, rank, 0.1);
        let (q, mean) = (problem.gaussian(), &problem.parameters[0]);
        let mut covariance = vec![0.0; d * d];
        for unit in 0..rank + d {
            let mut noise = vec![0.0; rank + d];
            noise[unit] = 1.0;
            let mut a = vec![0.0; d];
            q.sample_into(&noise[..rank], &noise[rank..], &mut a)
                .unwrap();
            for i in 0..d {
                for j in 0..d {
                    let (x, y) = (a[i] - mean[i], a[j] - mean[j]);
                    covariance[i * d + j] += x * y;
                }
            }
        }
        for (found, expected) in covariance.iter().zip(problem.covariance()) {
            assert!(close(*found, expected, 1e-12), "{found} {expected}");
        }
    }
}

#[test]
fn samples_have_the_mean_and_the_covariance() {
    let (d, rank, count) = (3, 2, 40_000);
    let problem = Problem::new(51, d, rank, 0.0);
    let mean = &problem.parameters[0];
    let noise: Vec<f64> = normal(52, 0, count * (d + rank));
    let mut a = vec![0.0; d];
    let (mut sums, mut products) = (vec![0.0; d], vec![0.0; d * d]);
    for noise in noise.chunks(d + rank) {
        let (xi, zeta) = noise.split_at(rank);
        problem.gaussian().sample_into(xi, zeta, &mut a).unwrap();
        for i in 0..d {
            sums[i] += a[i] / count as f64;
            for j in 0..d {
                let product = (a[i] - mean[i]) * (a[j] - mean[j]);
                products[i * d + j] += product / count as f64;
            }
        }
    }
    let covariance = problem.covariance();
    for i in 0..d {
        let standard_error = (covariance[i * d + i] / count as f64).sqrt();
        assert!((sums[i] - mean[i]).abs() < 5.0 * standard_error);
        for j in 0..d {
            let product = covariance[i * d + i] * covariance[j * d + j];
            let variance = product + covariance[i * d + j].powi(2);
            let error = (products[i * d + j] - covariance[i * d + j]).abs();
            assert!(error < 5.0 * (variance / count as f64).sqrt());
        }
    }
}
