//! Times of the other operations of a training step, f32, each beside a plain scalar version on one
//! thread.
//!
//! `cargo bench -p circulant-kernels --bench training` prints a table; `-- --json` prints one line
//! per case. Flags: `--case SUBSTRING`, `--seconds S` (per case), `--threads N`.

#[path = "timing/beside_plain.rs"]
mod beside_plain;
mod timing;

use std::hint::black_box;

use beside_plain::{Report, noise};
use circulant_kernels::{
    Activation, AdamSettings, AdamState, Convolution, ConvolutionGradients, NoiseKey, adam_step,
    cross_entropy, tanh_into, uniform_u64,
};

fn plain_cross_entropy(logits: &[f32], labels: &[i64], gradient: &mut [f32]) -> f64 {
    let classes = logits.len() / labels.len();
    let mut total = 0.0;
    for (row, &label) in labels.iter().enumerate() {
        let logits = &logits[row * classes..][..classes];
        let gradient = &mut gradient[row * classes..][..classes];
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f32 = logits.iter().map(|x| (x - largest).exp()).sum();
        for (g, x) in gradient.iter_mut().zip(logits) {
            *g = (x - largest).exp() / sum;
        }
        gradient[label as usize] -= 1.0;
        total += f64::from(sum.ln() + largest - logits[label as usize]);
    }
    total
}

/// The state of an optimiser.
struct Adam {
    parameter: Vec<f32>,
    gradient: Vec<f32>,
    moment_1: Vec<f32>,
    moment_2: Vec<f32>,
    after: [Vec<f32>; 3],
}

impl Adam {
    const SETTINGS: AdamSettings = AdamSettings {
        learning_rate: 1e-2,
        beta_1: 0.9,
        beta_2: 0.999,
        epsilon: 1e-5,
        time: 10,
    };

    fn new(len: usize) -> Self {
        Self {
            parameter: noise(0, len),
            gradient: noise(1, len),
            moment_1: vec![0.0; len],
            moment_2: vec![0.0; len],
            after: [(); 3].map(|()| vec![0.0; len]),
        }
    }

    fn step(&mut self) {
        let before = AdamState {
            parameter: &self.parameter[..],
            moment_1: &self.moment_1[..],
            moment_2: &self.moment_2[..],
        };
        let [parameter, moment_1, moment_2] = self.after.each_mut().map(|values| &mut values[..]);
        let after = AdamState {
            parameter,
            moment_1,
            moment_2,
        };
        adam_step(before, &self.gradient, Self::SETTINGS, after).expect("sizes fit");
    }

    /// One loop per tensor operation, as a framework without fusion takes the step.
    fn plain(&mut self) {
        let s = Self::SETTINGS;
        let correction = (1.0 - s.beta_2.powi(10)).sqrt();
        let combined = correction / (1.0 - s.beta_1.powi(10));
        for (m, g) in self.moment_1.iter_mut().zip(&self.gradient) {
            *m = *m * s.beta_1 + g * (1.0 - s.beta_1);
        }
        for (v, g) in self.moment_2.iter_mut().zip(&self.gradient) {
            *v = *v * s.beta_2 + g * g * (1.0 - s.beta_2);
        }
        let moments = self.moment_1.iter().zip(&self.moment_2);
        for (p, (m, v)) in self.parameter.iter_mut().zip(moments) {
            let step = m * combined / (v.sqrt() + s.epsilon * correction);
            *p -= step * s.learning_rate as f32;
        }
    }
}

/// A convolution with tanh and everything that is written; `x` itself needs no gradient.
struct Layer {
    sizes: Convolution,
    x: Vec<f32>,
    weight: Vec<f32>,
    bias: Vec<f32>,
    y: Vec<f32>,
    grad: Vec<f32>,
    grad_weight: Vec<f32>,
    grad_bias: Vec<f32>,
}

impl Layer {
    fn new(batch: usize) -> Self {
        let sizes = Convolution::new(1, 8, 28, 28, [3, 3]).expect("an odd kernel");
        let mut layer = Self {
            sizes,
            x: noise(0, batch * 28 * 28),
            weight: noise(1, 8 * 9),
            bias: noise(2, 8),
            y: vec![0.0; batch * 8 * 28 * 28],
            grad: noise(3, batch * 8 * 28 * 28),
            grad_weight: vec![0.0; 8 * 9],
            grad_bias: vec![0.0; 8],
        };
        layer.forward();
        layer
    }

    fn forward(&mut self) {
        let (x, y) = (&self.x, &mut self.y);
        self.sizes
            .forward(x, &self.weight, &self.bias, Activation::Tanh, y)
            .expect("sizes fit");
    }

    fn backward(&mut self) {
        let gradients = ConvolutionGradients {
            x: None,
            weight: Some(&mut self.grad_weight),
            bias: Some(&mut self.grad_bias),
        };
        let (x, weight, y) = (&self.x, &self.weight, &self.y);
        self.sizes
            .backward(x, weight, Activation::Tanh, y, &self.grad, gradients)
            .expect("sizes fit");
    }

    /// Calls `term(y, x, w)` with the indices of every product.
    fn products(&self, mut term: impl FnMut(usize, usize, usize)) {
        let (height, width, channels) = (28, 28, self.bias.len());
        for plane in 0..self.y.len() / (height * width) {
            for (i, j) in (0..height).flat_map(|i| (0..width).map(move |j| (i, j))) {
                for u in usize::from(i == 0)..3 - usize::from(i + 1 == height) {
                    for v in usize::from(j == 0)..3 - usize::from(j + 1 == width) {
                        term(
                            (plane * height + i) * width + j,
                            (plane / channels * height + i + u - 1) * width + j + v - 1,
                            (plane % channels * 3 + u) * 3 + v,
                        );
                    }
                }
            }
        }
    }

    fn plain_forward(&mut self) {
        let mut y = vec![0.0; self.y.len()];
        for (plane, y) in y.chunks_exact_mut(28 * 28).enumerate() {
            y.fill(self.bias[plane % self.bias.len()]);
        }
        self.products(|out, x, w| y[out] += self.x[x] * self.weight[w]);
        y.iter_mut().for_each(|y| *y = y.tanh());
        self.y = y;
    }

    fn plain_backward(&mut self) {
        let inner: Vec<f32> = (self.y.iter().zip(&self.grad))
            .map(|(y, g)| g * (1.0 - y * y))
            .collect();
        let (mut of_weight, mut of_bias) = (vec![0.0; self.weight.len()], vec![0.0; 8]);
        for (plane, inner) in inner.chunks_exact(28 * 28).enumerate() {
            of_bias[plane % 8] += inner.iter().sum::<f32>();
        }
        self.products(|out, x, w| of_weight[w] += inner[out] * self.x[x]);
        (self.grad_weight, self.grad_bias) = (of_weight, of_bias);
    }
}

fn main() {
    let report = Report::start("");
    let x = noise(0, 512 * 784);
    let (mut y, mut plain) = (x.clone(), x.clone());
    report.case(
        "tanh/512x784",
        || tanh_into(&x, &mut y).expect("sizes fit"),
        || plain.iter_mut().zip(&x).for_each(|(y, x)| *y = x.tanh()),
    );

    let logits = noise(0, 512 * 10);
    let key = NoiseKey { seed: 1, stream: 1 };
    let labels: Vec<i64> = (0..512)
        .map(|i| (uniform_u64(key, i) % 10) as i64)
        .collect();
    let (mut gradient, mut plain) = (logits.clone(), logits.clone());
    report.case(
        "cross_entropy/512x10",
        || {
            black_box(cross_entropy(&logits, 10, &labels, Some(&mut gradient)))
                .expect("labels are classes");
        },
        || {
            black_box(plain_cross_entropy(&logits, &labels, &mut plain));
        },
    );

    let (mut layer, mut plain) = (Layer::new(512), Layer::new(512));
    let name = "convolution/512x1-8x28x28";
    report.case(
        &format!("{name}/forward"),
        || layer.forward(),
        || plain.plain_forward(),
    );
    report.case(
        &format!("{name}/backward"),
        || layer.backward(),
        || plain.plain_backward(),
    );

    let (mut adam, mut plain) = (Adam::new(615_000), Adam::new(615_000));
    report.case("adam/615000", || adam.step(), || plain.plain());
}
