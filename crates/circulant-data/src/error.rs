//! What can be wrong with a data file, a cache folder or a download.

use std::io;
use std::path::{Path, PathBuf};

/// A setting of the caller that helps against an error. A program can say what it is called there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Setting {
    /// The names of the arrays with inputs and labels, in [`ReadOptions`](crate::ReadOptions).
    ArrayNames,
    /// The label column of a table, there too.
    LabelColumn,
    /// The size that pictures are scaled to, there too.
    PictureSize,
    /// The size that pictures are scaled to for an encoder.
    EncoderSize,
    /// Where features are written.
    Output,
}

/// An error of the data part. Every message says what was expected, what was found and what to do.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}; {}", place.display(), advice(source))]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or folder.
        place: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file or folder without examples.
    #[error("{place} is empty: expected {expected}; check that it was copied or downloaded whole")]
    Empty {
        /// The file or folder.
        place: String,
        /// What should be there.
        expected: String,
    },
    /// A file that ends too early.
    #[error("{place} is cut short: expected {expected}, found {found}; copy or download it again")]
    Truncated {
        /// The file.
        place: String,
        /// What should be there.
        expected: String,
        /// How much there is.
        found: String,
    },
    /// A file with other content than its format allows.
    #[error("{place}: expected {expected}, found {found}; {help}")]
    Format {
        /// The file, or a place in it.
        place: String,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
        /// What to do.
        help: String,
        /// The setting that does it, if there is one.
        setting: Option<Setting>,
    },
    /// As many labels as examples are needed.
    #[error(
        "{place}: expected one label per example, found {examples} examples and {labels} labels; \
         check that both come from the same part of the data set"
    )]
    LabelCount {
        /// The file or folder.
        place: String,
        /// Examples.
        examples: usize,
        /// Labels.
        labels: usize,
    },
    /// A label that is no class.
    #[error("{place}: example {example} has the label {label}, expected {expected}")]
    Label {
        /// The file or folder.
        place: String,
        /// The number of the example, from 0.
        example: usize,
        /// The label.
        label: String,
        /// Which labels are allowed.
        expected: String,
    },
    /// A set that is used as labelled but has no labels.
    #[error("{place} has no labels: {help}")]
    NoLabels {
        /// The file or folder.
        place: String,
        /// Where labels can come from.
        help: String,
    },
    /// NaN or an infinity among the inputs.
    #[error(
        "{place}: number {position} of example {example} is {value}, expected finite numbers; \
         remove or replace such examples first"
    )]
    NotFinite {
        /// The file.
        place: String,
        /// The number of the example, from 0.
        example: usize,
        /// The number within the example, from 0.
        position: usize,
        /// `NaN`, `inf` or `-inf`.
        value: f32,
    },
    /// A path whose content no reader knows.
    #[error(
        "{place}: no known format; found {found}; expected IDX (also .gz), a CIFAR-10 binary folder, \
         a Tiny-ImageNet folder, .npy, .npz, .safetensors, .csv, a PNG or JPEG picture, a folder of \
         them, or a folder with one folder of them per class"
    )]
    Unrecognised {
        /// The path.
        place: String,
        /// What was seen.
        found: String,
    },
    /// A name that is no known data set.
    #[error("there is no data set named {name:?}; known are {}", known.join(", "))]
    UnknownName {
        /// The name.
        name: String,
        /// Names that work here.
        known: Vec<&'static str>,
    },
    /// A known data set that is not in the cache.
    #[error("{name} is not in the cache {}: {file} is {state}; fetch it first", cache.display())]
    NotCached {
        /// The data set.
        name: &'static str,
        /// The folder of the cache.
        cache: PathBuf,
        /// The first file that is wrong.
        file: &'static str,
        /// `missing` or `damaged`.
        state: &'static str,
    },
    /// Neither a cache nor a home folder is named in the environment.
    #[error(
        "no cache folder: set CIRCULANT_CACHE (or XDG_CACHE_HOME or HOME) to a folder that can be written"
    )]
    NoCacheFolder,
    /// Content that is not the data set's.
    #[error(
        "{place}: expected content with SHA-256 {expected}, found {found}; it is damaged or another \
         version, so it was not used"
    )]
    Checksum {
        /// Where it came from.
        place: String,
        /// The sum of the true content.
        expected: String,
        /// The sum of what came.
        found: String,
    },
    /// A server that did not deliver.
    #[error("{address}: {reason}")]
    Http {
        /// What was asked for.
        address: String,
        /// What went wrong.
        reason: String,
    },
    /// A program of the system that failed or is missing.
    #[error("{program}: {reason}")]
    Program {
        /// Its name.
        program: &'static str,
        /// What it said.
        reason: String,
    },
    /// Every source failed.
    #[error(
        "could not get {name}. Tried:\n{}\nDownload {files} on another machine \
         and fetch from the folder that has them",
        tried.iter().map(|line| format!("  - {line}")).collect::<Vec<_>>().join("\n")
    )]
    NoSource {
        /// The data set.
        name: &'static str,
        /// The files that are needed.
        files: String,
        /// One line per source: what it was and why it failed.
        tried: Vec<String>,
    },
}

impl DataError {
    /// For `map_err` on a file operation.
    pub fn io(action: &'static str, place: &Path) -> impl FnOnce(io::Error) -> Self {
        let place = place.to_owned();
        move |source| Self::Io {
            action,
            place,
            source,
        }
    }

    /// A [`DataError::Format`].
    pub fn format(
        place: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self::Format {
            place: place.into(),
            expected: expected.into(),
            found: found.into(),
            help: help.into(),
            setting: None,
        }
    }

    /// The same, with the setting that helps.
    pub(crate) fn by(mut self, helps: Setting) -> Self {
        if let Self::Format { setting, .. } = &mut self {
            *setting = Some(helps);
        }
        self
    }

    /// The setting of the caller that helps, if there is one.
    pub fn setting(&self) -> Option<Setting> {
        match self {
            Self::Format { setting, .. } => *setting,
            _ => None,
        }
    }

    /// A size that a caller or a file got wrong.
    pub(crate) fn length(
        place: impl Into<String>,
        what: &str,
        expected: usize,
        got: usize,
    ) -> Self {
        Self::format(
            place,
            format!("{expected} {what}"),
            format!("{got}"),
            "check the sizes in the file",
        )
    }
}

/// What helps against the usual refusals of the system.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "check the rights, or choose another folder"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, or choose another folder (CIRCULANT_CACHE for downloads)"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
            "check whether a file or a folder is meant"
        }
        _ => "check the disk and try again",
    }
}
