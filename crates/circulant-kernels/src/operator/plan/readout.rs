//! The operator with a linear read-out behind it, `z = act(K x + b) W + c`, in one pass.
//!
//! A block's rows go from the inverse transform straight into the product with `W`, and on the way
//! back the gradient of a block is made where it is transformed: the layer in between is never
//! written to row-major memory. Operators of several channels, lengths without lanes and a bias
//! per position take the two steps one after the other, with the same result.

use super::{CirculantPlan, Filters, Gradients, KeptSpectrum, Way};
use crate::dense::linear::{LinearGradients, LinearOutput, linear_backward, linear_into};
use crate::elements::activation::Activation;
use crate::elements::elementwise::column_sums;
use crate::error::{KernelError, expect_len, expect_volume, volume};
use crate::operator::batch::Bias;
use crate::operator::one_channel::{Input, Outputs, ReadoutWeights, Single, Sums};
use crate::real::Real;
use crate::runtime::scratch::Scratch;
use crate::runtime::shared::Shared;
use crate::transform::LanePlan;

/// A linear read-out of one or several filters' outputs.
#[derive(Debug, Clone, Copy)]
pub struct Readout<'a, T> {
    /// `[filters, C_out*len, classes]`.
    pub weight: &'a [T],
    /// `[filters, classes]`.
    pub bias: &'a [T],
}

impl<T> Readout<'_, T> {
    pub(super) fn check_gradients(
        &self,
        weight: Option<&[T]>,
        bias: Option<&[T]>,
    ) -> Result<(), KernelError> {
        if let Some(weight) = weight {
            let what = "the gradient of the read-out";
            expect_len(what, weight.len(), self.weight.len())?;
        }
        if let Some(bias) = bias {
            let what = "the gradient of the read-out's bias";
            expect_len(what, bias.len(), self.bias.len())?;
        }
        Ok(())
    }
}

/// The gradients of a [`Readout`]; what is `None` is not computed.
#[derive(Debug, Default)]
pub struct ReadoutGradients<'a, T> {
    /// The shape of the weights.
    pub weight: Option<&'a mut [T]>,
    /// The shape of the bias.
    pub bias: Option<&'a mut [T]>,
}

/// What the forward pass keeps for the backward pass: the spectrum of the input and the activated
/// output, in the order that the plan works in.
#[derive(Debug)]
pub struct KeptReadout<T: Real> {
    spectrum: KeptSpectrum<T>,
    hidden: Scratch<T>,
    /// Whether the output is in lanes; otherwise it is row-major.
    in_lanes: bool,
}

impl<T: Real> CirculantPlan<T> {
    /// `z = act(K x + b) W + c: [filters, batch, classes]`.
    pub fn forward_readout(
        &self,
        x: &[T],
        filters: Filters<'_, T>,
        readout: Readout<'_, T>,
        z: &mut [T],
    ) -> Result<(), KernelError> {
        let pass = self.run_readout(x, filters, readout, z, false);
        pass.map(|_| ())
    }

    /// [`Self::forward_readout`] that also returns what the backward pass needs.
    pub fn forward_readout_keeping(
        &self,
        x: &[T],
        filters: Filters<'_, T>,
        readout: Readout<'_, T>,
        z: &mut [T],
    ) -> Result<KeptReadout<T>, KernelError> {
        let kept = self.run_readout(x, filters, readout, z, true)?;
        Ok(kept.expect("asked for"))
    }

    fn run_readout(
        &self,
        x: &[T],
        filters: Filters<'_, T>,
        readout: Readout<'_, T>,
        z: &mut [T],
        keep: bool,
    ) -> Result<Option<KeptReadout<T>>, KernelError> {
        let batch = self.batch_of(x.len())?;
        let (count, weights) = self.check_readout(batch, &filters, readout, z.len())?;
        let Some(lanes) = self.joined(batch, &filters) else {
            let mut hidden = Scratch::take(count * batch * self.output_len());
            let spectrum = self.run(x, filters, &mut hidden, keep)?;
            self.read_out(&hidden, count, weights, z)?;
            return Ok(spectrum.map(|spectrum| KeptReadout {
                spectrum,
                hidden,
                in_lanes: false,
            }));
        };
        let blocks = self.batch(batch, 1);
        let mut kept = keep.then(|| KeptReadout {
            spectrum: self.keep(
                &Way::Lanes(lanes),
                batch,
                Scratch::take(blocks.spectrum_len()),
            ),
            hidden: Scratch::take(count * Single::<T>::hidden_len(&blocks)),
            in_lanes: true,
        });
        let (x, hidden) = match &mut kept {
            None => (Input::Rows(x), None),
            Some(kept) => {
                let spectrum = Shared::writer(&mut kept.spectrum.data);
                (Input::Keep(x, spectrum), Some(&mut kept.hidden[..]))
            }
        };
        self.single(lanes).forward_readout(
            &blocks,
            x,
            filters.coordinates,
            |f| self.bias(&filters, count, f),
            filters.activation == Activation::Tanh,
            weights,
            hidden,
            z,
        );
        Ok(kept)
    }

    /// The gradients of everything from the gradient of `z`.
    pub fn backward_readout(
        &self,
        kept: &KeptReadout<T>,
        filters: Filters<'_, T>,
        readout: Readout<'_, T>,
        grad_z: &[T],
        gradients: Gradients<'_, T>,
        readout_gradients: ReadoutGradients<'_, T>,
    ) -> Result<(), KernelError> {
        let batch = kept.spectrum.batch;
        let (count, weights) = self.check_readout(batch, &filters, readout, grad_z.len())?;
        let ReadoutGradients { weight, bias } = readout_gradients;
        readout.check_gradients(weight.as_deref(), bias.as_deref())?;
        if let Some(bias) = bias {
            let rows = grad_z.chunks_exact(batch * weights.classes);
            for (grad, out) in rows.zip(bias.chunks_exact_mut(weights.classes)) {
                column_sums(grad, out)?;
            }
        }
        self.way_of(&kept.spectrum)?;
        let joined = self.joined(batch, &filters);
        if joined.is_some() != kept.in_lanes {
            let order = |in_lanes| if in_lanes { "in lanes" } else { "row by row" };
            return Err(KernelError::ForeignSpectrum {
                expected: format!("the operator's output {}", order(joined.is_some())),
                got: format!("it {}", order(kept.in_lanes)),
            });
        }
        match joined {
            Some(lanes) => {
                let expected = count * Single::<T>::hidden_len(&self.batch(batch, 1));
                expect_len("the kept output", kept.hidden.len(), expected)?;
                let outputs = Outputs::Readout {
                    weights,
                    grad: grad_z,
                    hidden: &kept.hidden,
                    tanh: filters.activation == Activation::Tanh,
                    want_weight: weight.is_some(),
                };
                self.backward_joined(lanes, &kept.spectrum, filters, outputs, gradients, weight)
            }
            None => self.backward_apart(kept, filters, weights, grad_z, gradients, weight),
        }
    }

    fn backward_joined(
        &self,
        lanes: &LanePlan<T>,
        kept: &KeptSpectrum<T>,
        filters: Filters<'_, T>,
        outputs: Outputs<'_, T>,
        gradients: Gradients<'_, T>,
        weight: Option<&mut [T]>,
    ) -> Result<(), KernelError> {
        self.check_gradients(kept.batch, &filters, &gradients)?;
        let sums = self.single(lanes).backward(
            &self.batch(kept.batch, 1),
            &kept.data,
            filters.coordinates,
            outputs,
            gradients.x,
            gradients.coordinates.is_some(),
        );
        hand_over(&sums, gradients.coordinates, gradients.bias, weight);
        Ok(())
    }

    fn backward_apart(
        &self,
        kept: &KeptReadout<T>,
        filters: Filters<'_, T>,
        weights: ReadoutWeights<'_, T>,
        grad_z: &[T],
        gradients: Gradients<'_, T>,
        mut weight: Option<&mut [T]>,
    ) -> Result<(), KernelError> {
        let (batch, classes) = (kept.spectrum.batch, weights.classes);
        let one = batch * self.output_len();
        expect_len(
            "the kept output",
            kept.hidden.len(),
            one * (grad_z.len() / (batch * classes)),
        )?;
        let mut grad_hidden = Scratch::take(kept.hidden.len());
        for (f, hidden) in kept.hidden.chunks_exact(one).enumerate() {
            let own = f * self.output_len() * classes..(f + 1) * self.output_len() * classes;
            let output = LinearOutput {
                activation: Activation::Identity,
                y: &[],
                grad: &grad_z[f * batch * classes..][..batch * classes],
                scratch: &mut [],
            };
            let gradients = LinearGradients {
                x: Some(&mut grad_hidden[f * one..(f + 1) * one]),
                weight: weight.as_deref_mut().map(|weight| &mut weight[own.clone()]),
                bias: None,
            };
            linear_backward(hidden, &weights.weight[own], classes, output, gradients)?;
        }
        self.backward(
            &kept.spectrum,
            filters,
            &kept.hidden,
            &grad_hidden,
            gradients,
        )
    }

    /// The lanes, if both steps can run in one pass.
    pub(super) fn joined(&self, batch: usize, filters: &Filters<'_, T>) -> Option<&LanePlan<T>> {
        let count = filters.coordinates.len() / self.coordinates;
        let positions = matches!(self.bias(filters, count, 0), Bias::Positions(_));
        match self.way(batch) {
            Way::Lanes(lanes) if self.table.is_none() && !positions => Some(lanes),
            _ => None,
        }
    }

    pub(super) fn check_readout<'a>(
        &self,
        batch: usize,
        filters: &Filters<'_, T>,
        readout: Readout<'a, T>,
        z: usize,
    ) -> Result<(usize, ReadoutWeights<'a, T>), KernelError> {
        let count = filters.coordinates.len() / self.coordinates.max(1);
        let hidden = volume("the output", &[count, batch, self.output_len()])?;
        let count = self.check(batch, filters, hidden)?;
        let got = readout.bias.len();
        if got == 0 || !got.is_multiple_of(count) {
            return Err(KernelError::Multiple {
                what: "the read-out's bias",
                unit: count,
                got,
            });
        }
        let classes = got / count;
        let weight = [count, self.output_len(), classes];
        expect_volume("the read-out", readout.weight.len(), &weight)?;
        expect_volume("z", z, &[count, batch, classes])?;
        let Readout { weight, bias } = readout;
        let weights = ReadoutWeights {
            weight,
            bias,
            classes,
        };
        Ok((count, weights))
    }

    /// The second step on its own.
    fn read_out(
        &self,
        hidden: &[T],
        count: usize,
        weights: ReadoutWeights<'_, T>,
        z: &mut [T],
    ) -> Result<(), KernelError> {
        let classes = weights.classes;
        let hidden = hidden.chunks_exact(hidden.len() / count);
        let matrices = weights.weight.chunks_exact(self.output_len() * classes);
        let biases = weights.bias.chunks_exact(classes);
        let outputs = z.chunks_exact_mut(z.len() / count);
        for (((y, weight), bias), z) in hidden.zip(matrices).zip(biases).zip(outputs) {
            linear_into(y, weight, bias, Activation::Identity, z)?;
        }
        Ok(())
    }
}

/// Sums over the batch to those gradients that are wanted.
pub(super) fn hand_over<T: Real>(
    sums: &Sums<T>,
    coordinates: Option<&mut [T]>,
    bias: Option<&mut [T]>,
    weight: Option<&mut [T]>,
) {
    if let Some(grad) = coordinates {
        grad.copy_from_slice(&sums.coordinates);
    }
    if let Some(grad) = bias {
        grad.copy_from_slice(&sums.bias[..grad.len()]);
    }
    if let Some(grad) = weight {
        grad.copy_from_slice(&sums.weight);
    }
}
