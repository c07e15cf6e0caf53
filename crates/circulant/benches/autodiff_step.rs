//! What Burn adds: a step through autodiff beside the bare kernel, 512 x 784, f32.
//!
//! Both sides run forward and backward with gradients for input, coordinates and bias, and are timed
//! alternately, because the machine is noisy. The output gradient is ones, as Burn's `backward` of a whole
//! tensor gives it. `--json` prints one line per case.

#[path = "options/line.rs"]
mod line;
mod options;

use std::hint::black_box;
use std::time::Instant;

use burn::tensor::{Device, Tensor, TensorData};
use circulant::functional::circulant_1d;
use circulant::operator::Operator;
use circulant::operator::{Activation, HalfSpectrum};
use circulant_kernels::{CirculantPlan, Filters, Gradients};
use options::{Options, statistics, time};

const BATCH: usize = 512;
const LENGTH: usize = 784;
/// Seconds.
const WARM_UP: f64 = 0.1;
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

fn main() {
    let options = Options::start(0.0, |_, _| false);
    let (mut kernel, mut burn) = (kernel_step(), burn_step());
    let mut times = [Vec::new(), Vec::new()];
    time(WARM_UP, || {
        kernel();
        burn();
    });
    for _ in 0..ROUNDS {
        for (step, times) in [&mut kernel as &mut dyn FnMut(), &mut burn]
            .into_iter()
            .zip(&mut times)
        {
            let start = Instant::now();
            step();
            times.push(start.elapsed());
        }
    }
    let [kernel, burn] = times.map(statistics);
    for (name, times) in [("kernel", kernel), ("burn", burn)] {
        let case = format!("{name}/{BATCH}x{LENGTH}/forward_backward");
        options.print(&case, times, "");
    }
    if !options.json {
        println!(
            "burn/kernel: best {:.2}, median {:.2} (target {TARGET})",
            burn.0 / kernel.0,
            burn.1 / kernel.1
        );
    }
}
