//! What commands print on stdout, and files that hold the same.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use serde::Serialize;

use crate::experiments::version::Versioned;
use crate::ranks::speaks;

/// Prints text as it is, from rank 0 alone.
pub fn print(text: &str) -> anyhow::Result<()> {
    if !speaks() {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    let result = stdout.write_all(text.as_bytes());
    match result.and_then(|()| stdout.flush()) {
        // Whoever reads the output may stop early, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout; is there space where it goes?"),
    }
}

/// An object as one line of JSON, with the version.
pub fn json_line(object: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string(&Versioned::new(object))? + "\n")
}

/// How a file holds rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// A header and lines.
    Csv,
    /// One value.
    Json,
    /// One object per line.
    JsonLines,
    /// An array of values.
    Npy,
}

impl RowFormat {
    fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
            Self::JsonLines => "jsonl",
            Self::Npy => "npy",
        }
    }
}

/// A file whose name says its format.
#[derive(Debug, Clone)]
pub struct OutFile {
    /// Where.
    pub path: PathBuf,
    /// How.
    pub format: RowFormat,
}

impl OutFile {
    /// For clap: a path with one of these extensions.
    pub fn parse(text: &str, formats: &[RowFormat]) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let extension = path
            .extension()
            .map(|extension| extension.to_string_lossy().to_lowercase());
        let known = |format: &&RowFormat| extension.as_deref() == Some(format.extension());
        match formats.iter().find(known) {
            Some(&format) => Ok(Self { path, format }),
            None => {
                let names: Vec<_> = formats
                    .iter()
                    .map(|f| format!(".{}", f.extension()))
                    .collect();
                let found = extension.map_or("no extension".to_owned(), |e| format!(".{e}"));
                Err(format!(
                    "expected a file name that ends with {}, found {found}",
                    names.join(", ")
                ))
            }
        }
    }
}
