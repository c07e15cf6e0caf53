//! Images in memory, `[n, channels, height, width]`, row-major.
//!
//! Pixels stay bytes where the file has bytes, a quarter of the memory of floats, and become floats
//! by a stated [`Normalisation`]: all at once ([`ImageSet::examples`]) or batch by batch
//! ([`ImageSet::gather`]).

use super::check::{check_finite, check_shape, float_range};
use super::error::DataError;
use super::fingerprint::Fingerprint;
use super::labels::{Examples, Labels};
use super::normalise::Normalisation;

/// The numbers of the images.
#[derive(Debug, Clone, PartialEq)]
pub enum Pixels {
    /// 0..=255.
    U8(Vec<u8>),
    /// As the file has them.
    F32(Vec<f32>),
}

impl Pixels {
    /// How many numbers.
    pub fn len(&self) -> usize {
        match self {
            Self::U8(values) => values.len(),
            Self::F32(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Least and greatest number, as stored.
    pub fn range(&self) -> (f32, f32) {
        match self {
            Self::U8(values) => {
                let (low, high) = values.iter().fold((u8::MAX, u8::MIN), |(low, high), &x| {
                    (low.min(x), high.max(x))
                });
                (low.into(), high.into())
            }
            Self::F32(values) => float_range(values),
        }
    }
}

/// Images with their classes, checked once.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageSet {
    pixels: Pixels,
    shape: [usize; 4],
    labels: Labels,
    source: String,
    /// One per image, or none at all.
    files: Vec<String>,
    scaled: usize,
}

impl ImageSet {
    /// Takes pixels in the order `[n, channels, height, width]`. `source` says where they are from and
    /// appears in errors.
    pub fn new(
        pixels: Pixels,
        shape: [usize; 4],
        labels: Labels,
        source: impl Into<String>,
    ) -> Result<Self, DataError> {
        let source = source.into();
        check_shape(&shape, pixels.len(), &source, "images")?;
        if let Pixels::F32(values) = &pixels {
            check_finite(values, shape[1..].iter().product(), &source)?;
        }
        labels.check(shape[0], &source)?;
        Ok(Self {
            pixels,
            shape,
            labels,
            source,
            files: Vec::new(),
            scaled: 0,
        })
    }

    /// The same images with the names of their files, one per image.
    pub fn with_files(self, files: Vec<String>) -> Result<Self, DataError> {
        let (expected, got) = (self.len(), files.len());
        if got != expected {
            return Err(DataError::length(
                self.source,
                "names of files",
                expected,
                got,
            ));
        }
        Ok(Self { files, ..self })
    }

    /// The same images, of which so many were scaled to their size.
    pub(crate) fn with_scaled(self, scaled: usize) -> Self {
        Self { scaled, ..self }
    }

    /// The names of the files, one per image; none where images do not come in files of their own.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// How many pictures were scaled when they were read.
    pub fn scaled(&self) -> usize {
        self.scaled
    }

    /// The same images with other labels or class names.
    pub fn with_labels(self, labels: Labels) -> Result<Self, DataError> {
        labels.check(self.len(), &self.source)?;
        Ok(Self { labels, ..self })
    }

    /// `[n, channels, height, width]`.
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// The number of images.
    pub fn len(&self) -> usize {
        self.shape[0]
    }

    /// Never: an empty set cannot be made.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pixels as stored.
    pub fn pixels(&self) -> &Pixels {
        &self.pixels
    }

    /// The classes.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Where the images are from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The SHA-256 of shape, pixels and labels. Hashes everything: keep the result.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_images(self)
    }

    /// Numbers per image.
    pub fn row(&self) -> usize {
        self.shape[1..].iter().product()
    }

    /// All images as floats, `[n, channels, height, width]`.
    pub fn values(&self, normalisation: &Normalisation) -> Result<Vec<f32>, DataError> {
        let mut values = Vec::with_capacity(self.pixels.len());
        normalisation.append(&self.pixels, &self.shape, 0..self.len(), &mut values)?;
        Ok(values)
    }

    /// The images at `indices` as floats, appended to `values`. For sets that are too large as floats.
    ///
    /// # Panics
    /// If an index is not below [`ImageSet::len`].
    pub fn gather(
        &self,
        indices: &[usize],
        normalisation: &Normalisation,
        values: &mut Vec<f32>,
    ) -> Result<(), DataError> {
        values.reserve(indices.len() * self.row());
        indices.iter().try_for_each(|&index| {
            normalisation.append(&self.pixels, &self.shape, index..index + 1, values)
        })
    }

    /// Floats `[n, channels, height, width]` with labels, for training.
    pub fn examples(&self, normalisation: &Normalisation) -> Result<Examples<4>, DataError> {
        Ok(Examples {
            labels: self.labels.required(&self.source)?.to_vec(),
            values: self.values(normalisation)?,
            shape: self.shape,
            classes: self.labels.classes(),
        })
    }

    /// The images at `indices`, in their order. Fails if there are none.
    ///
    /// # Panics
    /// If an index is not below [`ImageSet::len`].
    pub fn select(&self, indices: &[usize]) -> Result<Self, DataError> {
        let row = self.row();
        let rows = indices.iter().map(|&index| index * row..(index + 1) * row);
        let pixels = match &self.pixels {
            Pixels::U8(values) => Pixels::U8(rows.flat_map(|row| &values[row]).copied().collect()),
            Pixels::F32(values) => {
                Pixels::F32(rows.flat_map(|row| &values[row]).copied().collect())
            }
        };
        let values = self.labels.values.as_ref();
        let labels = Labels {
            values: values.map(|values| indices.iter().map(|&index| values[index]).collect()),
            names: self.labels.names.clone(),
        };
        let [_, channels, height, width] = self.shape;
        let shape = [indices.len(), channels, height, width];
        let files = self.files.is_empty().then(Vec::new);
        let files = files.unwrap_or_else(|| {
            indices
                .iter()
                .map(|&index| self.files[index].clone())
                .collect()
        });
        let set = Self::new(pixels, shape, labels, self.source.clone())?;
        Ok(Self {
            files,
            scaled: self.scaled,
            ..set
        })
    }

    /// The first `count` images, or all if there are fewer; at least one.
    pub fn first(&self, count: usize) -> Self {
        let count = count.clamp(1, self.len());
        let [_, channels, height, width] = self.shape;
        let end = count * self.row();
        let labels = self.labels.values.as_ref();
        Self {
            pixels: match &self.pixels {
                Pixels::U8(values) => Pixels::U8(values[..end].to_vec()),
                Pixels::F32(values) => Pixels::F32(values[..end].to_vec()),
            },
            shape: [count, channels, height, width],
            labels: Labels {
                values: labels.map(|labels| labels[..count].to_vec()),
                names: self.labels.names.clone(),
            },
            source: self.source.clone(),
            files: self
                .files
                .get(..count)
                .map_or_else(Vec::new, <[String]>::to_vec),
            scaled: self.scaled,
        }
    }
}
