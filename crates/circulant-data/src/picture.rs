//! Decoding PNG and JPEG files to bytes, in parallel, `[channels, height, width]` each.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use image::{DynamicImage, ImageReader, imageops::FilterType};
use rayon::prelude::*;

use super::array::planes;
use super::error::DataError;
use super::stream::open;

/// Decoded pictures, all of one shape.
#[derive(Debug)]
pub(crate) struct Pictures {
    /// One after the other.
    pub pixels: Vec<u8>,
    /// `[channels, height, width]`.
    pub shape: [usize; 3],
}

/// What the pictures should be.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted {
    /// One or three; without it one if the first picture is grey, else three.
    pub channels: Option<usize>,
    /// `[height, width]` to scale to; without it all must have the size of the first.
    pub size: Option<[usize; 2]>,
}

/// Whether a name is that of a PNG or JPEG file.
pub(crate) fn is_picture(name: &str) -> bool {
    let name = name.to_lowercase();
    [".png", ".jpg", ".jpeg"]
        .iter()
        .any(|end| name.ends_with(end))
        && !name.starts_with('.')
}

/// Decodes files in order. `progress` hears how many are done, from any thread.
pub(crate) fn decode_all<P: AsRef<Path> + Sync>(
    paths: &[P],
    wanted: Wanted,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Pictures, DataError> {
    let done = AtomicUsize::new(0);
    let Some(first) = paths.first() else {
        return Ok(Pictures {
            pixels: Vec::new(),
            shape: [wanted.channels.unwrap_or(1), 0, 0],
        });
    };
    let first = decode(first.as_ref())?;
    let [height, width] = wanted
        .size
        .unwrap_or([first.height() as usize, first.width() as usize]);
    // Grey pictures in a colour set are common; one colour picture in a grey set is a mistake.
    let channels = wanted
        .channels
        .unwrap_or(if first.color().has_color() { 3 } else { 1 });
    let row = channels * height * width;
    let mut pixels = vec![0; row * paths.len()];
    pixels
        .par_chunks_mut(row.max(1))
        .zip(paths)
        .try_for_each(|(pixels, path)| {
            let path = path.as_ref();
            let picture = fit(decode(path)?, [height, width], wanted.size.is_some(), path)?;
            if channels == 3 {
                pixels.copy_from_slice(&planes(&picture.into_rgb8(), 3, row));
            } else if picture.color().has_color() {
                return Err(DataError::format(
                    path.display().to_string(),
                    "a grey picture like the first of its set",
                    "a colour picture",
                    "convert all pictures to the same kind",
                ));
            } else {
                pixels.copy_from_slice(&picture.into_luma8());
            }
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
            Ok(())
        })?;
    Ok(Pictures {
        pixels,
        shape: [channels, height, width],
    })
}

/// Decodes one file.
pub(crate) fn decode(path: &Path) -> Result<DynamicImage, DataError> {
    let damaged = |found: String| {
        DataError::format(
            path.display().to_string(),
            "a PNG or JPEG picture",
            found,
            "the file is cut short, damaged or of another kind: replace or remove it",
        )
    };
    ImageReader::new(open(path)?)
        .with_guessed_format()
        .map_err(DataError::io("read", path))?
        .decode()
        .map_err(|error| damaged(error.to_string()))
}

fn fit(
    picture: DynamicImage,
    [height, width]: [usize; 2],
    scale: bool,
    path: &Path,
) -> Result<DynamicImage, DataError> {
    let found = [picture.height() as usize, picture.width() as usize];
    if found == [height, width] {
        Ok(picture)
    } else if scale {
        Ok(picture.resize_exact(width as u32, height as u32, FilterType::Triangle))
    } else {
        Err(DataError::format(
            path.display().to_string(),
            format!("{height} x {width} pixels (height x width) as the first picture"),
            format!("{} x {}", found[0], found[1]),
            "scale all with --size HEIGHTxWIDTH",
        ))
    }
}
