//! IDX, the format of MNIST: `00 00 TYPE RANK`, then `RANK` sizes as big-endian u32, then the numbers;
//! plain or gzip. Images are `[n, height, width]` or `[n, channels, height, width]` bytes (type 08),
//! labels `[n]` bytes.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::array::count;
use super::error::DataError;
use super::images::{ImageSet, Pixels};
use super::labels::Labels;
use super::options::Split;
use super::stream::{MOST_UNPACKED, expect_end, open_unpacked, read_exactly, unpack};

/// The numbers of one IDX file.
#[derive(Debug, Clone, PartialEq)]
pub struct IdxArray {
    /// The sizes.
    pub shape: Vec<usize>,
    /// The numbers, row-major.
    pub values: Vec<u8>,
}

/// Whether a file starts as IDX of bytes does.
pub fn is_idx(start: &[u8]) -> bool {
    matches!(start, [0, 0, 0x08..=0x0e, 1..=4, ..])
}

/// Reads a whole IDX file of bytes.
pub fn read_array(path: &Path) -> Result<IdxArray, DataError> {
    numbers(&mut *open_unpacked(path)?, &path.display().to_string())
}

/// Reads the bytes of an IDX file, plain or gzip. `place` names it in errors.
pub fn parse(content: &[u8], place: &str) -> Result<IdxArray, DataError> {
    numbers(&mut *unpack(content, place, MOST_UNPACKED)?, place)
}

fn numbers(mut reader: &mut dyn Read, place: &str) -> Result<IdxArray, DataError> {
    let magic = read_exactly(&mut reader, 4, place, "the IDX header")?;
    let rank = match magic[..] {
        [0, 0, 0x08, rank @ 1..=4] => usize::from(rank),
        [0, 0, kind @ 0x09..=0x0e, 1..=4] => {
            return Err(DataError::format(
                place,
                "IDX of unsigned bytes (type 08)",
                format!("type {kind:02x}"),
                "convert it to bytes, or to .npy for other types",
            ));
        }
        _ => {
            return Err(DataError::format(
                place,
                "an IDX file, which starts with 00 00 08 and its rank",
                format!("{magic:02x?}"),
                "it is another kind of file, or damaged",
            ));
        }
    };
    let sizes = read_exactly(&mut reader, 4 * rank, place, "the IDX sizes")?;
    let shape: Vec<usize> = sizes
        .chunks_exact(4)
        .map(|size| u32::from_be_bytes([size[0], size[1], size[2], size[3]]) as usize)
        .collect();
    let count = count(&shape, 1, place)?;
    let what = format!("numbers for the shape {shape:?}");
    let values = read_exactly(&mut reader, count, place, &what)?;
    expect_end(&mut reader, place, &what)?;
    Ok(IdxArray { shape, values })
}

/// Reads an images file with its labels file; without `labels`, the file beside it whose name has
/// `labels` and `idx1` in place of `images` and `idx3`, if there is one.
pub fn read_images(images: &Path, labels: Option<&Path>) -> Result<ImageSet, DataError> {
    let place = images.display().to_string();
    let labels = labels.map(Path::to_owned).or_else(|| labels_beside(images));
    let array = read_array(images)?;
    let shape = match array.shape[..] {
        [n, height, width] => [n, 1, height, width],
        [n, channels, height, width] => [n, channels, height, width],
        _ => {
            return Err(DataError::format(
                place,
                "images of rank 3 or 4",
                format!("the shape {:?}", array.shape),
                "this looks like a labels file: name the images file",
            ));
        }
    };
    let labels = match labels {
        Some(path) => Labels::numbered(read_labels(&path)?),
        None => Labels::default(),
    };
    ImageSet::new(Pixels::U8(array.values), shape, labels, place)
}

/// Reads a labels file.
pub fn read_labels(path: &Path) -> Result<Vec<i64>, DataError> {
    let array = read_array(path)?;
    if array.shape.len() != 1 {
        return Err(DataError::format(
            path.display().to_string(),
            "labels of rank 1",
            format!("the shape {:?}", array.shape),
            "this looks like an images file: name the labels file",
        ));
    }
    Ok(array.values.into_iter().map(i64::from).collect())
}

/// Reads the part `split` of a folder with MNIST's file names.
pub fn read_folder(folder: &Path, split: Split) -> Result<ImageSet, DataError> {
    let files = image_files(folder)?;
    let mut of_split = files.into_iter().filter(|path| split.matches(&name(path)));
    let place = folder.display().to_string();
    match (of_split.next(), of_split.next()) {
        (Some(images), None) => read_images(&images, None),
        (Some(first), Some(second)) => Err(DataError::format(
            place,
            format!("one images file of the {split} part"),
            format!("{} and {}", name(&first), name(&second)),
            "name one of the files instead of the folder",
        )),
        (None, _) => Err(DataError::format(
            place,
            format!(
                "an images file of the {split} part, as train-images-idx3-ubyte or t10k-images-idx3-ubyte"
            ),
            "none",
            "choose another split or folder",
        )),
    }
}

/// The images files of a folder; a plain file hides its gzip twin.
pub(crate) fn image_files(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(DataError::io("read", folder))? {
        let path = entry.map_err(DataError::io("read", folder))?.path();
        let stem = name(&path);
        let stem = stem.trim_end_matches(".gz");
        if stem.ends_with("images-idx3-ubyte") || stem.ends_with("images.idx3-ubyte") {
            files.push(path);
        }
    }
    files.sort();
    files.dedup_by(|gzip, plain| name(gzip).trim_end_matches(".gz") == name(plain));
    Ok(files)
}

fn labels_beside(images: &Path) -> Option<PathBuf> {
    let file = name(images);
    let stem = file.trim_end_matches(".gz");
    let labels = stem.replace("images", "labels").replace("idx3", "idx1");
    let candidates = [labels.clone(), format!("{labels}.gz")];
    candidates
        .into_iter()
        .filter(|candidate| candidate != stem && *candidate != file)
        .map(|candidate| images.with_file_name(candidate))
        .find(|path| path.is_file())
}

pub(crate) fn name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tempfile::TempDir;

    use super::*;

    fn idx(shape: &[u32], values: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 8, shape.len() as u8];
        bytes.extend(shape.iter().flat_map(|size| size.to_be_bytes()));
        bytes.extend(values);
        bytes
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn error_of(bytes: &[u8]) -> String {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("x-images-idx3-ubyte");
        fs::write(&path, bytes).unwrap();
        read_images(&path, None).unwrap_err().to_string()
    }

    #[test]
    fn plain_and_gzip_give_the_same_images() {
        let folder = TempDir::new().unwrap();
        let values: Vec<u8> = (0..24).collect();
        let images = idx(&[2, 3, 4], &values);
        let labels = idx(&[2], &[7, 1]);
        for (file, content) in [
            ("train-images-idx3-ubyte", images.clone()),
            ("train-images-idx3-ubyte.gz", gzip(&images)),
            ("train-labels-idx1-ubyte.gz", gzip(&labels)),
            ("t10k-images-idx3-ubyte.gz", gzip(&images)),
            ("t10k-labels-idx1-ubyte", labels),
        ] {
            fs::write(folder.path().join(file), content).unwrap();
        }
        let train = read_folder(folder.path(), Split::Train).unwrap();
        let test = read_folder(folder.path(), Split::Test).unwrap();
        assert_eq!(train.shape(), [2, 1, 3, 4]);
        assert_eq!(train.pixels(), &Pixels::U8(values));
        assert_eq!(train.labels().values, Some(vec![7, 1]));
        assert_eq!(train.fingerprint(), test.fingerprint());
    }

    #[test]
    fn damage_is_named() {
        let whole = idx(&[2, 3, 4], &[9; 24]);
        assert!(error_of(&[]).contains("cut short"));
        assert!(error_of(&whole[..30]).contains("expected 24 bytes"));
        let packed = gzip(&whole);
        assert!(error_of(&packed[..packed.len() - 9]).contains("cut short"));
        let mut flipped = packed.clone();
        let last = flipped.len() - 6;
        flipped[last] ^= 1;
        assert!(
            error_of(&flipped).contains("damaged"),
            "{}",
            error_of(&flipped)
        );
        let mut longer = whole.clone();
        longer.push(0);
        assert!(error_of(&longer).contains("more bytes"));
        assert!(error_of(b"PNG image").contains("another kind of file"));
        assert!(error_of(&idx(&[2], &[0, 1])).contains("labels file"));
        assert!(error_of(&idx(&[0, 28, 28], &[])).contains("is empty"));
        assert!(error_of(&idx(&[u32::MAX; 3], &[])).contains("fit into memory"));
        let none = error_of(&idx(&[0, u32::MAX, u32::MAX, u32::MAX], &[]));
        assert!(none.contains("fit into memory"), "{none}");
        assert!(error_of(&idx(&[u32::MAX, 1, 1], &[])).contains("cut short"));
        assert!(error_of(&[0, 0, 0x0d, 1, 0, 0, 0, 0]).contains("type 0d"));
    }

    #[test]
    fn wrong_label_counts_are_named() {
        let folder = TempDir::new().unwrap();
        let images = folder.path().join("train-images-idx3-ubyte");
        fs::write(&images, idx(&[2, 1, 1], &[1, 2])).unwrap();
        fs::write(
            folder.path().join("train-labels-idx1-ubyte"),
            idx(&[3], &[1; 3]),
        )
        .unwrap();
        let error = read_images(&images, None).unwrap_err().to_string();
        assert!(error.contains("2 examples and 3 labels"), "{error}");
        let error = read_folder(folder.path(), Split::Test)
            .unwrap_err()
            .to_string();
        assert!(error.contains("test part"), "{error}");
    }
}
