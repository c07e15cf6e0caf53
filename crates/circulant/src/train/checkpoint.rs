//! Checkpoints: one safetensors file with everything that a run needs to resume as if it had never stopped.
//!
//! | part | where |
//! | --- | --- |
//! | parameters | tensors under the names of the module's record |
//! | optimiser state | the bytes of Burn's own record, as the U8 tensor `optimizer`, and those of moments beside it as `optimizer.moments` |
//! | step, seed and whatever else the run needs | metadata |
//!
//! The file is written beside its place, synced and renamed: at every moment the old checkpoint or the new one is there. A
//! checksum over all tensors tells a damaged file from a whole one before any of it is used.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use burn::module::Module;
use burn::optim::{ModuleOptimizer, OptimizerRecord};
use burn::tensor::Bytes;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use super::{CheckpointError, write_atomically};
use crate::record;

const OPTIMIZER: &str = "optimizer";
const MOMENTS: &str = "optimizer.moments";

fn file_error(path: &Path) -> impl Fn(std::io::Error) -> CheckpointError + '_ {
    |source| CheckpointError::File {
        path: path.into(),
        source,
    }
}

fn broken(path: &Path, message: impl ToString) -> CheckpointError {
    CheckpointError::Broken {
        path: path.into(),
        message: message.to_string(),
    }
}

pub(crate) fn bytes_of(path: &Path) -> Result<Vec<u8>, CheckpointError> {
    std::fs::read(path).map_err(file_error(path))
}

/// Over names and bytes, in the order of the names.
fn checksum<'a>(tensors: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut parts: Vec<_> = tensors.collect();
    parts.sort();
    let mut hash = crc32fast::Hasher::new();
    for (name, bytes) in parts {
        hash.update(name.as_bytes());
        hash.update(bytes);
    }
    format!("{:08x}", hash.finalize())
}

/// A safetensors file with metadata, in the order of their keys: the crate writes them in the order of a hash table, which
/// is another one in every process, so that equal runs would give different bytes.
fn with_metadata(
    file: &[u8],
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<u8>, serde_json::Error> {
    const LENGTH: usize = size_of::<u64>();
    let length: [u8; LENGTH] = file[..LENGTH].try_into().expect("a file begins with one");
    let (header, tensors) = file[LENGTH..].split_at(u64::from_le_bytes(length) as usize);
    let mut header: BTreeMap<String, serde_json::Value> = serde_json::from_slice(header)?;
    header.insert("__metadata__".to_owned(), serde_json::to_value(metadata)?);
    let mut header = serde_json::to_vec(&header)?;
    // Tensors begin at a multiple of eight bytes.
    header.resize(header.len().next_multiple_of(LENGTH), b' ');
    let length = (header.len() as u64).to_le_bytes();
    Ok([&length, header.as_slice(), tensors].concat())
}

/// Writes the parameters of a module, the state of its optimiser and metadata. An existing file is replaced in one step.
pub(crate) fn write<M: Module>(
    path: &Path,
    module: &M,
    optimizer: &ModuleOptimizer,
    moments: Option<Vec<u8>>,
    mut metadata: BTreeMap<String, String>,
) -> Result<(), CheckpointError> {
    // Burn keeps the state in a hash table, whose order is another one in every process; a record that was read has
    // the order of names.
    let optimizer = optimizer
        .into_bytes()
        .and_then(OptimizerRecord::from_bytes)
        .and_then(OptimizerRecord::into_bytes)
        .map_err(|error| broken(path, error))?;
    let parameters = record::to_bytes(module)?;
    let parameters = SafeTensors::deserialize(&parameters).map_err(|error| broken(path, error))?;
    let mut tensors: Vec<(String, TensorView<'_>)> = parameters.tensors();
    for (name, bytes) in [
        (OPTIMIZER, Some(&optimizer[..])),
        (MOMENTS, moments.as_deref()),
    ] {
        if let Some(bytes) = bytes {
            let view = TensorView::new(Dtype::U8, vec![bytes.len()], bytes);
            tensors.push((name.to_owned(), view.map_err(|error| broken(path, error))?));
        }
    }
    let sum = checksum(
        tensors
            .iter()
            .map(|(name, view)| (name.as_str(), view.data())),
    );
    metadata.insert("checksum".to_owned(), sum);
    let bytes = safetensors::serialize(tensors, None).map_err(|error| broken(path, error))?;
    let bytes = with_metadata(&bytes, &metadata).map_err(|error| broken(path, error))?;
    write_atomically(path, &bytes).map_err(file_error(path))
}

/// What an optimiser needs to resume.
pub(crate) struct OptimizerState {
    pub(crate) optimizer: OptimizerRecord,
    /// Of what Burn's optimiser does not move.
    pub(crate) moments: Option<Vec<u8>>,
}

/// A file that has been read, not yet believed.
pub(crate) struct Checkpoint<'a> {
    pub(crate) path: &'a Path,
    bytes: Vec<u8>,
    pub(crate) metadata: HashMap<String, String>,
}

impl<'a> Checkpoint<'a> {
    pub(crate) fn read(path: &'a Path) -> Result<Self, CheckpointError> {
        Self::new(path, bytes_of(path)?)
    }

    /// The bytes of the file at `path`.
    pub(crate) fn new(path: &'a Path, bytes: Vec<u8>) -> Result<Self, CheckpointError> {
        let (_, header) =
            SafeTensors::read_metadata(&bytes).map_err(|error| broken(path, error))?;
        let metadata = header.metadata().clone().unwrap_or_default();
        Ok(Self {
            path,
            bytes,
            metadata,
        })
    }

    pub(crate) fn broken(&self, message: impl ToString) -> CheckpointError {
        broken(self.path, message)
    }

    pub(crate) fn entry(&self, key: &str) -> Result<&str, CheckpointError> {
        let value = self.metadata.get(key).map(String::as_str);
        value.ok_or_else(|| self.broken(format!("it has no entry {key:?}")))
    }

    pub(crate) fn number(&self, key: &str) -> Result<u64, CheckpointError> {
        let number = self.entry(key)?.parse();
        number.map_err(|error| self.broken(format!("{key}: {error}")))
    }

    /// The version behind `family` in the entry `format`: from 1 to `newest`.
    pub(crate) fn version(&self, family: &str, newest: u64) -> Result<u64, CheckpointError> {
        let format = self.entry("format")?;
        let version = format.strip_prefix(family);
        match version.and_then(|version| version.parse().ok()) {
            Some(found) if found > newest => Err(CheckpointError::Newer {
                path: self.path.into(),
                found,
                newest,
            }),
            Some(version @ 1..) => Ok(version),
            _ => Err(self.broken(format!(
                "its format is {format:?}, expected {family}1 to {family}{newest}"
            ))),
        }
    }

    /// Whether the entry `what` is as expected.
    pub(crate) fn check(
        &self,
        what: &'static str,
        expected: String,
    ) -> Result<(), CheckpointError> {
        let found = self.entry(what)?;
        if found == expected {
            return Ok(());
        }
        Err(self.other_run(what, expected, found.to_owned()))
    }

    pub(crate) fn other_run(
        &self,
        what: &'static str,
        expected: String,
        found: String,
    ) -> CheckpointError {
        CheckpointError::OtherRun {
            path: self.path.into(),
            what,
            expected,
            found,
        }
    }

    /// The parameters go into the module, if nothing is damaged; the optimiser's state comes back.
    pub(crate) fn load<M: Module>(
        &self,
        module: &mut M,
    ) -> Result<OptimizerState, CheckpointError> {
        let parts = self.parts()?;
        let optimizer = OptimizerRecord::from_bytes(Bytes::from_bytes_vec(parts.optimizer))
            .map_err(|error| self.broken(error))?;
        record::load_bytes(module, parts.parameters, self.path)?;
        Ok(OptimizerState {
            optimizer,
            moments: parts.moments,
        })
    }

    /// What the file consists of, if nothing is damaged.
    fn parts(&self) -> Result<Parts, CheckpointError> {
        let tensors = SafeTensors::deserialize(&self.bytes).map_err(|error| self.broken(error))?;
        let mut views = tensors.tensors();
        let parts = views
            .iter()
            .map(|(name, view)| (name.as_str(), view.data()));
        if checksum(parts) != self.entry("checksum")? {
            return Err(self.broken("its checksum is wrong, so the file is damaged"));
        }
        let mut take = |wanted: &str| {
            let place = views.iter().position(|(name, _)| name == wanted)?;
            Some(views.remove(place).1.data().to_vec())
        };
        let (optimizer, moments) = (take(OPTIMIZER), take(MOMENTS));
        let Some(optimizer) = optimizer else {
            return Err(self.broken("it has no optimiser state"));
        };
        Ok(Parts {
            parameters: safetensors::serialize(views, None).map_err(|error| self.broken(error))?,
            optimizer,
            moments,
        })
    }
}

struct Parts {
    /// As a safetensors file of their own.
    parameters: Vec<u8>,
    optimizer: Vec<u8>,
    moments: Option<Vec<u8>>,
}
