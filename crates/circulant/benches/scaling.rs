//! Training steps on several ranks, computation and communication apart: the MNIST models (batch 4096, one sample per step, Adam) and the
//! vision transformer (3x32x32, patch 4, d 128, depth 6, batch 128, Adan). And predictions: 4096 images, 50 posterior samples.
//!
//! ```text
//! mpirun -n 2 PROGRAM [--threads N] [--case PART] [--batch B] [--steps S]     a line of JSON per case, from rank 0
//! ```
//!
//! `bench/mpi/scaling.py` runs it with one and two ranks, alternating, and simulates more ranks from its parts.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use burn::tensor::{Tensor, TensorData};
use circulant::bayes::{BayesianConfig, PredictiveConfig, Svi, SviConfig};
use circulant::data::{ByteScale, LabelledData};
use circulant::models::{
    HiddenKind, ImageClassifierConfig, ProjectionKind, VisionTransformerConfig,
};
use circulant::parallel::{CommunicationError, Communicator, Mpi, Ranks};
use circulant::train::{Trainer, TrainerConfig, TrainingLoss, WarmUpCosine};

const EXAMPLES: usize = 60_000;
const PIXELS: usize = 784;
const WARM_UP: usize = 5;
const MODELS: [(&str, HiddenKind); 6] = [
    ("spectral-circulant", HiddenKind::SpectralCirculant),
    ("spectral-bccb", HiddenKind::SpectralBccb),
    ("circulant", HiddenKind::SpatialCirculant),
    ("bccb", HiddenKind::SpatialBccb),
    ("conv2d", HiddenKind::Convolution),
    ("dense", HiddenKind::Dense),
];

/// Nanoseconds in sums, and bytes summed.
#[derive(Debug, Default)]
struct Spent {
    nanoseconds: AtomicU64,
    bytes: AtomicU64,
}

/// MPI with a clock.
#[derive(Debug)]
struct Timed(Arc<Mpi>, Arc<Spent>);

impl Timed {
    fn time<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        let spent = start.elapsed().as_nanos() as u64;
        self.1.nanoseconds.fetch_add(spent, Ordering::Relaxed);
        self.1.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        result
    }
}

impl Communicator for Timed {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn all_reduce_f32(&self, values: &mut [f32]) -> Result<(), CommunicationError> {
        self.time(size_of_val(values), || self.0.all_reduce_f32(values))
    }

    fn all_reduce_f64(&self, values: &mut [f64]) -> Result<(), CommunicationError> {
        self.time(size_of_val(values), || self.0.all_reduce_f64(values))
    }

    fn broadcast(&self, from: usize, bytes: &mut [u8]) -> Result<(), CommunicationError> {
        self.time(bytes.len(), || self.0.broadcast(from, bytes))
    }

    fn barrier(&self) -> Result<(), CommunicationError> {
        self.0.barrier()
    }
}

struct Options {
    threads: usize,
    case: String,
    batch: Option<usize>,
    steps: usize,
}

fn options() -> Options {
    let mut options = Options {
        threads: 1,
        case: String::new(),
        batch: None,
        steps: 40,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        if flag == "--bench" {
            continue;
        }
        let value = arguments.next().expect("a value behind every flag");
        let number = || value.parse().expect("a number");
        match flag.as_str() {
            "--threads" => options.threads = number(),
            "--case" => options.case = value,
            "--batch" => options.batch = Some(number()),
            "--steps" => options.steps = number(),
            other => panic!("unknown flag {other}"),
        }
    }
    options
}

/// What every step took, in seconds, whole and in sums.
#[derive(Default)]
struct Steps {
    whole: Vec<f64>,
    sums: Vec<f64>,
    bytes: u64,
}

struct Clock {
    spent: Arc<Spent>,
    last: Instant,
    summed: u64,
    bytes: u64,
    steps: Steps,
}

impl Clock {
    fn new(spent: &Arc<Spent>) -> Self {
        Self {
            spent: spent.clone(),
            last: Instant::now(),
            summed: spent.nanoseconds.load(Ordering::Relaxed),
            bytes: spent.bytes.load(Ordering::Relaxed),
            steps: Steps::default(),
        }
    }

    fn tick(&mut self) {
        let now = Instant::now();
        let summed = self.spent.nanoseconds.load(Ordering::Relaxed);
        let bytes = self.spent.bytes.load(Ordering::Relaxed);
        self.steps
            .whole
            .push(now.duration_since(self.last).as_secs_f64());
        self.steps.sums.push((summed - self.summed) as f64 * 1e-9);
        self.steps.bytes = bytes - self.bytes;
        (self.last, self.summed, self.bytes) = (now, summed, bytes);
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values[WARM_UP.min(values.len() - 1)..].to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn mnist(kind: HiddenKind, batch: usize, steps: usize, ranks: Ranks, clock: &mut Clock) {
    let device = circulant::cpu().autodiff();
    let model = ImageClassifierConfig::new(kind).with_seed(1).init(&device);
    let network = BayesianConfig::new().with_seed(2).init(model);
    let pixels = (0..EXAMPLES * PIXELS).map(|i| (i * 7919 % 251) as u8);
    let labels: Vec<i64> = (0..EXAMPLES).map(|i| (i * 7 % 10) as i64).collect();
    let data = LabelledData::from_bytes(
        pixels.collect(),
        ByteScale::new(255.0).expect("positive"),
        [EXAMPLES, 1, 28, 28],
        &labels,
        10,
        &device,
    );
    let data = data.expect("valid");
    let config = SviConfig::new()
        .with_batch(batch)
        .with_steps((steps + WARM_UP) as u64);
    let svi = Svi::new(network.expect("valid"), config, EXAMPLES).expect("valid");
    let mut svi = svi.with_ranks(ranks);
    let fit = svi.fit(&data, None, |_| {
        clock.tick();
        ControlFlow::Continue(())
    });
    fit.expect("trains");
}

fn transformer(batch: usize, steps: usize, ranks: Ranks, clock: &mut Clock) {
    let device = circulant::cpu().autodiff();
    let model = VisionTransformerConfig::new(32, 4, 10, ProjectionKind::Spectral)
        .with_d(128)
        .with_depth(6)
        .with_heads(4)
        .with_dropout(0.1)
        .init(&device);
    let schedule = WarmUpCosine {
        peak: 1e-3,
        warm_up: 5,
        steps: 1000,
    };
    let config = TrainerConfig {
        seed: 0,
        schedule,
        spectral_rate: 1.0,
        length_power: 0.0,
        weight_decay: 1e-4,
        loss: TrainingLoss::CrossEntropy,
    };
    let share = ranks.share(batch);
    let trainer = Trainer::new(model, config).expect("valid");
    let mut trainer = trainer.with_ranks(ranks).expect("the same on all");
    let values = (share.start * 3072..share.end * 3072).map(|i| (i * 7919 % 2003) as f32 / 2003.0);
    let data = TensorData::new(values.collect::<Vec<f32>>(), [share.len(), 3, 32, 32]);
    let images = Tensor::<4>::from_data(data, &device);
    let labels: Vec<usize> = share.map(|i| i * 7 % 10).collect();
    for _ in 0..steps + WARM_UP {
        trainer.step(images.clone(), &labels).expect("finite");
        clock.tick();
    }
}

fn predictions(inputs: usize, steps: usize, ranks: &Ranks, clock: &mut Clock) {
    let device = circulant::cpu();
    let model = ImageClassifierConfig::new(HiddenKind::SpectralBccb)
        .with_seed(1)
        .init(&device);
    let network = BayesianConfig::new().with_seed(2).init(model);
    let network = network.expect("valid");
    let values = (0..inputs * PIXELS).map(|i| (i * 7919 % 251) as f32 / 251.0);
    let data = TensorData::new(values.collect::<Vec<f32>>(), [inputs, 1, 28, 28]);
    let images = Tensor::<4>::from_data(data, &device);
    let config = PredictiveConfig::new();
    // They take longer than steps.
    for _ in 0..steps / 4 + WARM_UP {
        let found = config.predict_on(ranks, &network, images.clone(), |_, _| {});
        found.expect("finite");
        clock.tick();
    }
}

fn main() {
    let options = options();
    circulant::join_pool(options.threads).expect("nothing has used the pool yet");
    let mpi = Arc::new(Mpi::start().expect("MPI starts"));
    let spent = Arc::new(Spent::default());
    let ranks = Ranks::new(Timed(mpi, spent.clone()));
    let names = MODELS.map(|(name, _)| name).into_iter();
    for name in names.chain(["vit", "predict"]) {
        if !name.contains(&options.case) {
            continue;
        }
        let kind = MODELS.iter().find(|(model, _)| *model == name);
        let batch = options.batch.unwrap_or(match name {
            "vit" => 128,
            _ => 4096,
        });
        let mut clock = Clock::new(&spent);
        match kind {
            Some((_, kind)) => mnist(*kind, batch, options.steps, ranks.clone(), &mut clock),
            None if name == "vit" => transformer(batch, options.steps, ranks.clone(), &mut clock),
            None => predictions(batch, options.steps, &ranks, &mut clock),
        }
        if ranks.is_first() {
            println!(
                "{{\"case\": \"{name}\", \"ranks\": {}, \"threads\": {}, \"batch\": {batch}, \"step_ms\": {:.4}, \
                 \"sums_ms\": {:.4}, \"bytes\": {}}}",
                ranks.size(),
                options.threads,
                1e3 * median(&clock.steps.whole),
                1e3 * median(&clock.steps.sums),
                clock.steps.bytes
            );
        }
    }
}
