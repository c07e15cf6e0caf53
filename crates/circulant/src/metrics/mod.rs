//! How good are predictions, how honest is their confidence, and do they know what they do not know?
//!
//! | question | functions |
//! | --- | --- |
//! | is it right? | [`accuracy`], [`negative_log_likelihood`], [`brier_score`] |
//! | is it honest? | [`expected_calibration_error`], [`maximum_calibration_error`], [`adaptive_calibration_error`], [`reliability_diagram`] |
//! | all of these | [`classification_report`], [`class_metrics`] for a table, and [`ClassificationMetrics`] for batches |
//! | how unsure is it? | [`entropies`], [`mutual_information`], [`max_probabilities`], [`energies`] |
//! | does it notice out-of-distribution inputs? | [`ood_report`], [`auroc`], [`aupr`], [`fpr95`] |
//! | how are the scores spread? | [`KernelDensity`], [`entropy_density`] |
//! | could it be chance? | [`Bootstrap`] |
//! | and numbers or counts instead of classes? | [`Mixtures`]: deviations, intervals, CRPS; [`regression_report`], [`RegressionMetrics`] for batches |
//!
//! Everything takes plain slices of `f32` or `f64`, row-major, and computes in `f64`; logarithms are natural.
//! [`Probabilities`] and [`Logits`] check the numbers once; the predictions of `circulant::bayes` go in as
//! `Probabilities::new(&predictions.probabilities, predictions.classes)`. Bad input is a [`MetricError`], never a number.
//! Work is spread over the threads of rayon, and the number of threads never shows in a result.
//!
//! ```
//! use circulant::metrics::{
//!     Bootstrap, DEFAULT_BINS, Probabilities, classification_report, entropies, ood_report,
//! };
//!
//! let test = [0.9_f32, 0.1, 0.3, 0.7, 0.6, 0.4, 0.2, 0.8];
//! let test = Probabilities::new(&test, 2)?;
//! let labels = [0_i64, 1, 1, 1];
//! let report = classification_report(&test, &labels, DEFAULT_BINS)?;
//! assert_eq!(report.accuracy, 0.75);
//!
//! // Familiar inputs should have the higher score: the negative entropy.
//! let unfamiliar = Probabilities::new(&[0.5_f32, 0.5, 0.65, 0.35], 2)?;
//! let score = |probabilities| -> Vec<f64> { entropies(probabilities).iter().map(|h| -h).collect() };
//! let (id, ood) = (score(&test), score(&unfamiliar));
//! assert_eq!(ood_report(&id, &ood)?.auroc, 7.0 / 8.0);
//!
//! let intervals = Bootstrap::new(42).ood(&id, &ood)?;
//! assert!(intervals.auroc.lower <= 7.0 / 8.0 && 7.0 / 8.0 <= intervals.auroc.upper);
//! # Ok::<(), circulant::metrics::MetricError>(())
//! ```

mod bootstrap;
mod calibration;
mod classification;
mod cosines;
mod density;
mod error;
mod evaluation;
mod mixture;
#[cfg(test)]
mod mixture_tests;
mod mixtures;
mod ood;
mod probabilities;
mod random;
mod regression;
mod rows;
mod scores;

pub use bootstrap::{Bootstrap, ClassificationIntervals, Interval, OodIntervals};
pub use calibration::{
    DEFAULT_BINS, ReliabilityBin, ReliabilityDiagram, adaptive_calibration_error,
    adaptive_reliability_diagram, expected_calibration_error, maximum_calibration_error,
    reliability_diagram,
};
pub use classification::{
    ClassificationMetrics, ClassificationReport, accuracy, brier_score, classification_report,
    negative_log_likelihood, negative_log_likelihood_of_logits,
};
pub use density::{DensityCurve, KernelDensity, entropy_density};
pub use error::MetricError;
pub use evaluation::{ClassMetrics, TABLE_BINS, class_metrics};
pub use mixture::Family;
pub use mixtures::Mixtures;
pub use ood::{OodReport, OodScores, aupr, auroc, fpr95, ood_report};
pub(crate) use probabilities::check_labels;
pub use probabilities::{Label, Logits, Probabilities, Real, Rows, SUM_TOLERANCE};
pub use regression::{IntervalCoverage, RegressionMetrics, RegressionReport, regression_report};
pub(crate) use rows::finite;
pub use scores::{energies, entropies, max_probabilities, mean_probabilities, mutual_information};

#[cfg(test)]
mod tests;
