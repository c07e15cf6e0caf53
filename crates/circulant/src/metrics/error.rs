//! What can be wrong with the input of a metric.

use super::mixture::Family;
use super::probabilities::SUM_TOLERANCE;

/// An error of the metrics. Every message says what was expected, what was found and what to do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// No data at all.
    #[error("{what}: expected at least one, got none; check that the data set was read")]
    Empty {
        /// What is missing.
        what: &'static str,
    },
    /// A count that must be at least one.
    #[error("the number of {what} must be at least 1, got 0; pass a positive number")]
    Zero {
        /// What is counted.
        what: &'static str,
    },
    /// A matrix with an incomplete row.
    #[error(
        "expected a multiple of {classes} values (rows x classes), got {values}; \
         pass the whole matrix in row-major order and its number of columns"
    )]
    NotWholeRows {
        /// How many values there are.
        values: usize,
        /// The number of classes.
        classes: usize,
    },
    /// A probability that is negative, above one, NaN or infinite.
    #[error(
        "row {row}, class {class}: expected a probability in [0, 1], got {got}; \
         pass the output of softmax, not logits"
    )]
    Probability {
        /// The index of the row.
        row: usize,
        /// The class.
        class: usize,
        /// The value.
        got: f64,
    },
    /// Probabilities that do not sum to one.
    #[error(
        "row {row}: expected probabilities that sum to 1 within {SUM_TOLERANCE}, got the sum {sum}; \
         apply softmax, or divide the row by its sum"
    )]
    NotNormalised {
        /// The index of the row.
        row: usize,
        /// Its sum.
        sum: f64,
    },
    /// A logit that is NaN or infinite.
    #[error(
        "row {row}, class {class}: expected a finite logit, got {got}; \
         look for a diverged model, or for masked classes and leave these out"
    )]
    Logit {
        /// The index of the row.
        row: usize,
        /// The class.
        class: usize,
        /// The value.
        got: f64,
    },
    /// Two slices that do not belong together.
    #[error("{what}: expected {expected}, one per row, got {got}; pass both of the same rows")]
    Length {
        /// Which values.
        what: &'static str,
        /// How many are needed.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// A label that is no class.
    #[error(
        "row {row}: expected a label in 0..{classes}, got {label}; \
         count classes from zero and leave out rows without a label"
    )]
    Label {
        /// The index of the row.
        row: usize,
        /// The label as text, since its type is the caller's.
        label: String,
        /// The number of classes.
        classes: usize,
    },
    /// Batches with different numbers of classes.
    #[error("expected {expected} classes as in the batches before, got {got}; use one per model")]
    Classes {
        /// Classes so far.
        expected: usize,
        /// Classes of the new batch.
        got: usize,
    },
    /// Accumulators with different bins.
    #[error("expected an accumulator with {expected} bins, got {got}; create both with the same")]
    BinsDiffer {
        /// Bins of this one.
        expected: usize,
        /// Bins of the other.
        got: usize,
    },
    /// A score that is NaN or infinite.
    #[error("{what}, index {index}: expected a finite number, got {got}; remove or repair the row")]
    NotFinite {
        /// Which values.
        what: &'static str,
        /// The position.
        index: usize,
        /// The value.
        got: f64,
    },
    /// A file that does not hold what it should.
    #[error("expected a whole file of {what}, found {found}; make it again")]
    Record {
        /// What was expected.
        what: &'static str,
        /// What was found.
        found: String,
    },
    /// More scores than counters can hold.
    #[error("{what}: expected at most {max} values, got {got}; take a random part of them")]
    TooMany {
        /// Which values.
        what: &'static str,
        /// The limit.
        max: usize,
        /// How many there are.
        got: usize,
    },
    /// A number that must be positive and finite.
    #[error("{what} must be positive and finite, got {got}")]
    NotPositive {
        /// Which number.
        what: &'static str,
        /// The value.
        got: f64,
    },
    /// A share outside its range.
    #[error("{what} must lie strictly between 0 and 1, got {got}; 95 % is 0.95")]
    Share {
        /// Which share.
        what: &'static str,
        /// The value.
        got: f64,
    },
    /// Rows that cannot be split into samples of equal size.
    #[error(
        "expected a multiple of {samples} rows (samples x inputs), got {rows}; \
         pass all samples of the first input set, sample after sample"
    )]
    Samples {
        /// The number of posterior samples.
        samples: usize,
        /// The number of rows.
        rows: usize,
    },
    /// An interval without inside.
    #[error("expected an interval with finite ends, lower below upper, got [{lower}, {upper}]")]
    Interval {
        /// Its lower end.
        lower: f64,
        /// Its upper end.
        upper: f64,
    },
    /// A value that the density excludes.
    #[error(
        "value {index}: expected a number in [{lower}, {upper}], got {got}; \
         widen the interval or leave the value out"
    )]
    OutsideInterval {
        /// The position.
        index: usize,
        /// The value.
        got: f64,
        /// The lower end.
        lower: f64,
        /// The upper end.
        upper: f64,
    },
    /// A curve that is no line.
    #[error("a curve needs at least 2 points, got {got}; for single points use evaluate")]
    Points {
        /// The number of points.
        got: usize,
    },
    /// Data from which no bandwidth follows.
    #[error(
        "Scott's bandwidth needs at least two different values, got {count} equal; \
         choose the bandwidth with KernelDensity::with_bandwidth"
    )]
    NoSpread {
        /// How many values there are.
        count: usize,
    },
    /// A statistic that was not a number.
    #[error(
        "expected a number from the statistic, got NaN {}; \
         the statistic must be defined for every choice of rows",
        match resample { Some(index) => format!("in resample {index}"), None => "on the data".into() }
    )]
    Statistic {
        /// The resample, or none for the data themselves.
        resample: Option<usize>,
    },
    /// Predictions of another distribution.
    #[error(
        "expected predictions of the {expected:?} family, got {got:?}; use one per set of predictions"
    )]
    OtherFamily {
        /// What is needed.
        expected: Family,
        /// What there is.
        got: Family,
    },
}
