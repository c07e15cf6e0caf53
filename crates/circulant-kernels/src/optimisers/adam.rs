//! One step of Adam in one pass, as `burn-optim` 0.22.1 takes it, without weight decay and AMSGrad.
//!
//! With `c1 = 1 - beta_1^t`, `c2 = sqrt(1 - beta_2^t)`, in Burn's order of operations:
//! `m = beta_1 m + (1 - beta_1) g`, `v = beta_2 v + (1 - beta_2) g^2`,
//! `parameter -= learning_rate * ((c2/c1) m / (sqrt(v) + epsilon c2))`. The epsilon is that of the
//! usual form, beside `sqrt(v)/c2`. All slices have the same length; moments begin with zeros.

use crate::error::{KernelError, expect_len};
use crate::real::Real;
use crate::runtime::chunks::{best_isa, run_all};
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

/// A parameter and its moments, before a step or after it.
#[derive(Debug)]
pub struct AdamState<S> {
    /// The parameter.
    pub parameter: S,
    /// The first moment.
    pub moment_1: S,
    /// The second moment.
    pub moment_2: S,
}

/// Writes the parameter and both moments after a step: tensors are shared, and a step in place would
/// copy them first.
pub fn adam_step<T: Real>(
    before: AdamState<&[T]>,
    gradient: &[T],
    settings: AdamSettings,
    after: AdamState<&mut [T]>,
) -> Result<(), KernelError> {
    let expected = gradient.len();
    for (what, len) in [
        ("the parameter", before.parameter.len()),
        ("moment_1", before.moment_1.len()),
        ("moment_2", before.moment_2.len()),
        ("the parameter afterwards", after.parameter.len()),
        ("moment_1 afterwards", after.moment_1.len()),
        ("moment_2 afterwards", after.moment_2.len()),
    ] {
        expect_len(what, len, expected)?;
    }
    if settings.time == 0 {
        return Err(KernelError::ZeroSize {
            what: "the number of an Adam step",
        });
    }
    let factors = AdamFactors::new(settings);
    let moments = after
        .moment_1
        .chunks_mut(CHUNK)
        .zip(after.moment_2.chunks_mut(CHUNK));
    let outputs = after.parameter.chunks_mut(CHUNK).zip(moments);
    let jobs = outputs
        .enumerate()
        .map(|(chunk, (parameter, (moment_1, moment_2)))| {
            let own = chunk * CHUNK..chunk * CHUNK + parameter.len();
            AdamChunk {
                before: AdamState {
                    parameter: &before.parameter[own.clone()],
                    moment_1: &before.moment_1[own.clone()],
                    moment_2: &before.moment_2[own.clone()],
                },
                gradient: &gradient[own],
                after: AdamState {
                    parameter,
                    moment_1,
                    moment_2,
                },
                factors,
            }
        });
    run_all(gradient.len(), jobs, |job| T::adam_chunk(best_isa(), job));
    Ok(())
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
    before: AdamState<&'a [T]>,
    gradient: &'a [T],
    after: AdamState<&'a mut [T]>,
    factors: AdamFactors<T>,
}

impl<T: Real> Kernel<T> for AdamChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let f = self.factors;
        let moments = self.before.moment_1.iter().zip(self.before.moment_2);
        let inputs = self.before.parameter.iter().zip(self.gradient).zip(moments);
        let moments = self.after.moment_1.iter_mut().zip(self.after.moment_2);
        let outputs = self.after.parameter.iter_mut().zip(moments);
        for ((parameter, (m, v)), ((&before, &g), (&old_m, &old_v))) in outputs.zip(inputs) {
            *m = old_m * f.beta_1 + g * f.rest_1;
            *v = old_v * f.beta_2 + (g * g) * f.rest_2;
            let step = *m * f.combined / (v.root() + f.epsilon);
            *parameter = before - step * f.learning_rate;
        }
    }
}
