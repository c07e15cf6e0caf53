//! SVI steps and posterior predictive of the MNIST models: f32, MNIST shape, rank 8, one sample per step, Adam.
//!
//! ```text
//! cargo bench -p circulant --bench svi -- [--json] [--case PART] [--seconds S] [--threads N]
//! ... --run-steps 1000 --case svi/spectral-circulant/512   memory and time to the first step of a fresh process
//! ... --export CASE FILE                                    everything about one step, for others to check
//! ```
//!
//! `bench/peers` compares with NumPyro, JAX and PyTorch.

mod options;

use std::collections::HashMap;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::SgdConfig;
use burn::tensor::{Device, Tensor};
use circulant::bayes::{
    Bayesian, BayesianConfig, Classifier, LabelledData, Noise, PredictiveConfig, Purpose, Svi,
    SviConfig,
};
use circulant::kernels::{ByteScale, standard_normal};
use circulant::models::{HiddenKind, ImageClassifier, ImageClassifierConfig};
use options::{Options, number};
use safetensors::tensor::{Dtype, TensorView};

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
    let config: BayesianConfig = model.bayesian_config();
    config.init(model).expect("a valid choice")
}

/// `svi/MODEL/BATCH` to model and batch.
fn parse(case: &str) -> Option<(HiddenKind, usize)> {
    let mut parts = case.strip_prefix("svi/")?.split('/');
    let name = parts.next()?;
    let (_, kind) = MODELS.iter().find(|(model, _)| *model == name)?;
    Some((*kind, parts.next()?.parse().ok()?))
}

/// Best and median in milliseconds.
fn statistics(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    (milliseconds(times[0]), milliseconds(times[times.len() / 2]))
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
    let (mut times, start) = (Vec::new(), Instant::now());
    while times.len() < 3 || start.elapsed().as_secs_f64() < seconds {
        let begin = Instant::now();
        black_box(config.predict(&network, inputs.clone()).expect("predicts"));
        times.push(begin.elapsed());
    }
    statistics(times)
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

/// The learning rate of the exported step, a power of two: it takes the parameters so far that what they move by is the gradient
/// to the last bits.
const EXPORT_RATE: f64 = 16384.0;

/// Parameters under the names that the peers use.
#[derive(Default)]
struct Collect {
    /// Of the number at hand, `SITE, posterior, FIELD`.
    path: Vec<String>,
    tensors: Vec<(String, Vec<usize>, Vec<f32>)>,
}

impl Collect {
    fn parameters(network: &Bayesian<ImageClassifier>) -> Vec<(String, Vec<usize>, Vec<f32>)> {
        let mut collect = Self::default();
        network.visit(&mut collect);
        collect.tensors
    }
}

impl ModuleVisitor for Collect {
    fn enter_module(&mut self, name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.path.push(name.to_owned());
        }
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.path.pop();
        }
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let [site, _, field] = &self.path[..] else {
            return;
        };
        let name = format!("{}.{field}", short(site));
        let tensor = param.val().inner();
        let shape = tensor.dims().to_vec();
        let values = tensor.into_data().try_into_vec().expect("f32");
        self.tensors.push((name, shape, values));
    }
}

/// A name for a site that does not depend on the model.
fn short(path: &str) -> String {
    match path {
        "hidden.bias" => "hidden_bias",
        "output.weight" => "weight",
        "output.bias" => "bias",
        _ => "hidden",
    }
    .to_owned()
}

fn export(case: &str, file: &str) {
    let (kind, batch) = parse(case).expect("--export svi/MODEL/BATCH FILE");
    let device = circulant::cpu().autodiff();
    let network = network(kind, &device);
    let data = data(batch, &device);
    let all: Vec<usize> = (0..batch).collect();
    let examples = data.batch(&all);
    let on_tape = examples.clone().map(Tensor::from_inner);
    // The very step that is timed, but for the optimiser.
    let config = SviConfig::new().with_learning_rate(EXPORT_RATE);
    let optimizer = SgdConfig::new().init();
    let mut svi = Svi::with_optimizer(network.clone(), optimizer, config, EXAMPLES).expect("valid");
    let step = svi.step(batch, |model| model.cross_entropy(on_tape.clone()).neg());
    let report = step.expect("a finite loss");
    let mut tensors = Vec::new();
    let after = Collect::parameters(svi.network());
    for ((name, shape, before), (_, _, after)) in
        Collect::parameters(&network).into_iter().zip(after)
    {
        let moved = before
            .iter()
            .zip(&after)
            .map(|(before, after)| before - after);
        let gradient = moved.map(|by| by / EXPORT_RATE as f32).collect();
        tensors.push((format!("gradient.{name}"), shape.clone(), gradient));
        tensors.push((format!("parameter.{name}"), shape, before));
    }
    let mut noise = Noise::new(0, Purpose::Training, 0, 0);
    for (path, _) in network.posteriors() {
        let site = short(path);
        let size = |field: &str| {
            let name = format!("parameter.{site}.{field}");
            let found = tensors.iter().find(|(tensor, ..)| *tensor == name);
            found.map_or(0, |(_, _, values)| values.len())
        };
        let (rank, count) = (size("scale"), size("mean"));
        let mut values = vec![0.0_f32; rank + count];
        standard_normal(noise.next_key(), &mut values);
        let low_rank: Vec<f32> = values.drain(..rank).collect();
        if rank > 0 {
            tensors.push((format!("noise.{site}.low_rank"), vec![rank], low_rank));
        }
        tensors.push((format!("noise.{site}"), vec![count], values));
    }
    tensors.push(("loss".into(), vec![1], vec![report.loss as f32]));
    // Per example in the report, in all in the file.
    let kl = vec![(report.kl * EXAMPLES as f64) as f32];
    tensors.push(("kl".into(), vec![1], kl));
    let pixels = examples.inputs.into_data().try_into_vec().expect("f32");
    tensors.push(("inputs".into(), vec![batch, 1, 28, 28], pixels));
    let labels: Vec<u8> = data
        .labels()
        .iter()
        .flat_map(|&label| (label as i64).to_le_bytes())
        .collect();
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .into_iter()
        .map(|(name, shape, values)| {
            let bytes = values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect();
            (name, shape, bytes)
        })
        .collect();
    let mut views: HashMap<&str, TensorView<'_>> = bytes
        .iter()
        .map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes).expect("sizes fit");
            (name.as_str(), view)
        })
        .collect();
    views.insert(
        "labels",
        TensorView::new(Dtype::I64, vec![batch], &labels).expect("sizes fit"),
    );
    std::fs::write(file, safetensors::serialize(views, None).expect("valid")).expect("written");
}

fn main() {
    let start = Instant::now();
    let mut own = Own::default();
    let options = Options::start(2.0, |flag, value| own.take(flag, value));
    if let Some((case, file)) = &own.export {
        return export(case, file);
    }
    if let Some(steps) = own.run_steps {
        return run_steps(&options.case, steps, start);
    }
    let print = |case: &str, (best, median): (f64, f64), rate: f64| {
        if options.json {
            println!(
                "{{\"case\": \"{case}\", \"unit\": \"ms\", \"best\": {best}, \"median\": {median}, \"threads\": {}}}",
                options.threads
            );
        } else {
            println!(
                "{case:<36} {best:>9.3} {median:>9.3} {:>12.0}",
                rate * 1e3 / best
            );
        }
    };
    if !options.json {
        println!(
            "{:<36} {:>9} {:>9} {:>12}",
            "case", "best, ms", "median", "per second"
        );
    }
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
