//! Laws that hold for every size: random lengths, grids, masks and batches, odd, prime and 1.

use circulant_kernels::{
    Activation, Bin, CirculantPlan, Complex, Filters, Gradients, HalfPlane, HalfSpectrum,
};
use proptest::prelude::*;

use crate::oracle::{activation, dot, noise};

/// Sums of at most a few thousand products in f64, relative to the size of what is summed.
const ROUNDING: f64 = 1e-11;
/// The error of a central difference with step 1e-5, relative to the gradient.
const DIFFERENCE: f64 = 1e-6;

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

/// A signal length with its mask.
fn signals() -> impl Strategy<Value = HalfSpectrum> {
    (1usize..120).prop_flat_map(|d| {
        (1..=d / 2 + 1).prop_map(move |k| HalfSpectrum::with_modes(d, k).expect("in range"))
    })
}

/// A grid with its mask.
fn images() -> impl Strategy<Value = HalfPlane> {
    (1usize..14, 1usize..14, 0.0..=1.0f64).prop_map(|(height, width, cutoff)| {
        // A third of the masks keep everything.
        HalfPlane::with_radius(height, width, (cutoff * 1.5).min(1.0)).expect("in range")
    })
}

/// One operator with everything that it applies to.
#[derive(Debug)]
struct Work {
    plan: CirculantPlan<f64>,
    activation: Activation,
    x: Vec<f64>,
    coordinates: Vec<f64>,
    bias: Vec<f64>,
}

impl Work {
    fn new(
        plan: CirculantPlan<f64>,
        batch: usize,
        filters: usize,
        outputs: usize,
        tanh: bool,
    ) -> Self {
        Self {
            activation: activation(tanh),
            x: noise(1, batch * plan.input_len()),
            coordinates: noise(2, filters * plan.coordinates()),
            bias: noise(3, filters * outputs),
            plan,
        }
    }

    fn filters(&self) -> usize {
        self.coordinates.len() / self.plan.coordinates()
    }

    fn output_len(&self) -> usize {
        self.filters() * self.x.len() / self.plan.input_len() * self.plan.output_len()
    }

    fn forward(&self, x: &[f64], coordinates: &[f64], bias: Option<&[f64]>) -> Vec<f64> {
        let filters = Filters {
            coordinates,
            bias,
            activation: self.activation,
        };
        let mut y = vec![0.0; self.output_len()];
        self.plan.forward(x, filters, &mut y).expect("shapes fit");
        y
    }

    /// Gradients of `<y, g>` for x, coordinates and bias.
    fn backward(&self, g: &[f64]) -> [Vec<f64>; 3] {
        let filters = Filters {
            coordinates: &self.coordinates,
            bias: Some(&self.bias),
            activation: self.activation,
        };
        let mut y = vec![0.0; self.output_len()];
        let kept = self
            .plan
            .forward_keeping(&self.x, filters, &mut y)
            .expect("shapes fit");
        let mut grads = [&self.x, &self.coordinates, &self.bias].map(|v| vec![0.0; v.len()]);
        let [x, coordinates, bias] = &mut grads;
        let wanted = Gradients {
            x: Some(x),
            coordinates: Some(coordinates),
            bias: Some(bias),
        };
        self.plan
            .backward(&kept, filters, &y, g, wanted)
            .expect("shapes fit");
        grads
    }

    /// `<K x, g> = <x, K^t g>`, without bias and activation.
    fn check_adjoint(&mut self) -> Result<(), TestCaseError> {
        self.activation = Activation::Identity;
        let g = noise(4, self.output_len());
        let y = self.forward(&self.x, &self.coordinates, None);
        let [grad_x, grad_coordinates, _] = self.backward(&g);
        let scale = ROUNDING * (1.0 + norm(&y) * norm(&g));
        prop_assert!((dot(&y, &g) - dot(&self.x, &grad_x)).abs() <= scale);
        // The output is linear in the coordinates as well.
        prop_assert!((dot(&y, &g) - dot(&self.coordinates, &grad_coordinates)).abs() <= scale);
        Ok(())
    }

    /// Every gradient along a random direction against a central difference.
    fn check_gradients(&self) -> Result<(), TestCaseError> {
        let g = noise(5, self.output_len());
        let grads = self.backward(&g);
        let values = [&self.x, &self.coordinates, &self.bias];
        for (which, grad) in grads.iter().enumerate() {
            let direction = noise(6 + which as u64, grad.len());
            let step = 1e-5;
            let loss = |sign: f64| {
                let mut moved = values.map(Clone::clone);
                moved[which]
                    .iter_mut()
                    .zip(&direction)
                    .for_each(|(v, d)| *v += sign * step * d);
                dot(&self.forward(&moved[0], &moved[1], Some(&moved[2])), &g)
            };
            let difference = (loss(1.0) - loss(-1.0)) / (2.0 * step);
            let exact = dot(grad, &direction);
            let scale = norm(grad) * norm(&direction) + 1e-3;
            prop_assert!(
                (difference - exact).abs() <= DIFFERENCE * scale,
                "gradient {which}: {exact} against {difference}"
            );
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn signals_have_their_adjoint_and_gradients(
        layout in signals(), batch in 1usize..20, filters in 1usize..3, tanh in any::<bool>()
    ) {
        let mut work = Work::new(CirculantPlan::new_1d(&layout), batch, filters, 1, tanh);
        work.check_gradients()?;
        work.check_adjoint()?;
    }

    #[test]
    fn images_have_their_adjoint_and_gradients(
        layout in images(), batch in 1usize..5, inputs in 1usize..4, outputs in 1usize..4, tanh in any::<bool>()
    ) {
        let plan = CirculantPlan::new_2d(&layout, inputs, outputs).expect("valid");
        let mut work = Work::new(plan, batch, 1, outputs, tanh);
        work.check_gradients()?;
        work.check_adjoint()?;
    }

    #[test]
    fn a_shifted_input_gives_a_shifted_output(layout in signals(), batch in 1usize..12, shift in 0usize..200) {
        let d = layout.length();
        let work = Work::new(CirculantPlan::new_1d(&layout), batch, 1, 1, true);
        let rolled = |rows: &[f64]| -> Vec<f64> {
            rows.chunks(d).flat_map(|row| (0..d).map(|t| row[(t + shift) % d])).collect()
        };
        let y = work.forward(&work.x, &work.coordinates, Some(&work.bias));
        let moved = work.forward(&rolled(&work.x), &work.coordinates, Some(&work.bias));
        let difference: Vec<f64> = rolled(&y).iter().zip(&moved).map(|(a, b)| a - b).collect();
        prop_assert!(norm(&difference) <= ROUNDING * (1.0 + norm(&y)));
    }

    #[test]
    fn a_filter_of_modulus_one_keeps_the_energy(d in 1usize..150, batch in 1usize..12) {
        // Parseval: |h_k| = 1 everywhere makes the operator orthogonal.
        let layout = HalfSpectrum::new(d).expect("valid");
        let angles = noise(1, layout.bins());
        let bins: Vec<_> = (0..layout.bins())
            .map(|k| match layout.bin(k) {
                Bin::Real { .. } => Complex::new(angles[k].signum(), 0.0),
                _ => Complex::from_polar(1.0, 3.0 * angles[k]),
            })
            .collect();
        let mut work = Work::new(CirculantPlan::new_1d(&layout), batch, 1, 1, false);
        layout.pack(&bins, &mut work.coordinates).expect("fits");
        let y = work.forward(&work.x, &work.coordinates, None);
        prop_assert!((norm(&y) - norm(&work.x)).abs() <= ROUNDING * norm(&work.x).max(1.0));
    }
}
