//! CIFAR-10 in its binary form: a folder with `data_batch_1.bin` to `data_batch_5.bin` and
//! `test_batch.bin`, each of records of one label byte and 3072 pixels, `[3, 32, 32]`.

use std::fs;
use std::path::Path;

use super::error::DataError;
use super::images::{ImageSet, Pixels};
use super::labels::Labels;
use super::options::Split;
use super::stream::{open, read_exactly};

/// `[channels, height, width]`.
pub const SHAPE: [usize; 3] = [3, 32, 32];
const PIXELS: usize = 3 * 32 * 32;
/// A label and an image.
pub(crate) const RECORD: usize = 1 + PIXELS;
/// The classes in the order of the labels.
pub const CLASSES: [&str; 10] = [
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
];
pub(crate) const TRAIN: [&str; 5] = [
    "data_batch_1.bin",
    "data_batch_2.bin",
    "data_batch_3.bin",
    "data_batch_4.bin",
    "data_batch_5.bin",
];
pub(crate) const TEST: &str = "test_batch.bin";

/// Whether a folder has CIFAR-10's files.
pub fn is_folder(folder: &Path) -> bool {
    folder.join(TRAIN[0]).is_file() || folder.join(TEST).is_file()
}

/// Reads the part `split` of a folder.
pub fn read_folder(folder: &Path, split: Split) -> Result<ImageSet, DataError> {
    let files: &[&str] = match split {
        Split::Train => &TRAIN,
        Split::Test => &[TEST],
    };
    let mut pixels = Vec::new();
    let mut labels = Vec::new();
    for file in files {
        read_batch(&folder.join(file), &mut pixels, &mut labels)?;
    }
    set(pixels, labels, folder.display().to_string())
}

fn set(pixels: Vec<u8>, labels: Vec<i64>, place: String) -> Result<ImageSet, DataError> {
    let labels = Labels {
        values: Some(labels),
        names: CLASSES.map(str::to_owned).to_vec(),
    };
    let [channels, height, width] = SHAPE;
    let shape = [pixels.len() / PIXELS, channels, height, width];
    ImageSet::new(Pixels::U8(pixels), shape, labels, place)
}

fn read_batch(path: &Path, pixels: &mut Vec<u8>, labels: &mut Vec<i64>) -> Result<(), DataError> {
    let place = path.display().to_string();
    let bytes = fs::metadata(path)
        .map_err(DataError::io("open", path))?
        .len() as usize;
    let content = read_exactly(&mut open(path)?, bytes, &place, "records")?;
    add_records(&content, place, pixels, labels)
}

/// The bytes of one batch as a set. `place` names it in errors.
pub fn parse(content: &[u8], place: &str) -> Result<ImageSet, DataError> {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    add_records(content, place.to_owned(), &mut pixels, &mut labels)?;
    set(pixels, labels, place.to_owned())
}

fn add_records(
    content: &[u8],
    place: String,
    pixels: &mut Vec<u8>,
    labels: &mut Vec<i64>,
) -> Result<(), DataError> {
    let bytes = content.len();
    if bytes == 0 {
        return Err(DataError::Empty {
            place,
            expected: format!("records of {RECORD} bytes"),
        });
    }
    if !bytes.is_multiple_of(RECORD) {
        return Err(DataError::Truncated {
            place,
            expected: format!("whole records of {RECORD} bytes"),
            found: format!("{bytes} bytes, {} too many", bytes % RECORD),
        });
    }
    pixels.reserve(bytes / RECORD * PIXELS);
    for record in content.chunks_exact(RECORD) {
        if usize::from(record[0]) >= CLASSES.len() {
            return Err(DataError::Label {
                place,
                example: labels.len(),
                label: record[0].to_string(),
                expected: "a class in 0..10; this is not a CIFAR-10 batch".to_owned(),
            });
        }
        labels.push(i64::from(record[0]));
        pixels.extend_from_slice(&record[1..]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn batch(labels: &[u8]) -> Vec<u8> {
        let record = |&label: &u8| [vec![label], vec![label * 3; PIXELS]].concat();
        labels.iter().flat_map(record).collect()
    }

    #[test]
    fn batches_are_joined_in_order() {
        let folder = TempDir::new().unwrap();
        for (index, file) in TRAIN.iter().enumerate() {
            fs::write(folder.path().join(file), batch(&[index as u8, 9])).unwrap();
        }
        fs::write(folder.path().join(TEST), batch(&[4])).unwrap();
        assert!(is_folder(folder.path()));
        let train = read_folder(folder.path(), Split::Train).unwrap();
        assert_eq!(train.shape(), [10, 3, 32, 32]);
        let expected = Some(vec![0, 9, 1, 9, 2, 9, 3, 9, 4, 9]);
        assert_eq!(train.labels().values, expected);
        assert_eq!(train.labels().names[9], "truck");
        let test = read_folder(folder.path(), Split::Test).unwrap();
        assert_eq!(test.pixels(), &Pixels::U8(vec![12; PIXELS]));
    }

    #[test]
    fn damage_is_named() {
        let folder = TempDir::new().unwrap();
        let error = |content: &[u8]| {
            fs::write(folder.path().join(TEST), content).unwrap();
            read_folder(folder.path(), Split::Test)
                .unwrap_err()
                .to_string()
        };
        assert!(error(&[]).contains("is empty"));
        assert!(error(&batch(&[1, 2])[..4000]).contains("cut short"));
        assert!(error(&[1; 100]).contains("cut short"));
        assert!(error(&[200; RECORD]).contains("not a CIFAR-10 batch"));
        let error = read_folder(folder.path(), Split::Train).unwrap_err();
        assert!(error.to_string().contains("data_batch_1.bin"), "{error}");
    }
}
