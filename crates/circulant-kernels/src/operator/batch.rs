//! How rows become lanes, and the work that goes through all blocks of a batch in parallel.
//!
//! Two real rows `a`, `b` of the batch travel as one complex row `a + i b`: a real circulant
//! operator acts on both parts separately, so its outputs are the real and the imaginary part
//! again, and no real-transform split or merge is needed at any length. With `C` channels, lane
//! `r = p*C + c` of the batch holds channel `c` of the images `2p` and `2p + 1`; blocks of `LANES`
//! consecutive `r` are transformed together. A missing last image is a row of zeros.
//!
//! `unsafe`: blocks write disjoint rows of one output slice from several threads. Each row
//! belongs to one lane of one block, and the slices' lengths are checked in `plan/`.

use std::ops::Range;

use crate::real::Real;
use crate::runtime::chunks::SEQUENTIAL_BELOW;
use crate::runtime::scratch::Scratch;
use crate::runtime::shared::Shared;
use crate::runtime::threads::share;
use crate::transform::{ForwardBlock, LaneBias, LanePlan, RowPointers, Source, line_of};
use crate::vector::{Isa, MAX_LANES, Promised};

/// Bytes of a block's rows up to which the next block's rows are fetched meanwhile.
const PREFETCH_BLOCKS_BELOW: usize = 66_000;

/// A batch of `batch x channels` rows of `len` values, cut into blocks of lanes.
#[derive(Clone, Copy)]
pub struct Batch {
    pub(crate) batch: usize,
    pub(crate) channels: usize,
    /// Values of a row.
    pub(crate) len: usize,
    /// Entries of a transformed block: the positions of a row and the gaps between them.
    pub(crate) slots: usize,
    pub(crate) lanes: usize,
}

impl Batch {
    /// Lanes in use, `ceil(batch/2)*channels`.
    pub(crate) fn lanes_used(&self) -> usize {
        self.batch.div_ceil(2) * self.channels
    }

    pub(crate) fn blocks(&self) -> usize {
        self.lanes_used().div_ceil(self.lanes)
    }

    /// Values from one transformed block to the next. One entry more than a block holds: with
    /// a power of two, the same frequency of all blocks would fall into the same cache set.
    pub(crate) fn block_stride(&self) -> usize {
        (self.slots + 1) * 2 * self.lanes
    }

    /// Values of the spectra of all blocks.
    pub(crate) fn spectrum_len(&self) -> usize {
        self.blocks() * self.block_stride()
    }

    /// Whether blocks are as this transform and this instruction set have them.
    pub(crate) fn fits<T: Real>(&self, isa: Isa, plan: &LanePlan<T>) -> bool {
        let shape = (self.len, self.slots, self.lanes);
        shape == (plan.len(), plan.order().len(), isa.lanes::<T>())
    }

    /// The rows of one block, with `missing` where the batch has none.
    pub(crate) fn pointers<T>(
        &self,
        base: Shared<T>,
        block: usize,
        missing: *mut T,
    ) -> RowPointers<T> {
        let ahead = self.rows_ahead::<T>();
        RowPointers::new(self.lanes, |lane, imaginary| {
            let (pair, channel) = self.pair_and_channel(block, lane);
            let image = 2 * pair + usize::from(imaginary);
            let row = if image < self.batch {
                base.at((image * self.channels + channel) * self.len)
            } else {
                missing
            };
            (row, row.wrapping_add(ahead))
        })
    }

    /// [`Self::pointers`] to read a batch of one channel whose image `i` is row `rows[i]` of `base`.
    pub(crate) fn pointers_to<T>(
        &self,
        base: Shared<T>,
        rows: &[usize],
        block: usize,
        missing: *mut T,
    ) -> RowPointers<T> {
        let blocks_ahead = self.fetches_blocks::<T>();
        RowPointers::new(self.lanes, |lane, imaginary| {
            let image = 2 * (block * self.lanes + lane) + usize::from(imaginary);
            let row = |image: usize| rows.get(image).map(|row| base.at(row * self.len));
            let own = row(image).unwrap_or(missing);
            let ahead = if blocks_ahead {
                row(image + 2 * self.lanes).unwrap_or(own)
            } else {
                own.wrapping_add(line_of::<T>())
            };
            (own, ahead)
        })
    }

    /// The images that a block of one channel holds.
    pub(crate) fn images_of(&self, block: usize) -> Range<usize> {
        let first = 2 * block * self.lanes;
        first..self.batch.min(first + 2 * self.lanes)
    }

    /// Where an entry of lanes has the `image`-th image of a block of one channel.
    pub(crate) fn place(&self, image: usize) -> usize {
        image / 2 + image % 2 * self.lanes
    }

    /// How far ahead rows are fetched: the next block where one block fits the L1 or L2 cache (rows
    /// that are short have no time to start the hardware's own fetching), else the next line.
    fn rows_ahead<T>(&self) -> usize {
        let block = if self.channels == 1 {
            2 * self.lanes * self.len
        } else {
            self.lanes * self.len
        };
        if self.fetches_blocks::<T>() {
            block
        } else {
            line_of::<T>()
        }
    }

    fn fetches_blocks<T>(&self) -> bool {
        2 * self.lanes * self.len * size_of::<T>() <= PREFETCH_BLOCKS_BELOW
    }

    fn pair_and_channel(&self, block: usize, lane: usize) -> (usize, usize) {
        let r = block * self.lanes + lane;
        if self.channels == 1 {
            return (r, 0);
        }
        (r / self.channels, r % self.channels)
    }

    /// Blocks of one task. It depends on the batch alone, never on the number of threads, so that
    /// sums over tasks give the same bytes everywhere.
    fn blocks_per_task(&self) -> usize {
        // A task has sums to make and to hand over: four tasks for a small batch, then eight, then
        // as many as there are.
        let blocks = self.blocks();
        (blocks / 8).clamp(blocks.div_ceil(4).min(2), 8)
    }

    /// Runs `work` for consecutive ranges of blocks, on all threads when it is worth it, and
    /// returns what it returned in order.
    pub(crate) fn map_tasks<R: Send>(
        &self,
        work: impl Fn(Range<usize>) -> R + Send + Sync,
    ) -> Vec<R> {
        let (blocks, step) = (self.blocks(), self.blocks_per_task());
        let task = |task: usize| work(task * step..blocks.min((task + 1) * step));
        let tasks = blocks.div_ceil(step);
        if self.sequential() {
            (0..tasks).map(task).collect()
        } else {
            share(tasks, task)
        }
    }

    fn sequential(&self) -> bool {
        self.batch * self.channels * self.len < SEQUENTIAL_BELOW
    }

    /// Transforms all rows of `x` into spectra ([`Self::spectrum_len`] values). With `tanh`
    /// the rows are gradients `g` and `tanh` holds the outputs `y`: `g*(1 - y^2)` is transformed.
    pub(crate) fn transform<T: Real>(
        &self,
        isa: Isa,
        plan: &LanePlan<T>,
        x: &[T],
        tanh: Option<&[T]>,
    ) -> Scratch<T> {
        let numbers = self.batch * self.channels * self.len;
        assert!(
            x.len() == numbers && tanh.is_none_or(|y| y.len() == numbers) && self.fits(isa, plan),
            "rows of the batch, lanes of the instruction set"
        );
        let mut spectrum = Scratch::take(self.spectrum_len());
        let out = Shared::writer(&mut spectrum);
        let (x, tanh) = (Shared::reader(x), tanh.map(Shared::reader));
        self.map_tasks(|blocks| {
            for block in blocks {
                let pointers = |rows| self.pointers(rows, block, plan.zeros());
                let (rows, tanh) = (pointers(x), tanh.map(pointers));
                let pass = ForwardBlock {
                    plan,
                    source: Source::Rows {
                        rows: &rows,
                        tanh: tanh.as_ref(),
                    },
                    block: out.at(block * self.block_stride()),
                };
                // SAFETY: the rows are those of the batch (checked above); the block is this task's alone.
                T::block_pass(isa, unsafe { Promised::new(pass.into()) });
            }
        });
        spectrum
    }
}

/// The bias of one filter, as the caller gave it.
#[derive(Clone, Copy)]
pub enum Bias<'a, T> {
    None,
    /// `[channels]`.
    Channels(&'a [T]),
    /// `[channels, len]`.
    Positions(&'a [T]),
}

impl<T> Bias<'_, T> {
    /// Whether it has a number for every channel, or for every position of every channel.
    pub(crate) fn fits(&self, batch: &Batch) -> bool {
        match self {
            Self::None => true,
            Self::Channels(bias) => bias.len() == batch.channels,
            Self::Positions(bias) => bias.len() == batch.channels * batch.len,
        }
    }
}

/// The bias of the lanes of one block.
pub(crate) struct BlockBias<'a, T> {
    bias: Bias<'a, T>,
    lanes: [T; MAX_LANES],
    rows: Option<RowPointers<T>>,
}

impl<'a, T: Real> BlockBias<'a, T> {
    pub(crate) fn new(bias: Bias<'a, T>, batch: &Batch, block: usize) -> Self {
        let mut lanes = [T::zero(); MAX_LANES];
        if let Bias::Channels(values) = bias {
            for (lane, slot) in lanes.iter_mut().enumerate().take(batch.lanes) {
                *slot = values[batch.pair_and_channel(block, lane).1];
            }
        }
        let rows = match bias {
            Bias::Positions(values) if batch.channels > 1 => {
                Some(RowPointers::new(batch.lanes, |lane, _| {
                    let channel = batch.pair_and_channel(block, lane).1;
                    let row = Shared::reader(values).at(channel * batch.len);
                    (row, row)
                }))
            }
            _ => None,
        };
        Self { bias, lanes, rows }
    }

    pub(crate) fn lane_bias(&self) -> LaneBias<'_, T> {
        match (self.bias, &self.rows) {
            (Bias::None, _) => LaneBias::None,
            (Bias::Channels(_), _) => LaneBias::Lanes(&self.lanes),
            (Bias::Positions(_), Some(rows)) => LaneBias::Rows(rows),
            (Bias::Positions(row), None) => LaneBias::Row(row.as_ptr()),
        }
    }
}
