//! The cross-entropy of a read-out with its gradients. A block goes there and back while it is in the L1 or L2 cache:
//! nothing of it is kept, neither its spectrum nor its hidden rows.
//!
//! `unsafe`: see the module above; inputs and rows are compared with the batch where pointers are made.

use super::backward::{GradientBlock, GradientTask, ReadoutSums, add};
use super::forward::logits_of_lanes;
use super::{ReadoutWeights, Single, Sums};
use crate::elements::cross_entropy::CrossEntropyChunk;
use crate::elements::examples::{Examples, Inputs};
use crate::elements::gather::{ByteQuotient, fetch, numbers_of_bytes};
use crate::operator::batch::{Batch, Bias, BlockBias};
use crate::real::Real;
use crate::runtime::scratch::Scratch;
use crate::runtime::shared::Shared;
use crate::transform::{
    BlockPass, ForwardBlock, InverseBlock, LaneReadout, Product, RowPointers, Sink, Source,
};
use crate::vector::Promised;

/// The sum of the losses, and what the gradients need.
pub(crate) struct LossSums<T> {
    pub(crate) loss: f64,
    pub(crate) sums: Sums<T>,
    /// The gradient of the read-out's bias.
    pub(crate) constant: Vec<T>,
}

/// One filter with its read-out.
#[derive(Clone, Copy)]
pub(crate) struct FilterReadout<'a, T> {
    pub(crate) coordinates: &'a [T],
    pub(crate) bias: Bias<'a, T>,
    pub(crate) tanh: bool,
    pub(crate) weights: ReadoutWeights<'a, T>,
}

/// Which of the large gradients are wanted.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) coordinates: bool,
    pub(crate) weight: bool,
}

/// The rows of one block.
enum BlockRows<T> {
    Numbers(RowPointers<T>),
    Bytes(RowPointers<u8>, ByteQuotient),
}

impl<T> BlockRows<T> {
    fn source(&self) -> Source<'_, T> {
        match self {
            Self::Numbers(rows) => Source::Rows { rows, tanh: None },
            Self::Bytes(rows, quotient) => Source::Bytes {
                rows,
                quotient: *quotient,
            },
        }
    }
}

impl<T: Real> Single<'_, T> {
    pub(crate) fn cross_entropy(
        &self,
        batch: &Batch,
        examples: Examples<'_, T>,
        filter: FilterReadout<'_, T>,
        grad_x: Option<&mut [T]>,
        wanted: Wanted,
    ) -> LossSums<T> {
        let multipliers = self.multipliers(filter.coordinates);
        let h = Shared::reader(&multipliers);
        let classes = filter.weights.classes;
        let entry = 2 * batch.lanes;
        let given = match examples.inputs {
            Inputs::Numbers(numbers) => numbers.len(),
            Inputs::Bytes(bytes, _) => bytes.len(),
        };
        let (given, numbers) = (given / batch.len, batch.batch * batch.len);
        assert!(
            self.fits(batch)
                && filter.bias.fits(batch)
                && filter.weights.weight.len() == batch.len * classes
                && grad_x.as_deref().is_none_or(|grad| grad.len() == numbers)
                && match examples.rows {
                    None => given == batch.batch,
                    Some(rows) => {
                        rows.len() == batch.batch && rows.iter().all(|row| *row < given)
                    }
                },
            "inputs, weights and gradients of the batch"
        );
        let grad_x = grad_x.map(Shared::writer);
        let parts = batch.map_tasks(|blocks| {
            let readout = ReadoutSums::new(batch, 1, classes, wanted.weight);
            let mut task = GradientTask::new(self, batch, 1, wanted.coordinates, readout);
            let mut spectrum = Scratch::<T>::take(entry * batch.slots);
            let mut hidden = Scratch::<T>::take(entry * batch.len);
            let mut numbers = Scratch::<T>::take(match examples.inputs {
                Inputs::Numbers(_) => 0,
                Inputs::Bytes(_, scale) if ByteQuotient::new::<T>(self.isa, scale).is_some() => 0,
                Inputs::Bytes(..) => entry * batch.len,
            });
            let mut sums = Scratch::<T>::take(entry * classes);
            let mut logits = Scratch::<T>::take(entry * classes);
            let mut gradient = Scratch::<T>::take(entry * classes);
            let mut constant = vec![T::zero(); classes];
            let mut loss = 0.0;
            for block in blocks {
                let job = GradientBlock {
                    block,
                    filter: 0,
                    x: spectrum.as_mut_ptr(),
                    h: h.at(0),
                    grad_x,
                };
                sums.fill(T::zero());
                let readout = LaneReadout {
                    weight: filter.weights.weight.as_ptr(),
                    classes,
                    sums: sums.as_mut_ptr(),
                    hidden: hidden.as_mut_ptr(),
                };
                let rows = self.rows_of(batch, examples, block, &mut numbers);
                // SAFETY: the inputs are those of the batch (checked above), and all the rest is this task's own, made for
                // these sizes.
                unsafe {
                    self.forward_block(
                        batch,
                        rows.source(),
                        &filter,
                        &job,
                        &readout,
                        &mut task.gradient,
                    );
                }
                let images = batch.images_of(block);
                let count = images.len() * classes;
                let (logits, gradient) = (&mut logits[..count], &mut gradient[..count]);
                logits_of_lanes(batch, &sums, filter.weights.bias, logits);
                let chunk = CrossEntropyChunk {
                    logits,
                    labels: &examples.labels[images],
                    classes,
                    gradient: Some(gradient),
                };
                loss += T::cross_entropy_chunk(self.isa, chunk);
                for row in gradient.chunks_exact(classes) {
                    add(&mut constant, row);
                }
                // SAFETY: as above.
                unsafe { task.add_readout(&job, filter.weights, gradient, &hidden, filter.tanh) };
            }
            (task.finish(), loss, constant)
        });
        let loss = parts.iter().map(|(_, loss, _)| loss).sum();
        let mut constant = vec![T::zero(); classes];
        for (_, _, more) in &parts {
            add(&mut constant, more);
        }
        let parts = parts.into_iter().map(|(sums, ..)| sums);
        LossSums {
            loss,
            sums: self.collect(parts, classes, wanted.coordinates),
            constant,
        }
    }

    /// The inputs of one block: where they lie, or as the values that their bytes stand for.
    fn rows_of(
        &self,
        batch: &Batch,
        examples: Examples<'_, T>,
        block: usize,
        numbers: &mut [T],
    ) -> BlockRows<T> {
        let zeros = self.plan.zeros();
        let (bytes, scale) = match examples.inputs {
            Inputs::Numbers(inputs) => {
                let inputs = Shared::reader(inputs);
                return BlockRows::Numbers(match examples.rows {
                    None => batch.pointers(inputs, block, zeros),
                    Some(rows) => batch.pointers_to(inputs, rows, block, zeros),
                });
            }
            Inputs::Bytes(bytes, scale) => (bytes, scale),
        };
        if let Some(quotient) = ByteQuotient::new::<T>(self.isa, scale) {
            // Values that are zero are bytes that are zero.
            let (bytes, zeros) = (Shared::reader(bytes), zeros.cast());
            let rows = match examples.rows {
                None => batch.pointers(bytes, block, zeros),
                Some(rows) => batch.pointers_to(bytes, rows, block, zeros),
            };
            return BlockRows::Bytes(rows, quotient);
        }
        let input = |image: usize| {
            let row = examples.rows.map_or(image, |rows| rows[image]);
            &bytes[row * batch.len..][..batch.len]
        };
        let images = batch.images_of(block);
        for (image, out) in images.clone().zip(numbers.chunks_exact_mut(batch.len)) {
            // The next block's, in time.
            let later = image + 2 * batch.lanes;
            if later < batch.batch {
                fetch(input(later));
            }
            numbers_of_bytes(self.isa, input(image), scale, out);
        }
        let own = Batch {
            batch: images.len(),
            ..*batch
        };
        BlockRows::Numbers(own.pointers(Shared::writer(numbers), 0, zeros))
    }

    /// The spectrum and the read-out of one block.
    ///
    /// # Safety
    /// Source, job and read-out must be those of a block of this batch, and `scratch` have room for one.
    unsafe fn forward_block(
        &self,
        batch: &Batch,
        source: Source<'_, T>,
        filter: &FilterReadout<'_, T>,
        job: &GradientBlock<T>,
        readout: &LaneReadout<T>,
        scratch: &mut [T],
    ) {
        let bias = BlockBias::new(filter.bias, batch, job.block);
        let forward = ForwardBlock {
            plan: self.plan,
            source,
            block: job.x.cast_mut(),
        };
        let inverse = InverseBlock {
            plan: self.plan,
            product: Some(Product {
                spectrum: job.x,
                h: job.h,
            }),
            block: scratch.as_mut_ptr(),
            sink: Sink::Readout(readout),
            bias: bias.lane_bias(),
            tanh: filter.tanh,
        };
        let pass = BlockPass {
            forward: Some(forward),
            adjoint: None,
            inverse: Some(inverse),
        };
        // SAFETY: the caller's promise.
        T::block_pass(self.isa, unsafe { Promised::new(pass) });
    }
}
