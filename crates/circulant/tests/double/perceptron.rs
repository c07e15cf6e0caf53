//! A network small enough for explicit matrices, and what hyper-dual numbers say about it.

use burn::module::{Module, Param};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use circulant::curvature::{Curvature, Objective, Subspace};

use crate::common::{double, numbers, random};
use crate::hyper_dual::{HyperDual, jacobian_columns};

pub const INPUTS: usize = 3;
pub const HIDDEN: usize = 4;
pub const CLASSES: usize = 3;
pub const LABELS: [usize; 5] = [0, 2, 1, 1, 0];

/// `logits = output(tanh(hidden(x)))`.
#[derive(Module, Debug)]
pub struct Perceptron {
    pub hidden: Linear,
    pub output: Linear,
}

pub fn linear(seed: u64, inputs: usize, outputs: usize, device: &Device) -> Linear {
    let mut layer = LinearConfig::new(inputs, outputs).init(device);
    layer.weight = Param::from_tensor(random(seed, [inputs, outputs], device));
    layer.bias = Some(Param::from_tensor(random(seed + 1, [outputs], device)));
    layer
}

impl Perceptron {
    pub fn new() -> Self {
        let device = double().autodiff();
        Self {
            hidden: linear(1, INPUTS, HIDDEN, &device),
            output: linear(3, HIDDEN, CLASSES, &device),
        }
    }

    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.output.forward(self.hidden.forward(x).tanh())
    }
}

pub fn inputs() -> Tensor<2> {
    random(7, [LABELS.len(), INPUTS], &double().autodiff())
}

pub fn objective<'a>() -> Objective<'a, Perceptron> {
    let x = inputs();
    Objective::cross_entropy(LABELS, move |model: &Perceptron, examples| {
        model.forward(x.clone().slice(examples))
    })
}

pub fn curvature<'a>(subspace: &Subspace) -> Curvature<'a, Perceptron> {
    Curvature::new(Perceptron::new(), objective(), subspace).expect("a network with gradients")
}

/// One dense layer, `[in, out]` weights first.
pub fn dense(parameters: &[HyperDual], x: &[HyperDual], outputs: usize) -> Vec<HyperDual> {
    let (weights, bias) = parameters.split_at(x.len() * outputs);
    let output = |o: usize| {
        let products = x
            .iter()
            .enumerate()
            .map(|(i, x)| *x * weights[i * outputs + o]);
        products.fold(bias[o], |sum, product| sum + product)
    };
    (0..outputs).map(output).collect()
}

/// The logits of all examples of the perceptron, one example after the other.
pub fn oracle_logits(parameters: &[HyperDual]) -> Vec<HyperDual> {
    let (hidden, output) = parameters.split_at((INPUTS + 1) * HIDDEN);
    let x = numbers(7, LABELS.len() * INPUTS);
    let logits = |x: &[f64]| {
        let x: Vec<_> = x.iter().copied().map(HyperDual::constant).collect();
        let features: Vec<_> = dense(hidden, &x, HIDDEN)
            .into_iter()
            .map(HyperDual::tanh)
            .collect();
        dense(output, &features, CLASSES)
    };
    x.chunks_exact(INPUTS).flat_map(logits).collect()
}

pub fn oracle_loss(parameters: &[HyperDual]) -> HyperDual {
    let logits = oracle_logits(parameters);
    let zero = HyperDual::constant(0.0);
    let rows = logits.chunks_exact(CLASSES).zip(LABELS);
    let sum = rows.fold(zero, |sum, (row, label)| {
        let normaliser = row.iter().fold(zero, |sum, z| sum + z.exp());
        sum + normaliser.ln() - row[label]
    });
    sum * HyperDual::constant(1.0 / LABELS.len() as f64)
}

/// `(1/N) sum_i J_i^t (diag(p_i) - p_i p_i^t) J_i`, entry by entry.
pub fn oracle_gauss_newton(parameters: &[f64]) -> Vec<f64> {
    let columns = jacobian_columns(parameters, oracle_logits);
    let constants: Vec<_> = parameters
        .iter()
        .copied()
        .map(HyperDual::constant)
        .collect();
    let logits: Vec<f64> = oracle_logits(&constants).iter().map(|z| z.value).collect();
    let entry = |a: &[f64], b: &[f64]| {
        let rows = logits.chunks_exact(CLASSES).enumerate();
        rows.map(|(row, z)| {
            let sum: f64 = z.iter().map(|z| z.exp()).sum();
            let (a, b) = (&a[row * CLASSES..], &b[row * CLASSES..]);
            let p = |c: usize| z[c].exp() / sum;
            let mean = |v: &[f64]| (0..CLASSES).map(|c| p(c) * v[c]).sum::<f64>();
            let square: f64 = (0..CLASSES).map(|c| p(c) * a[c] * b[c]).sum();
            (square - mean(a) * mean(b)) / LABELS.len() as f64
        })
        .sum::<f64>()
    };
    let pairs = columns
        .iter()
        .flat_map(|a| columns.iter().map(move |b| (a, b)));
    pairs.map(|(a, b)| entry(a, b)).collect()
}
