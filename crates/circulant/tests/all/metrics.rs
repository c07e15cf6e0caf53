//! Metrics against scikit-learn, scipy, numpy and torchmetrics; `bench/fixtures/metrics.py` writes the numbers.

use circulant::metrics::{
    ClassificationMetrics, DEFAULT_BINS, KernelDensity, Logits, MetricError, Probabilities,
    adaptive_reliability_diagram, auroc, classification_report, energies, entropies,
    mutual_information, ood_report, reliability_diagram,
};
use serde_json::Value;

/// Both sides compute in f64; what differs is the order of some hundred additions.
const TOLERANCE: f64 = 1e-9;

fn fixtures(kind: &str) -> Vec<Value> {
    let text = include_str!("../fixtures/metrics.json");
    let all: Value = serde_json::from_str(text).expect("valid JSON");
    all[kind].as_array().expect("a list of cases").clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn count(value: &Value) -> usize {
    value.as_u64().expect("a count") as usize
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().expect("a list");
    list.iter().map(number).collect()
}

#[track_caller]
fn assert_close(got: f64, expected: f64, case: &Value) {
    let close = (got - expected).abs() <= TOLERANCE * (1.0 + expected.abs());
    assert!(close, "{}: got {got}, expected {expected}", case["name"]);
}

#[track_caller]
fn assert_all_close(got: &[f64], expected: &Value, case: &Value) {
    let expected = numbers(expected);
    assert_eq!(got.len(), expected.len(), "{}", case["name"]);
    for (&got, expected) in got.iter().zip(expected) {
        assert_close(got, expected, case);
    }
}

#[test]
fn classification_as_scikit_learn_and_numpy() {
    let cases = fixtures("classification");
    assert!(cases.len() >= 10);
    for case in &cases {
        let values = numbers(&case["probabilities"]);
        let probabilities = Probabilities::new(&values, count(&case["classes"])).expect("valid");
        let labels: Vec<i64> = case["labels"]
            .as_array()
            .expect("labels")
            .iter()
            .map(|label| label.as_i64().expect("a label"))
            .collect();
        let bins = count(&case["bins"]);
        let report = classification_report(&probabilities, &labels, bins).expect("valid");
        assert_close(report.accuracy, number(&case["accuracy"]), case);
        match case["nll"].as_f64() {
            Some(nll) => assert_close(report.nll, nll, case),
            None => assert_eq!(report.nll, f64::INFINITY, "{}", case["name"]),
        }
        assert_close(report.brier, number(&case["brier"]), case);
        assert_close(report.ece, number(&case["ece"]), case);
        assert_close(report.mce, number(&case["mce"]), case);
        if let Some(adaptive) = case["adaptive_ece"].as_f64() {
            assert_close(report.adaptive_ece, adaptive, case);
        }
        assert_all_close(&entropies(&probabilities), &case["entropies"], case);
    }
}

#[test]
fn ood_as_scikit_learn_and_numpy() {
    for case in &fixtures("ood") {
        let report = ood_report(&numbers(&case["id"]), &numbers(&case["ood"])).expect("valid");
        assert_close(report.auroc, number(&case["auroc"]), case);
        assert_close(report.aupr, number(&case["aupr"]), case);
        assert_close(report.fpr95, number(&case["fpr95"]), case);
    }
}

#[test]
fn density_as_scipy_with_reflections() {
    for case in &fixtures("density") {
        let interval = [number(&case["lower"]), number(&case["upper"])];
        let density = KernelDensity::new(&numbers(&case["values"]), interval).expect("valid");
        assert_close(density.bandwidth(), number(&case["bandwidth"]), case);
        let points = numbers(&case["points"]);
        let curve = density.curve(points.len()).expect("valid");
        assert_all_close(&curve.points, &case["points"], case);
        assert_all_close(&curve.densities, &case["densities"], case);
        let densities = density.evaluate(&points).expect("finite points");
        assert_all_close(&densities, &case["densities"], case);
    }
}

#[test]
fn energy_and_softmax_as_scipy() {
    for case in &fixtures("energy") {
        let values = numbers(&case["logits"]);
        let logits = Logits::new(&values, count(&case["classes"])).expect("finite");
        let energies = energies(&logits, number(&case["temperature"])).expect("valid");
        assert_all_close(&energies, &case["energies"], case);
        assert_all_close(&logits.softmax(), &case["softmax"], case);
    }
}

#[test]
fn mutual_information_as_scipy() {
    for case in &fixtures("mutual_information") {
        let values = numbers(&case["probabilities"]);
        let probabilities = Probabilities::new(&values, count(&case["classes"])).expect("valid");
        let information = mutual_information(&probabilities, count(&case["samples"]));
        assert_all_close(
            &information.expect("whole samples"),
            &case["mutual_information"],
            case,
        );
    }
}

/// By hand: 0.6 and 0.8 are edges of five bins and belong to the bins that end there.
#[test]
fn edges_belong_to_the_bin_below() {
    let values = [0.6, 0.4, 0.6, 0.4, 0.2, 0.8, 0.7, 0.3, 0.0, 1.0, 0.5, 0.5];
    let probabilities = Probabilities::new(&values, 2).expect("valid");
    let labels = [0_u8, 1, 1, 0, 0, 1];
    let diagram = reliability_diagram(&probabilities, &labels, 5).expect("valid");
    let counts: Vec<u64> = diagram.bins.iter().map(|bin| bin.count).collect();
    assert_eq!(counts, [0, 0, 3, 2, 1]);
    assert_eq!(diagram.bins[2].accuracy, Some(1.0 / 3.0));
    assert_eq!(diagram.bins[3].accuracy, Some(1.0));
    assert_eq!((diagram.bins[2].lower, diagram.bins[2].upper), (0.4, 0.6));
    assert_eq!(diagram.maximum_calibration_error(), 1.0);
    let adaptive = adaptive_reliability_diagram(&probabilities, &labels, 3).expect("valid");
    assert!(adaptive.bins.iter().all(|bin| bin.count == 2));
}

#[test]
fn reports_are_json() {
    let probabilities = Probabilities::new(&[0.75_f32, 0.25], 2).expect("valid");
    let mut metrics = ClassificationMetrics::new(DEFAULT_BINS).expect("bins");
    metrics.update(&probabilities, &[0]).expect("valid");
    let report = serde_json::to_value(metrics.finish().expect("rows")).expect("JSON");
    assert_eq!(report["accuracy"], 1.0);
    assert_eq!(report["brier"], 0.125);
    let diagram = metrics.reliability_diagram().expect("rows");
    let diagram = serde_json::to_value(diagram).expect("JSON");
    assert_eq!(diagram["bins"][0]["accuracy"], Value::Null);
    assert_eq!(diagram["bins"][11]["count"], 1);
    let ood = serde_json::to_value(ood_report(&[1.0], &[0.0]).expect("valid")).expect("JSON");
    assert_eq!(ood["auroc"], 1.0);
}

/// Every message names the row and says what to do.
#[test]
fn messages_help() {
    let message = |error: MetricError| error.to_string();
    let logits = Probabilities::new(&[0.5_f32, 0.5, 2.0, -1.0], 2).unwrap_err();
    assert_eq!(
        message(logits),
        "row 1, class 0: expected a probability in [0, 1], got 2; pass the output of softmax, not logits"
    );
    let sum = Probabilities::new(&[0.5_f64, 0.25], 2).unwrap_err();
    assert_eq!(
        message(sum),
        "row 0: expected probabilities that sum to 1 within 0.0001, got the sum 0.75; \
         apply softmax, or divide the row by its sum"
    );
    let probabilities = Probabilities::new(&[0.5_f64, 0.5], 2).expect("valid");
    let label = classification_report(&probabilities, &[7_u32], 15).unwrap_err();
    assert_eq!(
        message(label),
        "row 0: expected a label in 0..2, got 7; count classes from zero and leave out rows without a label"
    );
    let side = auroc::<f32>(&[1.0], &[]).unwrap_err();
    assert_eq!(
        message(side),
        "the OOD scores: expected at least one, got none; check that the data set was read"
    );
}
