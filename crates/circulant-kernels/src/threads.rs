//! The threads that the kernels run on.

use crate::error::KernelError;

/// Makes the calling thread one of `threads` workers of the pool that all kernels share (rayon's global one; 0 means
/// one per core). Call it first thing in `main`.
///
/// Without it the caller sleeps while workers compute, and every parallel call waits for two thread switches: a
/// training step of half a millisecond has a dozen such calls. The thread must last as long as others use the pool.
pub fn join_pool(threads: usize) -> Result<(), KernelError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .use_current_thread()
        .build_global()
        .map_err(|_| KernelError::PoolInUse)
}
