//! Inputs in, answers out.

use circulant_edge::write::{
    ModelWriter, WrittenGaussian, WrittenNormalisation, WrittenRadii, WrittenTarget,
};
use circulant_edge::{Format, Input, Sampling};

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
