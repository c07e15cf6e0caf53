//! Norm control during training, the geometry of posteriors, and the tail of the prior.

use std::ops::ControlFlow;

use crate::common::{host, numbers};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;
use circulant::bayes::{BayesianConfig, Site, Slope, SpectralPrior, Svi, SviConfig};
use circulant::data::LabelledData;
use circulant::geometry::{
    CertificateConfig, Distribution, GeometryError, Lipschitz, NormControl,
    PosteriorGeometryConfig, Target, prior_network_bound, prior_norm_bound,
};
use circulant::models::{HiddenKind, ImageClassifier, ImageClassifierConfig};
use circulant::nn::SpectralBccb2dConfig;
use circulant::noise::NoiseKey;
use circulant::noise::{Noise, Purpose};
use circulant::operator::Layout;
use circulant::operator::{HalfPlane, HalfSpectrum};

/// Every number of a network, in order.
#[derive(Default)]
struct AllNumbers(Vec<f64>);

impl ModuleVisitor for AllNumbers {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.extend(host(param.val()));
    }
}

const FEATURES: usize = 16;
const CLASSES: usize = 3;

/// Noise around one centre per class, far enough apart.
fn data(device: &burn::tensor::Device) -> LabelledData<2> {
    let examples = 240;
    let noise = numbers(5, examples * FEATURES);
    let labels: Vec<i64> = (0..examples).map(|i| (i % CLASSES) as i64).collect();
    let value = |i: usize| {
        let (example, feature) = (i / FEATURES, i % FEATURES);
        let centre = if feature % CLASSES == example % CLASSES {
            1.5
        } else {
            -0.5
        };
        (centre + 0.3 * noise[i]) as f32
    };
    let inputs = (0..examples * FEATURES).map(value).collect();
    LabelledData::new(inputs, [examples, FEATURES], &labels, CLASSES, device).expect("valid")
}

fn head(device: &burn::tensor::Device) -> ImageClassifier {
    let config = ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
        .with_image([1, 1, FEATURES])
        .with_classes(CLASSES);
    config.init(device)
}

fn svi(config: BayesianConfig, steps: u64, examples: usize) -> Svi<ImageClassifier> {
    let device = circulant::cpu().autodiff();
    let network = config.init(head(&device)).expect("fits");
    let settings = SviConfig::new().with_steps(steps).with_batch(32);
    let svi = Svi::new(network, settings, examples).expect("valid");
    svi.with_projection(|mut head: ImageClassifier| {
        head.clip_norm(1.0)?;
        Ok(head)
    })
    .expect("finite")
}

#[test]
fn a_point_estimate_is_1_lipschitz_after_every_step() {
    let device = circulant::cpu().autodiff();
    let data = data(&device);
    let config = BayesianConfig::new().with_default(Site::deterministic());
    for config in [config, BayesianConfig::new().into_point_estimate()] {
        let mut svi = svi(config, 150, data.examples());
        for step in 0..150 {
            // One step at a time, to look in between.
            svi.fit(&data, None, |_| ControlFlow::Break(()))
                .expect("trains");
            let bound = svi.network().mean().network_bound().expect("bounded");
            assert!(
                bound
                    .layers()
                    .iter()
                    .all(|layer| layer.norm().upper().get() <= 1.0)
            );
            assert!(
                bound.upper().get() <= 1.0 + 1e-15,
                "step {step}: {}",
                bound.upper()
            );
        }
        let model = svi.network().mean();
        let inputs = data.inputs();
        let certificates = CertificateConfig::new()
            .certify(&model, inputs, Target::True(data.labels()))
            .expect("certifies");
        let certified = certificates
            .inputs
            .iter()
            .filter(|c| c.best().get() > 0.05)
            .count();
        println!(
            "{certified} of {} inputs have a radius above 0.05",
            data.examples()
        );
        assert!(certified * 10 >= data.examples() * 9, "{certified}");
    }
}

/// Whether `value` is among the numbers, up to the rounding of f32.
fn has(numbers: &Distribution, value: f64) -> bool {
    let near = |number: &f64| (number - value).abs() <= 1e-5 * (1.0 + value.abs());
    numbers.values().iter().any(near)
}

#[test]
fn means_are_clipped_and_samples_may_exceed() {
    let device = circulant::cpu().autodiff();
    let data = data(&device);
    let mut svi = svi(BayesianConfig::new(), 40, data.examples());
    svi.fit(&data, None, |_| ControlFlow::Continue(()))
        .expect("trains");
    let network = svi.network();
    let mean = network
        .mean()
        .network_bound()
        .expect("bounded")
        .upper()
        .get();
    assert!(mean <= 1.0 + 1e-15, "{mean}");
    let geometry = PosteriorGeometryConfig::new()
        .with_samples(20)
        .measure(network, data.inputs(), Target::True(data.labels()))
        .expect("measures");
    let largest = geometry.bounds.quantile(1.0);
    assert!(largest > 1.0, "{largest}");
    assert_eq!(geometry.bounds.values().len(), 20);
    assert_eq!(geometry.paper.values().len(), 20 * data.examples());
    let names: Vec<&str> = geometry
        .layers
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["hidden", "output"]);
    let histogram = geometry.paper.histogram(10);
    assert_eq!(histogram.counts.iter().sum::<usize>(), 20 * data.examples());
    assert!(geometry.paper.mean() <= geometry.sqrt_two.mean());
    let share = geometry.certified_share;
    assert!(share > 0.5, "{share}");
    // One sample is what a certificate of that network says. It is drawn on another path here, with gradients, and need not have the same
    // bits.
    let sample = network.sample(Noise::new(0, Purpose::Prediction, 0, 3));
    let alone = CertificateConfig::new()
        .certify(&sample, data.inputs(), Target::True(data.labels()))
        .expect("certifies");
    let bound = alone.network.upper().get();
    assert!(has(&geometry.bounds, bound), "{bound}");
    for certificate in &alone.inputs {
        let margin = certificate.margin;
        assert!(has(&geometry.margins, margin), "{margin}");
    }
    let error = PosteriorGeometryConfig::new().with_samples(0).measure(
        network,
        data.inputs(),
        Target::Predicted,
    );
    assert!(error.unwrap_err().to_string().contains("at least 1"));
}

#[test]
fn a_resumed_run_with_a_projection_is_the_same_to_the_last_bit() {
    let device = circulant::cpu().autodiff();
    let data = data(&device);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.safetensors");
    let numbers = |svi: &Svi<ImageClassifier>| {
        let mut all = AllNumbers::default();
        svi.network().visit(&mut all);
        all.0
    };
    let mut whole = svi(BayesianConfig::new(), 30, data.examples());
    whole
        .fit(&data, None, |_| ControlFlow::Continue(()))
        .expect("trains");
    let mut first = svi(BayesianConfig::new(), 12, data.examples());
    first
        .fit(&data, None, |_| ControlFlow::Continue(()))
        .expect("trains");
    first.save(&path, data.fingerprint()).expect("writes");
    let mut second = svi(BayesianConfig::new(), 30, data.examples());
    second.resume(&path, data.fingerprint()).expect("reads");
    second
        .fit(&data, None, |_| ControlFlow::Continue(()))
        .expect("trains");
    assert_eq!(numbers(&whole), numbers(&second));
    // Without the projection it would be another run.
    let network = BayesianConfig::new().init(head(&device)).expect("fits");
    let settings = SviConfig::new().with_steps(30).with_batch(32);
    let mut other = Svi::new(network, settings, data.examples()).expect("valid");
    let error = other.resume(&path, data.fingerprint()).unwrap_err();
    assert!(error.to_string().contains("projection"), "{error}");
}

#[test]
fn a_projection_that_fails_says_at_which_step() {
    let device = circulant::cpu().autodiff();
    let network = BayesianConfig::new().init(head(&device)).expect("fits");
    let svi = Svi::new(network, SviConfig::new(), 10).expect("valid");
    let error = svi.with_projection(|mut head: ImageClassifier| {
        head.clip_norm(-1.0)?;
        Ok(head)
    });
    let message = error.expect_err("fails").to_string();
    assert!(
        message.contains("step 0") && message.contains("positive"),
        "{message}"
    );
}

#[test]
fn every_mnist_model_can_be_clipped() {
    for kind in HiddenKind::ALL {
        let mut model = ImageClassifierConfig::new(kind).init(&circulant::cpu());
        model.clip_norm(0.5).expect("finite");
        let bound = model.network_bound().expect("bounded");
        for layer in bound.layers() {
            assert!(
                layer.norm().upper().get() <= 0.5,
                "{kind:?} {}",
                layer.name()
            );
        }
        let x = Tensor::<4>::ones([1, 1, 28, 28], &circulant::cpu());
        let certificates = CertificateConfig::new().certify(&model, x, Target::Predicted);
        assert!(certificates.expect("certifies").network.upper().get() <= 0.25 + 1e-12);
    }
}

fn prior(layout: &Layout) -> SpectralPrior {
    SpectralPrior::new(
        layout,
        &Slope {
            deviation: 1.3,
            alpha: 1.0,
        },
    )
    .expect("valid")
}

/// The share of draws whose norm is above the bound, which must not be above `delta`.
fn exceeding(draws: u64, bound: f64, norm: impl Fn(NoiseKey) -> f64) -> f64 {
    let above = (0..draws)
        .filter(|&stream| norm(NoiseKey { seed: 11, stream }) > bound)
        .count();
    above as f64 / draws as f64
}

#[test]
fn the_tail_bound_holds_over_prior_draws() {
    for (length, modes) in [(1, 1), (2, 2), (9, 5), (16, 9), (16, 3)] {
        let half = HalfSpectrum::with_modes(length, modes).expect("valid");
        let prior = prior(&Layout::Signal(half));
        // The bound must hold, and a flat one would not be a bound worth having.
        let norm = |key| {
            let coordinates = prior.draw(key);
            let mut bins = vec![circulant::operator::Complex::new(0.0, 0.0); half.bins()];
            half.unpack(&coordinates, &mut bins).expect("fits");
            bins.iter().map(|h| h.norm()).fold(0.0, f64::max)
        };
        for delta in [0.3, 0.05, 0.001] {
            let bound = prior_norm_bound(&prior, delta).expect("valid").get();
            let draws = if length == 16 { 100_000 } else { 20_000 };
            let share = exceeding(draws, bound, norm);
            assert!(
                share <= delta,
                "length {length}, {modes} modes: {share} > {delta}"
            );
        }
    }
}

#[test]
fn the_tail_bound_of_several_channels_holds() {
    for (channels, grid) in [
        ([1, 1], [3, 4]),
        ([2, 3], [3, 4]),
        ([4, 4], [2, 3]),
        ([1, 6], [2, 2]),
    ] {
        let plane = HalfPlane::new(grid[0], grid[1]).expect("valid");
        let layout = Layout::Image {
            plane: plane.clone(),
            channels_in: channels[0],
            channels_out: channels[1],
        };
        let prior = prior(&layout);
        let layer = SpectralBccb2dConfig::new(channels, grid)
            .with_seed(Some(0))
            .init(&circulant::cpu());
        let mut largest = 0.0_f64;
        for delta in [0.3, 0.02] {
            let bound = prior_norm_bound(&prior, delta).expect("valid").get();
            let above = (0..1500).filter(|&stream| {
                let coordinates = prior.draw(NoiseKey { seed: 3, stream });
                let mut drawn = layer.clone();
                let data = burn::tensor::TensorData::new(coordinates, layer.coordinates.dims());
                drawn.coordinates = Param::from_tensor(Tensor::from_data(data, &circulant::cpu()));
                let norm = drawn.operator_norm();
                largest = largest.max(norm / bound);
                norm > bound
            });
            let share = above.count() as f64 / 1500.0;
            assert!(share <= delta, "{channels:?} {grid:?}: {share} > {delta}");
        }
        println!("{channels:?} {grid:?}: the largest of 1500 norms is {largest:.2} of the bound");
        assert!(largest > 0.4, "the bound is useless: {largest}");
    }
}

#[test]
fn layers_share_the_probability() {
    let layout = Layout::Signal(HalfSpectrum::new(16).expect("valid"));
    let prior = prior(&layout);
    let together = prior_network_bound(&[&prior, &prior, &prior], 0.03).expect("valid");
    let alone = prior_norm_bound(&prior, 0.01).expect("valid").get();
    assert!(
        together
            .layers
            .iter()
            .all(|layer| (layer.get() - alone).abs() < 1e-9)
    );
    assert!((together.product.get() - alone.powi(3)).abs() < 1e-6);
    // S is largest at frequency 0: sigma0^2/(1 + 0) with nine active bins.
    let expected = (2.0 * 1.3_f64.powi(2) * (2.0 * 9.0 / 0.01_f64).ln()).sqrt();
    assert!((alone - expected).abs() < 1e-9);
}

#[test]
fn wrong_probabilities_and_learned_slopes_are_errors() {
    let layout = Layout::Signal(HalfSpectrum::new(8).expect("valid"));
    for delta in [0.0, 1.0, -0.1, f64::NAN] {
        let error = prior_norm_bound(&prior(&layout), delta).unwrap_err();
        assert!(error.to_string().contains("between 0 and 1"), "{error}");
    }
    let learned = SpectralPrior::learned_slope(&layout, 1.0).expect("valid");
    let error = prior_network_bound(&[&prior(&layout), &learned], 0.1).unwrap_err();
    assert!(
        matches!(error, GeometryError::LearnedSlope { layer: 1 }),
        "{error}"
    );
}
