//! What every kernel runs on: the pool of threads, pieces of work, reused buffers.
//!
//! Work goes parallel in two ways. Short tasks that pass over the same memory again and again (blocks of a
//! transform, of a product) are taken by [`threads::share`], whose threads keep their tasks from call to call and
//! do not sleep in between. Long ones are rayon's: [`chunks::run_all`] where a chunk has a result, [`chunks::each_chunk`]
//! where it has none. What is small stays on its thread
//! ([`chunks::SEQUENTIAL_BELOW`]).

pub mod chunks;
pub mod partial_sums;
pub mod scratch;
pub mod shared;
pub mod threads;
