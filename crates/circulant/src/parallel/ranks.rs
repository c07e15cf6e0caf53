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

    /// How many ranks say yes, to each of some questions.
    pub fn counts<const N: usize>(&self, yes: [bool; N]) -> Result<[usize; N], ParallelError> {
        let mut sums = yes.map(|yes| f64::from(u8::from(yes)));
        self.0.all_reduce_f64(&mut sums)?;
        Ok(sums.map(|sum| sum as usize))
    }

    /// Whether any rank says yes.
    pub fn any(&self, yes: bool) -> Result<bool, ParallelError> {
        Ok(self.counts([yes])?[0] > 0)
    }

    /// Tells all others that this rank has failed, so that they stop too ([`Communicator::fail`]). Called by this rank alone.
    pub fn fail(&self, message: &str) -> Result<(), CommunicationError> {
        self.0.fail(message)
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

    /// The bytes of every rank, in their order, on all ranks.
    ///
    /// ```
    /// use circulant::parallel::Ranks;
    ///
    /// let ranks = Ranks::default(); // a single process
    /// assert_eq!(ranks.gather(vec![1, 2])?, [[1, 2]]);
    /// # Ok::<(), circulant::parallel::ParallelError>(())
    /// ```
    pub fn gather(&self, own: Vec<u8>) -> Result<Vec<Vec<u8>>, ParallelError> {
        if self.is_alone() {
            return Ok(vec![own]);
        }
        let mut own = Some(own);
        let part = |rank| {
            let own = own.take_if(|_| rank == self.rank());
            self.broadcast_bytes(rank, own.unwrap_or_default())
        };
        let parts = (0..self.size()).map(part);
        Ok(parts.collect::<Result<_, _>>()?)
    }

    /// The values of all ranks, one after another, on all ranks.
    pub(crate) fn concatenate<T: bytemuck::Pod>(
        &self,
        own: Vec<T>,
    ) -> Result<Vec<T>, ParallelError> {
        if self.is_alone() {
            return Ok(own);
        }
        let parts = self.gather(bytemuck::cast_slice(&own).to_vec())?;
        let whole = |part: Vec<u8>| {
            let values = part.chunks_exact(size_of::<T>());
            values.map(bytemuck::pod_read_unaligned).collect::<Vec<T>>()
        };
        Ok(parts.into_iter().flat_map(whole).collect())
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
                let expected = String::from_utf8_lossy(&expected);
                let (expected, found) = (differing(&expected, own), differing(own, &expected));
                Err(ParallelError::Different {
                    what,
                    expected,
                    found,
                })
            };
            self.agree(own)?;
        }
        Ok(())
    }
}

/// The lines of a text that are not those of another one: of many settings those that differ.
fn differing(own: &str, other: &str) -> String {
    let (own, other): (Vec<&str>, Vec<&str>) = (own.lines().collect(), other.lines().collect());
    if own.len() != other.len() {
        return own.join(" ");
    }
    let pairs = own.iter().zip(other).filter(|(own, other)| *own != other);
    let lines = pairs.map(|(own, _)| own.trim().trim_end_matches(','));
    lines.collect::<Vec<_>>().join(", ")
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
