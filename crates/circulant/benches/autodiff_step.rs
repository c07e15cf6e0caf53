//! What Burn adds: a step through autodiff beside the bare kernel, 512 x 784, f32.
//!
//! Both sides run forward and backward with gradients for input, coordinates and bias, and are timed
//! alternately, because the machine is noisy. The output gradient is ones, as Burn's `backward` of a whole
//! tensor gives it. `--json` prints one line per case.

use std::hint::black_box;
use std::time::{Duration, Instant};

use burn::tensor::{Device, Tensor, TensorData};
use circulant::functional::circulant_1d;
use circulant::operator::Operator;
use circulant::operator::{Activation, HalfSpectrum};
use circulant_kernels::{CirculantPlan, Filters, Gradients};

const BATCH: usize = 512;
const LENGTH: usize = 784;
const WARM_UP: usize = 50;
const ROUNDS: usize = 400;
/// What the project asks for.
const TARGET: f64 = 1.3;

fn numbers(count: usize) -> Vec<f32> {
    (0..count)
        .map(|i| ((i * 7919 + 13) % 2003) as f32 / 1001.5 - 1.0)
        .collect()
}

/// The bare kernel with buffers that are reused.
fn kernel_step() -> impl FnMut() {
    let plan = CirculantPlan::<f32>::new_1d(&HalfSpectrum::new(LENGTH).expect("valid"));
    let (x, coordinates, bias) = (numbers(BATCH * LENGTH), numbers(LENGTH), vec![0.1]);
    let grad_y = vec![1.0; BATCH * LENGTH];
    let mut y = vec![0.0; BATCH * LENGTH];
    let (mut grad_x, mut grad_coordinates, mut grad_bias) =
        (y.clone(), vec![0.0; LENGTH], vec![0.0]);
    move || {
        let filters = Filters {
            coordinates: &coordinates,
            bias: Some(&bias),
            activation: Activation::Identity,
        };
        let kept = plan
            .forward_keeping(&x, filters, &mut y)
            .expect("sizes fit");
        let gradients = Gradients {
            x: Some(&mut grad_x),
            coordinates: Some(&mut grad_coordinates),
            bias: Some(&mut grad_bias),
        };
        plan.backward(&kept, filters, &[], &grad_y, gradients)
            .expect("sizes fit");
        black_box((&y, &grad_x));
    }
}

fn burn_step() -> impl FnMut() {
    let device = Device::flex().autodiff();
    let tensor = |values: Vec<f32>| {
        let len = values.len();
        Tensor::<1>::from_data(TensorData::new(values, [len]), &device)
    };
    let x: Tensor<2> = tensor(numbers(BATCH * LENGTH)).reshape([BATCH, LENGTH]);
    let (x, coordinates, bias) = (
        x.detach().require_grad(),
        tensor(numbers(LENGTH)).require_grad(),
        tensor(vec![0.1]).require_grad(),
    );
    let operator = Operator::signal(HalfSpectrum::new(LENGTH).expect("valid"));
    move || {
        let y = circulant_1d(
            x.clone(),
            coordinates.clone(),
            Some(bias.clone()),
            &operator,
        );
        let gradients = y.backward();
        black_box((
            x.grad(&gradients),
            coordinates.grad(&gradients),
            bias.grad(&gradients),
        ));
    }
}

fn time(step: &mut dyn FnMut()) -> Duration {
    let start = Instant::now();
    step();
    start.elapsed()
}

/// Best and median in milliseconds.
fn summary(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    (milliseconds(times[0]), milliseconds(times[times.len() / 2]))
}

fn main() {
    let json = std::env::args().any(|argument| argument == "--json");
    let (mut kernel, mut burn) = (kernel_step(), burn_step());
    for _ in 0..WARM_UP {
        kernel();
        burn();
    }
    let (mut kernel_times, mut burn_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        kernel_times.push(time(&mut kernel));
        burn_times.push(time(&mut burn));
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (kernel, burn) = (summary(kernel_times), summary(burn_times));
    for (name, (best, median)) in [("kernel", kernel), ("burn", burn)] {
        let case = format!("{name}/{BATCH}x{LENGTH}/forward_backward");
        if json {
            let line = serde_json::json!({ "case": case, "unit": "ms", "best": best, "median": median, "threads": threads });
            println!("{line}");
        } else {
            println!("{case:<36} best {best:.3} ms   median {median:.3} ms");
        }
    }
    if !json {
        println!(
            "burn/kernel: best {:.2}, median {:.2} (target {TARGET})",
            burn.0 / kernel.0,
            burn.1 / kernel.1
        );
    }
}
