//! Bounds of probabilities, and sets of classes that rest on them, under attack.

use super::{Attack, CLASSES, FEATURES, SAMPLES, bounds, network, tensor};
use crate::common::numbers;
use crate::geometry::single;
use circulant::conformal::{ConformalConfig, SetMethod};
use circulant::metrics::Probabilities;
use circulant::models::HiddenKind;

#[test]
fn probabilities_stay_within_their_bounds() {
    let network = network(HiddenKind::SpectralCirculant, CLASSES, 5);
    let bounds = bounds(&network, SAMPLES);
    let mut attack = Attack::new(&network);
    let rows = single(numbers(21, 30 * FEATURES));
    let mut nearest = 1.0_f64;
    for radius in [0.0, 1e-3, 0.05, 0.3] {
        let found = bounds
            .probability_bounds(tensor(&rows), radius)
            .expect("bounded");
        let plain = attack.predict(&rows);
        for (index, x) in rows.chunks_exact(FEATURES).enumerate() {
            let (low, high) = (
                &found.lower[index * CLASSES..][..CLASSES],
                &found.upper[index * CLASSES..][..CLASSES],
            );
            let class = index % CLASSES;
            let inside = attack.inputs(x, class, radius, 100, index as u64 + 1);
            let predictions = attack.predict(&inside);
            for p in predictions.probabilities.chunks_exact(CLASSES) {
                for (k, p) in p.iter().enumerate() {
                    let p = f64::from(*p);
                    assert!(
                        low[k] <= p && p <= high[k],
                        "{radius} {index} {k}: {p} of {low:?} {high:?}"
                    );
                    if radius > 0.01 {
                        let own = f64::from(plain.probabilities[index * CLASSES + k]);
                        nearest = nearest.min((high[k] - p) / (high[k] - own));
                    }
                }
            }
            if radius == 0.0 {
                assert!(
                    low.iter().zip(high).all(|(low, high)| high - low < 1e-3),
                    "{low:?} {high:?}"
                );
            }
        }
    }
    assert!(
        nearest < 0.7,
        "the bounds are far from what can be reached: {nearest}"
    );
}

/// Under attack, plain sets lose the true class, robust ones do not.
#[test]
fn robust_sets_keep_the_true_class_under_attack() {
    let network = network(HiddenKind::SpectralCirculant, CLASSES, 5);
    let bounds = bounds(&network, SAMPLES);
    let mut attack = Attack::new(&network);
    let radius = 0.15;
    let rows = single(numbers(31, 400 * FEATURES));
    let predictions = attack.predict(&rows);
    // The classes are drawn from the predictions.
    let draws = numbers(32, 400);
    let label = |(p, draw): (&[f32], &f64)| {
        let mut left = (draw + 1.0) / 2.0;
        let found = p.iter().position(|&p| {
            left -= f64::from(p);
            left < 0.0
        });
        found.unwrap_or(CLASSES - 1)
    };
    let labels: Vec<usize> = predictions
        .probabilities
        .chunks_exact(CLASSES)
        .zip(&draws)
        .map(label)
        .collect();
    let (held, test) = (200 * CLASSES, 200 * FEATURES);
    let mut attacked = Vec::new();
    for (index, x) in rows[test..].chunks_exact(FEATURES).enumerate() {
        let label = labels[200 + index];
        let inside = attack.inputs(x, label, radius, 20, index as u64 + 1);
        let found = attack.predict(&inside);
        let p = |row: usize| found.probabilities[row * CLASSES + label];
        let worst = (0..inside.len() / FEATURES)
            .min_by(|&a, &b| p(a).total_cmp(&p(b)))
            .expect("some");
        attacked.extend_from_slice(&inside[worst * FEATURES..][..FEATURES]);
    }
    let moved = attack.predict(&attacked);
    let within = bounds
        .probability_bounds(tensor(&attacked), radius)
        .expect("bounded");
    for method in [SetMethod::Threshold, SetMethod::Aps] {
        let config = ConformalConfig::new()
            .with_coverage(0.8)
            .with_method(method);
        let held_out =
            Probabilities::new(&predictions.probabilities[..held], CLASSES).expect("valid");
        let sets = config.calibrate(&held_out, &labels[..200]).expect("enough");
        let clean = Probabilities::new(&predictions.probabilities[held..], CLASSES).expect("valid");
        let clean = sets.sets(&clean).expect("same classes");
        let plain = sets
            .sets(&moved.class_probabilities().expect("valid"))
            .expect("same classes");
        let robust = sets.robust_sets(&within).expect("same classes");
        let labels = &labels[200..];
        let (before, after) = (
            clean.summary(labels).unwrap(),
            plain.summary(labels).unwrap(),
        );
        let kept = robust.summary(labels).unwrap();
        println!("{method:?}: {before:?}\n  attacked {after:?}\n  robust {kept:?}");
        for (row, &label) in labels.iter().enumerate() {
            assert!(
                !clean.members(row)[label] || robust.members(row)[label],
                "{method:?} {row}"
            );
        }
        assert!(
            after.coverage < before.coverage - 0.03,
            "the attack is too weak"
        );
        assert!(kept.coverage >= before.coverage);
        // The sums of bounds that the other score takes say nothing about so unsure a network.
        assert!(method != SetMethod::Threshold || kept.mean_size < CLASSES as f64);
    }
}
