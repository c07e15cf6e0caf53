//! The gradients of the operator.

use super::{CirculantPlan, Filters, Gradients, KeptSpectrum, Way};
use crate::elements::activation::Activation;
use crate::error::{KernelError, expect_len, expect_volume};
use crate::operator::batch::Bias;
use crate::operator::blocks::BlockGradients;
use crate::operator::one_channel::{OutputGradient, Outputs, Sums};
use crate::real::Real;
use crate::transform::LanePlan;

impl<T: Real> CirculantPlan<T> {
    /// The gradients of everything from the gradient of the output.
    ///
    /// `y` is the output of the forward pass; it is read only when the activation is `tanh`, and
    /// may be empty otherwise.
    pub fn backward(
        &self,
        kept: &KeptSpectrum<T>,
        filters: Filters<'_, T>,
        y: &[T],
        grad_y: &[T],
        gradients: Gradients<'_, T>,
    ) -> Result<(), KernelError> {
        let batch = kept.batch;
        let count = self.check(batch, &filters, grad_y.len())?;
        let tanh = filters.activation == Activation::Tanh;
        if tanh {
            expect_len("y", y.len(), grad_y.len())?;
        }
        let per_bias = self.check_gradients(batch, &filters, &gradients)?;
        let Gradients {
            x: grad_x,
            coordinates: grad_coordinates,
            bias: grad_bias,
        } = gradients;
        let one = batch * self.output_len();
        let outputs: Vec<_> = (0..count)
            .map(|f| OutputGradient {
                grad: &grad_y[f * one..(f + 1) * one],
                tanh: tanh.then(|| &y[f * one..(f + 1) * one]),
            })
            .collect();
        let mut channel_sums = vec![T::zero(); count * self.channels_out];
        let way = self.way_of(kept)?;
        if let Way::Blocks(lanes) = way {
            let gradients = BlockGradients {
                x: grad_x,
                coordinates: grad_coordinates,
                bias: grad_bias,
            };
            let blocks = self.blocks(lanes, batch);
            blocks.backward(&kept.data, filters.coordinates, &outputs, gradients);
            return Ok(());
        }
        if let (Way::Lanes(lanes), true) = (&way, self.table.is_some()) {
            self.backward_mixing(
                lanes,
                kept,
                filters.coordinates,
                &outputs,
                (grad_x, grad_coordinates, &mut channel_sums),
            );
        } else {
            let wanted = grad_coordinates.is_some();
            let Sums {
                coordinates, bias, ..
            } = match way {
                Way::Rows(rows) => {
                    rows.backward(&kept.data, filters.coordinates, &outputs, grad_x, wanted)
                }
                Way::Padded(padded) => padded.backward(
                    (&kept.data, batch),
                    filters.coordinates,
                    &outputs,
                    grad_x,
                    wanted,
                ),
                Way::Blocks(_) => unreachable!("returned above"),
                Way::Lanes(lanes) => self.single(lanes).backward(
                    &self.batch(batch, 1),
                    &kept.data,
                    filters.coordinates,
                    Outputs::Rows(&outputs),
                    grad_x,
                    wanted,
                ),
            };
            if let Some(grad) = grad_coordinates {
                grad.copy_from_slice(&coordinates);
            }
            channel_sums = bias;
        }
        if let Some(grad) = grad_bias {
            if per_bias == count * self.channels_out {
                grad.copy_from_slice(&channel_sums);
            } else {
                position_sums(&outputs, self.output_len(), grad);
            }
        }
        Ok(())
    }

    /// Checks the lengths of the gradients and returns that of the bias.
    pub(super) fn check_gradients(
        &self,
        batch: usize,
        filters: &Filters<'_, T>,
        gradients: &Gradients<'_, T>,
    ) -> Result<usize, KernelError> {
        if let Some(grad) = &gradients.x {
            expect_volume("the gradient of x", grad.len(), &[batch, self.input_len()])?;
        }
        if let Some(grad) = &gradients.coordinates {
            let expected = filters.coordinates.len();
            expect_len("the gradient of the coordinates", grad.len(), expected)?;
        }
        let per_bias = filters.bias.map_or(0, <[T]>::len);
        if let Some(grad) = &gradients.bias {
            expect_len("the gradient of the bias", grad.len(), per_bias)?;
        }
        Ok(per_bias)
    }

    fn backward_mixing(
        &self,
        lanes: &LanePlan<T>,
        kept: &KeptSpectrum<T>,
        coordinates: &[T],
        outputs: &[OutputGradient<'_, T>],
        (grad_x, mut grad_coordinates, channel_sums): (
            Option<&mut [T]>,
            Option<&mut [T]>,
            &mut [T],
        ),
    ) {
        let mixing = self.mixing(lanes, kept.batch);
        let masked = self.table.as_ref().map_or(&[][..], |table| &table.masked);
        let mut grad_spectrum = grad_x
            .is_some()
            .then(|| mixing.spectrum(&mixing.inputs, masked));
        for (f, output) in outputs.iter().enumerate() {
            let gradient = mixing
                .outputs
                .transform(self.isa, lanes, output.grad, output.tanh);
            mixing.channel_sums(
                &gradient,
                &mut channel_sums[f * self.channels_out..][..self.channels_out],
            );
            let own = f * self.coordinates..(f + 1) * self.coordinates;
            mixing.backward(
                &kept.data,
                &gradient,
                &coordinates[own.clone()],
                grad_coordinates.as_deref_mut().map(|grad| &mut grad[own]),
                grad_spectrum
                    .as_deref_mut()
                    .map(|spectrum| (spectrum, f > 0)),
            );
        }
        if let (Some(grad_x), Some(spectrum)) = (grad_x, grad_spectrum.as_deref_mut()) {
            mixing.inverse(&mixing.inputs, spectrum, Bias::None, false, grad_x);
        }
    }
}

/// The gradient of a bias per output element: the sum over the batch.
fn position_sums<T: Real>(outputs: &[OutputGradient<'_, T>], unit: usize, out: &mut [T]) {
    for (output, sums) in outputs.iter().zip(out.chunks_exact_mut(unit)) {
        sums.fill(T::zero());
        for (row, g) in output.grad.chunks_exact(unit).enumerate() {
            match output.tanh {
                None => sums.iter_mut().zip(g).for_each(|(sum, &g)| *sum = *sum + g),
                Some(tanh) => {
                    let y = &tanh[row * unit..(row + 1) * unit];
                    for ((sum, &g), &y) in sums.iter_mut().zip(g).zip(y) {
                        *sum = *sum + g * (T::one() - y * y);
                    }
                }
            }
        }
    }
}
