//! The operator and its gradients against the definition, for every way it can run.

mod contract;
mod exactness;
mod readout;

use circulant_core::Bin;
use num_complex::Complex;

use crate::oracle::{
    activation, convolve, naive_dft, naive_filter, narrow, noise, relative_error, spectrum, wide,
};
use circulant_kernels::real::Real;
use circulant_kernels::vector::Isa;
use circulant_kernels::{Activation, CirculantPlan, Filters, Gradients};
use circulant_kernels::{HalfPlane, HalfSpectrum};

/// Bounds on the relative error against an f64 oracle.
fn tolerance<T: Real>() -> f64 {
    if size_of::<T>() == 8 { 1e-12 } else { 2e-6 }
}

/// Values that an f32 holds exactly, so that both types start from the same input.
fn exact_noise(seed: u64, len: usize) -> Vec<f64> {
    noise(seed, len)
        .iter()
        .map(|&x| f64::from(x as f32))
        .collect()
}

enum Layout {
    Signal(HalfSpectrum),
    Image(HalfPlane),
}

/// One operator with the sizes that the oracle needs.
struct Case {
    layout: Layout,
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
            layout: Layout::Signal(*layout),
            height: 1,
            width: layout.length(),
            inputs: 1,
            outputs: 1,
            full: layout.full().collect(),
            coordinates: layout.coordinates(),
        }
    }

    fn image(layout: &HalfPlane, inputs: usize, outputs: usize) -> Self {
        Self {
            layout: Layout::Image(layout.clone()),
            height: layout.height(),
            width: layout.width(),
            inputs,
            outputs,
            full: layout.full().collect(),
            coordinates: layout.coordinates(),
        }
    }

    /// One for every instruction set.
    fn plans<T: Real>(&self) -> Vec<CirculantPlan<T>> {
        let plan = |isa| match &self.layout {
            Layout::Signal(layout) => CirculantPlan::with_isa_1d(layout, isa),
            Layout::Image(layout) => {
                CirculantPlan::with_isa_2d(layout, self.inputs, self.outputs, isa).expect("valid")
            }
        };
        Isa::available().into_iter().map(plan).collect()
    }

    /// Every plan against the oracle, in both number types.
    fn check_plans(&self, batch: usize, filters: usize, tanh: bool) {
        for plan in self.plans::<f64>() {
            self.check(&plan, batch, filters, tanh);
        }
        for plan in self.plans::<f32>() {
            self.check(&plan, batch, filters, tanh);
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

    /// Gradients of x, coordinates and bias by the formulas of section 4 of `docs/mathematics.md` on naive DFTs.
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
            narrow::<T>(&x),
            narrow::<T>(&a),
            narrow::<T>(&b),
            narrow::<T>(&g),
        );
        let parameters = Filters {
            coordinates: &ta,
            bias: Some(&tb),
            activation: activation(tanh),
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
        // Sums of cancelling values: compared on the scale of what is summed.
        let scale = (batch * n) as f64;
        for (got, expected) in gb.iter().zip(&expected_b) {
            assert!(
                (got.wide() - expected).abs() <= tolerance * scale,
                "{label}: bias"
            );
        }
    }
}
