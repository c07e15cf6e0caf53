//! The classes of examples, and examples ready for training.

use super::error::DataError;

/// What `circulant::data::LabelledData::new` takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Examples<const D: usize> {
    /// The inputs, row-major.
    pub values: Vec<f32>,
    /// Their shape, `[n, ...]`.
    pub shape: [usize; D],
    /// `n` classes.
    pub labels: Vec<i64>,
    /// The number of classes.
    pub classes: usize,
}

/// The class of every example, and what is known of the classes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Labels {
    /// One per example, or none at all.
    pub values: Option<Vec<i64>>,
    /// The names of the classes `0, 1, ...`; empty when unknown.
    pub names: Vec<String>,
}

impl Labels {
    /// Labels without names.
    pub fn numbered(values: Vec<i64>) -> Self {
        Self {
            values: Some(values),
            names: Vec::new(),
        }
    }

    /// The number of classes: that of the names, else one more than the greatest label.
    pub fn classes(&self) -> usize {
        let seen = self.values.iter().flatten().max();
        let seen = seen.map_or(0, |&label| {
            usize::try_from(label).map_or(0, |label| label + 1)
        });
        self.names.len().max(seen)
    }

    /// How many examples each class has.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.classes()];
        for &label in self.values.iter().flatten() {
            if let Some(count) = usize::try_from(label).ok().and_then(|l| counts.get_mut(l)) {
                *count += 1;
            }
        }
        counts
    }

    /// More classes than this are taken for a mistake (a wrong column): ImageNet's largest set has
    /// 21,841.
    const MOST_CLASSES: usize = 1 << 15;

    pub(crate) fn check(&self, examples: usize, place: &str) -> Result<(), DataError> {
        let Some(values) = &self.values else {
            return Ok(());
        };
        if values.len() != examples {
            return Err(DataError::LabelCount {
                place: place.to_owned(),
                examples,
                labels: values.len(),
            });
        }
        let limit = match self.names.len() {
            0 => Self::MOST_CLASSES as i64,
            names @ ..=Self::MOST_CLASSES => names as i64,
            names => {
                return Err(DataError::format(
                    place,
                    format!("at most {} classes", Self::MOST_CLASSES),
                    names.to_string(),
                    "another column or array has the labels",
                ));
            }
        };
        match values.iter().position(|label| !(0..limit).contains(label)) {
            None => Ok(()),
            Some(example) => Err(DataError::Label {
                place: place.to_owned(),
                example,
                label: values[example].to_string(),
                expected: format!("a class in 0..{limit}"),
            }),
        }
    }

    /// The labels, or an error that names the place where they are missing.
    pub fn required(&self, place: &str) -> Result<&[i64], DataError> {
        self.values.as_deref().ok_or_else(|| DataError::NoLabels {
            place: place.to_owned(),
            help:
                "name a file or an array with them, or use the set as out-of-distribution data only"
                    .to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_classes_are_taken_for_a_wrong_column() {
        let error = |labels: Labels| labels.check(1, "test").unwrap_err().to_string();
        assert!(Labels::numbered(vec![21_840]).check(1, "test").is_ok());
        let text = error(Labels::numbered(vec![1 << 15]));
        assert!(text.contains("a class in 0..32768"), "{text}");
        let text = error(Labels {
            values: Some(vec![0]),
            names: vec![String::new(); (1 << 15) + 1],
        });
        assert!(text.contains("at most 32768 classes"), "{text}");
    }
}
