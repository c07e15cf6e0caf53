//! Decoding PNG and JPEG files to bytes, in parallel, `[channels, height, width]` each.

use std::io::{BufRead, Cursor, Seek};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use image::{DynamicImage, ImageDecoder, ImageReader, imageops::FilterType};
use rayon::prelude::*;

use super::array::{count, planes};
use super::error::{DataError, Setting};
use super::images::{ImageSet, Pixels};
use super::labels::Labels;
use super::stream::{damage, open};

/// The most pixels of one picture, 8192 x 8192: a few bytes of a PNG file can claim any number.
const MOST_PIXELS: u64 = 1 << 26;

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
    Ok(Pictures { pixels, shape })
}

/// Decodes one file.
pub(crate) fn decode(path: &Path) -> Result<DynamicImage, DataError> {
    decode_from(open(path)?, &path.display().to_string())
}

/// The bytes of one PNG or JPEG file as a set of one picture without labels. `place` names it in errors.
pub fn parse(content: &[u8], place: &str) -> Result<ImageSet, DataError> {
    let picture = decode_from(Cursor::new(content), place)?;
    let [height, width] = [picture.height() as usize, picture.width() as usize];
    let (pixels, channels) = if picture.color().has_color() {
        let row = 3 * height * width;
        (planes(&picture.into_rgb8(), 3, row), 3)
    } else {
        (picture.into_luma8().into_raw(), 1)
    };
    let shape = [1, channels, height, width];
    ImageSet::new(Pixels::U8(pixels), shape, Labels::default(), place)
}

fn decode_from(content: impl BufRead + Seek, place: &str) -> Result<DynamicImage, DataError> {
    let damaged = |found: String| {
        DataError::format(
            place,
            "a PNG or JPEG picture",
            found,
            "the file is cut short, damaged or of another kind: replace or remove it",
        )
    };
    let decoder = ImageReader::new(content)
        .with_guessed_format()
        .map_err(|error| damage(error, place))?
        .into_decoder()
        .map_err(|error| damaged(error.to_string()))?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        return Err(DataError::format(
            place,
            format!("at most {MOST_PIXELS} pixels"),
            format!("{height} x {width} (height x width)"),
            "scale the picture down, or get the file again if it should be smaller",
        ));
    }
    DynamicImage::from_decoder(decoder).map_err(|error| damaged(error.to_string()))
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
    fn claims_of_a_header_are_checked_before_anything_is_decoded() {
        let mut bytes = Vec::new();
        GrayImage::new(2, 3)
            .write_to(&mut Cursor::new(&mut bytes), image::ImageFormat::Png)
            .unwrap();
        assert_eq!(parse(&bytes, "a.png").unwrap().shape(), [1, 1, 3, 2]);
        // Width and height are at 16..24 of a PNG file, then five bytes and their checksum.
        bytes[16..20].copy_from_slice(&20_000_u32.to_be_bytes());
        bytes[20..24].copy_from_slice(&20_000_u32.to_be_bytes());
        let sum = crc(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&sum.to_be_bytes());
        let error = parse(&bytes, "a.png").unwrap_err().to_string();
        assert!(
            error.contains("20000 x 20000") && error.contains("at most"),
            "{error}"
        );
    }

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

    fn crc(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |sum, &byte| {
            (0..8).fold(sum ^ u32::from(byte), |sum, _| {
                sum >> 1 ^ (0xedb8_8320 * (sum & 1))
            })
        })
    }
}
