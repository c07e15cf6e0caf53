//! Training on several processes, on one machine or many: data-parallel, with the same parameters everywhere.
//!
//! Each of `R` processes, called ranks, computes the gradients of its share of every batch; they are summed over all ranks, once per
//! step and in one buffer, and every rank then takes the same step:
//!
//! `g = sum_r g_r`, `g_r` over the rows `[B r/R, B (r+1)/R)` of the batch.
//!
//! What does not depend on the data (draws from the posterior, the KL, the optimiser) every rank computes by itself, from the same
//! seed, so that nothing else has to be sent. Sums over another number of ranks are rounded otherwise; for the same number all results are the
//! same to the last bit. A checkpoint does not know how many ranks wrote it, and resumes on any number.
//!
//! | what | who |
//! | --- | --- |
//! | [`Communicator`] | sums and sends between processes; `Mpi` (feature `mpi`), [`Alone`], or your own |
//! | [`Ranks`] | what training needs of one: shares, agreement on errors, comparisons |
//! | [`Svi::with_ranks`](crate::bayes::Svi::with_ranks), [`Trainer::with_ranks`](crate::train::Trainer::with_ranks) | training on them |
//!
//! Every rank runs the same program with the same data and settings; other data or settings are an error before the first step. An
//! error on one rank is an error on all.

mod communicator;
mod error;
mod gradients;
#[cfg(feature = "mpi")]
mod mpi;
mod ranks;

pub use self::communicator::{Alone, Communicator};
pub use self::error::{CommunicationError, ParallelError};
pub(crate) use self::gradients::{Part, register, sum_parts, trained_parts};
#[cfg(feature = "mpi")]
pub use self::mpi::{Mpi, SILENCE};
pub use self::ranks::Ranks;
pub(crate) use self::ranks::program_facts;
