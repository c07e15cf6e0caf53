//! Examples with a number or a count each.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};

use super::labelled::{check_length, check_sizes, check_weights, first_not_finite};
use super::{ExamplesError, Inputs};

/// Inputs `[N, ...]` with a target each, checked once.
///
/// Training works best on targets of mean zero and deviation one; predictions are put back into their own unit by
/// [`Mixtures::rescaled`](crate::metrics::Mixtures::rescaled).
#[derive(Debug, Clone)]
pub struct RegressionData<const D: usize> {
    inputs: Inputs<D>,
    targets: Arc<[f32]>,
    weights: Option<Arc<[f32]>>,
    fingerprint: u64,
}

/// Some of the examples.
#[derive(Debug, Clone)]
pub struct RegressionExamples<const D: usize> {
    /// The inputs.
    pub inputs: Inputs<D>,
    /// One per input.
    pub targets: Arc<[f32]>,
}

impl<const D: usize> RegressionExamples<D> {
    /// The same examples for a model on a device with autodiff, from a device without.
    pub fn into_autodiff(self) -> Self {
        Self {
            inputs: self.inputs.into_autodiff(),
            targets: self.targets,
        }
    }
}

impl<const D: usize> RegressionData<D> {
    /// Takes `shape[0]` inputs in row-major order and their targets.
    pub fn new(
        inputs: Vec<f32>,
        shape: [usize; D],
        targets: &[f32],
        device: &Device,
    ) -> Result<Self, ExamplesError> {
        check_sizes(&shape, inputs.len())?;
        check_length("the targets", shape[0], targets.len())?;
        let row = inputs.len() / shape[0];
        if let Some(position) = first_not_finite(&inputs) {
            return Err(ExamplesError::NotFiniteInput {
                example: position / row,
                position: position % row,
            });
        }
        if let Some(example) = first_not_finite(targets) {
            return Err(ExamplesError::Target {
                example,
                target: targets[example],
                expected: "a finite number",
            });
        }
        let mut sum = crc32fast::Hasher::new();
        sum.update(bytemuck::cast_slice(targets));
        for size in shape {
            sum.update(&(size as u64).to_le_bytes());
        }
        let of_inputs = crc32fast::hash(bytemuck::cast_slice(&inputs));
        let data = TensorData::new(inputs, shape);
        Ok(Self {
            inputs: Inputs::Numbers(Tensor::from_data(data, &device.clone().inner())),
            targets: targets.into(),
            weights: None,
            fingerprint: u64::from(sum.finalize()) << 32 | u64::from(of_inputs),
        })
    }

    /// [`Self::new`] of counts: a target that is no whole number from 0 is an error.
    pub fn counts(
        inputs: Vec<f32>,
        shape: [usize; D],
        targets: &[f32],
        device: &Device,
    ) -> Result<Self, ExamplesError> {
        let is_count = |y: &f32| *y >= 0.0 && y.fract() == 0.0 && y.is_finite();
        if let Some(example) = targets.iter().position(|y| !is_count(y)) {
            return Err(ExamplesError::Target {
                example,
                target: targets[example],
                expected: "a whole number from 0",
            });
        }
        Self::new(inputs, shape, targets, device)
    }

    /// The same data for a model on this device.
    pub fn to_device(mut self, device: &Device) -> Self {
        self.inputs = self.inputs.on_device(&device.clone().inner());
        self
    }

    /// Weighs the likelihood of every example: with the weight 2, one counts as if it were there twice.
    pub fn weighted(mut self, weights: Vec<f32>) -> Result<Self, ExamplesError> {
        self.fingerprint ^= check_weights(self.targets.len(), &weights)?;
        self.weights = Some(weights.into());
        Ok(self)
    }

    /// The weight of every example, if they are not all 1.
    pub fn weights(&self) -> Option<&[f32]> {
        self.weights.as_deref()
    }

    /// The number of examples, `N`.
    pub fn examples(&self) -> usize {
        self.targets.len()
    }

    /// All inputs, on a device without autodiff.
    pub fn inputs(&self) -> Tensor<D> {
        self.inputs.batch(None)
    }

    /// All targets.
    pub fn targets(&self) -> &[f32] {
        &self.targets
    }

    /// A number that changes when the data do.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The examples at `indices`, copied, on a device without autodiff.
    ///
    /// # Panics
    ///
    /// Panics if one does not exist.
    pub fn batch(&self, indices: &[usize]) -> RegressionExamples<D> {
        RegressionExamples {
            inputs: self.inputs.batch(Some(indices)).into(),
            targets: indices.iter().map(|&index| self.targets[index]).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_data_is_named() {
        let device = crate::cpu();
        let new = |inputs: Vec<f32>, rows: usize, targets: &[f32]| {
            RegressionData::new(inputs, [rows, 2], targets, &device)
                .map(|_| ())
                .expect_err("wrong data")
                .to_string()
        };
        assert!(new(vec![], 0, &[]).contains("empty"));
        assert!(new(vec![0.0; 4], 2, &[0.0]).contains("expected 2 values, got 1"));
        assert!(new(vec![0.0; 4], 2, &[0.0, f32::NAN]).contains("target NaN of example 1"));
        assert!(new(vec![0.0, 0.0, f32::INFINITY, 0.0], 2, &[0.0; 2]).contains("of example 1"));
        for wrong in [-1.0, 0.5, f32::INFINITY] {
            let error = RegressionData::counts(vec![0.0; 4], [2, 2], &[3.0, wrong], &device);
            let error = error.expect_err("no count").to_string();
            assert!(error.contains("a whole number from 0"), "{error}");
        }
    }

    #[test]
    fn batches_keep_inputs_and_targets_together() {
        let inputs = (0..6).map(|x| x as f32).collect();
        let data = RegressionData::new(inputs, [3, 2], &[5.0, 6.0, 7.0], &crate::cpu());
        let data = data.expect("valid");
        let batch = data.batch(&[2, 0]);
        let inputs = batch.inputs.batch(None).into_data();
        assert_eq!(
            inputs.try_into_vec::<f32>().expect("f32"),
            [4.0, 5.0, 0.0, 1.0]
        );
        assert_eq!(batch.targets[..], [7.0, 5.0]);
        let other = RegressionData::new(vec![0.0; 6], [3, 2], &[5.0, 6.0, 7.0], &crate::cpu());
        assert_ne!(other.expect("valid").fingerprint(), data.fingerprint());
    }
}
