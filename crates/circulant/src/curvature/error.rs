//! What can be wrong with a module, a subspace or a vector.

use burn::tensor::DType;

/// An error of the curvature. Every message says what was expected, what was found and what to do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CurvatureError {
    /// A name that no trainable parameter has.
    #[error("no trainable parameter matches {pattern:?}; the module has {known:?}")]
    UnknownParameter {
        /// The name or pattern.
        pattern: String,
        /// The trainable parameters.
        known: Vec<String>,
    },
    /// Nothing is left to differentiate by.
    #[error(
        "the subspace holds no numbers; the module's trainable parameters are {known:?}; \
         choose some of them, or unfreeze the module"
    )]
    EmptySubspace {
        /// The trainable parameters.
        known: Vec<String>,
    },
    /// A module without automatic differentiation.
    #[error(
        "curvature needs gradients, and {path:?} is on a device without them; \
         make the module and its inputs on `device.autodiff()`"
    )]
    NoGradients {
        /// A parameter.
        path: String,
    },
    /// Results that are not in f64.
    #[error(
        "{what} must be computed in f64, got {got:?}; cast the inputs to f64, or configure the device for f64 \
         (`device.configure(FloatDType::F64)`, once per process, before any tensor)"
    )]
    NumberType {
        /// What was computed.
        what: &'static str,
        /// The number type found.
        got: DType,
    },
    /// A module that gives another result each time.
    #[error(
        "the objective must not be random: two evaluations gave {first} and {second}; \
         switch off sampling, and dropout that does not follow Burn's training flags"
    )]
    Random {
        /// The first value.
        first: f64,
        /// The second.
        second: f64,
    },
    /// A parameter, a gradient or a logit that is NaN or infinite.
    #[error("{what} is NaN or infinite; look at the parameters and at the size of the inputs")]
    NotFinite {
        /// What.
        what: String,
    },
    /// Sizes that do not fit together.
    #[error("{what}: expected {expected}, got {got}")]
    Shape {
        /// Which size.
        what: &'static str,
        /// What is needed.
        expected: String,
        /// What there is.
        got: String,
    },
    /// A label that is no class.
    #[error(
        "label {label} of example {example} is outside 0..{classes}; labels are indices of the logits"
    )]
    Label {
        /// The index of the example.
        example: usize,
        /// Its label.
        label: usize,
        /// The number of classes.
        classes: usize,
    },
    /// A number outside its range.
    #[error("{what} must be {expected}, got {got}")]
    Setting {
        /// Which number.
        what: &'static str,
        /// What is allowed.
        expected: &'static str,
        /// What was given.
        got: f64,
    },
    /// A Gauss-Newton product of an objective that has no logits.
    #[error(
        "Gauss-Newton products need logits, and this objective is a plain loss; \
         make it with Objective::cross_entropy"
    )]
    NoLogits,
    /// The small eigenvalue problem of an iteration failed.
    #[error(
        "the eigenvalues of the projected matrix of {size} rows did not converge; use Method::Power"
    )]
    Projected {
        /// The number of rows.
        size: usize,
    },
}
