//! What can be wrong with a network, an input or a limit.

use burn::tensor::DType;
use circulant_kernels::{KernelError, SizeError};

use crate::bayes::BayesError;
use crate::parallel::ParallelError;

/// An error of the geometry. Every message says what was expected, what was found and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// A layer whose Lipschitz constant is not known.
    #[error("{layer} has no Lipschitz bound: {reason}")]
    NoBound {
        /// The layer.
        layer: String,
        /// Why.
        reason: String,
    },
    /// A layer whose f32 rounding errors are not known, so that no certificate can be given.
    #[error(
        "{layer} has a Lipschitz bound but no bound of its rounding errors, so no radius can be certified; \
         describe it with the layers of this library"
    )]
    NoRounding {
        /// The layer.
        layer: String,
    },
    /// A parameter that is NaN or infinite.
    #[error(
        "{layer}: a parameter is NaN or infinite; train again with a lower learning rate, or load another checkpoint"
    )]
    NotFinite {
        /// The layer.
        layer: String,
    },
    /// An input that is NaN or infinite.
    #[error("number {position} of input {input} is NaN or infinite; clean the data first")]
    NotFiniteInput {
        /// The index of the input.
        input: usize,
        /// The position within it.
        position: usize,
    },
    /// A logit that is NaN or infinite.
    #[error(
        "the logits of input {input} are not finite; look at the parameters and at the size of the inputs"
    )]
    NotFiniteLogits {
        /// The index of the input.
        input: usize,
    },
    /// A label that is no class.
    #[error(
        "label {label} of input {input} is outside 0..{classes}; labels are the indices of the logits"
    )]
    Label {
        /// The index of the input.
        input: usize,
        /// Its label.
        label: usize,
        /// The number of classes.
        classes: usize,
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
    /// A layer that is described for another number of inputs than it gets.
    #[error(
        "{layer} takes {expected} numbers, got {got}; the inputs or the order of the layers in the description are wrong, \
         or the layer is applied to several rows of one input, which is not bounded"
    )]
    LayerInputs {
        /// The layer.
        layer: String,
        /// What it takes.
        expected: usize,
        /// What it gets.
        got: usize,
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
    /// An input outside the ball for which rounding errors are bounded.
    #[error(
        "input {input} has the norm {norm}, above the largest norm {limit} of the certificate; give a larger input norm"
    )]
    InputNorm {
        /// The index of the input.
        input: usize,
        /// Its norm.
        norm: f64,
        /// The largest norm.
        limit: f64,
    },
    /// A device whose arithmetic was not analysed.
    #[error(
        "certificates are about the forward pass on the CPU, got inputs on {got}; move model and inputs to circulant::cpu()"
    )]
    Device {
        /// The device.
        got: String,
    },
    /// Arithmetic that was not analysed.
    #[error(
        "{what}: certificates are about arithmetic in F32, got {got:?}; cast model and inputs by `cast(FloatDType::F32)`"
    )]
    NumberType {
        /// The inputs, a parameter or a layer.
        what: String,
        /// The type of its values.
        got: DType,
    },
    /// A prior whose scale is random, for which the tail bound does not hold.
    #[error(
        "layer {layer}: the slope of the prior is learned, so its variances are random; \
         use a prior of fixed slope for the tail bound"
    )]
    LearnedSlope {
        /// The index of the layer.
        layer: usize,
    },
    /// The posterior could not be made or drawn from.
    #[error(transparent)]
    Bayes(#[from] BayesError),
    /// Sizes that the kernels refuse.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// Several processes that cannot go on.
    #[error(transparent)]
    Parallel(#[from] ParallelError),
}

impl From<SizeError> for GeometryError {
    fn from(error: SizeError) -> Self {
        Self::Kernel(error.into())
    }
}

impl GeometryError {
    /// Names the layer in an error of a kernel.
    pub(super) fn of_layer(layer: &str) -> impl Fn(KernelError) -> Self + '_ {
        move |error| match error {
            KernelError::NotFinite { .. } => Self::NotFinite {
                layer: layer.to_owned(),
            },
            other => Self::Kernel(other),
        }
    }
}
