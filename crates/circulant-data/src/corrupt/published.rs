//! The genuine files of CIFAR-10-C (and CIFAR-100-C), a folder with `labels.npy` and one `NAME.npy` per
//! corruption.
//!
//! `NAME.npy` has 50,000 x 32 x 32 x 3 bytes: the 10,000 test pictures at severity 1, then at 2, ..., 5.
//! `labels.npy` has 50,000 classes, the same 10,000 five times.

use std::path::{Path, PathBuf};

use super::super::array::{Array, Numbers, planes};
use super::super::cifar::CLASSES;
use super::super::error::DataError;
use super::super::images::{ImageSet, Pixels};
use super::super::labels::Labels;
use super::super::npy::read_array;
use super::super::stream::open;
use super::corruption::{Corruption, Severity};

/// Severities in a file.
const SEVERITIES: usize = Severity::ALL.len();

/// A folder with the published pictures.
#[derive(Debug, Clone)]
pub struct Published {
    folder: PathBuf,
    /// Those of one severity.
    labels: Labels,
}

impl Published {
    /// Opens a folder and reads its labels.
    pub fn open(folder: &Path) -> Result<Self, DataError> {
        let place = folder.join("labels.npy");
        let name = place.display().to_string();
        let values = read(&place)?.into_labels(&name)?;
        let count = values.len() / SEVERITIES;
        let repeated = values
            .chunks(count.max(1))
            .all(|part| part == &values[..count]);
        if values.is_empty() || values.len() % SEVERITIES != 0 || !repeated {
            return Err(DataError::format(
                name,
                "the same labels five times, once per severity (CIFAR-10-C has 5 x 10,000)",
                format!("{} labels", values.len()),
                "use labels.npy of the published archive",
            ));
        }
        let mut labels = Labels::numbered(values[..count].to_vec());
        // CIFAR-100-C has the same form and other classes.
        if labels.classes() <= CLASSES.len() {
            labels.names = CLASSES.map(str::to_owned).to_vec();
        }
        Ok(Self {
            folder: folder.to_owned(),
            labels,
        })
    }

    /// The five severities of a corruption, from weak to strong. Reads the file once.
    pub fn severities(&self, corruption: Corruption) -> Result<Vec<ImageSet>, DataError> {
        let (bytes, size) = self.bytes(corruption)?;
        let set = |severity| self.set(corruption, severity, &bytes, size);
        Severity::ALL.into_iter().map(set).collect()
    }

    fn place(&self, corruption: Corruption) -> PathBuf {
        self.folder.join(format!("{corruption}.npy"))
    }

    /// All bytes of a file, channels last, and `[height, width]`.
    fn bytes(&self, corruption: Corruption) -> Result<(Vec<u8>, [usize; 2]), DataError> {
        let place = self.place(corruption);
        let pictures = self.labels.values.as_ref().map_or(0, Vec::len) * SEVERITIES;
        match read(&place)? {
            Array {
                shape,
                numbers: Numbers::U8(bytes),
            } if shape.len() == 4 && shape[0] == pictures && shape[3] == 3 => {
                Ok((bytes, [shape[1], shape[2]]))
            }
            array => {
                let kind = match array.numbers {
                    Numbers::U8(_) => "bytes",
                    Numbers::I64(_) => "whole numbers",
                    Numbers::F32(_) => "floats",
                };
                Err(DataError::format(
                    place.display().to_string(),
                    format!(
                        "bytes of the shape [{pictures}, height, width, 3], as many as labels.npy has"
                    ),
                    format!("{kind} of the shape {:?}", array.shape),
                    "use the file of the published archive, with its labels.npy",
                ))
            }
        }
    }

    /// One severity out of all bytes.
    fn set(
        &self,
        corruption: Corruption,
        severity: Severity,
        bytes: &[u8],
        [height, width]: [usize; 2],
    ) -> Result<ImageSet, DataError> {
        let part = bytes.len() / SEVERITIES;
        let bytes = &bytes[(severity.level() - 1) * part..][..part];
        let row = 3 * height * width;
        let source = format!("{} (severity {severity})", self.place(corruption).display());
        ImageSet::new(
            Pixels::U8(planes(bytes, 3, row)),
            [bytes.len() / row.max(1), 3, height, width],
            self.labels.clone(),
            source,
        )
    }
}

fn read(place: &Path) -> Result<Array, DataError> {
    read_array(&mut open(place)?, &place.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::super::super::npy::u8_bytes;
    use super::*;

    fn write(folder: &Path, name: &str, shape: &[usize], bytes: &[u8]) {
        std::fs::write(folder.join(format!("{name}.npy")), u8_bytes(shape, bytes)).unwrap();
    }

    /// Two pictures of 4 x 4 per severity; the red of a pixel is 50 times the severity.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let pixels = (0..10 * 16)
            .flat_map(|i| [(i / 32 + 1) * 50, i % 16, 7])
            .map(|x| x as u8);
        let pixels: Vec<u8> = pixels.collect();
        write(folder.path(), "fog", &[10, 4, 4, 3], &pixels);
        write(folder.path(), "labels", &[10], &[3, 8].repeat(5));
        folder
    }

    #[test]
    fn severities_are_stacked() {
        let folder = folder();
        let published = Published::open(folder.path()).unwrap();
        let sets = published.severities(Corruption::Fog).unwrap();
        for (set, severity) in sets.iter().zip(Severity::ALL) {
            assert_eq!(set.shape(), [2, 3, 4, 4]);
            assert_eq!(set.labels().values.as_deref().unwrap(), [3, 8]);
            assert_eq!(set.labels().names[3], "cat");
            let Pixels::U8(bytes) = set.pixels() else {
                panic!("bytes")
            };
            assert!(
                bytes[..16]
                    .iter()
                    .all(|&x| usize::from(x) == 50 * severity.level())
            );
            assert!((0..16).all(|i| bytes[16 + i] == i as u8));
        }
    }

    #[test]
    fn wrong_files_are_named() {
        let folder = folder();
        let path = folder.path();
        let published = Published::open(path).unwrap();
        let snow = || {
            published
                .severities(Corruption::Snow)
                .unwrap_err()
                .to_string()
        };
        let missing = snow();
        assert!(missing.contains("snow.npy"), "{missing}");
        write(path, "snow", &[5, 4, 4, 3], &[0; 240]);
        let few = snow();
        assert!(
            few.contains("[10, height, width, 3]") && few.contains("[5, 4, 4, 3]"),
            "{few}"
        );
        write(path, "labels", &[7], &[1; 7]);
        let open = |path: &Path| Published::open(path).unwrap_err().to_string();
        assert!(open(path).contains("found 7 labels"), "{}", open(path));
        assert!(open(&path.join("nowhere")).contains("labels.npy"));
    }
}
