//! Labelled examples that do not fit into memory: a function reads those of a batch, from files or wherever they are.

use std::fmt;

use burn::tensor::{Device, Tensor, TensorData};

use super::labelled::{check_length, first_not_finite};
use super::{Examples, ExamplesError, Labels};

/// The values of some inputs, row by row, and their classes.
pub type StoredRows = (Vec<f32>, Vec<usize>);
type Read = dyn Fn(&[usize]) -> Result<StoredRows, ExamplesError> + Send + Sync;

/// Inputs `[N, ...]` with a class each, read when a training step asks for them.
///
/// The next batch is read while the optimiser works. Which examples belong to a step follows from seed and step, so training
/// resumes as from memory.
///
/// ```
/// use circulant::data::{ExamplesError, StoredData};
///
/// // A million examples that are computed instead of read from a file.
/// let data = StoredData::new([1_000_000, 2], 2, 7, &circulant::cpu(), |indices| {
///     let values = indices.iter().flat_map(|&i| [i as f32, 1.0]).collect();
///     Ok((values, indices.iter().map(|i| i % 2).collect()))
/// })?;
/// let batch = data.batch(&[3, 999_999])?;
/// assert_eq!(batch.labels.0[..], [1, 1]);
/// # Ok::<(), ExamplesError>(())
/// ```
pub struct StoredData<const D: usize> {
    read: Box<Read>,
    shape: [usize; D],
    classes: usize,
    fingerprint: u64,
    device: Device,
}

impl<const D: usize> fmt::Debug for StoredData<D> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StoredData")
            .field("shape", &self.shape)
            .field("classes", &self.classes)
            .finish_non_exhaustive()
    }
}

impl<const D: usize> StoredData<D> {
    /// `shape[0]` examples of classes in `0..classes`; `read` gives those at some indices, in their order. The fingerprint is the
    /// caller's: another one for other data, so that no run resumes on them.
    pub fn new(
        shape: [usize; D],
        classes: usize,
        fingerprint: u64,
        device: &Device,
        read: impl Fn(&[usize]) -> Result<StoredRows, ExamplesError> + Send + Sync + 'static,
    ) -> Result<Self, ExamplesError> {
        if shape.first().is_none_or(|examples| *examples == 0) {
            let what = "the data set";
            return Err(ExamplesError::Empty { what });
        }
        Ok(Self {
            read: Box::new(read),
            shape,
            classes,
            fingerprint,
            device: device.clone().inner(),
        })
    }

    /// The number of examples, `N`.
    pub fn examples(&self) -> usize {
        self.shape[0]
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The fingerprint that was given.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Reads the examples at `indices`. What is wrong with them is an error.
    pub fn batch(&self, indices: &[usize]) -> Result<Examples<D>, ExamplesError> {
        let (values, labels) = (self.read)(indices)?;
        let mut shape = self.shape;
        shape[0] = indices.len();
        check_length(
            "the values that were read",
            shape.iter().product(),
            values.len(),
        )?;
        check_length("the labels that were read", indices.len(), labels.len())?;
        let row = (values.len() / indices.len().max(1)).max(1);
        if let Some(position) = first_not_finite(&values) {
            return Err(ExamplesError::NotFiniteInput {
                example: indices[position / row],
                position: position % row,
            });
        }
        if let Some(position) = labels.iter().position(|&label| label >= self.classes) {
            return Err(ExamplesError::Label {
                example: indices[position],
                label: labels[position] as i64,
                classes: self.classes,
            });
        }
        let inputs = Tensor::from_data(TensorData::new(values, shape), &self.device);
        Ok(Examples {
            inputs: inputs.into(),
            rows: None,
            labels: Labels::from(labels),
        })
    }
}
