//! Times of what a training step needs around its layers, f32, each beside copying: as many values moved by all threads,
//! without computing, as the operation reads and writes at least. The transformer's sizes are those of CIFAR (batch 128,
//! 65 tokens, width 128, 4 heads, MLP 512).
//!
//! `cargo bench -p circulant-kernels --bench training` prints a table; `-- --json` prints one line per case. Flags:
//! `--case SUBSTRING`, `--seconds S` (per case), `--threads N`.

#[path = "timing/memory.rs"]
mod memory;
mod timing;

use std::hint::black_box;

use circulant_kernels::{
    Activation, AdamSettings, AdanSettings, Attention, Convolution, ConvolutionGradients, Dropout,
    KlGradients, LayerNorm, LayerNormGradients, LowRank, NoiseKey, QueryKeyValue, RowStatistics,
    SampleGradients, adam_step, adan_step, bias_gelu_dropout_backward, bias_gelu_dropout_into,
    cross_entropy, dropout_into, layer_norm_backward, layer_norm_into, standard_normal, tanh_into,
};
use memory::{copy, noise};
use timing::Report;

/// Rows and width of the transformer.
const ROWS: usize = 128 * 65;
const WIDTH: usize = 128;
const HIDDEN: usize = 4 * WIDTH;
const KEY: NoiseKey = NoiseKey { seed: 1, stream: 2 };

/// Times `ours`, which reads and writes that many `values`.
fn case(report: &Report, name: &str, values: usize, ours: impl FnMut()) {
    if report.wants(name) {
        let (from, mut to) = (noise(9, values / 2), vec![0.0; values / 2]);
        let copying = move || copy(&from, &mut to);
        let figure = |best| 4e-6 * values as f64 / best;
        let versions: timing::Versions<'_> =
            vec![("ours", Box::new(ours)), ("copying", Box::new(copying))];
        report.line(name, versions, figure, None);
    }
}

fn gaussians(report: &Report, d: usize, rank: usize) {
    let parameters = [(1, d), (2, d * rank), (3, rank), (4, d)].map(|(i, len)| noise(i, len));
    let [mean, factor, scale, log_deviation] = &parameters;
    let (xi, zeta) = (noise(5, rank), noise(6, d));
    let mut sample = vec![0.0; d];
    let [mut of_mean, mut of_factor, mut of_scale, mut of_deviation] = parameters.clone();
    let q = || LowRank::new(mean, factor, scale, log_deviation, 1e-6).expect("sizes fit");
    let size = (2 + rank) * d;
    case(report, &format!("kl/{d}x{rank}"), 2 * size, || {
        let gradients = KlGradients {
            mean: &mut of_mean,
            factor: &mut of_factor,
            scale: &mut of_scale,
            log_deviation: &mut of_deviation,
            prior_variance: None,
        };
        let kl = q().kl_with_gradients(&[1.0], 1.0, gradients);
        black_box(kl.expect("sizes fit"));
    });
    case(report, &format!("sample/{d}x{rank}"), size + 2 * d, || {
        q().sample_into(&xi, &zeta, &mut sample).expect("sizes fit");
    });
    let name = format!("sample_backward/{d}x{rank}");
    case(report, &name, 2 * size, || {
        let gradients = SampleGradients {
            factor: &mut of_factor,
            scale: &mut of_scale,
            log_deviation: &mut of_deviation,
        };
        q().sample_backward(&xi, &zeta, mean, gradients)
            .expect("sizes fit");
    });
}

fn elements(report: &Report) {
    let mut z = vec![0.0_f32; 600_000];
    case(report, "noise/600000", z.len(), || {
        standard_normal(KEY, &mut z)
    });
    let (x, mut y) = (noise(1, 512 * 784), vec![0.0; 512 * 784]);
    case(report, "tanh/512x784", 2 * x.len(), || {
        tanh_into(&x, &mut y).expect("sizes fit");
    });
    let (logits, mut gradient) = (noise(1, 512 * 10), vec![0.0; 512 * 10]);
    let labels: Vec<i64> = (0..512).map(|i| i * 7 % 10).collect();
    case(report, "cross_entropy/512x10", 2 * logits.len(), || {
        let loss = cross_entropy(&logits, 10, &labels, Some(&mut gradient));
        black_box(loss.expect("labels are classes"));
    });
}

/// With tanh; `x` itself needs no gradient.
fn convolution(report: &Report) {
    let sizes = Convolution::new(1, 8, 28, 28, [3, 3]).expect("an odd kernel");
    let (x, grad) = (noise(1, 512 * 784), noise(2, 512 * 8 * 784));
    let (weight, bias) = (noise(3, 8 * 9), noise(4, 8));
    let (mut y, mut of_weight, mut of_bias) = (grad.clone(), weight.clone(), bias.clone());
    let name = "convolution/512x1-8x28x28";
    let tanh = Activation::Tanh;
    let moved = x.len() + y.len();
    case(report, &format!("{name}/forward"), moved, || {
        let done = sizes.forward(&x, &weight, &bias, tanh, &mut y);
        done.expect("sizes fit");
    });
    let moved = moved + grad.len();
    case(report, &format!("{name}/backward"), moved, || {
        let gradients = ConvolutionGradients {
            x: None,
            weight: Some(&mut of_weight),
            bias: Some(&mut of_bias),
        };
        let done = sizes.backward(&x, &weight, tanh, &y, &grad, gradients);
        done.expect("sizes fit");
    });
}

fn optimisers(report: &Report) {
    let before: [Vec<f32>; 3] = [1, 2, 3].map(|i| noise(i, 615_000));
    let (gradient, mut after) = (noise(4, 615_000), before.clone());
    let settings = AdamSettings {
        learning_rate: 1e-2,
        beta_1: 0.9,
        beta_2: 0.999,
        epsilon: 1e-5,
        time: 10,
    };
    case(report, "adam/615000", 7 * gradient.len(), || {
        let before = before.each_ref().map(|values| &values[..]);
        let after = after.each_mut().map(|values| &mut values[..]);
        adam_step(before, &gradient, settings, after).expect("sizes fit");
    });

    let before: [Vec<f32>; 5] = [1, 2, 3, 4, 5].map(|i| noise(i, 1_200_000));
    let (gradient, mut after) = (noise(6, 1_200_000), before.clone());
    let settings = AdanSettings {
        learning_rate: 1e-3,
        beta_1: 0.98,
        beta_2: 0.92,
        beta_3: 0.99,
        epsilon: 1e-8,
        weight_decay: 1e-4,
        decoupled: false,
        time: 10,
    };
    case(report, "adan/1200000", 11 * gradient.len(), || {
        let before = before.each_ref().map(|values| &values[..]);
        let after = after.each_mut().map(|values| &mut values[..]);
        adan_step(before, &gradient, settings, after).expect("sizes fit");
    });
}

fn gelu_and_dropout(report: &Report) {
    let [x, grad] = [1, 2].map(|i| noise(i, ROWS * HIDDEN));
    let (bias, mut y) = (noise(3, HIDDEN), x.clone());
    case(report, "bias_gelu/8320x512/forward", 2 * x.len(), || {
        bias_gelu_dropout_into(&x, &bias, None, &mut y).expect("sizes fit");
    });
    let mut of_bias = bias.clone();
    case(report, "bias_gelu/8320x512/backward", 3 * x.len(), || {
        bias_gelu_dropout_backward(&x, &bias, None, &grad, &mut y, &mut of_bias)
            .expect("sizes fit");
    });
    let (x, mut y) = (noise(1, ROWS * WIDTH), noise(2, ROWS * WIDTH));
    let dropout = Dropout::new(0.1, KEY).expect("a rate");
    case(report, "dropout/8320x128", 2 * x.len(), || {
        dropout_into(&x, dropout, &mut y).expect("sizes fit");
    });
}

fn layer_norm(report: &Report) {
    let [x, grad, residual] = [1, 2, 3].map(|i| noise(i, ROWS * WIDTH));
    let [gamma, beta] = [4, 5].map(|i| noise(i, WIDTH));
    let (mut y, [mut mean, mut inverse_deviation]) = (x.clone(), [4, 5].map(|i| noise(i, ROWS)));
    case(report, "layer_norm/8320x128/forward", 2 * x.len(), || {
        let layer = LayerNorm {
            gamma: &gamma,
            beta: &beta,
            epsilon: 1e-5,
        };
        let statistics = RowStatistics {
            mean: &mut mean[..],
            inverse_deviation: &mut inverse_deviation,
        };
        layer_norm_into(&x, layer, &mut y, statistics).expect("sizes fit");
    });
    let (mut of_gamma, mut of_beta) = (gamma.clone(), beta.clone());
    case(report, "layer_norm/8320x128/backward", 4 * x.len(), || {
        let statistics = RowStatistics {
            mean: &mean[..],
            inverse_deviation: &inverse_deviation,
        };
        let gradients = LayerNormGradients {
            x: &mut y,
            gamma: &mut of_gamma,
            beta: &mut of_beta,
        };
        layer_norm_backward(&x, &gamma, statistics, &grad, Some(&residual), gradients)
            .expect("sizes fit");
    });
}

fn attention(report: &Report) {
    let sizes = Attention::new(65, 4, WIDTH / 4).expect("sizes");
    let [query, key, value, grad] = [1, 2, 3, 4].map(|i| noise(i, ROWS * WIDTH));
    let inputs = QueryKeyValue {
        query: &query[..],
        key: &key,
        value: &value,
    };
    let (mut y, mut log_sums) = (grad.clone(), vec![0.0; ROWS * 4]);
    let [mut dq, mut dk, mut dv] = [query.clone(), key.clone(), value.clone()];
    let dropout = Dropout::new(0.1, KEY).expect("a rate");
    for (dropout, name) in [(None, "attention"), (Some(dropout), "attention+dropout")] {
        let name = format!("{name}/128x65x4x32");
        case(report, &format!("{name}/forward"), 4 * y.len(), || {
            let done = sizes.forward(inputs, dropout, &mut y, &mut log_sums);
            done.expect("sizes fit");
        });
        case(report, &format!("{name}/backward"), 7 * y.len(), || {
            let gradients = QueryKeyValue {
                query: &mut dq[..],
                key: &mut dk,
                value: &mut dv,
            };
            let done = sizes.backward(inputs, dropout, &log_sums, &grad, gradients);
            done.expect("sizes fit");
        });
    }
}

fn main() {
    let report = Report::start("GB/s");
    gaussians(&report, 784, 8);
    gaussians(&report, 615_000, 0);
    elements(&report);
    convolution(&report);
    optimisers(&report);
    gelu_and_dropout(&report);
    layer_norm(&report);
    attention(&report);
}
