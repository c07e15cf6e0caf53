//! What sums and sends between processes.

use std::fmt::Debug;

use super::CommunicationError;

/// Several processes that run the same program.
///
/// All ranks call the same operations in the same order, with the same lengths; an operation returns when this rank's part in it is
/// done. A sum is the same on all ranks to the last bit, and the same again whenever the numbers and the size are the same. When a rank
/// is lost, the others get an error after a time that is bounded, and after an error nothing is called any more.
///
/// Operations are called from one thread at a time, not always the same one. Ranks that are threads of one process need a pool of rayon's each:
/// a rank that waits for the others occupies the thread that it runs on.
pub trait Communicator: Debug + Send + Sync {
    /// Which process this is: 0, 1, ...
    fn rank(&self) -> usize;

    /// How many there are.
    fn size(&self) -> usize;

    /// Every value becomes its sum over all ranks.
    fn all_reduce_f32(&self, values: &mut [f32]) -> Result<(), CommunicationError>;

    /// Every value becomes its sum over all ranks.
    fn all_reduce_f64(&self, values: &mut [f64]) -> Result<(), CommunicationError>;

    /// The bytes become those of the rank `from`.
    fn broadcast(&self, from: usize, bytes: &mut [u8]) -> Result<(), CommunicationError>;

    /// Waits until all ranks are here.
    fn barrier(&self) -> Result<(), CommunicationError>;

    /// Tells the others, outside of all operations, that this rank has failed: whatever they wait in, or call next, is then an error with
    /// this message. Nothing but dropping is called after it. An error if rank 0 is gone and will hear it no more.
    ///
    /// Unless a communicator has a way for it, this does nothing, and others find a rank lost instead.
    fn fail(&self, _message: &str) -> Result<(), CommunicationError> {
        Ok(())
    }
}

/// A single process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Communicator for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn all_reduce_f32(&self, _: &mut [f32]) -> Result<(), CommunicationError> {
        Ok(())
    }

    fn all_reduce_f64(&self, _: &mut [f64]) -> Result<(), CommunicationError> {
        Ok(())
    }

    fn broadcast(&self, _: usize, _: &mut [u8]) -> Result<(), CommunicationError> {
        Ok(())
    }

    fn barrier(&self) -> Result<(), CommunicationError> {
        Ok(())
    }
}
