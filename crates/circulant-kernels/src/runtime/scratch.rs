//! Buffers that are reused from call to call, aligned to cache lines.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use crate::real::Real;

/// Bytes of a cache line, and of the widest vector register.
pub const ALIGNMENT: usize = 64;
/// More idle buffers than this are freed: a training step needs a handful at a time.
const MAX_IDLE: usize = 32;

/// Idle buffers of one number type, shared by all plans and threads.
#[derive(Debug)]
pub struct Pool<T> {
    idle: Mutex<Vec<Idle<T>>>,
}

/// A buffer with the thread that used it last, in whose L1 or L2 cache it still may be.
#[derive(Debug)]
struct Idle<T> {
    memory: Vec<T>,
    thread: Option<usize>,
}

impl<T> Pool<T> {
    pub(crate) const fn new() -> Self {
        Self {
            idle: Mutex::new(Vec::new()),
        }
    }
}

/// A slice of `len` values on a cache-line boundary; its memory goes back to the pool when
/// dropped. What it holds at first is whatever its last user left.
#[derive(Debug)]
pub struct Scratch<T: Real> {
    memory: Vec<T>,
    offset: usize,
    len: usize,
}

impl<T: Real> Scratch<T> {
    pub fn take(len: usize) -> Self {
        if len == 0 {
            // Many tasks at a time hold empty ones: in the pool they would push out those that matter.
            return Self {
                memory: Vec::new(),
                offset: 0,
                len,
            };
        }
        let needed = len + ALIGNMENT / size_of::<T>();
        let mut idle = T::pool()
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // The tightest fit, so that a small request does not hold a large buffer; among equals one of this thread.
        let thread = rayon::current_thread_index();
        let best = (0..idle.len())
            .filter(|&i| idle[i].memory.len() >= needed)
            .min_by_key(|&i| (idle[i].memory.len(), idle[i].thread != thread));
        let memory = best.map(|i| idle.swap_remove(i).memory);
        drop(idle);
        let memory = memory.unwrap_or_else(|| vec![T::zero(); needed]);
        let offset = memory.as_ptr().align_offset(ALIGNMENT);
        Self {
            memory,
            offset,
            len,
        }
    }

    pub(crate) fn zeroed(len: usize) -> Self {
        let mut scratch = Self::take(len);
        scratch.fill(T::zero());
        scratch
    }
}

impl<T: Real> Deref for Scratch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.memory[self.offset..self.offset + self.len]
    }
}

impl<T: Real> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.offset..self.offset + self.len]
    }
}

impl<T: Real> Drop for Scratch<T> {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        if memory.is_empty() {
            return;
        }
        let mut idle = T::pool()
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        idle.push(Idle {
            memory,
            thread: rayon::current_thread_index(),
        });
        if idle.len() > MAX_IDLE {
            // Drop the largest: the small ones are needed on every call.
            if let Some(largest) = (0..idle.len()).max_by_key(|&i| idle[i].memory.len()) {
                idle.swap_remove(largest);
            }
        }
    }
}
