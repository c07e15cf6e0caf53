//! Features of pictures from a frozen encoder: any ONNX file with one picture as input, `[N, 3, H, W]`, and a pooled output,
//! `[N, features]` or `[N, features, 1, 1]`. rten runs it, in pure Rust, if this crate is built
//! with its feature `encoder`.
//!
//! Small groups of pictures go through, as many groups at once as there are threads: every core has work from the first layer to
//! the last, and the features of a picture do not depend on its neighbours.

mod file;
#[cfg(feature = "encoder")]
mod onnx;
mod preprocess;
mod runtime;

use std::fs;
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use self::runtime::Runtime;
use super::array::count;
use super::error::{DataError, Setting};
use super::fingerprint::Fingerprint;
use super::images::ImageSet;

pub use file::{FeatureFile, Identity, Numbers};
pub use preprocess::{ChannelOrder, Preprocessing};

/// Pictures that go through together: the last layers of a network have few pixels, and more pictures fill their products.
const GROUP: usize = 8;

/// An encoder for pictures of one size.
pub struct Encoder {
    runtime: Runtime,
    preprocessing: Preprocessing,
    /// `[height, width]` of its input.
    size: [usize; 2],
    features: usize,
    fingerprint: Fingerprint,
    place: String,
}

impl Encoder {
    /// Reads an ONNX file and makes it ready for pictures `[height, width]`, before they are scaled.
    pub fn open(
        path: &Path,
        preprocessing: Preprocessing,
        picture: [usize; 2],
    ) -> Result<Self, DataError> {
        preprocessing.check()?;
        let place = path.display().to_string();
        let bytes = fs::read(path).map_err(DataError::io("read", path))?;
        let mut hash = Sha256::new();
        hash.update(&bytes);
        let size = preprocessing.size(picture);
        let wrong = |found: String, help: &str| {
            let expected =
                "an ONNX encoder with the input [N, 3, H, W] and a pooled output [N, features]";
            DataError::format(place.clone(), expected, found, help)
        };
        let not_onnx = |reason: String| {
            wrong(
                reason,
                "export it again, with the pictures' size left open or equal to what they are \
                 scaled to",
            )
            .by(Setting::EncoderSize)
        };
        let shape = [GROUP, 3, size[0], size[1]];
        let values = vec![0.0; count(&shape, size_of::<f32>(), &place)?];
        let runtime = Runtime::load(bytes, shape).map_err(not_onnx)?;
        let output = runtime.run(values).map_err(not_onnx)?.shape;
        let features = match output[..] {
            [GROUP, features] | [GROUP, features, 1, 1] if features > 0 => features,
            _ => {
                return Err(wrong(
                    format!("an output of the shape {output:?} for {GROUP} pictures"),
                    "cut the file behind its pooling, before the classifier",
                ));
            }
        };
        Ok(Self {
            runtime,
            preprocessing,
            size,
            features,
            fingerprint: Fingerprint::from_hash(hash),
            place,
        })
    }

    /// Numbers per picture.
    pub fn features(&self) -> usize {
        self.features
    }

    /// The SHA-256 of the file.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// What is done to pictures first.
    pub fn preprocessing(&self) -> &Preprocessing {
        &self.preprocessing
    }

    /// The features of some pictures of a set, row by row.
    pub fn encode(&self, set: &ImageSet, range: Range<usize>) -> Result<Vec<f32>, DataError> {
        let channels = set.shape()[1];
        if channels != 1 && channels != 3 {
            return Err(DataError::format(
                set.source(),
                "pictures with one or three channels",
                format!("{channels} channels"),
                "encoders see grey or colour pictures",
            ));
        }
        let indices: Vec<usize> = range.collect();
        let rows: Result<Vec<Vec<f32>>, DataError> = indices
            .par_chunks(GROUP)
            .map(|group| self.group(set, group))
            .collect();
        Ok(rows?.concat())
    }

    /// A group that is not whole is filled up with zeros, so that every picture goes the same way.
    fn group(&self, set: &ImageSet, indices: &[usize]) -> Result<Vec<f32>, DataError> {
        let failed = |found: String| {
            DataError::format(
                self.place.clone(),
                format!(
                    "{} finite features of each of the pictures {indices:?} of {}",
                    self.features,
                    set.source()
                ),
                found,
                "check the pictures and the preprocessing that the encoder asks for",
            )
        };
        let mut values = Vec::with_capacity(GROUP * 3 * self.size[0] * self.size[1]);
        for &index in indices {
            values.extend(self.preprocessing.apply(set, index)?);
        }
        values.resize(GROUP * 3 * self.size[0] * self.size[1], 0.0);
        let mut rows = self.runtime.run(values).map_err(failed)?.values;
        rows.truncate(indices.len() * self.features);
        match rows.iter().find(|x| !x.is_finite()) {
            Some(x) => Err(failed(format!("{x} among them"))),
            None => Ok(rows),
        }
    }
}

#[cfg(test)]
#[cfg(feature = "encoder")]
mod tests;
