//! The features of a set in a safetensors file, computed over several runs if need be.
//!
//! While it grows, the file is `OUT.partial`: one line of JSON that says what it belongs to, then rows of f32. What a process
//! that died left behind is good up to its last whole row. When all rows are there it becomes `OUT`, with tensors
//! `features` and `labels` and the line in its metadata.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};

use super::super::cache::store_tensors;
use super::super::error::{DataError, Setting};
use super::super::images::ImageSet;
use super::preprocess::Preprocessing;

/// How numbers are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Numbers {
    /// Single precision.
    #[default]
    F32,
    /// Half precision: three digits, half the size.
    F16,
}

/// What decides about the features of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// The SHA-256 of the encoder.
    pub encoder: String,
    /// What is done to pictures first.
    pub preprocessing: Preprocessing,
    /// The SHA-256 of the pictures.
    pub pictures: String,
    /// How many pictures, and features of each.
    pub shape: [usize; 2],
    /// How they are stored in the end.
    pub numbers: Numbers,
}

/// A file of features on its way.
#[derive(Debug)]
pub struct FeatureFile {
    path: PathBuf,
    partial: PathBuf,
    identity: Identity,
    file: File,
    done: usize,
}

impl FeatureFile {
    /// Whether the finished file is there, and of these features. Another one is an error.
    pub fn is_finished(path: &Path, identity: &Identity) -> Result<bool, DataError> {
        if !path.exists() {
            return Ok(false);
        }
        let mut bytes = Vec::new();
        let mut file = File::open(path).map_err(DataError::io("open", path))?;
        // The header alone: its length, then JSON.
        let mut length = [0; 8];
        let read = file.read_exact(&mut length).and_then(|()| {
            let length = u64::from_le_bytes(length).min(1 << 24);
            file.take(length).read_to_end(&mut bytes)
        });
        let header: Option<serde_json::Value> =
            read.ok().and_then(|_| serde_json::from_slice(&bytes).ok());
        let found = header
            .as_ref()
            .and_then(|header| header["__metadata__"]["identity"].as_str());
        let found: Option<Identity> = found.and_then(|text| serde_json::from_str(text).ok());
        if found.as_ref() == Some(identity) {
            return Ok(true);
        }
        Err(Self::other(path))
    }

    fn other(path: &Path) -> DataError {
        DataError::format(
            path.display().to_string(),
            "features of these pictures by this encoder with this preprocessing",
            "a file with other content",
            "choose another place, or delete it",
        )
        .by(Setting::Output)
    }

    /// Begins the file for `path`, or resumes what is there.
    pub fn open(path: &Path, identity: Identity) -> Result<Self, DataError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        let partial = PathBuf::from(name);
        let failed = || DataError::io("write", &partial);
        let line = serde_json::to_string(&identity).expect("numbers and words") + "\n";
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&partial)
            .map_err(failed())?;
        let mut found = String::new();
        // A line that is not text is another file's.
        let head = BufReader::new(&file)
            .take(line.len() as u64)
            .read_line(&mut found);
        if head.is_err() || !line.starts_with(&found) {
            return Err(Self::other(&partial));
        }
        if found.len() < line.len() {
            // New, or the process died before the first row.
            file.set_len(0).map_err(failed())?;
            file.seek(SeekFrom::Start(0)).map_err(failed())?;
            file.write_all(line.as_bytes()).map_err(failed())?;
        }
        let row = identity.shape[1] * size_of::<f32>();
        let length = file.metadata().map_err(failed())?.len() as usize - line.len();
        let done = (length / row).min(identity.shape[0]);
        let end = (line.len() + done * row) as u64;
        file.set_len(end).map_err(failed())?;
        file.seek(SeekFrom::Start(end)).map_err(failed())?;
        Ok(Self {
            path: path.to_owned(),
            partial,
            identity,
            file,
            done,
        })
    }

    /// How many rows are there.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Adds whole rows.
    pub fn add(&mut self, rows: &[f32]) -> Result<(), DataError> {
        let bytes: Vec<u8> = rows.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.file
            .write_all(&bytes)
            .map_err(DataError::io("write", &self.partial))?;
        self.done += rows.len() / self.identity.shape[1];
        Ok(())
    }

    /// Turns the whole rows into the file, with the labels of the pictures.
    ///
    /// # Panics
    /// If rows are missing.
    pub fn finish(mut self, set: &ImageSet) -> Result<(), DataError> {
        let [count, features] = self.identity.shape;
        assert_eq!(self.done, count, "every picture has its row");
        let failed = || DataError::io("write", &self.path);
        let reading = DataError::io("read", &self.partial);
        let line = serde_json::to_string(&self.identity).expect("numbers and words");
        let mut bytes = Vec::with_capacity(count * features * size_of::<f32>());
        self.file
            .seek(SeekFrom::Start(line.len() as u64 + 1))
            .and_then(|_| self.file.read_to_end(&mut bytes))
            .map_err(reading)?;
        let kind = match self.identity.numbers {
            Numbers::F32 => Dtype::F32,
            Numbers::F16 => {
                bytes = bytes
                    .chunks_exact(4)
                    .flat_map(|x| {
                        let x = f32::from_le_bytes([x[0], x[1], x[2], x[3]]);
                        half::f16::from_f32(x).to_le_bytes()
                    })
                    .collect();
                Dtype::F16
            }
        };
        let labels = set.labels();
        let classes: Vec<u8> = labels
            .values
            .iter()
            .flatten()
            .flat_map(|label| label.to_le_bytes())
            .collect();
        let invalid = |error: SafeTensorError| failed()(io::Error::other(error.to_string()));
        let mut tensors = vec![(
            "features",
            TensorView::new(kind, vec![count, features], &bytes).map_err(invalid)?,
        )];
        if labels.values.is_some() {
            let view = TensorView::new(Dtype::I64, vec![count], &classes).map_err(invalid)?;
            tensors.push(("labels", view));
        }
        let mut metadata = HashMap::from([
            ("identity".to_owned(), line),
            ("source".to_owned(), set.source().to_owned()),
        ]);
        if !labels.names.is_empty() && labels.names.iter().all(|name| !name.contains(',')) {
            metadata.insert("classes".to_owned(), labels.names.join(","));
        }
        store_tensors(&self.path, tensors, metadata).map_err(failed())?;
        // The rows are in the file; what is left is only in the way.
        fs::remove_file(&self.partial).ok();
        Ok(())
    }
}
