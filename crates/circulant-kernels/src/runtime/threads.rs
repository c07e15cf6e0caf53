//! The threads that the kernels run on.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::KernelError;

/// How long a thread stays awake without work.
pub const LONGEST: Duration = Duration::from_millis(1);

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
        let _awake = Awake::new();
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

/// Threads that [`join_awake`] keeps awake.
static AWAKE: AtomicUsize = AtomicUsize::new(0);

struct Awake;

impl Awake {
    fn new() -> Self {
        AWAKE.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        AWAKE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether another thread waits for work without sleeping, so that little work is worth sharing. Results must not depend on it.
pub(crate) fn another_is_awake() -> bool {
    AWAKE.load(Ordering::Relaxed) > 0
}

/// `work(task)` for every task of `0..count`, on all threads of the pool; returns what it returned, in order.
///
/// Every thread begins with tasks of its own, the same ones whenever the count is the same: what it read and wrote in the
/// last call may still be in its L1 or L2 cache. Then it takes from the others. A thread that finds nothing left stays awake
/// until all are done: rayon's would fall asleep, and waking it takes as long as a task.
pub fn share<R: Send>(count: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let threads = rayon::current_num_threads().min(count);
    if threads < 2 {
        return (0..count).map(work).collect();
    }
    let parts: Vec<Part> = (0..threads)
        .map(|part| Part::new(part * count / threads..(part + 1) * count / threads))
        .collect();
    let results: Vec<Mutex<Option<R>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let left = AtomicUsize::new(count);
    fork(threads, &|| {
        let own = rayon::current_thread_index().unwrap_or(0);
        let parts = (0..threads).map(|turn| &parts[(own + turn) % threads]);
        for task in parts.flat_map(Part::tasks) {
            let result = work(task);
            *results[task].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            left.fetch_sub(1, Ordering::Release);
        }
        let since = Instant::now();
        while left.load(Ordering::Acquire) > 0 && since.elapsed() < LONGEST {
            std::hint::spin_loop();
        }
    });
    let result = |result: Mutex<Option<R>>| {
        let result = result.into_inner().unwrap_or_else(PoisonError::into_inner);
        result.expect("every task has run, or the fork has passed its panic on")
    };
    results.into_iter().map(result).collect()
}

/// Runs `work` on so many threads.
fn fork(threads: usize, work: &(impl Fn() + Sync)) {
    if threads == 1 {
        work();
    } else {
        let other = threads / 2;
        rayon::join(|| fork(threads - other, work), || fork(other, work));
    }
}

/// Tasks that one thread begins with, on a cache line of their own.
#[repr(align(64))]
struct Part {
    next: AtomicUsize,
    end: usize,
}

impl Part {
    fn new(tasks: Range<usize>) -> Self {
        Self {
            next: AtomicUsize::new(tasks.start),
            end: tasks.end,
        }
    }

    /// Those that nobody has taken yet, as long as there are any.
    fn tasks(&self) -> impl Iterator<Item = usize> {
        std::iter::from_fn(|| {
            let task = self.next.fetch_add(1, Ordering::Relaxed);
            (task < self.end).then_some(task)
        })
    }
}
