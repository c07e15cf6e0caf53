//! Attention and a plain version of it.

use circulant_kernels::{Attention, Dropout, NoiseKey, QueryKeyValue};

use crate::beside_plain::{Report, noise};
use crate::{ROWS, WIDTH};

const TOKENS: usize = 65;
const HEADS: usize = 4;
const HEAD_DIM: usize = WIDTH / HEADS;

/// Attention with everything that is written.
struct Heads {
    sizes: Attention,
    dropout: Option<Dropout>,
    inputs: [Vec<f32>; 3],
    grad: Vec<f32>,
    output: Vec<f32>,
    log_sums: Vec<f32>,
    gradients: [Vec<f32>; 3],
}

impl Heads {
    fn new(rate: f64) -> Self {
        let sizes = Attention::new(TOKENS, HEADS, HEAD_DIM).expect("sizes");
        let key = NoiseKey { seed: 1, stream: 1 };
        let mut heads = Self {
            sizes,
            dropout: (rate > 0.0).then(|| Dropout::new(rate, key).expect("a rate")),
            inputs: [0, 1, 2].map(|i| noise(i, ROWS * WIDTH)),
            grad: noise(3, ROWS * WIDTH),
            output: vec![0.0; ROWS * WIDTH],
            log_sums: vec![0.0; ROWS * HEADS],
            gradients: [(); 3].map(|()| vec![0.0; ROWS * WIDTH]),
        };
        heads.forward();
        heads
    }

    fn forward(&mut self) {
        let [query, key, value] = self.inputs.each_ref().map(|values| &values[..]);
        let inputs = QueryKeyValue { query, key, value };
        self.sizes
            .forward(inputs, self.dropout, &mut self.output, &mut self.log_sums)
            .expect("sizes fit");
    }

    fn backward(&mut self) {
        let [query, key, value] = self.inputs.each_ref().map(|values| &values[..]);
        let inputs = QueryKeyValue { query, key, value };
        let [query, key, value] = self.gradients.each_mut().map(|values| &mut values[..]);
        let gradients = QueryKeyValue { query, key, value };
        self.sizes
            .backward(inputs, self.dropout, &self.log_sums, &self.grad, gradients)
            .expect("sizes fit");
    }

    /// The weights of a head, a row at a time; returns where its first number is.
    fn plain_weights(&self, job: usize, weights: &mut [f32]) -> usize {
        let first = job / HEADS * TOKENS * WIDTH + job % HEADS * HEAD_DIM;
        let [query, key, _] = &self.inputs;
        let scale = 1.0 / (HEAD_DIM as f32).sqrt();
        for (i, row) in weights.chunks_exact_mut(TOKENS).enumerate() {
            let query = &query[first + i * WIDTH..][..HEAD_DIM];
            for (j, weight) in row.iter_mut().enumerate() {
                let key = &key[first + j * WIDTH..][..HEAD_DIM];
                *weight = query.iter().zip(key).map(|(q, k)| q * k).sum::<f32>() * scale;
            }
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            row.iter_mut()
                .for_each(|weight| *weight = (*weight - largest).exp());
            let sum: f32 = row.iter().sum();
            row.iter_mut().for_each(|weight| *weight /= sum);
        }
        first
    }

    fn plain_forward(&mut self) {
        let mut weights = vec![0.0; TOKENS * TOKENS];
        self.output.fill(0.0);
        for job in 0..ROWS / TOKENS * HEADS {
            let first = self.plain_weights(job, &mut weights);
            for (ij, weight) in weights.iter().enumerate() {
                let value = &self.inputs[2][first + ij % TOKENS * WIDTH..][..HEAD_DIM];
                let output = &mut self.output[first + ij / TOKENS * WIDTH..][..HEAD_DIM];
                output
                    .iter_mut()
                    .zip(value)
                    .for_each(|(o, v)| *o += weight * v);
            }
        }
    }

    fn plain_backward(&mut self) {
        let mut weights = vec![0.0; TOKENS * TOKENS];
        let [mut dq, mut dk, mut dv] = std::mem::take(&mut self.gradients);
        for gradient in [&mut dq, &mut dk, &mut dv] {
            gradient.fill(0.0);
        }
        let scale = 1.0 / (HEAD_DIM as f32).sqrt();
        for job in 0..ROWS / TOKENS * HEADS {
            let first = self.plain_weights(job, &mut weights);
            let [query, key, value] = &self.inputs;
            for (i, row) in weights.chunks_exact(TOKENS).enumerate() {
                let own = first + i * WIDTH..first + i * WIDTH + HEAD_DIM;
                let grad = &self.grad[own.clone()];
                let of_weight = |j: usize| -> f32 {
                    let value = &value[first + j * WIDTH..][..HEAD_DIM];
                    grad.iter().zip(value).map(|(g, v)| g * v).sum()
                };
                let of_weights: [f32; TOKENS] = std::array::from_fn(of_weight);
                let shift: f32 = row.iter().zip(&of_weights).map(|(w, g)| w * g).sum();
                for (j, (weight, of_weight)) in row.iter().zip(of_weights).enumerate() {
                    let product = weight * (of_weight - shift) * scale;
                    for c in 0..HEAD_DIM {
                        let at = first + j * WIDTH + c;
                        dv[at] += weight * grad[c];
                        dk[at] += product * query[own.start + c];
                        dq[own.start + c] += product * key[at];
                    }
                }
            }
        }
        self.gradients = [dq, dk, dv];
    }
}

/// Forward and backward, without and with dropout.
pub fn attention(report: &Report) {
    for (rate, name) in [(0.0, "attention"), (0.1, "attention+dropout")] {
        let (mut ours, mut plain) = (Heads::new(rate), Heads::new(rate));
        report.case(
            &format!("{name}/128x65x4x32/forward"),
            || ours.forward(),
            || plain.plain_forward(),
        );
        report.case(
            &format!("{name}/128x65x4x32/backward"),
            || ours.backward(),
            || plain.plain_backward(),
        );
    }
}
