//! Block-circulant operators: `C_out x C_in` circulant blocks of length `b`, that is several channels of height 1.
//!
//! Lanes hold pairs of rows as everywhere, but all lanes of a block the same channel: a group of `2*LANES` rows is
//! transformed, goes through the matrices of all frequencies and back while it is in the L1 and L2 cache, so that memory sees
//! every row once. (`channels/` puts channels beside each other into lanes, goes over the whole batch once per step, and
//! suits images and few rows.) Many groups are shared out whole; of few groups the channels and the frequencies are, step by step.
//! How work is cut depends on the sizes alone, so that sums are the same bytes for any number of threads.
//!
//! `unsafe`: jobs write rows of one group, spectra of one group, or coordinates of some frequencies from several threads.
//! Lengths are checked where a call begins; rows, groups and frequencies belong to one task at a time.

mod backward;
mod pass;
mod product;

pub(crate) use backward::BlockGradients;
pub use pass::{ChannelPass, Direction};
pub use product::{GroupCorrelation, GroupProduct, GroupSpectra};

use std::ops::Range;
use std::ptr::null_mut;

use crate::operator::batch::Bias;
use crate::operator::channels::FrequencyTable;
use crate::real::Real;
use crate::runtime::chunks::SEQUENTIAL_BELOW;
use crate::runtime::scratch::Scratch;
use crate::runtime::shared::Shared;
use crate::runtime::threads::share;
use crate::transform::{LanePlan, RowPointers};
use crate::vector::{Isa, Promised};

/// Fewer groups than this are not shared out whole.
const ENOUGH_GROUPS: usize = 4;
/// Parts that channels or frequencies are cut into otherwise.
const PARTS: usize = 16;
/// The most tasks that groups are shared out in.
const TASKS: usize = 64;

/// The operator for a batch of so many rows.
pub struct BlockMixing<'a, T> {
    pub(crate) isa: Isa,
    pub(crate) plan: &'a LanePlan<T>,
    pub(crate) table: &'a FrequencyTable,
    pub(crate) batch: usize,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
}

impl<T: Real> BlockMixing<'_, T> {
    fn lanes(&self) -> usize {
        self.isa.lanes::<T>()
    }

    fn groups(&self) -> usize {
        self.batch.div_ceil(2 * self.lanes())
    }

    /// Values from one channel's spectrum to the next. One entry more than it holds: with a power of two, the same
    /// frequency of all channels would fall into the same cache set.
    fn stride(&self) -> usize {
        (self.plan.order().len() + 1) * 2 * self.lanes()
    }

    /// Values of the kept spectra of a batch.
    pub(crate) fn spectrum_len(&self) -> usize {
        self.groups() * self.inputs * self.stride()
    }

    fn scale(&self) -> T {
        T::one() / T::of(self.plan.len() as f64)
    }

    /// Values of all coordinates of a filter.
    fn coordinates(&self) -> usize {
        let free = |mirror: Option<usize>| 1 + usize::from(mirror.is_some());
        let free: usize = (self.table.frequencies.iter())
            .map(|frequency| free(frequency.mirror))
            .sum();
        free * self.inputs * self.outputs
    }

    fn sequential(&self) -> bool {
        self.batch * self.inputs.max(self.outputs) * self.plan.len() < SEQUENTIAL_BELOW
    }

    /// `work` for every part of `0..count`, cut into at most `parts`, on all threads when it is worth it.
    fn each<R: Send>(
        &self,
        count: usize,
        parts: usize,
        work: impl Fn(Range<usize>) -> R + Sync,
    ) -> Vec<R> {
        let step = count.div_ceil(parts).max(1);
        let part = |part: usize| work(part * step..count.min((part + 1) * step));
        let parts = count.div_ceil(step);
        if self.sequential() {
            (0..parts).map(part).collect()
        } else {
            share(parts, part)
        }
    }

    /// The rows of a group from one channel on, of rows that have so many channels.
    fn pointers(
        &self,
        rows: Shared<T>,
        channels: usize,
        group: usize,
        first: usize,
        missing: *mut T,
    ) -> RowPointers<T> {
        let (lanes, len) = (self.lanes(), self.plan.len());
        let row_len = channels * len;
        RowPointers::new(lanes, |lane, imaginary| {
            let row = 2 * (group * lanes + lane) + usize::from(imaginary);
            let there = rows.at(row * row_len + first * len);
            let ahead = there.wrapping_add(2 * lanes * row_len);
            (if row < self.batch { there } else { missing }, ahead)
        })
    }

    /// Rows of `total` channels to the spectra of some of them.
    ///
    /// # Safety
    /// `rows` are those of the batch, `spectra` and `sums` have `total` channels, and nobody else uses these of them.
    unsafe fn to_spectra(
        &self,
        rows: Rows<T>,
        group: usize,
        channels: Range<usize>,
        spectra: *mut T,
        sums: Option<*mut T>,
    ) {
        let missing = self.plan.zeros();
        let pointers =
            |at| self.pointers(at, rows.channels, group, channels.start, self.plan.zeros());
        let pass = ChannelPass {
            plan: self.plan,
            rows: pointers(rows.at),
            missing,
            spectra: (spectra, self.stride()),
            way: Direction::Forward {
                tanh: rows.tanh.map(pointers),
                sums,
            },
            channels,
        };
        // SAFETY: the caller's promise.
        T::channel_pass(self.isa, unsafe { Promised::new(pass) });
    }

    /// The way back, which destroys the spectra.
    ///
    /// # Safety
    /// As above, and nobody else uses these channels of the rows.
    unsafe fn to_rows(
        &self,
        rows: Rows<T>,
        group: usize,
        channels: Range<usize>,
        spectra: *mut T,
        (bias, tanh): (Bias<'_, T>, bool),
    ) {
        let pass = ChannelPass {
            plan: self.plan,
            rows: self.pointers(rows.at, rows.channels, group, channels.start, null_mut()),
            missing: null_mut(),
            spectra: (spectra, self.stride()),
            way: Direction::Inverse { bias, tanh },
            channels,
        };
        // SAFETY: the caller's promise.
        T::channel_pass(self.isa, unsafe { Promised::new(pass) });
    }

    /// `to = from K` at some frequencies of one group, or `from K^*`.
    ///
    /// # Safety
    /// Spectra and coordinates are those of the operator, and nobody else uses these frequencies of `to`.
    unsafe fn multiply(
        &self,
        frequencies: Range<usize>,
        (from, to): (*mut T, *mut T),
        coordinates: &[T],
        adjoint: bool,
        add: bool,
    ) {
        let stride = self.stride();
        let product = GroupProduct {
            frequencies: &self.table.frequencies[frequencies],
            from: GroupSpectra { at: from, stride },
            to: GroupSpectra { at: to, stride },
            coordinates: coordinates.as_ptr(),
            channels: (self.inputs, self.outputs),
            adjoint,
            add,
            scale: self.scale(),
        };
        // SAFETY: the caller's promise.
        T::group_product(self.isa, unsafe { Promised::new(product) });
    }

    /// The gradient of the coordinates of some frequencies, added to `out`.
    ///
    /// # Safety
    /// As above, for the spectra of so many groups.
    unsafe fn correlate(
        &self,
        frequencies: Range<usize>,
        groups: usize,
        (x, gradient): (*mut T, *mut T),
        out: *mut T,
    ) {
        let stride = self.stride();
        let correlation = GroupCorrelation {
            frequencies: &self.table.frequencies[frequencies],
            groups,
            x: (GroupSpectra { at: x, stride }, self.inputs * stride),
            gradient: (GroupSpectra { at: gradient, stride }, self.outputs * stride),
            out,
            channels: (self.inputs, self.outputs),
            scale: self.scale(),
        };
        // SAFETY: the caller's promise.
        T::group_correlation(self.isa, unsafe { Promised::new(correlation) });
    }

    /// Zeros where the mask wants them, in some channels of one group.
    ///
    /// # Safety
    /// Nobody else uses these channels of the spectra.
    unsafe fn clear_masked(&self, spectra: *mut T, channels: Range<usize>) {
        let entry = 2 * self.lanes();
        for channel in channels {
            for position in &self.table.masked {
                let at = spectra.wrapping_add(channel * self.stride() + position * entry);
                // SAFETY: the caller's promise; zero bytes are the number zero.
                unsafe { at.write_bytes(0, entry) };
            }
        }
    }

    /// `y = act(K x + bias)`, from rows or from their spectra; spectra of rows are kept when there is room for them.
    pub(crate) fn forward(
        &self,
        x: BlockInput<'_, T>,
        coordinates: &[T],
        (bias, tanh): (Bias<'_, T>, bool),
        y: &mut [T],
    ) {
        let len = self.plan.len();
        let bias_fits = match bias {
            Bias::None => true,
            Bias::Channels(bias) => bias.len() == self.outputs,
            Bias::Positions(bias) => bias.len() == self.outputs * len,
        };
        assert!(
            coordinates.len() == self.coordinates()
                && bias_fits
                && y.len() == self.batch * self.outputs * len,
            "coordinates, bias and rows of this operator"
        );
        let (rows, kept) = match x {
            BlockInput::Spectra(spectra) => {
                assert_eq!(spectra.len(), self.spectrum_len(), "the kept spectra");
                (None, Some(Shared::reader(spectra)))
            }
            BlockInput::Rows(x, keep) => {
                assert_eq!(x.len(), self.batch * self.inputs * len, "rows of the batch");
                let keep = keep.map(|keep| {
                    assert_eq!(keep.len(), self.spectrum_len(), "room for the spectra");
                    Shared::writer(keep)
                });
                (Some(Rows::new(Shared::reader(x), self.inputs)), keep)
            }
        };
        let y = Rows::new(Shared::writer(y), self.outputs);
        let (inputs, outputs) = (self.inputs * self.stride(), self.outputs * self.stride());
        let all = 0..self.table.frequencies.len();
        if self.groups() >= ENOUGH_GROUPS {
            self.each(self.groups(), TASKS, |groups| {
                let mut own = Scratch::take(if kept.is_some() { 0 } else { inputs });
                let mut products = Scratch::take(outputs);
                let (own, to) = (own.as_mut_ptr(), products.as_mut_ptr());
                for group in groups {
                    let from = kept.map_or(own, |kept| kept.at(group * inputs));
                    // SAFETY: all lengths are checked above; a group is one task's alone.
                    unsafe {
                        if let Some(rows) = rows {
                            self.to_spectra(rows, group, 0..self.inputs, from, None);
                        }
                        self.clear_masked(to, 0..self.outputs);
                        self.multiply(all.clone(), (from, to), coordinates, false, false);
                        self.to_rows(y, group, 0..self.outputs, to, (bias, tanh));
                    }
                }
            });
            return;
        }
        let mut own = Scratch::take(if kept.is_some() { 0 } else { self.spectrum_len() });
        let from = kept.unwrap_or(Shared::writer(&mut own));
        let mut products = Scratch::take(self.groups() * outputs);
        let to = Shared::writer(&mut products);
        // SAFETY of the three steps: all lengths are checked above; a task has its own channels, then its own frequencies.
        if let Some(rows) = rows {
            self.each(self.inputs, PARTS, |channels| {
                for group in 0..self.groups() {
                    let to = from.at(group * inputs);
                    // SAFETY: see above.
                    unsafe { self.to_spectra(rows, group, channels.clone(), to, None) };
                }
            });
        }
        self.each(all.len(), PARTS, |frequencies| {
            for group in 0..self.groups() {
                let spectra = (from.at(group * inputs), to.at(group * outputs));
                // SAFETY: see above.
                unsafe { self.multiply(frequencies.clone(), spectra, coordinates, false, false) };
            }
        });
        self.each(self.outputs, PARTS, |channels| {
            for group in 0..self.groups() {
                let from = to.at(group * outputs);
                // SAFETY: see above.
                unsafe {
                    self.clear_masked(from, channels.clone());
                    self.to_rows(y, group, channels.clone(), from, (bias, tanh));
                }
            }
        });
    }

    /// The spectra of all rows of `x`.
    pub(crate) fn transform(&self, x: &[T]) -> Scratch<T> {
        let rows = self.batch * self.inputs * self.plan.len();
        assert_eq!(x.len(), rows, "rows of the batch");
        let mut spectra = Scratch::take(self.spectrum_len());
        let out = Shared::writer(&mut spectra);
        let x = Rows::new(Shared::reader(x), self.inputs);
        self.each(self.groups(), TASKS, |groups| {
            for group in groups {
                let to = out.at(group * self.inputs * self.stride());
                // SAFETY: the rows are those of the batch, and the spectra have room for them; a group is one task's alone.
                unsafe { self.to_spectra(x, group, 0..self.inputs, to, None) };
            }
        });
        spectra
    }
}

/// What a forward pass begins with.
pub(crate) enum BlockInput<'a, T> {
    /// The spectra of [`BlockMixing::transform`].
    Spectra(&'a [T]),
    /// Rows, with room for their spectra.
    Rows(&'a [T], Option<&'a mut [T]>),
}

/// Row-major rows of so many channels.
struct Rows<T> {
    at: Shared<T>,
    /// When there, the rows are gradients of `tanh` and these its values.
    tanh: Option<Shared<T>>,
    channels: usize,
}

impl<T> Clone for Rows<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Rows<T> {}

impl<T> Rows<T> {
    fn new(at: Shared<T>, channels: usize) -> Self {
        Self {
            at,
            tanh: None,
            channels,
        }
    }
}
