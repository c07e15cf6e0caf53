//! Inputs with their classes, as a training step takes them: copied out of a data set, or left where they lie.

use std::sync::Arc;

use burn::tensor::{Device, Tensor};
use circulant_kernels::ByteScale;

use super::Labels;
use crate::backend::fused::rows_of_bytes;
use crate::functional::select_rows;

/// Inputs `[n, ...]`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Inputs<const D: usize> {
    /// As values.
    Numbers(Tensor<D>),
    /// As bytes, in a quarter of the memory.
    Bytes(ByteInputs<D>),
}

/// Inputs whose values are bytes, as the pixels of most images are.
#[derive(Debug, Clone)]
pub struct ByteInputs<const D: usize> {
    pub(crate) values: Arc<Vec<u8>>,
    pub(crate) scale: ByteScale,
    pub(crate) shape: [usize; D],
    pub(crate) device: Device,
}

impl<const D: usize> ByteInputs<D> {
    fn batch(&self, rows: &[usize]) -> Tensor<D> {
        let mut shape = self.shape;
        shape[0] = rows.len();
        let device = self.device.clone().inner();
        rows_of_bytes(&self.values, rows, &self.scale, shape, &device)
    }
}

impl<const D: usize> From<Tensor<D>> for Inputs<D> {
    fn from(numbers: Tensor<D>) -> Self {
        Self::Numbers(numbers)
    }
}

impl<const D: usize> Inputs<D> {
    /// The inputs at `rows`, all of them when absent, as values, on the device of the inputs; no gradients reach them.
    ///
    /// # Panics
    ///
    /// Panics if one does not exist.
    pub fn batch(&self, rows: Option<&[usize]>) -> Tensor<D> {
        let batch = match (self, rows) {
            (Self::Numbers(inputs), None) => inputs.clone().inner(),
            (Self::Numbers(inputs), Some(rows)) => select_rows(inputs.clone(), rows),
            (Self::Bytes(bytes), None) => bytes.batch(&(0..bytes.shape[0]).collect::<Vec<_>>()),
            (Self::Bytes(bytes), Some(rows)) => bytes.batch(rows),
        };
        if self.device().is_autodiff() {
            Tensor::from_inner(batch)
        } else {
            batch
        }
    }

    pub(super) fn into_autodiff(self) -> Self {
        match self {
            Self::Numbers(inputs) => Self::Numbers(Tensor::from_inner(inputs)),
            Self::Bytes(mut bytes) => {
                bytes.device = bytes.device.autodiff();
                Self::Bytes(bytes)
            }
        }
    }

    /// Bytes stay where they are; those of a batch move when it is taken.
    pub(super) fn on_device(self, device: &Device) -> Self {
        match self {
            Self::Numbers(inputs) => Self::Numbers(inputs.to_device(device)),
            Self::Bytes(mut bytes) => {
                bytes.device = device.clone();
                Self::Bytes(bytes)
            }
        }
    }

    pub(crate) fn device(&self) -> Device {
        match self {
            Self::Numbers(inputs) => inputs.device(),
            Self::Bytes(bytes) => bytes.device.clone(),
        }
    }

    pub(crate) fn dims(&self) -> [usize; D] {
        match self {
            Self::Numbers(inputs) => inputs.dims(),
            Self::Bytes(bytes) => bytes.shape,
        }
    }

    /// `[n, ...]` with one axis for what an input holds.
    pub(crate) fn flatten(self) -> Inputs<2> {
        let dims = self.dims();
        self.reshape([dims[0], dims[1..].iter().product()])
    }

    pub(crate) fn reshape<const E: usize>(self, shape: [usize; E]) -> Inputs<E> {
        match self {
            Self::Numbers(inputs) => Inputs::Numbers(inputs.reshape(shape)),
            Self::Bytes(ByteInputs {
                values,
                scale,
                device,
                ..
            }) => Inputs::Bytes(ByteInputs {
                values,
                scale,
                shape,
                device,
            }),
        }
    }
}

/// Inputs and their classes: a data set, or a batch that has not been copied out of it.
#[derive(Debug, Clone)]
pub struct Examples<const D: usize> {
    /// Those of the batch, and maybe others.
    pub inputs: Inputs<D>,
    /// Which of the inputs belong to the batch, in which order; all of them when absent.
    pub rows: Option<Labels>,
    /// The class of every input of the batch.
    pub labels: Labels,
}

impl<const D: usize> Examples<D> {
    /// The inputs of the batch as values; no gradients reach them.
    pub fn batch(&self) -> Tensor<D> {
        self.inputs
            .batch(self.rows.as_ref().map(|rows| &rows.0[..]))
    }

    /// The same examples for a model on a device with autodiff, from a device without.
    pub fn into_autodiff(self) -> Self {
        self.map(Inputs::into_autodiff)
    }

    /// The same examples with other inputs.
    pub(crate) fn map<const E: usize>(
        self,
        inputs: impl FnOnce(Inputs<D>) -> Inputs<E>,
    ) -> Examples<E> {
        Examples {
            inputs: inputs(self.inputs),
            rows: self.rows,
            labels: self.labels,
        }
    }
}
