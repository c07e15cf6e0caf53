//! Work on long slices, cut into chunks of a fixed size.
//!
//! Where a chunk begins depends on the length alone, never on the number of threads, and results
//! come back in the order of the chunks: sums over chunks are the same bytes on every run.

use std::ops::Range;

use rayon::prelude::*;

use crate::runtime::threads::another_is_awake;
use crate::vector::Isa;

/// Values of a chunk: a few of its slices fit the L1 or L2 cache together.
pub const CHUNK: usize = 1 << 13;

/// Below this many values a call stays on its thread: waking another one costs more.
pub const SEQUENTIAL_BELOW: usize = 1 << 14;
/// The same when nobody needs to be woken.
const SEQUENTIAL_BELOW_AWAKE: usize = 1 << 12;

/// Runs `work` on every job, on all threads when the jobs hold many `values` together, and
/// returns what it returned in the order of the jobs.
pub fn run_all<J: Send, R: Send>(
    values: usize,
    jobs: impl Iterator<Item = J>,
    work: impl Fn(J) -> R + Send + Sync,
) -> Vec<R> {
    if values < sequential_below() {
        return jobs.map(work).collect();
    }
    let jobs: Vec<J> = jobs.collect();
    jobs.into_par_iter().map(work).collect()
}

fn sequential_below() -> usize {
    if another_is_awake() {
        SEQUENTIAL_BELOW_AWAKE
    } else {
        SEQUENTIAL_BELOW
    }
}

/// `work(chunk, inputs, outputs)` for every chunk of slices that are cut together, on all threads when they hold many
/// `values`; allocates nothing. A slice comes with how many of its values belong to a chunk; the last chunk may be shorter.
pub fn each_chunk<'a, T: Send + Sync, const N: usize, const M: usize>(
    values: usize,
    inputs: [(&'a [T], usize); N],
    outputs: [(&mut [T], usize); M],
    work: impl Fn(usize, [&'a [T]; N], [&mut [T]; M]) + Sync,
) {
    let (len, unit) = (outputs[0].0.len(), outputs[0].1);
    let chunks = 0..len.div_ceil(unit.max(1));
    halves(chunks, outputs, values >= sequential_below(), &|chunk, outputs| {
        let own = |(slice, unit): (&'a [T], usize)| {
            &slice[chunk * unit..slice.len().min((chunk + 1) * unit)]
        };
        work(chunk, inputs.map(own), outputs);
    });
}

/// `work(index)` for every index below `count`, on all threads when there are many `values` to work on; allocates nothing.
pub fn each(values: usize, count: usize, work: impl Fn(usize) + Sync) {
    let nothing: [(&mut [()], usize); 0] = [];
    halves(0..count, nothing, values >= sequential_below(), &|i, []| work(i));
}

fn halves<T: Send, const M: usize>(
    chunks: Range<usize>,
    outputs: [(&mut [T], usize); M],
    parallel: bool,
    work: &(impl Fn(usize, [&mut [T]; M]) + Sync),
) {
    match chunks.len() {
        0 => return,
        1 => return work(chunks.start, outputs.map(|(slice, _)| slice)),
        _ => {}
    }
    let count = chunks.len() / 2;
    let mut cut = outputs.map(|(slice, unit)| {
        let (left, right) = slice.split_at_mut(count * unit);
        (left, Some(right), unit)
    });
    let right = cut.each_mut().map(|(_, right, unit)| (right.take().unwrap_or_default(), *unit));
    let left = cut.map(|(left, _, unit)| (left, unit));
    let middle = chunks.start + count;
    let left = || halves(chunks.start..middle, left, parallel, work);
    let right = || halves(middle..chunks.end, right, parallel, work);
    if parallel {
        rayon::join(left, right);
    } else {
        left();
        right();
    }
}

/// Rows of `width` values that make up about one chunk.
pub fn rows_per_chunk(width: usize) -> usize {
    (CHUNK / width.max(1)).max(1)
}

/// The instruction set of all kernels.
pub fn best_isa() -> Isa {
    Isa::best()
}
