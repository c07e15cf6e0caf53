//! Times of the operations of a Vision Transformer's training step, f32, at the sizes of CIFAR
//! (batch 128, 65 tokens, width 128, 4 heads, MLP 512), each beside a plain scalar version on one
//! thread.
//!
//! `cargo bench -p circulant-kernels --bench transformer` prints a table; `-- --json` prints one
//! line per case. Flags: `--case SUBSTRING`, `--seconds S` (per case), `--threads N`.

#[path = "transformer/adan.rs"]
mod adan;
#[path = "transformer/attention.rs"]
mod attention;
#[path = "timing/beside_plain.rs"]
mod beside_plain;
#[path = "transformer/layer_norm.rs"]
mod layer_norm;
mod timing;

use beside_plain::{Report, noise};
use circulant_kernels::{Dropout, NoiseKey, bias_gelu_backward, bias_gelu_into, dropout_into};

const ROWS: usize = 128 * 65;
const WIDTH: usize = 128;
const HIDDEN: usize = 4 * WIDTH;

/// GELU as `burn-flex` computes it.
fn plain_gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + libm::erff(x / std::f32::consts::SQRT_2))
}

fn plain_gelu_derivative(x: f32) -> f32 {
    let density = (-0.5 * x * x).exp() * 0.398_942_3;
    0.5 * (1.0 + libm::erff(x / std::f32::consts::SQRT_2)) + x * density
}

fn gelu(report: &Report) {
    let (x, bias, grad) = (
        noise(0, ROWS * HIDDEN),
        noise(1, HIDDEN),
        noise(2, ROWS * HIDDEN),
    );
    let (mut y, mut plain) = (x.clone(), x.clone());
    report.case(
        "bias_gelu/8320x512/forward",
        || bias_gelu_into(&x, &bias, &mut y).expect("sizes fit"),
        || {
            for (i, (y, x)) in plain.iter_mut().zip(&x).enumerate() {
                *y = plain_gelu(x + bias[i % HIDDEN]);
            }
        },
    );
    let (mut of_bias, mut plain_of_bias) = (bias.clone(), bias.clone());
    report.case(
        "bias_gelu/8320x512/backward",
        || {
            bias_gelu_backward(&x, &bias, &grad, &mut y, Some(&mut of_bias)).expect("sizes fit");
        },
        || {
            plain_of_bias.fill(0.0);
            for (i, (out, (x, g))) in plain.iter_mut().zip(x.iter().zip(&grad)).enumerate() {
                *out = g * plain_gelu_derivative(x + bias[i % HIDDEN]);
                plain_of_bias[i % HIDDEN] += *out;
            }
        },
    );
}

fn dropout(report: &Report) {
    let x = noise(0, ROWS * WIDTH);
    let (mut y, mut plain) = (x.clone(), x.clone());
    let key = NoiseKey { seed: 1, stream: 1 };
    let dropout = Dropout::new(0.1, key).expect("a rate");
    report.case(
        "dropout/8320x128",
        || dropout_into(&x, dropout, &mut y).expect("sizes fit"),
        || {
            // A usual small generator, one number after the other.
            let mut state = 1u64;
            for (y, x) in plain.iter_mut().zip(&x) {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let kept = (state >> 32) as f64 / 4_294_967_296.0 >= 0.1;
                *y = if kept { x / 0.9 } else { 0.0 };
            }
        },
    );
}

fn main() {
    let report = Report::start("");
    gelu(&report);
    layer_norm::layer_norm(&report);
    dropout(&report);
    attention::attention(&report);
    adan::adan(&report);
}
