//! The numbers behind the layer_figures of a network, against what the library says about it.

use burn::module::Param;
use burn::tensor::Tensor;
use circulant::bayes::{Bayesian, BayesianConfig};
use circulant::geometry::Lipschitz;
use circulant::models::{HiddenKind, HiddenLayer, ImageClassifier, ImageClassifierConfig};
use circulant_cli::experiments::config::{Inference, ModelKind, PosteriorConfig, RunConfig};
use circulant_cli::experiments::layer_figures::{hidden_layers, output_singular_values};
use circulant_cli::experiments::model;

fn network(
    kind: ModelKind,
    change: impl FnOnce(&mut RunConfig),
) -> (Bayesian<ImageClassifier>, PosteriorConfig) {
    let mut config = RunConfig::default();
    config.model.kind = kind;
    change(&mut config);
    let posterior = config.posterior.clone();
    (model::network(&config, [1, 6, 8], 3).unwrap(), posterior)
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

/// The largest singular value is the norm that the geometry certifies.
#[test]
fn singular_values_agree_with_the_norms() {
    for kind in ModelKind::ALL {
        let (network, posterior) = network(kind, |config| config.model.depth = 2);
        let bound = network.mean().network_bound().unwrap();
        for layer in hidden_layers(&network, &posterior).unwrap() {
            let values = layer.singular_values().unwrap();
            let norms = bound.layers();
            let norm = norms.iter().find(|norm| norm.name() == layer.name).unwrap();
            let upper = norm.norm().upper().get();
            assert!(
                values[0] <= upper * 1.001,
                "{kind:?}: {} {upper}",
                values[0]
            );
            if kind != ModelKind::Conv2d {
                assert!(
                    values[0] >= upper * 0.999,
                    "{kind:?}: {} {upper}",
                    values[0]
                );
            }
            // As many as the smaller side of the matrix.
            assert_eq!(values.len() % 48, 0);
        }
    }
}

#[test]
fn a_convolution_of_one_tap_has_one_singular_value() {
    let device = circulant::cpu();
    let config = ImageClassifierConfig::new(HiddenKind::Convolution).with_channels(Some(1));
    let mut model = config.with_image([1, 6, 8]).init(&device);
    let HiddenLayer::Convolution(layer) = &mut model.hidden else {
        panic!("asked for a convolution");
    };
    let taps = [0.0_f32, 0.0, 0.0, -2.5, 0.0, 0.0, 0.0, 0.0, 0.0];
    let taps = Tensor::<1>::from_floats(taps, &device).reshape([1, 1, 3, 3]);
    layer.weight = Param::from_tensor(taps);
    let network = BayesianConfig::new().init(model).unwrap();
    let layers = hidden_layers(&network, &PosteriorConfig::default()).unwrap();
    for value in layers[0].singular_values().unwrap() {
        assert!((value - 2.5).abs() < 1e-6, "{value}");
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

#[test]
fn the_read_out_has_one_singular_value_per_class() {
    let (network, _) = network(ModelKind::Dense, |_| {});
    assert_eq!(output_singular_values(&network).unwrap().len(), 3);
}
