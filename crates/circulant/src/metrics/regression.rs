//! How good are predictive distributions of numbers or counts? Error, likelihood, CRPS and coverage in one pass over all data or
//! over batches.

use serde::Serialize;

use super::rows::{Sum, by_chunks};
use super::{MetricError, Mixtures, Real};

/// Nominal coverages of the intervals that are checked: 0.05, 0.10, ... 0.95.
const LEVELS: usize = 19;
/// Which of them is 0.90.
const NINETY: usize = 17;

fn level(index: usize) -> f64 {
    (index + 1) as f64 / (LEVELS + 1) as f64
}

/// How often central intervals of one nominal coverage hold the target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct IntervalCoverage {
    /// How often they should.
    pub nominal: f64,
    /// How often they do.
    pub observed: f64,
}

/// Everything about one set of predictions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RegressionReport {
    /// The number of rows.
    pub rows: u64,
    /// The root mean square of the error of the mean.
    pub rmse: f64,
    /// The mean absolute error of the mean.
    pub mae: f64,
    /// The mean of `log p(y)`; larger is better.
    pub log_likelihood: f64,
    /// The mean of the continuous ranked probability score, in the unit of the targets.
    pub crps: f64,
    /// The share of targets in the central 90 % interval.
    pub coverage90: f64,
    /// The mean width of that interval.
    pub width90: f64,
    /// The mean of `|observed - nominal|` over the coverages 0.05 to 0.95.
    pub calibration_error: f64,
}

/// All metrics of one set of predictions.
pub fn regression_report<T: Real>(
    predictions: &Mixtures,
    targets: &[T],
) -> Result<RegressionReport, MetricError> {
    let mut metrics = RegressionMetrics::default();
    metrics.update(predictions, targets)?;
    metrics.finish()
}

/// The metrics of predictions that come in batches. It keeps sums only; how the rows are cut into batches changes no more than
/// the last bits.
///
/// ```
/// use circulant::metrics::{Mixtures, RegressionMetrics};
///
/// let mut metrics = RegressionMetrics::default();
/// for target in [-1.0, 0.0, 1.0, 9.0] {
///     metrics.update(&Mixtures::gaussian(1, vec![0.0], vec![1.0])?, &[target])?;
/// }
/// let report = metrics.finish()?;
/// assert_eq!(report.rows, 4);
/// assert_eq!(report.coverage90, 0.75);
/// # Ok::<(), circulant::metrics::MetricError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct RegressionMetrics {
    rows: u64,
    squares: Sum,
    errors: Sum,
    log_likelihood: Sum,
    crps: Sum,
    width: Sum,
    covered: [u64; LEVELS],
}

impl RegressionMetrics {
    /// Takes a batch. After an error nothing has changed.
    pub fn update<T: Real>(
        &mut self,
        predictions: &Mixtures,
        targets: &[T],
    ) -> Result<(), MetricError> {
        let targets = predictions.targets(targets)?;
        let parts = by_chunks(targets.len(), |range| {
            let mut part = Self::default();
            range.for_each(|row| part.add(predictions, row, targets[row]));
            part
        });
        parts.iter().for_each(|part| self.merge(part));
        Ok(())
    }

    fn add(&mut self, predictions: &Mixtures, row: usize, y: f64) {
        let mixture = predictions.row(row);
        let error = y - mixture.moments().mean;
        self.rows += 1;
        self.squares.add(error * error);
        self.errors.add(error.abs());
        self.log_likelihood.add(mixture.log_likelihood(y));
        self.crps.add(mixture.crps(y));
        let [lower, upper] = [0.05, 0.95].map(|p| mixture.quantile(p));
        self.width.add(upper - lower);
        // `y` is not below the lower end where `P(Y <= y) >= tail`, and not above the upper one where `P(Y < y) < 1 - tail`.
        let (at_most, below) = (mixture.cdf(y), mixture.cdf_below(y));
        for (index, covered) in self.covered.iter_mut().enumerate() {
            let tail = (1.0 - level(index)) / 2.0;
            *covered += u64::from(at_most >= tail && below < 1.0 - tail);
        }
    }

    /// Takes all that another accumulator has seen.
    pub fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        for (own, other) in [
            (&mut self.squares, other.squares),
            (&mut self.errors, other.errors),
            (&mut self.log_likelihood, other.log_likelihood),
            (&mut self.crps, other.crps),
            (&mut self.width, other.width),
        ] {
            own.merge(other);
        }
        for (own, other) in self.covered.iter_mut().zip(other.covered) {
            *own += other;
        }
    }

    /// The number of rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How often the intervals of every nominal coverage hold the target so far.
    pub fn coverage(&self) -> Result<Vec<IntervalCoverage>, MetricError> {
        if self.rows == 0 {
            return Err(MetricError::Empty { what: "the rows" });
        }
        let share = |(index, &covered): (usize, &u64)| IntervalCoverage {
            nominal: level(index),
            observed: covered as f64 / self.rows as f64,
        };
        Ok(self.covered.iter().enumerate().map(share).collect())
    }

    /// The metrics of all rows so far; more may follow.
    pub fn finish(&self) -> Result<RegressionReport, MetricError> {
        let coverage = self.coverage()?;
        let mean = |sum: Sum| sum.value() / self.rows as f64;
        let gaps = coverage.iter().map(|c| (c.observed - c.nominal).abs());
        Ok(RegressionReport {
            rows: self.rows,
            rmse: mean(self.squares).sqrt(),
            mae: mean(self.errors),
            log_likelihood: mean(self.log_likelihood),
            crps: mean(self.crps),
            coverage90: coverage[NINETY].observed,
            width90: mean(self.width),
            calibration_error: gaps.sum::<f64>() / LEVELS as f64,
        })
    }
}
