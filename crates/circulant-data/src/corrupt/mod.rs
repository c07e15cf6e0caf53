//! The corruptions of CIFAR-10-C: fifteen and four extra ones, each in five severities.
//!
//! Parameters, clipping and the order of operations are those of `make_cifar_c.py` of Hendrycks and
//! Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations" (ICLR
//! 2019), for pictures of 32 x 32. What that program takes from scikit-image, OpenCV, SciPy, ImageMagick
//! and the Python Imaging Library is written out here, one corruption per file, with the same arithmetic
//! (`bench/fixtures/corruptions.py` compares). Random numbers come from other generators, so pictures
//! are other draws of the same distribution; the texture of `frost` is drawn instead of photographed.
//! [`Published`] reads the genuine files.
//!
//! Other sizes work too. Lengths that the published program gives in pixels (deviations and radii of
//! blurs, the size of flakes and drops) stay in pixels; those that it gives relative to the side
//! (`elastic_transform`, `pixelate`, the factors of `zoom_blur`) follow the smaller side, and `fog`
//! covers the picture. On larger pictures blurs are therefore weaker than their severity says.
//!
//! A picture depends on the seed, the corruption, the severity and its place in the set only, so threads
//! do not matter and a longer set starts with the shorter one.

mod colour;
mod corruption;
mod defocus;
mod elastic;
mod fog;
mod frost;
mod gaussian;
mod glass;
mod jpeg;
mod motion;
mod noise;
mod picture;
mod pixelate;
mod published;
mod random;
mod sheet;
mod snow;
mod spatter;
mod zoom;

use rayon::prelude::*;

pub use self::corruption::{Corruption, Severity};
pub use self::published::Published;
pub use self::sheet::contact_sheet;

use self::picture::Picture;
use self::random::Random;
use super::error::DataError;
use super::images::{ImageSet, Pixels};

/// A corruption of one severity, ready for pictures of one size: writes all of the last argument, a
/// picture `[3, height, width]` as large as the first.
type Operation = Box<dyn Fn(&Picture<'_>, &mut Random, &mut [u8]) + Send + Sync>;

/// Corrupts all pictures of a set of bytes `[n, 3, height, width]`, in parallel. Labels stay.
///
/// ```
/// use circulant_data::corrupt::{Corruption, Severity, corrupt};
/// use circulant_data::{ImageSet, Labels, Pixels};
///
/// # fn main() -> Result<(), circulant_data::DataError> {
/// let grey = Pixels::U8(vec![128; 2 * 3 * 32 * 32]);
/// let set = ImageSet::new(grey, [2, 3, 32, 32], Labels::default(), "grey")?;
/// let noisy = corrupt(&set, Corruption::GaussianNoise, Severity::new(3)?, 1)?;
/// assert_eq!(noisy.shape(), set.shape());
/// # Ok(())
/// # }
/// ```
pub fn corrupt(
    set: &ImageSet,
    corruption: Corruption,
    severity: Severity,
    seed: u64,
) -> Result<ImageSet, DataError> {
    let shape = set.shape();
    let bytes = colour_bytes(set)?;
    let [_, _, height, width] = shape;
    let operation = operation(corruption, severity, [height, width]);
    let mut output = vec![0; bytes.len()];
    output
        .par_chunks_mut(set.row())
        .zip(bytes.par_chunks(set.row()))
        .enumerate()
        .for_each(|(index, (output, bytes))| {
            let picture = Picture {
                bytes,
                height,
                width,
            };
            let words = [corruption as u64, severity.level() as u64, index as u64];
            operation(&picture, &mut Random::new(seed, words), output);
        });
    let source = format!(
        "{} ({corruption}, severity {severity}, seed {seed})",
        set.source()
    );
    ImageSet::new(Pixels::U8(output), shape, set.labels().clone(), source)
}

/// The bytes of a set that can be corrupted.
fn colour_bytes(set: &ImageSet) -> Result<&[u8], DataError> {
    let wrong = |found: String, help: &str| {
        let expected = "colour pictures of bytes, [n, 3, height, width]";
        DataError::format(set.source(), expected, found, help)
    };
    match (set.pixels(), set.shape()) {
        (Pixels::U8(bytes), [_, 3, ..]) => Ok(bytes),
        (Pixels::U8(_), shape) => Err(wrong(
            format!("the shape {shape:?}"),
            "corruptions are defined for red, green and blue: repeat a grey channel three times first",
        )),
        (Pixels::F32(_), _) => Err(wrong(
            "floats".to_owned(),
            "store the pictures as bytes 0..=255 (array.astype('uint8')) first",
        )),
    }
}

fn operation(corruption: Corruption, severity: Severity, size: [usize; 2]) -> Operation {
    match corruption {
        Corruption::GaussianNoise => noise::gaussian(severity),
        Corruption::ShotNoise => noise::shot(severity),
        Corruption::ImpulseNoise => noise::impulse(severity),
        Corruption::DefocusBlur => defocus::defocus_blur(severity),
        Corruption::GlassBlur => glass::glass_blur(severity),
        Corruption::MotionBlur => motion::motion_blur(severity),
        Corruption::ZoomBlur => zoom::zoom_blur(severity, size),
        Corruption::Snow => snow::snow(severity, size),
        Corruption::Frost => frost::frost(severity),
        Corruption::Fog => fog::fog(severity),
        Corruption::Brightness => colour::brightness(severity),
        Corruption::Contrast => colour::contrast(severity),
        Corruption::ElasticTransform => elastic::elastic_transform(severity, size),
        Corruption::Pixelate => pixelate::pixelate(severity),
        Corruption::JpegCompression => jpeg::jpeg_compression(severity),
        Corruption::SpeckleNoise => noise::speckle(severity),
        Corruption::GaussianBlur => gaussian::gaussian_blur(severity),
        Corruption::Spatter => spatter::spatter(severity),
        Corruption::Saturate => colour::saturate(severity),
    }
}

#[cfg(test)]
mod tests;
