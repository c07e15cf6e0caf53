//! The threads that the kernels run on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::KernelError;

/// How long [`join_awake`] keeps a thread awake without work.
const LONGEST: Duration = Duration::from_millis(1);

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

/// Runs `main` on this thread and `beside` on another one of the pool, if there is one. That one then stays awake, and
/// takes part in the parallel calls of `main` until it ends.
///
/// A worker without work falls asleep after some 20 us, and waking it takes even longer: where a short part that runs
/// on one thread comes between parallel ones, as in a training step, the wait costs more than the second thread gains.
pub fn join_awake<A: Send, B: Send>(
    main: impl FnOnce() -> A + Send,
    beside: impl FnOnce() -> B + Send,
) -> (A, B) {
    /// Tells the other side when dropped, that is, after a panic too.
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let done = AtomicBool::new(false);
    let main = || {
        let _done = Done(&done);
        main()
    };
    let beside = || {
        let result = beside();
        let mut since = Instant::now();
        while !done.load(Ordering::Acquire) {
            if rayon::yield_now() == Some(rayon::Yield::Executed) {
                since = Instant::now();
            } else if since.elapsed() > LONGEST {
                break;
            } else {
                std::thread::yield_now();
            }
        }
        result
    };
    rayon::join(main, beside)
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::*;

    #[test]
    fn both_sides_run_and_the_main_side_may_use_the_pool() {
        for _ in 0..200 {
            let sum = || (0..1000_u64).into_par_iter().sum::<u64>();
            assert_eq!(join_awake(sum, || 7), (499_500, 7));
        }
    }

    #[test]
    fn a_main_side_that_takes_long_or_panics_is_no_trap() {
        let pause = || std::thread::sleep(3 * LONGEST);
        join_awake(pause, || ());
        let panicked = std::panic::catch_unwind(|| join_awake(|| panic!("on purpose"), || ()));
        assert!(panicked.is_err());
    }
}
