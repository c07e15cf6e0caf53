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
        self.run(x, filters, y, false).map(|_| ())
    }

    /// [`Self::forward`] that also returns the spectrum of `x` for the backward pass.
    pub fn forward_keeping(
        &self,
        x: &[T],
        filters: Filters<'_, T>,
        y: &mut [T],
    ) -> Result<KeptSpectrum<T>, KernelError> {
        let kept = self.run(x, filters, y, true)?;
        Ok(kept.expect("asked for"))
    }

    /// Forward; at least when it is to be kept, returns the spectrum of `x`.
    pub(super) fn run(
        &self,
        x: &[T],
        filters: Filters<'_, T>,
        y: &mut [T],
        keep: bool,
    ) -> Result<Option<KeptSpectrum<T>>, KernelError> {
        let batch = self.batch_of(x.len())?;
        let count = self.check(batch, &filters, y.len())?;
        let way = self.way(batch);
        let data = match way {
            Way::Lanes(lanes) if self.table.is_none() => {
                let mut data = keep.then(|| Scratch::take(self.batch(batch, 1).spectrum_len()));
                let x = match &mut data {
                    Some(data) => Input::Keep(x, Shared::writer(data)),
                    None => Input::Rows(x),
                };
                self.run_single(lanes, batch, x, filters, y);
                data
            }
            Way::Blocks(lanes) if count == 1 => {
                let blocks = self.blocks(lanes, batch);
                let mut data = keep.then(|| Scratch::take(blocks.spectrum_len()));
                let x = BlockInput::Rows(x, data.as_deref_mut());
                let tanh = filters.activation == Activation::Tanh;
                let after = (self.bias(&filters, 1, 0), tanh);
                blocks.forward(x, filters.coordinates, after, y);
                data
            }
            _ => {
                let kept = self.transform(x)?;
                self.apply(&kept, filters, y)?;
                return Ok(Some(kept));
            }
        };
        Ok(data.map(|data| self.keep(&way, batch, data)))
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
        let (coordinates, tanh) = (filters.coordinates, filters.activation == Activation::Tanh);
        let bias = |f| self.bias(&filters, count, f);
        match self.way_of(kept)? {
            Way::Rows(rows) => rows.forward(&kept.data, coordinates, bias, tanh, y),
            Way::Padded(padded) => {
                padded.forward((&kept.data, batch), coordinates, bias, tanh, y);
            }
            Way::Lanes(lanes) if self.table.is_none() => {
                self.run_single(lanes, batch, Input::Kept(&kept.data), filters, y);
            }
            Way::Lanes(lanes) => {
                let mixing = self.mixing(lanes, batch);
                self.each_filter(batch, coordinates, y, |f, coordinates, y| {
                    mixing.forward(&kept.data, coordinates, bias(f), tanh, y);
                });
            }
            Way::Blocks(lanes) => {
                let blocks = self.blocks(lanes, batch);
                self.each_filter(batch, coordinates, y, |f, coordinates, y| {
                    let x = BlockInput::Spectra(&kept.data);
                    blocks.forward(x, coordinates, (bias(f), tanh), y);
                });
            }
        }
        Ok(())
    }

    /// `work(filter, coordinates, output)`, one filter after the other.
    fn each_filter(
        &self,
        batch: usize,
        coordinates: &[T],
        y: &mut [T],
        mut work: impl FnMut(usize, &[T], &mut [T]),
    ) {
        let outputs = y.chunks_exact_mut(batch * self.output_len());
        let coordinates = coordinates.chunks_exact(self.coordinates);
        for (f, (y, coordinates)) in outputs.zip(coordinates).enumerate() {
            work(f, coordinates, y);
        }
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
