//! What every kernel runs on: the pool of threads, pieces of work, reused buffers.

pub mod chunks;
pub mod partial_sums;
pub mod scratch;
pub mod shared;
pub mod threads;
