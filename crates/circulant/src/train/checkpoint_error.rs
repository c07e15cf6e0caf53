//! What can be wrong with a checkpoint.

use std::path::PathBuf;

use crate::record::RecordError;

/// Why a checkpoint could not be written or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// Reading or writing failed.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that is not a checkpoint, or not a whole one.
    #[error("{}: not a complete checkpoint: {message}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// A checkpoint of another run.
    #[error(
        "{}: the checkpoint was made with {what} {found}, this run has {expected}; \
         resume with the same model, data and settings, or start anew in another place",
        path.display()
    )]
    OtherRun {
        /// The checkpoint.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// What this run has.
        expected: String,
        /// What the checkpoint has.
        found: String,
    },
    /// A checkpoint of a later version of this library.
    #[error(
        "{}: written by a newer circulant (version {found} of the format, this one reads up to {newest}); update circulant",
        path.display()
    )]
    Newer {
        /// The checkpoint.
        path: PathBuf,
        /// The version of its format.
        found: u64,
        /// The newest version that is known.
        newest: u64,
    },
    /// Its parameters do not fit the module.
    #[error(transparent)]
    Record(#[from] RecordError),
}
