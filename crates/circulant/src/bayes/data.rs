//! Labelled examples in memory, and the order in which training sees them.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use circulant_kernels::uniform_u64;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::BayesError;
use super::noise::{Noise, Purpose};
use crate::functions::Examples;
use crate::ops::fused::Labels;

/// Inputs `[N, ...]` with a class each, checked once.
#[derive(Debug, Clone)]
pub struct LabelledData<const D: usize> {
    inputs: Tensor<D>,
    labels: Arc<[usize]>,
    classes: usize,
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
    ) -> Result<Self, BayesError> {
        let examples = shape[0];
        if examples == 0 {
            return Err(BayesError::Empty {
                what: "the data set",
            });
        }
        let check = |what, expected, got| {
            if expected == got {
                Ok(())
            } else {
                Err(BayesError::Length {
                    what,
                    expected,
                    got,
                })
            }
        };
        check("the inputs", shape.iter().product(), inputs.len())?;
        check("the labels", examples, labels.len())?;
        let row = inputs.len() / examples;
        if let Some(position) = first_not_finite(&inputs) {
            return Err(BayesError::NotFiniteInput {
                example: position / row,
                position: position % row,
            });
        }
        let class = |(example, &label): (usize, &i64)| {
            usize::try_from(label)
                .ok()
                .filter(|&class| class < classes)
                .ok_or(BayesError::Label {
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
        let fingerprint = fingerprint(&inputs, &labels, &shape);
        Ok(Self {
            inputs: Tensor::from_data(TensorData::new(inputs, shape), &device.clone().inner()),
            labels: labels.into(),
            classes,
            fingerprint,
        })
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
        self.inputs.clone()
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
        let labels = indices.iter().map(|&index| self.labels[index]);
        Examples {
            inputs: self.inputs.clone(),
            labels: Labels(labels.collect()),
            rows: Some(Labels(Arc::from(indices))),
        }
    }

    /// [`Self::select`] with the inputs copied out of the data.
    pub fn batch(&self, indices: &[usize]) -> Examples<D> {
        let selected = self.select(indices);
        Examples {
            inputs: selected.batch(),
            rows: None,
            ..selected
        }
    }
}

/// A checksum of all bytes and sizes.
fn fingerprint(inputs: &[f32], labels: &[usize], shape: &[usize]) -> u64 {
    let mut sizes = crc32fast::Hasher::new();
    for &size in shape.iter().chain(labels) {
        sizes.update(&(size as u64).to_le_bytes());
    }
    let numbers = crc32fast::hash(bytemuck::cast_slice(inputs));
    u64::from(sizes.finalize()) << 32 | u64::from(numbers)
}

/// The first number that is not finite. Whole blocks are judged at once, which vectorises.
fn first_not_finite(values: &[f32]) -> Option<usize> {
    const BLOCK: usize = 4096;
    let is_bad = |block: &[f32]| block.iter().fold(false, |bad, x| bad | !x.is_finite());
    let block = values.chunks(BLOCK).position(is_bad)?;
    let rest = &values[block * BLOCK..];
    rest.iter()
        .position(|x| !x.is_finite())
        .map(|position| block * BLOCK + position)
}

/// The order of the examples: every epoch a new permutation, cut into whole batches; what is left over at its end is
/// skipped in this epoch. The batch of a step depends on the seed and the step only.
#[derive(Debug, Clone)]
pub struct BatchOrder {
    seed: u64,
    examples: usize,
    batch: usize,
    epoch: Option<u64>,
    permutation: Vec<usize>,
}

impl BatchOrder {
    /// Batches of `batch` out of `examples`; a larger batch is the whole set.
    pub fn new(seed: u64, examples: usize, batch: usize) -> Result<Self, BayesError> {
        for (what, size) in [("the data set", examples), ("the batch", batch)] {
            if size == 0 {
                return Err(BayesError::Empty { what });
            }
        }
        Ok(Self {
            seed,
            examples,
            batch: batch.min(examples),
            epoch: None,
            permutation: Vec::new(),
        })
    }

    /// The size of a batch.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// The indices of the batch of a step.
    pub fn at(&mut self, step: u64) -> &[usize] {
        let per_epoch = (self.examples / self.batch) as u64;
        let epoch = step / per_epoch;
        if self.epoch != Some(epoch) {
            self.permutation = (0..self.examples).collect();
            let key = Noise::new(self.seed, Purpose::Order, epoch, 0).next_key();
            let mut generator = StdRng::seed_from_u64(uniform_u64(key, 0));
            self.permutation.shuffle(&mut generator);
            self.epoch = Some(epoch);
        }
        let start = (step % per_epoch) as usize * self.batch;
        &self.permutation[start..start + self.batch]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_has_every_example_at_most_once() {
        let mut order = BatchOrder::new(3, 103, 10).expect("valid");
        let mut seen: Vec<usize> = (0..10).flat_map(|step| order.at(step).to_vec()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 100);
        let first = order.at(0).to_vec();
        assert_ne!(first, order.at(10).to_vec(), "another epoch, another order");
        assert_eq!(first, order.at(0).to_vec(), "steps may come in any order");
        let mut other = BatchOrder::new(4, 103, 10).expect("valid");
        assert_ne!(first, other.at(0).to_vec());
        assert_eq!(BatchOrder::new(0, 5, 10).expect("valid").at(7).len(), 5);
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
