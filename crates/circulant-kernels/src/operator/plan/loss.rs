//! The cross-entropy of the operator with a linear read-out, `-sum log softmax(act(K x + b) W + c)[label]`, together
//! with its gradients.
//!
//! The loss is a sum over the inputs, so the gradients of a block of inputs can be made as soon as its loss is: the block
//! goes through both layers and back while it is in the L1 or L2 cache, and its inputs are read where they lie in the data.

use std::borrow::Cow;

use super::readout::hand_over;
use super::{CirculantPlan, Filters, Gradients, Readout, ReadoutGradients};
use crate::elements::activation::Activation;
use crate::elements::cross_entropy::{check_labels, cross_entropy};
use crate::elements::examples::{Examples, Inputs};
use crate::elements::gather::{gather_bytes, gather_rows};
use crate::error::{KernelError, expect_len, volume};
use crate::operator::one_channel::{FilterReadout, Wanted};
use crate::real::Real;

impl<T: Real> CirculantPlan<T> {
    /// The sum over the batch of the cross-entropy of one filter's read-out, and its gradients: those of
    /// [`Self::forward_readout`], [`cross_entropy`] and [`Self::backward_readout`] in one pass.
    ///
    /// ```
    /// use circulant_kernels::{Activation, CirculantPlan, Examples, Filters, Gradients, HalfSpectrum, Inputs, Readout, ReadoutGradients};
    ///
    /// let plan = CirculantPlan::<f64>::new_1d(&HalfSpectrum::new(2)?);
    /// let inputs = Inputs::Numbers(&[3.0, 1.0, 0.0, 2.0]);
    /// let examples = Examples { inputs, rows: Some(&[1, 0, 1]), labels: &[1, 0, 1] };
    /// // The identity, and a read-out of the first number as the logit of class 0.
    /// let filters = Filters { coordinates: &[1.0, 1.0], bias: None, activation: Activation::Identity };
    /// let readout = Readout { weight: &[1.0, 0.0, 0.0, 0.0], bias: &[0.0, 0.0] };
    /// let mut constant = [0.0; 2];
    /// let of_readout = ReadoutGradients { weight: None, bias: Some(&mut constant) };
    /// let loss = plan.readout_cross_entropy(examples, filters, readout, Gradients::default(), of_readout)?;
    /// // Logits (0, 0), (3, 0) and (0, 0).
    /// assert!((loss - (2.0 * 2f64.ln() + (1.0 + (-3f64).exp()).ln())).abs() < 1e-12);
    /// let share = 1.0 / (1.0 + (-3f64).exp());
    /// assert!((constant[0] - (0.5 + (share - 1.0) + 0.5)).abs() < 1e-12);
    /// # Ok::<(), circulant_kernels::KernelError>(())
    /// ```
    pub fn readout_cross_entropy(
        &self,
        examples: Examples<'_, T>,
        filters: Filters<'_, T>,
        readout: Readout<'_, T>,
        gradients: Gradients<'_, T>,
        readout_gradients: ReadoutGradients<'_, T>,
    ) -> Result<f64, KernelError> {
        let given = self.batch_of(examples.inputs.len())?;
        if let Inputs::Bytes(_, scale) = examples.inputs
            && !self.input_len().is_multiple_of(scale.channels())
        {
            return Err(KernelError::Multiple {
                what: "an input of the scale's channels",
                unit: scale.channels(),
                got: self.input_len(),
            });
        }
        let batch = examples.rows.map_or(given, <[usize]>::len);
        if batch == 0 {
            return Err(KernelError::ZeroSize { what: "the batch" });
        }
        expect_len("the labels", examples.labels.len(), batch)?;
        if let Some(&row) = examples
            .rows
            .and_then(|rows| rows.iter().find(|row| **row >= given))
        {
            return Err(KernelError::Row { row, rows: given });
        }
        expect_len(
            "the coordinates of one filter",
            filters.coordinates.len(),
            self.coordinates,
        )?;
        let classes = readout.bias.len();
        let logits = volume("the logits", &[batch, classes])?;
        let (_, weights) = self.check_readout(batch, &filters, readout, logits)?;
        volume("the batch", &[batch, self.input_len()])?;
        check_labels(examples.labels, classes)?;
        self.check_gradients(batch, &filters, &gradients)?;
        let ReadoutGradients { weight, bias } = readout_gradients;
        readout.check_gradients(weight.as_deref(), bias.as_deref())?;
        let Some(lanes) = self.joined(batch, &filters) else {
            let of_readout = ReadoutGradients { weight, bias };
            return self.cross_entropy_apart(examples, filters, readout, gradients, of_readout);
        };
        let filter = FilterReadout {
            coordinates: filters.coordinates,
            bias: self.bias(&filters, 1, 0),
            tanh: filters.activation == Activation::Tanh,
            weights,
        };
        let wanted = Wanted {
            coordinates: gradients.coordinates.is_some(),
            weight: weight.is_some(),
        };
        let sizes = self.batch(batch, 1);
        let single = self.single(lanes);
        let loss = single.cross_entropy(&sizes, examples, filter, gradients.x, wanted);
        hand_over(&loss.sums, gradients.coordinates, gradients.bias, weight);
        if let Some(bias) = bias {
            bias.copy_from_slice(&loss.constant);
        }
        Ok(loss.loss)
    }

    /// The same, one step after the other.
    fn cross_entropy_apart(
        &self,
        examples: Examples<'_, T>,
        filters: Filters<'_, T>,
        readout: Readout<'_, T>,
        gradients: Gradients<'_, T>,
        readout_gradients: ReadoutGradients<'_, T>,
    ) -> Result<f64, KernelError> {
        let Examples {
            inputs,
            rows,
            labels,
        } = examples;
        let x = match (inputs, rows) {
            (Inputs::Numbers(numbers), None) => Cow::Borrowed(numbers),
            _ => {
                let mut x = vec![T::zero(); labels.len() * self.input_len()];
                let all: Vec<usize> = (0..labels.len()).collect();
                let rows = rows.unwrap_or(&all);
                match inputs {
                    Inputs::Numbers(numbers) => gather_rows(numbers, rows, &mut x),
                    Inputs::Bytes(bytes, scale) => gather_bytes(bytes, rows, scale, &mut x),
                }
                Cow::Owned(x)
            }
        };
        let mut z = vec![T::zero(); labels.len() * readout.bias.len()];
        let mut grad_z = z.clone();
        let kept = self.forward_readout_keeping(&x, filters, readout, &mut z)?;
        let loss = cross_entropy(&z, readout.bias.len(), labels, Some(&mut grad_z))?;
        self.backward_readout(
            &kept,
            filters,
            readout,
            &grad_z,
            gradients,
            readout_gradients,
        )?;
        Ok(loss)
    }
}
