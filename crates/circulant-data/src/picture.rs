//! Decoding PNG and JPEG files to bytes, in parallel, `[channels, height, width]` each.

use std::io::Cursor;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::array::count;
use super::decode::Picture;
use super::error::{DataError, Setting};
use super::images::{ImageSet, Pixels};
use super::labels::Labels;
use super::stream::open;

/// Decoded pictures, all of one shape.
#[derive(Debug)]
pub(crate) struct Pictures {
    /// One after the other.
    pub pixels: Vec<u8>,
    /// `[channels, height, width]`.
    pub shape: [usize; 3],
    /// How many had another size.
    pub scaled: usize,
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
    let (done, scaled) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let Some(first) = paths.first() else {
        return Ok(Pictures {
            pixels: Vec::new(),
            shape: [wanted.channels.unwrap_or(1), 0, 0],
            scaled: 0,
        });
    };
    let first = decode(first.as_ref())?;
    let [height, width] = wanted.size.unwrap_or(first.size);
    if !matches!(wanted.channels, None | Some(1 | 3)) {
        return Err(DataError::format(
            "the pictures",
            "a model for 1 or 3 channels",
            format!("{:?} channels", wanted.channels),
            "pictures are grey or coloured; use an array for other channels",
        ));
    }
    // Grey pictures in a colour set are common; one colour picture in a grey set is a mistake.
    let channels = wanted.channels.unwrap_or(first.channels);
    let shape = [channels, height, width];
    let mut pixels = Vec::new();
    let all = count(&[&shape[..], &[paths.len()]].concat(), 1, "the pictures")?;
    pixels.try_reserve_exact(all).map_err(|_| {
        DataError::format(
            "the pictures",
            "pixels that fit into memory",
            format!("{} pictures of the shape {shape:?}", paths.len()),
            "scale them to a smaller size",
        )
    })?;
    pixels.resize(all, 0);
    let row = channels * height * width;
    pixels
        .par_chunks_mut(row.max(1))
        .zip(paths)
        .try_for_each(|(pixels, path)| {
            let path = path.as_ref();
            let picture = decode(path)?;
            if picture.size != [height, width] {
                scaled.fetch_add(1, Ordering::Relaxed);
            }
            let picture = fit(picture, [height, width], wanted.size.is_some(), path)?;
            if channels < picture.channels && wanted.channels.is_none() {
                return Err(DataError::format(
                    path.display().to_string(),
                    "a grey picture like the first of its set",
                    "a colour picture",
                    "convert all pictures to the same kind",
                ));
            }
            let picture = match channels {
                3 => picture.into_colour(),
                _ => picture.into_grey(),
            };
            pixels.copy_from_slice(&picture.bytes);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
            Ok(())
        })?;
    Ok(Pictures {
        pixels,
        shape,
        scaled: scaled.into_inner(),
    })
}

/// Decodes one file.
pub(crate) fn decode(path: &Path) -> Result<Picture, DataError> {
    Picture::decode(open(path)?, &path.display().to_string())
}

/// The bytes of one PNG or JPEG file as a set of one picture without labels. `place` names it in errors.
pub fn parse(content: &[u8], place: &str) -> Result<ImageSet, DataError> {
    let picture = Picture::decode(Cursor::new(content), place)?;
    let shape = [1, picture.channels, picture.size[0], picture.size[1]];
    ImageSet::new(Pixels::U8(picture.bytes), shape, Labels::default(), place)
}

fn fit(
    picture: Picture,
    [height, width]: [usize; 2],
    scale: bool,
    path: &Path,
) -> Result<Picture, DataError> {
    let place = || path.display().to_string();
    let found = picture.size;
    if found == [height, width] {
        Ok(picture)
    } else if scale {
        picture.scaled([height, width]).map_err(|error| {
            DataError::format(
                place(),
                "a size that pictures can be scaled to",
                error.to_string(),
                "give another size",
            )
        })
    } else {
        Err(DataError::format(
            place(),
            format!("{height} x {width} pixels (height x width) as the first picture"),
            format!("{} x {}", found[0], found[1]),
            "give a size to scale all to",
        )
        .by(Setting::PictureSize))
    }
}

#[cfg(test)]
mod tests {
    use image::GrayImage;
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_size_that_does_not_fit_is_refused() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.png");
        GrayImage::new(2, 2).save(&path).unwrap();
        for size in [[usize::MAX, 2], [1 << 32, 1 << 30], [1 << 23, 1 << 23]] {
            let wanted = Wanted {
                channels: None,
                size: Some(size),
            };
            let error = decode_all(&[&path], wanted, &|_| ()).unwrap_err();
            assert!(error.to_string().contains("fit into memory"), "{error}");
        }
    }
}
