//! Ranks that are threads of the test, each with a pool of its own.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use circulant::parallel::{CommunicationError, Communicator, Ranks};

/// Longer than any step of a test takes: whoever waits longer waits for a rank that is gone.
const LOST_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Meeting {
    size: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    here: usize,
    /// How often all have met.
    met: u64,
    numbers: Vec<Vec<f64>>,
    bytes: Vec<u8>,
}

impl Meeting {
    /// Waits until all ranks are here; each does `work` once it is.
    fn meet(&self, mut work: impl FnMut(&mut State)) -> Result<(), CommunicationError> {
        let mut state = self.state.lock().expect("no rank panics with it");
        work(&mut state);
        state.here += 1;
        let met = state.met;
        if state.here == self.size {
            state.here = 0;
            state.met += 1;
            self.changed.notify_all();
            return Ok(());
        }
        let waits = |state: &mut State| state.met == met;
        let waited = self.changed.wait_timeout_while(state, LOST_AFTER, waits);
        if waited.expect("no rank panics with it").1.timed_out() {
            return Err(CommunicationError::Failed {
                message: "a thread is gone".to_owned(),
            });
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Thread {
    rank: usize,
    meeting: Arc<Meeting>,
}

impl Thread {
    /// The numbers of all ranks, in their order.
    fn all(&self, own: Vec<f64>) -> Result<Vec<Vec<f64>>, CommunicationError> {
        let mut own = Some(own);
        self.meeting
            .meet(|state| state.numbers[self.rank] = own.take().expect("once"))?;
        let mut all = Vec::new();
        self.meeting.meet(|state| all.clone_from(&state.numbers))?;
        Ok(all)
    }
}

impl Communicator for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.meeting.size
    }

    fn all_reduce_f32(&self, values: &mut [f32]) -> Result<(), CommunicationError> {
        let all = self.all(values.iter().map(|&value| value.into()).collect())?;
        for (index, value) in values.iter_mut().enumerate() {
            *value = all.iter().map(|own| own[index] as f32).sum();
        }
        Ok(())
    }

    fn all_reduce_f64(&self, values: &mut [f64]) -> Result<(), CommunicationError> {
        let all = self.all(values.to_vec())?;
        for (index, value) in values.iter_mut().enumerate() {
            *value = all.iter().map(|own| own[index]).sum();
        }
        Ok(())
    }

    fn broadcast(&self, from: usize, bytes: &mut [u8]) -> Result<(), CommunicationError> {
        self.meeting.meet(|state| {
            if self.rank == from {
                state.bytes = bytes.to_vec();
            }
        })?;
        self.meeting
            .meet(|state| bytes.copy_from_slice(&state.bytes))
    }

    fn barrier(&self) -> Result<(), CommunicationError> {
        self.meeting.meet(|_| ())
    }
}

/// What every one of `size` ranks makes, in their order.
pub fn on_ranks<T: Send>(size: usize, work: impl Fn(Ranks) -> T + Sync) -> Vec<T> {
    let meeting = Arc::new(Meeting {
        size,
        state: Mutex::new(State {
            numbers: vec![Vec::new(); size],
            ..State::default()
        }),
        changed: Condvar::new(),
    });
    std::thread::scope(|scope| {
        let rank = |rank| {
            let (work, meeting) = (&work, meeting.clone());
            scope.spawn(move || {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
                pool.expect("a thread")
                    .install(|| work(Ranks::new(Thread { rank, meeting })))
            })
        };
        let threads: Vec<_> = (0..size).map(rank).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, T>| thread.join();
        threads
            .into_iter()
            .map(|thread| join(thread).expect("no rank panics"))
            .collect()
    })
}
