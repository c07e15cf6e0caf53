//! A circulant layer in a module of one's own, trained by Burn's own optimiser:
//! `cargo run --example own_module`.
//!
//! The signals have a bump somewhere; the class is the third in which it lies.

use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use circulant::nn::{SpectralCirculant1d, SpectralCirculant1dConfig};
use circulant::noise::{NoiseKey, standard_normal};

const LENGTH: usize = 48;
const CLASSES: usize = 3;

#[derive(Module, Debug)]
struct Network {
    mix: SpectralCirculant1d,
    read: Linear,
}

impl Network {
    fn new(device: &Device) -> Self {
        Self {
            mix: SpectralCirculant1dConfig::new(LENGTH).init(device),
            read: LinearConfig::new(LENGTH, CLASSES).init(device),
        }
    }

    fn forward(&self, signals: Tensor<2>) -> Tensor<2> {
        self.read
            .forward(activation::relu(self.mix.forward(signals)))
    }
}

/// Signals `[count, LENGTH]` with noise, and their classes.
fn signals(count: usize, seed: u64, device: &Device) -> (Tensor<2>, Tensor<1, Int>) {
    let mut values = vec![0.0_f64; count * LENGTH];
    standard_normal(NoiseKey { seed, stream: 0 }, &mut values);
    for (index, signal) in values.chunks_exact_mut(LENGTH).enumerate() {
        let third = LENGTH / CLASSES;
        let middle = index % CLASSES * third + index * 7 % third;
        for (at, value) in signal.iter_mut().enumerate() {
            let distance = at as f64 - middle as f64;
            *value = 0.3 * *value + 2.0 * (-distance * distance / 8.0).exp();
        }
    }
    let labels: Vec<i64> = (0..count).map(|index| (index % CLASSES) as i64).collect();
    (
        Tensor::from_data(TensorData::new(values, [count, LENGTH]), device),
        Tensor::from_data(TensorData::new(labels, [count]), device),
    )
}

fn accuracy(logits: Tensor<2>, labels: Tensor<1, Int>) -> f64 {
    let count = labels.dims()[0];
    let right = logits.argmax(1).reshape([count]).equal(labels);
    right.int().sum().into_scalar::<i64>() as f64 / count as f64
}

fn main() {
    let device = circulant::cpu().autodiff();
    // Layers that are given no seed of their own by Burn follow the device's.
    device.seed(1);
    let mut network = Network::new(&device);
    let (inputs, labels) = signals(384, 2, &device);
    let loss = CrossEntropyLossConfig::new().init(&device);
    let mut optimizer = AdamConfig::new().init();
    for step in 0..60 {
        let value = loss.forward(network.forward(inputs.clone()), labels.clone());
        if step % 20 == 0 {
            println!(
                "step {step}: loss {:.3}",
                value.clone().into_scalar::<f32>()
            );
        }
        let gradients = GradientsParams::from_grads(value.backward(), &network);
        network = optimizer.step(0.02, network, gradients);
    }
    let (inputs, labels) = signals(300, 3, &device);
    let accuracy = accuracy(network.forward(inputs), labels);
    let dense = LENGTH * LENGTH;
    println!(
        "accuracy on new signals {accuracy:.3}, with {} values in place of the {dense} of a dense layer",
        network.mix.degrees_of_freedom()
    );
    assert!(accuracy > 0.9, "{accuracy}");
}
