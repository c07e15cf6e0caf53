//! What can be wrong with examples.

/// Examples that nothing can be learned from. Every message says what was expected and what was found.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExamplesError {
    /// A data set without examples, or a batch of none.
    #[error("{what} is empty: at least one example is needed")]
    Empty {
        /// What is empty.
        what: &'static str,
    },
    /// A label that is no class.
    #[error("label {label} of example {example} is outside 0..{classes}")]
    Label {
        /// The index of the example.
        example: usize,
        /// Its label.
        label: i64,
        /// The number of classes.
        classes: usize,
    },
    /// An input that is NaN or infinite.
    #[error(
        "number {position} of example {example} is not finite (NaN or infinity); clean the data first"
    )]
    NotFiniteInput {
        /// The index of the example.
        example: usize,
        /// The position within it.
        position: usize,
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
    /// A target that no network can learn.
    #[error("target {target} of example {example}: expected {expected}")]
    Target {
        /// The index of the example.
        example: usize,
        /// Its target.
        target: f32,
        /// What it may be.
        expected: &'static str,
    },
    /// A weight that no example can have.
    #[error("weight {weight} of example {example}: expected a finite number from 0")]
    Weight {
        /// The index of the example.
        example: usize,
        /// Its weight.
        weight: f32,
    },
    /// Examples that could not be read.
    #[error("the examples could not be read: {message}")]
    Unreadable {
        /// Why.
        message: String,
    },
}
