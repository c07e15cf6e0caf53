//! Predictions of one input after the other.

use circulant_core::{Complex, elementary};

use crate::dense::dense;
use crate::gaussian::Draw;
use crate::layer::{Activation, Layer};
use crate::layers::{self, Origin};
use crate::memory::{Parts, Plan, Work};
use crate::model::{Model, Task, check_samples};
use crate::moments;
use crate::number::Number;
use crate::pixels::{Input, Pixels};
use crate::prediction::{Prediction, Tally};
use crate::{EdgeError, WEIGHTS};

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Draws {
    /// The sums of dense layers and of the channels of a first layer, which have a simple distribution given their input ("local
    /// reparametrisation"): the same distribution of predictions for a fraction of the noise, which is cheaper noise, too.
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
/// `T` is `f32`, or [`Fixed`](crate::Fixed) for processors without a unit for floats, which gives no radii.
#[derive(Debug)]
pub struct Runtime<'a, 'm, T> {
    model: Model<'a>,
    plan: Plan,
    /// Whether the memory suffices for drawing weights.
    whole: bool,
    memory: &'m mut [Complex<T>],
}

impl<'a, 'm, T: Number> Runtime<'a, 'm, T> {
    /// Takes memory of at least [`Model::memory_len`] numbers, or of [`Model::memory_len_for`] what is to be drawn; what it holds
    /// does not matter.
    pub fn new(model: Model<'a>, memory: &'m mut [Complex<T>]) -> Result<Self, EdgeError> {
        let found = memory.len();
        let mut plan = Plan::of(&model, Draws::Weights);
        let whole = plan.total() <= found;
        if !whole {
            plan = Plan::of(&model, Draws::Sums);
        }
        let Some(memory) = memory.get_mut(..plan.total()) else {
            return Err(EdgeError::Memory {
                expected: plan.total(),
                found,
            });
        };
        let (mut roots, _) = memory.split_at_mut(plan.roots);
        for layer in model.layers() {
            let (own, rest) = roots.split_at_mut(layer.roots_len());
            layers::fill_roots(layer.kind, own);
            roots = rest;
        }
        Ok(Self {
            model,
            plan,
            whole,
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
        if !WEIGHTS && sampling.draws == Draws::Weights {
            return Err(EdgeError::LeftOut { what: "weights" });
        }
        let Loaded {
            model,
            parts,
            sums,
            norm,
        } = self.load(input, sampling.draws, sampling.radius)?;
        let Parts {
            roots,
            input,
            mut work,
            heads,
        } = parts;
        let from = if sums {
            Origin::Sums(&input[..model.sums_len()])
        } else {
            Origin::Input(input)
        };
        let layers = Layers::of(&model);
        let mut tally = Tally::new(model, heads);
        for sample in 0..sampling.samples {
            let draw = Draw {
                seed: sampling.seed,
                sample,
                draws: sampling.draws,
            };
            logits(&layers, roots, from, Some(draw), &mut work, tally.logits())?;
            tally.add()?;
        }
        let mut radius = None;
        if sampling.radius && model.task() == Task::Classes {
            logits(&layers, roots, from, None, &mut work, tally.logits())?;
            radius = tally.radius(norm)?;
        }
        Ok(tally.finish(radius))
    }

    /// Predicts without samples: means and variances go through the network instead, as [`moments`](crate::moments) says.
    pub fn predict_moments(&mut self, input: Input<'_>) -> Result<Prediction<'_, T>, EdgeError> {
        let Loaded {
            model, parts, sums, ..
        } = self.load(input, Draws::Sums, false)?;
        let Parts {
            roots,
            input,
            mut work,
            heads,
        } = parts;
        let from = if sums {
            Origin::Sums(&input[..model.sums_len()])
        } else {
            Origin::Input(input)
        };
        moments::predict(&model, roots, from, &mut work, heads)
    }

    /// Puts an input where the first layer finds it; with its norm if that is wanted.
    fn load(
        &mut self,
        source: Input<'_>,
        draws: Draws,
        with_norm: bool,
    ) -> Result<Loaded<'a, '_, T>, EdgeError> {
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
        if draws == Draws::Weights && !self.whole {
            return Err(EdgeError::Memory {
                expected: model.memory_len(),
                found: self.memory.len(),
            });
        }
        let value = Pixels::new(&model, source);
        let norm = if with_norm {
            let squares = (0..found).map(|index| value.at::<T>(index).to_single());
            elementary::root(squares.map(|x| x * x).sum::<f32>())
        } else {
            0.0
        };
        let mut parts = self.plan.cut(self.memory);
        let mut sums = false;
        if let Some(first) = model.layers().next() {
            sums = draws == Draws::Sums && first.sums_len() > 0;
            let roots = &parts.roots[..first.roots_len()];
            layers::load(
                &first,
                roots,
                &value,
                [sums, with_norm],
                parts.input,
                &mut parts.work,
            )?;
        }
        Ok(Loaded {
            model,
            parts,
            sums,
            norm,
        })
    }
}

/// An input in its place.
struct Loaded<'a, 'm, T> {
    model: Model<'a>,
    parts: Parts<'m, T>,
    /// Whether the place holds sums over channels.
    sums: bool,
    norm: f32,
}

/// The layers of a model, of which the first ones are read once for all draws.
struct Layers<'a> {
    model: Model<'a>,
    first: [Option<Layer<'a>>; 2],
}

impl<'a> Layers<'a> {
    fn of(model: &Model<'a>) -> Self {
        let mut layers = model.layers();
        Self {
            model: *model,
            first: [layers.next(), layers.next()],
        }
    }
}

/// The logits of a draw, or of the posterior's mean.
#[inline(never)]
fn logits<T: Number>(
    layers: &Layers<'_>,
    roots: &[Complex<T>],
    mut from: Origin<'_, T>,
    draw: Option<Draw>,
    work: &mut Work<'_, T>,
    out: &mut [Complex<T>],
) -> Result<(), EdgeError> {
    let count = layers.model.layer_count();
    let mut rest = roots;
    let mut bound = None;
    for index in 0..count {
        let read;
        let layer = match layers.first.get(index) {
            Some(layer) => layer,
            None => {
                read = layers.model.layers().nth(index);
                &read
            }
        };
        let Some(layer) = layer else { break };
        let (own, others) = rest.split_at(layer.roots_len());
        rest = others;
        if index + 1 == count {
            let x = match from {
                Origin::Input(input) | Origin::Sums(input) => input,
                Origin::Between => &*work.output,
            };
            dense(layer, x, draw, bound, out, work.xi);
            return Ok(());
        }
        if let Origin::Between = from {
            layers::hand_over(layer, work);
        }
        layers::hidden(layer, own, from, draw, bound, work)?;
        bound = (layer.activation == Activation::Tanh).then_some(1.0);
        from = Origin::Between;
    }
    Ok(())
}
