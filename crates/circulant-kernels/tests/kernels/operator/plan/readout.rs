//! The operator joined with a read-out: against the definition, against central differences in f64,
//! and for every instruction set against the two steps apart.

use super::{Case, exact_noise, round, tolerance, wide};
use crate::oracle::{convolve, naive_filter, noise, relative_error, spectrum};
use circulant_kernels::dense::linear::{
    LinearGradients, LinearOutput, linear_backward, linear_into,
};
use circulant_kernels::elements::cross_entropy::cross_entropy;
use circulant_kernels::elements::gather::{ByteScale, gather_bytes};
use circulant_kernels::random::philox::{NoiseKey, uniform_u64};
use circulant_kernels::real::Real;
use circulant_kernels::vector::Isa;
use circulant_kernels::{
    Activation, CirculantPlan, Examples, Filters, Gradients, Inputs, Readout, ReadoutGradients,
};
use circulant_kernels::{HalfPlane, HalfSpectrum};

/// Central differences in f64 with a step of 1e-5: truncation and cancellation are both near 1e-10.
const DIFFERENCES: f64 = 1e-7;

/// The numbers of one problem.
struct Numbers<T> {
    x: Vec<T>,
    coordinates: Vec<T>,
    bias: Vec<T>,
    weight: Vec<T>,
    constant: Vec<T>,
    grad: Vec<T>,
    activation: Activation,
}

/// All gradients, in the order of the fields above.
struct Derivatives<T> {
    x: Vec<T>,
    coordinates: Vec<T>,
    bias: Vec<T>,
    weight: Vec<T>,
    constant: Vec<T>,
}

struct Sizes {
    batch: usize,
    filters: usize,
    classes: usize,
    /// A bias per position instead of one per channel.
    positions: bool,
    activation: Activation,
}

impl<T: Real> Numbers<T> {
    fn new(plan: &CirculantPlan<T>, channels_out: usize, sizes: &Sizes) -> Self {
        let &Sizes {
            batch,
            filters,
            classes,
            positions,
            activation,
        } = sizes;
        let biases = if positions {
            plan.output_len()
        } else {
            channels_out
        };
        Self {
            x: round(&exact_noise(1, batch * plan.input_len())),
            coordinates: round(&exact_noise(2, filters * plan.coordinates())),
            bias: round(&exact_noise(3, filters * biases)),
            weight: round(&exact_noise(4, filters * plan.output_len() * classes)),
            constant: round(&exact_noise(5, filters * classes)),
            grad: round(&exact_noise(6, filters * batch * classes)),
            activation,
        }
    }

    fn filters(&self) -> Filters<'_, T> {
        Filters {
            coordinates: &self.coordinates,
            bias: Some(&self.bias),
            activation: self.activation,
        }
    }

    fn readout(&self) -> Readout<'_, T> {
        Readout {
            weight: &self.weight,
            bias: &self.constant,
        }
    }

    fn forward(&self, plan: &CirculantPlan<T>) -> Vec<T> {
        let mut z = vec![T::nan(); self.grad.len()];
        plan.forward_readout(&self.x, self.filters(), self.readout(), &mut z)
            .expect("sizes fit");
        z
    }

    fn nothing(&self) -> Derivatives<T> {
        let like = |values: &[T]| vec![T::nan(); values.len()];
        Derivatives {
            x: like(&self.x),
            coordinates: like(&self.coordinates),
            bias: like(&self.bias),
            weight: like(&self.weight),
            constant: like(&self.constant),
        }
    }

    fn joined(&self, plan: &CirculantPlan<T>) -> (Vec<T>, Derivatives<T>) {
        let mut z = vec![T::nan(); self.grad.len()];
        let kept = plan
            .forward_readout_keeping(&self.x, self.filters(), self.readout(), &mut z)
            .expect("sizes fit");
        let mut out = self.nothing();
        let gradients = Gradients {
            x: Some(&mut out.x),
            coordinates: Some(&mut out.coordinates),
            bias: Some(&mut out.bias),
        };
        let readout = ReadoutGradients {
            weight: Some(&mut out.weight),
            bias: Some(&mut out.constant),
        };
        plan.backward_readout(
            &kept,
            self.filters(),
            self.readout(),
            &self.grad,
            gradients,
            readout,
        )
        .expect("sizes fit");
        (z, out)
    }

    fn labels(&self, count: usize) -> Vec<i64> {
        let classes = self.constant.len() as u64;
        let key = NoiseKey { seed: 7, stream: 8 };
        let label = |row| (uniform_u64(key, row) % classes) as i64;
        (0..count as u64).map(label).collect()
    }

    /// The cross-entropy and its gradients; `rows` picks inputs.
    fn loss(&self, plan: &CirculantPlan<T>, rows: Option<&[usize]>) -> (f64, Derivatives<T>) {
        self.loss_of(plan, Inputs::Numbers(&self.x), rows)
    }

    /// The same of other inputs.
    fn loss_of(
        &self,
        plan: &CirculantPlan<T>,
        inputs: Inputs<'_, T>,
        rows: Option<&[usize]>,
    ) -> (f64, Derivatives<T>) {
        let count = rows.map_or(self.x.len() / plan.input_len(), <[usize]>::len);
        let mut out = self.nothing();
        out.x.resize(count * plan.input_len(), T::nan());
        let examples = Examples {
            inputs,
            rows,
            labels: &self.labels(count),
        };
        let gradients = Gradients {
            x: Some(&mut out.x),
            coordinates: Some(&mut out.coordinates),
            bias: Some(&mut out.bias),
        };
        let of_readout = ReadoutGradients {
            weight: Some(&mut out.weight),
            bias: Some(&mut out.constant),
        };
        let (filters, readout) = (self.filters(), self.readout());
        let loss = plan.readout_cross_entropy(examples, filters, readout, gradients, of_readout);
        (loss.expect("sizes fit"), out)
    }

    /// The same by the operator and a dense layer, one filter after the other.
    fn apart(&self, plan: &CirculantPlan<T>, sizes: &Sizes) -> (Vec<T>, Derivatives<T>) {
        let (batch, classes) = (sizes.batch, sizes.classes);
        let one = batch * plan.output_len();
        let mut hidden = vec![T::nan(); sizes.filters * one];
        let kept = plan
            .forward_keeping(&self.x, self.filters(), &mut hidden)
            .expect("sizes fit");
        let (mut z, mut grad_hidden) = (vec![T::nan(); self.grad.len()], hidden.clone());
        let mut out = self.nothing();
        for f in 0..sizes.filters {
            let y = &hidden[f * one..][..one];
            let own = f * plan.output_len() * classes..(f + 1) * plan.output_len() * classes;
            let (logits, biases) = (f * batch * classes, f * classes..(f + 1) * classes);
            linear_into(
                y,
                &self.weight[own.clone()],
                &self.constant[biases.clone()],
                Activation::Identity,
                &mut z[logits..][..batch * classes],
            )
            .expect("sizes fit");
            let output = LinearOutput {
                activation: Activation::Identity,
                y: &[],
                grad: &self.grad[logits..][..batch * classes],
                scratch: &mut [],
            };
            let gradients = LinearGradients {
                x: Some(&mut grad_hidden[f * one..][..one]),
                weight: Some(&mut out.weight[own.clone()]),
                bias: Some(&mut out.constant[biases]),
            };
            linear_backward(y, &self.weight[own], classes, output, gradients).expect("sizes fit");
        }
        let gradients = Gradients {
            x: Some(&mut out.x),
            coordinates: Some(&mut out.coordinates),
            bias: Some(&mut out.bias),
        };
        plan.backward(&kept, self.filters(), &hidden, &grad_hidden, gradients)
            .expect("sizes fit");
        (z, out)
    }
}

/// A bias has the sum of many gradients of either sign, which lose digits to each other.
const CANCELLED: f64 = 16.0;

fn close<T: Real>(what: &str, got: &[T], expected: &[T]) {
    let error = relative_error(&wide(got), &wide(expected));
    let sums = matches!(what, "bias" | "constant");
    let factor = if sums { CANCELLED } else { 2.0 };
    assert!(error <= factor * tolerance::<T>(), "{what}: {error:e}");
}

fn all_close<T: Real>(got: &Derivatives<T>, expected: &Derivatives<T>) {
    close("x", &got.x, &expected.x);
    close("coordinates", &got.coordinates, &expected.coordinates);
    close("bias", &got.bias, &expected.bias);
    close("weight", &got.weight, &expected.weight);
    close("constant", &got.constant, &expected.constant);
}

/// The cross-entropy in one pass, of picked inputs, against a copy of these inputs, the steps apart and the logits'
/// gradient between them.
fn check_loss<T: Real>(plan: &CirculantPlan<T>, channels_out: usize, sizes: &Sizes) {
    let mut numbers = Numbers::new(plan, channels_out, sizes);
    // More than there are, some of them twice.
    let rows: Vec<usize> = (0..sizes.batch + 3).map(|i| i * 5 % sizes.batch).collect();
    let (loss, got) = numbers.loss(plan, Some(&rows));
    let inputs = numbers.x.chunks_exact(plan.input_len());
    let inputs: Vec<&[T]> = inputs.collect();
    numbers.x = rows.iter().flat_map(|&row| inputs[row]).copied().collect();
    let picked = numbers.loss(plan, None);
    assert!(loss == picked.0 && got.weight == picked.1.weight, "rows");
    assert!(
        got.coordinates == picked.1.coordinates && got.x == picked.1.x,
        "rows"
    );
    let sizes = Sizes {
        batch: rows.len(),
        ..*sizes
    };
    numbers.grad = vec![T::nan(); sizes.batch * sizes.classes];
    let (z, _) = numbers.apart(plan, &sizes);
    let labels = numbers.labels(sizes.batch);
    let grad = Some(&mut numbers.grad[..]);
    let expected_loss = cross_entropy(&z, sizes.classes, &labels, grad).expect("sizes fit");
    assert!((loss - expected_loss).abs() <= tolerance::<T>() * (1.0 + expected_loss));
    all_close(&got, &numbers.apart(plan, &sizes).1);
}

fn check_against_apart<T: Real>(plan: &CirculantPlan<T>, channels_out: usize, sizes: &Sizes) {
    if sizes.filters == 1 {
        check_loss(plan, channels_out, sizes);
    }
    let numbers = Numbers::new(plan, channels_out, sizes);
    let (z, got) = numbers.joined(plan);
    let (expected_z, expected) = numbers.apart(plan, sizes);
    close("z", &z, &expected_z);
    assert!(numbers.forward(plan) == z, "keeping changes nothing");
    all_close(&got, &expected);
}

/// Batches that fill blocks and that do not, classes around whole vectors.
fn sizes() -> Vec<Sizes> {
    let mut all = Vec::new();
    for (batch, filters, classes) in [(1, 1, 1), (5, 2, 3), (16, 1, 10), (33, 3, 8), (70, 1, 17)] {
        for activation in [Activation::Identity, Activation::Tanh] {
            all.push(Sizes {
                batch,
                filters,
                classes,
                positions: false,
                activation,
            });
        }
    }
    for filters in [1, 2] {
        all.push(Sizes {
            batch: 19,
            filters,
            classes: 4,
            positions: true,
            activation: Activation::Tanh,
        });
    }
    all
}

fn check_all<T: Real>() {
    for isa in Isa::available() {
        for sizes in sizes() {
            // Even, odd, prime, a gap between spans, a length without lanes, one.
            for d in [1, 2, 7, 13, 15, 28, 97, 256, 784] {
                let layout = HalfSpectrum::new(d).expect("valid");
                check_against_apart(&CirculantPlan::<T>::with_isa_1d(&layout, isa), 1, &sizes);
            }
            for (height, width, inputs, outputs) in [(4, 6, 1, 1), (5, 17, 1, 1), (4, 3, 2, 3)] {
                let layout = HalfPlane::new(height, width).expect("valid");
                let plan = CirculantPlan::<T>::with_isa_2d(&layout, inputs, outputs, isa)
                    .expect("channels");
                check_against_apart(&plan, outputs, &sizes);
            }
        }
    }
}

#[test]
fn joined_equals_apart_in_f64() {
    check_all::<f64>();
}

#[test]
fn joined_equals_apart_in_f32() {
    check_all::<f32>();
}

#[test]
fn equals_the_definition() {
    for d in [1, 6, 7, 15] {
        let layout = HalfSpectrum::new(d).expect("valid");
        let plan = CirculantPlan::<f64>::new_1d(&layout);
        let sizes = Sizes {
            batch: 9,
            filters: 2,
            classes: 3,
            positions: false,
            activation: Activation::Tanh,
        };
        let numbers = Numbers::new(&plan, 1, &sizes);
        let case = Case::signal(&layout);
        let mut expected = Vec::new();
        for f in 0..sizes.filters {
            let a = &numbers.coordinates[f * d..][..d];
            let w = naive_filter(1, d, &spectrum(&case.full, |k| a[k]));
            for row in numbers.x.chunks_exact(d) {
                let y: Vec<f64> = convolve(1, d, &w, row)
                    .into_iter()
                    .map(|y| (y + numbers.bias[f]).tanh())
                    .collect();
                for class in 0..sizes.classes {
                    let weight = |t: usize| numbers.weight[(f * d + t) * sizes.classes + class];
                    let sum: f64 = y.iter().enumerate().map(|(t, y)| y * weight(t)).sum();
                    expected.push(sum + numbers.constant[f * sizes.classes + class]);
                }
            }
        }
        close("z", &numbers.forward(&plan), &expected);
    }
}

const STEP: f64 = 1e-5;

/// Compares every gradient with the change of `loss`.
fn check_differences(
    numbers: &mut Numbers<f64>,
    exact: &Derivatives<f64>,
    loss: impl Fn(&Numbers<f64>) -> f64,
) {
    macro_rules! check {
        ($field:ident) => {
            for i in 0..numbers.$field.len() {
                let before = numbers.$field[i];
                numbers.$field[i] = before + STEP;
                let above = loss(numbers);
                numbers.$field[i] = before - STEP;
                let below = loss(numbers);
                numbers.$field[i] = before;
                let difference = (above - below) / (2.0 * STEP);
                let error = (difference - exact.$field[i]).abs();
                let scale = difference.abs().max(1.0);
                assert!(
                    error <= DIFFERENCES * scale,
                    "{} {i}: {error:e}",
                    stringify!($field)
                );
            }
        };
    }
    check!(x);
    check!(coordinates);
    check!(bias);
    check!(weight);
    check!(constant);
}

#[test]
fn gradients_equal_central_differences() {
    for d in [1, 4, 7, 9] {
        let plan = CirculantPlan::<f64>::new_1d(&HalfSpectrum::new(d).expect("valid"));
        let sizes = |filters| Sizes {
            batch: 5,
            filters,
            classes: 3,
            positions: false,
            activation: Activation::Tanh,
        };
        let mut numbers = Numbers::new(&plan, 1, &sizes(2));
        let (_, exact) = numbers.joined(&plan);
        check_differences(&mut numbers, &exact, |numbers| {
            let z = numbers.forward(&plan);
            z.iter().zip(&numbers.grad).map(|(z, g)| z * g).sum()
        });
        let mut numbers = Numbers::new(&plan, 1, &sizes(1));
        let (_, exact) = numbers.loss(&plan, None);
        check_differences(&mut numbers, &exact, |numbers| numbers.loss(&plan, None).0);
    }
}

/// In blocks, and one step after the other (17 has a large prime factor); by a quotient alone, which is taken within the transform, and
/// with a mean and a deviation.
#[test]
fn bytes_give_what_their_numbers_give() {
    for scale in [
        ByteScale::new(255.0),
        ByteScale::standardised(255.0, &[(0.3, 0.5)]),
    ] {
        check_bytes(&scale.expect("valid"));
    }
}

fn check_bytes(scale: &ByteScale) {
    for isa in Isa::available() {
        for (d, batch) in [(17, 40), (28, 1), (28, 33), (784, 70)] {
            let plan =
                CirculantPlan::<f32>::with_isa_1d(&HalfSpectrum::new(d).expect("valid"), isa);
            let sizes = Sizes {
                batch,
                filters: 1,
                classes: 3,
                positions: false,
                activation: Activation::Tanh,
            };
            let mut numbers = Numbers::new(&plan, 1, &sizes);
            let bytes: Vec<u8> = (0..batch * d).map(|i| (i * 37 % 251) as u8).collect();
            let order: Vec<usize> = (0..batch).rev().collect();
            let in_order: Vec<usize> = (0..batch).collect();
            gather_bytes(&bytes, &in_order, scale, &mut numbers.x);
            for rows in [None, Some(&order[..])] {
                let expected = numbers.loss(&plan, rows);
                let found = numbers.loss_of(&plan, Inputs::Bytes(&bytes, scale), rows);
                assert_eq!(found.0, expected.0, "{isa:?}, {d}, {scale:?}");
                assert_eq!(found.1.x, expected.1.x);
                assert_eq!(found.1.coordinates, expected.1.coordinates);
                assert_eq!(found.1.bias, expected.1.bias);
                assert_eq!(found.1.weight, expected.1.weight);
                assert_eq!(found.1.constant, expected.1.constant);
            }
        }
    }
}

#[test]
fn wrong_sizes_are_named() {
    let plan = CirculantPlan::<f64>::new_1d(&HalfSpectrum::new(4).expect("valid"));
    let coordinates = noise(1, 4);
    let filters = Filters {
        coordinates: &coordinates,
        bias: None,
        activation: Activation::Identity,
    };
    let run = |weight: usize, bias: usize, z: usize| {
        let (weight, bias) = (vec![0.0; weight], vec![0.0; bias]);
        let readout = Readout {
            weight: &weight,
            bias: &bias,
        };
        plan.forward_readout(&[0.0; 8], filters, readout, &mut vec![0.0; z])
    };
    assert!(run(12, 3, 6).is_ok());
    assert!(run(11, 3, 6).is_err());
    assert!(run(12, 0, 6).is_err());
    assert!(run(12, 3, 5).is_err());
}

#[test]
fn wrong_examples_are_named() {
    let plan = CirculantPlan::<f64>::new_1d(&HalfSpectrum::new(4).expect("valid"));
    let run_with = |inputs, filters: usize, rows: Option<&[usize]>, labels: &[i64]| {
        let coordinates = noise(1, 4 * filters);
        let filters = Filters {
            coordinates: &coordinates,
            bias: None,
            activation: Activation::Identity,
        };
        let readout = Readout {
            weight: &[0.0; 12],
            bias: &[0.0; 3],
        };
        let examples = Examples {
            inputs,
            rows,
            labels,
        };
        let nothing = (Gradients::default(), ReadoutGradients::default());
        let loss = plan.readout_cross_entropy(examples, filters, readout, nothing.0, nothing.1);
        loss.map_err(|error| error.to_string())
    };
    let run =
        |filters, rows, labels: &[i64]| run_with(Inputs::Numbers(&[0.0; 8]), filters, rows, labels);
    assert!(run(1, None, &[0, 2]).is_ok());
    let error = |result: Result<f64, String>| result.expect_err("wrong");
    assert!(error(run(1, None, &[0, 3])).contains("label 3 of row 1"));
    assert!(error(run(1, None, &[0])).contains("expected 2 values, got 1"));
    assert!(error(run(1, Some(&[0, 2]), &[0, 0])).contains("row 2: expected a row in 0..2"));
    assert!(error(run(1, Some(&[]), &[])).contains("the batch"));
    assert!(error(run(2, None, &[0, 0])).contains("one filter"));
    let scale = ByteScale::standardised(255.0, &[(0.0, 1.0); 3]).expect("valid");
    let inputs = Inputs::Bytes(&[0; 8], &scale);
    assert!(error(run_with(inputs, 1, None, &[0, 0])).contains("3"));
}
