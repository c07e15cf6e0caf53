//! What can stop a training.

use super::CheckpointError;
use crate::parallel::ParallelError;

/// Why training cannot begin or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainingError {
    /// Training produced NaN or infinity.
    #[error(
        "step {step}: {what} is not finite; lower the learning rate, or go back to the last checkpoint"
    )]
    Diverged {
        /// The step.
        step: u64,
        /// What.
        what: String,
    },
    /// A batch that is empty, or whose labels do not fit it.
    #[error("expected one label below {classes} for each of the {inputs} inputs, got {labels:?}")]
    Labels {
        /// The number of inputs.
        inputs: usize,
        /// The number of classes.
        classes: usize,
        /// The labels.
        labels: Vec<usize>,
    },
    /// A setting outside its range.
    #[error("{what} must be {expected}, got {got}")]
    Setting {
        /// Which setting.
        what: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        got: f64,
    },
    /// A checkpoint that cannot be written or used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Several processes that cannot begin or go on.
    #[error(transparent)]
    Parallel(#[from] ParallelError),
}
