//! Files of circulant 0.1.0 are read, and files of versions to come are refused as such. The fixtures were written by 0.1.0, together with what
//! it computed from them (`expected.json`).

use std::path::{Path, PathBuf};

use burn::tensor::{Tensor, TensorData};
use circulant::bayes::{Bayesian, BayesianConfig, JITTER, PredictiveConfig, Svi, SviConfig};
use circulant::data::LabelledData;
use circulant::models::{
    HiddenKind, ImageClassifier, ImageClassifierConfig, ProjectionKind, SavedClassifier,
    VisionTransformer, VisionTransformerConfig,
};
use circulant::train::{Trainer, TrainerConfig, TrainingLoss, WarmUpCosine, load_checkpoint};
use tempfile::TempDir;

/// Sums may be added up in another order on another machine.
const ROUNDING: f32 = 1e-5;

fn fixture(name: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/0.1.0");
    fixtures.join(name)
}

/// What 0.1.0 computed.
fn expected(name: &str) -> Vec<f32> {
    let text = std::fs::read_to_string(fixture("expected.json")).expect("a sound fixture");
    let all: serde_json::Value = serde_json::from_str(&text).expect("a sound fixture");
    serde_json::from_value(all[name].clone()).expect("a sound fixture")
}

fn assert_close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let gaps = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    let largest = gaps.fold(0.0, f32::max);
    assert!(largest < ROUNDING, "{what}: {largest}");
}

fn values(count: usize) -> Vec<f32> {
    (0..count)
        .map(|i| (i * 37 % 23) as f32 / 11.0 - 1.0)
        .collect()
}

fn config() -> ImageClassifierConfig {
    ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
        .with_image([1, 1, 12])
        .with_classes(3)
        .with_modes(Some(4))
}

fn probabilities(network: &Bayesian<ImageClassifier>) -> Vec<f32> {
    let inputs = TensorData::new(values(5 * 12), [5, 1, 1, 12]);
    let inputs = Tensor::<4>::from_data(inputs, &circulant::cpu());
    let config = PredictiveConfig::new().with_samples(4);
    config
        .predict(network, inputs)
        .expect("a sound fixture")
        .probabilities
}

#[test]
fn saved_classifiers_of_0_1_0_predict_as_they_did() {
    let device = circulant::cpu();
    for (name, rank) in [
        ("classifier", Some(2)),
        ("learned-slope", Some(1)),
        ("point", None),
    ] {
        let path = fixture(&format!("{name}.json"));
        let (saved, network) = SavedClassifier::read(path, &device).expect("a sound fixture");
        assert_close(&probabilities(&network), &expected(name), name);
        // What the file does not say has its default.
        let unsaid = (saved.slope, saved.prior_deviation, saved.jitter);
        assert_eq!(unsaid, (1.0, 1.0, JITTER));
        let known = (saved.rank, saved.learned_slope, saved.mean[0]);
        assert_eq!(known, (rank, name == "learned-slope", 0.25));
        // Written again, it is a file of this version.
        let folder = TempDir::new().expect("a sound fixture");
        let path = folder.path().join("again.json");
        saved.write(&network, &path).expect("a sound fixture");
        let text = std::fs::read_to_string(&path).expect("a sound fixture");
        assert!(text.contains("circulant-classifier-2"), "{text}");
        let (_, again) = SavedClassifier::read(&path, &device).expect("a sound fixture");
        assert_eq!(probabilities(&again), probabilities(&network));
    }
}

fn svi() -> (Svi<ImageClassifier>, LabelledData<4>) {
    let device = circulant::cpu().autodiff();
    let model = config().init(&device);
    let network = BayesianConfig::new().init(model).expect("a sound fixture");
    let labels = [0, 1, 2, 0, 1, 2];
    let data = LabelledData::new(values(6 * 12), [6, 1, 1, 12], &labels, 3, &device)
        .expect("a sound fixture");
    let settings = SviConfig::new().with_steps(5).with_batch(3).with_seed(1);
    (
        Svi::new(network, settings, 6).expect("a sound fixture"),
        data,
    )
}

#[test]
fn checkpoints_of_0_1_0_predict_and_resume() {
    let path = fixture("svi.safetensors");
    let (mut svi, data) = svi();
    let (network, steps) = svi
        .network()
        .clone()
        .load_checkpoint(&path)
        .expect("a sound fixture");
    assert_eq!(steps, 3);
    assert_close(&probabilities(&network), &expected("svi"), "svi");
    svi.resume(&path, data.fingerprint())
        .expect("a sound fixture");
    assert_eq!(svi.steps_done(), 3);
    svi.fit(&data, None, |_| std::ops::ControlFlow::Continue(()))
        .expect("a sound fixture");
    assert_eq!(svi.steps_done(), 5);
}

fn transformer() -> VisionTransformer {
    VisionTransformerConfig::new(4, 2, 3, ProjectionKind::Spectral)
        .with_d(4)
        .with_depth(1)
        .with_heads(2)
        .with_expansion(2)
        .init(&circulant::cpu().autodiff())
}

fn trainer() -> Trainer<VisionTransformer> {
    let schedule = WarmUpCosine {
        peak: 1e-3,
        warm_up: 1,
        steps: 4,
    };
    let config = TrainerConfig {
        seed: 1,
        schedule,
        spectral_rate: 2.0,
        length_power: 0.0,
        weight_decay: 1e-4,
        loss: TrainingLoss::CrossEntropy,
    };
    Trainer::new(transformer(), config).expect("a sound fixture")
}

#[test]
fn training_checkpoints_of_0_1_0_predict_and_resume() {
    let path = fixture("training.safetensors");
    let mut model = transformer();
    assert_eq!(
        load_checkpoint(&mut model, &path).expect("a sound fixture"),
        2
    );
    let images = TensorData::new(values(3 * 48), [3, 3, 4, 4]);
    let images = Tensor::<4>::from_data(images, &circulant::cpu().autodiff());
    let logits = model.forward(images).into_data();
    let logits = logits
        .convert::<f32>()
        .try_into_vec::<f32>()
        .expect("a sound fixture");
    assert_close(&logits, &expected("training"), "training");
    let mut trainer = trainer();
    let notes = trainer.resume(&path).expect("a sound fixture");
    assert_eq!((notes["epoch"].as_str(), trainer.steps_done()), ("1", 2));
}

/// A copy of a fixture with other bytes of the same number in the place of some.
fn changed(folder: &TempDir, name: &str, from: &str, to: &str) -> PathBuf {
    assert_eq!(from.len(), to.len());
    let mut bytes = std::fs::read(fixture(name)).expect("a sound fixture");
    let windows = &mut bytes.windows(from.len());
    let at = windows
        .position(|found| found == from.as_bytes())
        .expect("a sound fixture");
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("a sound fixture");
    path
}

#[test]
fn files_of_versions_to_come_are_refused_as_such() {
    let folder = TempDir::new().expect("a sound fixture");
    let newer = |error: String| {
        assert!(error.contains("newer circulant"), "{error}");
        assert!(
            error.contains("version 9") && error.contains("update"),
            "{error}"
        );
    };
    let path = changed(
        &folder,
        "svi.safetensors",
        "circulant-svi-2",
        "circulant-svi-9",
    );
    let (mut svi, data) = svi();
    newer(
        svi.resume(&path, data.fingerprint())
            .unwrap_err()
            .to_string(),
    );
    let network = svi.network().clone();
    newer(network.load_checkpoint(&path).unwrap_err().to_string());

    let (from, to) = ("circulant-training-1", "circulant-training-9");
    let path = changed(&folder, "training.safetensors", from, to);
    newer(trainer().resume(&path).unwrap_err().to_string());
    newer(
        load_checkpoint(&mut transformer(), &path)
            .unwrap_err()
            .to_string(),
    );

    // Whatever else such a description has.
    let (from, to) = ("circulant-classifier-1", "circulant-classifier-9");
    let path = changed(&folder, "classifier.json", from, to);
    let text = std::fs::read_to_string(&path).expect("a sound fixture");
    std::fs::write(&path, text.replace("\"depth\": 1,", "\"new\": true,"))
        .expect("a sound fixture");
    let read = SavedClassifier::read(&path, &circulant::cpu());
    newer(read.map(|_| ()).unwrap_err().to_string());

    // And what is no version at all.
    let path = changed(
        &folder,
        "svi.safetensors",
        "circulant-svi-2",
        "circulant-sv1-2",
    );
    let error = svi.resume(&path, data.fingerprint()).unwrap_err();
    assert!(error.to_string().contains("circulant-sv1-2"), "{error}");
}
