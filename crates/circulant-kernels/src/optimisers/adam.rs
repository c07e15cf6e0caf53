//! One step of Adam in one pass, as `burn-optim` 0.22.1 takes it, without weight decay and AMSGrad.
//!
//! With `c1 = 1 - beta_1^t`, `c2 = sqrt(1 - beta_2^t)`, in Burn's order of operations:
//! `m = beta_1 m + (1 - beta_1) g`, `v = beta_2 v + (1 - beta_2) g^2`,
//! `parameter -= learning_rate * ((c2/c1) m / (sqrt(v) + epsilon c2))`. The epsilon is that of the
//! usual form, beside `sqrt(v)/c2`. All slices have the same length; moments begin with zeros.

use super::{After, Before, in_chunks};
use crate::error::KernelError;
use crate::real::Real;
use crate::runtime::chunks::best_isa;
use crate::vector::{Kernel, Present, Vector};

/// Values of a chunk: few, because every number has a root and a quotient.
pub const CHUNK: usize = 1 << 11;

/// The settings of a step. The types are Burn's, so that its rounding is met.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamSettings {
    /// The learning rate.
    pub learning_rate: f64,
    /// The decay of the first moment; Burn's default is 0.9.
    pub beta_1: f32,
    /// The decay of the second moment; Burn's default is 0.999.
    pub beta_2: f32,
    /// Keeps the divisor away from zero; Burn's default is 1e-5.
    pub epsilon: f32,
    /// The number of this step, from 1.
    pub time: usize,
}

/// Writes the state after a step, the parameter and both moments: tensors are shared, and a step in place would copy them
/// first.
pub fn adam_step<T: Real>(
    before: [&[T]; 3],
    gradient: &[T],
    settings: AdamSettings,
    after: [&mut [T]; 3],
) -> Result<(), KernelError> {
    let factors = AdamFactors::new(settings);
    let step = |before: Before<'_, T, 3>, gradient: &[T], after: After<'_, T, 3>| {
        let job = AdamChunk {
            before,
            gradient,
            after,
            factors,
        };
        T::adam_chunk(best_isa(), job);
    };
    in_chunks(before, gradient, after, settings.time, CHUNK, step)
}

/// What a step multiplies with.
#[derive(Debug, Clone, Copy)]
struct AdamFactors<T> {
    beta_1: T,
    beta_2: T,
    rest_1: T,
    rest_2: T,
    combined: T,
    epsilon: T,
    learning_rate: T,
}

impl<T: Real> AdamFactors<T> {
    /// In f32 whatever the number type, as Burn does.
    fn new(settings: AdamSettings) -> Self {
        let AdamSettings { beta_1, beta_2, .. } = settings;
        let time = i32::try_from(settings.time).unwrap_or(i32::MAX);
        let correction_2 = (1.0 - beta_2.powi(time)).sqrt();
        let combined = correction_2 / (1.0 - beta_1.powi(time));
        let of = |value: f32| T::of(f64::from(value));
        Self {
            beta_1: of(beta_1),
            beta_2: of(beta_2),
            rest_1: of(1.0 - beta_1),
            rest_2: of(1.0 - beta_2),
            combined: of(combined),
            epsilon: of(settings.epsilon * correction_2),
            learning_rate: T::of(settings.learning_rate),
        }
    }
}

/// One chunk of a step.
pub struct AdamChunk<'a, T> {
    before: Before<'a, T, 3>,
    gradient: &'a [T],
    after: After<'a, T, 3>,
    factors: AdamFactors<T>,
}

impl<T: Real> Kernel<T> for AdamChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let f = self.factors;
        let ([parameter, m, v], [new, new_m, new_v]) = (self.before, self.after);
        let inputs = parameter.iter().zip(self.gradient).zip(m.iter().zip(v));
        let outputs = new.iter_mut().zip(new_m.iter_mut().zip(new_v));
        for ((parameter, (m, v)), ((&before, &g), (&old_m, &old_v))) in outputs.zip(inputs) {
            *m = old_m * f.beta_1 + g * f.rest_1;
            *v = old_v * f.beta_2 + (g * g) * f.rest_2;
            let step = *m * f.combined / (v.root() + f.epsilon);
            *parameter = before - step * f.learning_rate;
        }
    }
}
