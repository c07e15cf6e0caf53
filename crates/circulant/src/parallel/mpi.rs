//! MPI (Open MPI, MPICH), by the crate `mpi`; with the feature `mpi` only.
//!
//! One thread of the process does all the talking, so that it goes on while others compute. Every second it sends a sign of life to rank 0,
//! and rank 0 sends one to all: who computes for long is still heard of, and who is not heard of for [`SILENCE`] is lost, whether
//! its process was killed, its machine stopped or its network cut. MPI itself would wait for ever.

use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mpi::Threading;
use mpi::collective::{CommunicatorCollectives, Root, SystemOperation};
use mpi::datatype::Equivalence;
use mpi::point_to_point::{Destination, Source};
use mpi::request::{Request, Scope};
use mpi::topology::{Communicator as _, SimpleCommunicator};

use super::{CommunicationError, Communicator};

/// Between two signs of life.
const BEAT: Duration = Duration::from_secs(1);
/// A rank that is silent for so long is lost.
pub const SILENCE: Duration = Duration::from_secs(20);
/// A thread that waits for others does not sleep for so long: most sums are done by then.
const AWAKE: Duration = Duration::from_millis(2);
const NAP: Duration = Duration::from_micros(50);
/// The tag of signs of life.
const TAG: i32 = 26;
/// MPI counts in 32 bits.
const LONGEST: usize = 1 << 28;

/// The processes that `mpirun` has started together.
///
/// MPI can be started once per process, and ends when this is dropped; after a lost rank it does not end, and the process must.
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
    answers: Receiver<Result<Job, CommunicationError>>,
    thread: Option<JoinHandle<()>>,
    failed: Option<CommunicationError>,
}

/// What is to be done; comes back with the result in its buffer.
enum Job {
    SumF32(Vec<f32>),
    SumF64(Vec<f64>),
    Broadcast(usize, Vec<u8>),
    Barrier,
}

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
        let thread = thread::Builder::new()
            .name("mpi".to_owned())
            .spawn(move || serve(&ready, &inbox, &outbox))
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
        if let Some(error) = &line.failed {
            return Err(error.clone());
        }
        let sent = line.jobs.as_ref().map(|jobs| jobs.send(job));
        let answer = match sent {
            Some(Ok(())) => line.answers.recv().unwrap_or_else(|_| Err(gone())),
            _ => Err(gone()),
        };
        line.failed = answer.as_ref().err().cloned();
        answer
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        let line = self.line.get_mut().unwrap_or_else(PoisonError::into_inner);
        line.jobs = None;
        if line.failed.is_none()
            && let Some(thread) = line.thread.take()
        {
            // A panic of it has been seen as an error.
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
}

/// The life of the thread that talks.
fn serve(
    ready: &Sender<Option<(usize, usize)>>,
    inbox: &Receiver<Job>,
    outbox: &Sender<Result<Job, CommunicationError>>,
) {
    let started = mpi::initialize_with_threading(Threading::Funneled);
    let Some((universe, _)) = started else {
        ready.send(None).ok();
        return;
    };
    let world = universe.world();
    let (rank, size) = (world.rank() as usize, world.size() as usize);
    // Rank 0 listens to all, the others to it.
    let peers = if rank == 0 { 1..size } else { 0..1 };
    let now = Instant::now();
    let mut talk = Talk {
        world: &world,
        peers: peers
            .map(|rank| Peer {
                rank,
                heard: now,
                parted: false,
            })
            .collect(),
        next: now,
        inbox,
        outbox,
    };
    if ready.send(Some((rank, size))).is_err() {
        return;
    }
    loop {
        match inbox.recv_timeout(BEAT) {
            Ok(job) => {
                if outbox.send(Ok(talk.work(job))).is_err() {
                    break;
                }
            }
            Err(RecvTimeoutError::Timeout) => talk.beat(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if talk.part() {
        drop(universe);
    } else {
        // It would wait for whoever is lost.
        std::mem::forget(universe);
    }
}

/// A rank that this one listens to.
struct Peer {
    rank: usize,
    /// When it was last heard of.
    heard: Instant,
    /// Whether it has said its last word.
    parted: bool,
}

impl Peer {
    fn is_lost(&self, now: Instant) -> bool {
        !self.parted && now.duration_since(self.heard) > SILENCE
    }
}

struct Talk<'a> {
    world: &'a SimpleCommunicator,
    peers: Vec<Peer>,
    /// When the next sign of life is due.
    next: Instant,
    inbox: &'a Receiver<Job>,
    outbox: &'a Sender<Result<Job, CommunicationError>>,
}

impl Talk<'_> {
    fn work(&mut self, job: Job) -> Job {
        match job {
            Job::SumF32(values) => Job::SumF32(self.sum(values)),
            Job::SumF64(values) => Job::SumF64(self.sum(values)),
            Job::Broadcast(from, mut bytes) => {
                let root = self.world.process_at_rank(from as i32);
                for part in bytes.chunks_mut(LONGEST) {
                    mpi::request::scope(|scope| {
                        self.finish(root.immediate_broadcast_into(scope, part));
                    });
                }
                Job::Broadcast(from, bytes)
            }
            Job::Barrier => {
                self.finish(self.world.immediate_barrier());
                Job::Barrier
            }
        }
    }

    fn sum<T: Equivalence + Clone>(&mut self, own: Vec<T>) -> Vec<T> {
        let mut sums = own.clone();
        let world = self.world;
        for (own, sums) in own.chunks(LONGEST).zip(sums.chunks_mut(LONGEST)) {
            mpi::request::scope(|scope| {
                let plus = SystemOperation::sum();
                self.finish(world.immediate_all_reduce_into(scope, own, sums, plus));
            });
        }
        sums
    }

    /// Waits until a request is done.
    fn finish<'a, D: ?Sized, S: Scope<'a>>(&mut self, mut request: Request<'a, D, S>) {
        let start = Instant::now();
        loop {
            request = match request.test() {
                Ok(_) => return,
                Err(request) => request,
            };
            self.beat();
            if start.elapsed() > AWAKE {
                thread::sleep(NAP);
            } else {
                thread::yield_now();
            }
        }
    }

    /// A sign of life when one is due, and those of others.
    fn beat(&mut self) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        // Whoever was suspended itself has heard nobody, and that says nothing.
        let was_away = now.duration_since(self.next) > BEAT * 5;
        self.next = now + BEAT;
        self.send(0);
        self.listen(now);
        if was_away {
            self.peers.iter_mut().for_each(|peer| peer.heard = now);
        }
        if let Some(lost) = self.peers.iter().find(|peer| peer.is_lost(now)) {
            self.give_up(lost.rank);
        }
    }

    fn send(&self, word: u8) {
        for peer in self.peers.iter().filter(|peer| !peer.parted) {
            let peer = self.world.process_at_rank(peer.rank as i32);
            peer.send_with_tag(&word, TAG);
        }
    }

    /// Takes in what others have sent; 1 is a last word.
    fn listen(&mut self, now: Instant) {
        let any = self.world.any_process();
        while let Some(status) = any.immediate_probe_with_tag(TAG) {
            let from = status.source_rank();
            let (word, _) = self.world.process_at_rank(from).receive_with_tag::<u8>(TAG);
            let mut peers = self.peers.iter_mut();
            if let Some(peer) = peers.find(|peer| peer.rank == from as usize) {
                (peer.heard, peer.parted) = (now, peer.parted || word == 1);
            }
        }
    }

    /// A last word to all, and that of all: MPI does not end well while messages are under way. `false` if somebody is lost.
    fn part(&mut self) -> bool {
        // Also to those who have parted: they wait for it.
        for peer in &self.peers {
            let peer = self.world.process_at_rank(peer.rank as i32);
            peer.send_with_tag(&1_u8, TAG);
        }
        while self.peers.iter().any(|peer| !peer.parted) {
            let now = Instant::now();
            self.listen(now);
            if self.peers.iter().any(|peer| peer.is_lost(now)) {
                return false;
            }
            thread::sleep(NAP);
        }
        true
    }

    /// Whoever asks from now on gets an error. An operation that others do not finish can be neither finished nor given up, so this never
    /// returns; the process ends around it.
    fn give_up(&self, rank: usize) -> ! {
        let lost = CommunicationError::Lost {
            rank,
            seconds: SILENCE.as_secs(),
        };
        self.outbox.send(Err(lost.clone())).ok();
        for _ in self.inbox {
            self.outbox.send(Err(lost.clone())).ok();
        }
        loop {
            thread::park();
        }
    }
}
