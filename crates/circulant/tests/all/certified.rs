//! Networks that are trained for certificates: attacks beside certified radii, the scale of the read-out, parameters without a bound.

use crate::common::{host, numbers};
use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use circulant::bayes::{BayesError, BayesianConfig, PredictiveConfig, Site, calibrate};
use circulant::geometry::{AttackConfig, CertificateConfig, Certificates, Lipschitz, Target};
use circulant::models::{OrthogonalNetwork, OrthogonalNetworkConfig};
use circulant::noise::{Noise, Purpose};
use circulant::train::{Trainer, TrainerConfig, TrainingLoss, WarmUpCosine};

const SIDE: usize = 8;
const CLASSES: usize = 3;

fn network() -> OrthogonalNetwork {
    config().init(&circulant::cpu())
}

fn config() -> OrthogonalNetworkConfig {
    OrthogonalNetworkConfig::new(vec![4, 4])
        .with_image([1, SIDE, SIDE])
        .with_classes(CLASSES)
        .with_seed(4)
}

/// Values from 0 to 1.
fn images(seed: u64, count: usize) -> Tensor<4> {
    let values = numbers(seed, count * SIDE * SIDE).into_iter();
    let values: Vec<f32> = values.map(|x| (x as f32 + 1.0) / 2.0).collect();
    let data = TensorData::new(values, [count, 1, SIDE, SIDE]);
    Tensor::from_data(data, &circulant::cpu())
}

fn certify(network: &OrthogonalNetwork, images: Tensor<4>, labels: &[usize]) -> Certificates {
    let config = CertificateConfig::new();
    config
        .certify(network, images, Target::True(labels))
        .expect("a network with bounds")
}

fn share(which: impl Iterator<Item = bool>) -> f64 {
    let which: Vec<bool> = which.collect();
    which.iter().filter(|yes| **yes).count() as f64 / which.len() as f64
}

/// Every input has the certificate that it has alone, beside nothing larger than its band.
#[test]
fn bands_of_norms_are_certificates_of_their_own() {
    let network = network();
    // Norms between 0 and 8.
    let sizes: Vec<f32> = (0..24)
        .map(|index| ((index * 7) % 24) as f32 / 3.0)
        .collect();
    let sizes = Tensor::<4>::from_data(TensorData::new(sizes, [24, 1, 1, 1]), &circulant::cpu());
    let images = images(2, 24) * sizes / 4.0;
    let certify = |config: CertificateConfig, images: Tensor<4>| {
        let found = config.certify(&network, images, Target::Predicted);
        found.expect("a network with bounds")
    };
    let one = certify(CertificateConfig::new(), images.clone());
    let bands = certify(CertificateConfig::new().with_bands(4), images.clone());
    let mut norms: Vec<f64> = Vec::new();
    for (index, (own, wide)) in bands.inputs.iter().zip(&one.inputs).enumerate() {
        let config = CertificateConfig::new().with_input_norm(Some(own.input_norm.get()));
        let alone = certify(config, images.clone().narrow(0, index, 1)).inputs[0];
        // Logits of one image and of many differ in their last digits.
        let [alone, own_radius, wide] =
            [&alone, own, wide].map(|found| found.last_layer.unwrap().get());
        assert!(
            (alone - own_radius).abs() < 1e-4,
            "{index}: {alone} {own_radius}"
        );
        assert!(own_radius >= wide);
        assert!(own.input_norm.get() <= bands.input_norm.get());
        norms.push(own.input_norm.get());
    }
    norms.sort_by(f64::total_cmp);
    norms.dedup();
    assert_eq!(norms.len(), 4);
    assert_eq!(
        certify(CertificateConfig::new().with_bands(0), images).input_norm,
        one.input_norm
    );
}

/// No input falls inside its certified radius, and far outside of it most of them do.
#[test]
fn attacks_lie_between_certified_and_clean_accuracy() {
    let (network, images) = (network(), images(1, 64));
    let certificates = CertificateConfig::new()
        .certify(&network, images.clone(), Target::Predicted)
        .unwrap();
    // The class is right for all inputs but every fifth.
    let labels: Vec<usize> = certificates
        .inputs
        .iter()
        .enumerate()
        .map(|(index, found)| (found.predicted + usize::from(index % 5 == 0)) % CLASSES)
        .collect();
    let certificates = certify(&network, images.clone(), &labels);
    let mut radii: Vec<f64> = certificates
        .inputs
        .iter()
        .map(|found| found.best().get())
        .collect();
    radii.sort_by(f64::total_cmp);
    let median = radii[radii.len() / 2];
    assert!(median > 0.0, "{radii:?}");
    for (times, range) in [(1.0, None), (3.0, Some([0.0, 1.0])), (20.0, None)] {
        let attack = AttackConfig::new(times * median)
            .with_steps(20)
            .with_restarts(2)
            .with_range(range)
            .with_batch(24);
        let found = attack.attack(&network, images.clone(), &labels).unwrap();
        assert!(
            (found.accuracy() - 0.8).abs() < 0.01,
            "{}",
            found.accuracy()
        );
        for (certificate, robust) in certificates.inputs.iter().zip(&found.robust) {
            let certified = certificate.is_certified() && certificate.best().get() >= attack.radius;
            assert!(*robust || !certified, "{certificate:?}");
        }
        let certified = share(certificates.inputs.iter().map(|certificate| {
            certificate.is_certified() && certificate.best().get() >= attack.radius
        }));
        assert!(certified <= found.robust_accuracy());
        assert!(found.robust_accuracy() <= found.accuracy());
        if times == 20.0 {
            assert!(found.robust_accuracy() < 0.1, "{}", found.robust_accuracy());
        }
        assert_eq!(
            found,
            attack.attack(&network, images.clone(), &labels).unwrap()
        );
    }
    for wrong in [
        AttackConfig::new(0.0),
        AttackConfig::new(-1.0),
        AttackConfig::new(f64::NAN),
        AttackConfig::new(1.0).with_steps(0),
        AttackConfig::new(1.0).with_restarts(0),
        AttackConfig::new(1.0).with_range(Some([1.0, 0.0])),
    ] {
        assert!(wrong.attack(&network, images.clone(), &labels).is_err());
    }
    let error = AttackConfig::new(0.0).attack(&network, images.clone(), &labels);
    assert!(error.unwrap_err().to_string().contains("radius"));
    let labels = vec![CLASSES; 64];
    assert!(
        AttackConfig::new(1.0)
            .attack(&network, images, &labels)
            .is_err()
    );
}

/// A temperature multiplies all logits, and radii stay as they are.
#[test]
fn the_scale_of_the_read_out_is_a_temperature() {
    let (network, images) = (network(), images(2, 12));
    let before = network.forward(images.clone());
    let point = BayesianConfig::new()
        .with_default(Site::deterministic())
        .init(network.clone())
        .unwrap();
    let scaled = point.clone().with_scaled("output", 3.0).unwrap().mean();
    let after = scaled.forward(images.clone());
    for (before, after) in host(before).iter().zip(host(after)) {
        assert!((3.0 * before - after).abs() < 1e-5, "{before} {after}");
    }
    let labels = vec![1; 12];
    let radii = |network: &OrthogonalNetwork| -> Vec<f64> {
        let found = certify(network, images.clone(), &labels).inputs;
        found.iter().map(|found| found.best().get()).collect()
    };
    for (one, other) in radii(&network).iter().zip(radii(&scaled)) {
        assert!((one - other).abs() < 1e-4, "{one} {other}");
    }
    let bounds = [&network, &scaled].map(|network| network.network_bound().unwrap().upper().get());
    assert!((bounds[1] / bounds[0] - 3.0).abs() < 1e-5, "{bounds:?}");
    // Training never moves it, and a distribution has no posterior of it.
    let bayesian = BayesianConfig::new().init(network).unwrap();
    assert!(
        bayesian
            .posteriors()
            .all(|(path, _)| path != "output.scale")
    );
    let predictive = PredictiveConfig::new().with_samples(2);
    let found: Result<_, BayesError> = calibrate(&bayesian, "output", &labels, |network| {
        predictive.predict(network, images.clone())
    });
    let (temperature, calibrated) = found.unwrap();
    let [one, other] = [&bayesian, &calibrated].map(|network| {
        let drawn = network.sample(Noise::new(1, Purpose::Prediction, 0, 0));
        host(drawn.forward(images.clone()))
    });
    for (one, other) in one.iter().zip(other) {
        assert!((one / temperature - other).abs() < 1e-3 * (1.0 + other.abs()));
    }
}

/// Steps on a margin loss certify more than there was, and the read-out keeps its scale.
#[test]
fn training_with_a_margin_certifies_more() {
    let (images, count) = (images(3, 48), 48);
    // The class is the brightest third of the rows.
    let sums = host(images.clone().sum_dim(3));
    let labels: Vec<usize> = sums
        .chunks(SIDE)
        .map(|rows| {
            let thirds = [&rows[..3], &rows[3..6], &rows[6..]]
                .map(|rows| rows.iter().sum::<f64>() / rows.len() as f64);
            (1..CLASSES).fold(0, |best, k| if thirds[k] > thirds[best] { k } else { best })
        })
        .collect();
    let radius = 0.1;
    let schedule = WarmUpCosine {
        peak: 1e-2,
        warm_up: 4,
        steps: 40,
    };
    let config_of = TrainerConfig {
        seed: 0,
        schedule,
        spectral_rate: 1.0,
        length_power: 0.0,
        weight_decay: 0.0,
        loss: TrainingLoss::Margin {
            offset: 2.0 * radius,
            temperature: 0.2,
        },
    };
    let model = config().init(&circulant::cpu().autodiff());
    let certified = |model: &OrthogonalNetwork| {
        let found = certify(&model.valid(), images.clone(), &labels);
        found.certified_at(radius).share.last_layer.expect("dense")
    };
    let before = certified(&model);
    let mut trainer = Trainer::new(model, config_of).unwrap();
    for _ in 0..40 {
        let inputs = Tensor::from_inner(images.clone());
        trainer.step(inputs, &labels).unwrap();
    }
    let after = certified(trainer.model());
    assert!(after > before + 0.2, "{before} {after} of {count}");
    assert_eq!(host(trainer.model().output.scale.val()), [1.0]);
}

#[test]
fn a_layer_without_a_bound_is_named() {
    let mut network = network();
    let layer = &mut network.layers[1];
    layer.taps = layer.taps.clone().map(|taps| taps * f32::NAN);
    let error = CertificateConfig::new()
        .certify(&network, images(1, 2), Target::Predicted)
        .unwrap_err();
    assert!(error.to_string().contains("layers.1"), "{error}");
}
