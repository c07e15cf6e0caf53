//! The operator and its gradients against the definition, for every way it can run.

use num_complex::Complex;

use crate::bins::Bin;
use crate::oracle::{convolve, naive_dft, naive_filter, noise, relative_error, spectrum};
use crate::plan::{Activation, CirculantPlan, Filters, Gradients};
use crate::real::Real;
use crate::simd::Isa;
use crate::{HalfPlane, HalfSpectrum};

/// The bounds on the relative error against an f64 oracle.
fn tolerance<T: Real>() -> f64 {
    if size_of::<T>() == 8 { 1e-12 } else { 2e-6 }
}

fn round<T: Real>(x: &[f64]) -> Vec<T> {
    x.iter().map(|&x| T::of(x)).collect()
}

fn wide<T: Real>(x: &[T]) -> Vec<f64> {
    x.iter().map(|x| x.wide()).collect()
}

/// Numbers that an f32 holds exactly, so that both types start from the same input.
fn exact_noise(seed: u64, len: usize) -> Vec<f64> {
    noise(seed, len)
        .iter()
        .map(|&x| f64::from(x as f32))
        .collect()
}

/// One operator with the sizes that the oracle needs.
struct Case {
    height: usize,
    width: usize,
    inputs: usize,
    outputs: usize,
    full: Vec<Bin>,
    coordinates: usize,
}

impl Case {
    fn signal(layout: &HalfSpectrum) -> Self {
        Self {
            height: 1,
            width: layout.length(),
            inputs: 1,
            outputs: 1,
            full: layout.full(),
            coordinates: layout.coordinates(),
        }
    }

    fn image(layout: &HalfPlane, inputs: usize, outputs: usize) -> Self {
        Self {
            height: layout.height(),
            width: layout.width(),
            inputs,
            outputs,
            full: layout.full(),
            coordinates: layout.coordinates(),
        }
    }

    fn len(&self) -> usize {
        self.height * self.width
    }

    /// The filter from channel `c` to `o`.
    fn filter(&self, coordinates: &[f64], c: usize, o: usize) -> Vec<f64> {
        let at = |k: usize| coordinates[(k * self.inputs + c) * self.outputs + o];
        naive_filter(self.height, self.width, &spectrum(&self.full, at))
    }

    /// `act(K x + b)` for one filter of a batch, with one bias per channel.
    fn forward(&self, x: &[f64], coordinates: &[f64], bias: &[f64], tanh: bool) -> Vec<f64> {
        let n = self.len();
        let batch = x.len() / (self.inputs * n);
        let mut y = Vec::new();
        for image in 0..batch {
            for (o, &bias) in bias.iter().enumerate() {
                let mut sum = vec![bias; n];
                for c in 0..self.inputs {
                    let x = &x[(image * self.inputs + c) * n..][..n];
                    let w = self.filter(coordinates, c, o);
                    for (sum, y) in sum.iter_mut().zip(convolve(self.height, self.width, &w, x)) {
                        *sum += y;
                    }
                }
                y.extend(sum.into_iter().map(|y| if tanh { y.tanh() } else { y }));
            }
        }
        y
    }

    /// Gradients of x, coordinates and bias by the formulas of SPEC section 9 on naive DFTs.
    fn backward(
        &self,
        x: &[f64],
        coordinates: &[f64],
        grad: &[f64],
    ) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let n = self.len();
        let batch = x.len() / (self.inputs * n);
        let dft = |x: &[f64]| naive_dft(self.height, self.width, x);
        let unitary = 1.0 / n as f64;
        let mut grad_x = Vec::new();
        let mut grad_a = vec![0.0; coordinates.len()];
        let mut grad_b = vec![0.0; self.outputs];
        for image in 0..batch {
            let outputs: Vec<Vec<Complex<f64>>> = (0..self.outputs)
                .map(|o| dft(&grad[(image * self.outputs + o) * n..][..n]))
                .collect();
            for (sum, g) in grad_b.iter_mut().zip(&outputs) {
                *sum += g[0].re;
            }
            for c in 0..self.inputs {
                let spectrum_x = dft(&x[(image * self.inputs + c) * n..][..n]);
                let mut sum = vec![Complex::new(0.0, 0.0); n];
                for (o, g) in outputs.iter().enumerate() {
                    let at = |k: usize| coordinates[(k * self.inputs + c) * self.outputs + o];
                    let h = spectrum(&self.full, at);
                    for f in 0..n {
                        sum[f] += g[f] * h[f].conj();
                        let a = spectrum_x[f].conj() * g[f] * unitary;
                        let mut add = |k: usize, value: f64| {
                            grad_a[(k * self.inputs + c) * self.outputs + o] += value;
                        };
                        match self.full[f] {
                            Bin::Real { coordinate } => add(coordinate, a.re),
                            Bin::Complex { coordinate } => {
                                add(coordinate, 2.0 * a.re);
                                add(coordinate + 1, 2.0 * a.im);
                            }
                            Bin::Conjugate { .. } | Bin::Masked => {}
                        }
                    }
                }
                grad_x.extend(naive_filter(self.height, self.width, &sum));
            }
        }
        (grad_x, grad_a, grad_b)
    }

    /// Every output and gradient of `plan` against the oracle.
    fn check<T: Real>(&self, plan: &CirculantPlan<T>, batch: usize, filters: usize, tanh: bool) {
        let tolerance = tolerance::<T>();
        let n = self.len();
        let label = format!(
            "{} x {}, {} -> {}, batch {batch}, filters {filters}, tanh {tanh}, {plan:?}",
            self.height, self.width, self.inputs, self.outputs
        );
        let unit = self.coordinates * self.inputs * self.outputs;
        assert_eq!(plan.coordinates(), unit);
        let x = exact_noise(1, batch * self.inputs * n);
        let a = exact_noise(2, filters * unit);
        let b = exact_noise(3, filters * self.outputs);
        let g = exact_noise(4, filters * batch * self.outputs * n);
        let (tx, ta, tb, tg) = (
            round::<T>(&x),
            round::<T>(&a),
            round::<T>(&b),
            round::<T>(&g),
        );
        let activation = if tanh {
            Activation::Tanh
        } else {
            Activation::Identity
        };
        let parameters = Filters {
            coordinates: &ta,
            bias: Some(&tb),
            activation,
        };

        let mut y = vec![T::zero(); g.len()];
        plan.forward(&tx, parameters, &mut y).expect("shapes fit");
        let mut kept_y = vec![T::zero(); g.len()];
        let kept = plan
            .forward_keeping(&tx, parameters, &mut kept_y)
            .expect("shapes fit");
        assert_eq!(
            wide(&y),
            wide(&kept_y),
            "{label}: keeping changes the output"
        );

        let mut expected_y = Vec::new();
        let mut expected_x = vec![0.0; x.len()];
        let (mut expected_a, mut expected_b) = (Vec::new(), Vec::new());
        for f in 0..filters {
            let a = &a[f * unit..][..unit];
            let b = &b[f * self.outputs..][..self.outputs];
            let own = self.forward(&x, a, b, tanh);
            let g: Vec<f64> = g[f * own.len()..][..own.len()]
                .iter()
                .zip(&own)
                .map(|(g, y)| if tanh { g * (1.0 - y * y) } else { *g })
                .collect();
            let (gx, ga, gb) = self.backward(&x, a, &g);
            expected_x.iter_mut().zip(gx).for_each(|(sum, g)| *sum += g);
            expected_a.extend(ga);
            expected_b.extend(gb);
            expected_y.extend(own);
        }
        let compare = |what: &str, got: &[T], expected: &[f64]| {
            let error = relative_error(&wide(got), expected);
            assert!(error <= tolerance, "{label}: {what} is off by {error:e}");
        };
        compare("y", &y, &expected_y);

        let mut gx = vec![T::zero(); x.len()];
        let mut ga = vec![T::one(); a.len()];
        let mut gb = vec![T::one(); b.len()];
        let all = Gradients {
            x: Some(&mut gx),
            coordinates: Some(&mut ga),
            bias: Some(&mut gb),
        };
        plan.backward(&kept, parameters, &y, &tg, all)
            .expect("shapes fit");
        compare("gradient of x", &gx, &expected_x);
        compare("gradient of coordinates", &ga, &expected_a);
        // Sums of cancelling numbers: compared on the scale of what is summed.
        let scale = (batch * n) as f64;
        for (got, expected) in gb.iter().zip(&expected_b) {
            assert!(
                (got.wide() - expected).abs() <= tolerance * scale,
                "{label}: bias"
            );
        }
    }
}

fn plans_1d<T: Real>(layout: &HalfSpectrum) -> impl Iterator<Item = CirculantPlan<T>> {
    Isa::available()
        .into_iter()
        .map(|isa| CirculantPlan::with_isa_1d(layout, isa))
}

fn plans_2d<T: Real>(
    layout: &HalfPlane,
    inputs: usize,
    outputs: usize,
) -> impl Iterator<Item = CirculantPlan<T>> {
    Isa::available()
        .into_iter()
        .map(move |isa| CirculantPlan::with_isa_2d(layout, inputs, outputs, isa).expect("valid"))
}

#[test]
fn every_small_length_is_exact() {
    for length in 1..=64 {
        let layout = HalfSpectrum::new(length).expect("valid");
        let case = Case::signal(&layout);
        // One row takes the row way, nineteen fill lanes and leave an odd tail.
        for batch in [1, 19] {
            for plan in plans_1d::<f64>(&layout) {
                case.check(&plan, batch, 1, false);
            }
            for plan in plans_1d::<f32>(&layout) {
                case.check(&plan, batch, 1, false);
            }
        }
    }
}

/// One row and a few more, by the naive transform both ways; quick enough for long signals.
fn check_long<T: Real>(length: usize) {
    let layout = HalfSpectrum::new(length).expect("valid");
    let full = layout.full();
    let a = exact_noise(5, length);
    let h = spectrum(&full, |k| a[k]);
    let row = exact_noise(6, length);
    let product: Vec<Complex<f64>> = naive_dft(1, length, &row)
        .iter()
        .zip(&h)
        .map(|(x, h)| x * h)
        .collect();
    let expected = naive_filter(1, length, &product);
    for plan in plans_1d::<T>(&layout) {
        // A single row, and lanes whose rows are multiples of it.
        for batch in [1, 17] {
            let x: Vec<f64> = (0..batch)
                .flat_map(|i| row.iter().map(move |x| x * (1.0 + i as f64)))
                .collect();
            let filters = Filters {
                coordinates: &round::<T>(&a),
                bias: None,
                activation: Activation::Identity,
            };
            let mut y = vec![T::zero(); x.len()];
            plan.forward(&round::<T>(&x), filters, &mut y)
                .expect("shapes fit");
            for (i, y) in y.chunks_exact(length).enumerate() {
                let scaled: Vec<f64> = expected.iter().map(|y| y * (1.0 + i as f64)).collect();
                let error = relative_error(&wide(y), &scaled);
                assert!(
                    error <= tolerance::<T>(),
                    "{length}, {plan:?}: off by {error:e}"
                );
            }
        }
    }
}

#[test]
fn every_length_to_256_and_the_long_ones_are_exact() {
    for length in (1..=256).chain([784, 1024, 2048, 4099, 16384]) {
        check_long::<f64>(length);
        check_long::<f32>(length);
    }
}

/// The layouts with gaps (powers of two) have their own gradients to get right.
#[test]
fn gradients_where_blocks_have_gaps() {
    for length in [128, 256] {
        let layout = HalfSpectrum::new(length).expect("valid");
        for plan in plans_1d::<f64>(&layout) {
            Case::signal(&layout).check(&plan, 17, 2, true);
        }
    }
    // Long enough for the product with the filter to be taken in place.
    let layout = HalfSpectrum::new(2048).expect("valid");
    let plan = CirculantPlan::<f64>::new_1d(&layout);
    Case::signal(&layout).check(&plan, 9, 1, true);
    let layout = HalfPlane::new(16, 16).expect("valid");
    for (inputs, outputs) in [(1, 1), (2, 3)] {
        for plan in plans_2d::<f64>(&layout, inputs, outputs) {
            Case::image(&layout, inputs, outputs).check(&plan, 3, 1, false);
        }
    }
}

#[test]
fn a_bias_per_element() {
    let (height, width, batch) = (3, 4, 5);
    let layout = HalfPlane::new(height, width).expect("valid");
    for (inputs, outputs) in [(1, 1), (2, 3)] {
        for plan in plans_2d::<f64>(&layout, inputs, outputs) {
            let unit = outputs * height * width;
            let x = noise(1, batch * inputs * height * width);
            let (a, b) = (noise(2, plan.coordinates()), noise(3, unit));
            let g = noise(4, batch * unit);
            let filters = |bias| Filters {
                coordinates: &a[..],
                bias,
                activation: Activation::Tanh,
            };
            let (mut y, mut plain) = (vec![0.0; batch * unit], vec![0.0; batch * unit]);
            let kept = plan
                .forward_keeping(&x, filters(Some(&b)), &mut y)
                .expect("fits");
            let unbiased = Filters {
                activation: Activation::Identity,
                ..filters(None)
            };
            plan.forward(&x, unbiased, &mut plain).expect("fits");
            let expected: Vec<f64> = plain
                .iter()
                .enumerate()
                .map(|(i, y)| (y + b[i % unit]).tanh())
                .collect();
            assert!(relative_error(&y, &expected) < 1e-12);
            let mut grad = vec![0.0; unit];
            let wanted = Gradients {
                bias: Some(&mut grad),
                ..Gradients::default()
            };
            plan.backward(&kept, filters(Some(&b)), &y, &g, wanted)
                .expect("fits");
            for (i, grad) in grad.iter().enumerate() {
                let sum: f64 = (0..batch)
                    .map(|row| g[row * unit + i] * (1.0 - expected[row * unit + i].powi(2)))
                    .sum();
                assert!((grad - sum).abs() < 1e-12, "{grad} {sum}");
            }
        }
    }
}

#[test]
fn wrong_shapes_are_errors_that_name_both() {
    let plan = CirculantPlan::<f32>::new_1d(&HalfSpectrum::new(8).expect("valid"));
    let fits = Filters {
        coordinates: &[0.0; 8][..],
        bias: None,
        activation: Activation::Identity,
    };
    let mut y = [0.0; 16];
    let message = |result: Result<(), crate::KernelError>| result.unwrap_err().to_string();
    assert!(
        message(plan.forward(&[0.0; 15], fits, &mut y)).contains("multiple of 8 values, got 15")
    );
    assert!(message(plan.forward(&[], fits, &mut y)).contains("got 0"));
    assert!(message(plan.forward(&[0.0; 8], fits, &mut y)).contains("expected 8 values, got 16"));
    let short = Filters {
        coordinates: &[0.0; 7][..],
        ..fits
    };
    assert!(
        message(plan.forward(&[0.0; 16], short, &mut y)).contains("multiple of 8 values, got 7")
    );
    let biased = Filters {
        bias: Some(&[0.0; 3][..]),
        ..fits
    };
    assert!(
        message(plan.forward(&[0.0; 16], biased, &mut y))
            .contains("bias: expected 1 values, got 3")
    );
    // A spectrum of another plan.
    let other = CirculantPlan::<f32>::new_1d(&HalfSpectrum::new(9).expect("valid"));
    let kept = other.transform(&[0.0; 18]).expect("fits");
    assert!(message(plan.apply(&kept, fits, &mut y)).contains("the kept spectrum"));
}

/// The same input gives the same bytes, whatever the number of threads.
#[test]
fn gradients_do_not_depend_on_the_threads() {
    let plan = CirculantPlan::<f32>::new_1d(&HalfSpectrum::new(96).expect("valid"));
    let (x, a, g) = (
        exact_noise(1, 600 * 96),
        exact_noise(2, 96),
        exact_noise(3, 600 * 96),
    );
    let (x, a, g) = (round::<f32>(&x), round::<f32>(&a), round::<f32>(&g));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("a pool");
        pool.install(|| {
            let filters = Filters {
                coordinates: &a[..],
                bias: None,
                activation: Activation::Identity,
            };
            let kept = plan.transform(&x).expect("fits");
            let mut grad = vec![0.0; 96];
            let wanted = Gradients {
                coordinates: Some(&mut grad),
                ..Gradients::default()
            };
            plan.backward(&kept, filters, &[], &g, wanted)
                .expect("fits");
            grad
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn masks_filters_and_tanh_in_1d() {
    for (length, modes) in [
        (1, 1),
        (2, 1),
        (7, 2),
        (8, 3),
        (12, 7),
        (30, 16),
        (31, 5),
        (49, 25),
    ] {
        let layout = HalfSpectrum::with_modes(length, modes).expect("valid");
        let case = Case::signal(&layout);
        for (batch, filters, tanh) in [(1, 3, true), (2, 2, false), (17, 3, true), (40, 2, false)] {
            for plan in plans_1d::<f64>(&layout) {
                case.check(&plan, batch, filters, tanh);
            }
            for plan in plans_1d::<f32>(&layout) {
                case.check(&plan, batch, filters, tanh);
            }
        }
    }
}

#[test]
fn images_of_one_channel() {
    for (height, width) in [
        (1, 1),
        (1, 9),
        (9, 1),
        (4, 6),
        (5, 7),
        (8, 8),
        (3, 17),
        (19, 2),
        (12, 10),
    ] {
        for cutoff in [1.0, 0.6] {
            let layout = HalfPlane::with_radius(height, width, cutoff).expect("valid");
            let case = Case::image(&layout, 1, 1);
            for (batch, filters, tanh) in [(1, 1, false), (19, 2, true)] {
                for plan in plans_2d::<f64>(&layout, 1, 1) {
                    case.check(&plan, batch, filters, tanh);
                }
                for plan in plans_2d::<f32>(&layout, 1, 1) {
                    case.check(&plan, batch, filters, tanh);
                }
            }
        }
    }
}

#[test]
fn channel_mixing() {
    let channels = [(1, 2), (2, 1), (3, 5), (8, 8), (16, 4), (5, 9), (8, 16)];
    for (height, width) in [(1, 1), (4, 4), (3, 5), (2, 7), (1, 17)] {
        for (i, (inputs, outputs)) in channels.into_iter().enumerate() {
            let cutoff = if i % 2 == 0 { 1.0 } else { 0.5 };
            let layout = HalfPlane::with_radius(height, width, cutoff).expect("valid");
            let case = Case::image(&layout, inputs, outputs);
            for (batch, filters, tanh) in [(1, 1, false), (5, 2, true)] {
                for plan in plans_2d::<f64>(&layout, inputs, outputs) {
                    case.check(&plan, batch, filters, tanh);
                }
                for plan in plans_2d::<f32>(&layout, inputs, outputs) {
                    case.check(&plan, batch, filters, tanh);
                }
            }
        }
    }
}
