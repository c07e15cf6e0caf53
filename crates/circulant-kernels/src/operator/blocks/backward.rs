//! The gradients of a block-circulant operator.
//!
//! The gradient of the coordinates is a sum over rows, that is over lanes. A panel of groups is added up lane by lane
//! before its lanes are, and every task has sums of its own, which are added in their order.
//!
//! `unsafe`: see the module above.

use std::ops::Range;

use super::{BlockMixing, ENOUGH_GROUPS, PARTS, Rows};
use crate::operator::batch::Bias;
use crate::operator::one_channel::OutputGradient;
use crate::real::Real;
use crate::runtime::partial_sums::add_parts;
use crate::runtime::scratch::Scratch;
use crate::runtime::shared::Shared;

/// Bytes of the spectra of a panel: they should stay in the L2 cache.
const PANEL_BYTES: usize = 3 << 18;
/// Bytes of partial sums that tasks may hold together.
const PARTIAL_BYTES: usize = 16 << 20;

/// Where the gradients go; what is `None` is not computed.
pub(crate) struct BlockGradients<'a, T> {
    pub(crate) x: Option<&'a mut [T]>,
    pub(crate) coordinates: Option<&'a mut [T]>,
    /// One number per filter and output channel, or per filter and output element.
    pub(crate) bias: Option<&'a mut [T]>,
}

/// Everything that the steps below read and write.
struct Job<'a, T> {
    kept: Shared<T>,
    coordinates: &'a [T],
    gradients: Vec<Rows<T>>,
    x: Option<Rows<T>>,
    want_coordinates: bool,
    want_bias: bool,
}

/// The sums of one task, for all filters.
#[derive(Clone, Copy)]
struct PartialSums<T> {
    coordinates: Shared<T>,
    /// The sums of the gradient's spectra over all groups.
    spectra: Shared<T>,
}

impl<T: Real> BlockMixing<'_, T> {
    /// The gradients from those of the outputs, one per filter.
    pub(crate) fn backward(
        &self,
        kept: &[T],
        coordinates: &[T],
        outputs: &[OutputGradient<'_, T>],
        gradients: BlockGradients<'_, T>,
    ) {
        let (count, len) = (outputs.len(), self.plan.len());
        let (row_in, row_out) = (self.batch * self.inputs * len, self.batch * self.outputs * len);
        let whole = |grad: &OutputGradient<'_, T>| {
            grad.grad.len() == row_out && grad.tanh.is_none_or(|y| y.len() == row_out)
        };
        assert!(
            kept.len() == self.spectrum_len()
                && coordinates.len() == count * self.coordinates()
                && outputs.iter().all(whole)
                && (gradients.x.as_ref()).is_none_or(|x| x.len() == row_in)
                && (gradients.coordinates.as_ref()).is_none_or(|c| c.len() == coordinates.len()),
            "spectra, coordinates and gradients of this operator"
        );
        let rows = |grad: &OutputGradient<'_, T>| Rows {
            at: Shared::reader(grad.grad),
            tanh: grad.tanh.map(Shared::reader),
            channels: self.outputs,
        };
        let job = Job {
            kept: Shared::reader(kept),
            coordinates,
            gradients: outputs.iter().map(rows).collect(),
            x: (gradients.x).map(|x| Rows::new(Shared::writer(x), self.inputs)),
            want_coordinates: gradients.coordinates.is_some(),
            want_bias: gradients.bias.is_some(),
        };
        let spectra = if job.want_bias { count * self.outputs * self.stride() } else { 0 };
        let sums = if job.want_coordinates { coordinates.len() } else { 0 };
        let panel = self.groups_per_panel();
        let panels = self.groups().div_ceil(panel);
        let apart = self.groups() < ENOUGH_GROUPS;
        let tasks = if apart { 1 } else { self.tasks(panels, sums + spectra) };
        let per_task = panels.div_ceil(tasks);
        let mut coordinate_sums = Scratch::zeroed(tasks * sums);
        let mut spectrum_sums = Scratch::zeroed(tasks * spectra);
        let partial = PartialSums {
            coordinates: Shared::writer(&mut coordinate_sums),
            spectra: Shared::writer(&mut spectrum_sums),
        };
        // SAFETY: all lengths are checked above; every task has its own groups and its own sums.
        unsafe {
            if apart {
                self.few_groups(&job, partial);
            } else {
                self.each(panels, tasks, |own| {
                    let task = own.start / per_task;
                    let partial = PartialSums {
                        coordinates: partial.coordinates.offset(task * sums),
                        spectra: partial.spectra.offset(task * spectra),
                    };
                    let groups = own.start * panel..self.groups().min(own.end * panel);
                    self.many_groups(&job, groups, panel, partial);
                });
            }
        }
        if let Some(out) = gradients.coordinates {
            self.add_up(&coordinate_sums, sums, out);
        }
        if let Some(out) = gradients.bias {
            let mut totals = Scratch::take(spectra);
            self.add_up(&spectrum_sums, spectra, &mut totals);
            let (one, bias) = (self.outputs * self.stride(), out.len() / count);
            for (totals, out) in totals.chunks_exact_mut(one).zip(out.chunks_exact_mut(bias)) {
                self.bias_gradient(totals, out);
            }
        }
    }

    /// Groups whose spectra stay in the cache together.
    fn groups_per_panel(&self) -> usize {
        let group = (2 * self.inputs + self.outputs) * self.stride() * size_of::<T>();
        (PANEL_BYTES / group).clamp(1, 16)
    }

    /// How many tasks share panels whose partial sums are so long.
    fn tasks(&self, panels: usize, sums: usize) -> usize {
        let most = PARTIAL_BYTES / (sums * size_of::<T>()).max(1);
        panels.div_ceil(panels.div_ceil(most.clamp(4, 32)))
    }

    fn add_up(&self, parts: &[T], stride: usize, out: &mut [T]) {
        let chunk = 4096;
        let to = Shared::writer(out);
        let len = out.len();
        self.each(len.div_ceil(chunk), usize::MAX, |chunks| {
            for first in chunks.map(|index| index * chunk) {
                let count = chunk.min(len - first);
                // SAFETY: chunks are disjoint parts of `out`, which stays borrowed.
                let out = unsafe { std::slice::from_raw_parts_mut(to.at(first), count) };
                add_parts(parts, stride, first, out);
            }
        });
    }

    /// Panel after panel of some groups.
    ///
    /// # Safety
    /// The job is that of this batch, and nobody else has these groups or these sums.
    unsafe fn many_groups(
        &self,
        job: &Job<'_, T>,
        groups: Range<usize>,
        panel: usize,
        sums: PartialSums<T>,
    ) {
        let (inputs, outputs) = (self.inputs * self.stride(), self.outputs * self.stride());
        let mut gradient: Scratch<T> = Scratch::take(panel * outputs);
        let mut input_gradient: Scratch<T> =
            Scratch::take(if job.x.is_some() { panel * inputs } else { 0 });
        let (gradient, to) = (gradient.as_mut_ptr(), input_gradient.as_mut_ptr());
        let (all, one) = (0..self.table.frequencies.len(), self.coordinates());
        let mut first = groups.start;
        while first < groups.end {
            let count = panel.min(groups.end - first);
            for (filter, rows) in job.gradients.iter().enumerate() {
                let spectra = job.want_bias.then(|| sums.spectra.at(filter * outputs));
                let coordinates = &job.coordinates[filter * one..(filter + 1) * one];
                for group in 0..count {
                    let from = gradient.wrapping_add(group * outputs);
                    // SAFETY: the caller's promise; the scratch has room for a panel.
                    unsafe {
                        self.to_spectra(*rows, first + group, 0..self.outputs, from, spectra);
                        if job.x.is_some() {
                            let to = to.wrapping_add(group * inputs);
                            self.multiply(all.clone(), (from, to), coordinates, true, filter > 0);
                        }
                    }
                }
                if job.want_coordinates {
                    let x = job.kept.at(first * inputs);
                    // SAFETY: as above.
                    unsafe {
                        let out = sums.coordinates.at(filter * one);
                        self.correlate(all.clone(), count, (x, gradient), out);
                    }
                }
            }
            if let Some(rows) = job.x {
                for group in 0..count {
                    let from = to.wrapping_add(group * inputs);
                    // SAFETY: as above.
                    unsafe {
                        self.clear_masked(from, 0..self.inputs);
                        let nothing = (Bias::None, false);
                        self.to_rows(rows, first + group, 0..self.inputs, from, nothing);
                    }
                }
            }
            first += count;
        }
    }

    /// Step after step over all groups, on all threads.
    ///
    /// # Safety
    /// The job is that of this batch, and nobody else has its sums.
    unsafe fn few_groups(&self, job: &Job<'_, T>, sums: PartialSums<T>) {
        let (inputs, outputs) = (self.inputs * self.stride(), self.outputs * self.stride());
        let mut gradient = Scratch::take(self.groups() * outputs);
        let wanted = if job.x.is_some() { self.groups() * inputs } else { 0 };
        let mut input_gradient = Scratch::take(wanted);
        let (gradient, to) = (Shared::writer(&mut gradient), Shared::writer(&mut input_gradient));
        let one = self.coordinates();
        for (filter, rows) in job.gradients.iter().enumerate() {
            self.each(self.outputs, PARTS, |channels| {
                for group in 0..self.groups() {
                    let spectra = job.want_bias.then(|| sums.spectra.at(filter * outputs));
                    let to = gradient.at(group * outputs);
                    // SAFETY: the caller's promise; a task has its own channels.
                    unsafe { self.to_spectra(*rows, group, channels.clone(), to, spectra) };
                }
            });
            let coordinates = &job.coordinates[filter * one..(filter + 1) * one];
            self.each(self.table.frequencies.len(), PARTS, |frequencies| {
                // SAFETY: the caller's promise; a task has its own frequencies, and so its own coordinates.
                unsafe {
                    if job.want_coordinates {
                        let (spectra, out) = ((job.kept.at(0), gradient.at(0)), filter * one);
                        let out = sums.coordinates.at(out);
                        self.correlate(frequencies.clone(), self.groups(), spectra, out);
                    }
                    for group in 0..if job.x.is_some() { self.groups() } else { 0 } {
                        let spectra = (gradient.at(group * outputs), to.at(group * inputs));
                        self.multiply(frequencies.clone(), spectra, coordinates, true, filter > 0);
                    }
                }
            });
        }
        let Some(rows) = job.x else { return };
        self.each(self.inputs, PARTS, |channels| {
            for group in 0..self.groups() {
                let from = to.at(group * inputs);
                // SAFETY: the caller's promise; a task has its own channels.
                unsafe {
                    self.clear_masked(from, channels.clone());
                    self.to_rows(rows, group, channels.clone(), from, (Bias::None, false));
                }
            }
        });
    }

    /// The gradient of one filter's bias from the sum of its gradient's spectra: the transform is linear, so the sum of
    /// all rows is the transform of that sum back to rows.
    fn bias_gradient(&self, totals: &mut [T], out: &mut [T]) {
        let lanes = self.lanes();
        if out.len() == self.outputs {
            for (totals, out) in totals.chunks_exact(self.stride()).zip(out) {
                // Position 0 is frequency 0.
                let sum: f64 = totals[..2 * lanes].iter().map(|value| value.wide()).sum();
                *out = T::of(sum);
            }
            return;
        }
        let row = self.outputs * self.plan.len();
        assert_eq!(out.len(), row, "the gradient of a bias per element");
        let mut rows = Scratch::take(2 * lanes * row);
        let group = BlockMixing {
            batch: 2 * lanes,
            ..*self
        };
        let to = Rows::new(Shared::writer(&mut rows), self.outputs);
        // SAFETY: one group of rows and its spectra, which nobody else has.
        unsafe {
            let from = totals.as_mut_ptr();
            group.to_rows(to, 0, 0..self.outputs, from, (Bias::None, false));
        }
        add_parts(&rows, row, 0, out);
        let scale = self.scale();
        out.iter_mut().for_each(|value| *value = *value * scale);
    }
}
