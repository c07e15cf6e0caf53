//! One step of Adan in one pass, as `burn-optim` 0.22.1 takes it.
//!
//! With the gradient `g`, that of the step before `g'`, and `c_i = 1 - beta_i^t`, in Burn's order of
//! operations: `m = beta_1 m + (1 - beta_1) g`, `d = beta_2 d + (1 - beta_2)(g - g')`,
//! `v = beta_3 v + (1 - beta_3)(g + beta_2 (g - g'))^2`, `n = sqrt(v)/sqrt(c_3) + epsilon`,
//! `step = learning_rate ((m/c_1)/n + (beta_2 d/c_2)/n)`. With the decay `w` times the learning rate,
//! `parameter = (parameter - step)/(1 + w)`, or `parameter (1 - w) - step` for the decoupled form.
//!
//! All slices have the same length. Averages begin with zeros; in the first step `g' = g`, whatever
//! the state says. As in Burn the state holds `-g'`.

use super::{After, Before, in_chunks};
use crate::error::KernelError;
use crate::real::Real;
use crate::runtime::chunks::{CHUNK, best_isa};
use crate::vector::{Kernel, Present, Vector};

/// The settings of a step. The types are Burn's, so that its rounding is met.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdanSettings {
    /// The learning rate.
    pub learning_rate: f64,
    /// The decay of the average gradient; Burn's default is 0.98.
    pub beta_1: f32,
    /// The decay of the average difference of gradients; Burn's default is 0.92.
    pub beta_2: f32,
    /// The decay of the average square; Burn's default is 0.99.
    pub beta_3: f32,
    /// Keeps the divisor away from zero; Burn's default is 1e-8.
    pub epsilon: f32,
    /// The weight decay; Burn's default is 0.
    pub weight_decay: f32,
    /// Decays before the step instead of after it (`no_prox`); Burn's default is false.
    pub decoupled: bool,
    /// The number of this step, from 1.
    pub time: usize,
}

/// Writes the state after a step: tensors are shared, and a step in place would copy them first.
///
/// A state is the parameter, the averages `m`, `d` and `v` (Burn's `exp_avg`, `exp_avg_diff`, `exp_avg_sq`), and the gradient
/// of the step before, negated (`neg_pre_grad`).
pub fn adan_step<T: Real>(
    before: [&[T]; 5],
    gradient: &[T],
    settings: AdanSettings,
    after: [&mut [T]; 5],
) -> Result<(), KernelError> {
    let factors = AdanFactors::new(settings);
    let step = |before: Before<'_, T, 5>, gradient: &[T], after: After<'_, T, 5>| {
        let job = AdanChunk {
            before,
            gradient,
            after,
            factors,
        };
        T::adan_chunk(best_isa(), job);
    };
    in_chunks(before, gradient, after, settings.time, CHUNK, step)
}

/// What a step multiplies with and divides by.
#[derive(Debug, Clone, Copy)]
struct AdanFactors<T> {
    betas: [T; 3],
    rests: [T; 3],
    /// `c_1`, `c_2` and `sqrt(c_3)`.
    corrections: [T; 3],
    epsilon: T,
    learning_rate: T,
    /// Before the step.
    shrink: T,
    /// After the step.
    divisor: T,
    first: bool,
}

impl<T: Real> AdanFactors<T> {
    /// In f32 whatever the number type, as Burn does; the rates in f64.
    fn new(settings: AdanSettings) -> Self {
        let betas = [settings.beta_1, settings.beta_2, settings.beta_3];
        let time = i32::try_from(settings.time).unwrap_or(i32::MAX);
        let of = |value: f32| T::of(f64::from(value));
        let [c_1, c_2, c_3] = betas.map(|beta| 1.0 - beta.powi(time));
        let decay = settings.learning_rate * f64::from(settings.weight_decay);
        let (shrink, divisor) = if settings.decoupled {
            (1.0 - decay, 1.0)
        } else {
            (1.0, 1.0 + decay)
        };
        Self {
            betas: betas.map(of),
            rests: betas.map(|beta| of(1.0 - beta)),
            corrections: [of(c_1), of(c_2), of(c_3.sqrt())],
            epsilon: of(settings.epsilon),
            learning_rate: T::of(settings.learning_rate),
            shrink: T::of(shrink),
            divisor: T::of(divisor),
            first: settings.time == 1,
        }
    }
}

/// One chunk of a step.
pub struct AdanChunk<'a, T> {
    before: Before<'a, T, 5>,
    gradient: &'a [T],
    after: After<'a, T, 5>,
    factors: AdanFactors<T>,
}

impl<T: Real> Kernel<T> for AdanChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let f = self.factors;
        let ([beta_1, beta_2, beta_3], [rest_1, rest_2, rest_3]) = (f.betas, f.rests);
        let [c_1, c_2, c_3] = f.corrections;
        // Slices of one length, which the compiler must know to make vectors of the loop.
        let (len, gradient) = (self.gradient.len(), self.gradient);
        let [parameter, average, difference, square, negative] = self.before.map(|v| &v[..len]);
        let [new_parameter, new_average, new_difference, new_square, new_negative] =
            self.after.map(|v| &mut v[..len]);
        for i in 0..len {
            let g = gradient[i];
            let change = if f.first { T::zero() } else { negative[i] + g };
            let nesterov = change * beta_2 + g;
            let m = average[i] * beta_1 + g * rest_1;
            let d = difference[i] * beta_2 + change * rest_2;
            let v = square[i] * beta_3 + (nesterov * nesterov) * rest_3;
            let divisor = v.root() / c_3 + f.epsilon;
            let update = m / c_1 / divisor + d * beta_2 / c_2 / divisor;
            let moved = parameter[i] * f.shrink - update * f.learning_rate;
            new_parameter[i] = moved / f.divisor;
            (new_average[i], new_difference[i]) = (m, d);
            (new_square[i], new_negative[i]) = (v, -g);
        }
    }
}
