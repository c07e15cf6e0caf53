//! The beginning and the end of the ranks of a command.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use circulant::parallel::Ranks;

#[cfg(not(feature = "mpi"))]
use super::launch::SWITCH;
use super::launch::{Launched, launched};
use super::{SILENT, SIZE, mirror, replace};

/// All ranks, until the command ends.
pub struct World(Ranks);

impl World {
    /// Joins the processes that `mpirun` has started with this one. An error is told by rank 0 alone.
    pub fn join() -> anyhow::Result<Self> {
        let Some(launched) = launched() else {
            return Ok(Self(Ranks::default()));
        };
        SILENT.store(launched.rank != 0, Ordering::Relaxed);
        let ranks = start(launched).inspect_err(|_| {
            // `mpirun` ends all processes with the first one that fails: rank 0 speaks first.
            if launched.rank != 0 {
                thread::sleep(Duration::from_secs(1));
            }
        })?;
        SILENT.store(!ranks.is_first(), Ordering::Relaxed);
        SIZE.store(ranks.size(), Ordering::Relaxed);
        replace(Some(ranks.clone()));
        Ok(Self(ranks))
    }

    /// Ends all ranks together. An error of one is one of all: `tell` is called where it is to be told, once.
    pub fn end(
        self,
        result: anyhow::Result<()>,
        tell: impl FnOnce(&anyhow::Error),
    ) -> anyhow::Result<()> {
        let all = || Ok(self.0.communicator().barrier()?);
        let result = result.and_then(|()| all());
        if let Err(error) = &result {
            // Without rank 0 nobody would tell what happened.
            let is_heard = self.0.fail(&format!("{error:#}")).is_ok();
            if self.0.is_first() || !is_heard {
                tell(error);
            }
        }
        mirror::remove();
        replace(None);
        // The last one: it waits for all others.
        drop(self.0);
        SIZE.store(1, Ordering::Relaxed);
        SILENT.store(false, Ordering::Relaxed);
        result
    }
}

#[cfg(feature = "mpi")]
fn start(launched: Launched) -> anyhow::Result<Ranks> {
    use anyhow::ensure;
    use circulant::parallel::{Communicator, Mpi};

    let mpi = Mpi::start()?;
    ensure!(
        mpi.size() == launched.size,
        "{} processes were started together, but MPI knows of {}: `mpirun` is of another MPI than the one that this program was built with; \
         use its own `mpirun`, or build the program again",
        launched.size,
        mpi.size()
    );
    Ok(Ranks::new(mpi))
}

#[cfg(not(feature = "mpi"))]
fn start(launched: Launched) -> anyhow::Result<Ranks> {
    anyhow::bail!(
        "{} processes were started together, but this program was built without MPI; build it with `cargo build --release --features mpi` \
         (needs Open MPI or MPICH with its headers, and libclang), or set {SWITCH}=off for processes that have nothing to do with each other",
        launched.size
    )
}
