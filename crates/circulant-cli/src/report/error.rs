//! What can go wrong between a document and its file.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a report could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A table's row does not fit its header.
    #[error(
        "table \"{table}\", row {row}: expected {expected} cells, got {got}; give one cell per column"
    )]
    Row {
        /// The caption of the table.
        table: String,
        /// Counted from 1.
        row: usize,
        /// The number of columns.
        expected: usize,
        /// The number of cells.
        got: usize,
    },
    /// The file could not be written.
    #[error("cannot write {path}: {source}; choose another folder with --out, or make room there")]
    Write {
        /// The file that it was tried on.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The path names no file.
    #[error("{path} names a folder, expected a file such as report.html")]
    NoFileName {
        /// The path as given.
        path: PathBuf,
    },
}
