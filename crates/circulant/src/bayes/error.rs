//! What can be wrong with a prior, a posterior or a training run.

use circulant_kernels::KernelError;

use crate::data::ExamplesError;
use crate::metrics::MetricError;
use crate::parallel::ParallelError;
use crate::record::RecordError;
use crate::train::CheckpointError;

/// An error of the Bayesian part. Every message says what was expected, what was found and, where it
/// is not plain, what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BayesError {
    /// A number that must be positive and finite.
    #[error("{what} must be positive and finite, got {got}")]
    NotPositive {
        /// Which number.
        what: &'static str,
        /// Its value.
        got: f64,
    },
    /// A slope below zero or not finite.
    #[error("alpha must be finite and at least 0, got {got}; 0 is the flat spectrum")]
    Slope {
        /// The value.
        got: f64,
    },
    /// A table that is not the spectrum of a real stationary process.
    #[error(
        "the spectrum must be symmetric, S(k) = S(-k): bin {bin} has {value}, its mirror {mirror}"
    )]
    Asymmetric {
        /// The index of the bin in the full grid.
        bin: usize,
        /// Its variance.
        value: f64,
        /// The variance at `-k`.
        mirror: f64,
    },
    /// A slice of the wrong length.
    #[error("{what}: expected {expected} values, got {got}")]
    Length {
        /// Which values.
        what: &'static str,
        /// How many are needed.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// A rank that no low-rank posterior can have.
    #[error("{path}: the rank must be in 1..={max}, got {got}; rank 0 is the mean-field posterior")]
    Rank {
        /// The parameter.
        path: String,
        /// The rank.
        got: usize,
        /// The number of coordinates.
        max: usize,
    },
    /// A prior made for another number of coordinates.
    #[error("{path}: the prior has {prior} variances but the parameter {parameter} numbers")]
    PriorSize {
        /// The parameter.
        path: String,
        /// Variances of the prior.
        prior: usize,
        /// Numbers of the parameter.
        parameter: usize,
    },
    /// A choice for a parameter that the model does not have.
    #[error("the model has no trainable parameter {path:?}; it has {}", known.join(", "))]
    UnknownParameter {
        /// The path that was asked for.
        path: String,
        /// The paths of the model.
        known: Vec<String>,
    },
    /// A layer that the network does not have.
    #[error("the network has no parameters directly below {path:?}; it has some below {}", known.join(", "))]
    UnknownLayer {
        /// The path that was asked for.
        path: String,
        /// The layers of the network.
        known: Vec<String>,
    },
    /// No examples, or no samples.
    #[error("{what} is empty: at least one example is needed")]
    Empty {
        /// What is empty.
        what: &'static str,
    },
    /// Predictions that cannot be judged.
    #[error(transparent)]
    Metric(#[from] MetricError),
    /// Examples that nothing can be learned from.
    #[error(transparent)]
    Examples(#[from] ExamplesError),
    /// A logit that is NaN or infinite.
    #[error(
        "the logits of input {input} are not finite in some posterior sample; \
         look at the parameters and at the size of the inputs"
    )]
    NotFiniteLogits {
        /// The index of the input.
        input: usize,
    },
    /// A predictive distribution that is none.
    #[error(
        "the predictions of input {input} are not finite in some posterior sample; \
         look at the parameters and at the size of the inputs"
    )]
    NotFinitePrediction {
        /// The index of the input.
        input: usize,
    },
    /// Training produced NaN or infinity.
    #[error(
        "step {step}: {what} is not finite, first in {parameter}; \
         lower the learning rate, clip gradients, or go back to the last checkpoint"
    )]
    Diverged {
        /// The step.
        step: u64,
        /// The loss or a gradient.
        what: &'static str,
        /// The parameter that is not finite.
        parameter: String,
    },
    /// A checkpoint that cannot be written or used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Several processes that cannot begin or go on.
    #[error(transparent)]
    Parallel(#[from] ParallelError),
    /// A relative deviation of nothing.
    #[error(
        "{path}: all initial numbers of its layer are zero, so a deviation relative to them is zero too; \
         give an absolute one"
    )]
    NoSize {
        /// The parameter.
        path: String,
    },
    /// A setting outside its range.
    #[error("{what} must be {expected}, got {got}")]
    Setting {
        /// Which setting.
        what: &'static str,
        /// What is allowed.
        expected: &'static str,
        /// What was given.
        got: String,
    },
    /// The projection after a step failed.
    #[error("step {step}: the projection of the network failed: {source}")]
    Projection {
        /// Steps done before it.
        step: u64,
        /// What the projection said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The parameters do not fit the model.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Sizes that the kernels refuse.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}
