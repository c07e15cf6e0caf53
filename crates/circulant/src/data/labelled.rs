//! Labelled examples in memory.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use circulant_kernels::ByteScale;

use super::ExamplesError;
use super::{ByteInputs, Examples, Inputs, Labels};

/// Inputs `[N, ...]` with a class each, checked once.
#[derive(Debug, Clone)]
pub struct LabelledData<const D: usize> {
    inputs: Inputs<D>,
    labels: Arc<[usize]>,
    classes: usize,
    weights: Option<Arc<[f32]>>,
    fingerprint: u64,
}

impl<const D: usize> LabelledData<D> {
    /// Takes `shape[0]` inputs in row-major order and their classes in `0..classes`.
    pub fn new(
        inputs: Vec<f32>,
        shape: [usize; D],
        labels: &[i64],
        classes: usize,
        device: &Device,
    ) -> Result<Self, ExamplesError> {
        check_sizes(&shape, inputs.len())?;
        let row = inputs.len() / shape[0];
        if let Some(position) = first_not_finite(&inputs) {
            return Err(ExamplesError::NotFiniteInput {
                example: position / row,
                position: position % row,
            });
        }
        let sum = crc32fast::hash(bytemuck::cast_slice(&inputs));
        let data = TensorData::new(inputs, shape);
        let inputs = Inputs::Numbers(Tensor::from_data(data, &device.clone().inner()));
        Self::checked(inputs, sum, shape, labels, classes)
    }

    /// [`Self::new`] of bytes that stand for values, as the pixels of most images do. They stay bytes, and take a quarter of
    /// the memory. A scale has one channel, or as many as the inputs (`shape[1]`).
    ///
    /// ```
    /// use circulant::data::LabelledData;
    /// use circulant::data::ByteScale;
    ///
    /// let (pixels, unit) = (vec![0, 255, 51, 102], ByteScale::new(255.0)?);
    /// let data = LabelledData::from_bytes(pixels, unit, [2, 2], &[0, 1], 10, &circulant::cpu())?;
    /// assert_eq!(data.inputs().into_data().try_into_vec::<f32>().unwrap(), [0.0, 1.0, 0.2, 0.4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(
        inputs: Vec<u8>,
        scale: ByteScale,
        shape: [usize; D],
        labels: &[i64],
        classes: usize,
        device: &Device,
    ) -> Result<Self, ExamplesError> {
        check_sizes(&shape, inputs.len())?;
        let channels = shape.get(1).copied().unwrap_or(1);
        if ![1, channels].contains(&scale.channels()) {
            return Err(ExamplesError::Length {
                what: "the channels of the scale, if there are several",
                expected: channels,
                got: scale.channels(),
            });
        }
        let mut sum = crc32fast::Hasher::new();
        sum.update(&scale.to_bytes());
        sum.update(&inputs);
        let inputs = Inputs::Bytes(ByteInputs {
            values: Arc::new(inputs),
            scale,
            shape,
            device: device.clone().inner(),
        });
        Self::checked(inputs, sum.finalize(), shape, labels, classes)
    }

    /// With the checksum `sum` of the inputs.
    fn checked(
        inputs: Inputs<D>,
        sum: u32,
        shape: [usize; D],
        labels: &[i64],
        classes: usize,
    ) -> Result<Self, ExamplesError> {
        check_length("the labels", shape[0], labels.len())?;
        let class = |(example, &label): (usize, &i64)| {
            usize::try_from(label)
                .ok()
                .filter(|&class| class < classes)
                .ok_or(ExamplesError::Label {
                    example,
                    label,
                    classes,
                })
        };
        let labels: Vec<usize> = labels
            .iter()
            .enumerate()
            .map(class)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            fingerprint: fingerprint(sum, &labels, &shape),
            inputs,
            labels: labels.into(),
            classes,
            weights: None,
        })
    }

    /// The same data for a model on this device.
    pub fn to_device(mut self, device: &Device) -> Self {
        self.inputs = self.inputs.on_device(&device.clone().inner());
        self
    }

    /// Weighs the likelihood of every example so that all classes weigh the same: `N/(K n_k)` for a class of `n_k` examples, of `K`
    /// classes that have any. Weights that were given before are lost.
    pub fn balanced(mut self) -> Self {
        let mut counts = vec![0_usize; self.classes];
        self.labels.iter().for_each(|&label| counts[label] += 1);
        let present = counts.iter().filter(|&&count| count > 0).count();
        let weight = |&label: &usize| self.labels.len() as f32 / (present * counts[label]) as f32;
        self.weights = Some(self.labels.iter().map(weight).collect());
        // Another likelihood is another run.
        self.fingerprint = self.fingerprint.rotate_left(1) ^ 1;
        self
    }

    /// Weighs the likelihood of every example: with the weight 2, one counts as if it were there twice.
    ///
    /// ```
    /// use circulant::data::LabelledData;
    ///
    /// let data = LabelledData::new(vec![0.0, 1.0], [2, 1], &[0, 1], 2, &circulant::cpu())?;
    /// assert_eq!(data.weighted(vec![2.0, 0.5])?.weights(), Some(&[2.0, 0.5][..]));
    /// # Ok::<(), circulant::data::ExamplesError>(())
    /// ```
    pub fn weighted(mut self, weights: Vec<f32>) -> Result<Self, ExamplesError> {
        self.fingerprint ^= check_weights(self.labels.len(), &weights)?;
        self.weights = Some(weights.into());
        Ok(self)
    }

    /// The weight of every example, if they are not all 1.
    pub fn weights(&self) -> Option<&[f32]> {
        self.weights.as_deref()
    }

    /// The number of examples, `N`.
    pub fn examples(&self) -> usize {
        self.labels.len()
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// All inputs, on a device without autodiff.
    pub fn inputs(&self) -> Tensor<D> {
        self.inputs.batch(None)
    }

    /// All classes.
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }

    /// A number that changes when the data do.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The examples at `indices`, left where they lie, on a device without autodiff.
    ///
    /// # Panics
    ///
    /// Panics if one does not exist.
    pub fn select(&self, indices: &[usize]) -> Examples<D> {
        Examples {
            inputs: self.inputs.clone(),
            rows: Some(Labels(Arc::from(indices))),
            labels: self.labels_at(indices),
        }
    }

    /// [`Self::select`] with the inputs copied out of the data, as values.
    pub fn batch(&self, indices: &[usize]) -> Examples<D> {
        Examples {
            inputs: self.inputs.batch(Some(indices)).into(),
            rows: None,
            labels: self.labels_at(indices),
        }
    }

    fn labels_at(&self, indices: &[usize]) -> Labels {
        Labels(indices.iter().map(|&index| self.labels[index]).collect())
    }
}

pub(super) fn check_sizes(shape: &[usize], numbers: usize) -> Result<(), ExamplesError> {
    if shape.first().is_none_or(|examples| *examples == 0) {
        return Err(ExamplesError::Empty {
            what: "the data set",
        });
    }
    check_length("the inputs", shape.iter().product(), numbers)
}

pub(super) fn check_length(
    what: &'static str,
    expected: usize,
    got: usize,
) -> Result<(), ExamplesError> {
    if expected == got {
        return Ok(());
    }
    Err(ExamplesError::Length {
        what,
        expected,
        got,
    })
}

/// A checksum of the weights, if examples can have them.
pub(super) fn check_weights(examples: usize, weights: &[f32]) -> Result<u64, ExamplesError> {
    check_length("the weights", examples, weights.len())?;
    let is_weight = |weight: &f32| *weight >= 0.0 && weight.is_finite();
    match weights.iter().position(|weight| !is_weight(weight)) {
        Some(example) => Err(ExamplesError::Weight {
            example,
            weight: weights[example],
        }),
        None => Ok(u64::from(crc32fast::hash(bytemuck::cast_slice(weights))) << 16),
    }
}

/// A checksum of everything: `inputs` is that of the inputs.
fn fingerprint(inputs: u32, labels: &[usize], shape: &[usize]) -> u64 {
    let mut sizes = crc32fast::Hasher::new();
    for &size in shape.iter().chain(labels) {
        sizes.update(&(size as u64).to_le_bytes());
    }
    u64::from(sizes.finalize()) << 32 | u64::from(inputs)
}

/// The first number that is not finite. Whole blocks are judged at once, which vectorises.
pub(super) fn first_not_finite(values: &[f32]) -> Option<usize> {
    const BLOCK: usize = 4096;
    let is_bad = |block: &[f32]| block.iter().fold(false, |bad, x| bad | !x.is_finite());
    let block = values.chunks(BLOCK).position(is_bad)?;
    let rest = &values[block * BLOCK..];
    rest.iter()
        .position(|x| !x.is_finite())
        .map(|position| block * BLOCK + position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_numbers_they_stand_for() {
        let device = crate::cpu();
        let pixels: Vec<u8> = (0..6 * 4).map(|i| (i * 11) as u8).collect();
        let numbers = pixels.iter().map(|&x| f32::from(x) / 255.0).collect();
        let (shape, labels) = ([6, 4], [0, 1, 2, 0, 1, 2]);
        let scale = || ByteScale::new(255.0).expect("valid");
        let bytes = LabelledData::from_bytes(pixels.clone(), scale(), shape, &labels, 3, &device)
            .expect("valid");
        let floats = LabelledData::new(numbers, shape, &labels, 3, &device).expect("valid");
        let host = |tensor: Tensor<2>| tensor.into_data().try_into_vec::<f32>().expect("f32");
        assert_eq!(host(bytes.inputs()), host(floats.inputs()));
        let rows = [4, 0, 4];
        let (taken, expected) = (bytes.select(&rows), floats.select(&rows));
        assert_eq!(taken.inputs.dims(), [6, 4], "nothing is copied yet");
        assert_eq!(host(taken.batch()), host(expected.batch()));
        let copied = bytes.batch(&rows);
        assert_eq!(copied.inputs.dims(), [3, 4]);
        assert_eq!(host(copied.batch()), host(expected.batch()));
        assert_eq!(taken.labels.0, expected.labels.0);
        let other = ByteScale::new(1.0).expect("valid");
        let other = LabelledData::from_bytes(pixels.clone(), other, shape, &labels, 3, &device);
        let other = other.expect("valid");
        assert_ne!(bytes.fingerprint(), other.fingerprint());
        let scale = ByteScale::standardised(1.0, &[(0.0, 1.0); 3]).expect("valid");
        let error = LabelledData::from_bytes(pixels, scale, shape, &labels, 3, &device);
        assert!(
            error
                .expect_err("4 are no 3 channels")
                .to_string()
                .contains("channels")
        );
        // Six values are a multiple of three, but those of two channels.
        let scale = ByteScale::standardised(1.0, &[(0.0, 1.0); 3]).expect("valid");
        let error = LabelledData::from_bytes(vec![0; 12], scale, [2, 2, 3], &[0, 1], 3, &device);
        let error = error.expect_err("2 channels are not 3").to_string();
        assert!(error.contains("expected 2 values, got 3"), "{error}");
    }

    #[test]
    fn wrong_data_is_named() {
        let device = crate::cpu();
        let new = |inputs: Vec<f32>, rows: usize, labels: &[i64]| {
            LabelledData::new(inputs, [rows, 2], labels, 3, &device)
                .map(|_| ())
                .expect_err("wrong data")
                .to_string()
        };
        assert!(new(vec![], 0, &[]).contains("empty"));
        assert!(new(vec![0.0; 4], 2, &[0, 3]).contains("label 3 of example 1"));
        assert!(new(vec![0.0; 4], 2, &[-1, 0]).contains("label -1 of example 0"));
        assert!(new(vec![0.0; 3], 2, &[0, 0]).contains("expected 4 values, got 3"));
        assert!(new(vec![0.0; 4], 2, &[0]).contains("expected 2 values, got 1"));
        let error = new(vec![0.0, 0.0, 0.0, f32::NAN], 2, &[0, 1]);
        assert!(error.contains("number 1 of example 1"), "{error}");
    }
}
