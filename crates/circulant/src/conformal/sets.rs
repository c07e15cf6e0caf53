//! Sets of classes.

use burn::config::Config;
use serde::Serialize;

use super::quantile::threshold;
use super::{ConformalError, SetMethod};
use crate::metrics::{Label, MetricError, Probabilities, Real};
use crate::noise::{NoiseKey, uniform_u64};

/// Streams of the random part of scores.
const CALIBRATION: u64 = 0;
const PREDICTION: u64 = 1;

/// How sets are calibrated.
#[derive(Config, Debug)]
pub struct ConformalConfig {
    /// How often the true class is in the set, at least.
    #[config(default = 0.9)]
    pub coverage: f64,
    /// The score.
    #[config(default = "SetMethod::Threshold")]
    pub method: SetMethod,
    /// With a seed, [`SetMethod::Aps`] and [`SetMethod::Raps`] take a random part of a class's own probability: smaller sets.
    pub randomised: Option<u64>,
}

/// Calibrated sets.
#[derive(Debug, Clone, Serialize)]
pub struct ConformalSets {
    config: ConformalConfig,
    classes: usize,
    /// How many examples were calibrated on.
    examples: usize,
    threshold: f64,
}

/// Bounds of class probabilities, row-major `[rows, classes]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbabilityBounds {
    /// The number of classes.
    pub classes: usize,
    /// At least this.
    pub lower: Vec<f64>,
    /// At most this.
    pub upper: Vec<f64>,
}

/// A set of classes for every input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PredictionSets {
    classes: usize,
    /// `[rows, classes]`.
    members: Vec<bool>,
}

/// How good sets are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SetSummary {
    /// The number of inputs.
    pub inputs: usize,
    /// The share whose true class is in its set.
    pub coverage: f64,
    /// Classes per set.
    pub mean_size: f64,
    /// The share of sets of one class.
    pub single: f64,
    /// The share of sets without a class.
    pub empty: f64,
}

impl ConformalConfig {
    /// Finds the threshold on examples that the model has not learned from.
    pub fn calibrate<T: Real, L: Label>(
        &self,
        probabilities: &Probabilities<'_, T>,
        labels: &[L],
    ) -> Result<ConformalSets, ConformalError> {
        self.method.checked()?;
        let labels = probabilities.check_labels(labels)?;
        let mut of_label = Vec::with_capacity(labels.len());
        for (row, (values, label)) in rows(probabilities).zip(&labels).enumerate() {
            let u = self.own_share(CALIBRATION, row);
            of_label.push(self.method.scores(&values, &values, u)[*label]);
        }
        Ok(ConformalSets {
            config: self.clone(),
            classes: probabilities.classes(),
            examples: labels.len(),
            threshold: threshold(of_label, self.coverage)?,
        })
    }

    /// What class `k` counts of its own probability: everything, or a random part.
    fn own_share(&self, stream: u64, row: usize) -> f64 {
        let random = |seed| {
            (uniform_u64(NoiseKey { seed, stream }, row as u64) >> 11) as f64 / (1_u64 << 53) as f64
        };
        self.randomised.map_or(1.0, random)
    }
}

fn rows<'a, T: Real>(
    probabilities: &Probabilities<'a, T>,
) -> impl Iterator<Item = Vec<f64>> + use<'a, T> {
    let rows = probabilities.values().chunks_exact(probabilities.classes());
    rows.map(|row| row.iter().map(|&p| p.into()).collect())
}

impl ConformalSets {
    /// How they were calibrated.
    pub fn config(&self) -> &ConformalConfig {
        &self.config
    }

    /// The largest score in a set.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// The number of examples that were calibrated on.
    pub fn examples(&self) -> usize {
        self.examples
    }

    /// The sets of other inputs.
    pub fn sets<T: Real>(
        &self,
        probabilities: &Probabilities<'_, T>,
    ) -> Result<PredictionSets, ConformalError> {
        self.check_classes(probabilities.classes())?;
        let mut members = Vec::with_capacity(probabilities.values().len());
        for (row, values) in rows(probabilities).enumerate() {
            self.extend(&mut members, row, &values, &values, 0.0);
        }
        Ok(PredictionSets {
            classes: self.classes,
            members,
        })
    }

    /// Sets that hold the true class as often as [`Self::sets`] although every input was moved after it was drawn, if the bounds hold for the
    /// probabilities of the inputs as they were: those of
    /// [`PredictiveBounds::probability_bounds`](crate::geometry::PredictiveBounds::probability_bounds), or your own.
    ///
    /// A class belongs to the set if its score can be at most the threshold within the bounds.
    pub fn robust_sets(
        &self,
        bounds: &ProbabilityBounds,
    ) -> Result<PredictionSets, ConformalError> {
        self.check_classes(bounds.classes)?;
        bounds.check()?;
        let mut members = Vec::with_capacity(bounds.lower.len());
        let parts = bounds
            .lower
            .chunks_exact(self.classes)
            .zip(bounds.upper.chunks_exact(self.classes));
        for (row, (lower, upper)) in parts.enumerate() {
            // Sums of bounds and of probabilities are rounded differently.
            let slack = 4.0 * self.classes as f64 * f64::EPSILON;
            self.extend(&mut members, row, lower, upper, slack);
        }
        Ok(PredictionSets {
            classes: self.classes,
            members,
        })
    }

    fn extend(
        &self,
        members: &mut Vec<bool>,
        row: usize,
        lower: &[f64],
        upper: &[f64],
        slack: f64,
    ) {
        let u = self.config.own_share(PREDICTION, row);
        let scores = self.config.method.scores(lower, upper, u);
        members.extend(scores.iter().map(|score| score - slack <= self.threshold));
    }

    fn check_classes(&self, got: usize) -> Result<(), ConformalError> {
        if got == self.classes {
            return Ok(());
        }
        let expected = self.classes;
        Err(ConformalError::Classes { expected, got })
    }
}

impl ProbabilityBounds {
    fn check(&self) -> Result<(), ConformalError> {
        if self.lower.is_empty() || !self.lower.len().is_multiple_of(self.classes) {
            let (values, classes) = (self.lower.len(), self.classes);
            return Err(MetricError::NotWholeRows { values, classes }.into());
        }
        if self.lower.len() != self.upper.len() {
            return Err(MetricError::Length {
                what: "the upper bounds",
                expected: self.lower.len(),
                got: self.upper.len(),
            }
            .into());
        }
        let mut pairs = self.lower.iter().zip(&self.upper);
        match pairs.position(|(lower, upper)| !(*lower >= 0.0 && lower <= upper && *upper <= 1.0)) {
            None => Ok(()),
            Some(at) => Err(ConformalError::Bounds {
                row: at / self.classes,
                class: at % self.classes,
                lower: self.lower[at],
                upper: self.upper[at],
            }),
        }
    }
}

impl PredictionSets {
    /// The number of inputs.
    pub fn rows(&self) -> usize {
        self.members.len() / self.classes
    }

    /// Which classes are in the set of an input, one flag per class.
    ///
    /// # Panics
    ///
    /// Panics if there is no such input.
    pub fn members(&self, row: usize) -> &[bool] {
        &self.members[row * self.classes..][..self.classes]
    }

    /// The classes in the set of an input, in ascending order.
    ///
    /// # Panics
    ///
    /// Panics if there is no such input.
    pub fn classes_of(&self, row: usize) -> impl Iterator<Item = usize> + '_ {
        let members = self.members(row).iter().enumerate();
        members.filter_map(|(class, member)| member.then_some(class))
    }

    /// How often the true class is in its set, and how large the sets are.
    pub fn summary<L: Label>(&self, labels: &[L]) -> Result<SetSummary, ConformalError> {
        let labels = crate::metrics::check_labels(labels, self.rows(), self.classes)?;
        let sizes: Vec<usize> = (0..self.rows())
            .map(|row| self.classes_of(row).count())
            .collect();
        let inputs = labels.len();
        let share = |count: usize| count as f64 / inputs as f64;
        let covered = labels
            .iter()
            .enumerate()
            .filter(|&(row, &label)| self.members(row)[label]);
        Ok(SetSummary {
            inputs,
            coverage: share(covered.count()),
            mean_size: share(sizes.iter().sum()),
            single: share(sizes.iter().filter(|&&size| size == 1).count()),
            empty: share(sizes.iter().filter(|&&size| size == 0).count()),
        })
    }
}
