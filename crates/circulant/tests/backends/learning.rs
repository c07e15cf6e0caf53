//! Inference, training, predictions and checkpoints: the same numbers as on Flex, up to what rounding makes of them in some steps.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use circulant::bayes::{
    Bayesian, BayesianConfig, CheckpointPlan, Predictions, PredictiveConfig, Site, Svi, SviConfig,
};
use circulant::data::{LabelledData, RegressionData};
use circulant::geometry::{CertificateConfig, NormControl, OperatorNorm, Target};
use circulant::models::{
    HiddenKind, HiddenLayer, ImageClassifier, ImageClassifierConfig, Likelihood, ProjectionKind,
    TargetNetwork, TargetNetworkConfig, VisionTransformer, VisionTransformerConfig,
};
use circulant::train::{Trainer, TrainerConfig, TrainingLoss, WarmUpCosine};

use crate::common::numbers;
use crate::layers::host;
use crate::{Check, compare, deviation};

/// One prediction with the same parameters.
const PREDICTION: f64 = 1e-5;
/// Steps of Adam and Adan: a rounding error of a gradient near zero moves a parameter by a part of the learning rate.
const TRAINING: f64 = 1e-3;

const CLASSES: usize = 3;
const IMAGE: [usize; 3] = [1, 4, 6];
const PIXELS: usize = 24;
const EXAMPLES: usize = 60;
const STEPS: u64 = 15;

pub fn checks() -> Vec<Check> {
    let check = |name, tolerance, deviation| Check {
        name,
        tolerance,
        deviation,
    };
    vec![
        check(
            "SVI with Adam, all kinds of posteriors",
            TRAINING,
            inference,
        ),
        check("SVI with bytes as inputs, and weights", TRAINING, bytes),
        check("SVI with the norms of layers limited", TRAINING, limited),
        check("regression, noise per input", TRAINING, regression),
        check(
            "predictions: probabilities, entropies",
            PREDICTION,
            prediction,
        ),
        check(
            "checkpoints of SVI: resumed, and read on the processor",
            PREDICTION,
            checkpoints,
        ),
        check(
            "deterministic trainer with Adan and dropout",
            TRAINING,
            trainer,
        ),
        check(
            "checkpoints of the trainer: resumed",
            PREDICTION,
            trainer_checkpoints,
        ),
        check(
            "certificates of what was trained, on the processor",
            TRAINING,
            certificates,
        ),
    ]
}

/// A pattern per class, with noise.
fn pixels() -> (Vec<f32>, Vec<i64>) {
    let labels: Vec<i64> = (0..EXAMPLES).map(|i| (i * 7 % CLASSES) as i64).collect();
    let (noise, patterns) = (numbers(1, EXAMPLES * PIXELS), numbers(2, CLASSES * PIXELS));
    let pixel = |i: usize| {
        let pattern = patterns[labels[i / PIXELS] as usize * PIXELS + i % PIXELS];
        (0.5 + 0.25 * pattern + 0.2 * noise[i]) as f32
    };
    ((0..EXAMPLES * PIXELS).map(pixel).collect(), labels)
}

fn shape() -> [usize; 4] {
    [EXAMPLES, IMAGE[0], IMAGE[1], IMAGE[2]]
}

fn data(device: &Device) -> LabelledData<4> {
    let (pixels, labels) = pixels();
    LabelledData::new(pixels, shape(), &labels, CLASSES, device).expect("valid")
}

fn model(kind: HiddenKind) -> ImageClassifier {
    let config = ImageClassifierConfig::new(kind)
        .with_image(IMAGE)
        .with_classes(CLASSES);
    config.with_seed(3).init(&circulant::cpu().autodiff())
}

fn network(kind: HiddenKind, hidden: Option<Site>) -> Bayesian<ImageClassifier> {
    let config = BayesianConfig::new().with_seed(4);
    let config = match hidden {
        None => config,
        Some(site) => config
            .with_site("hidden.coordinates", site)
            .with_site("hidden.bias", Site::point(2.0))
            .with_site("output.bias", Site::deterministic()),
    };
    config.init(model(kind)).expect("valid")
}

fn config() -> SviConfig {
    SviConfig::new()
        .with_steps(STEPS)
        .with_batch(20)
        .with_samples(2)
        .with_seed(9)
}

fn svi(network: &Bayesian<ImageClassifier>, device: &Device) -> Svi<ImageClassifier> {
    let network = network.clone().fork(&device.clone().autodiff());
    Svi::new(network, config(), EXAMPLES).expect("valid")
}

/// Losses and KL of all steps.
fn fit(svi: &mut Svi<ImageClassifier>, data: &LabelledData<4>) -> Vec<Vec<f64>> {
    let (mut losses, mut kls) = (Vec::new(), Vec::new());
    svi.fit(data, None, |report| {
        losses.push(report.loss);
        kls.push(report.kl);
        ControlFlow::Continue(())
    })
    .expect("trains");
    assert!(losses[losses.len() - 1] < losses[0], "it learns");
    vec![losses, kls]
}

fn inference(device: &Device) -> f64 {
    let layout = model(HiddenKind::SpectralCirculant)
        .hidden
        .spectrum_layout();
    let layout = layout.expect("spectral");
    let sites = [
        Site::default_spectral(&layout).with_rank(3),
        Site::learned_slope(&layout, 0.5).expect("valid"),
        Site::mean_field(0.5),
        Site::point(1.0),
    ];
    let mut worst = 0.0_f64;
    for site in sites {
        let network = network(HiddenKind::SpectralCirculant, Some(site));
        let losses = |device: &Device| fit(&mut svi(&network, device), &data(device));
        worst = worst.max(compare(device, losses));
    }
    worst
}

fn bytes(device: &Device) -> f64 {
    let network = network(HiddenKind::BlockCirculant, None);
    compare(device, |device| {
        let (pixels, labels) = pixels();
        let bytes: Vec<u8> = pixels
            .iter()
            .map(|x| (255.0 * x.clamp(0.0, 1.0)) as u8)
            .collect();
        let scale = circulant::data::ByteScale::new(255.0).expect("positive");
        let cpu = circulant::cpu();
        let data = LabelledData::from_bytes(bytes, scale, shape(), &labels, CLASSES, &cpu);
        let data = data.expect("valid").balanced().to_device(device);
        fit(&mut svi(&network, device), &data)
    })
}

fn limited(device: &Device) -> f64 {
    let network = network(HiddenKind::SpectralBccb, None);
    compare(device, |device| {
        let svi = svi(&network, device).with_projection(|mut model: ImageClassifier| {
            model.clip_norm(0.7)?;
            Ok(model)
        });
        let mut svi = svi.expect("valid");
        let mut losses = fit(&mut svi, &data(device));
        let HiddenLayer::SpectralBccb(hidden) = svi.network().mean().hidden else {
            panic!("another layer");
        };
        let norm = hidden.norm_bounds().expect("bounded").upper().get();
        assert!(norm <= 0.7, "{norm}");
        losses.push(vec![norm]);
        losses
    })
}

fn regression(device: &Device) -> f64 {
    let layers = ImageClassifierConfig::new(HiddenKind::Dense).with_image([1, 1, 4]);
    let targets_config =
        TargetNetworkConfig::new(layers.with_width(Some(8)), Likelihood::GaussianPerInput);
    let model: TargetNetwork = targets_config.init(&circulant::cpu().autodiff());
    let network = BayesianConfig::new()
        .with_seed(4)
        .init(model)
        .expect("valid");
    let inputs: Vec<f32> = numbers(5, EXAMPLES * 4).iter().map(|x| *x as f32).collect();
    let targets: Vec<f32> = inputs.chunks(4).map(|x| x[0] - 0.5 * x[3] * x[1]).collect();
    compare(device, |device| {
        let data = RegressionData::new(inputs.clone(), [EXAMPLES, 4], &targets, device);
        let data = data.expect("valid");
        let network = network.clone().fork(&device.clone().autodiff());
        let mut svi = Svi::new(network, config(), EXAMPLES).expect("valid");
        let mut losses = Vec::new();
        svi.fit(&data, None, |report| {
            losses.push(report.loss);
            ControlFlow::Continue(())
        })
        .expect("trains");
        let predictive = PredictiveConfig::new().with_samples(5);
        let found = predictive.predict_targets(svi.network(), data.inputs());
        let found = found.expect("predicts");
        vec![losses, found.mean(), found.deviation()]
    })
}

fn predict(network: &Bayesian<ImageClassifier>, device: &Device) -> Predictions {
    let config = PredictiveConfig::new().with_samples(7).with_batch(32);
    let network = network.clone().to_device(device);
    config
        .predict(&network, data(device).inputs())
        .expect("predicts")
}

fn double(values: &[f32]) -> Vec<f64> {
    values.iter().map(|x| f64::from(*x)).collect()
}

fn of_predictions(found: &Predictions) -> Vec<Vec<f64>> {
    vec![
        double(&found.probabilities),
        double(&found.predictive_entropy),
        double(&found.expected_entropy),
    ]
}

fn trained(device: &Device) -> Svi<ImageClassifier> {
    let mut svi = svi(&network(HiddenKind::SpectralCirculant, None), device);
    fit(&mut svi, &data(device));
    svi
}

fn prediction(device: &Device) -> f64 {
    let network = trained(&circulant::cpu()).into_network();
    let right = |found: &Predictions| {
        let labels = pixels().1;
        let classes = found.classes_of_inputs().zip(labels);
        classes
            .filter(|(class, label)| *class as i64 == *label)
            .count()
    };
    let (here, there) = (
        predict(&network, &circulant::cpu()),
        predict(&network, device),
    );
    assert_eq!(right(&here), right(&there));
    deviation(&of_predictions(&there), &of_predictions(&here))
}

/// Five steps, a checkpoint, the rest by another run: what an unbroken run gives. And the checkpoint on the processor.
fn checkpoints(device: &Device) -> f64 {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run.safetensors");
    let network = network(HiddenKind::SpectralCirculant, None);
    let data = data(device);
    let run = |steps: u64, resume: bool| {
        let network = network.clone().fork(&device.clone().autodiff());
        let mut svi = Svi::new(network, config().with_steps(steps), EXAMPLES).expect("valid");
        if resume {
            svi.resume(&path, data.fingerprint()).expect("resumes");
            assert_eq!(svi.steps_done(), 5);
        }
        let plan = CheckpointPlan {
            path: path.clone(),
            every: 5,
        };
        let mut losses = Vec::new();
        svi.fit(&data, Some(&plan), |report| {
            losses.push(report.loss);
            ControlFlow::Continue(())
        })
        .expect("trains");
        (losses, svi.into_network())
    };
    let (whole, _) = run(STEPS, false);
    std::fs::remove_file(&path).expect("there");
    run(5, false);
    let (rest, there) = run(STEPS, true);
    let resumed = deviation(&[rest], &[whole[5..].to_vec()]);
    let here = network.load_checkpoint(&path).expect("loads").0;
    let (here, there) = (
        predict(&here, &circulant::cpu()),
        predict(&there.valid(), device),
    );
    resumed.max(deviation(&of_predictions(&there), &of_predictions(&here)))
}

fn transformer(device: &Device) -> Trainer<VisionTransformer> {
    let model = VisionTransformerConfig::new(6, 3, CLASSES, ProjectionKind::Spectral)
        .with_d(12)
        .with_depth(1)
        .with_heads(3)
        .with_dropout(0.2)
        .init(&circulant::cpu().autodiff());
    let config = TrainerConfig {
        seed: 4,
        schedule: WarmUpCosine {
            peak: 3e-3,
            warm_up: 3,
            steps: 9,
        },
        spectral_rate: 2.0,
        length_power: 0.0,
        weight_decay: 0.01,
        loss: TrainingLoss::CrossEntropy,
    };
    Trainer::new(model.fork(&device.clone().autodiff()), config).expect("valid")
}

fn steps(trainer: &mut Trainer<VisionTransformer>, device: &Device, until: u64) -> Vec<f64> {
    let mut losses = Vec::new();
    while trainer.steps_done() < until {
        let step = trainer.steps_done();
        let values = numbers(30 + step, 5 * 3 * 36);
        let images = TensorData::new(values, [5, 3, 6, 6]);
        let images = Tensor::<4>::from_data(images, &device.clone().autodiff());
        let labels: Vec<usize> = (0..5).map(|i| (i + step as usize) % CLASSES).collect();
        losses.push(trainer.step(images, &labels).expect("a step").loss);
    }
    losses
}

fn logits(trainer: &Trainer<VisionTransformer>, device: &Device) -> Vec<f64> {
    let images = TensorData::new(numbers(99, 2 * 3 * 36), [2, 3, 6, 6]);
    host(
        trainer
            .model()
            .valid()
            .forward(Tensor::from_data(images, device)),
    )
}

fn trainer(device: &Device) -> f64 {
    compare(device, |device| {
        let mut trainer = transformer(device);
        let losses = steps(&mut trainer, device, 9);
        vec![losses, logits(&trainer, device)]
    })
}

fn trainer_checkpoints(device: &Device) -> f64 {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run.safetensors");
    let mut whole = transformer(device);
    steps(&mut whole, device, 4);
    whole.save(&path, &BTreeMap::new()).expect("saves");
    let losses = steps(&mut whole, device, 9);
    let mut resumed = transformer(device);
    resumed.resume(&path).expect("resumes");
    let again = steps(&mut resumed, device, 9);
    let (whole, resumed) = (logits(&whole, device), logits(&resumed, device));
    deviation(&[again, resumed], &[losses, whole])
}

/// Trained on the device, read and certified on the processor. Asked for on the device, a certificate is an error that says so.
fn certificates(device: &Device) -> f64 {
    let directory = tempfile::tempdir().expect("a directory");
    let radii = |svi: &Svi<ImageClassifier>, path: &Path| {
        svi.save(path, 0).expect("saves");
        let fresh = network(HiddenKind::SpectralCirculant, None);
        let read = fresh.load_checkpoint(path).expect("loads").0;
        let inputs = data(&circulant::cpu()).inputs();
        let found =
            CertificateConfig::new().certify(&read.valid().mean(), inputs, Target::Predicted);
        let found = found.expect("certifies").inputs;
        vec![
            found
                .iter()
                .map(|input| input.best().get())
                .collect::<Vec<f64>>(),
        ]
    };
    let here = trained(&circulant::cpu());
    let there = trained(device);
    let refused = CertificateConfig::new().certify(
        &there.network().valid().mean(),
        data(device).inputs(),
        Target::Predicted,
    );
    let error = refused.expect_err("not on this device").to_string();
    assert!(
        error.contains("on the CPU") && error.contains("circulant::cpu()"),
        "{error}"
    );
    let path = directory.path().join("here.safetensors");
    let expected = radii(&here, &path);
    deviation(
        &radii(&there, &directory.path().join("there.safetensors")),
        &expected,
    )
}
