//! Temperatures.

use burn::tensor::Tensor;
use circulant::bayes::{BayesError, Bayesian, BayesianConfig, PredictiveConfig, Site, calibrate};
use circulant::models::{
    HiddenKind, ImageClassifier, ImageClassifierConfig, Likelihood, TargetNetwork,
    TargetNetworkConfig,
};
use circulant::noise::{Noise, Purpose};

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

/// The spread of a posterior's values, by many draws: what it had and what was added, in squares.
#[test]
fn values_are_spread_by_what_is_added() {
    let network = |inference: fn(BayesianConfig) -> BayesianConfig| {
        let layers = ImageClassifierConfig::new(HiddenKind::SpectralCirculant);
        let layers = layers.with_image([1, 1, 4]);
        let model = TargetNetworkConfig::new(layers, Likelihood::Gaussian).init(&circulant::cpu());
        let site = Site::mean_field(3.0).with_initial_deviation(0.3);
        let config = BayesianConfig::new().with_site("noise", site);
        inference(config).init(model).expect("fits")
    };
    let moments = |network: &Bayesian<TargetNetwork>| {
        let draw = |sample| {
            let drawn = network.sample(Noise::new(5, Purpose::Prediction, 0, sample));
            f64::from(drawn.noise.expect("Gaussian").val().into_scalar::<f32>())
        };
        let draws: Vec<f64> = (0..2000).map(draw).collect();
        let mean = draws.iter().sum::<f64>() / 2000.0;
        let squares = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        (mean, (squares / 2000.0).sqrt())
    };
    let distribution = network(|config| config);
    let point = network(BayesianConfig::into_point_estimate);
    let start = 0.5_f64.ln();
    for (network, deviation) in [(distribution, 0.5), (point, 0.4)] {
        let wide = network
            .clone()
            .with_widened("noise", 0.4)
            .expect("is there");
        let (mean, found) = moments(&wide);
        assert!((mean - start).abs() < 0.05, "{mean}");
        assert!(
            (found / deviation - 1.0).abs() < 0.06,
            "{found} {deviation}"
        );
    }
    let coordinates = network(|config| config);
    let wide = coordinates.with_widened("layers.hidden.coordinates", 2.0);
    assert!(wide.is_ok(), "low rank, too");
    let refused = |path: &str, by: f64| {
        let refused = network(|config| config).with_widened(path, by);
        refused.expect_err("refused").to_string()
    };
    assert!(refused("nose", 1.0).contains("noise"));
    assert!(refused("noise", 0.0).contains("positive"));
    assert!(refused("noise", f64::NAN).contains("positive"));
}
