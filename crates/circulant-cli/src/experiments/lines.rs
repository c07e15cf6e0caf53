//! Files of JSON lines that grow during a run: steps, epochs.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::files::write;

/// All lines of a file, none if there is no file. A line that was being written when the process died is left out.
pub fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<T>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let whole = text
        .lines()
        .map_while(|line| serde_json::from_str(line).ok());
    Ok(whole.collect())
}

/// The open end of such a file.
#[derive(Debug)]
pub struct Log<T> {
    file: File,
    path: PathBuf,
    lines: PhantomData<T>,
}

impl<T: Serialize> Log<T> {
    /// Opens the file with these lines in it, and no others.
    pub fn open(path: &Path, kept: &[T]) -> anyhow::Result<Self> {
        let mut text = String::new();
        for line in kept {
            text.push_str(&serde_json::to_string(line)?);
            text.push('\n');
        }
        write(path, &text)?;
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        Ok(Self {
            file,
            path: path.to_owned(),
            lines: PhantomData,
        })
    }

    /// Adds a line, in one write, so that a process that dies leaves whole lines.
    pub fn add(&mut self, line: &T) -> anyhow::Result<()> {
        let text = serde_json::to_string(line)? + "\n";
        let result = self.file.write_all(text.as_bytes());
        result.with_context(|| {
            format!(
                "cannot write to {}; is there space on the disk?",
                self.path.display()
            )
        })
    }
}
