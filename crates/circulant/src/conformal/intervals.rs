//! Intervals around a mean, as wide as its deviation says and as wide as calibration asks.

use serde::Serialize;

use super::ConformalError;
use super::quantile::threshold;
use crate::metrics::{MetricError, Real, finite};

/// Calibrated intervals `mean -+ factor deviation`, whatever the regressor behind mean and deviation is.
///
/// ```
/// use circulant::conformal::ConformalIntervals;
///
/// let (means, deviations) = ([0.0, 1.0, 2.0, 3.0], [1.0, 1.0, 2.0, 2.0]);
/// let intervals = ConformalIntervals::calibrate(0.6, &means, &deviations, &[0.5, 0.0, 2.0, 6.0])?;
/// // The third smallest of 0.5, 1, 0, 1.5.
/// assert_eq!(intervals.factor(), 1.0);
/// assert_eq!(intervals.interval(10.0, 0.5), [9.5, 10.5]);
/// # Ok::<(), circulant::conformal::ConformalError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ConformalIntervals {
    coverage: f64,
    examples: usize,
    factor: f64,
}

/// How good intervals are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct IntervalSummary {
    /// The number of inputs.
    pub inputs: usize,
    /// The share whose target is in its interval.
    pub coverage: f64,
    /// The mean width.
    pub mean_width: f64,
}

impl ConformalIntervals {
    /// Finds the factor on examples that the regressor has not learned from.
    pub fn calibrate<T: Real>(
        coverage: f64,
        means: &[T],
        deviations: &[T],
        targets: &[T],
    ) -> Result<Self, ConformalError> {
        let rows = checked(means, deviations)?;
        let targets = finite("the targets", targets)?;
        same_length("the targets", rows.len(), targets.len())?;
        let score =
            |(&[mean, deviation], target): (&[f64; 2], f64)| (target - mean).abs() / deviation;
        let scores: Vec<f64> = rows.iter().zip(targets).map(score).collect();
        Ok(Self {
            coverage,
            examples: scores.len(),
            factor: threshold(scores, coverage)?,
        })
    }

    /// How often the target is in the interval, at least.
    pub fn coverage(&self) -> f64 {
        self.coverage
    }

    /// The number of examples that were calibrated on.
    pub fn examples(&self) -> usize {
        self.examples
    }

    /// What deviations are multiplied by; infinite where a deviation was too small for the miss.
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// `[lower, upper]`.
    pub fn interval(&self, mean: f64, deviation: f64) -> [f64; 2] {
        let half = self.factor * deviation;
        [mean - half, mean + half]
    }

    /// The intervals of other inputs.
    pub fn intervals<T: Real>(
        &self,
        means: &[T],
        deviations: &[T],
    ) -> Result<Vec<[f64; 2]>, ConformalError> {
        let rows = checked(means, deviations)?;
        Ok(rows
            .iter()
            .map(|&[mean, deviation]| self.interval(mean, deviation))
            .collect())
    }

    /// How often the target is in its interval, and how wide the intervals are.
    pub fn summary<T: Real>(
        &self,
        means: &[T],
        deviations: &[T],
        targets: &[T],
    ) -> Result<IntervalSummary, ConformalError> {
        let rows = checked(means, deviations)?;
        let targets = finite("the targets", targets)?;
        same_length("the targets", rows.len(), targets.len())?;
        let inputs = rows.len();
        // By the score, as in calibration: the ends of the interval are rounded.
        let inside = |(&[mean, deviation], target): (&[f64; 2], f64)| {
            (target - mean).abs() / deviation <= self.factor
        };
        let covered = rows
            .iter()
            .zip(targets)
            .filter(|&(row, target)| inside((row, target)))
            .count();
        let widths: f64 = rows
            .iter()
            .map(|[_, deviation]| 2.0 * self.factor * deviation)
            .sum();
        Ok(IntervalSummary {
            inputs,
            coverage: covered as f64 / inputs as f64,
            mean_width: widths / inputs as f64,
        })
    }
}

fn same_length(what: &'static str, expected: usize, got: usize) -> Result<(), MetricError> {
    if expected == got {
        return Ok(());
    }
    Err(MetricError::Length {
        what,
        expected,
        got,
    })
}

/// Pairs of mean and deviation.
fn checked<T: Real>(means: &[T], deviations: &[T]) -> Result<Vec<[f64; 2]>, ConformalError> {
    let means = finite("the means", means)?;
    same_length("the deviations", means.len(), deviations.len())?;
    let pair = |(row, (mean, &deviation)): (usize, (f64, &T))| {
        let deviation: f64 = deviation.into();
        if deviation > 0.0 && deviation.is_finite() {
            Ok([mean, deviation])
        } else {
            Err(ConformalError::Deviation {
                row,
                got: deviation,
            })
        }
    };
    means
        .into_iter()
        .zip(deviations)
        .enumerate()
        .map(pair)
        .collect()
}
