//! Training steps of the vision transformer: f32, CIFAR shape (3x32x32, patch 4, d 128, depth 6, 4 heads, MLP 512), dropout 0.1, forward,
//! backward and Adan.
//!
//! ```text
//! cargo bench -p circulant --bench vit -- [--json] [--case PART] [--seconds S] [--threads N]
//! ... --profile --case vit/spectral/128    where the time of a step goes
//! ... --export CASE FILE                   loss and gradients without dropout, for others to check
//! ```
//!
//! `bench/peers` compares with JAX and PyTorch.

#[path = "options/export.rs"]
mod export;
#[path = "options/line.rs"]
mod line;
mod options;

use std::hint::black_box;
use std::time::{Duration, Instant};

use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{Device, Tensor, TensorData};
use circulant::functional::Dropout;
use circulant::functional::{
    attention, circulant_1d, circulant_1d_filters, cross_entropy, dropout, gelu, layer_norm, linear,
};
use circulant::models::{ProjectionKind, VisionTransformer, VisionTransformerConfig};
use circulant::noise::NoiseKey;
use circulant::operator::Operator;
use circulant::operator::{Activation, HalfSpectrum};
use circulant::train::FusedAdan;
use export::{Collect, numbers as numbers_of};
use options::{Options, statistics, time};

const SIDE: usize = 32;
const CLASSES: usize = 10;
const BATCH: usize = 128;
const TOKENS: usize = 65;
const WIDTH: usize = 128;
const HEADS: usize = 4;
const WARM_UP: usize = 2;
const LEARNING_RATE: f64 = 1e-3;

/// What only this benchmark is asked.
#[derive(Default)]
struct Own {
    profile: bool,
    export: Option<(String, String)>,
}

impl Own {
    fn take(&mut self, flag: &str, value: &mut dyn FnMut() -> String) -> bool {
        match flag {
            "--profile" => self.profile = true,
            "--export" => self.export = Some((value(), value())),
            _ => return false,
        }
        true
    }
}

/// The projections of attention and MLP.
type Kinds = [ProjectionKind; 2];

/// The models that are timed: the paper's two, one with a sixth of the dense one's parameters, one with half of them.
const MODELS: [&str; 4] = ["dense", "spectral", "block-8+block-8", "dense+block-4"];

/// `vit/ATTENTION[+MLP]/BATCH` to kinds and batch; the MLP is dense unless given.
fn parse(case: &str) -> (Kinds, usize) {
    let parts: Vec<&str> = case.split('/').collect();
    let ["vit", kinds, batch] = parts[..] else {
        panic!("expected vit/ATTENTION[+MLP]/BATCH, got {case}");
    };
    let (attention, mlp) = kinds.split_once('+').unwrap_or((kinds, "dense"));
    let kinds = [attention, mlp].map(|kind| kind.parse().expect("a projection"));
    (kinds, batch.parse().expect("a batch"))
}

fn model([attention, mlp]: Kinds, device: &Device) -> VisionTransformer {
    VisionTransformerConfig::new(SIDE, 4, CLASSES, attention)
        .with_mlp([mlp; 2])
        .with_d(WIDTH)
        .with_heads(HEADS)
        .init(device)
}

fn numbers(seed: usize, count: usize) -> Vec<f32> {
    (0..count)
        .map(|i| ((i * 7919 + seed * 31) % 10_007) as f32 / 5003.5 - 1.0)
        .collect()
}

fn tensor<const D: usize>(seed: usize, shape: [usize; D], device: &Device) -> Tensor<D> {
    let values = numbers(seed, shape.iter().product());
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn images(batch: usize, device: &Device) -> Tensor<4> {
    tensor(0, [batch, 3, SIDE, SIDE], device)
}

fn labels(batch: usize) -> Vec<usize> {
    (0..batch).map(|i| i * 7 % CLASSES).collect()
}

fn optimizer() -> ModuleOptimizer {
    FusedAdan {
        weight_decay: 1e-4,
        ..FusedAdan::default()
    }
    .init()
}

const PARTS: [&str; 5] = ["forward", "loss", "backward", "gradients", "optimiser"];

/// The times of whole steps and of their parts.
fn steps(kinds: Kinds, batch: usize, seconds: f64) -> (Vec<Duration>, Vec<Vec<Duration>>) {
    let device = circulant::cpu().autodiff();
    let mut model = model(kinds, &device);
    let mut optimizer = optimizer();
    let (images, labels) = (images(batch, &device), labels(batch));
    let (mut whole, mut parts) = (Vec::new(), vec![Vec::new(); PARTS.len()]);
    let (mut step, mut start) = (0, Instant::now());
    while whole.len() < 3 || start.elapsed().as_secs_f64() < seconds {
        if step == WARM_UP {
            start = Instant::now();
        }
        let mut marks = vec![Instant::now()];
        let key = NoiseKey {
            seed: 0,
            stream: step as u64,
        };
        let logits = model.forward_training(images.clone(), key);
        marks.push(Instant::now());
        let loss = cross_entropy(logits, labels.clone()).div_scalar(batch as f64);
        marks.push(Instant::now());
        let gradients = loss.backward();
        marks.push(Instant::now());
        let gradients = GradientsParams::from_grads(gradients, &model);
        marks.push(Instant::now());
        model = optimizer.step(LEARNING_RATE, model, gradients);
        marks.push(Instant::now());
        if step >= WARM_UP {
            whole.push(marks[PARTS.len()] - marks[0]);
            for (times, pair) in parts.iter_mut().zip(marks.windows(2)) {
                times.push(pair[1] - pair[0]);
            }
        }
        step += 1;
    }
    (whole, parts)
}

/// Forward alone, then with the backward pass, of one operation in isolation.
fn time_operation(seconds: f64, operation: impl Fn() -> Tensor<3>) -> [f64; 2] {
    [false, true].map(|backward| {
        let once = || {
            let y = operation();
            if backward {
                // One number as the loss: its gradient costs next to nothing beside the operation's.
                let [batch, tokens, _] = y.dims();
                let picked = y.slice([batch - 1..batch, tokens - 1..tokens, 0..1]);
                black_box(picked.sum().backward());
            } else {
                black_box(y);
            }
        };
        time(seconds, once).0
    })
}

fn profile(case: &str, seconds: f64) {
    let (kinds, batch) = parse(case);
    let (whole, parts) = steps(kinds, batch, seconds);
    println!("{case:<44} {:>9} {:>9}", "best, ms", "median");
    let (best, median) = statistics(whole);
    println!("{:<44} {best:>9.2} {median:>9.2}", "step");
    for (part, times) in PARTS.iter().zip(parts) {
        let (best, median) = statistics(times);
        println!("{part:<44} {best:>9.2} {median:>9.2}");
    }
    println!(
        "\n{:<44} {:>9} {:>9} {:>7}",
        "one operation", "forward", "and back", "calls"
    );
    let device = circulant::cpu().autodiff();
    let leaf = |seed, width| tensor::<3>(seed, [batch, TOKENS, width], &device).require_grad();
    let (x, hidden) = (leaf(1, WIDTH), leaf(2, 4 * WIDTH));
    let [gamma, beta] = [3, 4].map(|seed| tensor::<1>(seed, [WIDTH], &device).require_grad());
    let mask = Dropout::new(0.1, NoiseKey { seed: 1, stream: 0 }).expect("a rate");
    let dense = |inputs, outputs| burn::nn::LinearConfig::new(inputs, outputs).init(&device);
    let (square, expand, contract) = (
        dense(WIDTH, WIDTH),
        dense(WIDTH, 4 * WIDTH),
        dense(4 * WIDTH, WIDTH),
    );
    let operator = Operator::signal(HalfSpectrum::new(WIDTH).expect("positive"));
    let coordinates = tensor::<2>(5, [3, WIDTH], &device).require_grad();
    let seconds = seconds / 20.0;
    let print = |name: &str, calls: usize, operation: &dyn Fn() -> Tensor<3>| {
        let [forward, both] = time_operation(seconds, operation);
        println!("{name:<44} {forward:>9.2} {both:>9.2} {calls:>7}");
    };
    let keep = Activation::Identity;
    let (of_dense, of_spectral) = match kinds[0] {
        ProjectionKind::Dense => (24, 0),
        ProjectionKind::Spectral => (0, 6),
        _ => (0, 0),
    };
    let of_mlp = if kinds[1] == ProjectionKind::Dense {
        6
    } else {
        0
    };
    print("layer norm", 12, &|| {
        layer_norm(x.clone(), gamma.clone(), beta.clone(), 1e-5)
    });
    print("one dense projection", of_dense, &|| {
        linear(&square, x.clone(), keep)
    });
    print("spectral Q, K, V", of_spectral, &|| {
        let y: Tensor<4> = circulant_1d_filters(x.clone(), coordinates.clone(), None, &operator);
        y.narrow(0, 0, 1).squeeze_dim(0)
    });
    print("spectral output", of_spectral, &|| {
        let first = coordinates.clone().narrow(0, 0, 1).squeeze_dim(0);
        circulant_1d(x.clone(), first, None, &operator)
    });
    print("attention", 6, &|| {
        attention(x.clone(), x.clone(), x.clone(), HEADS, Some(mask))
    });
    print("dropout", 13, &|| dropout(x.clone(), mask));
    print("MLP, first product", of_mlp, &|| {
        linear(&expand, x.clone(), keep)
    });
    print("GELU", 6, &|| gelu(hidden.clone()));
    print("MLP, second product", of_mlp, &|| {
        linear(&contract, hidden.clone(), keep)
    });
}

fn export(case: &str, file: &str) {
    let (kinds, batch) = parse(case);
    let device = circulant::cpu().autodiff();
    let model = model(kinds, &device);
    let images = images(batch, &device);
    let loss = cross_entropy(model.forward(images.clone()), labels(batch));
    let loss = loss.div_scalar(batch as f64);
    let gradients = loss.backward();
    let mut collect = Collect {
        gradients: Some(&gradients),
        ..Collect::default()
    };
    model.visit(&mut collect);
    let mut tensors = collect.found;
    tensors.push(numbers_of("loss", &[1], &[loss.into_scalar::<f32>()]));
    tensors.push(export::tensor("inputs", images.inner()));
    let classes: Vec<f32> = labels(batch).iter().map(|&label| label as f32).collect();
    tensors.push(numbers_of("labels", &[batch], &classes));
    export::write(file, &tensors);
}

fn main() {
    let mut own = Own::default();
    let options = Options::start(4.0, |flag, value| own.take(flag, value));
    if let Some((case, file)) = &own.export {
        return export(case, file);
    }
    let cases = MODELS.map(|model| format!("vit/{model}/{BATCH}"));
    for case in cases.iter().filter(|case| case.contains(&options.case)) {
        if own.profile {
            profile(case, options.seconds);
            continue;
        }
        let (kinds, batch) = parse(case);
        let (best, median) = statistics(steps(kinds, batch, options.seconds).0);
        let rate = batch as f64 * 1e3 / best;
        options.print(case, (best, median), &format!(", {rate:.0} images/s"));
    }
}
