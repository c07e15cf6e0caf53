//! Parameters to and from safetensors files, checked before anything is changed.
//!
//! Tensor names are field paths (`coordinates`, `filter`, `bias`, `hidden.coordinates`), so Python's `safetensors`
//! reads and writes the same files. [`save`] replaces a file only once the new one is complete. [`load`]
//! compares names, shapes and number types with the module first and leaves the module as it was
//! if anything differs; no file makes it panic.

use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::store::{ModuleSnapshot, ModuleStore, SafetensorsStore};
use burn::tensor::DType;

/// Why a record could not be saved or loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file could not be written.
    #[error("cannot write {}: {message}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the store said.
        message: String,
    },
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a whole safetensors file.
    #[error("{} is not a complete safetensors file of {length} bytes: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The length found.
        length: usize,
        /// What the reader said.
        message: String,
    },
    /// The file lacks a tensor that the module has.
    #[error("{}: expected a tensor named {name:?}, found only {found:?}; was the record saved from another kind of layer?", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The tensor that is missing.
        name: String,
        /// The tensors that are there.
        found: Vec<String>,
    },
    /// The file has a tensor that the module has no place for.
    #[error("{}: found a tensor named {name:?}, expected only {expected:?}; was the record saved with another kind of bias?", path.display())]
    Unexpected {
        /// The file.
        path: PathBuf,
        /// The tensor without a place.
        name: String,
        /// The tensors of the module.
        expected: Vec<String>,
    },
    /// A tensor has another shape than the parameter.
    #[error("{}: {name} must have the shape {expected:?}, found {found:?}; make the module with the sizes of the record", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The shape of the parameter.
        expected: Vec<usize>,
        /// The shape in the file.
        found: Vec<usize>,
    },
    /// A tensor has another number type than the parameter.
    #[error("{}: {name} must hold {expected:?}, found {found:?}; convert the record first", path.display())]
    NumberType {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The number type of the parameter.
        expected: DType,
        /// The number type in the file.
        found: DType,
    },
}

/// Writes the parameters of `module` to `path`. An existing file is replaced in one step: whoever
/// reads it sees the old record or the new one.
pub fn save<M: Module>(module: &M, path: impl AsRef<Path>) -> Result<(), RecordError> {
    let path = path.as_ref();
    let mut store = SafetensorsStore::from_file(path)
        .overwrite(true)
        .skip_enum_variants(true);
    module
        .save_into(&mut store)
        .map_err(|error| RecordError::Write {
            path: path.into(),
            message: error.to_string(),
        })
}

/// Reads the parameters of `module` from `path`.
///
/// ```
/// use circulant::nn::SpectralCirculant1dConfig;
/// use circulant::record;
/// # let device = burn::tensor::Device::flex();
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("layer.safetensors");
///
/// let layer = SpectralCirculant1dConfig::new(12).with_seed(Some(1)).init(&device);
/// record::save(&layer, &path)?;
/// let mut other = SpectralCirculant1dConfig::new(12).with_seed(Some(2)).init(&device);
/// record::load(&mut other, &path)?;
/// assert_eq!(other.half_spectrum(), layer.half_spectrum());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn load<M: Module>(module: &mut M, path: impl AsRef<Path>) -> Result<(), RecordError> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|source| RecordError::Read {
        path: path.into(),
        source,
    })?;
    load_bytes(module, bytes, path)
}

/// The record of `module` in memory.
pub(crate) fn to_bytes<M: Module>(module: &M) -> Result<Vec<u8>, RecordError> {
    let failed = |error: &dyn std::fmt::Display| RecordError::Write {
        path: "(memory)".into(),
        message: error.to_string(),
    };
    let mut store = SafetensorsStore::from_bytes(None).skip_enum_variants(true);
    module
        .save_into(&mut store)
        .map_err(|error| failed(&error))?;
    store.get_bytes().map_err(|error| failed(&error))
}

/// [`load`] of the content of `path`.
pub(crate) fn load_bytes<M: Module>(
    module: &mut M,
    bytes: Vec<u8>,
    path: &Path,
) -> Result<(), RecordError> {
    let length = bytes.len();
    let malformed = |message: String| RecordError::Malformed {
        path: path.into(),
        length,
        message,
    };
    // The reader may assume whole files; a file from elsewhere need not be one.
    if length == 0 {
        return Err(malformed("the file is empty".into()));
    }
    let mut store = SafetensorsStore::from_bytes(Some(bytes)).skip_enum_variants(true);
    let found = store
        .get_all_tensors()
        .map_err(|error| malformed(error.to_string()))?;
    let expected = module.collect(None, None, true);
    for parameter in &expected {
        let name = parameter.name.clone();
        let Some(tensor) = found.get(&name) else {
            return Err(RecordError::Missing {
                path: path.into(),
                name,
                found: found.keys().cloned().collect(),
            });
        };
        if tensor.shape != parameter.shape {
            let (expected, found) = (parameter.shape.to_vec(), tensor.shape.to_vec());
            return Err(RecordError::Shape {
                path: path.into(),
                name,
                expected,
                found,
            });
        }
        if tensor.dtype != parameter.dtype {
            let (expected, found) = (parameter.dtype, tensor.dtype);
            return Err(RecordError::NumberType {
                path: path.into(),
                name,
                expected,
                found,
            });
        }
    }
    if let Some(name) = found
        .keys()
        .find(|name| expected.iter().all(|parameter| parameter.name != **name))
    {
        let expected = expected
            .iter()
            .map(|parameter| parameter.name.clone())
            .collect();
        return Err(RecordError::Unexpected {
            path: path.into(),
            name: name.clone(),
            expected,
        });
    }
    module
        .load_from(&mut store)
        .map_err(|error| malformed(error.to_string()))?;
    Ok(())
}
