//! The numbers behind the layer_figures of a network, against what the library says about it.

use burn::tensor::Tensor;
use circulant::bayes::Bayesian;
use circulant::models::ImageClassifier;
use circulant_cli::parts::{self, Inference, ModelKind, PosteriorConfig, RunConfig, hidden_layers};

fn network(
    kind: ModelKind,
    change: impl FnOnce(&mut RunConfig),
) -> (Bayesian<ImageClassifier>, PosteriorConfig) {
    let mut config = RunConfig::default();
    config.model.kind = kind;
    change(&mut config);
    let posterior = config.posterior.clone();
    (parts::network(&config, [1, 6, 8], 3).unwrap(), posterior)
}

#[test]
fn every_kind_can_be_drawn() {
    for kind in ModelKind::ALL {
        let (network, posterior) = network(kind, |_| {});
        let layers = hidden_layers(&network, &posterior).unwrap();
        assert_eq!(layers.len(), 1);
        let spectrum = layers[0].spectrum("spectrum");
        assert_eq!(
            spectrum.is_some(),
            !matches!(kind, ModelKind::Conv2d | ModelKind::Dense)
        );
        let drawing = layers[0].filters("filters");
        assert!(!drawing.svg().contains("left out"), "{kind:?}");
    }
}

#[test]
fn the_band_of_the_prior_is_that_of_its_draws() {
    for kind in [ModelKind::SpectralCirculant, ModelKind::Circulant] {
        let (network, posterior) = network(kind, |_| {});
        let layer = hidden_layers(&network, &posterior).unwrap().pop().unwrap();
        let exact = layer.prior_band();
        let draws = layer.prior_draws(2000);
        let draws: Vec<Vec<f64>> = draws.filter_map(|draw| layer.magnitudes(&draw)).collect();
        assert_eq!(exact.len(), draws[0].len());
        for (bin, exact) in exact.iter().enumerate() {
            let mut values: Vec<f64> = draws.iter().map(|draw| draw[bin]).collect();
            values.sort_by(f64::total_cmp);
            let drawn = [values[100], values[1900]];
            // 2000 draws leave a tenth of the lower and less of the upper end open.
            assert!(
                (drawn[0] / exact[0] - 1.0).abs() < 0.3,
                "{exact:?} {drawn:?}"
            );
            assert!(
                (drawn[1] / exact[1] - 1.0).abs() < 0.1,
                "{exact:?} {drawn:?}"
            );
        }
    }
}

#[test]
fn a_point_has_no_band() {
    let (network, posterior) = network(ModelKind::SpectralBccb, |config| {
        config.posterior.inference = Inference::Point;
    });
    let layer = hidden_layers(&network, &posterior).unwrap().pop().unwrap();
    assert_eq!(layer.posterior_draws(3).count(), 0);
    assert!(
        !layer
            .spectrum("s")
            .unwrap()
            .svg()
            .contains("posterior mean")
    );
}

#[test]
fn a_learned_slope_is_named() {
    let (network, posterior) = network(ModelKind::SpectralCirculant, |config| {
        config.posterior.learn_slope = true;
    });
    let layer = hidden_layers(&network, &posterior).unwrap().pop().unwrap();
    assert!((layer.learned_slope.unwrap() - 1.0).abs() < 1e-6);
    assert!(
        layer
            .spectrum("s")
            .unwrap()
            .svg()
            .contains("learned slope 1.00")
    );
}

/// Draws of a posterior without spread are its mean: numbers keep their order on the way.
#[test]
fn draws_keep_the_order_of_numbers() {
    for kind in ModelKind::ALL {
        let (network, posterior) = network(kind, |config| {
            let has_channels = matches!(kind, ModelKind::SpectralBccb | ModelKind::Bccb);
            config.model.channels = has_channels.then_some(2);
            config.posterior.initial_deviation = 1e-12;
        });
        let layer = hidden_layers(&network, &posterior).unwrap().pop().unwrap();
        let draw = layer.posterior_draws(1).next().unwrap();
        let images = Tensor::<4>::ones([1, 1, 6, 8], &circulant::cpu());
        let [mean, draw] = [layer.mean(), &draw].map(|l| l.forward_tanh(images.clone()));
        let difference = (mean - draw).abs().max().into_scalar::<f32>();
        // A low-rank posterior keeps its jitter of variance 1e-6.
        assert!(difference < 0.05, "{kind:?}: {difference}");
    }
}
