//! The deterministic trainer on several ranks.

use burn::tensor::{Tensor, TensorData};
use circulant::models::{ProjectionKind, VisionTransformer, VisionTransformerConfig};
use circulant::parallel::Ranks;
use circulant::train::{Trainer, TrainerConfig, TrainingLoss, WarmUpCosine};

use super::{close, place};
use crate::common::ranks::on_ranks;
use crate::training::numbers;

fn trainer(rate: f64, ranks: Ranks) -> Result<Trainer<VisionTransformer>, String> {
    let model = VisionTransformerConfig::new(6, 3, 3, ProjectionKind::Spectral)
        .with_d(12)
        .with_depth(1)
        .with_heads(3)
        .with_dropout(0.0)
        .init(&circulant::cpu().autodiff());
    let schedule = WarmUpCosine {
        peak: rate,
        warm_up: 5,
        steps: 100,
    };
    let config = TrainerConfig {
        seed: 1,
        schedule,
        spectral_rate: 3.0,
        length_power: 0.0,
        weight_decay: 0.01,
        loss: TrainingLoss::CrossEntropy,
    };
    let trainer = Trainer::new(model, config).expect("valid");
    trainer.with_ranks(ranks).map_err(|error| error.to_string())
}

/// A step on this rank's share of seven images, as loss and hits.
fn step(
    trainer: &mut Trainer<VisionTransformer>,
    ranks: &Ranks,
    wrong_on: Option<usize>,
) -> Result<(f64, usize), String> {
    let at = trainer.steps_done() as usize;
    let share = ranks.share(7);
    let number = |i: usize| ((i * 7919 + at * 104_729) % 2003) as f32 / 1001.5 - 1.0;
    let values: Vec<f32> = (share.start * 108..share.end * 108).map(number).collect();
    let data = TensorData::new(values, [share.len(), 3, 6, 6]);
    let images = Tensor::<4>::from_data(data, &circulant::cpu().autodiff());
    let mut labels: Vec<usize> = share.map(|i| (i + at) % 3).collect();
    if wrong_on == Some(ranks.rank()) {
        labels[0] = 3;
    }
    let done = trainer.step(images, &labels);
    let done = done.map_err(|error| error.to_string())?;
    Ok((done.loss, done.correct))
}

#[test]
fn the_deterministic_trainer_shares_batches_too() {
    let run = |ranks: Ranks| {
        let mut trainer = trainer(1e-3, ranks.clone()).expect("valid");
        let steps = (0..100).map(|_| step(&mut trainer, &ranks, None).expect("finite"));
        let steps: Vec<(f64, usize)> = steps.collect();
        (steps, numbers(trainer.model()))
    };
    let losses = |steps: &[(f64, usize)]| -> Vec<f64> { steps.iter().map(|step| step.0).collect() };
    let alone = run(Ranks::default());
    for size in [2, 3] {
        let results = on_ranks(size, run);
        for result in &results {
            close(&losses(&result.0), &losses(&alone.0));
            // How many are right does not come with the first step's rounding.
            assert_eq!(result.0[0].1, alone.0[0].1);
            assert!(*result == results[0]);
        }
        assert!(on_ranks(size, run) == results, "to the last bit");
    }
}

#[test]
fn checkpoints_of_the_trainer_fit_any_number_of_ranks() {
    let directory = tempfile::tempdir().expect("a directory");
    let notes = [("epoch".to_owned(), "1".to_owned())].into();
    let steps = |trainer: &mut Trainer<_>, ranks: &Ranks| -> Vec<f64> {
        let steps = (0..10).map(|_| step(trainer, ranks, None).expect("finite").0);
        steps.collect()
    };
    let unbroken = {
        let ranks = Ranks::default();
        let mut trainer = trainer(1e-3, ranks.clone()).expect("valid");
        steps(&mut trainer, &ranks);
        steps(&mut trainer, &ranks)
    };
    for (before, after) in [(3, 1), (1, 3)] {
        on_ranks(before, |ranks| {
            let mut trainer = trainer(1e-3, ranks.clone()).expect("valid");
            steps(&mut trainer, &ranks);
            let path = place(directory.path(), &ranks);
            trainer.save(path, &notes).expect("saves");
        });
        let results = on_ranks(after, |ranks| {
            let mut trainer = trainer(1e-3, ranks.clone()).expect("valid");
            let path = place(directory.path(), &ranks);
            assert_eq!(trainer.resume(path).expect("resumes"), notes);
            steps(&mut trainer, &ranks)
        });
        results.iter().for_each(|losses| close(losses, &unbroken));
    }
}

#[test]
fn the_trainer_refuses_what_differs_and_passes_errors_on() {
    let errors = on_ranks(3, |ranks| {
        let rate = if ranks.rank() == 1 { 2e-3 } else { 1e-3 };
        trainer(rate, ranks).map(|_| ()).expect_err("differs")
    });
    for error in errors {
        assert!(error.contains("learning rate: expected 0.001"), "{error}");
    }
    let errors = on_ranks(3, |ranks| {
        let mut trainer = trainer(1e-3, ranks.clone()).expect("valid");
        step(&mut trainer, &ranks, None).expect("finite");
        let error = step(&mut trainer, &ranks, Some(2)).expect_err("no class");
        let after = step(&mut trainer, &ranks, None).expect("as it was");
        (error, after.0.to_bits(), trainer.steps_done())
    });
    for (rank, (error, after, steps)) in errors.iter().enumerate() {
        assert!(error.contains("expected one label below 3"), "{error}");
        assert_eq!(error.starts_with("rank 2: "), rank != 2, "{error}");
        assert_eq!((*after, *steps), (errors[0].1, 2));
    }
}
