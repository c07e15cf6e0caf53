//! What can go wrong between processes.

/// Why an operation of a [`Communicator`](super::Communicator) failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommunicationError {
    /// A rank that no longer answers.
    #[error(
        "rank {rank} has not been heard of for {seconds} s: its process, its machine or the way to it is gone; \
         the last checkpoint stands, resume from it"
    )]
    Lost {
        /// Which one.
        rank: usize,
        /// How long it has been silent.
        seconds: u64,
    },
    /// A rank that has failed, and said why.
    #[error("rank {rank}: {message}")]
    Other {
        /// Which one.
        rank: usize,
        /// What it says.
        message: String,
    },
    /// A rank that has ended while others still had work with it.
    #[error("rank {rank} has ended before the others; the last checkpoint stands, resume from it")]
    Ended {
        /// Which one.
        rank: usize,
    },
    /// Anything else.
    #[error("the ranks can no longer talk to each other: {message}")]
    Failed {
        /// What the library below says.
        message: String,
    },
}

/// Why several processes cannot begin or go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParallelError {
    /// A rank is lost, or the way to it.
    #[error(transparent)]
    Communication(#[from] CommunicationError),
    /// Ranks that do not run the same training.
    #[error(
        "{what}: expected {expected} as on rank 0, found {found}; \
         start all ranks with the same program, data and settings"
    )]
    Different {
        /// What differs.
        what: &'static str,
        /// On rank 0.
        expected: String,
        /// On this rank.
        found: String,
    },
    /// An error of another rank.
    #[error("rank {rank}: {message}")]
    Other {
        /// Which one.
        rank: usize,
        /// What it says.
        message: String,
    },
    /// A batch that leaves ranks without examples.
    #[error(
        "expected a batch of at least {ranks} examples, one for each of {ranks} ranks, found {batch}; \
         start fewer ranks, or train with larger batches"
    )]
    TooManyRanks {
        /// How many ranks there are.
        ranks: usize,
        /// Examples of a batch.
        batch: usize,
    },
}
