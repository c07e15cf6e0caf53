//! What can be wrong with the sizes that a layer is asked for.

use circulant_kernels::KernelError;

/// A configuration that no layer can have. Every message says what was expected and what was
/// found.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
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
}
