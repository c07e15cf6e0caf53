//! Training on several ranks: the same as on one, errors and wishes of one are those of all, checkpoints fit any number.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use burn::tensor::{Tensor, TensorData};
use circulant::bayes::{
    Bayesian, BayesianConfig, CheckpointPlan, Predictions, PredictiveConfig, Site, Stop, Svi,
    SviConfig,
};
use circulant::data::{Examples, ExamplesError, LabelledData};
use circulant::geometry::{LowerBound, PosteriorGeometryConfig, PredictiveBoundsConfig, Target};
use circulant::models::{
    HiddenKind, ImageClassifier, ImageClassifierConfig, Likelihood, ProjectionKind,
    TargetNetworkConfig, VisionTransformer, VisionTransformerConfig,
};
use circulant::parallel::{Alone, CommunicationError, Communicator, Ranks};
use circulant::task::TrainingSet;
use circulant::train::{Trainer, TrainerConfig, TrainingLoss, WarmUpCosine};

use crate::common::ranks::on_ranks;
use crate::training::numbers;

/// Of losses after 100 steps of Adam in f32, from sums in another order.
const TOLERANCE: f64 = 1e-5;
/// Neither 2 nor 3 divides the batch.
const BATCH: usize = 17;
const EXAMPLES: usize = 40;

fn data() -> LabelledData<4> {
    data_with(EXAMPLES, 0.0)
}

fn data_with(examples: usize, shift: f32) -> LabelledData<4> {
    let labels: Vec<i64> = (0..examples).map(|i| (i * 7 % 3) as i64).collect();
    let pixel = |i: usize| {
        let (example, place) = (i / 20, i % 20);
        let bright = place / 7 == labels[example] as usize;
        (i * 7919 % 1009) as f32 / 2000.0 + if bright { 0.5 } else { 0.0 } + shift
    };
    let pixels = (0..examples * 20).map(pixel).collect();
    let device = circulant::cpu().autodiff();
    LabelledData::new(pixels, [examples, 1, 4, 5], &labels, 3, &device).expect("valid")
}

fn settings() -> SviConfig {
    SviConfig::new()
        .with_batch(BATCH)
        .with_samples(2)
        .with_steps(100)
        .with_seed(5)
}

fn model(kind: HiddenKind) -> ImageClassifier {
    ImageClassifierConfig::new(kind)
        .with_image([1, 4, 5])
        .with_classes(3)
        .with_seed(3)
        .init(&circulant::cpu().autodiff())
}

/// All kinds of posteriors, parameters without one, and layers with kernels of their own and without.
fn networks() -> Vec<Bayesian<ImageClassifier>> {
    let circulant = || model(HiddenKind::SpectralCirculant);
    let layout = circulant().hidden.spectrum_layout().expect("spectral");
    let learned = Site::learned_slope(&layout, 0.5).expect("valid");
    let init = |config: BayesianConfig, model| config.with_seed(4).init(model).expect("valid");
    vec![
        init(BayesianConfig::new(), circulant()),
        init(
            BayesianConfig::new()
                .with_site("hidden.coordinates", learned)
                .with_site("hidden.bias", Site::point(1.0))
                .with_site("output.weight", Site::deterministic())
                .with_site("output.bias", Site::deterministic()),
            circulant(),
        ),
        init(BayesianConfig::new(), model(HiddenKind::Convolution)),
    ]
}

fn network() -> Bayesian<ImageClassifier> {
    networks().remove(0)
}

fn svi(network: &Bayesian<ImageClassifier>, ranks: Ranks) -> Svi<ImageClassifier> {
    let svi = Svi::new(network.clone(), settings(), EXAMPLES).expect("valid");
    svi.with_ranks(ranks)
}

type Numbers = Vec<(String, Vec<u8>)>;

/// All losses, and all parameters.
fn train(svi: &mut Svi<ImageClassifier>) -> Result<(Vec<f64>, Numbers), String> {
    let mut losses = Vec::new();
    let stop = svi.fit(&data(), None, |report| {
        losses.push(report.loss);
        ControlFlow::Continue(())
    });
    stop.map_err(|error| error.to_string())?;
    Ok((losses, numbers(svi.network())))
}

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (step, (found, expected)) in found.iter().zip(expected).enumerate() {
        let gap = (found - expected).abs() / expected.abs();
        assert!(
            gap <= TOLERANCE,
            "step {step}: {found}, not {expected}: {gap:e}"
        );
    }
}

#[test]
fn the_number_of_ranks_changes_nothing_but_rounding() {
    for network in networks() {
        let run = |ranks| train(&mut svi(&network, ranks)).expect("trains");
        let alone = run(Ranks::default());
        assert!(alone.0[99] < 0.9 * alone.0[0], "it learns");
        assert!(run(Ranks::new(Alone)) == alone);
        assert!(on_ranks(1, run)[0] == alone, "one rank is a run by itself");
        for size in [2, 3] {
            let results = on_ranks(size, run);
            for result in &results {
                close(&result.0, &alone.0);
                assert!(*result == results[0], "all ranks hold the same");
            }
            assert!(results[0].1 != alone.1, "they did share the sums");
            assert!(on_ranks(size, run) == results, "to the last bit");
        }
    }
}

#[test]
fn a_step_of_ones_own_likelihood_is_shared_too() {
    let data = data();
    let run = |ranks: Ranks| {
        let mut svi = svi(&network(), ranks.clone());
        let rows: Vec<usize> = ranks.share(EXAMPLES).collect();
        let own = data.select(&rows).into_autodiff();
        let mut step = || {
            let likelihood = |model: &ImageClassifier| {
                circulant::task::Classifier::cross_entropy(model, own.clone()).neg()
            };
            svi.step(EXAMPLES, likelihood).expect("finite").loss
        };
        (0..10).map(|_| step()).collect::<Vec<f64>>()
    };
    let alone = run(Ranks::default());
    for losses in on_ranks(3, run) {
        close(&losses, &alone);
    }
}

/// The place of a checkpoint; only rank 0 can write there.
fn place(directory: &Path, ranks: &Ranks) -> PathBuf {
    if ranks.is_first() {
        directory.join("run.safetensors")
    } else {
        directory.join("nowhere").join("run.safetensors")
    }
}

#[test]
fn a_checkpoint_resumes_on_any_number_of_ranks() {
    let network = network();
    let whole = train(&mut svi(&network, Ranks::default())).expect("trains");
    let on_three = on_ranks(3, |ranks| train(&mut svi(&network, ranks)).expect("trains"));
    for (before, after) in [(3, 1), (1, 3), (3, 3), (2, 3)] {
        let directory = tempfile::tempdir().expect("a directory");
        let written = on_ranks(before, |ranks| {
            let plan = CheckpointPlan {
                path: place(directory.path(), &ranks),
                every: 20,
            };
            let mut svi = svi(&network, ranks);
            let stop = svi.fit(&data(), Some(&plan), |report| {
                if report.step == 49 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            (stop.expect("trains"), svi.steps_done())
        });
        assert!(written.iter().all(|end| *end == (Stop::Asked, 50)));
        let fingerprint = data().fingerprint();
        let results = on_ranks(after, |ranks| {
            let path = place(directory.path(), &ranks);
            let mut svi = svi(&network, ranks);
            svi.resume(path, fingerprint).expect("resumes");
            train(&mut svi).expect("trains")
        });
        for (losses, numbers) in &results {
            close(losses, &whole.0[50..]);
            assert!(*numbers == results[0].1);
        }
        if (before, after) == (3, 3) {
            assert_eq!(results[0].0, on_three[0].0[50..]);
            assert!(results[0].1 == on_three[0].1);
        }
    }
}

#[test]
fn ranks_that_do_not_do_the_same_are_refused_before_the_first_step() {
    let other_network = BayesianConfig::new().with_seed(99);
    let other_network = other_network.init(model(HiddenKind::SpectralCirculant));
    let other_network = other_network.expect("valid");
    let fit = |ranks: Ranks, what: &str| {
        let is_other = ranks.rank() == 2;
        let settings = match what {
            "seed" if is_other => settings().with_seed(6),
            "settings" if is_other => settings().with_learning_rate(0.02),
            _ => settings(),
        };
        let network = match what {
            "parameters" if is_other => other_network.clone(),
            _ => network(),
        };
        let data = match what {
            "data" if is_other => data_with(EXAMPLES, 0.1),
            _ => data(),
        };
        let plan = CheckpointPlan {
            path: PathBuf::from("nowhere/at/all"),
            every: 10,
        };
        let plan = Some(&plan).filter(|_| what == "checkpoints" && !is_other);
        let svi = Svi::new(network, settings, EXAMPLES).expect("valid");
        let mut svi = svi.with_ranks(ranks);
        let error = svi.fit(&data, plan, |_| ControlFlow::Continue(()));
        let error = error.expect_err("ranks differ").to_string();
        (error, svi.steps_done())
    };
    for what in ["data", "seed", "settings", "parameters", "checkpoints"] {
        for (rank, (error, steps)) in on_ranks(3, |ranks| fit(ranks, what)).iter().enumerate() {
            assert!(error.contains(what), "{what}: {error}");
            assert!(error.contains("as on rank 0, found"), "{error}");
            assert_eq!(error.starts_with("rank 2: "), rank != 2, "{error}");
            assert_eq!(*steps, 0);
            // Only what differs.
            assert!(
                error.lines().count() == 1 && !error.contains("kl_weight"),
                "{error}"
            );
        }
    }
    let ranks = on_ranks(3, |ranks| {
        let small = settings().with_batch(2);
        let svi = Svi::new(network(), small, EXAMPLES).expect("valid");
        let fit = svi
            .with_ranks(ranks)
            .fit(&data(), None, |_| ControlFlow::Continue(()));
        fit.expect_err("too few examples").to_string()
    });
    for error in ranks {
        assert!(error.contains("at least 3 examples"), "{error}");
    }
}

/// Data that one rank cannot read from some batch on.
struct Unreadable {
    data: LabelledData<4>,
    left: AtomicUsize,
}

impl TrainingSet<ImageClassifier> for Unreadable {
    type Batch = Examples<4>;

    fn examples(&self) -> usize {
        EXAMPLES
    }

    fn fingerprint(&self) -> u64 {
        self.data.fingerprint()
    }

    fn batch(&self, indices: &[usize], _: bool) -> Result<Examples<4>, ExamplesError> {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return Err(ExamplesError::Empty {
                what: "the disk of this rank",
            });
        }
        self.left.store(left - 1, Ordering::Relaxed);
        Ok(self.data.batch(indices))
    }

    fn into_autodiff(batch: Examples<4>) -> Examples<4> {
        batch.into_autodiff()
    }

    fn negative_log_likelihood(&self, model: &ImageClassifier, batch: Examples<4>) -> Tensor<1> {
        circulant::task::Classifier::cross_entropy(model, batch)
    }
}

#[test]
fn an_error_of_one_rank_is_one_of_all() {
    let network = network();
    let results = on_ranks(3, |ranks| {
        let rank = ranks.rank();
        let data = Unreadable {
            data: data(),
            left: AtomicUsize::new(if rank == 1 { 4 } else { usize::MAX }),
        };
        let mut svi = svi(&network, ranks);
        let error = svi.fit(&data, None, |_| ControlFlow::Continue(()));
        let error = error.expect_err("unreadable").to_string();
        (error, svi.steps_done(), numbers(svi.network()))
    });
    let four = settings().with_steps(4);
    let expected = on_ranks(3, |ranks| {
        let svi = Svi::new(network.clone(), four.clone(), EXAMPLES).expect("valid");
        train(&mut svi.with_ranks(ranks)).expect("trains").1
    });
    for (rank, (error, steps, numbers)) in results.iter().enumerate() {
        let own = "the disk of this rank is empty";
        assert!(error.contains(own), "{error}");
        assert_eq!(error.starts_with("rank 1: "), rank != 1, "{error}");
        // What was done before is whole, on every rank.
        assert_eq!(*steps, 4);
        assert!(*numbers == expected[rank]);
    }
}

#[test]
fn a_checkpoint_that_cannot_be_written_stops_all() {
    let directory = tempfile::tempdir().expect("a directory");
    let results = on_ranks(2, |ranks| {
        let plan = CheckpointPlan {
            path: directory.path().join("nowhere").join("run.safetensors"),
            every: 10,
        };
        let mut svi = svi(&network(), ranks);
        let error = svi.fit(&data(), Some(&plan), |_| ControlFlow::Continue(()));
        (
            error.expect_err("no such folder").to_string(),
            svi.steps_done(),
        )
    });
    assert!(results[0].0.contains("run.safetensors"), "{}", results[0].0);
    assert_eq!(results[1].0, format!("rank 0: {}", results[0].0));
    assert!(results.iter().all(|(_, steps)| *steps == 10));
}

/// Asked on one rank after step 6, and at the very last one.
#[test]
fn a_wish_to_stop_is_one_of_all() {
    for last in [6, 99] {
        let ends = on_ranks(3, |ranks| {
            let asked = ranks.rank() == 2;
            let mut svi = svi(&network(), ranks);
            let stop = svi.fit(&data(), None, |report| {
                if asked && report.step == last {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            let end = (stop.expect("trains"), svi.steps_done());
            (end, numbers(svi.network()))
        });
        for (end, numbers) in &ends {
            assert_eq!(*end, (Stop::Asked, last + 1));
            assert!(*numbers == ends[0].1);
        }
    }
}

/// Loses the others after so many sums.
#[derive(Debug)]
struct Losing {
    ranks: Ranks,
    left: AtomicUsize,
}

impl Communicator for Losing {
    fn rank(&self) -> usize {
        self.ranks.rank()
    }

    fn size(&self) -> usize {
        self.ranks.size()
    }

    fn all_reduce_f32(&self, values: &mut [f32]) -> Result<(), CommunicationError> {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            let rank = 1 - self.rank();
            return Err(CommunicationError::Lost { rank, seconds: 30 });
        }
        self.left.store(left - 1, Ordering::Relaxed);
        self.ranks.communicator().all_reduce_f32(values)
    }

    fn all_reduce_f64(&self, values: &mut [f64]) -> Result<(), CommunicationError> {
        self.ranks.communicator().all_reduce_f64(values)
    }

    fn broadcast(&self, from: usize, bytes: &mut [u8]) -> Result<(), CommunicationError> {
        self.ranks.communicator().broadcast(from, bytes)
    }

    fn barrier(&self) -> Result<(), CommunicationError> {
        self.ranks.communicator().barrier()
    }
}

#[test]
fn after_a_lost_rank_the_last_checkpoint_stands() {
    let directory = tempfile::tempdir().expect("a directory");
    let errors = on_ranks(2, |ranks| {
        let plan = CheckpointPlan {
            path: place(directory.path(), &ranks),
            every: 20,
        };
        let left = AtomicUsize::new(50);
        let mut svi = svi(&network(), Ranks::new(Losing { ranks, left }));
        let error = svi.fit(&data(), Some(&plan), |_| ControlFlow::Continue(()));
        (error.expect_err("lost").to_string(), svi.steps_done())
    });
    assert!(
        errors[0]
            .0
            .starts_with("rank 1 has not been heard of for 30 s")
    );
    assert!(errors.iter().all(|(_, steps)| *steps == 50));
    let mut resumed = svi(&network(), Ranks::default());
    let path = directory.path().join("run.safetensors");
    resumed.resume(path, data().fingerprint()).expect("resumes");
    assert_eq!(resumed.steps_done(), 40);
}

#[test]
fn shares_follow_each_other() {
    for size in 1..6 {
        for count in 0..20 {
            let shares = on_ranks(size, |ranks| ranks.share(count));
            assert_eq!(shares.concat_ranges(), (0..count).collect::<Vec<_>>());
            let lengths: Vec<usize> = shares.iter().map(|share| share.len()).collect();
            let (least, most) = (lengths.iter().min(), lengths.iter().max());
            assert!(most.copied() <= least.map(|least| least + 1));
        }
    }
}

trait ConcatRanges {
    fn concat_ranges(&self) -> Vec<usize>;
}

impl ConcatRanges for Vec<std::ops::Range<usize>> {
    fn concat_ranges(&self) -> Vec<usize> {
        self.iter().cloned().flatten().collect()
    }
}

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

/// What predictions and certificates say, as bits.
fn said(ranks: &Ranks, inputs: usize) -> (Predictions, Vec<u64>) {
    let network = network();
    let data = data_with(inputs, 0.25);
    let images = data.inputs();
    let predictive = PredictiveConfig::new().with_samples(4).with_batch(3);
    let found = predictive.predict_on(ranks, &network, images.clone(), |_, _| {});
    let bounds = PredictiveBoundsConfig::new().with_samples(4).with_batch(3);
    let bounds = bounds.bound(&network).expect("bounded");
    let certified = bounds.certify_on(ranks, images.clone(), Target::Predicted);
    let certified = certified.expect("certified");
    let geometry = PosteriorGeometryConfig::new().with_samples(4);
    let geometry = geometry.measure_on(ranks, &network, images, Target::Predicted, |_, _| {});
    let geometry = geometry.expect("measured");
    let mut bits: Vec<f64> = vec![certified.input_norm.get(), geometry.certified_share];
    for input in &certified.inputs {
        bits.extend([input.class as f64, input.predicted as f64, input.difference]);
        bits.extend(
            [input.certified_difference, input.average, input.per_sample].map(LowerBound::get),
        );
    }
    for (name, norms) in &geometry.layers {
        bits.push(name.len() as f64);
        bits.extend(norms.values());
    }
    for values in [
        &geometry.bounds,
        &geometry.rounding,
        &geometry.margins,
        &geometry.paper,
    ] {
        bits.extend(values.values());
    }
    (
        found.expect("finite"),
        bits.into_iter().map(f64::to_bits).collect(),
    )
}

#[test]
fn predictions_and_certificates_are_those_of_one_process() {
    // More and fewer batches than ranks, and fewer inputs.
    for inputs in [1, 2, 7, 20] {
        let alone = said(&Ranks::default(), inputs);
        assert_eq!(alone.0.probabilities.len(), 3 * inputs);
        for size in [2, 3, 5] {
            for found in on_ranks(size, |ranks| said(&ranks, inputs)) {
                assert!(found == alone, "{inputs} inputs on {size} ranks");
            }
        }
    }
}

#[test]
fn predictions_of_numbers_are_those_of_one_process() {
    for likelihood in [Likelihood::Gaussian, Likelihood::Poisson] {
        let predict = |ranks: &Ranks| {
            let layers =
                ImageClassifierConfig::new(HiddenKind::SpectralCirculant).with_image([1, 1, 6]);
            let device = circulant::cpu().autodiff();
            let model = TargetNetworkConfig::new(layers, likelihood).init(&device);
            let network = BayesianConfig::new()
                .with_seed(4)
                .init(model)
                .expect("valid");
            let values = (0..20 * 6).map(|i| (i * 7919 % 1009) as f32 / 1009.0);
            let data = TensorData::new(values.collect::<Vec<_>>(), [20, 6]);
            let inputs = Tensor::<2>::from_data(data, &circulant::cpu());
            let config = PredictiveConfig::new().with_samples(3).with_batch(6);
            let found = config.predict_targets_on(ranks, &network, inputs, |_, _| {});
            let found = found.expect("finite");
            [found.locations().to_vec(), found.deviations().to_vec()]
        };
        let alone = predict(&Ranks::default());
        for size in [2, 3, 5] {
            assert!(
                on_ranks(size, |ranks| predict(&ranks))
                    .iter()
                    .all(|found| *found == alone)
            );
        }
    }
}

#[test]
fn an_input_that_is_not_finite_is_an_error_on_all_ranks() {
    let messages = on_ranks(3, |ranks| {
        let network = network();
        let mut values = vec![0.5; 9 * 20];
        values[7 * 20] = f32::NAN;
        let images =
            Tensor::<4>::from_data(TensorData::new(values, [9, 1, 4, 5]), &circulant::cpu());
        let config = PredictiveConfig::new().with_samples(2).with_batch(3);
        let found = config.predict_on(&ranks, &network, images, |_, _| {});
        found.expect_err("not finite").to_string()
    });
    for message in messages {
        assert!(message.contains("input 7"), "{message}");
    }
}

#[test]
fn bytes_of_all_ranks_come_in_their_order() {
    for size in [1, 2, 3] {
        let gathered = on_ranks(size, |ranks| {
            let own = vec![ranks.rank() as u8; 2 * ranks.rank()];
            ranks.gather(own).expect("nobody is lost")
        });
        let expected: Vec<Vec<u8>> = (0..size).map(|rank| vec![rank as u8; 2 * rank]).collect();
        assert!(gathered.iter().all(|parts| *parts == expected));
        let counts = on_ranks(size, |ranks| {
            ranks
                .counts([true, ranks.rank() == 0, false])
                .expect("nobody is lost")
        });
        assert!(counts.iter().all(|found| *found == [size, 1, 0]));
    }
}
