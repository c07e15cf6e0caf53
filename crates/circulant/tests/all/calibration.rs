//! Temperatures.

use burn::tensor::Tensor;
use circulant::bayes::{BayesError, Bayesian, BayesianConfig, PredictiveConfig, calibrate};
use circulant::models::{HiddenKind, ImageClassifier, ImageClassifierConfig};

use crate::common::random;

const INPUTS: usize = 60;

/// The search stops at a relative width of 1e-3.
const TOLERANCE: f64 = 3e-3;

fn network() -> Bayesian<ImageClassifier> {
    let model = ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
        .with_image([1, 1, 12])
        .with_classes(3)
        .init(&circulant::cpu());
    let config = BayesianConfig::new().into_point_estimate();
    config.init(model).expect("fits")
}

fn inputs() -> Tensor<2> {
    random(4, [INPUTS, 12], &circulant::cpu())
}

/// A read-out that is `c` times as sure needs `c` times the temperature, and is the same network afterwards.
#[test]
fn a_temperature_undoes_a_scale() {
    let (network, predictive) = (network(), PredictiveConfig::new().with_samples(1));
    let predict = |network: &Bayesian<ImageClassifier>| predictive.predict(network, inputs());
    let predictions = predict(&network).expect("finite");
    // Every fourth prediction is wrong.
    let labels: Vec<usize> = predictions
        .classes_of_inputs()
        .enumerate()
        .map(|(index, class)| (class + usize::from(index % 4 == 0)) % 3)
        .collect();
    let calibrated = |scale: f64| {
        let network = network.clone().with_scaled("output", scale)?;
        calibrate::<_, BayesError>(&network, "output", &labels, predict)
    };
    let (temperature, one) = calibrated(1.0).expect("finite");
    let (hotter, other) = calibrated(3.0).expect("finite");
    assert!((0.06..15.0).contains(&temperature), "{temperature}");
    assert!(
        (hotter / temperature / 3.0 - 1.0).abs() < TOLERANCE,
        "{temperature} {hotter}"
    );
    let [one, other] = [one, other].map(|network| predict(&network).expect("finite"));
    let both = one.probabilities.iter().zip(&other.probabilities);
    for (one, other) in both {
        assert!((one - other).abs() < 0.01, "{one} {other}");
    }
    assert_ne!(one.probabilities, predictions.probabilities);
    // Three quarters are right, and the calibrated network says so.
    let confidence = one.probabilities.chunks_exact(3);
    let confidence: f32 = confidence
        .map(|row| row.iter().fold(0.0, |a, b| b.max(a)))
        .sum();
    let confidence = confidence / INPUTS as f32;
    assert!((confidence - 0.75).abs() < 0.1, "{confidence}");
}

#[test]
fn an_unknown_read_out_is_named() {
    let predictive = PredictiveConfig::new().with_samples(1);
    let error = calibrate::<_, BayesError>(&network(), "outptu", &[0; INPUTS], |network| {
        predictive.predict(network, inputs())
    });
    let message = error.expect_err("no such layer").to_string();
    assert!(message.contains("outptu"), "{message}");
}
