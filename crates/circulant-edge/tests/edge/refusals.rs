//! Wrong use and files that are no models.

use circulant_edge::write::seal;
use circulant_edge::{
    Complex, Draws, EdgeError, Format, Input, Model, Prediction, Runtime, Sampling,
};
use proptest::prelude::*;

use crate::support::{bayesian, blocks, counts, noisy, padded, run};

#[test]
fn wrong_use_is_an_error_that_says_so() {
    let bytes = bayesian(Format::Int8).finish();
    let model = Model::read(&bytes).unwrap();
    let mut small = vec![Complex::new(0.0_f32, 0.0); model.memory_len() - 1];
    let error = Runtime::new(model, &mut small).unwrap_err();
    assert_eq!(
        error,
        EdgeError::Memory {
            expected: small.len() + 1,
            found: small.len()
        }
    );
    let mut broken = [[0.0; 12]; 2];
    broken[0][3] = f32::NAN;
    broken[1][11] = f32::INFINITY;
    run(&bytes, |runtime| {
        let sampling = Sampling::new(2);
        let mut failed =
            |input, sampling: &Sampling| runtime.predict(input, sampling).map(|_| ()).unwrap_err();
        assert!(matches!(
            failed(Input::Bytes(&[0; 11]), &sampling),
            EdgeError::Input {
                expected: 12,
                found: 11
            }
        ));
        for input in &broken {
            assert!(matches!(
                failed(Input::Floats(input), &sampling),
                EdgeError::NotFinite { .. }
            ));
        }
        assert!(matches!(
            failed(Input::Bytes(&[0; 12]), &Sampling::new(0)),
            EdgeError::Samples { .. }
        ));
        assert!(matches!(
            failed(Input::Floats(&[f32::MAX; 12]), &sampling),
            EdgeError::NotFinite { .. }
        ));
    })
    .unwrap();
}

#[test]
fn files_that_are_no_models_are_errors() {
    let bytes = bayesian(Format::F16).finish();
    assert!(Model::read(&bytes).is_ok());
    for end in 0..bytes.len() {
        assert!(Model::read(&bytes[..end]).is_err(), "{end}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(matches!(
        Model::read(&longer),
        Err(EdgeError::Length { .. })
    ));
    for other in [padded, noisy, counts] {
        let bytes = other(Format::Int8).finish();
        assert!(Model::read(&bytes).is_ok());
        for bit in (0..8 * bytes.len()).filter(|bit| *bit != 32) {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Model::read(&damaged).is_err(), "{bit}");
        }
    }
    for (version, word) in [(1, "older"), (4, "newer")] {
        let mut other = bytes.clone();
        other[4] = version;
        let error = Model::read(&other).unwrap_err();
        let found = version.into();
        assert_eq!(error, EdgeError::Version { found });
        assert!(error.to_string().contains(word), "{error}");
    }
    // But for the lowest bit of the version: as version 2 it says the same.
    for bit in (0..8 * bytes.len()).filter(|bit| *bit != 32) {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(Model::read(&damaged).is_err(), "{bit}");
    }
    // Version 2 has nothing that this one has not.
    let mut older = bytes.clone();
    older[4] = 2;
    assert!(Model::read(&older).is_ok());
    assert_eq!(Model::read(b"PK\x03\x04").unwrap_err(), EdgeError::Magic);
}

/// Uses a file as far as it can be used, if it is small.
fn survive(bytes: &[u8]) {
    let Ok(model) = Model::read(bytes) else {
        return;
    };
    for k in 0..3 {
        let _ = model.name(k);
    }
    if model.memory_len() > 1 << 14 || model.inputs() > 1 << 12 {
        return;
    }
    let mut memory = vec![Complex::new(0.0_f32, 0.0); model.memory_len()];
    let input = vec![7; model.inputs()];
    let mut runtime = Runtime::new(model, &mut memory).expect("as much memory as asked for");
    for draws in [Draws::Sums, Draws::Weights] {
        let sampling = Sampling {
            samples: 1,
            seed: 0,
            draws,
            radius: true,
        };
        let _: Result<Prediction<'_, f32>, _> = runtime.predict(Input::Bytes(&input), &sampling);
    }
    let _ = runtime.predict_moments(Input::Bytes(&input));
}

#[test]
fn damaged_files_with_a_right_checksum_are_survived() {
    for format in [Format::F32, Format::F16, Format::Int8] {
        let models = [
            bayesian(format),
            blocks(format, 9, [1, 3], 1),
            padded(format),
            noisy(format),
            counts(format),
        ];
        for bytes in models.map(|model| model.finish()) {
            assert!(Model::read(&bytes).is_ok());
            for place in 16..bytes.len() {
                for value in [0, 1, 2, 3, 127, 128, 255] {
                    let mut damaged = bytes.clone();
                    damaged[place] = value;
                    seal(&mut damaged);
                    survive(&damaged);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_survived(mut bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        survive(&bytes);
        if bytes.len() >= 16 {
            let head = [*b"CIRC\x02\x00\x00\x00", *b"CIRC\x03\x00\x01\x00"][bytes.len() % 2];
            bytes[..8].copy_from_slice(&head);
            seal(&mut bytes);
            survive(&bytes);
        }
    }
}
