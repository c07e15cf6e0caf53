//! The gradients of one channel.

use std::ptr::null_mut;

use super::{OutputGradient, Outputs, Single, Sums};
use crate::bins::Bin;
use crate::blocks::{Batch, Shared};
use crate::lane_fft::{
    Adjoint, BlockPass, ForwardBlock, InverseBlock, LaneBias, LaneReadoutGradient, MAX_LANES, Sink,
    Source, WeightGradient,
};
use crate::real::Real;
use crate::scratch::Scratch;

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
        let kept = Shared::reader(kept);
        let grad_x = grad_x.map(Shared::writer);
        let entries = 2 * batch.lanes * batch.slots;
        let parts = batch.map_tasks(|blocks| {
            let mut gradient = Scratch::<T>::take(entries);
            // The product with one filter replaces the gradient in place.
            let apart = filters > 1;
            let mut sum = Scratch::<T>::take(if apart { entries } else { 0 });
            let wanted = if want_coordinates { entries } else { 0 };
            let mut sums = Scratch::<T>::take(wanted * filters);
            let mut bias = vec![T::zero(); filters];
            let mut readout = ReadoutSums::new(outputs, batch, filters);
            for (index, block) in blocks.enumerate() {
                for filter in 0..filters {
                    let mut row_sums = [T::zero(); 2 * MAX_LANES];
                    let product = if apart {
                        sum.as_mut_ptr()
                    } else {
                        gradient.as_mut_ptr()
                    };
                    let adjoint = Adjoint {
                        x: kept.at(block * batch.block_stride()),
                        gradient: gradient.as_ptr(),
                        h: multipliers[filter * 2 * batch.slots..].as_ptr(),
                        sums: want_coordinates
                            .then(|| (sums[filter * entries..].as_mut_ptr(), index > 0)),
                        out: grad_x.map(|_| (product, filter > 0)),
                        row_sums: &mut row_sums,
                    };
                    let grad_x = grad_x.filter(|_| filter + 1 == filters);
                    let rows = grad_x.map(|grad_x| batch.pointers(grad_x, block, null_mut()));
                    let inverse = rows.as_ref().map(|rows| InverseBlock {
                        plan: self.plan,
                        product: None,
                        block: product,
                        sink: Sink::Rows(rows),
                        bias: LaneBias::None,
                        tanh: false,
                    });
                    self.backward_block(
                        batch,
                        outputs,
                        (block, filter),
                        &mut readout,
                        (gradient.as_mut_ptr(), adjoint, inverse),
                    );
                    bias[filter] = row_sums[..2 * batch.lanes]
                        .iter()
                        .fold(bias[filter], |sum, &g| sum + g);
                }
            }
            let sums: Vec<T> = sums.chunks_exact(batch.lanes).map(over_lanes).collect();
            (sums, bias, readout.weight)
        });
        self.collect(parts, outputs, filters, want_coordinates)
    }

    /// One block of the gradient of one filter's output: transform, sums, and the way back.
    fn backward_block(
        &self,
        batch: &Batch,
        outputs: Outputs<'_, T>,
        (block, filter): (usize, usize),
        readout: &mut ReadoutSums<T>,
        (spectrum, adjoint, inverse): (*mut T, Adjoint<T>, Option<InverseBlock<'_, T>>),
    ) {
        let run = |source| {
            let forward = ForwardBlock {
                plan: self.plan,
                source,
                block: spectrum,
            };
            let pass = BlockPass {
                forward: Some(forward),
                adjoint: Some(adjoint),
                inverse,
            };
            T::block_pass(self.isa, pass);
        };
        match outputs {
            Outputs::Rows(outputs) => {
                let OutputGradient { grad, tanh } = outputs[filter];
                let zeros = self.plan.zeros();
                let rows = batch.pointers(Shared::reader(grad), block, zeros);
                let tanh = tanh.map(|y| batch.pointers(Shared::reader(y), block, zeros));
                run(Source::Rows {
                    rows: &rows,
                    tanh: tanh.as_ref(),
                });
            }
            Outputs::Readout {
                weights,
                grad,
                hidden,
                tanh,
                want_weight,
            } => {
                let classes = weights.classes;
                let one = batch.len * 2 * batch.lanes;
                let hidden = &hidden[(filter * batch.blocks() + block) * one..][..one];
                let grad = &grad[filter * batch.batch * classes..][..batch.batch * classes];
                readout.take(batch, block, classes, grad);
                if want_weight {
                    let padded = batch.len * readout.stride;
                    let gradient = WeightGradient {
                        len: batch.len,
                        hidden: hidden.as_ptr(),
                        gradient: readout.by_rows.as_ptr(),
                        stride: readout.stride,
                        sums: readout.weight[filter * padded..][..padded].as_mut_ptr(),
                    };
                    T::weight_gradient(self.isa, gradient);
                }
                run(Source::Readout(&LaneReadoutGradient {
                    weight: weights.weight[filter * batch.len * classes..].as_ptr(),
                    classes,
                    gradient: readout.by_classes.as_ptr(),
                    hidden: hidden.as_ptr(),
                    tanh,
                }));
            }
        }
    }

    /// Adds the chunks in order and folds positions into coordinates: the adjoint of T with the
    /// multiplicities of SPEC section 9 (a complex bin meets its conjugate partner's sum too).
    fn collect(
        &self,
        parts: Vec<(Vec<T>, Vec<T>, Scratch<T>)>,
        outputs: Outputs<'_, T>,
        filters: usize,
        want_coordinates: bool,
    ) -> Sums<T> {
        let mut parts = parts.into_iter();
        let (mut sums, mut bias, mut padded) =
            parts.next().expect("a batch has at least one block");
        let add = |sums: &mut [T], more: &[T]| {
            sums.iter_mut()
                .zip(more)
                .for_each(|(sum, &x)| *sum = *sum + x);
        };
        for (more, more_bias, more_padded) in parts {
            add(&mut sums, &more);
            add(&mut bias, &more_bias);
            add(&mut padded, &more_padded);
        }
        let weight = match outputs {
            Outputs::Readout { weights, .. } => {
                let classes = weights.classes;
                let stride = classes.next_multiple_of(self.isa.lanes::<T>());
                let rows = padded.chunks_exact(stride);
                rows.flat_map(|row| &row[..classes]).copied().collect()
            }
            Outputs::Rows(_) => Vec::new(),
        };
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
}

/// The sum of the lanes, in four parts: one after the other each addition would wait for the last.
fn over_lanes<T: Real>(lanes: &[T]) -> T {
    let mut sums = [T::zero(); 4];
    for four in lanes.as_chunks::<4>().0 {
        for (sum, &x) in sums.iter_mut().zip(four) {
            *sum = *sum + x;
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// What a task holds for the gradients of a read-out; empty without one.
struct ReadoutSums<T: Real> {
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
    fn new(outputs: Outputs<'_, T>, batch: &Batch, filters: usize) -> Self {
        let (classes, want_weight) = match outputs {
            Outputs::Rows(_) => (0, false),
            Outputs::Readout {
                weights,
                want_weight,
                ..
            } => (weights.classes, want_weight),
        };
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

    /// Reads the gradient of the block's logits; missing images have none.
    fn take(&mut self, batch: &Batch, block: usize, classes: usize, grad: &[T]) {
        let entry = 2 * batch.lanes;
        if batch.images(block).count() < entry {
            self.by_classes.fill(T::zero());
            self.by_rows.fill(T::zero());
        }
        for (place, image) in batch.images(block) {
            let row = &grad[image * classes..][..classes];
            self.by_rows[place * self.stride..][..classes].copy_from_slice(row);
            for (class, &g) in row.iter().enumerate() {
                self.by_classes[class * entry + place] = g;
            }
        }
    }
}
