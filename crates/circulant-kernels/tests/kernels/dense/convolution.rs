//! Against the plain sums, in f64, and against differences.

use circulant_kernels::dense::convolution::*;
use circulant_kernels::runtime::chunks::best_isa;
use circulant_kernels::vector::Isa;
use circulant_kernels::{Activation, KernelError, Real};
use proptest::prelude::*;

use crate::oracle::{check_differences, dot, narrow, normal, same_on_threads, wide};

/// f64 sums of at most a few thousand terms of size one.
const TOLERANCE: f64 = 1e-12;
/// The same sums in f32, with a tanh of four units in the last place.
const SINGLE_TOLERANCE: f64 = 2e-5;
/// Central differences in f64: the step's cube and the rounding divided by the step are both
/// about 1e-10 of numbers of size one.
const DIFFERENCE_TOLERANCE: f64 = 1e-6;

const ACTIVATIONS: [Activation; 2] = [Activation::Identity, Activation::Tanh];

/// One convolution with everything that goes in.
struct Case<T> {
    sizes: Convolution,
    /// `x`, weight, bias.
    inputs: [Vec<T>; 3],
    grad: Vec<T>,
    activation: Activation,
}

impl<T: Real> Case<T> {
    fn new(sizes: Convolution, batch: usize, activation: Activation) -> Self {
        // Sums of about one, where tanh is neither flat nor the identity.
        let taps = (sizes.weight_len() / sizes.channels_out()) as f64;
        let weight: Vec<f64> = normal(5, 2, sizes.weight_len());
        let weight: Vec<f64> = weight.iter().map(|w| w / taps.sqrt()).collect();
        let x: Vec<f64> = normal(5, 1, batch * sizes.input_len());
        let bias: Vec<f64> = normal(5, 3, sizes.channels_out());
        let grad: Vec<f64> = normal(5, 4, batch * sizes.output_len());
        Self {
            sizes,
            inputs: [x, weight, bias].map(|values| narrow(&values)),
            grad: narrow(&grad),
            activation,
        }
    }

    fn wide(&self) -> Case<f64> {
        Case {
            sizes: self.sizes,
            inputs: self.inputs.each_ref().map(|values| wide(values)),
            grad: wide(&self.grad),
            activation: self.activation,
        }
    }

    fn forward(&self, isa: Isa, [x, weight, bias]: &[Vec<T>; 3]) -> Vec<T> {
        let mut y = vec![T::nan(); self.grad.len()];
        self.sizes
            .forward_on(isa, x, weight, bias, self.activation, &mut y)
            .unwrap();
        y
    }

    /// The gradients of the inputs; what is not wanted stays NaN.
    fn backward(&self, isa: Isa, y: &[T], wanted: [bool; 3]) -> [Vec<T>; 3] {
        let mut grads = self.inputs.each_ref().map(|v| vec![T::nan(); v.len()]);
        let [of_x, of_weight, of_bias] = &mut grads;
        let gradients = ConvolutionGradients {
            x: wanted[0].then_some(&mut of_x[..]),
            weight: wanted[1].then_some(&mut of_weight[..]),
            bias: wanted[2].then_some(&mut of_bias[..]),
        };
        let y = match self.activation {
            Activation::Identity => &[],
            Activation::Tanh => y,
        };
        let ([x, weight, _], activation) = (&self.inputs, self.activation);
        self.sizes
            .backward_on(isa, x, weight, activation, y, &self.grad, gradients)
            .unwrap();
        grads
    }

    fn output_and_gradients(&self, isa: Isa) -> (Vec<T>, [Vec<T>; 3]) {
        let y = self.forward(isa, &self.inputs);
        let grads = self.backward(isa, &y, [true; 3]);
        (y, grads)
    }
}

impl Case<f64> {
    /// Calls `term(y, x, w)` with the indices of every product of the convolution.
    fn products(&self, mut term: impl FnMut(usize, usize, usize)) {
        let (channels_in, channels_out) = (self.sizes.channels_in(), self.sizes.channels_out());
        let (height, width) = (self.sizes.height(), self.sizes.width());
        let [rows, columns] = self.sizes.kernel();
        for image in 0..self.inputs[0].len() / self.sizes.input_len() {
            for (o, c) in (0..channels_out).flat_map(|o| (0..channels_in).map(move |c| (o, c))) {
                for (i, j) in (0..height).flat_map(|i| (0..width).map(move |j| (i, j))) {
                    for (u, v) in (0..rows).flat_map(|u| (0..columns).map(move |v| (u, v))) {
                        let (row, column) = (i + u, j + v);
                        let inside = |at, side, kernel| at >= kernel / 2 && at - kernel / 2 < side;
                        if inside(row, height, rows) && inside(column, width, columns) {
                            let (row, column) = (row - rows / 2, column - columns / 2);
                            term(
                                ((image * channels_out + o) * height + i) * width + j,
                                ((image * channels_in + c) * height + row) * width + column,
                                ((o * channels_in + c) * rows + u) * columns + v,
                            );
                        }
                    }
                }
            }
        }
    }

    /// The output and the gradients of the inputs.
    fn plain(&self) -> (Vec<f64>, [Vec<f64>; 3]) {
        let [x, weight, bias] = &self.inputs;
        let channel = |i: usize| i / self.sizes.image_len() % bias.len();
        let mut y: Vec<f64> = (0..self.grad.len()).map(|i| bias[channel(i)]).collect();
        self.products(|out, from, w| y[out] += x[from] * weight[w]);
        let mut inner = self.grad.clone();
        if self.activation == Activation::Tanh {
            for (y, g) in y.iter_mut().zip(&mut inner) {
                *y = y.tanh();
                *g *= 1.0 - *y * *y;
            }
        }
        let mut grads = self.inputs.each_ref().map(|values| vec![0.0; values.len()]);
        let [of_x, of_weight, of_bias] = &mut grads;
        for (i, g) in inner.iter().enumerate() {
            of_bias[channel(i)] += g;
        }
        self.products(|out, from, w| {
            of_x[from] += inner[out] * weight[w];
            of_weight[w] += inner[out] * x[from];
        });
        (y, grads)
    }
}

/// Within the tolerance of the largest: sums cancel, and their rounding is that of the largest of them.
fn close<T: Real>(what: &str, got: &[T], expected: &[f64], tolerance: f64) {
    let scale = expected.iter().fold(1.0f64, |scale, e| scale.max(e.abs()));
    let scaled = |x: f64| x / scale;
    let got: Vec<f64> = got.iter().map(|x| scaled(x.wide())).collect();
    let expected: Vec<f64> = expected.iter().map(|x| scaled(*x)).collect();
    crate::oracle::close(what, &got, &expected, tolerance);
}

fn check<T: Real>(sizes: Convolution, batch: usize, tolerance: f64) {
    for activation in ACTIVATIONS {
        let case = Case::<T>::new(sizes, batch, activation);
        let (plain_y, plain) = case.wide().plain();
        for isa in Isa::available() {
            let what = format!("{isa:?} {sizes:?} {activation:?}");
            let (y, grads) = case.output_and_gradients(isa);
            close(&what, &y, &plain_y, tolerance);
            for (got, expected) in grads.iter().zip(&plain) {
                close(&what, got, expected, tolerance);
            }
        }
    }
}

fn check_both(sizes: Convolution, batch: usize) {
    check::<f64>(sizes, batch, TOLERANCE);
    check::<f32>(sizes, batch, SINGLE_TOLERANCE);
}

fn sizes(channels: [usize; 2], sides: [usize; 2], kernel: [usize; 2]) -> Convolution {
    Convolution::new(channels[0], channels[1], sides[0], sides[1], kernel).unwrap()
}

const KERNELS: [[usize; 2]; 5] = [[1, 1], [3, 3], [5, 3], [1, 5], [7, 7]];

#[test]
fn equals_the_plain_sums() {
    for sides in [[1, 1], [1, 9], [3, 5], [7, 11], [13, 17], [8, 16], [2, 31]] {
        for kernel in KERNELS {
            for channels in [[1, 1], [1, 3], [2, 1], [3, 2]] {
                check_both(sizes(channels, sides, kernel), 2);
            }
        }
    }
}

#[test]
fn every_tile_of_channels_and_every_batch() {
    for channels in 1..=18 {
        let sizes = sizes([channels % 3 + 1, channels], [5, 19], [3, 3]);
        check_both(sizes, channels % 5 + 1);
    }
}

#[test]
fn many_jobs_equal_the_plain_sums() {
    check_both(sizes([1, 8], [28, 28], [3, 3]), 23);
}

#[test]
fn gradients_are_those_of_differences() {
    for (channels, sides, kernel) in [
        ([1, 1], [1, 1], [3, 3]),
        ([2, 3], [5, 7], [3, 3]),
        ([3, 2], [4, 9], [5, 3]),
        ([1, 3], [6, 3], [1, 1]),
    ] {
        for activation in ACTIVATIONS {
            let case = Case::<f64>::new(sizes(channels, sides, kernel), 2, activation);
            let (_, grads) = case.output_and_gradients(best_isa());
            let loss = |inputs: &_| dot(&case.forward(best_isa(), inputs), &case.grad);
            check_differences(&case.inputs, &grads, DIFFERENCE_TOLERANCE, usize::MAX, loss);
        }
    }
}

#[test]
fn only_what_is_wanted_is_written() {
    for activation in ACTIVATIONS {
        let case = Case::<f64>::new(sizes([2, 3], [5, 9], [3, 3]), 3, activation);
        let (y, all) = case.output_and_gradients(best_isa());
        for wanted in (0..8).map(|bits| [bits & 1 > 0, bits & 2 > 0, bits & 4 > 0]) {
            let some = case.backward(best_isa(), &y, wanted);
            for (wanted, (some, all)) in wanted.into_iter().zip(some.iter().zip(&all)) {
                if wanted {
                    assert_eq!(some, all);
                } else {
                    assert!(some.iter().all(|v| v.is_nan()));
                }
            }
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let case = Case::<f32>::new(sizes([1, 8], [28, 28], [3, 3]), 41, Activation::Tanh);
    same_on_threads(|| case.output_and_gradients(best_isa()));
}

#[test]
fn an_empty_batch_has_zero_gradients() {
    let case = Case::<f32>::new(sizes([2, 3], [5, 9], [3, 3]), 0, Activation::Tanh);
    let (y, [_, of_weight, of_bias]) = case.output_and_gradients(best_isa());
    assert!(y.is_empty() && of_weight.iter().chain(&of_bias).all(|g| *g == 0.0));
}

#[test]
fn zero_sizes_and_even_kernels_are_errors() {
    for zero in 0..4 {
        let mut sizes = [2; 4];
        sizes[zero] = 0;
        let [channels_in, channels_out, height, width] = sizes;
        let error = Convolution::new(channels_in, channels_out, height, width, [3, 3]);
        assert!(matches!(error, Err(KernelError::ZeroSize { .. })));
    }
    for kernel in [[0, 3], [3, 0]] {
        let error = Convolution::new(1, 1, 4, 4, kernel);
        assert!(matches!(error, Err(KernelError::ZeroSize { .. })));
    }
    for kernel in [[2, 3], [3, 4]] {
        let error = Convolution::new(1, 1, 4, 4, kernel).unwrap_err();
        assert!(error.to_string().contains("must be odd"), "{error}");
    }
}

#[test]
fn wrong_lengths_are_errors() {
    let sizes = sizes([2, 3], [4, 5], [3, 3]);
    let fits = [2 * 40, 54, 3, 2 * 60];
    let forward = |[x, weight, bias, y]: [usize; 4]| {
        let numbers = vec![0.0f32; 200];
        sizes.forward(
            &numbers[..x],
            &numbers[..weight],
            &numbers[..bias],
            Activation::Identity,
            &mut vec![0.0; y],
        )
    };
    let backward = |[x, weight, bias, y]: [usize; 4], grad: usize, of_x: usize, of_w: usize| {
        let numbers = vec![0.0f32; 200];
        sizes.backward(
            &numbers[..x],
            &numbers[..weight],
            Activation::Tanh,
            &numbers[..y],
            &numbers[..grad],
            ConvolutionGradients {
                x: Some(&mut vec![0.0; of_x]),
                weight: Some(&mut vec![0.0; of_w]),
                bias: Some(&mut vec![0.0; bias]),
            },
        )
    };
    assert!(forward(fits).is_ok());
    assert!(backward(fits, 120, 80, 54).is_ok());
    for wrong in 0..4 {
        let mut lengths = fits;
        lengths[wrong] -= 1;
        assert!(forward(lengths).is_err());
        assert!(backward(lengths, 120, 80, 54).is_err());
    }
    assert!(backward(fits, 119, 80, 54).is_err());
    assert!(backward(fits, 120, 79, 54).is_err());
    assert!(backward(fits, 120, 80, 53).is_err());
    assert!(Convolution::new(usize::MAX / 2, 3, usize::MAX / 2, 5, [3, 3]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The gradient of `x` is the adjoint of the convolution.
    #[test]
    fn the_gradient_of_x_is_the_adjoint(
        channels in [1usize..4, 1usize..10],
        sides in [1usize..12, 1usize..36],
        half in [0usize..3, 0usize..3],
        batch in 1usize..4,
    ) {
        let kernel = [2 * half[0] + 1, 2 * half[1] + 1];
        let mut case = Case::<f64>::new(sizes(channels, sides, kernel), batch, Activation::Identity);
        case.inputs[2].fill(0.0);
        let (y, grads) = case.output_and_gradients(best_isa());
        let forward = dot(&y, &case.grad);
        let size = dot(&y, &y).sqrt() * dot(&case.grad, &case.grad).sqrt();
        for (input, grad) in case.inputs.iter().zip(&grads).take(2) {
            let backward = dot(input, grad);
            prop_assert!((forward - backward).abs() <= TOLERANCE * size.max(1.0));
        }
    }
}
