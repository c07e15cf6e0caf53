//! Predictive distributions against integrals and sums that are slow and obvious.

use super::*;

/// Of the integrals below: the midpoint rule with this many cells over all that counts.
const CELLS: usize = 400_000;
const TOLERANCE: f64 = 1e-7;

fn gaussians() -> Mixtures {
    let means = vec![-1.0, 0.3, 2.0, 5.0, 5.0, 5.0, 0.0, 100.0, 0.1];
    let deviations = vec![0.2, 1.5, 0.7, 1e-3, 1e-3, 1e-3, 3.0, 0.5, 1e-2];
    Mixtures::gaussian(3, means, deviations).expect("valid")
}

fn counts() -> Mixtures {
    Mixtures::poisson(2, vec![0.0, 0.4, 3.0, 7.5, 80.0, 120.0, 0.0, 0.0]).expect("valid")
}

/// The sum of the normal densities, written out.
fn density(means: &[f64], deviations: &[f64], y: f64) -> f64 {
    let one = |(m, v): (&f64, &f64)| {
        (-(y - m) * (y - m) / (2.0 * v * v)).exp() / (v * (2.0 * std::f64::consts::PI).sqrt())
    };
    means.iter().zip(deviations).map(one).sum::<f64>() / means.len() as f64
}

#[test]
fn gaussian_mixtures_are_what_integration_says() {
    let all = gaussians();
    let targets = [0.5, 5.0005, 40.0];
    let (crps, likelihood) = (
        all.crps(&targets).unwrap(),
        all.log_likelihoods(&targets).unwrap(),
    );
    let cdf = all.cdf(&targets).unwrap();
    let (mean, deviation) = (all.mean(), all.deviation());
    for row in 0..3 {
        let means = &all.locations()[3 * row..][..3];
        let deviations = &all.deviations()[3 * row..][..3];
        let low = means.iter().zip(deviations).map(|(m, v)| m - 12.0 * v);
        let low = low.fold(targets[row], f64::min);
        let high = means.iter().zip(deviations).map(|(m, v)| m + 12.0 * v);
        let high = high.fold(targets[row], f64::max);
        let cell = (high - low) / CELLS as f64;
        let (mut below, mut first, mut second, mut score, mut at_target) =
            (0.0, 0.0, 0.0, 0.0, 0.0);
        for i in 0..CELLS {
            let y = low + (i as f64 + 0.5) * cell;
            let mass = density(means, deviations, y) * cell;
            let middle = below + mass / 2.0;
            let gap = if y >= targets[row] {
                middle - 1.0
            } else {
                middle
            };
            score += gap * gap * cell;
            first += y * mass;
            second += y * y * mass;
            below += mass;
            if y < targets[row] {
                at_target = below;
            }
        }
        let scale = high - low;
        assert!((below - 1.0).abs() < 1e-9);
        assert!((mean[row] - first).abs() < TOLERANCE * scale);
        let variance = second - first * first;
        assert!((deviation[row].powi(2) - variance).abs() < TOLERANCE * scale * scale);
        // A cell at the step of the distribution function counts half.
        assert!(
            (crps[row] - score).abs() < 2.0 * cell,
            "{} {score}",
            crps[row]
        );
        let largest = density(means, deviations, targets[row]).max(1.0 / scale);
        assert!((cdf[row] - at_target).abs() < 2.0 * cell * largest);
        let expected = density(means, deviations, targets[row]).ln();
        assert!(
            (likelihood[row] - expected).abs() < 1e-9,
            "{}",
            likelihood[row]
        );
    }
}

#[test]
fn variances_add_up() {
    for all in [gaussians(), counts()] {
        let parts = all
            .aleatoric_deviation()
            .into_iter()
            .zip(all.epistemic_deviation());
        for ((aleatoric, epistemic), total) in parts.zip(all.deviation()) {
            assert!((aleatoric.hypot(epistemic) - total).abs() <= 1e-12 * total.max(1.0));
        }
    }
    assert_eq!(gaussians().epistemic_deviation()[1], 0.0, "all agree");
}

#[test]
fn quantiles_invert_the_distribution() {
    let all = gaussians();
    for p in [1e-6, 0.05, 0.3, 0.5, 0.95, 1.0 - 1e-6] {
        let quantiles = all.quantile(p).unwrap();
        for (quantile, back) in quantiles.iter().zip(all.cdf(&quantiles).unwrap()) {
            // Between two far components the distribution is flat, and p has many quantiles.
            assert!((back - p).abs() < 1e-9, "{p}: {quantile} {back}");
        }
    }
    let all = counts();
    for p in [1e-6, 0.05, 0.3, 0.5, 0.95, 1.0 - 1e-9] {
        let quantiles = all.quantile(p).unwrap();
        let before: Vec<f64> = quantiles.iter().map(|q| q - 1.0).collect();
        let (at, before) = (all.cdf(&quantiles).unwrap(), all.cdf(&before).unwrap());
        assert!(at.iter().all(|at| *at >= p) && before.iter().all(|before| *before < p));
    }
    assert_eq!(all.quantile(0.5).unwrap()[3], 0.0, "a rate of 0");
}

#[test]
fn counts_are_what_sums_say() {
    let all = counts();
    let probability = |row: usize, k: u32| {
        let rates = &all.locations()[2 * row..][..2];
        let one = |rate: &f64| {
            let factors = (1..=k).map(|i| rate / f64::from(i));
            (-rate).exp() * factors.product::<f64>()
        };
        rates.iter().map(one).sum::<f64>() / 2.0
    };
    for y in [0_u32, 1, 5, 90, 300] {
        let targets = [f64::from(y); 4];
        let crps = all.crps(&targets).unwrap();
        let (cdf, likelihood) = (
            all.cdf(&targets).unwrap(),
            all.log_likelihoods(&targets).unwrap(),
        );
        for row in 0..4 {
            let mut below = 0.0;
            let mut score = 0.0;
            for k in 0..400 {
                below += probability(row, k);
                score += if k >= y {
                    (below - 1.0).powi(2)
                } else {
                    below * below
                };
                if k == y {
                    assert!((cdf[row] - below).abs() < 1e-12);
                }
            }
            assert!(
                (crps[row] - score).abs() < 1e-9 * score.max(1.0),
                "{row} {y}: {} {score}",
                crps[row]
            );
            let expected = probability(row, y).ln();
            if expected > -600.0 {
                assert!((likelihood[row] - expected).abs() < 1e-9 * expected.abs().max(1.0));
            } else {
                assert!(likelihood[row] < -600.0);
            }
        }
    }
    let half = all.log_likelihoods(&[0.5; 4]).unwrap();
    assert!(half.iter().all(|p| *p == f64::NEG_INFINITY), "no count");
}

#[test]
fn batches_do_not_matter() {
    let all = gaussians();
    let targets = [0.5, 5.0, 40.0];
    let whole = regression_report(&all, &targets).unwrap();
    let mut metrics = RegressionMetrics::default();
    for row in (0..3).rev() {
        let range = 3 * row..3 * row + 3;
        let (means, deviations) = (&all.locations()[range.clone()], &all.deviations()[range]);
        let one = Mixtures::gaussian(3, means.to_vec(), deviations.to_vec()).unwrap();
        let mut other = RegressionMetrics::default();
        other.update(&one, &targets[row..=row]).unwrap();
        metrics.merge(&other);
    }
    let parts = metrics.finish().unwrap();
    assert_eq!(
        (whole.rows, whole.coverage90),
        (parts.rows, parts.coverage90)
    );
    assert!((whole.log_likelihood - parts.log_likelihood).abs() < 1e-12);
    assert!((whole.rmse - parts.rmse).abs() < 1e-12 && (whole.crps - parts.crps).abs() < 1e-12);
}

/// Of draws from the predictive distribution itself, every interval holds its share.
#[test]
fn honest_predictions_are_calibrated() {
    const ROWS: usize = 4000;
    for family in [Family::Gaussian, Family::Poisson] {
        let locations: Vec<f64> = (0..2 * ROWS)
            .map(|i| 4.0 + (i as f64 * 0.7).sin())
            .collect();
        let all = match family {
            Family::Gaussian => Mixtures::gaussian(2, locations, vec![0.8; 2 * ROWS]),
            Family::Poisson => Mixtures::poisson(2, locations),
        };
        let all = all.unwrap();
        // A low-discrepancy sequence of probabilities, through the quantiles.
        let p = |row: usize| ((row as f64 + 0.5) * 0.618_033_988_749_894_9).fract();
        let targets: Vec<f64> = (0..ROWS).map(|row| all.row(row).quantile(p(row))).collect();
        let mut metrics = RegressionMetrics::default();
        metrics.update(&all, &targets).unwrap();
        let report = metrics.finish().unwrap();
        for coverage in metrics.coverage().unwrap() {
            let gap = coverage.observed - coverage.nominal;
            match family {
                Family::Gaussian => assert!(gap.abs() < 0.005, "{coverage:?}"),
                // An interval of counts holds its share or more.
                Family::Poisson => assert!(gap > -0.005, "{coverage:?}"),
            }
        }
        assert!(report.coverage90 >= 0.895 && report.width90 > 0.0);
    }
}

#[test]
fn wrong_predictions_are_named() {
    let error = |result: Result<Mixtures, MetricError>| result.unwrap_err().to_string();
    assert!(error(Mixtures::gaussian(0, vec![1.0], vec![1.0])).contains("at least 1"));
    assert!(error(Mixtures::gaussian(1, vec![], vec![])).contains("the predictions"));
    assert!(error(Mixtures::gaussian(2, vec![1.0; 3], vec![1.0; 3])).contains("multiple of 2"));
    assert!(error(Mixtures::gaussian(1, vec![f64::NAN], vec![1.0])).contains("the means"));
    assert!(error(Mixtures::gaussian(1, vec![1.0], vec![0.0])).contains("deviation"));
    assert!(error(Mixtures::gaussian(1, vec![1.0; 2], vec![1.0])).contains("expected 2"));
    assert!(error(Mixtures::poisson(1, vec![-1.0])).contains("the rates"));
    assert!(error(Mixtures::poisson(1, vec![1e9])).contains("1e8"));
    let all = gaussians();
    assert!(all.quantile(1.0).is_err() && all.interval(0.0).is_err());
    assert!(
        all.crps(&[1.0])
            .unwrap_err()
            .to_string()
            .contains("expected 3")
    );
    assert!(all.cdf(&[1.0, f64::NAN, 0.0]).is_err());
    assert!(error(counts().rescaled(0.0, 2.0)).contains("Gaussian"));
    assert!(error(all.clone().rescaled(0.0, 0.0)).contains("the scale"));
    assert!(error(Mixtures::average(&[])).contains("predictions"));
    assert!(error(Mixtures::average(&[all, counts()])).contains("expected 3"));
}

#[test]
fn averages_and_units() {
    let all = gaussians();
    let twice = Mixtures::average(&[all.clone(), all.clone()]).unwrap();
    assert_eq!((twice.rows(), twice.components()), (3, 6));
    assert_eq!(twice.mean(), all.mean());
    let targets = [0.5, 5.0, 40.0];
    let gap = twice.crps(&targets).unwrap()[0] - all.crps(&targets).unwrap()[0];
    assert!(gap.abs() < 1e-12);
    let scaled = all.clone().rescaled(7.0, 2.0).unwrap();
    let moved = targets.map(|y| 7.0 + 2.0 * y);
    let (own, other) = (
        all.log_likelihoods(&targets).unwrap(),
        scaled.log_likelihoods(&moved).unwrap(),
    );
    for (own, other) in own.iter().zip(other) {
        assert!((own - 2.0_f64.ln() - other).abs() < 1e-9);
    }
}
