//! Training on several ranks: the same as on one, errors and wishes of one are those of all, checkpoints fit any number.

mod predictions;
mod trainer;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use burn::tensor::Tensor;
use circulant::bayes::{Bayesian, BayesianConfig, CheckpointPlan, Site, Stop, Svi, SviConfig};
use circulant::data::{Examples, ExamplesError, LabelledData};
use circulant::models::{HiddenKind, ImageClassifier, ImageClassifierConfig};
use circulant::parallel::{Alone, CommunicationError, Communicator, Ranks};
use circulant::task::TrainingSet;

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
