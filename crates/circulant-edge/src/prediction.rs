//! What is known about one input, from the logits of several draws.

use circulant_core::{Complex, elementary};

use crate::EdgeError;
use crate::memory::{get, set};
use crate::model::{Model, Task};
use crate::number::Number;
use crate::outcomes;

/// The parts of the memory for outputs: logits, and sums over draws.
pub(crate) const SUMS: usize = 1;
pub(crate) const SQUARES: usize = 2;
pub(crate) const MEAN: usize = 3;

/// Sums over draws.
pub(crate) struct Tally<'m, 'a, T> {
    pub(crate) model: Model<'a>,
    heads: &'m mut [Complex<T>],
    /// From one part to the next: logits fill whole pairs.
    stride: usize,
    pub(crate) draws: u32,
    expected_entropy: f32,
}

/// What a network says about one input.
///
/// Probabilities are those of classes, averaged over posterior samples; entropies are in nats. For a
/// task of values or counts, see [`Self::mean`], [`Self::deviation`] and [`Self::noise`].
#[derive(Debug, Clone, Copy)]
pub struct Prediction<'m, T> {
    heads: &'m [Complex<T>],
    outputs: usize,
    /// From one part to the next.
    stride: usize,
    task: Task,
    /// The most probable class, the first of equals.
    pub class: usize,
    /// The entropy of the averaged probabilities: all uncertainty.
    pub predictive_entropy: f32,
    /// The average entropy of the samples: what no amount of data removes.
    pub expected_entropy: f32,
    /// The radius of the ball of inputs (2-norm, after normalisation) in which the decision of the posterior's mean
    /// network is the same, if it was asked for and the file has what it needs.
    pub radius: Option<Radius>,
}

/// A decision and how far it holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Radius {
    /// The decision of the posterior's mean network.
    pub class: usize,
    /// Zero if rounding could change it.
    pub radius: f32,
}

impl<'m, 'a, T: Number> Tally<'m, 'a, T> {
    pub(crate) fn new(model: Model<'a>, heads: &'m mut [Complex<T>]) -> Self {
        heads.fill(Complex::new(T::hold(0.0), T::hold(0.0)));
        Self {
            stride: model.logits().next_multiple_of(2),
            model,
            heads,
            draws: 0,
            expected_entropy: 0.0,
        }
    }

    /// Where the logits of the next draw go.
    pub(crate) fn logits(&mut self) -> &mut [Complex<T>] {
        let logits = self.model.logits();
        &mut self.heads[..logits.div_ceil(2)]
    }

    pub(crate) fn logit(&self, k: usize) -> f32 {
        get(self.heads, k).to_single()
    }

    pub(crate) fn add_to(&mut self, part: usize, k: usize, value: f32) {
        let place = self.place(part, k);
        let sum = get(self.heads, place).held() + value;
        set(self.heads, place, T::hold(sum));
    }

    pub(crate) fn sum(&self, part: usize, k: usize) -> f32 {
        get(self.heads, self.place(part, k)).held()
    }

    pub(crate) fn put(&mut self, part: usize, k: usize, value: f32) {
        let place = self.place(part, k);
        set(self.heads, place, T::hold(value));
    }

    fn place(&self, part: usize, k: usize) -> usize {
        part * self.stride + k
    }

    /// Takes the logits of a draw.
    #[inline(never)]
    pub(crate) fn add(&mut self) -> Result<(), EdgeError> {
        let outputs = self.model.outputs();
        self.draws += 1;
        if self.model.task() != Task::Classes {
            return outcomes::add(self);
        }
        let mut highest = f32::NEG_INFINITY;
        for k in 0..outputs {
            highest = highest.max(finite(self.logit(k))?);
        }
        let (mut total, mut moment) = (0.0, 0.0);
        for k in 0..outputs {
            let below = self.logit(k) - highest;
            let weight = elementary::exp(below);
            total += weight;
            moment += weight * below;
            set(self.heads, k, T::hold(weight));
        }
        self.expected_entropy += elementary::ln(total) - moment / total;
        let share = 1.0 / total;
        for k in 0..outputs {
            let probability = get(self.heads, k).held() * share;
            self.add_to(SUMS, k, probability);
            self.add_to(SQUARES, k, probability * probability);
        }
        Ok(())
    }

    /// Adds to mean and variance of a logit.
    pub(crate) fn add_moments(&mut self, k: usize, mean: f32, variance: f32) {
        self.add_to(SUMS, k, mean);
        self.add_to(SQUARES, k, variance);
    }

    /// Takes mean and variance of the logits in the place of draws.
    pub(crate) fn add_gaussian(&mut self) -> Result<(), EdgeError> {
        let outputs = self.model.outputs();
        if self.model.task() != Task::Classes {
            self.draws = 1;
            return outcomes::add_gaussian(self);
        }
        for k in 0..outputs {
            let variance = finite(self.sum(SQUARES, k))?;
            let shrink = elementary::root(1.0 + variance * core::f32::consts::FRAC_PI_8);
            let logit = finite(self.sum(SUMS, k))? / shrink;
            set(self.heads, k, T::single(logit));
            self.put(SUMS, k, 0.0);
            self.put(SQUARES, k, 0.0);
        }
        self.add()
    }

    /// The radius of the decision in the logits at hand, which are those of the posterior's mean, for an input of this norm.
    pub(crate) fn radius(&mut self, norm: f32) -> Result<Option<Radius>, EdgeError> {
        let outputs = self.model.outputs();
        let mut class = 0;
        for k in 0..outputs {
            let logit = finite(self.logit(k))?;
            self.put(MEAN, k, logit);
            if logit > self.logit(class) {
                class = k;
            }
        }
        if !T::CERTIFIED {
            return Ok(None);
        }
        let [slope, fixed] = self.model.rounding;
        let slack = 2.0 * (slope * norm + fixed);
        let mut radius = f32::INFINITY;
        for k in (0..outputs).filter(|&k| k != class) {
            let Some(bound) = self.model.difference_bound(class, k) else {
                return Ok(None);
            };
            let room = self.logit(class) - self.logit(k) - slack;
            // Rounded down: a few units in the last place cover the subtraction, the division and this product.
            let own = room / bound.max(f32::MIN_POSITIVE) * (1.0 - 1e-6);
            radius = radius.min(own);
        }
        // The rounding at the other end of the ball is known for inputs of at most twice the norm.
        let radius = radius.min(norm).max(0.0);
        Ok(Some(Radius { class, radius }))
    }

    /// What the draws say together.
    pub(crate) fn finish(mut self, radius: Option<Radius>) -> Prediction<'m, T> {
        let outputs = self.model.outputs();
        let share = 1.0 / self.draws.max(1) as f32;
        let (mut class, mut best, mut entropy) = (0, f32::NEG_INFINITY, 0.0);
        for k in 0..outputs {
            let mut mean = self.sum(SUMS, k) * share;
            let square = self.sum(SQUARES, k) * share;
            let variance = (square - mean * mean).max(0.0);
            if self.model.task() != Task::Classes {
                mean = outcomes::finish(&mut self, k, mean, share);
            }
            self.put(SUMS, k, mean);
            self.put(SQUARES, k, elementary::root(variance));
            if mean > best {
                (class, best) = (k, mean);
            }
            if mean > 0.0 && self.model.task() == Task::Classes {
                entropy -= mean * elementary::ln(mean);
            }
        }
        Prediction {
            outputs,
            stride: self.stride,
            class,
            predictive_entropy: entropy,
            expected_entropy: self.expected_entropy * share,
            radius,
            task: self.model.task(),
            heads: self.heads,
        }
    }
}

pub(crate) fn finite(logit: f32) -> Result<f32, EdgeError> {
    if logit.is_finite() {
        Ok(logit)
    } else {
        Err(EdgeError::NotFinite { what: "the logits" })
    }
}

impl<T: Number> Prediction<'_, T> {
    /// The average of output `k` over the samples: the probability of a class, a value, or the rate of a count.
    pub fn mean(&self, k: usize) -> f32 {
        self.part(SUMS, k)
    }

    /// Its standard deviation over the samples: of a value or a rate, what more data would remove.
    pub fn deviation(&self, k: usize) -> f32 {
        self.part(SQUARES, k)
    }

    /// The standard deviation of the noise around value `k`, or of a count of its rate: what no amount of data removes. Zero for a
    /// class.
    pub fn noise(&self, k: usize) -> f32 {
        match self.task {
            Task::Values | Task::Counts => self.part(MEAN, k),
            Task::Classes => 0.0,
        }
    }

    /// The logit of class `k` at the posterior's mean, if a radius was asked for.
    pub fn mean_logit(&self, k: usize) -> f32 {
        match self.task {
            Task::Values | Task::Counts => 0.0,
            Task::Classes => self.part(MEAN, k),
        }
    }

    fn part(&self, part: usize, k: usize) -> f32 {
        let place = part * self.stride + k.min(self.outputs - 1);
        get(self.heads, place).held()
    }

    /// The probabilities of all classes.
    pub fn probabilities(&self) -> impl Iterator<Item = f32> + '_ {
        (0..self.outputs).map(|k| self.mean(k))
    }

    /// What more data would remove, in nats.
    pub fn mutual_information(&self) -> f32 {
        (self.predictive_entropy - self.expected_entropy).max(0.0)
    }
}
