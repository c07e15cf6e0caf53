//! Work on long slices, cut into chunks of a fixed size.
//!
//! Where a chunk begins depends on the length alone, never on the number of threads, and results
//! come back in the order of the chunks: sums over chunks are the same bytes on every run.

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
    let alone = if another_is_awake() {
        SEQUENTIAL_BELOW_AWAKE
    } else {
        SEQUENTIAL_BELOW
    };
    if values < alone {
        return jobs.map(work).collect();
    }
    let jobs: Vec<J> = jobs.collect();
    jobs.into_par_iter().map(work).collect()
}

/// The fewest chunks that a thread takes, for rayon's `with_min_len`: all of them when they hold few
/// `values` together. Iterators over chunks with this bound allocate nothing.
pub(crate) fn fewest_chunks(values: usize) -> usize {
    if values < SEQUENTIAL_BELOW {
        usize::MAX
    } else {
        1
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
