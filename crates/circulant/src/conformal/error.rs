//! What can be wrong with a calibration or with what it is applied to.

use crate::metrics::MetricError;

/// An error of conformal prediction. Every message says what was expected, what was found and what to do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConformalError {
    /// A coverage outside its range.
    #[error("the coverage must lie strictly between 0 and 1, got {got}; 90 % is 0.9")]
    Coverage {
        /// The coverage.
        got: f64,
    },
    /// Too few examples for the coverage.
    #[error(
        "a coverage of {coverage} needs at least {needed} calibration examples, got {got}; hold out more, or ask for less"
    )]
    TooFew {
        /// What was asked.
        coverage: f64,
        /// The smallest number of examples for it.
        needed: usize,
        /// How many there are.
        got: usize,
    },
    /// A penalty that is none.
    #[error("the penalty per rank must be at least 0 and finite, got {got}")]
    Penalty {
        /// The penalty.
        got: f64,
    },
    /// Another number of classes than in calibration.
    #[error(
        "expected the {expected} classes of the calibration, got {got}; use the predictions of one model"
    )]
    Classes {
        /// Of the calibration.
        expected: usize,
        /// Of the predictions.
        got: usize,
    },
    /// A deviation that is no scale.
    #[error(
        "row {row}: expected a positive, finite deviation, got {got}; pass 1 everywhere for intervals of one width"
    )]
    Deviation {
        /// The index of the row.
        row: usize,
        /// The deviation.
        got: f64,
    },
    /// Bounds that exclude each other.
    #[error(
        "row {row}, class {class}: expected bounds with 0 <= lower <= upper <= 1, got {lower} and {upper}"
    )]
    Bounds {
        /// The index of the row.
        row: usize,
        /// The class.
        class: usize,
        /// The lower bound.
        lower: f64,
        /// The upper bound.
        upper: f64,
    },
    /// What is wrong with probabilities, labels or other values.
    #[error(transparent)]
    Input(#[from] MetricError),
}
