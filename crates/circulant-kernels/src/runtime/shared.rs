//! A pointer for the threads of one parallel call.
//!
//! `unsafe`: tasks write disjoint rows of one slice from several threads; each user says which, and the
//! slice is borrowed until the call has ended.

/// A pointer that the threads of one parallel call share.
pub struct Shared<T>(*mut T);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<T> {}

// SAFETY: a pointer by itself does nothing, and whoever follows it promises that no two threads meet there. What they move to
// each other are values of `T`, some of which several of them read.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub(crate) fn writer(slice: &mut [T]) -> Self {
        Self(slice.as_mut_ptr())
    }

    /// For reading only.
    pub(crate) fn reader(slice: &[T]) -> Self {
        Self(slice.as_ptr().cast_mut())
    }

    pub(crate) fn at(self, index: usize) -> *mut T {
        self.0.wrapping_add(index)
    }

    pub(crate) fn offset(self, index: usize) -> Self {
        Self(self.at(index))
    }
}
