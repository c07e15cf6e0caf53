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

use rayon::prelude::*;

use crate::error::{KernelError, expect_len};
use crate::real::Real;
use crate::runtime::chunks::{CHUNK, best_isa, fewest_chunks};
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

/// A parameter and its averages, before a step or after it.
#[derive(Debug)]
pub struct AdanState<S> {
    /// The parameter.
    pub parameter: S,
    /// The average gradient `m`, Burn's `exp_avg`.
    pub average: S,
    /// The average difference of gradients `d`, Burn's `exp_avg_diff`.
    pub difference: S,
    /// The average square `v`, Burn's `exp_avg_sq`.
    pub square: S,
    /// The gradient of the step before, negated, Burn's `neg_pre_grad`.
    pub negative_gradient: S,
}

/// Writes the parameter and its averages after a step: tensors are shared, and a step in place would
/// copy them first.
pub fn adan_step<T: Real>(
    before: AdanState<&[T]>,
    gradient: &[T],
    settings: AdanSettings,
    after: AdanState<&mut [T]>,
) -> Result<(), KernelError> {
    let expected = gradient.len();
    for (what, len) in [
        ("the parameter", before.parameter.len()),
        ("the average", before.average.len()),
        ("the difference", before.difference.len()),
        ("the square", before.square.len()),
        ("the negative gradient", before.negative_gradient.len()),
        ("the parameter afterwards", after.parameter.len()),
        ("the average afterwards", after.average.len()),
        ("the difference afterwards", after.difference.len()),
        ("the square afterwards", after.square.len()),
        (
            "the negative gradient afterwards",
            after.negative_gradient.len(),
        ),
    ] {
        expect_len(what, len, expected)?;
    }
    if settings.time == 0 {
        return Err(KernelError::ZeroSize {
            what: "the number of an Adan step",
        });
    }
    let factors = AdanFactors::new(settings);
    let averages = after.average.par_chunks_mut(CHUNK);
    let averages = averages.zip(after.difference.par_chunks_mut(CHUNK));
    let squares = after.square.par_chunks_mut(CHUNK);
    let squares = squares.zip(after.negative_gradient.par_chunks_mut(CHUNK));
    let outputs = after.parameter.par_chunks_mut(CHUNK);
    outputs
        .zip(averages.zip(squares))
        .enumerate()
        .with_min_len(fewest_chunks(expected))
        .for_each(
            |(chunk, (parameter, ((average, difference), (square, negative_gradient))))| {
                let own = chunk * CHUNK..chunk * CHUNK + parameter.len();
                let job = AdanChunk {
                    before: AdanState {
                        parameter: &before.parameter[own.clone()],
                        average: &before.average[own.clone()],
                        difference: &before.difference[own.clone()],
                        square: &before.square[own.clone()],
                        negative_gradient: &before.negative_gradient[own.clone()],
                    },
                    gradient: &gradient[own],
                    after: AdanState {
                        parameter,
                        average,
                        difference,
                        square,
                        negative_gradient,
                    },
                    factors,
                };
                T::adan_chunk(best_isa(), job);
            },
        );
    Ok(())
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
    before: AdanState<&'a [T]>,
    gradient: &'a [T],
    after: AdanState<&'a mut [T]>,
    factors: AdanFactors<T>,
}

impl<T: Real> Kernel<T> for AdanChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let f = self.factors;
        let ([beta_1, beta_2, beta_3], [rest_1, rest_2, rest_3]) = (f.betas, f.rests);
        let [c_1, c_2, c_3] = f.corrections;
        let (before, after) = (self.before, self.after);
        // Slices of one length, which the compiler must know to make vectors of the loop.
        let len = self.gradient.len();
        let (parameter, gradient) = (&before.parameter[..len], &self.gradient[..len]);
        let (average, difference) = (&before.average[..len], &before.difference[..len]);
        let (square, negative) = (&before.square[..len], &before.negative_gradient[..len]);
        let new_parameter = &mut after.parameter[..len];
        let (new_average, new_difference) =
            (&mut after.average[..len], &mut after.difference[..len]);
        let (new_square, new_negative) = (
            &mut after.square[..len],
            &mut after.negative_gradient[..len],
        );
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
