use circulant_kernels::runtime::chunks::best_isa;
use circulant_kernels::transformer::attention::*;
use circulant_kernels::transformer::dropout::GROUP;
use circulant_kernels::vector::Isa;
use circulant_kernels::{Dropout, NoiseKey, Real};

use crate::oracle::{check_differences, close, dot, narrow, normal, same_on_threads};

/// Batch, tokens, heads, length of a head: ones, odd, prime, whole vectors, the transformer's.
const SIZES: [[usize; 4]; 9] = [
    [0, 3, 2, 4],
    [1, 1, 1, 1],
    [2, 2, 1, 3],
    [1, 5, 3, 7],
    [2, 8, 2, 8],
    [3, 13, 2, 16],
    [1, 31, 1, 5],
    [1, 65, 2, 32],
    [2, 17, 3, 11],
];

fn dropout(rate: f64) -> Option<Dropout> {
    let key = NoiseKey { seed: 1, stream: 5 };
    (rate > 0.0).then(|| Dropout::new(rate, key).unwrap())
}

/// Inputs and the gradient of the output.
#[derive(Clone)]
struct Case {
    sizes: Attention,
    /// Batch, tokens, heads, numbers of a head.
    shape: [usize; 4],
    inputs: [Vec<f64>; 3],
    grad: Vec<f64>,
}

impl Case {
    fn new([batch, tokens, heads, head_dim]: [usize; 4]) -> Self {
        let len = batch * tokens * heads * head_dim;
        Self {
            sizes: Attention::new(tokens, heads, head_dim).unwrap(),
            shape: [batch, tokens, heads, head_dim],
            // Larger queries make a softmax that is far from uniform.
            inputs: [0, 1, 2].map(|i| normal::<f64>(8, i, len).iter().map(|x| 1.5 * x).collect()),
            grad: normal(8, 3, len),
        }
    }

    /// `[output, log sums, dQ, dK, dV]` of the kernels in `T`.
    fn run<T: Real>(&self, isa: Isa, dropout: Option<Dropout>) -> [Vec<T>; 5] {
        let [query, key, value] = self.inputs.each_ref().map(|values| narrow::<T>(values));
        let inputs = QueryKeyValue {
            query: &query[..],
            key: &key,
            value: &value,
        };
        let grad = narrow(&self.grad);
        let mut output = vec![T::nan(); grad.len()];
        let mut log_sums = vec![T::nan(); self.sizes.log_sums_len(self.shape[0])];
        self.sizes
            .forward_on(isa, inputs, dropout, &mut output, &mut log_sums)
            .unwrap();
        let [mut dq, mut dk, mut dv] = [(); 3].map(|()| vec![T::nan(); grad.len()]);
        let gradients = QueryKeyValue {
            query: &mut dq[..],
            key: &mut dk,
            value: &mut dv,
        };
        self.sizes
            .backward_on(isa, inputs, dropout, &log_sums, &grad, gradients)
            .unwrap();
        [output, log_sums, dq, dk, dv]
    }

    /// The output and the log sums by the definition.
    fn oracle(&self, inputs: &[Vec<f64>; 3], dropout: Option<Dropout>) -> [Vec<f64>; 2] {
        let [_, tokens, heads, head_dim] = self.shape;
        let width = heads * head_dim;
        let [q, k, v] = inputs;
        let mut output = vec![0.0; q.len()];
        let mut log_sums = Vec::new();
        for job in 0..self.shape[0] * heads {
            let first = job / heads * tokens * width + job % heads * head_dim;
            let mask = mask(dropout, tokens, job);
            for i in 0..tokens {
                let at = |j: usize, c: usize| first + j * width + c;
                let score = |j| {
                    let terms = (0..head_dim).map(|c| q[at(i, c)] * k[at(j, c)]);
                    terms.sum::<f64>() / (head_dim as f64).sqrt()
                };
                let sum: f64 = (0..tokens).map(|j| score(j).exp()).sum();
                log_sums.push(sum.ln());
                for j in 0..tokens {
                    let weight = score(j).exp() / sum * mask[i * tokens + j];
                    for c in 0..head_dim {
                        output[at(i, c)] += weight * v[at(j, c)];
                    }
                }
            }
        }
        [output, log_sums]
    }
}

/// The mask of a head, factors included.
fn mask(dropout: Option<Dropout>, tokens: usize, job: usize) -> Vec<f64> {
    // Every head begins with a group of random numbers of its own.
    let count = (tokens * tokens).next_multiple_of(GROUP);
    let Some(dropout) = dropout else {
        return vec![1.0; count];
    };
    let mut all = vec![0.0; (job + 1) * count];
    circulant_kernels::dropout_into(&vec![1.0; all.len()], dropout, &mut all).unwrap();
    all.split_off(job * count)
}

#[test]
fn forward_is_the_definition() {
    for sizes in SIZES {
        let case = Case::new(sizes);
        for rate in [0.0, 0.3] {
            let [output, log_sums] = case.oracle(&case.inputs, dropout(rate));
            let wide = case.run::<f64>(best_isa(), dropout(rate));
            close("output", &wide[0], &output, 1e-13);
            close("log sums", &wide[1], &log_sums, 1e-13);
            let narrow = case.run::<f32>(best_isa(), dropout(rate));
            close("output", &narrow[0], &output, 5e-6);
            close("log sums", &narrow[1], &log_sums, 2e-6);
        }
    }
}

#[test]
fn gradients_are_those_of_central_differences() {
    for sizes in SIZES.into_iter().filter(|[_, tokens, ..]| *tokens < 15) {
        let case = Case::new(sizes);
        for rate in [0.0, 0.3] {
            let [.., dq, dk, dv] = case.run::<f64>(best_isa(), dropout(rate));
            let loss = |inputs: &_| dot(&case.oracle(inputs, dropout(rate))[0], &case.grad);
            // Some of the elements: all of them would take minutes.
            check_differences(&case.inputs, &[dq, dk, dv], 2e-8, 23, loss);
        }
    }
}

#[test]
fn f32_gradients_are_those_of_f64() {
    for sizes in SIZES {
        let case = Case::new(sizes);
        for rate in [0.0, 0.1] {
            let narrow = case.run::<f32>(best_isa(), dropout(rate));
            let wide = case.run::<f64>(best_isa(), dropout(rate));
            for (narrow, wide) in narrow.iter().zip(&wide) {
                close("f32", narrow, wide, 4e-5);
            }
        }
    }
}

/// Scores of a few hundred, of either sign, neither overflow nor vanish.
#[test]
fn large_scores_are_no_trouble() {
    for sign in [1.0, -1.0] {
        let mut case = Case::new([1, 7, 1, 4]);
        case.inputs[0].fill(20.0);
        for (i, k) in case.inputs[1].iter_mut().enumerate() {
            *k = sign * (20.0 + (i / 4) as f64);
        }
        let [output, ..] = case.run::<f32>(best_isa(), None);
        let [expected, _] = {
            // Shifted by a constant, which a softmax does not see.
            let mut shifted = case.clone();
            shifted.inputs[1].iter_mut().for_each(|k| *k -= sign * 20.0);
            shifted.oracle(&shifted.inputs, None)
        };
        close("output", &output, &expected, 1e-4);
    }
}

#[test]
fn every_instruction_set_agrees() {
    check_instruction_sets::<f32>(1e-4);
    check_instruction_sets::<f64>(1e-12);
}

fn check_instruction_sets<T: Real>(tolerance: f64) {
    let case = Case::new([1, 37, 2, 12]);
    let expected = case.run::<f64>(best_isa(), dropout(0.2));
    for isa in Isa::available() {
        let results = case.run::<T>(isa, dropout(0.2));
        for (got, expected) in results.iter().zip(&expected) {
            close(isa.name(), got, expected, tolerance);
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let case = Case::new([4, 33, 4, 16]);
    same_on_threads(|| case.run::<f32>(best_isa(), dropout(0.1)));
}

#[test]
fn wrong_sizes_are_errors() {
    assert!(Attention::new(0, 1, 1).is_err());
    assert!(Attention::new(1, 0, 1).is_err());
    assert!(Attention::new(1, 1, 0).is_err());
    let sizes = Attention::new(2, 2, 3).unwrap();
    let run = |q: usize, k: usize, v: usize, out: usize, sums: usize| {
        let (query, key, value) = (vec![0.0f32; q], vec![0.0; k], vec![0.0; v]);
        let inputs = QueryKeyValue {
            query: &query[..],
            key: &key,
            value: &value,
        };
        sizes.forward(inputs, None, &mut vec![0.0; out], &mut vec![0.0; sums])
    };
    assert!(run(12, 12, 12, 12, 4).is_ok());
    assert!(run(13, 13, 13, 13, 4).is_err());
    assert!(run(12, 11, 12, 12, 4).is_err());
    assert!(run(12, 12, 11, 12, 4).is_err());
    assert!(run(12, 12, 12, 24, 4).is_err());
    assert!(run(12, 12, 12, 12, 5).is_err());
}
