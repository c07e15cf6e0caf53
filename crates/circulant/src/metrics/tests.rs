//! Every metric against a slow and obvious oracle, on data full of ties, zeros and ones.

use proptest::prelude::*;

use super::ood::Counts;
use super::random::Random;
use super::*;

/// Sums of a few dozen values of size one, in another order.
const TOLERANCE: f64 = 1e-12;

/// The oracle of the density sums thousands of kernels in plain order; in peaks of the kernel.
const DENSITY_TOLERANCE: f64 = 1e-11;

#[derive(Debug, Clone)]
struct Data {
    classes: usize,
    probabilities: Vec<f64>,
    labels: Vec<usize>,
}

impl Data {
    fn view(&self) -> Probabilities<'_, f64> {
        Probabilities::new(&self.probabilities, self.classes).expect("normalised")
    }

    fn rows(&self) -> impl Iterator<Item = (&[f64], usize)> + Clone {
        let rows = self.probabilities.chunks(self.classes);
        rows.zip(self.labels.iter().copied())
    }

    /// Confidence and 1 for right, 0 for wrong.
    fn outcomes(&self) -> Vec<(f64, f64)> {
        let outcome = |(row, label): (&[f64], usize)| {
            let confidence = row.iter().copied().fold(0.0, f64::max);
            let class = row.iter().position(|&p| p == confidence);
            (confidence, f64::from(u8::from(class == Some(label))))
        };
        self.rows().map(outcome).collect()
    }
}

/// Small whole weights make ties, zeros and ones likely, and confidences on the edges of bins.
fn data() -> impl Strategy<Value = Data> {
    (1_usize..40, 1_usize..5).prop_flat_map(|(rows, classes)| {
        let weights = prop::collection::vec(prop::collection::vec(0_u8..5, classes), rows);
        let labels = prop::collection::vec(0..classes, rows);
        (weights, labels).prop_map(move |(weights, labels)| {
            let normalise = |mut row: Vec<u8>| {
                if row.iter().all(|&weight| weight == 0) {
                    row[0] = 1;
                }
                let sum: f64 = row.iter().map(|&weight| f64::from(weight)).sum();
                row.into_iter().map(move |weight| f64::from(weight) / sum)
            };
            Data {
                classes,
                probabilities: weights.into_iter().flat_map(normalise).collect(),
                labels,
            }
        })
    })
}

fn scores() -> impl Strategy<Value = Vec<f64>> {
    let tied = (-4_i32..5).prop_map(f64::from);
    prop::collection::vec(prop_oneof![tied, -4.0..5.0], 1..40)
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= TOLERANCE * (1.0 + b.abs())
}

/// Count and gap of the bins with rows.
fn gaps(outcomes: &[(f64, f64)], bins: usize) -> Vec<(f64, f64)> {
    let edge = |j: usize| j as f64 / bins as f64;
    let inside = |j: usize| {
        let inside = |&&(c, _): &&(f64, f64)| c > edge(j) && c <= edge(j + 1);
        outcomes.iter().filter(inside).copied().collect::<Vec<_>>()
    };
    let bins = (0..bins).map(inside).filter(|bin| !bin.is_empty());
    bins.map(|bin| (bin.len() as f64, gap(&bin))).collect()
}

fn gap(bin: &[(f64, f64)]) -> f64 {
    let sum = |part: fn(&(f64, f64)) -> f64| bin.iter().map(part).sum::<f64>();
    (sum(|row| row.0) - sum(|row| row.1)).abs() / bin.len() as f64
}

fn adaptive_oracle(outcomes: &[(f64, f64)], bins: usize) -> f64 {
    let rows = outcomes.len();
    let with_mean_of_ties = |&(confidence, _): &(f64, f64)| {
        let ties = outcomes.iter().filter(|row| row.0 == confidence);
        let right: f64 = ties.clone().map(|row| row.1).sum();
        (confidence, right / ties.count() as f64)
    };
    let mut sorted: Vec<_> = outcomes.iter().map(with_mean_of_ties).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut sum = 0.0;
    for j in 0..bins {
        let size = rows / bins + usize::from(j < rows % bins);
        let bin: Vec<_> = sorted.drain(..size).collect();
        if size > 0 {
            sum += size as f64 / rows as f64 * gap(&bin);
        }
    }
    sum
}

fn auroc_oracle(id: &[f64], ood: &[f64]) -> f64 {
    let mut wins = 0.0;
    for a in id {
        for b in ood {
            wins += if a > b {
                1.0
            } else if a == b {
                0.5
            } else {
                0.0
            };
        }
    }
    wins / (id.len() * ood.len()) as f64
}

fn aupr_oracle(id: &[f64], ood: &[f64]) -> f64 {
    let mut thresholds: Vec<f64> = id.iter().chain(ood).copied().collect();
    thresholds.sort_by(|a, b| b.total_cmp(a));
    thresholds.dedup();
    let above = |scores: &[f64], t: f64| scores.iter().filter(|&&s| s >= t).count() as f64;
    let (mut area, mut last_recall) = (0.0, 0.0);
    for t in thresholds {
        let (hits, alarms) = (above(id, t), above(ood, t));
        let recall = hits / id.len() as f64;
        area += (recall - last_recall) * hits / (hits + alarms);
        last_recall = recall;
    }
    area
}

fn fpr_oracle(id: &[f64], ood: &[f64]) -> f64 {
    let mut id = id.to_vec();
    id.sort_by(f64::total_cmp);
    let position = (id.len() - 1) as f64 * 0.05;
    let (below, share) = (position as usize, position.fract());
    let next = id[(below + 1).min(id.len() - 1)];
    let threshold = id[below] + (next - id[below]) * share;
    ood.iter().filter(|&&s| s >= threshold).count() as f64 / ood.len() as f64
}

fn density_oracle(values: &[f64], [lower, upper]: [f64; 2], h: f64, x: f64) -> f64 {
    let mut sum = 0.0;
    for value in values {
        for k in -30..=30 {
            let shift = 2.0 * f64::from(k) * (upper - lower);
            for image in [value + shift, 2.0 * lower - value + shift] {
                sum += (-0.5 * ((x - image) / h).powi(2)).exp();
            }
        }
    }
    sum / (values.len() as f64 * h * (2.0 * std::f64::consts::PI).sqrt())
}

/// `values[i]` as often as `counts[i]` says.
fn repeat<T: Copy>(values: &[T], counts: &[u32]) -> Vec<T> {
    let pairs = values.iter().zip(counts);
    pairs
        .flat_map(|(&value, &count)| std::iter::repeat_n(value, count as usize))
        .collect()
}

proptest! {
    #[test]
    fn classification_is_what_its_definition_says(data in data(), bins in 1_usize..20) {
        let report = classification_report(&data.view(), &data.labels, bins).expect("valid");
        let rows = data.labels.len() as f64;
        let mean = |of_row: &dyn Fn(&[f64], usize) -> f64| {
            data.rows().map(|(row, label)| of_row(row, label)).sum::<f64>() / rows
        };
        let outcomes = data.outcomes();
        let right = outcomes.iter().map(|row| row.1).sum::<f64>() / rows;
        let nll = mean(&|row, label| -row[label].ln());
        let brier = mean(&|row, label| {
            let error = |(k, p): (usize, &f64)| (p - f64::from(u8::from(k == label))).powi(2);
            row.iter().enumerate().map(error).sum()
        });
        prop_assert!(close(report.accuracy, right));
        prop_assert!(close(report.nll, nll), "{} {nll}", report.nll);
        prop_assert!(close(report.brier, brier));
        let gaps = gaps(&outcomes, bins);
        let ece = gaps.iter().map(|(count, gap)| count / rows * gap).sum();
        let mce = gaps.iter().fold(0.0, |top: f64, (_, gap)| top.max(*gap));
        prop_assert!(close(report.ece, ece), "{} {ece}", report.ece);
        prop_assert!(close(report.mce, mce));
        let adaptive = adaptive_oracle(&outcomes, bins);
        prop_assert!(close(report.adaptive_ece, adaptive), "{} {adaptive}", report.adaptive_ece);
    }

    #[test]
    fn single_metrics_are_those_of_the_report(data in data(), bins in 1_usize..20) {
        let (view, labels) = (data.view(), &data.labels[..]);
        let report = classification_report(&view, labels, bins).expect("valid");
        prop_assert_eq!(accuracy(&view, labels), Ok(report.accuracy));
        prop_assert_eq!(negative_log_likelihood(&view, labels), Ok(report.nll));
        prop_assert_eq!(brier_score(&view, labels), Ok(report.brier));
        prop_assert_eq!(expected_calibration_error(&view, labels, bins), Ok(report.ece));
        prop_assert_eq!(maximum_calibration_error(&view, labels, bins), Ok(report.mce));
        prop_assert_eq!(adaptive_calibration_error(&view, labels, bins), Ok(report.adaptive_ece));
    }

    #[test]
    fn batches_make_no_difference(data in data(), cut in 0.0..1.0_f64, second in 0.0..1.0_f64) {
        let whole = classification_report(&data.view(), &data.labels, 10).expect("valid");
        let rows = data.labels.len();
        let mut cuts = [0, (cut * rows as f64) as usize, (second * rows as f64) as usize, rows];
        cuts.sort_unstable();
        let mut parts = ClassificationMetrics::new(10).expect("bins");
        let mut merged = parts.clone();
        for pair in cuts.windows(2).filter(|pair| pair[0] < pair[1]) {
            let part = &data.probabilities[pair[0] * data.classes..pair[1] * data.classes];
            let part = Probabilities::new(part, data.classes).expect("normalised");
            let labels = &data.labels[pair[0]..pair[1]];
            parts.update(&part, labels).expect("valid");
            let mut one = ClassificationMetrics::new(10).expect("bins");
            one.update(&part, labels).expect("valid");
            merged.merge(&one).expect("same bins");
        }
        for report in [parts.finish().expect("rows"), merged.finish().expect("rows")] {
            prop_assert_eq!(report.rows, whole.rows);
            prop_assert_eq!(report.accuracy, whole.accuracy);
            prop_assert_eq!(report.adaptive_ece, whole.adaptive_ece);
            prop_assert!(close(report.nll, whole.nll));
            prop_assert!(close(report.brier, whole.brier));
            prop_assert!(close(report.ece, whole.ece) && close(report.mce, whole.mce));
        }
    }

    #[test]
    fn ood_metrics_count_pairs_and_thresholds(id in scores(), ood in scores()) {
        let report = ood_report(&id, &ood).expect("valid");
        prop_assert!(close(report.auroc, auroc_oracle(&id, &ood)));
        prop_assert!(close(report.aupr, aupr_oracle(&id, &ood)));
        prop_assert!(close(report.fpr95, fpr_oracle(&id, &ood)));
        // Swapping the sides turns wins into losses.
        prop_assert!(close(auroc(&ood, &id).expect("valid"), 1.0 - report.auroc));
    }

    #[test]
    fn counts_stand_for_repeated_scores(
        pairs in prop::collection::vec((-3_i32..4, 0_u32..4, 0_u32..4), 1..20)
    ) {
        let mut values: Vec<f64> = pairs.iter().map(|pair| f64::from(pair.0)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let size = values.len();
        let mut counts = Counts {
            id: pairs[..size].iter().map(|pair| pair.1).collect(),
            ood: pairs[..size].iter().map(|pair| pair.2).collect(),
        };
        counts.id[0] += 1;
        counts.ood[size - 1] += 1;
        let (id, ood) = (repeat(&values, &counts.id), repeat(&values, &counts.ood));
        let scores = OodScores::new(&values, &values).expect("valid");
        prop_assert_eq!(Ok(scores.report_of(&counts)), ood_report(&id, &ood));
    }

    #[test]
    fn bootstrap_counts_stand_for_repeated_rows(data in data(), seed: u64) {
        // The bootstrap sorts rows by confidence and outcome; sorted rows keep their place.
        let mut rows: Vec<_> = data.rows().zip(data.outcomes()).collect();
        rows.sort_by(|a, b| a.1.partial_cmp(&b.1).expect("numbers"));
        let labels: Vec<usize> = rows.iter().map(|row| row.0.1).collect();
        let probabilities = rows.iter().flat_map(|row| row.0.0).copied().collect();
        let sorted = Data { labels, probabilities, classes: data.classes };
        let bootstrap = Bootstrap::new(seed).with_resamples(9).with_confidence(0.8);
        let intervals = bootstrap.classification(&sorted.view(), &sorted.labels, 7).expect("valid");
        let check = |metric: fn(ClassificationReport) -> f64, interval: Interval| {
            let slow = bootstrap.interval(sorted.labels.len(), |counts| {
                let indices: Vec<usize> = (0..sorted.labels.len()).collect();
                let indices = repeat(&indices, counts);
                let row = |&i: &usize| &sorted.probabilities[i * data.classes..][..data.classes];
                let drawn = Data {
                    classes: data.classes,
                    probabilities: indices.iter().flat_map(row).copied().collect(),
                    labels: indices.iter().map(|&i| sorted.labels[i]).collect(),
                };
                let report = classification_report(&drawn.view(), &drawn.labels, 7);
                metric(report.expect("valid"))
            });
            let slow = slow.expect("numbers");
            close(interval.estimate, slow.estimate)
                && close(interval.lower, slow.lower)
                && close(interval.upper, slow.upper)
        };
        prop_assert!(check(|report| report.accuracy, intervals.accuracy));
        prop_assert!(check(|report| report.nll, intervals.nll));
        prop_assert!(check(|report| report.brier, intervals.brier));
        prop_assert!(check(|report| report.ece, intervals.ece));
        prop_assert!(check(|report| report.mce, intervals.mce));
        prop_assert!(check(|report| report.adaptive_ece, intervals.adaptive_ece));
    }

    #[test]
    fn bootstrap_draws_both_sides_apart(id in scores(), ood in scores(), seed: u64) {
        // 21 resamples, so that the quantiles 0.05 and 0.95 are the second and the last but one.
        let bootstrap = Bootstrap::new(seed).with_resamples(21).with_confidence(0.9);
        let intervals = bootstrap.ood(&id, &ood).expect("valid");
        let sorted = |scores: &[f64]| {
            let mut scores = scores.to_vec();
            scores.sort_by(f64::total_cmp);
            scores
        };
        let (id, ood) = (sorted(&id), sorted(&ood));
        let resample = |stream: usize| {
            let mut random = Random::new(seed, stream);
            let mut draw = |scores: &[f64]| {
                let mut counts = vec![0; scores.len()];
                random.draw(&mut counts);
                repeat(scores, &counts)
            };
            let (id, ood) = (draw(&id), draw(&ood));
            ood_report(&id, &ood).expect("valid")
        };
        let reports: Vec<OodReport> = (0..21).map(resample).collect();
        let check = |metric: fn(&OodReport) -> f64, interval: Interval| {
            let values = sorted(&reports.iter().map(metric).collect::<Vec<_>>());
            close(interval.lower, values[1]) && close(interval.upper, values[19])
        };
        prop_assert!(check(|report| report.auroc, intervals.auroc));
        prop_assert!(check(|report| report.aupr, intervals.aupr));
        prop_assert!(check(|report| report.fpr95, intervals.fpr95));
    }

    #[test]
    fn densities_are_sums_of_mirrored_kernels(
        values in prop::collection::vec(prop_oneof![Just(-1.0), Just(2.0), -1.0..2.0], 1..30),
        points in prop::collection::vec(-1.0..=2.0, 1..10),
        log_bandwidth in -7.0..2.0_f64,
    ) {
        let bandwidth = log_bandwidth.exp();
        let interval = [-1.0, 2.0];
        let density = KernelDensity::with_bandwidth(&values, interval, bandwidth).expect("valid");
        for (density, &x) in density.evaluate(&points).expect("finite").iter().zip(&points) {
            let oracle = density_oracle(&values, interval, bandwidth, x);
            let error = (density - oracle).abs() * bandwidth;
            prop_assert!(error <= DENSITY_TOLERANCE, "{density} {oracle}");
        }
    }

    #[test]
    fn scores_are_what_their_definitions_say(data in data(), temperature in 0.1..10.0_f64) {
        let view = data.view();
        let term = |&p: &f64| if p == 0.0 { 0.0 } else { -p * p.ln() };
        for (entropy, (row, _)) in entropies(&view).iter().zip(data.rows()) {
            prop_assert!(close(*entropy, row.iter().map(term).sum()));
            prop_assert!((0.0..=(data.classes as f64).ln()).contains(entropy));
        }
        for (top, outcome) in max_probabilities(&view).iter().zip(data.outcomes()) {
            prop_assert_eq!(*top, outcome.0);
        }
        let logits = Logits::new(&data.probabilities, data.classes).expect("finite");
        let energies = energies(&logits, temperature).expect("positive");
        for (energy, (row, _)) in energies.iter().zip(data.rows()) {
            let sum: f64 = row.iter().map(|f| (f / temperature).exp()).sum();
            prop_assert!(close(*energy, -temperature * sum.ln()));
        }
        let softmax = logits.softmax();
        let softmax = Probabilities::new(&softmax, data.classes).expect("normalised");
        let of_logits = negative_log_likelihood_of_logits(&logits, &data.labels).expect("valid");
        let nll = negative_log_likelihood(&softmax, &data.labels).expect("valid");
        prop_assert!(close(of_logits, nll));
        let samples = data.labels.len();
        let information = mutual_information(&view, samples).expect("one input");
        let mean = mean_probabilities(&view, samples).expect("one input");
        let expected = entropies(&view).iter().sum::<f64>() / samples as f64;
        let oracle = mean.iter().map(term).sum::<f64>() - expected;
        prop_assert!((information[0] - oracle.max(0.0)).abs() < TOLERANCE);
    }

    #[test]
    fn single_and_double_precision_agree(data in data()) {
        let single: Vec<f32> = data.probabilities.iter().map(|&p| p as f32).collect();
        let double: Vec<f64> = single.iter().map(|&p| f64::from(p)).collect();
        let labels: Vec<i64> = data.labels.iter().map(|&label| label as i64).collect();
        let single = Probabilities::new(&single, data.classes).expect("normalised");
        let double = Probabilities::new(&double, data.classes).expect("normalised");
        prop_assert_eq!(
            classification_report(&single, &labels, 15),
            classification_report(&double, &data.labels, 15)
        );
    }
}

#[test]
fn the_number_of_threads_does_not_show() {
    let rows = 30_000;
    let value = |i: usize| (i as f64 * 0.618_033_988_749_895).fract();
    let logits: Vec<f64> = (0..rows * 4).map(|i| 6.0 * value(i)).collect();
    let labels: Vec<usize> = (0..rows).map(|i| i * 7 % 4).collect();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().expect("a pool").install(|| {
            let logits = Logits::new(&logits, 4).expect("finite");
            let softmax = logits.softmax();
            let probabilities = Probabilities::new(&softmax, 4).expect("normalised");
            let entropies = entropies(&probabilities);
            let energies = energies(&logits, 2.0).expect("positive");
            (
                classification_report(&probabilities, &labels, 15).expect("valid"),
                negative_log_likelihood_of_logits(&logits, &labels).expect("valid"),
                ood_report(&entropies, &energies).expect("valid"),
                entropy_density(&entropies, 4, 100).expect("valid"),
            )
        })
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(7));
}
