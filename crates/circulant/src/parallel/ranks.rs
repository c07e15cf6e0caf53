//! What training needs of several processes, beside sums: shares, one decision of all, the same settings everywhere.

use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;

use super::{Alone, CommunicationError, Communicator, ParallelError};

/// The processes of a run, as one of them sees them. Every method that returns a `Result` is called by all of them together.
///
/// ```
/// use circulant::parallel::Ranks;
///
/// let ranks = Ranks::default(); // a single process
/// assert_eq!((ranks.rank(), ranks.size()), (0, 1));
/// assert_eq!(ranks.share(7), 0..7);
/// ```
#[derive(Debug, Clone)]
pub struct Ranks(Arc<dyn Communicator>);

impl Default for Ranks {
    fn default() -> Self {
        Self::new(Alone)
    }
}

impl Ranks {
    /// The ranks of a communicator.
    pub fn new(communicator: impl Communicator + 'static) -> Self {
        Self(Arc::new(communicator))
    }

    /// What they talk through.
    pub fn communicator(&self) -> &dyn Communicator {
        &*self.0
    }

    /// Which one this is.
    pub fn rank(&self) -> usize {
        self.0.rank()
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// Whether this is rank 0, which writes and prints.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// Whether there is no other.
    pub fn is_alone(&self) -> bool {
        self.size() == 1
    }

    /// This rank's part of `0..count`: the parts follow each other, and differ by one at most.
    pub fn share(&self, count: usize) -> Range<usize> {
        let (whole, rest) = (count / self.size(), count % self.size());
        let begin = |rank: usize| rank * whole + rank.min(rest);
        begin(self.rank())..begin(self.rank() + 1)
    }

    /// Whether a batch has an example for every rank.
    pub fn ensure_shared(&self, batch: usize) -> Result<(), ParallelError> {
        let ranks = self.size();
        if batch < ranks {
            return Err(ParallelError::TooManyRanks { ranks, batch });
        }
        Ok(())
    }

    /// How many ranks say yes.
    pub fn count(&self, yes: bool) -> Result<usize, ParallelError> {
        let mut sum = [f64::from(u8::from(yes))];
        self.0.all_reduce_f64(&mut sum)?;
        Ok(sum[0] as usize)
    }

    /// An error on one rank is an error on all: a rank without one gets the message of the first rank that has one.
    pub fn agree<T, E: Display + From<ParallelError>>(&self, own: Result<T, E>) -> Result<T, E> {
        if self.is_alone() {
            return own;
        }
        let other = self.first_message(own.as_ref().err());
        match other.map_err(ParallelError::from)? {
            Some((rank, message)) if own.is_ok() => {
                Err(ParallelError::Other { rank, message }.into())
            }
            _ => own,
        }
    }

    /// The first rank with an error, and its message.
    fn first_message(
        &self,
        own: Option<&impl Display>,
    ) -> Result<Option<(usize, String)>, CommunicationError> {
        let mut failed = vec![0.0; self.size()];
        failed[self.rank()] = f64::from(u8::from(own.is_some()));
        self.0.all_reduce_f64(&mut failed)?;
        let Some(rank) = failed.iter().position(|&failed| failed > 0.0) else {
            return Ok(None);
        };
        // With all causes, where the error has some.
        let message = own.map(|own| format!("{own:#}").into_bytes());
        let message = self.broadcast_bytes(rank, message.unwrap_or_default())?;
        Ok(Some((rank, String::from_utf8_lossy(&message).into_owned())))
    }

    /// What rank 0 makes, on all ranks.
    pub fn from_first<E: Display + From<ParallelError>>(
        &self,
        make: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, E> {
        let own = if self.is_first() {
            make()
        } else {
            Ok(Vec::new())
        };
        let bytes = self.agree(own)?;
        if self.is_alone() {
            return Ok(bytes);
        }
        let bytes = self.broadcast_bytes(0, bytes);
        bytes.map_err(|error| ParallelError::from(error).into())
    }

    /// The bytes of a rank, on all ranks.
    fn broadcast_bytes(&self, from: usize, own: Vec<u8>) -> Result<Vec<u8>, CommunicationError> {
        let mut length = (own.len() as u64).to_le_bytes();
        self.0.broadcast(from, &mut length)?;
        let length = usize::try_from(u64::from_le_bytes(length));
        let length = length.map_err(|error| CommunicationError::Failed {
            message: error.to_string(),
        })?;
        let mut bytes = own;
        bytes.resize(length, 0);
        self.0.broadcast(from, &mut bytes)?;
        Ok(bytes)
    }

    /// An error on all ranks unless all have the same facts, each a name and a text: the first that differs is named.
    pub fn compare(&self, facts: &[(&'static str, String)]) -> Result<(), ParallelError> {
        for (what, own) in facts {
            let expected = self.broadcast_bytes(0, own.clone().into_bytes())?;
            let own = if expected == own.as_bytes() {
                Ok(())
            } else {
                Err(ParallelError::Different {
                    what,
                    expected: String::from_utf8_lossy(&expected).into_owned(),
                    found: own.clone(),
                })
            };
            self.agree(own)?;
        }
        Ok(())
    }
}

/// What the same numbers depend on beside data and settings.
pub(crate) fn program_facts() -> Vec<(&'static str, String)> {
    vec![
        (
            "the version of circulant",
            env!("CARGO_PKG_VERSION").to_owned(),
        ),
        (
            "the instruction set (the variable CIRCULANT_ISA chooses one that all machines have)",
            circulant_kernels::instruction_set().to_owned(),
        ),
    ]
}
