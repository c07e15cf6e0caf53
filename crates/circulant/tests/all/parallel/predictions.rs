//! Predictions and certificates on several ranks.

use burn::tensor::{Tensor, TensorData};
use circulant::bayes::{BayesianConfig, Predictions, PredictiveConfig};
use circulant::geometry::{LowerBound, PosteriorGeometryConfig, PredictiveBoundsConfig, Target};
use circulant::models::{HiddenKind, ImageClassifierConfig, Likelihood, TargetNetworkConfig};
use circulant::parallel::Ranks;

use super::{data_with, network};
use crate::common::ranks::on_ranks;

/// What predictions and certificates say, as bits.
fn said(ranks: &Ranks, inputs: usize) -> (Predictions, Vec<u64>) {
    let network = network();
    let data = data_with(inputs, 0.25);
    let images = data.inputs();
    let predictive = PredictiveConfig::new().with_samples(4).with_batch(3);
    let found = predictive.predict_on(ranks, &network, images.clone(), |_, _| {});
    let bounds = PredictiveBoundsConfig::new().with_samples(4).with_batch(3);
    let bounds = bounds.bound(&network).expect("bounded");
    let certified = bounds.certify_on(ranks, images.clone(), Target::Predicted);
    let certified = certified.expect("certified");
    let geometry = PosteriorGeometryConfig::new().with_samples(4);
    let geometry = geometry.measure_on(ranks, &network, images, Target::Predicted, |_, _| {});
    let geometry = geometry.expect("measured");
    let mut bits: Vec<f64> = vec![certified.input_norm.get(), geometry.certified_share];
    for input in &certified.inputs {
        bits.extend([input.class as f64, input.predicted as f64, input.difference]);
        bits.extend(
            [input.certified_difference, input.average, input.per_sample].map(LowerBound::get),
        );
    }
    for (name, norms) in &geometry.layers {
        bits.push(name.len() as f64);
        bits.extend(norms.values());
    }
    for values in [
        &geometry.bounds,
        &geometry.rounding,
        &geometry.margins,
        &geometry.paper,
    ] {
        bits.extend(values.values());
    }
    (
        found.expect("finite"),
        bits.into_iter().map(f64::to_bits).collect(),
    )
}

#[test]
fn predictions_and_certificates_are_those_of_one_process() {
    // More and fewer batches than ranks, and fewer inputs.
    for inputs in [1, 2, 7, 20] {
        let alone = said(&Ranks::default(), inputs);
        assert_eq!(alone.0.probabilities.len(), 3 * inputs);
        for size in [2, 3, 5] {
            for found in on_ranks(size, |ranks| said(&ranks, inputs)) {
                assert!(found == alone, "{inputs} inputs on {size} ranks");
            }
        }
    }
}

#[test]
fn predictions_of_numbers_are_those_of_one_process() {
    for likelihood in [Likelihood::Gaussian, Likelihood::Poisson] {
        let predict = |ranks: &Ranks| {
            let layers =
                ImageClassifierConfig::new(HiddenKind::SpectralCirculant).with_image([1, 1, 6]);
            let device = circulant::cpu().autodiff();
            let model = TargetNetworkConfig::new(layers, likelihood).init(&device);
            let network = BayesianConfig::new()
                .with_seed(4)
                .init(model)
                .expect("valid");
            let values = (0..20 * 6).map(|i| (i * 7919 % 1009) as f32 / 1009.0);
            let data = TensorData::new(values.collect::<Vec<_>>(), [20, 6]);
            let inputs = Tensor::<2>::from_data(data, &circulant::cpu());
            let config = PredictiveConfig::new().with_samples(3).with_batch(6);
            let found = config.predict_targets_on(ranks, &network, inputs, |_, _| {});
            let found = found.expect("finite");
            [found.locations().to_vec(), found.deviations().to_vec()]
        };
        let alone = predict(&Ranks::default());
        for size in [2, 3, 5] {
            assert!(
                on_ranks(size, |ranks| predict(&ranks))
                    .iter()
                    .all(|found| *found == alone)
            );
        }
    }
}

#[test]
fn an_input_that_is_not_finite_is_an_error_on_all_ranks() {
    let messages = on_ranks(3, |ranks| {
        let network = network();
        let mut values = vec![0.5; 9 * 20];
        values[7 * 20] = f32::NAN;
        let images =
            Tensor::<4>::from_data(TensorData::new(values, [9, 1, 4, 5]), &circulant::cpu());
        let config = PredictiveConfig::new().with_samples(2).with_batch(3);
        let found = config.predict_on(&ranks, &network, images, |_, _| {});
        found.expect_err("not finite").to_string()
    });
    for message in messages {
        assert!(message.contains("input 7"), "{message}");
    }
}
