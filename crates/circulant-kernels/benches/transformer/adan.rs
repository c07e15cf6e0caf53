//! A step of Adan and a plain version of it.

use circulant_kernels::{AdanSettings, AdanState, adan_step};

use crate::beside_plain::{Report, noise};

/// The parameters of a small Vision Transformer.
const PARAMETERS: usize = 1_200_000;

/// The state of the optimiser: parameter, average, difference, square, negative gradient.
struct Adan {
    gradient: Vec<f32>,
    before: [Vec<f32>; 5],
    after: [Vec<f32>; 5],
}

impl Adan {
    const SETTINGS: AdanSettings = AdanSettings {
        learning_rate: 1e-3,
        beta_1: 0.98,
        beta_2: 0.92,
        beta_3: 0.99,
        epsilon: 1e-8,
        weight_decay: 1e-4,
        decoupled: false,
        time: 10,
    };

    fn new() -> Self {
        Self {
            gradient: noise(0, PARAMETERS),
            before: [1, 2, 3, 4, 5].map(|i| noise(i, PARAMETERS).iter().map(|x| x.abs()).collect()),
            after: [(); 5].map(|()| vec![0.0; PARAMETERS]),
        }
    }

    fn step(&mut self) {
        let [parameter, average, difference, square, negative_gradient] =
            self.before.each_ref().map(|values| &values[..]);
        let before = AdanState {
            parameter,
            average,
            difference,
            square,
            negative_gradient,
        };
        let [parameter, average, difference, square, negative_gradient] =
            self.after.each_mut().map(|values| &mut values[..]);
        let after = AdanState {
            parameter,
            average,
            difference,
            square,
            negative_gradient,
        };
        adan_step(before, &self.gradient, Self::SETTINGS, after).expect("sizes fit");
    }

    /// One loop per tensor operation, as a framework without fusion takes the step.
    fn plain(&mut self) {
        let s = Self::SETTINGS;
        let zip = |a: &[f32], b: &[f32], f: &dyn Fn(f32, f32) -> f32| -> Vec<f32> {
            a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
        };
        let g = &self.gradient;
        let [parameter, average, difference, square, negative] = &self.before;
        let change = zip(negative, g, &|n, g| n + g);
        let nesterov = zip(&change, g, &|c, g| (c * s.beta_2 + g).powi(2));
        let average = zip(average, g, &|m, g| m * s.beta_1 + g * (1.0 - s.beta_1));
        let difference = zip(difference, &change, &|d, c| {
            d * s.beta_2 + c * (1.0 - s.beta_2)
        });
        let square = zip(square, &nesterov, &|v, n| {
            v * s.beta_3 + n * (1.0 - s.beta_3)
        });
        let negative = zip(g, g, &|g, _| -g);
        let step = zip(&average, &square, &|m, v| m / (v.sqrt() + s.epsilon));
        let nesterov = zip(&difference, &square, &|d, v| d / (v.sqrt() + s.epsilon));
        let step = zip(&step, &nesterov, &|a, b| a + b);
        let rate = s.learning_rate as f32;
        let parameter = zip(parameter, &step, &|p, s| (p - rate * s) / (1.0 + 1e-7));
        self.after = [parameter, average, difference, square, negative];
    }
}

/// One step.
pub fn adan(report: &Report) {
    let (mut ours, mut plain) = (Adan::new(), Adan::new());
    report.case("adan/1200000", || ours.step(), || plain.plain());
}
