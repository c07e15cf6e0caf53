//! Sets of classes and intervals that hold the truth as often as asked, whatever the model: split conformal prediction.
//!
//! Held-out examples that the model has not learned from, and that are exchangeable with the inputs to come, are scored by how badly the truth
//! fits the prediction. With the scores `s_1, ..., s_n` and the coverage `c`, the threshold `q` is the `ceil((n + 1) c)`-th smallest score, and all
//! answers with a score of at most `q` belong to the set. Then
//!
//! ```text
//! c <= P(the truth is in the set) <= c + 1/(n + 1)
//! ```
//!
//! over the draw of calibration and input together; the upper bound needs scores without ties.
//!
//! | score | formula | sets |
//! | --- | --- | --- |
//! | [`SetMethod::Threshold`] | `1 - p_k` | the smallest on average; may be empty |
//! | [`SetMethod::Aps`] | the probability of all classes above `k`, and of `k` itself (times `u`) | large where the input is hard |
//! | [`SetMethod::Raps`] | that and a penalty for every rank after the first few | the same without the long tail |
//! | [`ConformalIntervals`] | `abs(y - mean)/deviation` | intervals `mean -+ q deviation` |
//!
//! `u` is 1, or uniform in `[0, 1)` with [`ConformalConfig::with_randomised`]: smaller sets, and the upper bound of the coverage holds.
//!
//! The promise is about inputs like the calibration examples. [`ConformalSets::robust_sets`] keeps it when somebody moves an input, given how far its
//! probabilities can move.
//!
//! ```
//! use circulant::conformal::ConformalConfig;
//! use circulant::metrics::Probabilities;
//!
//! // Held-out predictions and their classes.
//! let held_out = [0.9, 0.1, 0.8, 0.2, 0.3, 0.7, 0.6, 0.4];
//! let labels = [0_usize, 0, 1, 1];
//! let sets = ConformalConfig::new().with_coverage(0.75).calibrate(&Probabilities::new(&held_out, 2)?, &labels)?;
//! // The fourth smallest of the scores 0.1, 0.2, 0.3, 0.6.
//! assert_eq!(sets.threshold(), 0.6);
//! let found = sets.sets(&Probabilities::new(&[0.5, 0.5, 0.95, 0.05], 2)?)?;
//! assert_eq!(found.classes_of(0).collect::<Vec<_>>(), [0, 1]);
//! assert_eq!(found.classes_of(1).collect::<Vec<_>>(), [0]);
//! // Four examples cannot promise 90 %.
//! let error = ConformalConfig::new().calibrate(&Probabilities::new(&held_out, 2)?, &labels).unwrap_err();
//! assert!(error.to_string().contains("at least 9"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod intervals;
mod quantile;
mod scores;
mod sets;

pub use self::error::ConformalError;
pub use self::intervals::{ConformalIntervals, IntervalSummary};
pub use self::quantile::smallest_calibration;
pub use self::scores::SetMethod;
pub use self::sets::{
    ConformalConfig, ConformalSets, PredictionSets, ProbabilityBounds, SetSummary,
};

#[cfg(test)]
mod tests;
