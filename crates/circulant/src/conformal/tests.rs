//! Coverage over many splits, and sets against their definition.

use super::*;
use crate::metrics::{MetricError, Probabilities};

/// Uniform numbers in `[0, 1)`.
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ z >> 31) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() * count as f64) as usize
    }

    /// Sum of twelve: near enough to a Gaussian.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

/// Predictions of a model that is too sure of itself, and classes drawn from what it should have said.
fn population(random: &mut Uniform, rows: usize, classes: usize) -> (Vec<f64>, Vec<usize>) {
    let (mut probabilities, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let logits: Vec<f64> = (0..classes).map(|_| 1.5 * random.normal()).collect();
        let softmax = |scale: f64| -> Vec<f64> {
            let weights: Vec<f64> = logits.iter().map(|z| (scale * z).exp()).collect();
            let sum: f64 = weights.iter().sum();
            weights.iter().map(|w| w / sum).collect()
        };
        let mut left = random.next();
        let truth = softmax(1.0);
        let class = truth.iter().position(|p| {
            left -= p;
            left < 0.0
        });
        labels.push(class.unwrap_or(classes - 1));
        probabilities.extend(softmax(1.7));
    }
    (probabilities, labels)
}

/// Mean and variance of the coverage over splits are those of a Beta distribution with `k` and `n + 1 - k`.
fn assert_beta(coverages: &[f64], examples: usize, tested: usize, coverage: f64) {
    let (n, splits) = (examples as f64, coverages.len() as f64);
    let k = ((n + 1.0) * coverage).ceil();
    let expected = k / (n + 1.0);
    let mean = coverages.iter().sum::<f64>() / splits;
    let variance = coverages.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / splits;
    let beta = expected * (1.0 - expected) / (n + 2.0);
    // And that of a share of the tested inputs.
    let all = beta + expected * (1.0 - expected) / tested as f64;
    assert!(
        (mean - expected).abs() < 4.0 * (all / splits).sqrt(),
        "mean {mean}, expected {expected}"
    );
    assert!(
        (0.8..1.25).contains(&(variance / all)),
        "variance {variance}, expected {all}"
    );
}

#[test]
fn coverage_over_a_thousand_splits() {
    const CLASSES: usize = 6;
    let methods = [
        SetMethod::Threshold,
        SetMethod::Aps,
        SetMethod::Raps {
            penalty: 0.05,
            free: 2,
        },
    ];
    for (seed, method) in methods.into_iter().enumerate() {
        for (examples, coverage, randomised) in
            [(60, 0.9, false), (25, 0.75, true), (19, 0.95, true)]
        {
            let mut random = Uniform(17 + seed as u64);
            let mut sizes = 0.0;
            let coverages: Vec<f64> = (0..1000)
                .map(|split| {
                    let mut config = ConformalConfig::new()
                        .with_coverage(coverage)
                        .with_method(method);
                    config.randomised = randomised.then_some(split);
                    let (held, labels) = population(&mut random, examples, CLASSES);
                    let sets = config
                        .calibrate(&Probabilities::new(&held, CLASSES).unwrap(), &labels)
                        .unwrap();
                    let (test, labels) = population(&mut random, 200, CLASSES);
                    let found = sets
                        .sets(&Probabilities::new(&test, CLASSES).unwrap())
                        .unwrap();
                    let summary = found.summary(&labels).unwrap();
                    sizes += summary.mean_size / 1000.0;
                    summary.coverage
                })
                .collect();
            if randomised || method == SetMethod::Threshold {
                assert_beta(&coverages, examples, 200, coverage);
            } else {
                // The score of the last class is 1 for all inputs: ties only add to the coverage.
                let mean = coverages.iter().sum::<f64>() / 1000.0;
                assert!((coverage - 0.005..1.0).contains(&mean), "{method:?} {mean}");
            }
            assert!((1.0..5.5).contains(&sizes), "{method:?} {sizes}");
        }
    }
}

#[test]
fn intervals_cover_over_a_thousand_splits() {
    let mut random = Uniform(5);
    // The noise grows with the input, and the deviation says half of it.
    let mut draw = |rows: usize| {
        let mut all = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..rows {
            let x = random.next();
            let noise = 0.2 + x;
            all[0].push(2.0 * x);
            all[1].push(0.5 * noise);
            all[2].push(2.0 * x + noise * random.normal());
        }
        all
    };
    for (examples, coverage) in [(80, 0.9), (19, 0.95), (9, 0.5)] {
        let coverages: Vec<f64> = (0..1000)
            .map(|_| {
                let [means, deviations, targets] = draw(examples);
                let intervals =
                    ConformalIntervals::calibrate(coverage, &means, &deviations, &targets).unwrap();
                let [means, deviations, targets] = draw(200);
                let found = intervals.intervals(&means, &deviations).unwrap();
                let summary = intervals.summary(&means, &deviations, &targets).unwrap();
                let inside = found
                    .iter()
                    .zip(&targets)
                    .filter(|([low, high], y)| low <= y && *y <= high);
                assert_eq!(summary.coverage, inside.count() as f64 / 200.0);
                let width = found.iter().map(|[low, high]| high - low).sum::<f64>() / 200.0;
                assert!((summary.mean_width - width).abs() < 1e-9 * width);
                summary.coverage
            })
            .collect();
        assert_beta(&coverages, examples, 200, coverage);
    }
}

/// The score by its definition.
fn slow_score(method: SetMethod, p: &[f64], class: usize) -> f64 {
    let above: Vec<f64> = p
        .iter()
        .copied()
        .filter(|&other| other > p[class])
        .collect();
    let total = above.iter().sum::<f64>() + p[class];
    match method {
        SetMethod::Threshold => 1.0 - p[class],
        SetMethod::Aps => total,
        SetMethod::Raps { penalty, free } => {
            total + penalty * (above.len() + 1).saturating_sub(free) as f64
        }
    }
}

/// A class is in the set if the conformal p-value, `(1 + how many scores are at least as large)/(n + 1)`, is above `1 - c`: whole numbers, and no
/// quantile.
#[test]
fn sets_are_those_of_the_p_values() {
    let mut random = Uniform(3);
    for classes in [1, 2, 3, 7] {
        for percent in [10, 50, 80, 90] {
            for method in [SetMethod::Threshold, SetMethod::Aps, SetMethod::RAPS] {
                let examples = 9 + random.below(30);
                // Coarse probabilities: scores are often equal.
                let coarse = |random: &mut Uniform, rows: usize| -> Vec<f64> {
                    let row = |random: &mut Uniform| {
                        let mut p = vec![0.0; classes];
                        for _ in 0..8 {
                            p[random.below(classes)] += 0.125;
                        }
                        p
                    };
                    (0..rows).flat_map(|_| row(random)).collect()
                };
                let held = coarse(&mut random, examples);
                let labels: Vec<usize> = (0..examples).map(|_| random.below(classes)).collect();
                let config = ConformalConfig::new()
                    .with_coverage(percent as f64 / 100.0)
                    .with_method(method);
                let sets = config
                    .calibrate(&Probabilities::new(&held, classes).unwrap(), &labels)
                    .unwrap();
                let test = coarse(&mut random, 40);
                let found = sets
                    .sets(&Probabilities::new(&test, classes).unwrap())
                    .unwrap();
                let scores = held.chunks_exact(classes).zip(&labels);
                let scores: Vec<f64> = scores
                    .map(|(p, &label)| slow_score(method, p, label))
                    .collect();
                for (row, p) in test.chunks_exact(classes).enumerate() {
                    for class in 0..classes {
                        let own = slow_score(method, p, class);
                        let larger = scores.iter().filter(|&&score| score >= own - 1e-12).count();
                        let expected = (1 + larger) * 100 > (100 - percent) * (examples + 1);
                        assert_eq!(
                            found.members(row)[class],
                            expected,
                            "{method:?} {percent} {row} {class}"
                        );
                    }
                    let members: Vec<usize> = found.classes_of(row).collect();
                    assert!(members.iter().all(|&class| found.members(row)[class]));
                }
            }
        }
    }
}

/// Whatever the probabilities were within the bounds, the robust set has all classes of their set.
#[test]
fn robust_sets_contain_all_sets_within_the_bounds() {
    const CLASSES: usize = 5;
    let mut random = Uniform(8);
    let (held, labels) = population(&mut random, 200, CLASSES);
    let mut larger = 0;
    for method in [
        SetMethod::Threshold,
        SetMethod::Aps,
        SetMethod::Raps {
            penalty: 0.1,
            free: 1,
        },
    ] {
        for randomised in [None, Some(4)] {
            let mut config = ConformalConfig::new()
                .with_coverage(0.8)
                .with_method(method);
            config.randomised = randomised;
            let sets = config
                .calibrate(&Probabilities::new(&held, CLASSES).unwrap(), &labels)
                .unwrap();
            let (test, _) = population(&mut random, 300, CLASSES);
            let reach = 0.05;
            let bounds = ProbabilityBounds {
                classes: CLASSES,
                lower: test.iter().map(|p| (p - reach).max(0.0)).collect(),
                upper: test.iter().map(|p| (p + reach).min(1.0)).collect(),
            };
            let robust = sets.robust_sets(&bounds).unwrap();
            for _ in 0..30 {
                // Moves within the bounds that keep the sum.
                let mut moved = test.clone();
                for row in moved.chunks_exact_mut(CLASSES) {
                    let (from, to) = (random.below(CLASSES), random.below(CLASSES));
                    let step = (reach * random.next()).min(row[from]).min(1.0 - row[to]);
                    row[from] -= step;
                    row[to] += step;
                }
                let found = sets
                    .sets(&Probabilities::new(&moved, CLASSES).unwrap())
                    .unwrap();
                for row in 0..300 {
                    let pairs = found.members(row).iter().zip(robust.members(row));
                    assert!(
                        pairs.clone().all(|(own, robust)| !own || *robust),
                        "{method:?} {row}"
                    );
                    larger += usize::from(pairs.clone().any(|(own, robust)| own != robust));
                }
            }
            let exact = ProbabilityBounds {
                classes: CLASSES,
                lower: test.clone(),
                upper: test.clone(),
            };
            let plain = sets
                .sets(&Probabilities::new(&test, CLASSES).unwrap())
                .unwrap();
            assert_eq!(
                sets.robust_sets(&exact).unwrap(),
                plain,
                "bounds without room change nothing"
            );
        }
    }
    assert!(larger > 1000, "{larger}");
}

#[test]
fn wrong_arguments_say_what_to_do() {
    let probabilities = Probabilities::new(&[0.5, 0.5, 1.0, 0.0], 2).unwrap();
    let config = ConformalConfig::new().with_coverage(0.5);
    let error = config.calibrate(&probabilities, &[0_usize, 2]).unwrap_err();
    assert!(error.to_string().contains("row 1") && error.to_string().contains("0..2"));
    let error = ConformalConfig::new()
        .calibrate(&probabilities, &[0, 1])
        .unwrap_err();
    assert_eq!(
        error,
        ConformalError::TooFew {
            coverage: 0.9,
            needed: 9,
            got: 2
        }
    );
    for got in [-1.0, f64::NAN, f64::INFINITY] {
        let method = SetMethod::Raps {
            penalty: got,
            free: 0,
        };
        let error = config
            .clone()
            .with_method(method)
            .calibrate(&probabilities, &[0, 1]);
        assert!(
            matches!(error, Err(ConformalError::Penalty { .. })),
            "{got}"
        );
    }
    let sets = config.calibrate(&probabilities, &[0, 1]).unwrap();
    let other = Probabilities::new(&[0.2, 0.3, 0.5], 3).unwrap();
    assert_eq!(
        sets.sets(&other),
        Err(ConformalError::Classes {
            expected: 2,
            got: 3
        })
    );
    let bounds = |lower: &[f64], upper: &[f64]| ProbabilityBounds {
        classes: 2,
        lower: lower.to_vec(),
        upper: upper.to_vec(),
    };
    for (lower, upper) in [
        ([0.0, 0.6], [0.5, 0.5]),
        ([-0.1, 0.0], [1.0, 1.0]),
        ([0.0, 0.0], [1.0, f64::NAN]),
    ] {
        assert!(matches!(
            sets.robust_sets(&bounds(&lower, &upper)),
            Err(ConformalError::Bounds { .. })
        ));
    }
    assert!(sets.robust_sets(&bounds(&[0.0], &[1.0])).is_err());
    assert!(sets.robust_sets(&bounds(&[0.0, 0.0], &[1.0])).is_err());
    assert!(sets.robust_sets(&bounds(&[], &[])).is_err());
    let found = sets.sets(&probabilities).unwrap();
    assert!(found.summary(&[0_usize]).is_err() && found.summary(&[0, 5]).is_err());
    let one = [1.0, 1.0, 1.0];
    let intervals = |deviations: &[f64]| ConformalIntervals::calibrate(0.5, &one, deviations, &one);
    for got in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = intervals(&[1.0, got, 1.0]).unwrap_err().to_string();
        assert!(
            error.contains("row 1") && error.contains("pass 1 everywhere"),
            "{error}"
        );
    }
    let length = MetricError::Length {
        what: "the deviations",
        expected: 3,
        got: 2,
    };
    assert_eq!(intervals(&one[..2]), Err(length.into()));
    assert!(ConformalIntervals::calibrate(0.5, &one, &one, &[0.0, f64::NAN, 1.0]).is_err());
    assert!(ConformalIntervals::calibrate(0.5, &one, &one, &one[..2]).is_err());
    assert!(ConformalIntervals::calibrate::<f64>(0.5, &[], &[], &[]).is_err());
}
