//! Inputs in, answers out.

use circulant_edge::write::{
    ModelWriter, WrittenGaussian, WrittenNormalisation, WrittenRadii, WrittenTarget,
};
use circulant_edge::{Draws, Format, Input, Sampling};

use crate::support::run;

#[test]
fn inputs_are_normalised_and_values_scaled_back() {
    let mut writer = ModelWriter::new([2, 1, 2], 1, Format::F32);
    writer.normalisation(WrittenNormalisation {
        unit: true,
        mean: vec![0.5, 0.0],
        deviation: vec![0.25, 2.0],
    });
    writer.targets(vec![WrittenTarget {
        scale: 10.0,
        offset: 100.0,
        noise: 3.0,
    }]);
    let weights = WrittenGaussian::point(vec![1.0, 2.0, 3.0, 4.0]);
    writer.read_out(4, &weights, &WrittenGaussian::point(vec![0.5]));
    let expected = 100.0 + 10.0 * (2.0 - 2.0 * 2.0 + 3.0 * 0.5 + 4.0 * 0.1 + 0.5);
    run(&writer.finish(), |runtime| {
        let close = |x: f32| assert!((x - expected).abs() < 1e-3, "{x} {expected}");
        let sampling = Sampling::new(4);
        close(
            runtime
                .predict(Input::Bytes(&[255, 0, 255, 51]), &sampling)
                .unwrap()
                .mean(0),
        );
        let floats = [1.0, 0.0, 1.0, 0.2];
        close(
            runtime
                .predict(Input::Floats(&floats), &sampling)
                .unwrap()
                .mean(0),
        );
        close(
            runtime
                .predict_moments(Input::Floats(&floats))
                .unwrap()
                .mean(0),
        );
    })
    .unwrap();
}

/// Of a line the mean is a line, and the variance that of its weights: `scale^2 (sum x^2 s^2 + s_b^2)`.
#[test]
fn values_have_their_mean_their_deviation_and_their_noise() {
    let (mean, deviation) = (vec![1.0, -0.5, 0.25], vec![0.3, 0.2, 0.1]);
    let weights = WrittenGaussian {
        mean,
        deviation,
        stream: 1,
        ..WrittenGaussian::default()
    };
    let bias = WrittenGaussian {
        mean: vec![0.4],
        deviation: vec![0.15],
        stream: 2,
        ..WrittenGaussian::default()
    };
    let x = [2.0_f32, -1.0, 3.0];
    let square = |x: f32| x * x;
    let variance = square(2.0 * 0.3) + square(0.2) + square(3.0 * 0.1) + square(0.15);
    let (mean, deviation) = (
        50.0 + 10.0 * (2.0 + 0.5 + 0.75 + 0.4),
        10.0 * variance.sqrt(),
    );
    for (format, tolerance) in [(Format::F32, 0.06), (Format::Int8, 0.3)] {
        let mut writer = ModelWriter::new([1, 1, 3], 1, format);
        writer.targets(vec![WrittenTarget {
            scale: 10.0,
            offset: 50.0,
            noise: 3.0,
        }]);
        writer.read_out(3, &weights, &bias);
        run(&writer.finish(), |runtime| {
            for draws in [Draws::Sums, Draws::Weights] {
                let sampling = Sampling {
                    draws,
                    radius: true,
                    ..Sampling::new(60_000)
                };
                let found = runtime.predict(Input::Floats(&x), &sampling).unwrap();
                assert!(
                    (found.mean(0) - mean).abs() < tolerance + 0.1,
                    "{draws:?} {format:?} {} {}",
                    found.mean(0),
                    found.deviation(0)
                );
                assert!((found.deviation(0) - deviation).abs() < tolerance);
                assert!((found.noise(0) - 3.0).abs() < 1e-6 && found.radius.is_none());
            }
            let found = runtime.predict_moments(Input::Floats(&x)).unwrap();
            assert!((found.mean(0) - mean).abs() < tolerance);
            assert!((found.deviation(0) - deviation).abs() < tolerance);
        })
        .unwrap();
    }
}

#[test]
fn a_radius_is_the_smallest_margin_by_its_bound() {
    let mut writer = ModelWriter::new([1, 1, 2], 3, Format::F32);
    let weights = WrittenGaussian::point(vec![3.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    writer.read_out(2, &weights, &WrittenGaussian::point(vec![0.0; 3]));
    // |(3,0) - (1,0)| = 2, |(3,0) - (0,1)| = sqrt(10), |(1,0) - (0,1)| = sqrt(2).
    let differences = vec![2.0, 10.0_f32.sqrt(), 2.0_f32.sqrt()];
    writer.radii(WrittenRadii {
        differences,
        rounding: [0.01, 0.02],
    });
    let sampling = Sampling {
        radius: true,
        ..Sampling::new(1)
    };
    run(&writer.finish(), |runtime| {
        let prediction = runtime
            .predict(Input::Floats(&[3.0, 4.0]), &sampling)
            .unwrap();
        let found = prediction.radius.unwrap();
        // Logits 9, 3, 4; a slack of 2 (0.01 * 5 + 0.02).
        assert_eq!(found.class, 0);
        assert!((found.radius - (5.0 - 0.14) / 10.0_f32.sqrt()).abs() < 1e-5);
        let nothing = runtime
            .predict(Input::Floats(&[0.0, 0.0]), &sampling)
            .unwrap();
        assert_eq!(nothing.radius.unwrap().radius, 0.0);
    })
    .unwrap();
}
