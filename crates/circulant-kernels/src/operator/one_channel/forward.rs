//! The forward pass of one channel.

use std::ptr::null_mut;

use super::{Input, ReadoutWeights, Single};
use crate::operator::batch::{Batch, Bias, BlockBias, Shared};
use crate::real::Real;
use crate::runtime::scratch::Scratch;
use crate::transform::{
    BlockPass, ForwardBlock, InverseBlock, LaneBias, LaneReadout, Product, Sink, Source,
};

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
        let y = Shared::writer(y);
        self.for_each_output(batch, x, coordinates, tanh, 0, |(block, filter), run, _| {
            let rows = batch.pointers(y.offset(filter * output), block, null_mut());
            let bias = BlockBias::new(bias(filter), batch, block);
            run(Sink::Rows(&rows), bias.lane_bias());
        });
    }

    /// `z[filter] = act(filter * x + bias[filter]) W[filter] + c[filter]: [filters, batch, classes]`.
    /// The rows in between go to `hidden` when given, [`Self::hidden_len`] numbers per filter.
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
        let hidden = hidden.map(Shared::writer);
        let z = Shared::writer(z);
        self.for_each_output(
            batch,
            x,
            coordinates,
            tanh,
            classes * entry,
            |(block, filter), run, sums| {
                sums.fill(T::zero());
                let bias = BlockBias::new(bias(filter), batch, block);
                let readout_of_filter = LaneReadout {
                    weight: readout.weight[filter * batch.len * classes..].as_ptr(),
                    classes,
                    sums: sums.as_mut_ptr(),
                    hidden: hidden.map_or(null_mut(), |hidden| {
                        let kept = filter * batch.blocks() + block;
                        hidden.at(kept * batch.len * entry)
                    }),
                };
                run(Sink::Readout(&readout_of_filter), bias.lane_bias());
                let images = batch.images_of(block);
                let to = z.at((filter * batch.batch + images.start) * classes);
                // SAFETY: `z` holds a row per filter and image, and this block alone has these images.
                let z = unsafe { std::slice::from_raw_parts_mut(to, images.len() * classes) };
                let constant = &readout.bias[filter * classes..][..classes];
                logits_of_lanes(batch, sums, constant, z);
            },
        );
    }

    /// Calls `work((block, filter), run, numbers)` for every block of outputs: `run(sink, bias)` sends them to the sink.
    /// The first filter's run transforms the input as well. `numbers` is room for as many as the caller wants.
    fn for_each_output(
        &self,
        batch: &Batch,
        x: Input<'_, T>,
        coordinates: &[T],
        tanh: bool,
        room: usize,
        work: impl Fn((usize, usize), &dyn Fn(Sink<'_, T>, LaneBias<'_, T>), &mut [T]) + Sync,
    ) {
        let multipliers = self.multipliers(coordinates);
        let filters = multipliers.len() / (2 * self.bins.len());
        let entries = 2 * batch.lanes * batch.slots;
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
                        T::block_pass(self.isa, pass);
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
