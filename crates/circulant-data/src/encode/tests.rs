//! The encoder of `bench/fixtures/encoder.py`, against what onnxruntime computes with it.

use std::path::PathBuf;

use tempfile::TempDir;

use super::super::images::Pixels;
use super::super::labels::Labels;
use super::super::options::ReadOptions;
use super::super::read::{DataSet, read};
use super::*;

/// Two f32 sums of 27 terms in another order, and a mean over 16 pixels.
const TOLERANCE: f32 = 2e-6;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

fn pictures() -> ImageSet {
    let bytes = (0..5 * 3 * 64)
        .map(|i: usize| ((i * 7919 + 13) % 256) as u8)
        .collect();
    let labels = Labels::numbered(vec![0, 1, 2, 1, 0]);
    ImageSet::new(Pixels::U8(bytes), [5, 3, 8, 8], labels, "pictures").unwrap()
}

fn encoder(preprocessing: Preprocessing) -> Encoder {
    Encoder::open(&fixture("encoder.onnx"), preprocessing, [8, 8]).unwrap()
}

fn expected(name: &str) -> Vec<f32> {
    let options = ReadOptions {
        labels_optional: true,
        ..ReadOptions::default()
    };
    match read(&fixture(name), &options).unwrap() {
        DataSet::Features(set) => set.values().to_vec(),
        DataSet::Images(_) => panic!("rows of features"),
    }
}

fn normalised() -> Preprocessing {
    Preprocessing {
        mean: vec![0.4, 0.5, 0.6],
        std: vec![0.2, 0.25, 0.3],
        order: ChannelOrder::Bgr,
        ..Preprocessing::default()
    }
}

fn identity(encoder: &Encoder, set: &ImageSet, numbers: Numbers) -> Identity {
    Identity {
        encoder: encoder.fingerprint().to_string(),
        preprocessing: encoder.preprocessing().clone(),
        pictures: set.fingerprint().to_string(),
        shape: [set.len(), encoder.features()],
        numbers,
    }
}

#[test]
fn features_are_those_of_onnxruntime() {
    for (preprocessing, name) in [
        (Preprocessing::default(), "encoder-plain.npy"),
        (normalised(), "encoder-normalised.npy"),
    ] {
        let encoder = encoder(preprocessing);
        assert_eq!(encoder.features(), 6);
        let rows = encoder.encode(&pictures(), 0..5).unwrap();
        for (got, expected) in rows.iter().zip(expected(name)) {
            assert!(
                (got - expected).abs() < TOLERANCE,
                "{name}: {got} {expected}"
            );
        }
        // A picture alone has the same bits.
        assert_eq!(encoder.encode(&pictures(), 3..4).unwrap(), rows[18..24]);
    }
}

#[test]
fn a_file_grows_over_several_runs() {
    let folder = TempDir::new().unwrap();
    let (set, encoder) = (pictures(), encoder(Preprocessing::default()));
    let rows = encoder.encode(&set, 0..5).unwrap();
    for (numbers, tolerance) in [(Numbers::F32, 0.0), (Numbers::F16, 1e-3)] {
        let path = folder.path().join(format!("{numbers:?}.safetensors"));
        let own = identity(&encoder, &set, numbers);
        assert!(!FeatureFile::is_finished(&path, &own).unwrap());
        let mut file = FeatureFile::open(&path, own.clone()).unwrap();
        file.add(&rows[..12]).unwrap();
        drop(file);
        // A row that was being written is forgotten.
        let partial = folder
            .path()
            .join(format!("{numbers:?}.safetensors.partial"));
        let mut bytes = fs::read(&partial).unwrap();
        bytes.extend([1, 2, 3, 4, 5]);
        fs::write(&partial, &bytes).unwrap();
        let mut other = own.clone();
        other.preprocessing = normalised();
        assert!(FeatureFile::open(&path, other.clone()).is_err());
        assert_eq!(
            fs::read(&partial).unwrap(),
            bytes,
            "nothing of another run is lost"
        );
        let mut file = FeatureFile::open(&path, own.clone()).unwrap();
        assert_eq!(file.done(), 2);
        file.add(&rows[12..]).unwrap();
        file.finish(&set).unwrap();
        assert!(!partial.exists());
        assert!(FeatureFile::is_finished(&path, &own).unwrap());
        assert!(FeatureFile::is_finished(&path, &other).is_err());
        let DataSet::Features(read) = read(&path, &ReadOptions::default()).unwrap() else {
            panic!("rows of features");
        };
        assert_eq!(read.labels().values, set.labels().values);
        let gap = read.values().iter().zip(&rows).map(|(a, b)| (a - b).abs());
        assert!(gap.fold(0.0, f32::max) <= tolerance);
    }
}

#[test]
fn what_is_no_encoder_is_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("encoder.onnx");
    let open = |size| match Encoder::open(&path, Preprocessing::default(), size) {
        Ok(_) => panic!("no encoder"),
        Err(error) => error.to_string(),
    };
    assert!(open([8, 8]).contains("encoder.onnx"));
    let whole = fs::read(fixture("encoder.onnx")).unwrap();
    for bytes in [&b""[..], b"hello, this is text", &whole[..whole.len() / 2]] {
        fs::write(&path, bytes).unwrap();
        let message = open([8, 8]);
        assert!(message.contains("ONNX"), "{message}");
    }
}
