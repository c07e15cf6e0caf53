//! Threads: pools by their size, which survive a fork, and long work that Ctrl-C stops.
//!
//! Rayon's global pool would hang in a process that was forked: its threads are not there. Pools of our own are made anew
//! where the process has another id than the one that made them.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::value_error;

/// The most threads that can be asked for.
const MOST: usize = 1024;
/// How long Ctrl-C and the progress bar may have to wait.
const TICK: Duration = Duration::from_millis(50);
/// Work on fewer values than this stays on its thread: waking another one takes longer.
const ALONE_BELOW: usize = 1 << 14;
/// So many multiplications take a millisecond.
const LONG_FROM: usize = 1 << 20;

/// What [`set_num_threads`] said; 0 for one per core.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);

/// The pools of one process.
struct Pools {
    process: u32,
    by_size: HashMap<usize, Arc<ThreadPool>>,
}

static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

thread_local! {
    /// A pool of this thread alone: parallel calls within it run here, one after the other.
    static ALONE: Option<ThreadPool> = ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread()
        .build()
        .ok();
}

/// The number of threads that functions run on.
#[pyfunction]
#[pyo3(name = "num_threads")]
pub fn num_threads() -> usize {
    match CHOSEN.load(Ordering::Relaxed) {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        chosen => chosen,
    }
}

/// Chooses the number of threads; 0 is one per core.
#[pyfunction]
pub fn set_num_threads(threads: usize) -> PyResult<()> {
    check(threads)?;
    CHOSEN.store(threads, Ordering::Relaxed);
    Ok(())
}

fn check(threads: usize) -> PyResult<()> {
    if threads > MOST {
        return Err(value_error(format!(
            "the number of threads: expected at most {MOST}, got {threads}"
        )));
    }
    Ok(())
}

/// The pool of so many threads; 0 is what was chosen for all.
fn pool(threads: usize) -> PyResult<Arc<ThreadPool>> {
    check(threads)?;
    let threads = if threads == 0 { num_threads() } else { threads };
    let process = std::process::id();
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if pools.as_ref().is_none_or(|pools| pools.process != process) {
        let by_size = HashMap::new();
        // The threads of the pools before a fork are not in this process, and cannot be told to end.
        std::mem::forget(pools.replace(Pools { process, by_size }));
    }
    let by_size = &mut pools.as_mut().expect("just made").by_size;
    if let Some(pool) = by_size.get(&threads) {
        return Ok(Arc::clone(pool));
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("circulant-{index}"))
        .build()
        .map_err(|error| value_error(format!("cannot start {threads} threads: {error}")))?;
    let pool = Arc::new(pool);
    by_size.insert(threads, Arc::clone(&pool));
    Ok(pool)
}

/// Short work on about so many values, without Python's lock.
pub fn run<R: Send>(py: Python<'_>, values: usize, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    if values < ALONE_BELOW {
        return Ok(py.detach(|| ALONE.with(|_| work())));
    }
    let pool = pool(0)?;
    Ok(py.detach(|| pool.install(work)))
}

/// Asks work to end.
pub struct Stop(AtomicBool);

impl Stop {
    /// Whether to end now.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Long work without Python's lock on so many threads. Signals are looked at meanwhile and `tick` is called now and then; an error of
/// either asks the work to end, and comes back beside what the work returned.
pub fn run_long<R: Send>(
    py: Python<'_>,
    threads: usize,
    tick: impl FnMut(Python<'_>) -> PyResult<()>,
    work: impl FnOnce(&Stop) -> R + Send,
) -> PyResult<(R, Option<PyErr>)> {
    run_holding(py, threads, tick, |_| (), work)
}

/// [`run_long`] without a tick, on the thread that asks if it is over before anybody could press Ctrl-C: `products` is how many numbers it
/// multiplies, about. Waking other threads takes longer than predicting a row.
pub fn run_long_or_short<R: Send>(
    py: Python<'_>,
    threads: usize,
    products: usize,
    work: impl FnOnce(&Stop) -> R + Send,
) -> PyResult<(R, Option<PyErr>)> {
    if products >= LONG_FROM {
        return run_long(py, threads, |_| Ok(()), work);
    }
    let stop = Stop(AtomicBool::new(false));
    Ok((py.detach(|| ALONE.with(|_| work(&stop))), None))
}

/// [`run_long`] that holds what `hold` gives meanwhile. A lock must be waited for there: a thread of the pool that waits for a part of
/// its work takes up other work, and would wait for a lock of its own.
pub fn run_holding<R: Send, L>(
    py: Python<'_>,
    threads: usize,
    mut tick: impl FnMut(Python<'_>) -> PyResult<()>,
    hold: impl FnOnce(&Stop) -> L + Send,
    work: impl FnOnce(&Stop) -> R + Send,
) -> PyResult<(R, Option<PyErr>)> {
    let pool = pool(threads)?;
    let (stop, done) = (Stop(AtomicBool::new(false)), AtomicBool::new(false));
    let waiting = std::thread::current();
    /// Wakes the thread that waits, after a panic too.
    struct Done<'a>(&'a AtomicBool, &'a std::thread::Thread);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
            self.1.unpark();
        }
    }
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let _done = Done(&done, &waiting);
            let _held = hold(&stop);
            pool.install(|| work(&stop))
        });
        let mut failed = None;
        while !done.load(Ordering::Acquire) {
            py.detach(|| std::thread::park_timeout(TICK));
            if failed.is_none() && !done.load(Ordering::Acquire) {
                failed = py.check_signals().and_then(|()| tick(py)).err();
                if failed.is_some() {
                    stop.0.store(true, Ordering::Relaxed);
                }
            }
        }
        let result = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        Ok((result, failed))
    })
}
