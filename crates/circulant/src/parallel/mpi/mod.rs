//! MPI (Open MPI, MPICH), by the crate `mpi`; with the feature `mpi` only.
//!
//! One thread of the process does all the talking, so that it goes on while others compute. Every second it sends a sign of life to rank 0,
//! and rank 0 sends one to all: who computes for long is still heard of, and who is not heard of for [`SILENCE`] is lost, whether
//! its process was killed, its machine stopped or its network cut. MPI itself would wait for ever.
//!
//! With the same messages a rank that has failed says why ([`Communicator::fail`]), to rank 0, which tells all others.

mod talk;

use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{CommunicationError, Communicator};

/// A rank that is silent for so long is lost.
pub const SILENCE: Duration = Duration::from_secs(20);

/// The processes that `mpirun` has started together.
///
/// MPI can be started once per process. Dropping this waits until all ranks have come so far, so that none is cut off while it still
/// says why it fails: `mpirun` ends all processes with the first one that fails. After a failure MPI itself does not end, and the process must.
pub struct Mpi {
    rank: usize,
    size: usize,
    line: Mutex<Line>,
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mpi(rank {} of {})", self.rank, self.size)
    }
}

/// The way to the thread that talks.
struct Line {
    /// Closed when all is done.
    jobs: Option<Sender<Job>>,
    answers: Receiver<Answer>,
    /// Says that all ranks have taken leave, or that nobody waits for them any more.
    ended: Receiver<()>,
    thread: Option<JoinHandle<()>>,
    failed: Option<CommunicationError>,
}

/// What is to be done; comes back with the result in its buffer.
enum Job {
    SumF32(Vec<f32>),
    SumF64(Vec<f64>),
    Broadcast(usize, Vec<u8>),
    Barrier,
    /// This rank's message to all others.
    Fail(String),
}

type Answer = Result<Job, CommunicationError>;

fn gone() -> CommunicationError {
    CommunicationError::Failed {
        message: "the thread of MPI has ended".to_owned(),
    }
}

impl Mpi {
    /// Starts MPI.
    pub fn start() -> Result<Self, CommunicationError> {
        let (jobs, inbox) = channel();
        let (outbox, answers) = channel();
        let (ready, started) = channel();
        let (end, ended) = channel();
        let thread = thread::Builder::new()
            .name("mpi".to_owned())
            .spawn(move || talk::serve(&ready, &inbox, &outbox, &end))
            .map_err(|error| CommunicationError::Failed {
                message: format!("no thread for MPI: {error}"),
            })?;
        let started = started.recv().map_err(|_| gone())?;
        let Some((rank, size)) = started else {
            return Err(CommunicationError::Failed {
                message: "MPI cannot be started twice in one process".to_owned(),
            });
        };
        let line = Line {
            jobs: Some(jobs),
            answers,
            ended,
            thread: Some(thread),
            failed: None,
        };
        Ok(Self {
            rank,
            size,
            line: Mutex::new(line),
        })
    }

    fn call(&self, job: Job) -> Result<Job, CommunicationError> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(error), false) = (&line.failed, matches!(job, Job::Fail(_))) {
            return Err(error.clone());
        }
        let sent = line.jobs.as_ref().map(|jobs| jobs.send(job));
        let answer = match sent {
            Some(Ok(())) => line.answers.recv().unwrap_or_else(|_| Err(gone())),
            _ => Err(gone()),
        };
        if let Err(error) = &answer {
            line.failed.get_or_insert_with(|| error.clone());
        }
        answer
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        let line = self.line.get_mut().unwrap_or_else(PoisonError::into_inner);
        line.jobs = None;
        // After a failure the thread may never end. A panic of it has been seen as an error.
        line.ended.recv().ok();
        if line.failed.is_none()
            && let Some(thread) = line.thread.take()
        {
            thread.join().ok();
        }
    }
}

impl Communicator for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn all_reduce_f32(&self, values: &mut [f32]) -> Result<(), CommunicationError> {
        if let Job::SumF32(sums) = self.call(Job::SumF32(values.to_vec()))? {
            values.copy_from_slice(&sums);
        }
        Ok(())
    }

    fn all_reduce_f64(&self, values: &mut [f64]) -> Result<(), CommunicationError> {
        if let Job::SumF64(sums) = self.call(Job::SumF64(values.to_vec()))? {
            values.copy_from_slice(&sums);
        }
        Ok(())
    }

    fn broadcast(&self, from: usize, bytes: &mut [u8]) -> Result<(), CommunicationError> {
        if let Job::Broadcast(_, sent) = self.call(Job::Broadcast(from, bytes.to_vec()))? {
            bytes.copy_from_slice(&sent);
        }
        Ok(())
    }

    fn barrier(&self) -> Result<(), CommunicationError> {
        self.call(Job::Barrier).map(|_| ())
    }

    fn fail(&self, message: &str) -> Result<(), CommunicationError> {
        let told = self.call(Job::Fail(message.to_owned())).map(|_| ());
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.failed
            .get_or_insert_with(|| CommunicationError::Other {
                rank: self.rank,
                message: message.to_owned(),
            });
        told
    }
}
