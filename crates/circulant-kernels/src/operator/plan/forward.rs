//! The operator itself.

use super::{CirculantPlan, Filters, KeptSpectrum, Way};
use crate::elements::activation::Activation;
use crate::error::KernelError;
use crate::operator::blocks::BlockInput;
use crate::operator::one_channel::Input;
use crate::real::Real;
use crate::runtime::scratch::Scratch;
use crate::runtime::shared::Shared;
use crate::transform::LanePlan;

impl<T: Real> CirculantPlan<T> {
    /// The transform of a batch `[batch, C_in, ...]`.
    pub fn transform(&self, x: &[T]) -> Result<KeptSpectrum<T>, KernelError> {
        let batch = self.batch_of(x.len())?;
        let way = self.way(batch);
        let data = match way {
            Way::Rows(rows) => rows.transform(x),
            Way::Padded(padded) => padded.transform(x),
            Way::Lanes(lanes) => {
                let batch = self.batch(batch, self.channels_in);
                batch.transform(self.isa, lanes, x, None)
            }
            Way::Blocks(lanes) => self.blocks(lanes, batch).transform(x),
        };
        Ok(self.keep(&way, batch, data))
    }

    /// `y = act(K x + bias)` for every filter.
    pub fn forward(
        &self,
        x: &[T],
        filters: Filters<'_, T>,
        y: &mut [T],
    ) -> Result<(), KernelError> {
        let batch = self.batch_of(x.len())?;
        match self.way(batch) {
            Way::Lanes(lanes) if self.table.is_none() => {
                self.check(batch, &filters, y.len())?;
                self.run_single(lanes, batch, Input::Rows(x), filters, y);
                Ok(())
            }
            Way::Blocks(lanes) if filters.coordinates.len() == self.coordinates => {
                self.check(batch, &filters, y.len())?;
                self.run_blocks(lanes, batch, BlockInput::Rows(x, None), filters, y);
                Ok(())
            }
            _ => self.apply(&self.transform(x)?, filters, y),
        }
    }

    /// [`Self::forward`] that also returns the spectrum of `x` for the backward pass.
    pub fn forward_keeping(
        &self,
        x: &[T],
        filters: Filters<'_, T>,
        y: &mut [T],
    ) -> Result<KeptSpectrum<T>, KernelError> {
        let batch = self.batch_of(x.len())?;
        self.check(batch, &filters, y.len())?;
        let way = self.way(batch);
        match way {
            Way::Lanes(lanes) if self.table.is_none() => {
                let mut data = Scratch::take(self.batch(batch, 1).spectrum_len());
                let keep = Shared::writer(&mut data);
                self.run_single(lanes, batch, Input::Keep(x, keep), filters, y);
                Ok(self.keep(&way, batch, data))
            }
            Way::Blocks(lanes) if filters.coordinates.len() == self.coordinates => {
                let mut data = Scratch::take(self.blocks(lanes, batch).spectrum_len());
                let x = BlockInput::Rows(x, Some(&mut data));
                self.run_blocks(lanes, batch, x, filters, y);
                Ok(self.keep(&way, batch, data))
            }
            _ => {
                let kept = self.transform(x)?;
                self.apply(&kept, filters, y)?;
                Ok(kept)
            }
        }
    }

    /// [`Self::forward`] from a kept spectrum: no transform of the input.
    pub fn apply(
        &self,
        kept: &KeptSpectrum<T>,
        filters: Filters<'_, T>,
        y: &mut [T],
    ) -> Result<(), KernelError> {
        let batch = kept.batch;
        let count = self.check(batch, &filters, y.len())?;
        let tanh = filters.activation == Activation::Tanh;
        match self.way_of(kept)? {
            Way::Rows(rows) => {
                rows.forward(
                    &kept.data,
                    filters.coordinates,
                    |f| self.bias(&filters, count, f),
                    tanh,
                    y,
                );
            }
            Way::Padded(padded) => {
                padded.forward(
                    (&kept.data, batch),
                    filters.coordinates,
                    |f| self.bias(&filters, count, f),
                    tanh,
                    y,
                );
            }
            Way::Lanes(lanes) if self.table.is_none() => {
                self.run_single(lanes, batch, Input::Kept(&kept.data), filters, y);
            }
            Way::Lanes(lanes) => {
                let mixing = self.mixing(lanes, batch);
                let outputs = y.chunks_exact_mut(batch * self.output_len());
                let coordinates = filters.coordinates.chunks_exact(self.coordinates);
                for (f, (y, coordinates)) in outputs.zip(coordinates).enumerate() {
                    mixing.forward(
                        &kept.data,
                        coordinates,
                        self.bias(&filters, count, f),
                        tanh,
                        y,
                    );
                }
            }
            Way::Blocks(lanes) => {
                let outputs = y.chunks_exact_mut(batch * self.output_len());
                let coordinates = filters.coordinates.chunks_exact(self.coordinates);
                for (f, (y, coordinates)) in outputs.zip(coordinates).enumerate() {
                    let after = (self.bias(&filters, count, f), tanh);
                    let x = BlockInput::Spectra(&kept.data);
                    self.blocks(lanes, batch).forward(x, coordinates, after, y);
                }
            }
        }
        Ok(())
    }

    /// One filter.
    fn run_blocks(
        &self,
        lanes: &LanePlan<T>,
        batch: usize,
        x: BlockInput<'_, T>,
        filters: Filters<'_, T>,
        y: &mut [T],
    ) {
        let tanh = filters.activation == Activation::Tanh;
        let after = (self.bias(&filters, 1, 0), tanh);
        let blocks = self.blocks(lanes, batch);
        blocks.forward(x, filters.coordinates, after, y);
    }

    fn run_single(
        &self,
        lanes: &LanePlan<T>,
        batch: usize,
        x: Input<'_, T>,
        filters: Filters<'_, T>,
        y: &mut [T],
    ) {
        let count = filters.coordinates.len() / self.coordinates;
        self.single(lanes).forward(
            &self.batch(batch, 1),
            x,
            filters.coordinates,
            |f| self.bias(&filters, count, f),
            filters.activation == Activation::Tanh,
            y,
        );
    }
}
