//! The operator joined with a read-out: against the definition, against central differences in f64,
//! and for every instruction set against the two steps apart.

use super::{Case, exact_noise, tolerance};
use crate::oracle::{
    check_differences, convolve, dot, naive_filter, narrow, noise, relative_error, spectrum, wide,
};
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
    inputs: Derivatives<T>,
    grad: Vec<T>,
    activation: Activation,
}

/// Of `x`, coordinates, bias, weight and constant; or these themselves.
type Derivatives<T> = [Vec<T>; 5];

/// Where they are written.
fn slots<T>(
    [x, coordinates, bias, weight, constant]: &mut Derivatives<T>,
) -> (Gradients<'_, T>, ReadoutGradients<'_, T>) {
    let gradients = Gradients {
        x: Some(x),
        coordinates: Some(coordinates),
        bias: Some(bias),
    };
    let readout = ReadoutGradients {
        weight: Some(weight),
        bias: Some(constant),
    };
    (gradients, readout)
}

#[derive(Clone, Copy)]
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
        let (batch, filters, classes) = (sizes.batch, sizes.filters, sizes.classes);
        let biases = if sizes.positions {
            plan.output_len()
        } else {
            channels_out
        };
        let numbers = |seed, len| narrow(&exact_noise(seed, len));
        Self {
            inputs: [
                numbers(1, batch * plan.input_len()),
                numbers(2, filters * plan.coordinates()),
                numbers(3, filters * biases),
                numbers(4, filters * plan.output_len() * classes),
                numbers(5, filters * classes),
            ],
            grad: numbers(6, filters * batch * classes),
            activation: sizes.activation,
        }
    }

    fn x(&self) -> &[T] {
        &self.inputs[0]
    }

    fn parameters<'a>(&self, inputs: &'a Derivatives<T>) -> (Filters<'a, T>, Readout<'a, T>) {
        let [_, coordinates, bias, weight, constant] = inputs;
        let filters = Filters {
            coordinates,
            bias: Some(bias),
            activation: self.activation,
        };
        let bias = constant;
        (filters, Readout { weight, bias })
    }

    fn forward(&self, plan: &CirculantPlan<T>, inputs: &Derivatives<T>) -> Vec<T> {
        let mut z = vec![T::nan(); self.grad.len()];
        let (filters, readout) = self.parameters(inputs);
        plan.forward_readout(&inputs[0], filters, readout, &mut z)
            .expect("sizes fit");
        z
    }

    fn nothing(&self) -> Derivatives<T> {
        self.inputs.each_ref().map(|v| vec![T::nan(); v.len()])
    }

    fn joined(&self, plan: &CirculantPlan<T>) -> (Vec<T>, Derivatives<T>) {
        let mut z = vec![T::nan(); self.grad.len()];
        let (filters, readout) = self.parameters(&self.inputs);
        let kept = plan
            .forward_readout_keeping(self.x(), filters, readout, &mut z)
            .expect("sizes fit");
        let mut out = self.nothing();
        let (gradients, of_readout) = slots(&mut out);
        plan.backward_readout(&kept, filters, readout, &self.grad, gradients, of_readout)
            .expect("sizes fit");
        (z, out)
    }

    fn labels(&self, count: usize) -> Vec<i64> {
        let classes = self.inputs[4].len() as u64;
        let key = NoiseKey { seed: 7, stream: 8 };
        let label = |row| (uniform_u64(key, row) % classes) as i64;
        (0..count as u64).map(label).collect()
    }

    /// The cross-entropy and its gradients; `rows` picks inputs.
    fn loss(&self, plan: &CirculantPlan<T>, rows: Option<&[usize]>) -> (f64, Derivatives<T>) {
        self.loss_of(plan, &self.inputs, Inputs::Numbers(self.x()), rows)
    }

    /// The same with other parameters and inputs.
    fn loss_of(
        &self,
        plan: &CirculantPlan<T>,
        parameters: &Derivatives<T>,
        inputs: Inputs<'_, T>,
        rows: Option<&[usize]>,
    ) -> (f64, Derivatives<T>) {
        let count = rows.map_or(self.x().len() / plan.input_len(), <[usize]>::len);
        let mut out = self.nothing();
        out[0].resize(count * plan.input_len(), T::nan());
        let examples = Examples {
            inputs,
            rows,
            labels: &self.labels(count),
        };
        let (gradients, of_readout) = slots(&mut out);
        let (filters, readout) = self.parameters(parameters);
        let loss = plan.readout_cross_entropy(examples, filters, readout, gradients, of_readout);
        (loss.expect("sizes fit"), out)
    }

    /// The same by the operator and a dense layer, one filter after the other.
    fn apart(&self, plan: &CirculantPlan<T>, sizes: &Sizes) -> (Vec<T>, Derivatives<T>) {
        let (batch, classes) = (sizes.batch, sizes.classes);
        let one = batch * plan.output_len();
        let mut hidden = vec![T::nan(); sizes.filters * one];
        let (filters, readout) = self.parameters(&self.inputs);
        let kept = plan
            .forward_keeping(self.x(), filters, &mut hidden)
            .expect("sizes fit");
        let (mut z, mut grad_hidden) = (vec![T::nan(); self.grad.len()], hidden.clone());
        let mut out = self.nothing();
        let [_, _, _, of_weight, of_constant] = &mut out;
        for f in 0..sizes.filters {
            let y = &hidden[f * one..][..one];
            let own = f * plan.output_len() * classes..(f + 1) * plan.output_len() * classes;
            let (weight, of_weight) = (&readout.weight[own.clone()], &mut of_weight[own]);
            let (constant, of_constant) = (
                &readout.bias[f * classes..][..classes],
                &mut of_constant[f * classes..][..classes],
            );
            let logits = f * batch * classes..(f + 1) * batch * classes;
            let identity = Activation::Identity;
            linear_into(y, weight, constant, identity, &mut z[logits.clone()]).expect("sizes fit");
            let output = LinearOutput {
                activation: identity,
                y: &[],
                grad: &self.grad[logits],
                scratch: &mut [],
            };
            let gradients = LinearGradients {
                x: Some(&mut grad_hidden[f * one..][..one]),
                weight: Some(of_weight),
                bias: Some(of_constant),
            };
            linear_backward(y, weight, classes, output, gradients).expect("sizes fit");
        }
        let (gradients, _) = slots(&mut out);
        plan.backward(&kept, filters, &hidden, &grad_hidden, gradients)
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
    let names = ["x", "coordinates", "bias", "weight", "constant"];
    for (name, (got, expected)) in names.into_iter().zip(got.iter().zip(expected)) {
        close(name, got, expected);
    }
}

/// The cross-entropy in one pass, of picked inputs, against a copy of these inputs, the steps apart and the logits'
/// gradient between them.
fn check_loss<T: Real>(plan: &CirculantPlan<T>, channels_out: usize, sizes: &Sizes) {
    let mut numbers = Numbers::new(plan, channels_out, sizes);
    // More than there are, some of them twice.
    let rows: Vec<usize> = (0..sizes.batch + 3).map(|i| i * 5 % sizes.batch).collect();
    let (loss, got) = numbers.loss(plan, Some(&rows));
    let inputs: Vec<&[T]> = numbers.inputs[0].chunks_exact(plan.input_len()).collect();
    numbers.inputs[0] = rows.iter().flat_map(|&row| inputs[row]).copied().collect();
    let picked = numbers.loss(plan, None);
    assert!(loss == picked.0 && got == picked.1, "rows");
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
    assert!(
        numbers.forward(plan, &numbers.inputs) == z,
        "keeping changes nothing"
    );
    all_close(&got, &expected);
}

/// Batches that fill blocks and that do not, classes around whole vectors.
fn sizes() -> Vec<Sizes> {
    let shapes = [(1, 1, 1), (5, 2, 3), (16, 1, 10), (33, 3, 8), (70, 1, 17)];
    let per_channel = [Activation::Identity, Activation::Tanh].map(|activation| {
        shapes.map(|(batch, filters, classes)| Sizes {
            batch,
            filters,
            classes,
            positions: false,
            activation,
        })
    });
    let per_position = [1, 2].map(|filters| Sizes {
        batch: 19,
        filters,
        classes: 4,
        positions: true,
        activation: Activation::Tanh,
    });
    let all = per_channel.as_flattened().iter().chain(&per_position);
    all.copied().collect()
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
            let [x, coordinates, bias, weight, constant] = &numbers.inputs;
            let a = &coordinates[f * d..][..d];
            let w = naive_filter(1, d, &spectrum(&case.full, |k| a[k]));
            for row in x.chunks_exact(d) {
                let y: Vec<f64> = convolve(1, d, &w, row)
                    .into_iter()
                    .map(|y| (y + bias[f]).tanh())
                    .collect();
                for class in 0..sizes.classes {
                    let weight = |t: usize| weight[(f * d + t) * sizes.classes + class];
                    let sum: f64 = y.iter().enumerate().map(|(t, y)| y * weight(t)).sum();
                    expected.push(sum + constant[f * sizes.classes + class]);
                }
            }
        }
        close("z", &numbers.forward(&plan, &numbers.inputs), &expected);
    }
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
        let numbers = Numbers::new(&plan, 1, &sizes(2));
        let (_, exact) = numbers.joined(&plan);
        check_differences(&numbers.inputs, &exact, DIFFERENCES, usize::MAX, |inputs| {
            dot(&numbers.forward(&plan, inputs), &numbers.grad)
        });
        let numbers = Numbers::new(&plan, 1, &sizes(1));
        let (_, exact) = numbers.loss(&plan, None);
        check_differences(&numbers.inputs, &exact, DIFFERENCES, usize::MAX, |inputs| {
            let (loss, _) = numbers.loss_of(&plan, inputs, Inputs::Numbers(&inputs[0]), None);
            loss
        });
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
            gather_bytes(&bytes, &in_order, scale, &mut numbers.inputs[0]);
            for rows in [None, Some(&order[..])] {
                let expected = numbers.loss(&plan, rows);
                let bytes = Inputs::Bytes(&bytes, scale);
                let found = numbers.loss_of(&plan, &numbers.inputs, bytes, rows);
                assert_eq!(found, expected, "{isa:?}, {d}, {scale:?}");
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
