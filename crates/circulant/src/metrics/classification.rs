//! How good are class probabilities? Accuracy, negative log likelihood and Brier score, alone, or with
//! the calibration errors in one pass over all data or over batches.
//!
//! | metric | mean over rows of |
//! | --- | --- |
//! | accuracy | `1[argmax_k p_k = y]`, the first of equal ones |
//! | negative log likelihood | `-ln p_y` |
//! | Brier score | `sum_k (p_k - 1[y = k])^2`, between 0 and 2 |

use serde::Serialize;

use super::MetricError;
use super::calibration::{EqualWidth, Outcome, ReliabilityDiagram, check_bins, equal_mass};
use super::probabilities::{Label, Logits, Probabilities, Real, Rows, log_sum_exp, top};
use super::rows::{Sum, by_chunks};

/// The share of rows whose most probable class is their label.
pub fn accuracy<T: Real, L: Label>(
    probabilities: &Probabilities<'_, T>,
    labels: &[L],
) -> Result<f64, MetricError> {
    mean(probabilities, labels, |row, label| {
        if top(row).0 == label { 1.0 } else { 0.0 }
    })
}

/// The mean of `-ln p_y`.
///
/// A label with probability exactly 0 makes it `f64::INFINITY`: the model ruled out what happened. Nothing
/// is clipped, because then the result would be the logarithm of the clip. From logits the metric is always
/// finite: [`negative_log_likelihood_of_logits`].
pub fn negative_log_likelihood<T: Real, L: Label>(
    probabilities: &Probabilities<'_, T>,
    labels: &[L],
) -> Result<f64, MetricError> {
    mean(probabilities, labels, surprise)
}

/// The mean of `ln sum_k exp(f_k) - f_y`, the negative log likelihood of `softmax(f)`.
pub fn negative_log_likelihood_of_logits<T: Real, L: Label>(
    logits: &Logits<'_, T>,
    labels: &[L],
) -> Result<f64, MetricError> {
    mean(logits, labels, |row, label| {
        log_sum_exp(row, 1.0) - row[label].into()
    })
}

/// The mean of `sum_k (p_k - 1[y = k])^2`.
pub fn brier_score<T: Real, L: Label>(
    probabilities: &Probabilities<'_, T>,
    labels: &[L],
) -> Result<f64, MetricError> {
    mean(probabilities, labels, squared_error)
}

fn mean<T: Real, L: Label>(
    rows: &Rows<'_, T>,
    labels: &[L],
    of_row: impl Fn(&[T], usize) -> f64 + Sync,
) -> Result<f64, MetricError> {
    let labels = rows.check_labels(labels)?;
    let parts = by_chunks(labels.len(), |range| {
        let mut sum = Sum::default();
        for (row, &label) in rows.rows_in(range.clone()).zip(&labels[range]) {
            sum.add(of_row(row, label));
        }
        sum
    });
    let mut sum = Sum::default();
    parts.into_iter().for_each(|part| sum.merge(part));
    Ok(sum.value() / labels.len() as f64)
}

/// `-ln p_y`; a probability that rounding lifted above one counts as one.
pub(super) fn surprise<T: Real>(row: &[T], label: usize) -> f64 {
    // `0 -` rather than a sign, so that certainty is 0 and not -0.
    0.0 - row[label].into().min(1.0).ln()
}

pub(super) fn squared_error<T: Real>(row: &[T], label: usize) -> f64 {
    let mut sum = 0.0;
    for (class, &p) in row.iter().enumerate() {
        let p: f64 = p.into();
        let error = if class == label { p - 1.0 } else { p };
        sum += error * error;
    }
    sum
}

/// Everything about one set of predictions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ClassificationReport {
    /// The number of rows.
    pub rows: u64,
    /// The share of right predictions.
    pub accuracy: f64,
    /// Negative log likelihood in nats. Infinite when a label had probability 0, which JSON shows as null.
    pub nll: f64,
    /// Brier score.
    pub brier: f64,
    /// Expected calibration error, bins of equal width.
    pub ece: f64,
    /// Maximum calibration error, bins of equal width.
    pub mce: f64,
    /// Expected calibration error, bins of equal mass.
    pub adaptive_ece: f64,
}

/// All metrics of one set of predictions; 15 bins ([`super::DEFAULT_BINS`]) are usual.
pub fn classification_report<T: Real, L: Label>(
    probabilities: &Probabilities<'_, T>,
    labels: &[L],
    bins: usize,
) -> Result<ClassificationReport, MetricError> {
    let mut metrics = ClassificationMetrics::new(bins)?;
    metrics.update(probabilities, labels)?;
    metrics.finish()
}

/// The metrics of predictions that come in batches.
///
/// It keeps 8 bytes per row, which the bins of equal mass need, and otherwise sums. How the rows
/// are cut into batches changes no more than the last bits.
///
/// ```
/// use circulant::metrics::{ClassificationMetrics, DEFAULT_BINS, Probabilities};
///
/// let mut metrics = ClassificationMetrics::new(DEFAULT_BINS)?;
/// metrics.update(&Probabilities::new(&[0.9_f32, 0.1], 2)?, &[0_i64])?;
/// metrics.update(&Probabilities::new(&[0.2_f32, 0.8, 0.6, 0.4], 2)?, &[1_i64, 1])?;
/// let report = metrics.finish()?;
/// assert_eq!(report.rows, 3);
/// assert_eq!(report.accuracy, 2.0 / 3.0);
/// # Ok::<(), circulant::metrics::MetricError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ClassificationMetrics {
    /// None before the first batch.
    classes: Option<usize>,
    sums: Sums,
    outcomes: Vec<Outcome>,
}

#[derive(Debug, Clone)]
struct Sums {
    right: u64,
    surprise: Sum,
    squared_error: Sum,
    bins: EqualWidth,
}

impl Sums {
    fn new(bins: EqualWidth) -> Self {
        Self {
            right: 0,
            surprise: Sum::default(),
            squared_error: Sum::default(),
            bins,
        }
    }

    fn merge(&mut self, other: &Self) {
        self.right += other.right;
        self.surprise.merge(other.surprise);
        self.squared_error.merge(other.squared_error);
        self.bins.merge(&other.bins);
    }
}

impl ClassificationMetrics {
    /// An accumulator with this many calibration bins.
    pub fn new(bins: usize) -> Result<Self, MetricError> {
        Ok(Self {
            classes: None,
            sums: Sums::new(EqualWidth::new(bins)?),
            outcomes: Vec::new(),
        })
    }

    /// The number of rows so far.
    pub fn rows(&self) -> usize {
        self.outcomes.len()
    }

    /// Takes a batch. After an error nothing has changed.
    pub fn update<T: Real, L: Label>(
        &mut self,
        probabilities: &Probabilities<'_, T>,
        labels: &[L],
    ) -> Result<(), MetricError> {
        let labels = probabilities.check_labels(labels)?;
        self.check_classes(Some(probabilities.classes()))?;
        let parts = by_chunks(labels.len(), |range| {
            let mut sums = Sums::new(self.sums.bins.empty());
            let mut outcomes = Vec::with_capacity(range.len());
            for (row, &label) in probabilities.rows_in(range.clone()).zip(&labels[range]) {
                let (class, confidence) = top(row);
                let (confidence, right) = (confidence.min(1.0), class == label);
                sums.right += u64::from(right);
                sums.surprise.add(surprise(row, label));
                sums.squared_error.add(squared_error(row, label));
                sums.bins.add(confidence, right, 1);
                outcomes.push(Outcome::new(confidence, right));
            }
            (sums, outcomes)
        });
        self.classes = Some(probabilities.classes());
        self.outcomes.reserve(labels.len());
        for (sums, outcomes) in parts {
            self.sums.merge(&sums);
            self.outcomes.extend(outcomes);
        }
        Ok(())
    }

    /// Takes all that another accumulator has seen. After an error nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), MetricError> {
        let (expected, got) = (self.sums.bins.len(), other.sums.bins.len());
        if expected != got {
            return Err(MetricError::BinsDiffer { expected, got });
        }
        self.check_classes(other.classes)?;
        self.classes = self.classes.or(other.classes);
        self.sums.merge(&other.sums);
        self.outcomes.extend_from_slice(&other.outcomes);
        Ok(())
    }

    fn check_classes(&self, got: Option<usize>) -> Result<(), MetricError> {
        match (self.classes, got) {
            (Some(expected), Some(got)) if expected != got => {
                Err(MetricError::Classes { expected, got })
            }
            _ => Ok(()),
        }
    }

    /// The metrics of all rows so far; more may follow.
    pub fn finish(&self) -> Result<ClassificationReport, MetricError> {
        let equal_width = self.reliability_diagram()?;
        let equal_mass = self.adaptive_reliability_diagram(self.sums.bins.len())?;
        let rows = self.rows() as f64;
        Ok(ClassificationReport {
            rows: self.rows() as u64,
            accuracy: self.sums.right as f64 / rows,
            nll: self.sums.surprise.value() / rows,
            brier: self.sums.squared_error.value() / rows,
            ece: equal_width.expected_calibration_error(),
            mce: equal_width.maximum_calibration_error(),
            adaptive_ece: equal_mass.expected_calibration_error(),
        })
    }

    /// Bins of equal width; see [`super::reliability_diagram`].
    pub fn reliability_diagram(&self) -> Result<ReliabilityDiagram, MetricError> {
        self.check_rows()?;
        Ok(self.sums.bins.diagram())
    }

    /// Any number of bins of equal mass; see [`super::adaptive_reliability_diagram`].
    pub fn adaptive_reliability_diagram(
        &self,
        bins: usize,
    ) -> Result<ReliabilityDiagram, MetricError> {
        self.check_rows()?;
        check_bins(bins)?;
        let mut sorted = self.outcomes.clone();
        sorted.sort_unstable();
        Ok(equal_mass(bins, sorted.iter().map(|&outcome| (outcome, 1))))
    }

    fn check_rows(&self) -> Result<(), MetricError> {
        if self.outcomes.is_empty() {
            return Err(MetricError::Empty { what: "the rows" });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certainty_costs_nothing_when_right_and_everything_when_wrong() {
        let probabilities = Probabilities::new(&[1.0_f32, 0.0], 2).expect("valid");
        let right = classification_report(&probabilities, &[0], 15).expect("valid");
        assert_eq!((right.accuracy, right.nll, right.brier), (1.0, 0.0, 0.0));
        assert!(right.nll.is_sign_positive());
        let wrong = classification_report(&probabilities, &[1], 15).expect("valid");
        assert_eq!(wrong.nll, f64::INFINITY);
        assert_eq!((wrong.accuracy, wrong.brier, wrong.ece), (0.0, 2.0, 1.0));
    }

    #[test]
    fn accumulators_refuse_what_does_not_fit() {
        let two = Probabilities::new(&[0.5, 0.5], 2).expect("valid");
        let three = Probabilities::new(&[0.5, 0.5, 0.0], 3).expect("valid");
        let mut metrics = ClassificationMetrics::new(5).expect("bins");
        let empty = MetricError::Empty { what: "the rows" };
        assert_eq!(metrics.finish(), Err(empty.clone()));
        assert_eq!(metrics.adaptive_reliability_diagram(5), Err(empty));
        metrics.update(&two, &[0]).expect("fits");
        let classes = MetricError::Classes {
            expected: 2,
            got: 3,
        };
        assert_eq!(metrics.update(&three, &[0]), Err(classes.clone()));
        let mut other = ClassificationMetrics::new(5).expect("bins");
        metrics.merge(&other).expect("nothing to add");
        other.update(&three, &[0]).expect("fits");
        assert_eq!(metrics.merge(&other), Err(classes));
        let bins = ClassificationMetrics::new(7).expect("bins");
        let differ = MetricError::BinsDiffer {
            expected: 5,
            got: 7,
        };
        assert_eq!(metrics.merge(&bins), Err(differ));
        assert_eq!(metrics.rows(), 1);
        assert!(ClassificationMetrics::new(0).is_err());
        assert!(metrics.update(&two, &[2]).is_err());
    }

    #[test]
    fn logits_give_a_finite_likelihood() {
        let logits = Logits::new(&[800.0_f32, 0.0], 2).expect("valid");
        let nll = negative_log_likelihood_of_logits(&logits, &[1]).expect("valid");
        assert_eq!(nll, 800.0);
        assert!(negative_log_likelihood_of_logits(&logits, &[2]).is_err());
    }
}
