//! The processes that `mpirun` has started together, as this one sees them; one process without it.
//!
//! All ranks run the same command. Training, predictions and certificates are shared out ([`circulant::parallel`]); rank 0 alone prints,
//! shows progress and writes for the user. Others run the same code on a private folder, which holds what they need of rank 0's, and is
//! removed at the end: no folder has to be shared between machines.

mod launch;
mod mirror;
mod world;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

use circulant::parallel::Ranks;

pub use self::launch::threads;
pub use self::mirror::{bring, folder, may_write};
pub use self::world::World;

/// None is a single process. Not a `OnceLock`: other languages may run the program several times.
static RANKS: RwLock<Option<Ranks>> = RwLock::new(None);
/// Whether another rank prints.
static SILENT: AtomicBool = AtomicBool::new(false);
/// How many processes were started together.
static SIZE: AtomicUsize = AtomicUsize::new(1);

/// All ranks that work together now.
pub fn ranks() -> Ranks {
    let ranks = RANKS.read().unwrap_or_else(PoisonError::into_inner);
    ranks.clone().unwrap_or_default()
}

fn replace(ranks: Option<Ranks>) -> Option<Ranks> {
    let mut place = RANKS.write().unwrap_or_else(PoisonError::into_inner);
    std::mem::replace(&mut place, ranks)
}

/// How many processes were started together, also while one of them works alone.
pub fn size() -> usize {
    SIZE.load(Ordering::Relaxed)
}

/// Whether this process prints.
pub fn speaks() -> bool {
    !SILENT.load(Ordering::Relaxed)
}

/// A line on stderr, from rank 0 alone.
macro_rules! say {
    ($($text:tt)*) => {
        if $crate::ranks::speaks() {
            eprintln!($($text)*);
        }
    };
}
pub(crate) use say;

/// Work that this rank does by itself, whatever the others do.
pub fn alone<T>(work: impl FnOnce() -> T) -> T {
    let all = replace(None);
    let made = work();
    replace(all);
    made
}

/// What rank 0 makes by itself while the others wait; an error is one of all. None on the others.
pub fn first_only<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<Option<T>> {
    let ranks = ranks();
    let made = match ranks.is_first() {
        true => alone(work).map(Some),
        false => Ok(None),
    };
    ranks.agree(made)
}

/// What every rank makes by itself, rank 0 before all others: they find what it has put into a cache.
pub fn first_then_others<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let ranks = ranks();
    if !ranks.is_first() {
        ranks.agree(anyhow::Ok(()))?;
        return alone(work);
    }
    let made = alone(work);
    let (made, said) = match made {
        Ok(made) => (Some(made), Ok(())),
        Err(error) => (None, Err(error)),
    };
    ranks.agree(said)?;
    Ok(made.expect("made, unless that was an error"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_process_does_everything() {
        assert!(ranks().is_alone() && speaks());
        assert_eq!(alone(|| ranks().size()), 1);
        assert_eq!(first_only(|| Ok(5)).unwrap(), Some(5));
        assert_eq!(first_then_others(|| Ok(6)).unwrap(), 6);
        let failed: anyhow::Result<()> = first_then_others(|| anyhow::bail!("no"));
        assert_eq!(failed.unwrap_err().to_string(), "no");
    }
}
