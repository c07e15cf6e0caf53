//! The figures of a results table: what predictions with known classes are worth, in ten bins and in fifteen.

use serde::Serialize;

use super::{
    Label, MetricError, Probabilities, Real, ReliabilityDiagram, classification_report,
    expected_calibration_error, reliability_diagram,
};

/// Bins of the paper's tables.
pub const TABLE_BINS: usize = 10;
/// Bins of the second calibration error.
const MORE_BINS: usize = 15;

/// On data of the training distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ClassMetrics {
    /// The number of inputs.
    pub inputs: u64,
    /// The share that is right.
    pub accuracy: f64,
    /// Mean of `-log p` of the true class.
    pub nll: f64,
    /// The Brier score.
    pub brier: f64,
    /// Expected calibration error, 10 bins.
    pub ece: f64,
    /// Expected calibration error, 15 bins.
    pub ece15: f64,
    /// Maximum calibration error, 10 bins.
    pub mce: f64,
}

/// The metrics of labelled data, and the reliability diagram behind them.
///
/// ```
/// use circulant::metrics::{Probabilities, class_metrics};
///
/// let probabilities = Probabilities::new(&[0.9, 0.1, 0.3, 0.7], 2)?;
/// let (metrics, diagram) = class_metrics(&probabilities, &[0_usize, 0])?;
/// assert_eq!((metrics.inputs, metrics.accuracy), (2, 0.5));
/// assert_eq!(diagram.bins.len(), 10);
/// # Ok::<(), circulant::metrics::MetricError>(())
/// ```
pub fn class_metrics<T: Real, L: Label>(
    probabilities: &Probabilities<'_, T>,
    labels: &[L],
) -> Result<(ClassMetrics, ReliabilityDiagram), MetricError> {
    let report = classification_report(probabilities, labels, TABLE_BINS)?;
    let diagram = reliability_diagram(probabilities, labels, TABLE_BINS)?;
    let metrics = ClassMetrics {
        inputs: report.rows,
        accuracy: report.accuracy,
        nll: report.nll,
        brier: report.brier,
        ece: report.ece,
        ece15: expected_calibration_error(probabilities, labels, MORE_BINS)?,
        mce: report.mce,
    };
    Ok((metrics, diagram))
}
