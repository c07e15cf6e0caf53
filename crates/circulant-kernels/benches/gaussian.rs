//! Times of the Bayesian part, f32, each beside a plain scalar version on one thread.
//!
//! `cargo bench -p circulant-kernels --bench gaussian` prints a table; `-- --json` prints one line
//! per case. Flags: `--case SUBSTRING`, `--seconds S` (per case), `--threads N`.

mod timing;

use std::hint::black_box;

use circulant_kernels::{
    Activation, AdamSettings, AdamState, Convolution, ConvolutionGradients, KlGradients, LowRank,
    NoiseKey, SampleGradients, adam_step, cross_entropy, standard_normal, tanh_into, uniform_u64,
};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, StandardNormal};
use timing::{Options, time};

const JITTER: f64 = 1e-6;

fn noise(stream: u64, len: usize) -> Vec<f32> {
    let mut out = vec![0.0; len];
    standard_normal(NoiseKey { seed: 1, stream }, &mut out);
    out
}

/// The parameters of a Gaussian and everything that is written.
#[derive(Clone)]
struct Work {
    mean: Vec<f32>,
    factor: Vec<f32>,
    scale: Vec<f32>,
    log_deviation: Vec<f32>,
    low_rank_noise: Vec<f32>,
    noise: Vec<f32>,
    sample: Vec<f32>,
    grad_mean: Vec<f32>,
    grad_factor: Vec<f32>,
    grad_scale: Vec<f32>,
    grad_log_deviation: Vec<f32>,
}

impl Work {
    fn new(d: usize, rank: usize) -> Self {
        Self {
            mean: noise(0, d),
            factor: noise(1, d * rank),
            scale: noise(2, rank),
            log_deviation: noise(3, d),
            low_rank_noise: noise(4, rank),
            noise: noise(5, d),
            sample: vec![0.0; d],
            grad_mean: vec![0.0; d],
            grad_factor: vec![0.0; d * rank],
            grad_scale: vec![0.0; rank],
            grad_log_deviation: vec![0.0; d],
        }
    }

    fn kl(&mut self) -> f64 {
        let gradients = KlGradients {
            mean: &mut self.grad_mean,
            factor: &mut self.grad_factor,
            scale: &mut self.grad_scale,
            log_deviation: &mut self.grad_log_deviation,
            prior_variance: None,
        };
        LowRank::new(
            &self.mean,
            &self.factor,
            &self.scale,
            &self.log_deviation,
            JITTER,
        )
        .and_then(|q| q.kl_with_gradients(&[1.0], 1.0, gradients))
        .expect("sizes fit")
    }

    fn sample(&mut self) {
        LowRank::new(
            &self.mean,
            &self.factor,
            &self.scale,
            &self.log_deviation,
            JITTER,
        )
        .and_then(|q| q.sample_into(&self.low_rank_noise, &self.noise, &mut self.sample))
        .expect("sizes fit");
    }

    /// With the noise as the gradient of the sample.
    fn sample_backward(&mut self) {
        let gradients = SampleGradients {
            factor: &mut self.grad_factor,
            scale: &mut self.grad_scale,
            log_deviation: &mut self.grad_log_deviation,
        };
        LowRank::new(
            &self.mean,
            &self.factor,
            &self.scale,
            &self.log_deviation,
            JITTER,
        )
        .and_then(|q| q.sample_backward(&self.low_rank_noise, &self.noise, &self.mean, gradients))
        .expect("sizes fit");
    }

    /// The formula with plain loops and the standard library's `exp` and `ln`.
    fn plain_kl(&mut self) -> f64 {
        let (d, rank) = (self.mean.len(), self.scale.len());
        let weight = |i: usize, k: usize| f64::from(self.factor[i * rank + k] * self.scale[k]);
        let variance = |i: usize| f64::from((2.0 * self.log_deviation[i]).exp());
        let mut matrix = vec![0.0; rank * rank];
        for i in 0..d {
            let inverse = 1.0 / (variance(i) + JITTER);
            for j in 0..rank {
                for k in 0..rank {
                    matrix[j * rank + k] += weight(i, j) * weight(i, k) * inverse;
                }
            }
        }
        for j in 0..rank {
            matrix[j * rank + j] += 1.0;
        }
        let log_determinant = invert(&mut matrix, rank);
        let mut twice = -log_determinant - d as f64;
        let mut grad_scale = vec![0.0; rank];
        for i in 0..d {
            let (free, mean) = (variance(i), f64::from(self.mean[i]));
            let total = free + JITTER;
            let mut explained = 0.0;
            for k in 0..rank {
                let row = &matrix[k * rank..][..rank];
                let product: f64 = (0..rank).map(|j| weight(i, j) * row[j]).sum();
                let n = product / total;
                let gradient = weight(i, k) - n;
                explained += n * weight(i, k);
                twice += weight(i, k) * weight(i, k);
                grad_scale[k] += gradient * f64::from(self.factor[i * rank + k]);
                self.grad_factor[i * rank + k] = gradient as f32 * self.scale[k];
            }
            twice += total + mean * mean - total.ln();
            self.grad_mean[i] = self.mean[i];
            self.grad_log_deviation[i] = (free * (1.0 - (1.0 - explained) / total)) as f32;
        }
        for (out, sum) in self.grad_scale.iter_mut().zip(grad_scale) {
            *out = sum as f32;
        }
        0.5 * twice
    }

    fn plain_sample(&mut self) {
        let rank = self.scale.len();
        for i in 0..self.mean.len() {
            let mut a = self.mean[i];
            for k in 0..rank {
                a += self.factor[i * rank + k] * (self.scale[k] * self.low_rank_noise[k]);
            }
            let variance = (2.0 * self.log_deviation[i]).exp() + JITTER as f32;
            self.sample[i] = a + variance.sqrt() * self.noise[i];
        }
    }

    fn plain_sample_backward(&mut self) {
        let rank = self.scale.len();
        let mut sums = vec![0.0; rank];
        for i in 0..self.mean.len() {
            let g = self.mean[i];
            for (k, sum) in sums.iter_mut().enumerate() {
                self.grad_factor[i * rank + k] = g * (self.scale[k] * self.low_rank_noise[k]);
                *sum += f64::from(g * self.factor[i * rank + k]);
            }
            let free = (2.0 * self.log_deviation[i]).exp();
            let slope = free / (free + JITTER as f32).sqrt();
            self.grad_log_deviation[i] = g * self.noise[i] * slope;
        }
        for (k, sum) in sums.into_iter().enumerate() {
            self.grad_scale[k] = self.low_rank_noise[k] * sum as f32;
        }
    }
}

/// Gauss-Jordan of a positive definite matrix in place; returns the log determinant.
fn invert(matrix: &mut [f64], n: usize) -> f64 {
    let mut log_determinant = 0.0;
    for p in 0..n {
        let pivot = matrix[p * n + p];
        log_determinant += pivot.ln();
        matrix[p * n + p] = 1.0;
        for j in 0..n {
            matrix[p * n + j] /= pivot;
        }
        for i in (0..n).filter(|i| *i != p) {
            let factor = matrix[i * n + p];
            matrix[i * n + p] = 0.0;
            for j in 0..n {
                matrix[i * n + j] -= factor * matrix[p * n + j];
            }
        }
    }
    log_determinant
}

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

struct Report {
    options: Options,
}

impl Report {
    /// Times `ours` and `plain` and prints a line.
    fn case(&self, case: &str, ours: impl FnMut(), plain: impl FnMut()) {
        if !case.contains(&self.options.case) {
            return;
        }
        let mut versions: Vec<Box<dyn FnMut()>> = vec![Box::new(ours)];
        if !self.options.json {
            versions.push(Box::new(plain));
        }
        let times = time(self.options.seconds, &mut versions);
        let ours = times[0];
        if self.options.json {
            println!(
                "{}",
                serde_json::json!({"case": case, "unit": "ms", "best": ours.best, "median": ours.median, "threads": self.options.threads})
            );
            return;
        }
        println!(
            "{case:<34} {:>9.4} {:>9.4} {:>12.4} {:>8.1}x",
            ours.best,
            ours.median,
            times[1].best,
            times[1].best / ours.best
        );
    }

    fn gaussians(&self, d: usize, rank: usize) {
        let (mut work, mut plain) = (Work::new(d, rank), Work::new(d, rank));
        self.case(
            &format!("kl/{d}x{rank}"),
            || {
                black_box(work.kl());
            },
            || {
                black_box(plain.plain_kl());
            },
        );
        let case = format!("sample/{d}x{rank}");
        self.case(&case, || work.sample(), || plain.plain_sample());
        let case = format!("sample_backward/{d}x{rank}");
        self.case(
            &case,
            || work.sample_backward(),
            || plain.plain_sample_backward(),
        );
    }

    fn all(&self) {
        let len = 600_000;
        let (mut z, mut plain) = (vec![0.0f32; len], vec![0.0f32; len]);
        let mut generator = SmallRng::seed_from_u64(1);
        self.case(
            &format!("noise/{len}"),
            || standard_normal(NoiseKey { seed: 1, stream: 2 }, &mut z),
            || {
                for z in &mut plain {
                    *z = StandardNormal.sample(&mut generator);
                }
            },
        );
        self.gaussians(784, 8);
        self.gaussians(615_000, 0);

        let x = noise(0, 512 * 784);
        let (mut y, mut plain) = (x.clone(), x.clone());
        self.case(
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
        self.case(
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
        self.case(
            &format!("{name}/forward"),
            || layer.forward(),
            || plain.plain_forward(),
        );
        self.case(
            &format!("{name}/backward"),
            || layer.backward(),
            || plain.plain_backward(),
        );

        let (mut adam, mut plain) = (Adam::new(615_000), Adam::new(615_000));
        self.case("adam/615000", || adam.step(), || plain.plain());
    }
}

fn main() {
    let options = match Options::parse() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            std::process::exit(2);
        }
    };
    rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .build_global()
        .expect("the pool is built once");
    if !options.json {
        println!(
            "f32, {} threads, milliseconds; the plain version is scalar, on one thread (noise: the \
             ziggurat of rand_distr with SmallRng)",
            options.threads
        );
        println!(
            "{:<34} {:>9} {:>9} {:>12} {:>9}",
            "case", "best", "median", "plain best", "factor"
        );
    }
    Report { options }.all();
}
