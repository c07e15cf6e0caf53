//! Predictions of one input after the other.

use circulant_core::{Complex, elementary};

use crate::EdgeError;
use crate::dense::{Local, dense};
use crate::gaussian::Draw;
use crate::layer::Activation;
use crate::layers::{self, Origin};
use crate::memory::{Parts, Plan, get};
use crate::model::{Model, Task, check_samples};
use crate::moments;
use crate::number::Number;
use crate::prediction::{Prediction, Tally};

/// One input, `[channels, height, width]`.
#[derive(Debug, Clone, Copy)]
pub enum Input<'i> {
    /// Pixels, which the model scales and normalises.
    Bytes(&'i [u8]),
    /// Floats, which the model normalises.
    Floats(&'i [f32]),
}

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Draws {
    /// The sums of dense layers, which have a simple distribution given their input ("local reparametrisation"): the same
    /// distribution of predictions for a fraction of the noise.
    #[default]
    Sums,
    /// Every weight, as the desktop does: the same networks from the same seed.
    Weights,
}

/// How a posterior is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// Posterior samples, 1 to 65536.
    pub samples: u32,
    /// The seed of the samples.
    pub seed: u64,
    /// What is drawn.
    pub draws: Draws,
    /// Whether the radius of the decision is wanted: one more pass, at the posterior's mean.
    pub radius: bool,
}

impl Sampling {
    /// So many samples of sums, seed 0, no radius.
    pub fn new(samples: u32) -> Self {
        Self {
            samples,
            seed: 0,
            draws: Draws::Sums,
            radius: false,
        }
    }
}

/// A model with the memory that it computes in.
///
/// `T` is `f32` or `Fixed`.
#[derive(Debug)]
pub struct Runtime<'a, 'm, T> {
    model: Model<'a>,
    plan: Plan,
    memory: &'m mut [Complex<T>],
}

impl<'a, 'm, T: Number> Runtime<'a, 'm, T> {
    /// Takes memory of at least [`Model::memory_len`] numbers; what it holds does not matter.
    pub fn new(model: Model<'a>, memory: &'m mut [Complex<T>]) -> Result<Self, EdgeError> {
        let plan = Plan::of(&model);
        let found = memory.len();
        let Some(memory) = memory.get_mut(..plan.total()) else {
            return Err(EdgeError::Memory {
                expected: plan.total(),
                found,
            });
        };
        let (mut roots, _) = memory.split_at_mut(plan.roots);
        for layer in model.layers() {
            let (own, rest) = roots.split_at_mut(layer.sizes().roots);
            layers::fill_roots(layer.kind, own);
            roots = rest;
        }
        Ok(Self {
            model,
            plan,
            memory,
        })
    }

    /// The model.
    pub fn model(&self) -> &Model<'a> {
        &self.model
    }

    /// Predicts from posterior samples.
    pub fn predict(
        &mut self,
        input: Input<'_>,
        sampling: &Sampling,
    ) -> Result<Prediction<'_, T>, EdgeError> {
        check_samples(sampling.samples)?;
        let (model, parts, norm) = self.load(input, sampling.radius)?;
        let Parts {
            roots,
            input,
            mut work,
            heads,
        } = parts;
        let mut tally = Tally::new(model, heads);
        for sample in 0..sampling.samples {
            let draw = Draw {
                seed: sampling.seed,
                sample,
            };
            let local = sampling.draws == Draws::Sums;
            logits(
                &model,
                roots,
                input,
                Some(draw),
                local,
                &mut work,
                tally.logits(),
            )?;
            tally.add()?;
        }
        let mut radius = None;
        if sampling.radius && model.task() == Task::Classes {
            logits(&model, roots, input, None, true, &mut work, tally.logits())?;
            radius = tally.radius(norm)?;
        }
        Ok(tally.finish(radius))
    }

    /// Predicts without samples: means and variances go through the network instead, as [`moments`](crate::moments) says.
    pub fn predict_moments(&mut self, input: Input<'_>) -> Result<Prediction<'_, T>, EdgeError> {
        let (model, parts, _) = self.load(input, false)?;
        let Parts {
            roots,
            input,
            mut work,
            heads,
        } = parts;
        moments::predict(&model, roots, input, &mut work, heads)
    }

    /// Puts an input where the first layer finds it; with its norm if that is wanted.
    fn load(
        &mut self,
        source: Input<'_>,
        with_norm: bool,
    ) -> Result<(Model<'a>, Parts<'_, T>, f32), EdgeError> {
        let model = self.model;
        let found = match source {
            Input::Bytes(bytes) => bytes.len(),
            Input::Floats(floats) => floats.len(),
        };
        if found != model.inputs() {
            return Err(EdgeError::Input {
                expected: model.inputs(),
                found,
            });
        }
        if let Input::Floats(floats) = source
            && !floats.iter().all(|value| value.is_finite())
        {
            return Err(EdgeError::NotFinite { what: "the input" });
        }
        let divisor = if model.unit { 255.0 } else { 1.0 };
        let value = |index: usize| {
            let value = match source {
                Input::Bytes(bytes) => f32::from(bytes[index]) / divisor,
                Input::Floats(floats) => floats[index],
            };
            let (mean, deviation) = model.normalisation(index);
            (value - mean) / deviation
        };
        let norm = if with_norm {
            let squares = (0..found).map(|index| value(index) * value(index));
            elementary::root(squares.sum::<f32>())
        } else {
            0.0
        };
        let mut parts = self.plan.cut(self.memory);
        if let Some(first) = model.layers().next() {
            let roots = &parts.roots[..first.sizes().roots];
            let value = |index: usize| T::single(value(index));
            layers::load(first.kind, roots, value, parts.input, &mut parts.work)?;
        }
        Ok((model, parts, norm))
    }
}

/// The logits of a draw, or of the posterior's mean.
fn logits<T: Number>(
    model: &Model<'_>,
    roots: &[Complex<T>],
    input: &[Complex<T>],
    draw: Option<Draw>,
    sums: bool,
    work: &mut crate::memory::Work<'_, T>,
    out: &mut [Complex<T>],
) -> Result<(), EdgeError> {
    let mut rest = roots;
    let mut from = Origin::Input(input);
    let mut bound = None;
    for (index, layer) in model.layers().enumerate() {
        let (own, others) = rest.split_at(layer.sizes().roots);
        rest = others;
        let local = Local { drawn: sums, bound };
        if index + 1 == model.layer_count() {
            let (noise, xi) = (&mut *work.noise, &mut *work.xi);
            let output = &*work.output;
            match from {
                Origin::Input(input) => {
                    dense(&layer, |i| get(input, i), draw, local, out, noise, xi)?;
                }
                Origin::Between => {
                    dense(&layer, |i| get(output, i), draw, local, out, noise, xi)?;
                }
            }
            return Ok(());
        }
        if let Origin::Between = from {
            let pairs = layer.inputs().div_ceil(2);
            work.between[..pairs].copy_from_slice(&work.output[..pairs]);
        }
        layers::hidden(&layer, own, &from, draw, local, work)?;
        bound = (layer.activation == Activation::Tanh).then_some(1.0);
        from = Origin::Between;
    }
    Ok(())
}
