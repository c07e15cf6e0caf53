//! The deterministic trainer: its schedule, its steps beside Burn's own pieces, and going on from checkpoints.

use std::collections::BTreeMap;
use std::f64::consts::PI;

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::{AdanConfig, GradientsParams};
use burn::tensor::loss::cross_entropy_with_logits;
use burn::tensor::{Tensor, TensorData};
use circulant::models::{ProjectionKind, VisionTransformer, VisionTransformerConfig};
use circulant::nn::BiasKind;
use circulant::noise::NoiseKey;
use circulant::record;
use circulant::surgery::to_spectral_projections;
use circulant::train::{
    Trainer, TrainerConfig, TrainingError, TrainingLoss, WarmUpCosine, count_correct,
    load_checkpoint,
};
use tempfile::TempDir;

const STEPS: u64 = 9;
/// Nine steps in f32; fused and composed operations round differently.
const ROUNDING: f64 = 2e-5;

fn config() -> TrainerConfig {
    TrainerConfig {
        seed: 4,
        schedule: WarmUpCosine {
            peak: 3e-3,
            warm_up: 3,
            steps: STEPS,
        },
        spectral_rate: 1.0,
        length_power: 0.0,
        weight_decay: 0.01,
        loss: TrainingLoss::CrossEntropy,
    }
}

fn model(kind: ProjectionKind) -> VisionTransformer {
    model_with_dropout(kind, 0.2)
}

fn model_with_dropout(kind: ProjectionKind, rate: f64) -> VisionTransformer {
    VisionTransformerConfig::new(6, 3, 3, kind)
        .with_d(12)
        .with_depth(2)
        .with_heads(3)
        .with_dropout(rate)
        .init(&circulant::cpu().autodiff())
}

fn trainer(kind: ProjectionKind) -> Trainer<VisionTransformer> {
    Trainer::new(model(kind), config()).expect("a sound configuration")
}

fn batch(step: u64) -> (Tensor<4>, Vec<usize>) {
    let number = |i: usize| ((i * 7919 + step as usize * 104_729) % 2003) as f32 / 1001.5 - 1.0;
    let values: Vec<f32> = (0..5 * 3 * 36).map(number).collect();
    let data = TensorData::new(values, [5, 3, 6, 6]);
    let labels = (0..5).map(|i| (i + step as usize) % 3).collect();
    (
        Tensor::from_data(data, &circulant::cpu().autodiff()),
        labels,
    )
}

fn step(trainer: &mut Trainer<VisionTransformer>) -> f64 {
    let (images, labels) = batch(trainer.steps_done());
    trainer.step(images, &labels).expect("a sound batch").loss
}

fn logits(model: &VisionTransformer) -> Vec<f64> {
    model
        .forward(batch(99).0)
        .into_data()
        .iter::<f64>()
        .collect()
}

#[test]
fn the_rate_warms_up_and_falls_to_zero() {
    let schedule = WarmUpCosine {
        peak: 2.0,
        warm_up: 4,
        steps: 12,
    };
    let expected = |step: u64| match step {
        0..4 => 2.0 * (step + 1) as f64 / 4.0,
        4..12 => 1.0 + (PI * (step - 4) as f64 / 8.0).cos(),
        _ => 0.0,
    };
    for step in 0..20 {
        assert!((schedule.at(step) - expected(step)).abs() < 1e-15, "{step}");
    }
    assert_eq!(
        (schedule.at(3), schedule.at(4), schedule.at(8)),
        (2.0, 2.0, 1.0)
    );
    let none = WarmUpCosine {
        warm_up: 0,
        ..schedule
    };
    assert_eq!(none.at(0), 2.0);
}

#[test]
fn steps_are_those_of_burns_own_pieces() {
    for kind in [ProjectionKind::Dense, ProjectionKind::Spectral] {
        let mut ours = trainer(kind);
        let mut theirs = model(kind);
        let mut optimizer = AdanConfig::new()
            .with_weight_decay(0.01)
            .with_no_prox(true)
            .init();
        for number in 0..STEPS {
            let (images, labels) = batch(number);
            let key = NoiseKey {
                seed: 4,
                stream: number,
            };
            let mut hot = vec![0.0_f32; 15];
            labels
                .iter()
                .enumerate()
                .for_each(|(row, label)| hot[row * 3 + label] = 1.0);
            let hot = Tensor::from_data(TensorData::new(hot, [5, 3]), &circulant::cpu().autodiff());
            let loss = cross_entropy_with_logits(theirs.forward_training(images, key), hot);
            let value: f32 = loss.clone().into_scalar();
            let gradients = GradientsParams::from_grads(loss.backward(), &theirs);
            theirs = optimizer.step(config().schedule.at(number), theirs, gradients);
            let loss = step(&mut ours);
            assert!(
                (loss - f64::from(value)).abs() < ROUNDING,
                "{kind:?}, step {number}"
            );
        }
        let pairs = logits(ours.model()).into_iter().zip(logits(&theirs));
        let gap = pairs.fold(0.0_f64, |gap, (a, b)| gap.max((a - b).abs()));
        assert!(gap < ROUNDING, "{kind:?}: {gap}");
    }
}

#[test]
fn a_resumed_run_is_the_same_to_the_last_bit() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("run.safetensors");
    let mut whole = trainer(ProjectionKind::Spectral);
    let losses: Vec<f64> = (0..STEPS).map(|_| step(&mut whole)).collect();

    let mut first = trainer(ProjectionKind::Spectral);
    (0..4).for_each(|_| assert!(step(&mut first).is_finite()));
    let notes = BTreeMap::from([("sum".to_owned(), "12".to_owned())]);
    first.save(&path, &notes).unwrap();
    let mut second = trainer(ProjectionKind::Spectral);
    assert_eq!(second.resume(&path).unwrap(), notes);
    assert_eq!(second.steps_done(), 4);
    let rest: Vec<f64> = (4..STEPS).map(|_| step(&mut second)).collect();
    assert_eq!(rest, losses[4..]);
    assert_eq!(logits(second.model()), logits(whole.model()));

    // For use alone, the steps are known too, and a record of parameters is no checkpoint.
    let mut loaded = model(ProjectionKind::Spectral);
    assert_eq!(load_checkpoint(&mut loaded, &path).unwrap(), 4);
    assert_eq!(logits(&loaded), logits(first.model()));
    record::save(&loaded, &path).unwrap();
    assert!(load_checkpoint(&mut loaded, &path).is_err());
}

/// All parameters by path.
#[derive(Default)]
struct ByPath {
    path: Vec<String>,
    found: BTreeMap<String, Vec<f64>>,
}

impl ModuleVisitor for ByPath {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let values = param.val().into_data().iter::<f64>().collect();
        self.found.insert(self.path.join("."), values);
    }
}

fn parameters(model: &VisionTransformer) -> BTreeMap<String, Vec<f64>> {
    let mut all = ByPath::default();
    model.visit(&mut all);
    all.found
}

/// A factor of the learning rate is that factor of a first step of Adan, layer by layer.
#[test]
fn the_rate_may_follow_the_length() {
    let start = || {
        VisionTransformerConfig::new(6, 3, 3, ProjectionKind::Spectral)
            .with_mlp([ProjectionKind::Blocks(4), ProjectionKind::Dense])
            .with_d(8)
            .with_depth(1)
            .with_heads(2)
            .with_dropout(0.0)
            .init(&circulant::cpu().autodiff())
    };
    let after = |power: f64| {
        let mut config = config();
        config.length_power = power;
        let mut run = Trainer::new(start(), config).unwrap();
        step(&mut run);
        parameters(run.model())
    };
    let (before, same, longer) = (parameters(&start()), after(0.0), after(1.0));
    let (mut seen, mut moved) = (0, 0.0);
    for (path, before) in &before {
        let factor = match path.as_str() {
            "blocks.0.attention.query.Spectral.coordinates" => 8.0,
            "blocks.0.expand.Blocks.coordinates" => 4.0,
            "blocks.0.contract.Dense.weight" => 1.0,
            _ => continue,
        };
        seen += 1;
        for ((start, same), longer) in before.iter().zip(&same[path]).zip(&longer[path]) {
            let (same, longer) = (same - start, longer - start);
            // f32 parameters, and a first step that is not quite proportional to the rate: weight decay divides.
            let room = 1e-3 * longer.abs() + 5e-6;
            moved += longer.abs();
            assert!(
                (longer - factor * same).abs() < room,
                "{path} {same} {longer}"
            );
        }
    }
    assert_eq!(seen, 3);
    assert!(moved > 0.1, "{moved}");
    let mut wrong = config();
    wrong.length_power = f64::NAN;
    assert!(Trainer::new(start(), wrong).is_err());
}

#[test]
fn spectral_coordinates_may_learn_faster() {
    let mut faster = config();
    faster.spectral_rate = 4.0;
    let start = parameters(&model(ProjectionKind::Spectral));
    let after = |config: TrainerConfig| {
        let mut run = Trainer::new(model(ProjectionKind::Spectral), config).unwrap();
        step(&mut run);
        run
    };
    let runs = [after(config()), after(faster)];
    let [slow, fast] = [&runs[0], &runs[1]].map(|run| parameters(run.model()));
    let mut coordinates = 0;
    for (path, before) in &start {
        let moved = |after: &BTreeMap<String, Vec<f64>>| -> Vec<f64> {
            after[path].iter().zip(before).map(|(a, b)| a - b).collect()
        };
        let (slow, fast) = (moved(&slow), moved(&fast));
        if path.ends_with("coordinates") {
            coordinates += 1;
            for (slow, fast) in slow.iter().zip(&fast) {
                // A difference of two f32 of size 1.
                assert!((fast - 4.0 * slow).abs() < 1e-6, "{path}: {slow}, {fast}");
            }
            let far = slow.iter().filter(|slow| slow.abs() > 1e-4).count();
            assert!(far > 6, "{path}: {slow:?}");
        } else {
            assert_eq!(slow, fast, "{path}");
        }
    }
    assert_eq!(coordinates, 8);
    // It belongs to a run, and is kept.
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("run.safetensors");
    runs[1].save(&path, &BTreeMap::new()).unwrap();
    let message = trainer(ProjectionKind::Spectral)
        .resume(&path)
        .unwrap_err()
        .to_string();
    assert!(message.contains("4 times as much"), "{message}");
    let mut again = Trainer::new(model(ProjectionKind::Spectral), faster).unwrap();
    again.resume(&path).unwrap();
    let [_, mut whole] = runs;
    assert_eq!(step(&mut again), step(&mut whole));
    assert_eq!(parameters(again.model()), parameters(whole.model()));
    faster.spectral_rate = 0.0;
    assert!(Trainer::new(model(ProjectionKind::Spectral), faster).is_err());
}

#[test]
fn other_settings_and_damaged_files_change_nothing() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("run.safetensors");
    let mut run = trainer(ProjectionKind::Dense);
    step(&mut run);
    run.save(&path, &BTreeMap::new()).unwrap();
    let mut longer = config();
    longer.schedule.steps += 1;
    let mut other = Trainer::new(model(ProjectionKind::Dense), longer).unwrap();
    let before = logits(other.model());
    let message = other.resume(&path).unwrap_err().to_string();
    assert!(
        message.contains("steps 9") && message.contains("10"),
        "{message}"
    );
    let mut spectral = trainer(ProjectionKind::Spectral);
    assert!(spectral.resume(&path).is_err());
    let whole = std::fs::read(&path).unwrap();
    for end in [0, 5, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..end]).unwrap();
        assert!(run.resume(&path).is_err(), "{end}");
    }
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    std::fs::write(&path, flipped).unwrap();
    assert!(
        run.resume(&path)
            .unwrap_err()
            .to_string()
            .contains("checksum")
    );
    assert_eq!((run.steps_done(), other.steps_done()), (1, 0));
    assert_eq!(logits(other.model()), before);
}

#[test]
fn what_cannot_be_trained_is_named() {
    let mut wrong = config();
    wrong.schedule.peak = f64::NAN;
    let model = || model(ProjectionKind::Dense);
    assert!(matches!(
        Trainer::new(model(), wrong).map(|_| ()),
        Err(TrainingError::Setting { .. })
    ));
    let mut long = config();
    long.schedule.warm_up = STEPS + 1;
    assert!(Trainer::new(model(), long).is_err());
    let mut run = trainer(ProjectionKind::Dense);
    let (images, labels) = batch(0);
    for labels in [&labels[..4], &[0, 1, 2, 0, 3], &[]] {
        let result = run.step(images.clone(), labels);
        assert!(
            matches!(result, Err(TrainingError::Labels { .. })),
            "{labels:?}"
        );
    }
    let message = run
        .step(images * f32::NAN, &labels)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("step 0") && message.contains("the loss"),
        "{message}"
    );
    assert_eq!(run.steps_done(), 0);
    assert!(run.model().num_params() > 0, "the model is still there");
}

#[test]
fn a_converted_model_is_fine_tuned() {
    // A dozen features learn little by heart while a fifth of them is missing.
    let dense = model_with_dropout(ProjectionKind::Dense, 0.0);
    for bias in [BiasKind::Scalar, BiasKind::Vector] {
        let (model, changes) = to_spectral_projections(dense.clone(), bias).unwrap();
        assert_eq!(changes.len(), 8);
        let mut longer = config();
        (longer.schedule.peak, longer.schedule.steps) = (1e-2, 300);
        let mut tuned = Trainer::new(model, longer).unwrap();
        let start = logits(tuned.model());
        // One batch again and again: it must be learned by heart.
        let (images, labels) = batch(0);
        for _ in 0..300 {
            tuned.step(images.clone(), &labels).unwrap();
        }
        let answers: Vec<f64> = tuned
            .model()
            .forward(images)
            .into_data()
            .iter::<f64>()
            .collect();
        assert_eq!(count_correct(&answers, &labels), 5, "{bias:?}");
        assert_ne!(start, logits(tuned.model()));
    }
}

#[test]
fn answers_are_counted() {
    let rows = [1.0, 2.0, 2.0, 3.0, 0.0, 3.0, 0.0, 0.0, 1.0];
    // The second of equals does not count: an argmax takes the first.
    assert_eq!(count_correct(&rows, &[1, 0, 2]), 3);
    assert_eq!(count_correct(&rows, &[2, 2, 2]), 1);
    assert_eq!(count_correct(&[], &[]), 0);
}
