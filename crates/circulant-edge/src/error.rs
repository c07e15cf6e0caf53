//! What can be wrong with a file, an input or a piece of memory.

use core::fmt;

use circulant_core::SizeError;

/// Why a model cannot be read or used. Every variant says what was expected and what was found.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum EdgeError {
    /// Not a model of this kind.
    Magic,
    /// Written in another version of the format.
    Version {
        /// The version of the file.
        found: u16,
    },
    /// The file ends too early or goes on behind its end.
    Length {
        /// Bytes that the file says it has, or that the next part needs.
        expected: usize,
        /// Bytes that there are.
        found: usize,
    },
    /// The file was damaged.
    Checksum {
        /// As the file says.
        expected: u32,
        /// Of the bytes that there are.
        found: u32,
    },
    /// A number in the file that cannot be.
    Value {
        /// What the number is about.
        what: &'static str,
        /// What there is.
        found: u64,
    },
    /// Two parts of the file that do not fit together.
    Mismatch {
        /// What does not fit.
        what: &'static str,
        /// The expected size.
        expected: usize,
        /// The size found.
        found: usize,
    },
    /// Something else than finite numbers in a file or an input.
    NotFinite {
        /// Where.
        what: &'static str,
    },
    /// Memory of the wrong size.
    Memory {
        /// Values that the model needs, [`Model::memory_len`](crate::Model::memory_len).
        expected: usize,
        /// Values that there are.
        found: usize,
    },
    /// An input of the wrong size.
    Input {
        /// Values of an input.
        expected: usize,
        /// Values that there are.
        found: usize,
    },
    /// A number of posterior samples that is not allowed.
    Samples {
        /// What was asked for.
        found: u32,
    },
    /// Something that this program was built without.
    LeftOut {
        /// The feature that has it.
        what: &'static str,
    },
    /// A size that the operators refuse.
    Size,
}

impl fmt::Display for EdgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => write!(
                f,
                "expected a model that begins with CIRC, found something else; export one with `circulant export --to edge`"
            ),
            Self::Version { found } if *found < crate::OLDEST_VERSION => write!(
                f,
                "expected a model of version {} or {}, found version {found} of an older circulant; export the run again",
                crate::OLDEST_VERSION,
                crate::VERSION
            ),
            Self::Version { found } => write!(
                f,
                "expected a model of version {} or {}, found version {found} of a newer circulant; update this program",
                crate::OLDEST_VERSION,
                crate::VERSION
            ),
            Self::Length { expected, found } => write!(
                f,
                "expected {expected} bytes, found {found}; the file is cut off or has something behind it: copy it again"
            ),
            Self::Checksum { expected, found } => write!(
                f,
                "expected the checksum {expected:08x}, found {found:08x}; the file is damaged: copy it again"
            ),
            Self::Value { what, found } => {
                write!(f, "{what}: {found} is not possible; export the model again")
            }
            Self::Mismatch {
                what,
                expected,
                found,
            } => write!(
                f,
                "{what}: expected {expected}, found {found}; export the model again"
            ),
            Self::NotFinite { what } => {
                write!(f, "{what}: expected finite numbers, found others")
            }
            Self::Memory { expected, found } => write!(
                f,
                "expected memory of {expected} values, found {found}; `Model::memory_len` says how many"
            ),
            Self::Input { expected, found } => {
                write!(f, "expected an input of {expected} values, found {found}")
            }
            Self::Samples { found } => {
                write!(f, "expected 1 to 65536 posterior samples, found {found}")
            }
            Self::LeftOut { what } => write!(
                f,
                "this program was built without the feature {what}; build circulant-edge with it"
            ),
            Self::Size => write!(
                f,
                "a size that the operators refuse; export the model again"
            ),
        }
    }
}

impl core::error::Error for EdgeError {}

impl From<SizeError> for EdgeError {
    fn from(_: SizeError) -> Self {
        Self::Size
    }
}
