//! The operator with several channels: at every frequency `f` a complex matrix `K(f)` maps the input
//! channels to the output channels.
//!
//! Coordinates are `[coordinate, C_in, C_out]`, so `K(f)` is two contiguous planes of them (Re and
//! Im), read in place. The rows of the product are the packed pairs of images, once at `f` and,
//! conjugated, once at `-f`, because `Y(-f) = conj(K(f)) X(-f)` is `conj(Y(-f)) = K(f) conj(X(-f))`. So
//! one pass over the half plane serves the whole plane:
//!
//! | wanted | product | rows |
//! | --- | --- | --- |
//! | output | `Y = X K` | pairs x C_in x C_out |
//! | input gradient | `GX = W K^*` | pairs x C_out x C_in |
//! | gradient of K | `X^* W` summed over the pairs | C_in x pairs x C_out |
//!
//! `unsafe`: several threads read and write disjoint frequencies of shared blocks and disjoint
//! coordinates of the gradient.

mod backward;
mod frequencies;
mod mix;
mod planes;

pub use backward::MixBackward;
pub use frequencies::{Frequency, FrequencyTable};
pub use mix::Mix;

use std::ptr::null_mut;

use rayon::prelude::*;

use crate::operator::batch::{Batch, Bias, BlockBias};
use crate::real::Real;
use crate::runtime::scratch::Scratch;
use crate::runtime::shared::Shared;
use crate::transform::{InverseBlock, LanePlan, Sink};
use crate::vector::{Isa, Promised, prefetch};
use backward::Correlate;
use mix::Matrices;

/// Frequencies that a task takes at a time.
const FREQUENCIES_PER_TASK: usize = 16;

/// The operator for one filter.
pub struct Mixing<'a, T> {
    pub(crate) isa: Isa,
    pub(crate) plan: &'a LanePlan<T>,
    pub(crate) table: &'a FrequencyTable,
    pub(crate) inputs: Batch,
    pub(crate) outputs: Batch,
}

impl<T: Real> Mixing<'_, T> {
    fn for_each_task(&self, work: impl Fn(&[Frequency]) + Send + Sync) {
        self.table
            .frequencies
            .par_chunks(FREQUENCIES_PER_TASK)
            .for_each(work);
    }

    /// Frequencies find their entries within the spectra, and their matrices within the coordinates.
    fn expect_sizes(&self, kept: &[T], coordinates: &[T]) {
        let (inputs, outputs) = (&self.inputs, &self.outputs);
        let free = |frequency: &Frequency| 1 + usize::from(frequency.mirror.is_some());
        let free: usize = self.table.frequencies.iter().map(free).sum();
        assert!(
            inputs.fits(self.isa, self.plan)
                && outputs.fits(self.isa, self.plan)
                && inputs.batch == outputs.batch
                && kept.len() == inputs.spectrum_len()
                && coordinates.len() == free * inputs.channels * outputs.channels,
            "a spectrum and coordinates of this operator"
        );
    }

    /// `y = act(K x + bias)` from the kept spectrum of `x`.
    pub(crate) fn forward(
        &self,
        kept: &[T],
        coordinates: &[T],
        bias: Bias<'_, T>,
        tanh: bool,
        y: &mut [T],
    ) {
        self.expect_sizes(kept, coordinates);
        let mut spectrum = self.spectrum(&self.outputs, &self.table.masked);
        let (kept, out) = (Shared::reader(kept), Shared::writer(&mut spectrum));
        self.for_each_task(|frequencies| {
            let job = Mix {
                frequencies,
                from: kept,
                matrices: Matrices {
                    mixing: self,
                    coordinates,
                    to: out,
                    adjoint: false,
                    add: false,
                },
            };
            // SAFETY: both spectra are as long as their batches ask (checked above); no other task has these frequencies.
            T::mix(self.isa, unsafe { Promised::new(job) });
        });
        self.inverse(&self.outputs, &mut spectrum, bias, tanh, y);
    }

    /// Writes the gradient of the coordinates, and adds the spectrum of the input gradient to
    /// `grad_spectrum` (or sets it, for the first filter).
    pub(crate) fn backward(
        &self,
        kept: &[T],
        gradient: &[T],
        coordinates: &[T],
        grad_coordinates: Option<&mut [T]>,
        grad_spectrum: Option<(&mut [T], bool)>,
    ) {
        self.expect_sizes(kept, coordinates);
        let (inputs, outputs) = (self.inputs.spectrum_len(), self.outputs.spectrum_len());
        let expected = coordinates.len();
        assert!(
            gradient.len() == outputs
                && (grad_coordinates.as_ref()).is_none_or(|grad| grad.len() == expected)
                && (grad_spectrum.as_ref()).is_none_or(|(to, _)| to.len() == inputs),
            "gradients of one filter"
        );
        let (kept, gradient) = (Shared::reader(kept), Shared::reader(gradient));
        let grad_coordinates = grad_coordinates.map(Shared::writer);
        let grad_spectrum = grad_spectrum.map(|(to, add)| (Shared::writer(to), add));
        self.for_each_task(|frequencies| {
            let job = MixBackward {
                frequencies,
                gradient,
                correlate: grad_coordinates.map(|out| Correlate {
                    mixing: self,
                    x: kept,
                    out,
                }),
                matrices: grad_spectrum.map(|(to, add)| Matrices {
                    mixing: self,
                    coordinates,
                    to,
                    adjoint: true,
                    add,
                }),
                mixing: self,
            };
            // SAFETY: as in `forward`; the gradient of a frequency's coordinates has its own place.
            T::mix_backward(self.isa, unsafe { Promised::new(job) });
        });
    }

    /// Asks, tile by tile of a product, for what the next frequency needs: both planes of its matrix among `coordinates`, and
    /// its entries of a spectrum, which are one cache line each, far apart.
    #[inline(always)]
    fn fetch(
        &self,
        next: Option<&Frequency>,
        coordinates: *const T,
        (batch, spectrum): (&Batch, Shared<T>),
        tiles: usize,
    ) -> impl Fn(usize) {
        let plane = self.inputs.channels * self.outputs.channels;
        let (line, stride) = (64 / size_of::<T>(), batch.block_stride());
        let (lines, blocks) = match next {
            Some(_) => (2 * plane / line, batch.blocks()),
            None => (0, 0),
        };
        let (more_lines, more_blocks) = (lines.div_ceil(tiles), blocks.div_ceil(tiles));
        let matrix = coordinates.wrapping_add(next.map_or(0, |next| next.coordinate * plane));
        let position = next.map_or(0, |next| next.position);
        let mirror = next.and_then(|next| next.mirror).unwrap_or(position);
        let entry = 2 * batch.lanes;
        move |tile| {
            for at in tile * more_lines..lines.min((tile + 1) * more_lines) {
                prefetch(matrix.wrapping_add(at * line));
            }
            for block in tile * more_blocks..blocks.min((tile + 1) * more_blocks) {
                prefetch(spectrum.at(block * stride + position * entry));
                prefetch(spectrum.at(block * stride + mirror * entry));
            }
        }
    }

    /// Room for a spectrum, with zeros where the mask wants them.
    pub(crate) fn spectrum(&self, batch: &Batch, masked: &[usize]) -> Scratch<T> {
        let mut spectrum = Scratch::take(batch.spectrum_len());
        for block in spectrum.chunks_exact_mut(batch.block_stride()) {
            for position in masked {
                block[position * 2 * batch.lanes..][..2 * batch.lanes].fill(T::zero());
            }
        }
        spectrum
    }

    /// Spectra back to rows.
    pub(crate) fn inverse(
        &self,
        batch: &Batch,
        spectrum: &mut [T],
        bias: Bias<'_, T>,
        tanh: bool,
        rows: &mut [T],
    ) {
        let numbers = batch.batch * batch.channels * batch.len;
        assert!(
            batch.fits(self.isa, self.plan)
                && spectrum.len() == batch.spectrum_len()
                && rows.len() == numbers
                && bias.fits(batch),
            "spectra and rows of the batch"
        );
        let (spectrum, rows) = (Shared::writer(spectrum), Shared::writer(rows));
        batch.map_tasks(|blocks| {
            for block in blocks {
                let bias = BlockBias::new(bias, batch, block);
                let pass = InverseBlock {
                    plan: self.plan,
                    product: None,
                    block: spectrum.at(block * batch.block_stride()),
                    sink: Sink::Rows(&batch.pointers(rows, block, null_mut())),
                    bias: bias.lane_bias(),
                    tanh,
                };
                // SAFETY: spectrum and rows are as long as the batch asks (checked above); the block and its rows are
                // this task's alone.
                T::block_pass(self.isa, unsafe { Promised::new(pass.into()) });
            }
        });
    }

    /// The sum of the output gradient over pixels and images, per channel.
    pub(crate) fn channel_sums(&self, gradient: &[T], out: &mut [T]) {
        out.fill(T::zero());
        let batch = &self.outputs;
        for r in 0..batch.lanes_used() {
            // Position 0 is frequency 0; lane r holds two images.
            let at = r / batch.lanes * batch.block_stride() + r % batch.lanes;
            let slot = &mut out[r % batch.channels];
            *slot = *slot + gradient[at] + gradient[at + batch.lanes];
        }
    }
}
