//! A path to a set: the format is recognised by content first, by name where content does not tell.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::decode::is_picture;
use super::error::DataError;
use super::features::FeatureSet;
use super::fingerprint::Fingerprint;
use super::idx::name;
use super::images::{ImageSet, Pixels};
use super::labels::Labels;
use super::options::ReadOptions;
use super::stream::peek;
use super::{cifar, flat, folder, idx, npy, table, tensors, tiny_imagenet};

/// Images or features.
#[derive(Debug, Clone, PartialEq)]
pub enum DataSet {
    /// `[n, channels, height, width]`.
    Images(ImageSet),
    /// `[n, d]`.
    Features(FeatureSet),
}

impl DataSet {
    /// The sizes, with the number of examples first.
    pub fn shape(&self) -> Vec<usize> {
        match self {
            Self::Images(set) => set.shape().to_vec(),
            Self::Features(set) => set.shape().to_vec(),
        }
    }

    /// The classes.
    pub fn labels(&self) -> &Labels {
        match self {
            Self::Images(set) => set.labels(),
            Self::Features(set) => set.labels(),
        }
    }

    /// Least and greatest number, as stored.
    pub fn range(&self) -> (f32, f32) {
        match self {
            Self::Images(set) => set.pixels().range(),
            Self::Features(set) => set.range(),
        }
    }

    /// The type of the numbers as kept: `u8` or `f32`.
    pub fn element(&self) -> &'static str {
        match self {
            Self::Images(set) => match set.pixels() {
                Pixels::U8(_) => "u8",
                Pixels::F32(_) => "f32",
            },
            Self::Features(_) => "f32",
        }
    }

    /// The SHA-256 of shape, numbers and labels.
    pub fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::Images(set) => set.fingerprint(),
            Self::Features(set) => set.fingerprint(),
        }
    }

    /// Where the set is from.
    pub fn source(&self) -> &str {
        match self {
            Self::Images(set) => set.source(),
            Self::Features(set) => set.source(),
        }
    }
}

/// A format that a reader knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// One IDX file, with its labels beside it.
    Idx,
    /// A folder with MNIST's file names.
    IdxFolder,
    /// A folder with CIFAR-10's binary batches.
    Cifar10,
    /// Tiny-ImageNet's folder.
    TinyImagenet,
    /// A NumPy array.
    Npy,
    /// An archive of NumPy arrays.
    Npz,
    /// Tensors.
    Safetensors,
    /// A table.
    Csv,
    /// A folder with one folder of images per class.
    ImageFolder,
    /// A picture, or a folder of pictures without classes.
    Pictures,
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Idx => "IDX",
            Self::IdxFolder => "a folder of IDX files",
            Self::Cifar10 => "CIFAR-10 binary",
            Self::TinyImagenet => "Tiny-ImageNet",
            Self::Npy => "NPY",
            Self::Npz => "NPZ",
            Self::Safetensors => "safetensors",
            Self::Csv => "CSV",
            Self::ImageFolder => "a folder of images by class",
            Self::Pictures => "PNG or JPEG",
        })
    }
}

impl Format {
    /// Recognises the format of a file or folder.
    pub fn of(path: &Path) -> Result<Self, DataError> {
        let metadata = std::fs::metadata(path).map_err(DataError::io("open", path))?;
        if metadata.is_dir() {
            of_folder(path)
        } else {
            of_file(path)
        }
    }

    /// Reads a path of this format.
    pub fn read(self, path: &Path, options: &ReadOptions) -> Result<DataSet, DataError> {
        let images = match self {
            Self::Idx => idx::read_images(path, options.labels.as_deref()),
            Self::IdxFolder => idx::read_folder(path, options.split),
            Self::Cifar10 => cifar::read_folder(path, options.split),
            Self::TinyImagenet => tiny_imagenet::read_folder(path, options.split),
            Self::ImageFolder => folder::read(path, options),
            Self::Pictures => flat::read(path, options),
            Self::Npy => return npy::read_npy(path, options),
            Self::Npz => return npy::read_npz(path, options),
            Self::Safetensors => return tensors::read(path, options),
            Self::Csv => return table::read(path, options).map(DataSet::Features),
        };
        images.map(DataSet::Images)
    }
}

/// Recognises and reads a file or folder.
pub fn read(path: &Path, options: &ReadOptions) -> Result<DataSet, DataError> {
    Format::of(path)?.read(path, options)
}

fn of_folder(path: &Path) -> Result<Format, DataError> {
    if !idx::image_files(path)?.is_empty() {
        return Ok(Format::IdxFolder);
    }
    if cifar::is_folder(path) {
        Ok(Format::Cifar10)
    } else if tiny_imagenet::is_folder(path) {
        Ok(Format::TinyImagenet)
    } else if folder::is_folder(path) {
        Ok(Format::ImageFolder)
    } else if flat::is_folder(path) {
        Ok(Format::Pictures)
    } else {
        Err(DataError::Unrecognised {
            place: path.display().to_string(),
            found: "a folder with none of their files".to_owned(),
        })
    }
}

fn of_file(path: &Path) -> Result<Format, DataError> {
    let start = peek(path, 64)?;
    let place = path.display().to_string();
    // Nothing comes out of a damaged gzip file either; that is for its reader to say.
    let bytes = std::fs::metadata(path)
        .map_err(DataError::io("open", path))?
        .len();
    if bytes == 0 {
        return Err(DataError::Empty {
            place,
            expected: "data".to_owned(),
        });
    }
    let file = name(path).to_lowercase();
    let stem = file.trim_end_matches(".gz");
    if idx::is_idx(&start) {
        Ok(Format::Idx)
    } else if start.starts_with(npy::MAGIC) {
        Ok(Format::Npy)
    } else if start.starts_with(b"PK") {
        Ok(Format::Npz)
    } else if tensors::is_safetensors(&start) {
        Ok(Format::Safetensors)
    } else if is_picture(&start) {
        Ok(Format::Pictures)
    } else {
        by_name(stem).ok_or_else(|| DataError::Unrecognised {
            place,
            found: format!(
                "a file that starts with {:02x?}",
                &start[..start.len().min(8)]
            ),
        })
    }
}

/// For text, and so that a damaged file gets the error of the format that it should have.
fn by_name(name: &str) -> Option<Format> {
    [
        (".csv", Format::Csv),
        (".npy", Format::Npy),
        (".npz", Format::Npz),
        (".safetensors", Format::Safetensors),
        ("-ubyte", Format::Idx),
        (".png", Format::Pictures),
        (".jpg", Format::Pictures),
        (".jpeg", Format::Pictures),
    ]
    .into_iter()
    .find(|(end, _)| name.ends_with(end))
    .map(|(_, format)| format)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn formats_are_recognised_by_content() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("file.dat");
        for (content, format) in [
            (&[0, 0, 8, 3, 0, 0, 0, 1][..], Format::Idx),
            (b"\x93NUMPY\x01\0", Format::Npy),
            (b"PK\x03\x04", Format::Npz),
            (b"\x02\0\0\0\0\0\0\0{}", Format::Safetensors),
        ] {
            fs::write(&path, content).unwrap();
            assert_eq!(Format::of(&path).unwrap(), format);
        }
        let table = folder.path().join("table.csv");
        fs::write(&table, "label,a\n0,1\n").unwrap();
        assert_eq!(Format::of(&table).unwrap(), Format::Csv);
        let set = read(&table, &ReadOptions::default()).unwrap();
        assert_eq!(set.shape(), [1, 1]);
    }

    #[test]
    fn what_no_reader_knows_is_named() {
        let folder = TempDir::new().unwrap();
        let error = |path: &Path| Format::of(path).unwrap_err().to_string();
        assert!(error(folder.path()).contains("no known format"));
        let path = folder.path().join("file");
        assert!(error(&path).contains("check the path"));
        fs::write(&path, b"").unwrap();
        assert!(error(&path).contains("is empty"));
        fs::write(&path, b"GIF89a").unwrap();
        assert!(error(&path).contains("no known format"));
        let damaged = folder.path().join("x.npy");
        fs::write(&damaged, b"garbage!").unwrap();
        let error = read(&damaged, &ReadOptions::default()).unwrap_err();
        assert!(error.to_string().contains("NPY"), "{error}");
    }
}
