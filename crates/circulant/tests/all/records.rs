//! Records: what is saved comes back, and nothing that comes out of a file panics.

use std::path::PathBuf;

use crate::common::{host, random};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use circulant::models::{HiddenKind, ImageClassifierConfig};
use circulant::nn::{
    Bccb2dConfig, BiasKind, BlockCirculant1dConfig, Circulant1dConfig, SpectralBccb2dConfig,
    SpectralCirculant1d, SpectralCirculant1dConfig,
};
use circulant::record::{RecordError, load, save};
use proptest::prelude::*;
use tempfile::TempDir;

fn directory() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("record.safetensors");
    (directory, path)
}

fn layer(length: usize, seed: u64) -> SpectralCirculant1d {
    SpectralCirculant1dConfig::new(length)
        .with_bias(BiasKind::Vector)
        .with_seed(Some(seed))
        .init(&Device::flex())
}

/// Bytes of a record of `layer(8, 1)`.
fn bytes() -> Vec<u8> {
    let (_directory, path) = directory();
    save(&layer(8, 1), &path).expect("saved");
    std::fs::read(&path).expect("readable")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn records_round_trip(length in 1..60usize, grid in [1..6usize, 1..6usize], channels in [1..4usize, 1..4usize]) {
        let (_directory, path) = directory();
        let device = Device::flex();
        macro_rules! check {
            ($config:expr, $field:ident) => {
                let saved = $config.with_seed(Some(1)).init(&device);
                save(&saved, &path).expect("saved");
                let mut loaded = $config.with_seed(Some(2)).init(&device);
                prop_assert_ne!(host(saved.$field.val()), host(loaded.$field.val()));
                load(&mut loaded, &path).expect("loaded");
                prop_assert_eq!(host(saved.$field.val()), host(loaded.$field.val()));
            };
        }
        check!(SpectralCirculant1dConfig::new(length), coordinates);
        check!(Circulant1dConfig::new(length), filter);
        check!(SpectralBccb2dConfig::new(channels, grid), coordinates);
        check!(Bccb2dConfig::new(channels, grid), filter);
        check!(BlockCirculant1dConfig::new(length, 7, channels[0].min(length)), coordinates);
    }

    #[test]
    fn a_truncated_record_is_an_error(keep in 0.0..1.0f64) {
        let (_directory, path) = directory();
        let bytes = bytes();
        let keep = (keep * bytes.len() as f64) as usize;
        std::fs::write(&path, &bytes[..keep]).expect("written");
        let mut loaded = layer(8, 2);
        let before = host(loaded.coordinates.val());
        let malformed = matches!(load(&mut loaded, &path), Err(RecordError::Malformed { length, .. }) if length == keep);
        prop_assert!(malformed, "{} of {} bytes", keep, bytes.len());
        prop_assert_eq!(host(loaded.coordinates.val()), before);
    }

    #[test]
    fn a_damaged_record_never_panics(position in 0.0..1.0f64, value: u8) {
        let (_directory, path) = directory();
        let mut bytes = bytes();
        let position = (position * bytes.len() as f64) as usize;
        bytes[position] = value;
        std::fs::write(&path, &bytes).expect("written");
        let mut loaded = layer(8, 2);
        // Damaged numbers are numbers still; damaged headers are errors. Either way the layer works.
        let _ = load(&mut loaded, &path);
        prop_assert_eq!(loaded.forward(Tensor::<2>::zeros([1, 8], &Device::flex())).dims(), [1, 8]);
    }
}

#[test]
fn a_record_of_another_shape_names_both() {
    let (_directory, path) = directory();
    save(&layer(8, 1), &path).expect("saved");
    let error = load(&mut layer(10, 1), &path).expect_err("another length");
    let RecordError::Shape {
        expected, found, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert!(matches!(
        (expected.as_slice(), found.as_slice()),
        ([10], [8])
    ));
    let text = error.to_string();
    assert!(
        text.contains("[10]") && text.contains("[8]") && text.contains("record.safetensors"),
        "{text}"
    );
}

#[test]
fn a_record_of_another_block_names_both() {
    let (_directory, path) = directory();
    let layer = |block| BlockCirculant1dConfig::new(12, 8, block).init(&Device::flex());
    save(&layer(4), &path).expect("saved");
    let text = load(&mut layer(2), &path).expect_err("another block");
    let text = text.to_string();
    assert!(
        text.contains("[2, 6, 4]") && text.contains("[4, 3, 2]"),
        "{text}"
    );
}

#[test]
fn missing_and_unexpected_tensors_are_named() {
    let (_directory, path) = directory();
    let device = Device::flex();
    save(&Circulant1dConfig::new(8).init(&device), &path).expect("saved");
    let error = load(&mut SpectralCirculant1dConfig::new(8).init(&device), &path)
        .expect_err("another kind");
    assert!(
        matches!(&error, RecordError::Missing { name, .. } if name == "coordinates"),
        "{error}"
    );
    save(&SpectralCirculant1dConfig::new(8).init(&device), &path).expect("saved");
    let mut without = SpectralCirculant1dConfig::new(8)
        .with_bias(BiasKind::None)
        .init(&device);
    let error = load(&mut without, &path).expect_err("no place for the bias");
    assert!(
        matches!(&error, RecordError::Unexpected { name, .. } if name == "bias"),
        "{error}"
    );
}

#[test]
fn empty_absent_and_foreign_files_are_errors() {
    let (_directory, path) = directory();
    let mut target = layer(8, 1);
    assert!(matches!(
        load(&mut target, &path),
        Err(RecordError::Read { .. })
    ));
    for content in [&b""[..], b"{}", b"not a record at all", &[0xFF; 64]] {
        std::fs::write(&path, content).expect("written");
        assert!(matches!(
            load(&mut target, &path),
            Err(RecordError::Malformed { .. })
        ));
    }
}

#[test]
fn another_number_type_is_an_error() {
    let (_directory, path) = directory();
    let mut double = layer(8, 1);
    double.coordinates = double
        .coordinates
        .map(|value| value.cast(burn::tensor::FloatDType::F64));
    save(&double, &path).expect("saved");
    let error = load(&mut layer(8, 2), &path).expect_err("F64 into F32");
    assert!(matches!(error, RecordError::NumberType { .. }), "{error}");
}

#[test]
fn saving_twice_replaces_and_a_bad_place_is_an_error() {
    let (directory, path) = directory();
    save(&layer(8, 1), &path).expect("saved");
    save(&layer(8, 2), &path).expect("saved again");
    let mut loaded = layer(8, 3);
    load(&mut loaded, &path).expect("loaded");
    assert_eq!(
        host(loaded.coordinates.val()),
        host(layer(8, 2).coordinates.val())
    );
    let error = save(
        &layer(8, 1),
        directory.path().join("absent/record.safetensors"),
    )
    .expect_err("no directory");
    assert!(matches!(error, RecordError::Write { .. }));
}

#[test]
fn models_keep_clear_names() {
    let (_directory, path) = directory();
    let device = Device::flex();
    let config = ImageClassifierConfig::new(HiddenKind::SpectralCirculant);
    let model = config.with_seed(1).init(&device);
    save(&model, &path).expect("saved");
    let header = String::from_utf8_lossy(&std::fs::read(&path).expect("readable")).into_owned();
    for name in [
        "hidden.coordinates",
        "hidden.bias",
        "output.weight",
        "output.bias",
    ] {
        assert!(header.contains(&format!("\"{name}\"")), "{name}");
    }
    let mut loaded = ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
        .with_seed(2)
        .init(&device);
    load(&mut loaded, &path).expect("loaded");
    let images = random::<4>(3, [2, 1, 28, 28], &device);
    assert_eq!(
        host(model.forward(images.clone())),
        host(loaded.forward(images))
    );
    assert_eq!(loaded.num_params(), 8_635);
}
