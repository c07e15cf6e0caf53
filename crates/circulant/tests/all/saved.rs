//! Classifiers that are saved and loaded, and temperatures in their read-outs.

use burn::tensor::{Tensor, TensorData};
use circulant::bayes::{Bayesian, BayesianConfig, PredictiveConfig, Site};
use circulant::models::{HiddenKind, ImageClassifier, ImageClassifierConfig, SavedClassifier};
use circulant::noise::{Noise, Purpose};
use circulant::record;
use tempfile::TempDir;

fn inputs(features: usize) -> Tensor<4> {
    let values: Vec<f32> = (0..5 * features)
        .map(|i| (i * 37 % 23) as f32 / 11.0 - 1.0)
        .collect();
    Tensor::from_data(
        TensorData::new(values, [5, 1, 1, features]),
        &circulant::cpu(),
    )
}

fn configs() -> Vec<ImageClassifierConfig> {
    let of = |kind| {
        ImageClassifierConfig::new(kind)
            .with_image([1, 1, 9])
            .with_classes(4)
    };
    vec![
        of(HiddenKind::SpectralCirculant).with_modes(Some(3)),
        of(HiddenKind::SpectralCirculant).with_depth(2),
        of(HiddenKind::SpatialCirculant),
        of(HiddenKind::BlockCirculant).with_block(Some(4)),
        of(HiddenKind::BlockCirculant).with_width(Some(6)),
        of(HiddenKind::Dense).with_width(Some(5)),
    ]
}

fn probabilities(network: &Bayesian<ImageClassifier>) -> Vec<f32> {
    let predictions = PredictiveConfig::new()
        .with_samples(4)
        .predict(network, inputs(9));
    predictions.expect("sound inputs").probabilities
}

#[test]
fn what_is_read_predicts_as_what_was_written() {
    let folder = TempDir::new().unwrap();
    let device = circulant::cpu();
    for (index, config) in configs().iter().enumerate() {
        for rank in [None, Some(1), Some(3)] {
            for learned in [false, true] {
                let path = folder.path().join(format!("{index}.json"));
                let mut saved = SavedClassifier::new(config, rank);
                saved.learned_slope = learned && rank.is_some();
                saved.weight_deviation = learned.then_some(2.0);
                saved.class_names = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
                // Numbers that the description alone cannot make.
                let network = saved.network(&device).unwrap();
                let network = network.with_scaled("output", 3.0).unwrap();
                saved.write(&network, &path).unwrap();
                let (found, loaded) = SavedClassifier::read(&path, &device).unwrap();
                assert_eq!(found, saved);
                assert_eq!(
                    probabilities(&loaded),
                    probabilities(&network),
                    "{config} {rank:?}"
                );
            }
        }
    }
}

#[test]
fn a_scaled_read_out_scales_every_logit_of_every_draw() {
    let device = circulant::cpu();
    for config in configs() {
        for rank in [None, Some(2)] {
            let network = SavedClassifier::new(&config, rank)
                .network(&device)
                .unwrap();
            let halved = network.clone().with_scaled("output", 0.5).unwrap();
            for draw in 0..3 {
                let logits = |network: &Bayesian<ImageClassifier>| {
                    let member = network.sample(Noise::new(1, Purpose::Prediction, 0, draw));
                    member.forward(inputs(9))
                };
                let gap = logits(&halved) - logits(&network) * 0.5;
                let largest: f32 = gap.abs().max().into_scalar();
                assert!(largest < 1e-6, "{config} {largest}");
            }
            // Hidden layers too, low-rank ones with their jitter.
            let doubled = network.clone().with_scaled("hidden", 2.0).unwrap();
            let numbers = |network: &Bayesian<ImageClassifier>| {
                let member = network.sample(Noise::new(1, Purpose::Prediction, 0, 7));
                let folder = TempDir::new().unwrap();
                let path = folder.path().join("one.safetensors");
                record::save(&member, &path).unwrap();
                let bytes = std::fs::read(&path).unwrap();
                let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
                let mut all: Vec<(String, Vec<f32>)> = tensors
                    .tensors()
                    .into_iter()
                    .map(|(name, view)| (name, bytemuck::pod_collect_to_vec(view.data())))
                    .collect();
                all.sort_by(|a, b| a.0.cmp(&b.0));
                all
            };
            for ((name, old), (_, new)) in numbers(&network).iter().zip(numbers(&doubled)) {
                let factor = if name.starts_with("hidden.") {
                    2.0
                } else {
                    1.0
                };
                for (old, new) in old.iter().zip(new) {
                    assert!(
                        (factor * old - new).abs() < 1e-5 * (1.0 + new.abs()),
                        "{name} {old} {new}"
                    );
                }
            }
        }
    }
}

#[test]
fn prior_and_jitter_are_kept() {
    let folder = TempDir::new().unwrap();
    let (device, path) = (circulant::cpu(), folder.path().join("head.json"));
    let mut saved = SavedClassifier::new(&configs()[0], Some(2));
    (saved.slope, saved.prior_deviation, saved.jitter) = (0.0, 3.0, 1e-3);
    // A jitter that is large enough to be seen in every draw.
    let network = saved.network(&device).unwrap();
    let network = network.with_scaled("hidden", 4.0).unwrap();
    saved.jitter *= 16.0;
    saved.write(&network, &path).unwrap();
    let (found, loaded) = SavedClassifier::read(&path, &device).unwrap();
    assert_eq!(found, saved);
    assert_eq!(probabilities(&loaded), probabilities(&network));
    let mut other = saved.clone();
    other.jitter = 1e-6;
    let mut forgetful = other.network(&device).unwrap();
    record::load(&mut forgetful, path.with_extension("safetensors")).unwrap();
    assert_ne!(probabilities(&forgetful), probabilities(&network));
}

#[test]
fn only_the_described_network_is_written() {
    let folder = TempDir::new().unwrap();
    let (device, path) = (circulant::cpu(), folder.path().join("head.json"));
    let saved = SavedClassifier::new(&configs()[0], Some(2));
    let with = |change: &dyn Fn(&mut SavedClassifier)| {
        let mut other = saved.clone();
        change(&mut other);
        other.network(&device).unwrap()
    };
    let scaled = saved.network(&device).unwrap();
    let scaled = scaled.with_scaled("hidden", 2.0).unwrap();
    for (network, parts) in [
        (
            with(&|s| s.rank = Some(3)),
            ["hidden.coordinates", "rank 3"],
        ),
        (with(&|s| s.rank = None), ["hidden.coordinates", "a point"]),
        (with(&|s| s.slope = 0.0), ["hidden.coordinates", "prior"]),
        (
            with(&|s| s.prior_deviation = 2.0),
            ["hidden.coordinates", "prior"],
        ),
        (
            with(&|s| s.learned_slope = true),
            ["hidden.coordinates", "learned slope"],
        ),
        (scaled, ["hidden.coordinates", "jitter 4e-6"]),
        (with(&|s| s.modes = Some(4)), ["hidden", "7 coordinates"]),
        (with(&|s| s.depth = 2), ["hidden layers", "body.0"]),
        (with(&|s| s.classes = 5), ["output.weight", "[9, 5]"]),
        (
            with(&|s| (s.hidden, s.modes) = (HiddenKind::Dense, None)),
            ["hidden", "Dense"],
        ),
    ] {
        let error = saved.write(&network, &path).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        assert!(!path.exists() && !path.with_extension("safetensors").exists());
    }
}

#[test]
fn a_deterministic_read_out_is_scaled_too_and_unknown_layers_are_named() {
    let device = circulant::cpu();
    let model = configs()[0].init(&device);
    let sites = BayesianConfig::new()
        .with_site("output.weight", Site::deterministic())
        .with_site("output.bias", Site::deterministic());
    let network = sites.init(model).unwrap();
    let halved = network.clone().with_scaled("output", 0.5).unwrap();
    let noise = || Noise::new(1, Purpose::Prediction, 0, 0);
    let gap = halved.sample(noise()).forward(inputs(9))
        - network.sample(noise()).forward(inputs(9)) * 0.5;
    let largest: f32 = gap.abs().max().into_scalar();
    assert!(largest < 1e-6, "{largest}");
    for unknown in ["outptu", "output.weight", "", "hidden.coordinates"] {
        let error = network.clone().with_scaled(unknown, 0.5).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("hidden, output"), "{unknown}: {error}");
    }
}

#[test]
fn damaged_and_other_files_are_named() {
    let folder = TempDir::new().unwrap();
    let (device, path) = (circulant::cpu(), folder.path().join("head.json"));
    let error = || {
        SavedClassifier::read(&path, &device)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    assert!(error().contains("head.json"));
    let saved = SavedClassifier::new(&configs()[0], Some(2));
    let network = saved.network(&device).unwrap();
    assert!(network.clone().with_scaled("output", 0.0).is_err());
    assert!(network.clone().with_scaled("output", f64::NAN).is_err());
    saved.write(&network, &path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    for (from, to, part) in [
        ("circulant-classifier-2", "other", "other"),
        ("\"classes\": 4", "\"classes\": 5", "shape"),
        ("\"mean\": []", "\"mean\": [0.0, 1.0]", "2 means"),
        ("\"modes\": 3", "\"modes\": 30", "30"),
        ("\"depth\": 1", "\"depths\": 1", "depth"),
    ] {
        std::fs::write(&path, text.replace(from, to)).unwrap();
        assert!(error().contains(part), "{part}: {}", error());
    }
    std::fs::write(&path, &text).unwrap();
    let numbers = path.with_extension("safetensors");
    let whole = std::fs::read(&numbers).unwrap();
    std::fs::write(&numbers, &whole[..whole.len() - 3]).unwrap();
    assert!(error().contains("safetensors"));
    std::fs::remove_file(&numbers).unwrap();
    assert!(error().contains("head.safetensors"));
}

#[test]
fn inputs_are_prepared_as_stated() {
    let config = ImageClassifierConfig::new(HiddenKind::Dense).with_image([2, 1, 2]);
    let mut saved = SavedClassifier::new(&config, None);
    let bytes = [0, 255, 51, 102];
    assert_eq!(saved.prepare_bytes(&bytes), [0.0, 255.0, 51.0, 102.0]);
    saved.unit = true;
    (saved.mean, saved.std) = (vec![0.0, 0.2], vec![0.5, 0.1]);
    let mut floats = [0.0, 1.0, 0.2, 0.4];
    saved.prepare(&mut floats);
    for values in [&saved.prepare_bytes(&bytes)[..], &floats] {
        let gap = values
            .iter()
            .zip([0.0, 2.0, 0.0, 2.0])
            .map(|(a, b)| (a - b).abs());
        assert!(gap.fold(0.0, f32::max) < 1e-5, "{values:?}");
    }
}
