//! Data that stay where they are until a step asks for them, classes that weigh the same, and examples with weights.

use std::ops::ControlFlow;
use std::sync::Arc;

use burn::module::Module;
use circulant::bayes::{Bayesian, BayesianConfig, CheckpointPlan, Svi, SviConfig};
use circulant::data::{ExamplesError, LabelledData, RegressionData, StoredData};
use circulant::models::{
    HiddenKind, ImageClassifier, ImageClassifierConfig, Likelihood, TargetNetwork,
    TargetNetworkConfig,
};
use circulant::task::TrainingSet;

use crate::common::{host, numbers};

const ROWS: usize = 20;

fn values() -> Vec<f32> {
    numbers(5, ROWS * 6).iter().map(|x| *x as f32).collect()
}

fn labels() -> Vec<usize> {
    (0..ROWS).map(|i| i % 3).collect()
}

fn network() -> Bayesian<ImageClassifier> {
    let config = ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
        .with_image([1, 2, 3])
        .with_classes(3);
    let model = config.init(&circulant::cpu().autodiff());
    BayesianConfig::new()
        .init(model)
        .expect("a model with parameters")
}

fn config() -> SviConfig {
    SviConfig::new().with_steps(12).with_batch(4)
}

fn outputs(network: &Bayesian<ImageClassifier>) -> Vec<f64> {
    host(network.valid().mean().output.weight.val())
}

fn stored() -> StoredData<4> {
    let (values, labels) = (Arc::new(values()), labels());
    StoredData::new([ROWS, 1, 2, 3], 3, 77, &circulant::cpu(), move |indices| {
        let rows = indices.iter().flat_map(|&i| values[6 * i..][..6].to_vec());
        Ok((rows.collect(), indices.iter().map(|&i| labels[i]).collect()))
    })
    .expect("sizes that fit")
}

#[test]
fn stored_data_train_as_those_in_memory_and_resume() {
    let labels: Vec<i64> = labels().iter().map(|&label| label as i64).collect();
    let memory =
        LabelledData::new(values(), [ROWS, 1, 2, 3], &labels, 3, &circulant::cpu()).unwrap();
    let mut svi = Svi::new(network(), config(), ROWS).unwrap();
    svi.fit(&memory, None, |_| ControlFlow::Continue(()))
        .unwrap();
    let expected = outputs(svi.network());
    let mut svi = Svi::new(network(), config(), ROWS).unwrap();
    svi.fit(&stored(), None, |_| ControlFlow::Continue(()))
        .unwrap();
    assert_eq!(outputs(svi.network()), expected);
    // Stopped in between, and resumed by another process.
    let folder = tempfile::tempdir().unwrap();
    let plan = CheckpointPlan {
        path: folder.path().join("checkpoint.safetensors"),
        every: 5,
    };
    let mut svi = Svi::new(network(), config(), ROWS).unwrap();
    let stop = |report: &circulant::bayes::StepReport| match report.step {
        6 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    svi.fit(&stored(), Some(&plan), stop).unwrap();
    let mut svi = Svi::new(network(), config(), ROWS).unwrap();
    svi.resume(&plan.path, stored().fingerprint()).unwrap();
    assert_eq!(svi.steps_done(), 7);
    svi.fit(&stored(), None, |_| ControlFlow::Continue(()))
        .unwrap();
    assert_eq!(outputs(svi.network()), expected);
}

#[test]
fn a_file_that_cannot_be_read_stops_training_after_a_whole_step() {
    let reads = std::sync::atomic::AtomicUsize::new(0);
    let good = stored();
    let data = StoredData::new([ROWS, 1, 2, 3], 3, 77, &circulant::cpu(), move |indices| {
        if reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 3 {
            let message = "the disk is gone".to_owned();
            return Err(ExamplesError::Unreadable { message });
        }
        let batch = good.batch(indices)?;
        let values = batch
            .batch()
            .into_data()
            .try_into_vec::<f32>()
            .expect("f32");
        Ok((values, batch.labels.0.to_vec()))
    });
    let mut svi = Svi::new(network(), config(), ROWS).unwrap();
    let error = svi.fit(&data.unwrap(), None, |_| ControlFlow::Continue(()));
    assert!(error.unwrap_err().to_string().contains("the disk is gone"));
    assert_eq!(svi.steps_done(), 3);
}

#[test]
fn what_is_read_is_checked() {
    let error = |values: Vec<f32>, labels: Vec<usize>| {
        let read = move |_: &[usize]| Ok((values.clone(), labels.clone()));
        let data = StoredData::<2>::new([9, 2], 3, 0, &circulant::cpu(), read).unwrap();
        data.batch(&[4, 8]).unwrap_err().to_string()
    };
    assert!(error(vec![0.0; 3], vec![0, 0]).contains("expected 4 values, got 3"));
    assert!(error(vec![0.0; 4], vec![0]).contains("expected 2 values, got 1"));
    assert!(error(vec![0.0; 4], vec![0, 3]).contains("label 3 of example 8"));
    assert!(error(vec![0.0, f32::NAN, 0.0, 0.0], vec![0, 0]).contains("number 1 of example 4"));
    let none = StoredData::<2>::new([0, 2], 3, 0, &circulant::cpu(), |_| unreachable!());
    assert!(none.unwrap_err().to_string().contains("empty"));
}

#[test]
fn balanced_classes_weigh_the_same() {
    let labels = [0_i64, 0, 0, 0, 0, 2];
    let data = LabelledData::new(vec![0.5; 12], [6, 2], &labels, 3, &circulant::cpu()).unwrap();
    let (before, balanced) = (data.fingerprint(), data.balanced());
    let weights = [0.6, 0.6, 0.6, 0.6, 0.6, 3.0];
    assert_eq!(balanced.weights(), Some(&weights[..]));
    assert_ne!(
        before,
        balanced.fingerprint(),
        "another likelihood is another run"
    );
    let config = ImageClassifierConfig::new(HiddenKind::Dense)
        .with_image([1, 1, 2])
        .with_classes(3);
    let model = config.init(&circulant::cpu());
    let loss = |indices: &[usize]| {
        let batch = TrainingSet::<ImageClassifier>::batch(&balanced, indices, false).unwrap();
        let loss: f32 = balanced
            .negative_log_likelihood(&model, batch)
            .into_scalar();
        loss
    };
    let plain = |index| {
        let examples = balanced.batch(&[index]);
        let loss: f32 =
            circulant::task::Classifier::<2>::cross_entropy(&model, examples).into_scalar();
        loss
    };
    let expected = 0.6 * plain(0) + 3.0 * plain(5);
    assert!((loss(&[0, 5]) - expected).abs() < 1e-5 * expected);
}

#[test]
fn a_weight_of_two_is_an_example_that_is_there_twice() {
    let device = circulant::cpu();
    let layers = ImageClassifierConfig::new(HiddenKind::SpectralCirculant)
        .with_image([1, 1, 2])
        .with_classes(3);
    let (values, twice) = (vec![0.1, 0.7, -0.4, 0.3], vec![0.1, 0.7, 0.1, 0.7]);
    let close = |one: f32, other: f32| assert!((one - other).abs() < 1e-6, "{one} {other}");

    let model = layers.init(&device);
    let loss = |data: &LabelledData<2>| {
        let batch = TrainingSet::<ImageClassifier>::batch(data, &[0, 1], false).unwrap();
        data.negative_log_likelihood(&model, batch).into_scalar()
    };
    let data = LabelledData::new(values.clone(), [2, 2], &[2, 0], 3, &device).unwrap();
    let repeated = LabelledData::new(twice.clone(), [2, 2], &[2, 2], 3, &device).unwrap();
    close(
        loss(&data.clone().weighted(vec![2.0, 0.0]).unwrap()),
        loss(&repeated),
    );

    for likelihood in [Likelihood::Gaussian, Likelihood::Poisson] {
        let model = TargetNetworkConfig::new(layers.clone(), likelihood).init(&device);
        let loss = |data: &RegressionData<2>| {
            let batch = TrainingSet::<TargetNetwork>::batch(data, &[0, 1], false).unwrap();
            data.negative_log_likelihood(&model, batch).into_scalar()
        };
        let data = RegressionData::new(values.clone(), [2, 2], &[2.0, 5.0], &device).unwrap();
        let repeated = RegressionData::new(twice.clone(), [2, 2], &[2.0; 2], &device).unwrap();
        close(
            loss(&data.weighted(vec![2.0, 0.0]).unwrap()),
            loss(&repeated),
        );
    }

    for wrong in [vec![1.0], vec![1.0, -0.5], vec![1.0, f32::NAN]] {
        let error = data.clone().weighted(wrong).unwrap_err().to_string();
        assert!(error.contains("weight"), "{error}");
    }
    let other = data.clone().weighted(vec![1.0, 2.0]).unwrap();
    assert_ne!(other.fingerprint(), data.fingerprint());
}
