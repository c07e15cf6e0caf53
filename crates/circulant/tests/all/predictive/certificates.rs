//! Radii under attack.

use super::{Attack, CLASSES, FEATURES, SAMPLES, bounds, network, tensor};
use crate::common::numbers;
use crate::geometry::single;
use burn::tensor::Tensor;
use circulant::geometry::{
    CertificateConfig, PredictiveBounds, PredictiveBoundsConfig, PredictiveCertificate, Target,
};
use circulant::models::HiddenKind;
use circulant::noise::{Noise, Purpose};

#[test]
fn no_attack_inside_a_radius_of_the_average_succeeds() {
    let mut tried = 0;
    for (kind, trials) in [
        (HiddenKind::SpectralCirculant, 2400),
        (HiddenKind::Dense, 1800),
    ] {
        let network = network(kind, CLASSES, 5);
        let bounds = bounds(&network, SAMPLES);
        let mut attack = Attack::new(&network);
        let rows = single(numbers(17, 60 * FEATURES));
        let certificates = bounds
            .certify(tensor(&rows), Target::Predicted)
            .expect("certifies");
        let expected: Vec<usize> = attack.predict(&rows).classes_of_inputs().collect();
        let certified = certificates
            .inputs
            .iter()
            .filter(|c| c.per_sample.get() > 1e-3)
            .count();
        assert!(certified > 30, "{kind:?}: only {certified} certificates");
        let mut gain = 0.0;
        for (index, certificate) in certificates.inputs.iter().enumerate() {
            assert_eq!(
                (certificate.class, certificate.predicted),
                (expected[index], expected[index])
            );
            assert!(certificate.average <= certificate.per_sample);
            let x = &rows[index * FEATURES..][..FEATURES];
            if certificate.is_certified() {
                let radius = certificate.per_sample.get();
                gain += radius / certificate.average.get().max(1e-9) / certified as f64;
                let flips = attack.flips(x, certificate.class, radius, trials, index as u64 + 1);
                assert_eq!(flips, 0, "{certificate:?}");
            }
        }
        tried += attack.tried;
        println!("{kind:?}: sample by sample, radii are {gain:.3} times as large");
        // The attack is no straw man: not far outside, it flips some.
        let mut flips = 0;
        for (index, certificate) in certificates.inputs.iter().enumerate().take(20) {
            let x = &rows[index * FEATURES..][..FEATURES];
            flips += attack.flips(
                x,
                certificate.class,
                4.0 * certificate.per_sample.get(),
                trials,
                7,
            );
        }
        assert!(flips > 0, "the attack never succeeds");
        let edge = attack.edge();
        let certificates = bounds
            .certify(tensor(&edge), Target::Predicted)
            .expect("certifies");
        let slack =
            2.0 * certificates.probability_rounding.get() + 2.0 * certificates.rounding.get();
        let near = |c: &&PredictiveCertificate| c.difference.abs() < 4.0 * slack;
        assert!(certificates.inputs.iter().filter(near).count() > 50);
        assert!(certificates.inputs.iter().any(|c| !c.is_certified()));
        assert!(
            certificates
                .inputs
                .iter()
                .filter(near)
                .any(|c| c.is_certified())
        );
        for (index, certificate) in certificates.inputs.iter().enumerate() {
            if certificate.is_certified() {
                let x = &edge[index * FEATURES..][..FEATURES];
                let radius = certificate.per_sample.get();
                assert_eq!(
                    attack.flips(x, certificate.class, radius, 30, index as u64),
                    0,
                    "{certificate:?}"
                );
                // Beside the largest neighbours that the promise allows.
                let large = certificates.input_norm.get() * (1.0 - 1e-6) / (FEATURES as f64).sqrt();
                for neighbours in [0, 1, 7] {
                    let mut batch = x.to_vec();
                    batch.extend(single(vec![large; neighbours * FEATURES]));
                    let found = attack.predict(&batch).classes_of_inputs().next();
                    assert_eq!(found, Some(certificate.class));
                }
            }
        }
    }
    println!("{tried} inputs inside certified radii");
    assert!(tried >= 100_000, "{tried}");
}

/// Two classes and one sample: the averaged prediction is that of a network, whose radius is the same but for the looser slack of the softmax.
#[test]
fn one_sample_of_two_classes_has_the_radius_of_its_logits() {
    let network = network(HiddenKind::SpectralCirculant, 2, 8);
    let rows = single(numbers(4, 50 * FEATURES));
    let member = network.sample(Noise::new(3, Purpose::Prediction, 0, 0));
    let config = CertificateConfig::new().with_input_norm(Some(10.0));
    let logits = config
        .certify(&member, tensor(&rows), Target::Predicted)
        .expect("certifies");
    let config = PredictiveBoundsConfig::new()
        .with_samples(1)
        .with_seed(3)
        .with_input_norm(Some(10.0));
    let bounds: PredictiveBounds<2> = config.bound(&network).expect("bounded");
    let average = bounds
        .certify(tensor(&rows), Target::Predicted)
        .expect("certifies");
    let mut compared = 0;
    for (one, other) in average.inputs.iter().zip(&logits.inputs) {
        assert_eq!(one.class, other.class);
        if other.best().get() > 0.05 {
            let quotient = one.per_sample.get() / other.best().get();
            assert!((0.99..1.0 + 1e-6).contains(&quotient), "{one:?} {other:?}");
            assert!(one.average < one.per_sample);
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn wrong_arguments_are_named() {
    let network = network(HiddenKind::SpectralCirculant, CLASSES, 5);
    let none: Result<PredictiveBounds<2>, _> = PredictiveBoundsConfig::new()
        .with_samples(0)
        .bound(&network);
    assert!(
        none.err()
            .expect("no samples")
            .to_string()
            .contains("posterior samples")
    );
    let bounds = bounds(&network, 2);
    let x = || tensor(&numbers(1, 2 * FEATURES));
    let error = |target| bounds.certify(x(), target).unwrap_err().to_string();
    assert!(error(Target::True(&[0, 4])).contains("label 4 of input 1"));
    assert!(error(Target::True(&[0])).contains("one per input, 2"));
    let wide = Tensor::<2>::ones([2, FEATURES + 1], &circulant::cpu());
    let error = bounds
        .certify(wide, Target::Predicted)
        .unwrap_err()
        .to_string();
    assert!(error.contains("hidden takes 12 numbers, got 13"), "{error}");
    for radius in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(bounds.probability_bounds(x(), radius).is_err());
    }
    let small = PredictiveBoundsConfig::new()
        .with_samples(2)
        .with_input_norm(Some(4.0));
    let small: PredictiveBounds<2> = small.bound(&network).expect("bounded");
    assert!(small.probability_bounds(x(), 0.1).is_ok());
    let error = small.probability_bounds(x(), 3.9).unwrap_err().to_string();
    assert!(error.contains("larger input norm"), "{error}");
    let wrong = bounds.certify(x(), Target::Predicted).expect("certifies");
    let others: Vec<usize> = wrong
        .inputs
        .iter()
        .map(|c| (c.class + 1) % CLASSES)
        .collect();
    for certificate in bounds
        .certify(x(), Target::True(&others))
        .expect("certifies")
        .inputs
    {
        assert!(certificate.difference < 0.0 && !certificate.is_certified());
        assert_eq!(
            (certificate.average.get(), certificate.per_sample.get()),
            (0.0, 0.0)
        );
    }
}
