//! Features in memory, `[n, d]`, row by row.

use super::array::count;
use super::check::{check_finite, check_shape, float_range};
use super::error::DataError;
use super::fingerprint::Fingerprint;
use super::images::{ImageSet, Pixels};
use super::labels::{Examples, Labels};

/// Rows of numbers with their classes, checked once.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureSet {
    values: Vec<f32>,
    shape: [usize; 2],
    labels: Labels,
    source: String,
}

impl FeatureSet {
    /// Takes `[n, d]` numbers, row by row.
    pub fn new(
        values: Vec<f32>,
        shape: [usize; 2],
        labels: Labels,
        source: impl Into<String>,
    ) -> Result<Self, DataError> {
        let source = source.into();
        check_shape(&shape, values.len(), &source, "rows")?;
        check_finite(&values, shape[1], &source)?;
        labels.check(shape[0], &source)?;
        Ok(Self {
            values,
            shape,
            labels,
            source,
        })
    }

    /// `[n, d]`.
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// All numbers, row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The classes.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Where the features are from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The SHA-256 of shape, numbers and labels. Hashes everything: keep the result.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_features(self)
    }

    /// Least and greatest number.
    pub fn range(&self) -> (f32, f32) {
        float_range(&self.values)
    }

    /// Numbers and labels for training.
    pub fn examples(&self) -> Result<Examples<2>, DataError> {
        Ok(Examples {
            labels: self.labels.required(&self.source)?.to_vec(),
            values: self.values.clone(),
            shape: self.shape,
            classes: self.labels.classes(),
        })
    }

    /// Reads every row as an image `[channels, height, width]`, as in a CSV file of pixels.
    pub fn into_images(self, [channels, height, width]: [usize; 3]) -> Result<ImageSet, DataError> {
        let row = count(&[channels, height, width], 1, &self.source)?;
        if row != self.shape[1] {
            return Err(DataError::length(
                self.source,
                "numbers per row for such images",
                row,
                self.shape[1],
            ));
        }
        let shape = [self.shape[0], channels, height, width];
        ImageSet::new(Pixels::F32(self.values), shape, self.labels, self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> FeatureSet {
        let values = (0..12).map(|x| x as f32).collect();
        FeatureSet::new(values, [3, 4], Labels::numbered(vec![0, 1, 2]), "test").unwrap()
    }

    #[test]
    fn rows_become_images_of_their_size_only() {
        let images = set().into_images([1, 2, 2]).unwrap();
        assert_eq!(images.shape(), [3, 1, 2, 2]);
        let rest = images.select(&[1, 2]).unwrap();
        assert_eq!(
            rest.pixels(),
            &Pixels::F32((4..12).map(|x| x as f32).collect())
        );
        assert_eq!(rest.labels().values, Some(vec![1, 2]));
        assert_eq!(images.first(2).labels().values, Some(vec![0, 1]));
        let error = set().into_images([1, 2, 3]).unwrap_err().to_string();
        assert!(error.contains("expected 6 numbers"), "{error}");
        assert!(set().into_images([1 << 40, 1 << 40, 2]).is_err());
    }

    #[test]
    fn sets_without_labels_say_so_when_labels_are_needed() {
        let set = FeatureSet::new(vec![1.0], [1, 1], Labels::default(), "test").unwrap();
        let error = set.examples().unwrap_err().to_string();
        assert!(error.contains("no labels"), "{error}");
        let wrong = FeatureSet::new(vec![1.0; 3], [2, 2], Labels::default(), "test");
        let error = wrong.unwrap_err().to_string();
        assert!(error.contains("expected 4 numbers"), "{error}");
    }
}
