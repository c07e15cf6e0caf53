//! What can be wrong with a checkpoint from elsewhere.

use std::path::PathBuf;

/// An error of loading. Every message says what was expected, what was found and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PretrainedError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a whole checkpoint.
    #[error("{} is not a complete file of safetensors or PyTorch: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        message: String,
    },
    /// Names of no known library.
    #[error(
        "{}: expected the names of timm, torchvision or Hugging Face for a vision transformer, found {found:?}; \
         describe them with a NameMap",
        path.display()
    )]
    UnknownNames {
        /// The file.
        path: PathBuf,
        /// The tensors of the file.
        found: Vec<String>,
    },
    /// Tensors of the file that the map does not name or the module has no place for.
    #[error(
        "{}: no place for {names:?} in the module; make the module with the sizes of the checkpoint, add rules to the NameMap, \
         or leave them out with NameMap::ignoring; the module has {expected:?}",
        path.display()
    )]
    Unused {
        /// The file.
        path: PathBuf,
        /// The tensors without a place, and where the map would put them.
        names: Vec<String>,
        /// The parameters of the module.
        expected: Vec<String>,
    },
    /// Parameters of the module for which the file has no tensor.
    #[error(
        "{}: nothing found for the parameters {names:?}; make the module with the sizes of the checkpoint, \
         or keep their present numbers with NameMap::keeping; the file has {found:?}",
        path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
        /// The parameters.
        names: Vec<String>,
        /// The tensors of the file.
        found: Vec<String>,
    },
    /// Two tensors for one parameter.
    #[error(
        "{}: both {first:?} and {second:?} are meant for {target:?}; leave one out with NameMap::ignoring",
        path.display()
    )]
    Twice {
        /// The file.
        path: PathBuf,
        /// The parameter.
        target: String,
        /// The first tensor.
        first: String,
        /// The second one.
        second: String,
    },
    /// A tensor of another shape.
    #[error(
        "{}: {name} must have the shape {expected:?} for {target:?}, found {found:?}; \
         make the module with the sizes of the checkpoint",
        path.display()
    )]
    Shape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The parameter.
        target: String,
        /// The shape that the tensor should have; the last axis of a transposed one may be split into several.
        expected: Vec<usize>,
        /// The shape in the file.
        found: Vec<usize>,
    },
    /// Numbers that are no floats.
    #[error(
        "{}: {name} must hold F16, BF16, F32 or F64, found {found}; leave it out with NameMap::ignoring or convert it",
        path.display()
    )]
    NumberType {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The number type found.
        found: String,
    },
}
