//! What every kernel runs on: the pool of threads, pieces of work, reused buffers.

pub(crate) mod chunks;
pub(crate) mod partial_sums;
pub(crate) mod scratch;
pub(crate) mod threads;
