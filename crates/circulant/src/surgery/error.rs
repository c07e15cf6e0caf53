//! What can be wrong with a layer that is to be replaced.

use crate::LayerError;

/// An error of the surgery. Every message says what was expected, what was found and what to do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SurgeryError {
    /// A weight that is NaN or infinite.
    #[error("{layer} has a weight that is NaN or infinite; load another checkpoint")]
    NotFinite {
        /// The layer.
        layer: String,
    },
    /// A matrix whose sides do not fit the channels and the grid.
    #[error(
        "the matrix must be {expected:?} for these channels and this grid, got {got:?}; \
         its sides are channels * height * width"
    )]
    Shape {
        /// `[C_in*H*W, C_out*H*W]`.
        expected: [usize; 2],
        /// `[in, out]`.
        got: [usize; 2],
    },
    /// A parameter that the dense module has nothing for.
    #[error(
        "{path}: expected a parameter of the shape {expected:?}, or the weight of a dense layer for a structured one, {found}; \
         give both modules the same paths and sizes"
    )]
    NoSource {
        /// The parameter.
        path: String,
        /// Its shape.
        expected: Vec<usize>,
        /// What the dense module has.
        found: String,
    },
    /// Sizes that no layer can have.
    #[error(transparent)]
    Layer(#[from] LayerError),
}

impl SurgeryError {
    /// Names the layer in an error.
    pub(super) fn of_layer(path: &str) -> impl Fn(Self) -> Self + '_ {
        move |error| match error {
            Self::NotFinite { .. } => Self::NotFinite {
                layer: path.to_owned(),
            },
            other => other,
        }
    }
}
