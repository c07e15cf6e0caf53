//! What can be wrong with the sizes that a layer is asked for.

use circulant_kernels::{KernelError, SizeError};

/// A configuration that no layer can have. Every message says what was expected and what was
/// found.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// A size or a mask that the half spectrum does not allow.
    #[error(transparent)]
    Layout(#[from] KernelError),
    /// A size that must divide another one.
    #[error("{what}: {size} is not a multiple of {unit}")]
    NotMultiple {
        /// Which size.
        what: &'static str,
        /// The size.
        size: usize,
        /// What it should be a multiple of.
        unit: usize,
    },
    /// The length of a block that no matrix of these sizes has.
    #[error("block: expected a length from 1 to {most}, the larger side of the layer, got {got}")]
    Block {
        /// The length that was asked for.
        got: usize,
        /// The larger of the sizes.
        most: usize,
    },
    /// The side of a kernel that has no centre, or does not fit the images.
    #[error(
        "kernel: expected an odd side from 1 to {most}, the shorter side of the images, got {got}"
    )]
    Kernel {
        /// The side that was asked for.
        got: usize,
        /// The shorter side of the images.
        most: usize,
    },
    /// A word that names no kind of projection.
    #[error(
        "{got:?} is no projection: expected `dense`, `spectral`, `diagonal`, or `block-` with a length such as `block-16`"
    )]
    Projection {
        /// The word.
        got: String,
    },
    /// A count that must be one at least.
    #[error("{what}: expected one at least, got 0")]
    Zero {
        /// What is counted.
        what: &'static str,
    },
    /// Circulant and dense layers have no channels of their own.
    #[error(
        "channels: this kind of layer keeps those of the image, {expected}, got {got}; \
         leave them out, or take a BCCB or convolutional layer"
    )]
    Channels {
        /// Those of the image.
        expected: usize,
        /// What was asked for.
        got: usize,
    },
    /// A setting that only one kind of hidden layer has.
    #[error("{what}: only {kind} layers have them; leave them out, or take such layers")]
    OtherKind {
        /// Which setting.
        what: &'static str,
        /// The kind that has it.
        kind: &'static str,
    },
}

impl From<SizeError> for LayerError {
    fn from(error: SizeError) -> Self {
        Self::Layout(error.into())
    }
}
