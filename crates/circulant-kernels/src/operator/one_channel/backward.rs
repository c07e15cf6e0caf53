//! The gradients of one channel.
//!
//! `unsafe`: see the module above; lengths are compared with the batch where pointers are made.

use std::ptr::null_mut;

use circulant_core::Bin;

use super::{OutputGradient, Outputs, ReadoutWeights, Single, Sums};
use crate::operator::batch::Batch;
use crate::real::Real;
use crate::runtime::chunks::SEQUENTIAL_BELOW;
use crate::runtime::scratch::Scratch;
use crate::runtime::shared::Shared;
use crate::runtime::threads::share;
use crate::transform::{
    Adjoint, BlockPass, ForwardBlock, InverseBlock, LaneBias, LaneReadoutGradient, Sink, Source,
    WeightGradient,
};
use crate::vector::{MAX_LANES, Promised};

/// Otherwise it is done in so many pieces.
const SUM_RANGES: usize = 8;

impl<T: Real> Single<'_, T> {
    /// Gradients of the input (summed over the filters), of every filter and of its scalar bias, and of
    /// the read-out's weights.
    pub(crate) fn backward(
        &self,
        batch: &Batch,
        kept: &[T],
        coordinates: &[T],
        outputs: Outputs<'_, T>,
        grad_x: Option<&mut [T]>,
        want_coordinates: bool,
    ) -> Sums<T> {
        let multipliers = self.multipliers(coordinates);
        let filters = multipliers.len() / (2 * self.bins.len());
        let numbers = batch.batch * batch.len;
        let of_batch = |rows: &[T]| rows.len() == numbers;
        assert!(
            self.fits(batch)
                && kept.len() == batch.spectrum_len()
                && grad_x.as_deref().is_none_or(of_batch)
                && match outputs {
                    Outputs::Rows(rows) => {
                        let fits = |row: &OutputGradient<'_, T>| {
                            of_batch(row.grad) && row.tanh.is_none_or(of_batch)
                        };
                        rows.len() == filters && rows.iter().all(fits)
                    }
                    Outputs::Readout { .. } => true,
                },
            "spectra and gradients of the batch"
        );
        let kept = Shared::reader(kept);
        let grad_x = grad_x.map(Shared::writer);
        let (classes, want_weight) = match outputs {
            Outputs::Rows(_) => (0, false),
            Outputs::Readout {
                weights,
                want_weight,
                ..
            } => (weights.classes, want_weight),
        };
        let parts = batch.map_tasks(|blocks| {
            let readout = ReadoutSums::new(batch, filters, classes, want_weight);
            let mut task = GradientTask::new(self, batch, filters, want_coordinates, readout);
            for block in blocks {
                for filter in 0..filters {
                    let job = GradientBlock {
                        block,
                        filter,
                        x: kept.at(block * batch.block_stride()),
                        h: multipliers[filter * 2 * batch.slots..].as_ptr(),
                        grad_x,
                    };
                    self.backward_block(&mut task, &job, outputs);
                }
            }
            task.finish()
        });
        self.collect(parts, classes, want_coordinates)
    }

    fn backward_block(
        &self,
        task: &mut GradientTask<'_, T>,
        job: &GradientBlock<T>,
        outputs: Outputs<'_, T>,
    ) {
        let batch = task.batch;
        match outputs {
            Outputs::Rows(outputs) => {
                let OutputGradient { grad, tanh } = outputs[job.filter];
                let pointers = |rows| {
                    let zeros = self.plan.zeros();
                    batch.pointers(Shared::reader(rows), job.block, zeros)
                };
                let (rows, tanh) = (pointers(grad), tanh.map(pointers));
                let source = Source::Rows {
                    rows: &rows,
                    tanh: tanh.as_ref(),
                };
                // SAFETY: the job is of this batch; `backward` has compared the gradients with it.
                unsafe { task.add(job, source) };
            }
            Outputs::Readout {
                weights,
                grad,
                hidden,
                tanh,
                ..
            } => {
                let one = batch.len * 2 * batch.lanes;
                let kept = (job.filter * batch.blocks() + job.block) * one;
                let images = batch.images_of(job.block);
                let rows = job.filter * batch.batch + images.start;
                let grad = &grad[rows * weights.classes..][..images.len() * weights.classes];
                // SAFETY: the job is of this batch.
                unsafe { task.add_readout(job, weights, grad, &hidden[kept..][..one], tanh) };
            }
        }
    }

    /// Adds the chunks in order and folds positions into coordinates: the adjoint of T with the
    /// multiplicities of section 3 of `docs/mathematics.md` (a complex bin meets its conjugate partner's sum too).
    pub(super) fn collect(
        &self,
        parts: impl IntoIterator<Item = TaskSums<T>>,
        classes: usize,
        want_coordinates: bool,
    ) -> Sums<T> {
        let mut parts: Vec<TaskSums<T>> = parts.into_iter().collect();
        let weight = self.weight_of_readout(&parts, classes);
        let (total, rest) = parts
            .split_first_mut()
            .expect("a batch has at least one block");
        for part in rest {
            add(&mut total.positions, &part.positions);
            add(&mut total.bias, &part.bias);
        }
        let (sums, bias) = (&total.positions, std::mem::take(&mut total.bias));
        let filters = bias.len();
        let mut coordinates = Vec::new();
        if want_coordinates {
            let scale = T::one() / T::of(self.plan.len() as f64);
            coordinates = vec![T::zero(); filters * self.coordinates];
            for (out, sums) in coordinates
                .chunks_exact_mut(self.coordinates)
                .zip(sums.chunks_exact(2 * self.bins.len()))
            {
                for (&bin, a) in self.bins.iter().zip(sums.as_chunks::<2>().0) {
                    match bin {
                        Bin::Real { coordinate: c } => out[c] = out[c] + a[0] * scale,
                        Bin::Complex { coordinate: c } => {
                            out[c] = out[c] + a[0] * scale;
                            out[c + 1] = out[c + 1] + a[1] * scale;
                        }
                        Bin::Conjugate { coordinate: c } => {
                            out[c] = out[c] + a[0] * scale;
                            out[c + 1] = out[c + 1] - a[1] * scale;
                        }
                        Bin::Masked => {}
                    }
                }
            }
        }
        Sums {
            coordinates,
            bias,
            weight,
        }
    }

    /// The sum of the parts' gradients of a read-out, without what rounds classes up to whole vectors; empty when they have none.
    fn weight_of_readout(&self, parts: &[TaskSums<T>], classes: usize) -> Vec<T> {
        let numbers = parts.first().map_or(0, |part| part.weight.len());
        if numbers == 0 {
            return Vec::new();
        }
        let stride = classes.next_multiple_of(self.isa.lanes::<T>());
        let rows = numbers / stride;
        let ranges = if numbers * parts.len() < SEQUENTIAL_BELOW {
            1
        } else {
            SUM_RANGES.min(rows)
        };
        let sums = share(ranges, |range| {
            let own = range * rows / ranges * stride..(range + 1) * rows / ranges * stride;
            let mut sum = parts[0].weight[own.clone()].to_vec();
            for part in &parts[1..] {
                add(&mut sum, &part.weight[own.clone()]);
            }
            let mut packed = Vec::with_capacity(sum.len() / stride * classes);
            for row in sum.chunks_exact(stride) {
                packed.extend_from_slice(&row[..classes]);
            }
            packed
        });
        sums.concat()
    }
}

pub(super) fn add<T: Real>(sums: &mut [T], more: &[T]) {
    for (sum, &x) in sums.iter_mut().zip(more) {
        *sum = *sum + x;
    }
}

/// One block of the gradient of one filter's output. `x` has the block's slots, `h` a complex number for each, and `grad_x` the
/// rows of the batch, of which this block's are written by nobody else.
pub(super) struct GradientBlock<T> {
    pub(super) block: usize,
    pub(super) filter: usize,
    /// The spectrum of the input.
    pub(super) x: *const T,
    /// The multipliers of the filter.
    pub(super) h: *const T,
    pub(super) grad_x: Option<Shared<T>>,
}

/// The gradients of some blocks, as they come.
pub(super) struct GradientTask<'a, T: Real> {
    single: &'a Single<'a, T>,
    batch: &'a Batch,
    /// The spectrum of the gradient of one output.
    pub(super) gradient: Scratch<T>,
    /// Of the input's gradient, when there are several filters: with one, it replaces the output's in place.
    product: Scratch<T>,
    /// Per filter and position; empty when nobody wants them.
    positions: Vec<T>,
    bias: Vec<T>,
    readout: ReadoutSums<T>,
}

/// What a task has summed up.
pub(super) struct TaskSums<T: Real> {
    /// Per filter and position.
    positions: Vec<T>,
    /// Per filter.
    bias: Vec<T>,
    /// Of a read-out, `[filters, len, classes]` with classes rounded up to whole vectors.
    weight: Scratch<T>,
}

impl<'a, T: Real> GradientTask<'a, T> {
    pub(super) fn new(
        single: &'a Single<'a, T>,
        batch: &'a Batch,
        filters: usize,
        want_coordinates: bool,
        readout: ReadoutSums<T>,
    ) -> Self {
        let entries = 2 * batch.lanes * batch.slots;
        let when = |wanted: bool, numbers: usize| if wanted { numbers } else { 0 };
        Self {
            single,
            batch,
            gradient: Scratch::take(entries),
            product: Scratch::take(when(filters > 1, entries)),
            positions: vec![T::zero(); when(want_coordinates, 2 * batch.slots * filters)],
            bias: vec![T::zero(); filters],
            readout,
        }
    }

    /// Transform, sums, and the way back.
    ///
    /// # Safety
    /// The job must be of this task's batch, and its source must have the rows of the block.
    pub(super) unsafe fn add(&mut self, job: &GradientBlock<T>, source: Source<'_, T>) {
        let (plan, filters) = (self.single.plan, self.bias.len());
        let spectrum = self.gradient.as_mut_ptr();
        let product = if filters > 1 {
            self.product.as_mut_ptr()
        } else {
            spectrum
        };
        let mut row_sums = [T::zero(); 2 * MAX_LANES];
        let numbers = 2 * self.batch.slots;
        let sums = self.positions.chunks_exact_mut(numbers).nth(job.filter);
        let adjoint = Adjoint {
            x: job.x,
            gradient: spectrum,
            h: job.h,
            sums: sums.map(<[T]>::as_mut_ptr),
            out: job.grad_x.map(|_| (product, job.filter > 0)),
            row_sums: &mut row_sums,
        };
        let last = job.grad_x.filter(|_| job.filter + 1 == filters);
        let rows = last.map(|grad_x| self.batch.pointers(grad_x, job.block, null_mut()));
        let inverse = rows.as_ref().map(|rows| InverseBlock {
            plan,
            product: None,
            block: product,
            sink: Sink::Rows(rows),
            bias: LaneBias::None,
            tanh: false,
        });
        let forward = ForwardBlock {
            plan,
            source,
            block: spectrum,
        };
        let pass = BlockPass {
            forward: Some(forward),
            adjoint: Some(adjoint),
            inverse,
        };
        // SAFETY: the caller's promise; the spectrum, the product and the sums are this task's own.
        T::block_pass(self.single.isa, unsafe { Promised::new(pass) });
        let sums = row_sums[..2 * self.batch.lanes].iter();
        self.bias[job.filter] = sums.fold(self.bias[job.filter], |sum, &g| sum + g);
    }

    /// [`Self::add`] behind a read-out: `grad` are the gradients of the block's logits, `hidden` its activated rows.
    ///
    /// # Safety
    /// The job must be of this task's batch.
    pub(super) unsafe fn add_readout(
        &mut self,
        job: &GradientBlock<T>,
        weights: ReadoutWeights<'_, T>,
        grad: &[T],
        hidden: &[T],
        tanh: bool,
    ) {
        let (batch, classes, readout) = (self.batch, weights.classes, &mut self.readout);
        let own = &weights.weight[job.filter * batch.len * classes..][..batch.len * classes];
        assert!(
            hidden.len() == batch.len * 2 * batch.lanes,
            "the rows of one block"
        );
        readout.take(batch, classes, grad);
        if !readout.weight.is_empty() {
            let padded = batch.len * readout.stride;
            let gradient = WeightGradient {
                len: batch.len,
                hidden: hidden.as_ptr(),
                gradient: readout.by_rows.as_ptr(),
                stride: readout.stride,
                sums: readout.weight[job.filter * padded..][..padded].as_mut_ptr(),
            };
            // SAFETY: `hidden` has been compared with the block; the others are this task's own, made for these sizes.
            T::weight_gradient(self.single.isa, unsafe { Promised::new(gradient) });
        }
        let gradient = LaneReadoutGradient {
            weight: own.as_ptr(),
            classes,
            gradient: readout.by_classes.as_ptr(),
            hidden: hidden.as_ptr(),
            tanh,
        };
        // SAFETY: the caller's promise; weights, logits and rows have just been compared with the block.
        unsafe { self.add(job, Source::Readout(&gradient)) };
    }

    pub(super) fn finish(self) -> TaskSums<T> {
        TaskSums {
            positions: self.positions,
            bias: self.bias,
            weight: self.readout.weight,
        }
    }
}

/// What a task holds for the gradients of a read-out; empty without one.
pub(super) struct ReadoutSums<T: Real> {
    /// Classes rounded up to whole vectors.
    stride: usize,
    /// The gradient of one block's logits, `[classes]` entries.
    by_classes: Scratch<T>,
    /// The same as `[2*LANES, stride]`.
    by_rows: Scratch<T>,
    /// `[filters, len, stride]`, summed over the blocks.
    weight: Scratch<T>,
}

impl<T: Real> ReadoutSums<T> {
    pub(super) fn new(batch: &Batch, filters: usize, classes: usize, want_weight: bool) -> Self {
        let stride = classes.next_multiple_of(batch.lanes);
        let sums = if want_weight {
            filters * batch.len * stride
        } else {
            0
        };
        Self {
            stride,
            by_classes: Scratch::zeroed(classes * 2 * batch.lanes),
            by_rows: Scratch::zeroed(stride * 2 * batch.lanes),
            weight: Scratch::zeroed(sums),
        }
    }

    /// Reads the gradients of a block's logits, `[images, classes]`; missing images have none.
    fn take(&mut self, batch: &Batch, classes: usize, grad: &[T]) {
        let entry = 2 * batch.lanes;
        if grad.len() < entry * classes {
            self.by_classes.fill(T::zero());
            self.by_rows.fill(T::zero());
        }
        for (image, row) in grad.chunks_exact(classes).enumerate() {
            let place = batch.place(image);
            self.by_rows[place * self.stride..][..classes].copy_from_slice(row);
            for (class, &g) in row.iter().enumerate() {
                self.by_classes[class * entry + place] = g;
            }
        }
    }
}
