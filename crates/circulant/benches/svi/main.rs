//! SVI steps and posterior predictive of the MNIST models: f32, MNIST shape, rank 8, one sample per step, Adam.
//!
//! ```text
//! cargo bench -p circulant --bench svi -- [--json] [--case PART] [--seconds S] [--threads N]
//! ... --run-steps 1000 --case svi/spectral-circulant/512   memory and time to the first step of a fresh process
//! ... --export CASE FILE                                    everything about one step or prediction, for others to check
//! ```
//!
//! `bench/peers` compares with NumPyro, JAX and PyTorch.

mod export;
#[path = "../options/line.rs"]
mod line;
#[path = "../options/mod.rs"]
mod options;
#[path = "../options/export.rs"]
mod safetensors_file;

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

use burn::tensor::Device;
use circulant::bayes::{Bayesian, BayesianConfig, PredictiveConfig, Svi, SviConfig};
use circulant::data::ByteScale;
use circulant::data::LabelledData;
use circulant::models::{HiddenKind, ImageClassifier, ImageClassifierConfig};
use options::{Options, number, statistics, time};

const EXAMPLES: usize = 60_000;
const PIXELS: usize = 784;
const TEST_INPUTS: usize = 10_000;
const SAMPLES: usize = 50;
const WARM_UP: u64 = 20;
const GROUP: u64 = 10;

const MODELS: [(&str, HiddenKind); 6] = [
    ("spectral-circulant", HiddenKind::SpectralCirculant),
    ("spectral-bccb", HiddenKind::SpectralBccb),
    ("circulant", HiddenKind::SpatialCirculant),
    ("bccb", HiddenKind::SpatialBccb),
    ("conv2d", HiddenKind::Convolution),
    ("dense", HiddenKind::Dense),
];
const BATCHES: [usize; 3] = [128, 512, 4096];

/// What only this benchmark is asked.
#[derive(Default)]
struct Own {
    run_steps: Option<u64>,
    export: Option<(String, String)>,
}

impl Own {
    fn take(&mut self, flag: &str, value: &mut dyn FnMut() -> String) -> bool {
        match flag {
            "--run-steps" => self.run_steps = Some(number(flag, &value())),
            "--export" => self.export = Some((value(), value())),
            _ => return false,
        }
        true
    }
}

fn data(examples: usize, device: &Device) -> LabelledData<4> {
    // A table of prime length, again and again.
    let table: Vec<u8> = (0..7919).map(|i| (i * 37 % 256) as u8).collect();
    let mut pixels = vec![0; examples * PIXELS];
    for part in pixels.chunks_mut(table.len()) {
        part.copy_from_slice(&table[..part.len()]);
    }
    let labels: Vec<i64> = (0..examples).map(|i| (i * 7 % 10) as i64).collect();
    let (unit, shape) = (ByteScale::new(255.0), [examples, 1, 28, 28]);
    let scale = unit.expect("valid");
    LabelledData::from_bytes(pixels, scale, shape, &labels, 10, device).expect("valid data")
}

fn network(kind: HiddenKind, device: &Device) -> Bayesian<ImageClassifier> {
    let model = ImageClassifierConfig::new(kind).init(device);
    let config: BayesianConfig = BayesianConfig::new();
    config.init(model).expect("a valid choice")
}

fn model(name: &str) -> Option<HiddenKind> {
    let found = MODELS.iter().find(|(model, _)| *model == name)?;
    Some(found.1)
}

/// `svi/MODEL/BATCH` to model and batch.
fn parse(case: &str) -> Option<(HiddenKind, usize)> {
    let (name, batch) = case.strip_prefix("svi/")?.split_once('/')?;
    Some((model(name)?, batch.parse().ok()?))
}

/// `predictive/MODEL/SAMPLESxINPUTS` to model, samples and inputs.
fn parse_predictive(case: &str) -> Option<(HiddenKind, usize, usize)> {
    let (name, sizes) = case.strip_prefix("predictive/")?.split_once('/')?;
    let (samples, inputs) = sizes.split_once('x')?;
    Some((model(name)?, samples.parse().ok()?, inputs.parse().ok()?))
}

/// The mean of every [`GROUP`] steps counts as one measurement, as on the side of the peers.
fn time_steps(kind: HiddenKind, batch: usize, seconds: f64, data: &LabelledData<4>) -> (f64, f64) {
    let device = circulant::cpu().autodiff();
    let config = SviConfig::new().with_batch(batch).with_steps(u64::MAX);
    let mut svi = Svi::new(network(kind, &device), config, data.examples()).expect("valid");
    let (mut times, mut last) = (Vec::new(), Instant::now());
    let mut start = last;
    svi.fit(data, None, |report| {
        if report.step < WARM_UP {
            (start, last) = (Instant::now(), Instant::now());
        } else if (report.step + 1 - WARM_UP).is_multiple_of(GROUP) {
            times.push(last.elapsed() / GROUP as u32);
            last = Instant::now();
        }
        if times.len() >= 3 && start.elapsed().as_secs_f64() > seconds {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })
    .expect("trains");
    statistics(times)
}

fn time_predictive(kind: HiddenKind, seconds: f64) -> (f64, f64) {
    let device = circulant::cpu();
    let network = network(kind, &device);
    let inputs = data(TEST_INPUTS, &device).inputs();
    let config = PredictiveConfig::new().with_samples(SAMPLES);
    time(seconds, || {
        black_box(config.predict(&network, inputs.clone()).expect("predicts"));
    })
}

fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib / 1024.0)
}

fn run_steps(case: &str, steps: u64, start: Instant) {
    let (kind, batch) = parse(case).expect("--case svi/MODEL/BATCH");
    let device = circulant::cpu().autodiff();
    let before = Instant::now();
    let data = data(EXAMPLES, &device);
    let prepared = before.elapsed();
    let config = SviConfig::new().with_batch(batch).with_steps(steps);
    let mut svi = Svi::new(network(kind, &device), config, data.examples()).expect("valid");
    let mut first = None;
    svi.fit(&data, None, |_| {
        first.get_or_insert_with(|| start.elapsed());
        ControlFlow::Continue(())
    })
    .expect("trains");
    println!(
        "{{\"case\": \"{case}\", \"first_step_seconds\": {}, \"data_seconds\": {}, \"peak_mib\": {}, \"data_mib\": {}, \"steps\": {steps}}}",
        first.expect("at least one step").as_secs_f64(),
        prepared.as_secs_f64(),
        peak_mib(),
        (EXAMPLES * PIXELS) as f64 / (1 << 20) as f64,
    );
}

fn main() {
    let start = Instant::now();
    let mut own = Own::default();
    let options = Options::start(2.0, |flag, value| own.take(flag, value));
    if let Some((case, file)) = &own.export {
        return export::export(case, file);
    }
    if let Some(steps) = own.run_steps {
        return run_steps(&options.case, steps, start);
    }
    let print = |case: &str, times: (f64, f64), rate: f64| {
        let per_second = rate * 1e3 / times.0;
        options.print(case, times, &format!(", {per_second:.0} per second"));
    };
    let train = data(EXAMPLES, &circulant::cpu());
    for (name, kind) in MODELS {
        for batch in BATCHES {
            let case = format!("svi/{name}/{batch}");
            if case.contains(&options.case) {
                print(&case, time_steps(kind, batch, options.seconds, &train), 1.0);
            }
        }
    }
    for (name, kind) in MODELS {
        let case = format!("predictive/{name}/{SAMPLES}x{TEST_INPUTS}");
        if case.contains(&options.case) {
            let times = time_predictive(kind, options.seconds);
            print(&case, times, TEST_INPUTS as f64);
        }
    }
}
