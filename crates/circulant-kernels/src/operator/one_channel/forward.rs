//! The forward pass of one channel.
//!
//! `unsafe`: see the module above; lengths are compared with the batch where pointers are made.

use std::ptr::null_mut;

use super::{Input, ReadoutWeights, Single};
use crate::operator::batch::{Batch, Bias, BlockBias};
use crate::real::Real;
use crate::runtime::scratch::Scratch;
use crate::runtime::shared::Shared;
use crate::transform::{
    BlockPass, ForwardBlock, InverseBlock, LaneBias, LaneReadout, Product, Sink, Source,
};
use crate::vector::Promised;

/// Sends the outputs of one block to a sink.
type Run<'a, T> = dyn Fn(Sink<'_, T>, LaneBias<'_, T>) + 'a;

impl<T: Real> Single<'_, T> {
    /// `y[filter] = act(filter * x + bias[filter])`; the spectrum of `x` goes to `keep` when given.
    pub(crate) fn forward<'b>(
        &self,
        batch: &Batch,
        x: Input<'_, T>,
        coordinates: &[T],
        bias: impl Fn(usize) -> Bias<'b, T> + Sync,
        tanh: bool,
        y: &mut [T],
    ) {
        let output = batch.batch * batch.len;
        let filters = coordinates.len() / self.coordinates;
        assert!(y.len() == filters * output, "the outputs of all filters");
        let y = Shared::writer(y);
        let work = |(block, filter): (usize, usize), run: &Run<'_, T>, _: &mut [T]| {
            let rows = batch.pointers(y.offset(filter * output), block, null_mut());
            let bias = bias(filter);
            assert!(bias.fits(batch), "a bias of one channel");
            run(
                Sink::Rows(&rows),
                BlockBias::new(bias, batch, block).lane_bias(),
            );
        };
        // SAFETY: `y` holds the rows of every filter (checked above), and a block has its own.
        unsafe { self.for_each_output(batch, x, coordinates, tanh, 0, work) };
    }

    /// `z[filter] = act(filter * x + bias[filter]) W[filter] + c[filter]: [filters, batch, classes]`.
    /// The rows in between go to `hidden` when given, [`Self::hidden_len`] values per filter.
    #[allow(clippy::too_many_arguments, reason = "two layers have their arguments")]
    pub(crate) fn forward_readout<'b>(
        &self,
        batch: &Batch,
        x: Input<'_, T>,
        coordinates: &[T],
        bias: impl Fn(usize) -> Bias<'b, T> + Sync,
        tanh: bool,
        readout: ReadoutWeights<'_, T>,
        hidden: Option<&mut [T]>,
        z: &mut [T],
    ) {
        let classes = readout.classes;
        let entry = 2 * batch.lanes;
        let filters = coordinates.len() / self.coordinates;
        assert!(
            z.len() == filters * batch.batch * classes
                && (hidden.as_deref())
                    .is_none_or(|hidden| hidden.len() == filters * Self::hidden_len(batch)),
            "the logits and rows of all filters"
        );
        let hidden = hidden.map(Shared::writer);
        let z = Shared::writer(z);
        let work = |(block, filter): (usize, usize), run: &Run<'_, T>, sums: &mut [T]| {
            sums.fill(T::zero());
            let bias = bias(filter);
            assert!(bias.fits(batch), "a bias of one channel");
            let weight = &readout.weight[filter * batch.len * classes..][..batch.len * classes];
            let readout_of_filter = LaneReadout {
                weight: weight.as_ptr(),
                classes,
                sums: sums.as_mut_ptr(),
                hidden: hidden.map_or(null_mut(), |hidden| {
                    let kept = filter * batch.blocks() + block;
                    hidden.at(kept * batch.len * entry)
                }),
            };
            run(
                Sink::Readout(&readout_of_filter),
                BlockBias::new(bias, batch, block).lane_bias(),
            );
            let images = batch.images_of(block);
            let to = z.at((filter * batch.batch + images.start) * classes);
            // SAFETY: `z` holds a row per filter and image, and this block alone has these images.
            let z = unsafe { std::slice::from_raw_parts_mut(to, images.len() * classes) };
            let constant = &readout.bias[filter * classes..][..classes];
            logits_of_lanes(batch, sums, constant, z);
        };
        // SAFETY: there are sums for all classes, and weights and room for all rows of the filter (checked above).
        unsafe { self.for_each_output(batch, x, coordinates, tanh, classes * entry, work) };
    }

    /// Calls `work((block, filter), run, values)` for every block of outputs: `run(sink, bias)` sends them to the sink.
    /// The first filter's run transforms the input as well. `values` is room for as many as the caller wants.
    ///
    /// # Safety
    /// Sink and bias that `work` hands to `run` must be those of its block and filter, with nobody else writing to the sink.
    unsafe fn for_each_output(
        &self,
        batch: &Batch,
        x: Input<'_, T>,
        coordinates: &[T],
        tanh: bool,
        room: usize,
        work: impl Fn((usize, usize), &Run<'_, T>, &mut [T]) + Sync,
    ) {
        let multipliers = self.multipliers(coordinates);
        let filters = multipliers.len() / (2 * self.bins.len());
        let entries = 2 * batch.lanes * batch.slots;
        let (numbers, spectra) = (batch.batch * batch.len, batch.spectrum_len());
        assert!(
            self.fits(batch)
                && match x {
                    Input::Kept(kept) => kept.len() == spectra,
                    Input::Rows(rows) | Input::Keep(rows, _) => rows.len() == numbers,
                },
            "inputs or spectra of the batch"
        );
        // A spectrum that nobody needs later becomes the product in place.
        let in_place = filters == 1 && matches!(x, Input::Rows(_));
        batch.map_tasks(|blocks| {
            let mut local = Scratch::<T>::take(entries);
            let mut product = Scratch::<T>::take(if in_place { 0 } else { entries });
            let mut numbers = Scratch::<T>::take(room);
            for block in blocks {
                let at = block * batch.block_stride();
                let (spectrum, rows) = match x {
                    Input::Kept(kept) => (Shared::reader(kept).at(at), None),
                    Input::Keep(rows, keep) => (keep.at(at), Some(rows)),
                    Input::Rows(rows) => (local.as_mut_ptr(), Some(rows)),
                };
                let rows =
                    rows.map(|rows| batch.pointers(Shared::reader(rows), block, self.plan.zeros()));
                let scratch = if in_place {
                    spectrum
                } else {
                    product.as_mut_ptr()
                };
                for filter in 0..filters {
                    let rows = rows.as_ref().filter(|_| filter == 0);
                    let h = multipliers[filter * 2 * batch.slots..].as_ptr();
                    let run = |sink: Sink<'_, T>, bias: LaneBias<'_, T>| {
                        let forward = rows.map(|rows| ForwardBlock {
                            plan: self.plan,
                            source: Source::Rows { rows, tanh: None },
                            block: spectrum,
                        });
                        let inverse = InverseBlock {
                            plan: self.plan,
                            product: Some(Product { spectrum, h }),
                            block: scratch,
                            sink,
                            bias,
                            tanh,
                        };
                        let pass = BlockPass {
                            forward,
                            adjoint: None,
                            inverse: Some(inverse),
                        };
                        // SAFETY: spectra and rows of the input are as long as the batch asks (checked above), blocks are
                        // this task's own, and the sink is the caller's promise.
                        T::block_pass(self.isa, unsafe { Promised::new(pass) });
                    };
                    work((block, filter), &run, &mut numbers);
                }
            }
        });
    }
}

/// Sums in lanes, `[classes]` entries, to rows of logits, `[images, classes]`.
pub(super) fn logits_of_lanes<T: Real>(batch: &Batch, sums: &[T], constant: &[T], z: &mut [T]) {
    let entry = 2 * batch.lanes;
    for (image, row) in z.chunks_exact_mut(constant.len()).enumerate() {
        let sums = sums[batch.place(image)..].iter().step_by(entry);
        for ((logit, &sum), &constant) in row.iter_mut().zip(sums).zip(constant) {
            *logit = sum + constant;
        }
    }
}
