//! Against the plain sums, in f64, and against differences.

use circulant_kernels::runtime::chunks::best_isa;
use circulant_kernels::vector::Isa;
use circulant_kernels::{Activation, KernelError, Real};
use proptest::prelude::*;

use circulant_kernels::dense::convolution::*;
use circulant_kernels::random::normal::standard_normal;
use circulant_kernels::random::philox::NoiseKey;

/// f64 sums of at most a few thousand terms of size one.
const TOLERANCE: f64 = 1e-12;
/// The same sums in f32, with a tanh of four units in the last place.
const SINGLE_TOLERANCE: f64 = 2e-5;
/// Central differences in f64: the step's cube and the rounding divided by the step are both
/// about 1e-10 of numbers of size one.
const STEP: f64 = 1e-5;
const DIFFERENCE_TOLERANCE: f64 = 1e-6;

const ACTIVATIONS: [Activation; 2] = [Activation::Identity, Activation::Tanh];

fn numbers<T: Real>(stream: u64, len: usize) -> Vec<T> {
    let mut out = vec![0.0f64; len];
    standard_normal(NoiseKey { seed: 5, stream }, &mut out);
    out.into_iter().map(T::of).collect()
}

/// One convolution with everything that goes in.
struct Case<T> {
    sizes: Convolution,
    x: Vec<T>,
    weight: Vec<T>,
    bias: Vec<T>,
    grad: Vec<T>,
    activation: Activation,
}

/// The gradients of all three parents.
#[derive(Debug, PartialEq)]
struct Grads<T> {
    x: Vec<T>,
    weight: Vec<T>,
    bias: Vec<T>,
}

impl<T: Real> Case<T> {
    fn new(sizes: Convolution, batch: usize, activation: Activation) -> Self {
        // Sums of about one, where tanh is neither flat nor the identity.
        let taps = (sizes.weight_len() / sizes.channels_out()) as f64;
        let scale = T::of(1.0 / taps.sqrt());
        let mut weight: Vec<T> = numbers(2, sizes.weight_len());
        weight.iter_mut().for_each(|w| *w = *w * scale);
        Self {
            x: numbers(1, batch * sizes.input_len()),
            weight,
            bias: numbers(3, sizes.channels_out()),
            grad: numbers(4, batch * sizes.output_len()),
            sizes,
            activation,
        }
    }

    fn wide(&self) -> Case<f64> {
        let wide = |values: &[T]| values.iter().map(|v| v.wide()).collect();
        Case {
            sizes: self.sizes,
            x: wide(&self.x),
            weight: wide(&self.weight),
            bias: wide(&self.bias),
            grad: wide(&self.grad),
            activation: self.activation,
        }
    }

    fn forward(&self, isa: Isa) -> Vec<T> {
        let mut y = vec![T::nan(); self.grad.len()];
        self.sizes
            .forward_on(
                isa,
                &self.x,
                &self.weight,
                &self.bias,
                self.activation,
                &mut y,
            )
            .unwrap();
        y
    }

    /// What is not wanted stays NaN.
    fn backward(&self, isa: Isa, y: &[T], wanted: [bool; 3]) -> Grads<T> {
        let mut grads = Grads {
            x: vec![T::nan(); self.x.len()],
            weight: vec![T::nan(); self.weight.len()],
            bias: vec![T::nan(); self.bias.len()],
        };
        let gradients = ConvolutionGradients {
            x: wanted[0].then_some(&mut grads.x[..]),
            weight: wanted[1].then_some(&mut grads.weight[..]),
            bias: wanted[2].then_some(&mut grads.bias[..]),
        };
        let y = match self.activation {
            Activation::Identity => &[],
            Activation::Tanh => y,
        };
        let (x, weight, activation) = (&self.x, &self.weight, self.activation);
        self.sizes
            .backward_on(isa, x, weight, activation, y, &self.grad, gradients)
            .unwrap();
        grads
    }
}

impl Case<f64> {
    /// Calls `term(y, x, w)` with the indices of every product of the convolution.
    fn products(&self, mut term: impl FnMut(usize, usize, usize)) {
        let (channels_in, channels_out) = (self.sizes.channels_in(), self.sizes.channels_out());
        let (height, width) = (self.sizes.height(), self.sizes.width());
        let [rows, columns] = self.sizes.kernel();
        for image in 0..self.x.len() / self.sizes.input_len() {
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

    fn plain_forward(&self) -> Vec<f64> {
        let area = self.sizes.image_len();
        let channels = self.sizes.channels_out();
        let mut y: Vec<f64> = (0..self.grad.len())
            .map(|i| self.bias[i / area % channels])
            .collect();
        self.products(|out, x, w| y[out] += self.x[x] * self.weight[w]);
        match self.activation {
            Activation::Identity => y,
            Activation::Tanh => y.into_iter().map(f64::tanh).collect(),
        }
    }

    fn plain_backward(&self) -> Grads<f64> {
        let y = self.plain_forward();
        let inner: Vec<f64> = match self.activation {
            Activation::Identity => self.grad.clone(),
            Activation::Tanh => (y.iter().zip(&self.grad))
                .map(|(y, g)| g * (1.0 - y * y))
                .collect(),
        };
        let mut grads = Grads {
            x: vec![0.0; self.x.len()],
            weight: vec![0.0; self.weight.len()],
            bias: vec![0.0; self.bias.len()],
        };
        let area = self.sizes.image_len();
        for (i, g) in inner.iter().enumerate() {
            grads.bias[i / area % self.sizes.channels_out()] += g;
        }
        self.products(|out, x, w| {
            grads.x[x] += inner[out] * self.weight[w];
            grads.weight[w] += inner[out] * self.x[x];
        });
        grads
    }

    /// The number whose gradients are those of the case.
    fn loss(&self) -> f64 {
        let y = self.forward(best_isa());
        y.iter().zip(&self.grad).map(|(y, g)| y * g).sum()
    }
}

fn close<T: Real>(what: &str, got: &[T], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{what}");
    // Sums cancel: their rounding is that of the largest of them.
    let scale = expected.iter().fold(1.0f64, |scale, e| scale.max(e.abs()));
    for (i, (a, b)) in got.iter().zip(expected).enumerate() {
        let a = a.wide();
        assert!(
            (a - b).abs() <= tolerance * scale,
            "{what} {i}: {a} and {b}"
        );
    }
}

fn check<T: Real>(sizes: Convolution, batch: usize, tolerance: f64) {
    for activation in ACTIVATIONS {
        let case = Case::<T>::new(sizes, batch, activation);
        let (plain_y, plain) = (case.wide().plain_forward(), case.wide().plain_backward());
        for isa in Isa::available() {
            let what = format!("{isa:?} {sizes:?} {activation:?}");
            let y = case.forward(isa);
            close(&what, &y, &plain_y, tolerance);
            let grads = case.backward(isa, &y, [true; 3]);
            close(&what, &grads.x, &plain.x, tolerance);
            close(&what, &grads.weight, &plain.weight, tolerance);
            close(&what, &grads.bias, &plain.bias, tolerance);
        }
    }
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
                let sizes = sizes(channels, sides, kernel);
                check::<f64>(sizes, 2, TOLERANCE);
                check::<f32>(sizes, 2, SINGLE_TOLERANCE);
            }
        }
    }
}

#[test]
fn every_tile_of_channels_and_every_batch() {
    for channels in 1..=18 {
        let sizes = sizes([channels % 3 + 1, channels], [5, 19], [3, 3]);
        check::<f64>(sizes, channels % 5 + 1, TOLERANCE);
        check::<f32>(sizes, channels % 5 + 1, SINGLE_TOLERANCE);
    }
}

#[test]
fn many_jobs_equal_the_plain_sums() {
    let sizes = sizes([1, 8], [28, 28], [3, 3]);
    check::<f64>(sizes, 23, TOLERANCE);
    check::<f32>(sizes, 23, SINGLE_TOLERANCE);
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
            let mut case = Case::<f64>::new(sizes(channels, sides, kernel), 2, activation);
            let y = case.forward(best_isa());
            let grads = case.backward(best_isa(), &y, [true; 3]);
            let mut check = |parent: fn(&mut Case<f64>) -> &mut Vec<f64>, gradient: &[f64]| {
                for (i, gradient) in gradient.iter().enumerate() {
                    let value = parent(&mut case)[i];
                    parent(&mut case)[i] = value + STEP;
                    let above = case.loss();
                    parent(&mut case)[i] = value - STEP;
                    let below = case.loss();
                    parent(&mut case)[i] = value;
                    let difference = (above - below) / (2.0 * STEP);
                    assert!(
                        (difference - gradient).abs()
                            <= DIFFERENCE_TOLERANCE * gradient.abs().max(1.0),
                        "{i}: {difference} and {gradient}"
                    );
                }
            };
            check(|case| &mut case.x, &grads.x);
            check(|case| &mut case.weight, &grads.weight);
            check(|case| &mut case.bias, &grads.bias);
        }
    }
}

#[test]
fn only_what_is_wanted_is_written() {
    for activation in ACTIVATIONS {
        let case = Case::<f64>::new(sizes([2, 3], [5, 9], [3, 3]), 3, activation);
        let y = case.forward(best_isa());
        let all = case.backward(best_isa(), &y, [true; 3]);
        for wanted in (0..8).map(|bits| [bits & 1 > 0, bits & 2 > 0, bits & 4 > 0]) {
            let some = case.backward(best_isa(), &y, wanted);
            for (wanted, some, all) in [
                (wanted[0], &some.x, &all.x),
                (wanted[1], &some.weight, &all.weight),
                (wanted[2], &some.bias, &all.bias),
            ] {
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
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(|| {
            let y = case.forward(best_isa());
            let grads = case.backward(best_isa(), &y, [true; 3]);
            (y, grads)
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn an_empty_batch_has_zero_gradients() {
    let case = Case::<f32>::new(sizes([2, 3], [5, 9], [3, 3]), 0, Activation::Tanh);
    assert!(case.forward(best_isa()).is_empty());
    let grads = case.backward(best_isa(), &[], [true; 3]);
    assert!(grads.weight.iter().chain(&grads.bias).all(|g| *g == 0.0));
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
        case.bias.fill(0.0);
        let y = case.forward(best_isa());
        let grads = case.backward(best_isa(), &y, [true, true, false]);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let forward = dot(&y, &case.grad);
        let size = dot(&y, &y).sqrt() * dot(&case.grad, &case.grad).sqrt();
        for backward in [dot(&case.x, &grads.x), dot(&case.weight, &grads.weight)] {
            prop_assert!((forward - backward).abs() <= TOLERANCE * size.max(1.0));
        }
    }
}
