//! The thread that does all the talking.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use mpi::Threading;
use mpi::collective::{CommunicatorCollectives, Root, SystemOperation};
use mpi::datatype::Equivalence;
use mpi::point_to_point::{Destination, Source};
use mpi::request::{Request, Scope};
use mpi::topology::{Communicator as _, SimpleCommunicator};

use super::super::CommunicationError;
use super::{Answer, Job, SILENCE};

/// Between two signs of life.
const BEAT: Duration = Duration::from_secs(1);
/// For how long others may still be in an operation that a rank has left for good.
const LINGERING: Duration = Duration::from_secs(5);
/// For how long rank 0 waits, after a failure, for others to take leave.
const PATIENCE: Duration = Duration::from_secs(10);
/// A thread that waits for others does not sleep for so long: most sums are done by then.
const AWAKE: Duration = Duration::from_millis(2);
/// After that it sleeps for a part of what it has waited, but not longer than this.
const SHORT_NAP: Duration = Duration::from_micros(50);
const LONG_NAP: Duration = Duration::from_millis(2);
const PART: u32 = 50;
/// The tag of messages outside of operations. Their first byte says what they are.
const TAG: i32 = 26;
const SIGN_OF_LIFE: u8 = 0;
const LAST_WORD: u8 = 1;
/// Followed by the rank, four bytes, and its message.
const FAILED: u8 = 2;
/// Longer messages are cut: what is this short is sent without waiting for whoever receives it.
const LONGEST_MESSAGE: usize = 3000;
/// MPI counts in 32 bits.
const LONGEST: usize = 1 << 28;

/// The life of the thread.
pub(super) fn serve(
    ready: &Sender<Option<(usize, usize)>>,
    inbox: &Receiver<Job>,
    outbox: &Sender<Answer>,
    ended: &Sender<()>,
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
                parted: None,
            })
            .collect(),
        next: now,
        failed: None,
        told: false,
        inbox,
        outbox,
        ended,
    };
    if ready.send(Some((rank, size))).is_err() {
        return;
    }
    while let Some(answer) = talk.next_answer() {
        if outbox.send(answer).is_err() {
            break;
        }
    }
    let well = talk.part();
    if well {
        drop(universe);
    } else {
        // It would wait for whoever is lost.
        std::mem::forget(universe);
    }
    ended.send(()).ok();
}

/// A rank that this one listens to.
struct Peer {
    rank: usize,
    /// When it was last heard of.
    heard: Instant,
    /// When it said its last word.
    parted: Option<Instant>,
}

impl Peer {
    fn is_lost(&self, now: Instant) -> bool {
        self.parted.is_none() && now.duration_since(self.heard) > SILENCE
    }
}

struct Talk<'a> {
    world: &'a SimpleCommunicator,
    peers: Vec<Peer>,
    /// When the next sign of life is due.
    next: Instant,
    /// Why no operation can be done any more.
    failed: Option<CommunicationError>,
    /// Whether others know of it.
    told: bool,
    inbox: &'a Receiver<Job>,
    outbox: &'a Sender<Answer>,
    ended: &'a Sender<()>,
}

impl Talk<'_> {
    fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    /// The answer to the next job; none if there will be no other one.
    fn next_answer(&mut self) -> Option<Answer> {
        loop {
            let job = match self.inbox.recv_timeout(BEAT) {
                Ok(job) => job,
                Err(RecvTimeoutError::Timeout) => {
                    self.beat();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return None,
            };
            if let Job::Fail(message) = job {
                return Some(self.fail(message));
            }
            return Some(match &self.failed {
                Some(error) => Err(error.clone()),
                None => Ok(self.work(job)),
            });
        }
    }

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
            other @ Job::Fail(_) => other,
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
            let now = Instant::now();
            let left = |peer: &&Peer| {
                let parted = peer.parted.map(|at| now.duration_since(at));
                parted.is_some_and(|since| since > LINGERING)
            };
            if let (None, Some(peer)) = (&self.failed, self.peers.iter().find(left)) {
                self.failed = Some(CommunicationError::Ended { rank: peer.rank });
            }
            if let Some(error) = self.failed.clone() {
                self.give_up(&error);
            }
            let waited = now.duration_since(start);
            if waited > AWAKE {
                thread::sleep((waited / PART).clamp(SHORT_NAP, LONG_NAP));
            } else {
                thread::yield_now();
            }
        }
    }

    /// A sign of life when one is due, and what others say.
    fn beat(&mut self) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        // Whoever was suspended itself has heard nobody, and that says nothing.
        let was_away = now.duration_since(self.next) > BEAT * 5;
        self.next = now + BEAT;
        // Whoever has taken leave still waits for rank 0 to do so.
        let is_first = self.rank() == 0;
        let waits = |peer: &&Peer| (is_first || peer.parted.is_none()) && !peer.is_lost(now);
        for peer in self.peers.iter().filter(waits) {
            self.send(peer.rank, &[SIGN_OF_LIFE]);
        }
        self.listen(now);
        if was_away {
            self.peers.iter_mut().for_each(|peer| peer.heard = now);
        }
        let lost = self.peers.iter().find(|peer| peer.is_lost(now));
        if let (Some(lost), None) = (lost, &self.failed) {
            self.failed = Some(CommunicationError::Lost {
                rank: lost.rank,
                seconds: SILENCE.as_secs(),
            });
        }
    }

    fn send(&self, to: usize, message: &[u8]) {
        let peer = self.world.process_at_rank(to as i32);
        peer.send_with_tag(message, TAG);
    }

    /// Takes in what others have sent.
    fn listen(&mut self, now: Instant) {
        let any = self.world.any_process();
        while let Some(status) = any.immediate_probe_with_tag(TAG) {
            let from = status.source_rank();
            let sender = self.world.process_at_rank(from);
            let (message, _) = sender.receive_vec_with_tag::<u8>(TAG);
            let mut peers = self.peers.iter_mut();
            let Some(peer) = peers.find(|peer| peer.rank == from as usize) else {
                continue;
            };
            peer.heard = now;
            match message.split_first() {
                Some((&LAST_WORD, _)) => {
                    peer.parted.get_or_insert(now);
                }
                Some((&FAILED, rest)) => self.hear_failure(rest),
                _ => {}
            }
        }
    }

    fn hear_failure(&mut self, rest: &[u8]) {
        let (Some((rank, text)), None) = (rest.split_first_chunk(), &self.failed) else {
            return;
        };
        let rank = u32::from_le_bytes(*rank) as usize;
        let message = String::from_utf8_lossy(text).into_owned();
        match self.rank() {
            0 => self.tell(rank, &message),
            _ => self.told = true,
        }
        self.failed = Some(CommunicationError::Other { rank, message });
    }

    /// Tells others what has failed on a rank: rank 0 tells all, the others tell rank 0.
    fn tell(&mut self, rank: usize, message: &str) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        let mut bytes = vec![FAILED];
        bytes.extend((rank as u32).to_le_bytes());
        bytes.extend(message.bytes().take(LONGEST_MESSAGE));
        let now = Instant::now();
        for peer in &self.peers {
            let knows = peer.rank == rank || peer.parted.is_some() || peer.is_lost(now);
            if !knows {
                self.send(peer.rank, &bytes);
            }
        }
    }

    /// What this rank says of its own failure, which may have come from another one.
    fn fail(&mut self, message: String) -> Answer {
        let rank = self.rank();
        self.tell(rank, &message);
        match &self.failed {
            Some(lost @ CommunicationError::Lost { rank: 0, .. }) => Err(lost.clone()),
            Some(_) => Ok(Job::Fail(message)),
            None => {
                self.failed = Some(CommunicationError::Other {
                    rank,
                    message: message.clone(),
                });
                Ok(Job::Fail(message))
            }
        }
    }

    /// A last word to all, and that of all: MPI does not end well while messages are under way. `false` if somebody is lost, or after a
    /// failure: others may be in an operation then that never ends.
    fn part(&mut self) -> bool {
        let start = Instant::now();
        // Also to those who have parted: they wait for it.
        for peer in self.peers.iter().filter(|peer| !peer.is_lost(start)) {
            self.send(peer.rank, &[LAST_WORD]);
        }
        loop {
            let now = Instant::now();
            self.listen(now);
            let is_lost = |peer: &Peer| peer.is_lost(now);
            let is_open = |peer: &Peer| peer.parted.is_none() && !is_lost(peer);
            let impatient = self.failed.is_some() && self.rank() == 0;
            let waited = impatient && now.duration_since(start) > PATIENCE;
            if waited || !self.peers.iter().any(is_open) {
                return self.failed.is_none() && !self.peers.iter().any(is_lost);
            }
            thread::sleep(LONG_NAP);
        }
    }

    /// Whoever asks from now on gets an error. An operation that others do not finish can be neither finished nor given up, so this never
    /// returns; the process ends around it.
    fn give_up(&mut self, error: &CommunicationError) -> ! {
        if self.rank() == 0 {
            self.tell(0, &error.to_string());
        }
        self.outbox.send(Err(error.clone())).ok();
        while let Some(answer) = self.next_answer() {
            self.outbox.send(answer).ok();
        }
        self.part();
        self.ended.send(()).ok();
        loop {
            thread::park();
        }
    }
}
