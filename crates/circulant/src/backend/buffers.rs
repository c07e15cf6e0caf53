//! Output buffers that come back when the last tensor that holds them is dropped.
//!
//! A training step makes and drops the same large tensors over and over. From the system each of
//! them is zeroed and mapped page by page first, which costs as much as the operator itself; from
//! here it is ready. A tensor made of such a buffer is read without a copy; an operation that wants to
//! change it in place copies it first, as it would for any shared tensor.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use burn::tensor::{AllocationProperty, Bytes, Element, Shape, TensorData};
use burn_flex::FlexTensor;
use bytemuck::Pod;

/// Smaller buffers are cheap to get from the allocator, which reuses them itself.
const SMALLEST: usize = 64 * 1024;
/// Idle memory is limited to this many bytes per number type; the oldest buffers are freed first. A step of a vision
/// transformer leaves about 500 MB behind, which the next one takes up again.
const MOST_IDLE: usize = 1024 * 1024 * 1024;

/// Idle buffers of one number type, oldest first. Their values are whatever the last user left.
#[derive(Debug)]
pub(super) struct Idle<T>(Mutex<VecDeque<Vec<T>>>);

impl<T> Idle<T> {
    const fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    /// A buffer of `len` values at least, and at most twice that.
    fn take(&self, len: usize) -> Option<Vec<T>> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let best = (0..idle.len())
            .filter(|&i| (len..=2 * len).contains(&idle[i].len()))
            .min_by_key(|&i| idle[i].len())?;
        idle.remove(best)
    }

    fn give(&self, values: Vec<T>) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push_back(values);
        let mut bytes: usize = idle.iter().map(|values| size_of_val(&values[..])).sum();
        while bytes > MOST_IDLE {
            let Some(oldest) = idle.pop_front() else {
                break;
            };
            bytes -= size_of_val(&oldest[..]);
        }
    }
}

/// A number type with idle buffers.
pub(super) trait Pooled: Pod + Element {
    fn idle() -> &'static Idle<Self>;
}

impl Pooled for f32 {
    fn idle() -> &'static Idle<Self> {
        static IDLE: Idle<f32> = Idle::new();
        &IDLE
    }
}

impl Pooled for f64 {
    fn idle() -> &'static Idle<Self> {
        static IDLE: Idle<f64> = Idle::new();
        &IDLE
    }
}

/// `len` values to be overwritten.
#[derive(Debug)]
pub(super) struct Buffer<T: Pooled> {
    memory: Vec<T>,
    len: usize,
}

impl<T: Pooled> Buffer<T> {
    /// Numbers of any value: the caller sets all of them.
    pub(super) fn any(len: usize) -> Self {
        let memory = if len * size_of::<T>() < SMALLEST {
            None
        } else {
            T::idle().take(len)
        };
        Self {
            memory: memory.unwrap_or_else(|| vec![T::zeroed(); len]),
            len,
        }
    }

    pub(super) fn zeroed(len: usize) -> Self {
        Self {
            memory: vec![T::zeroed(); len],
            len,
        }
    }

    pub(super) fn as_mut(&mut self) -> &mut [T] {
        &mut self.memory[..self.len]
    }

    /// The tensor that owns these values, without a copy.
    pub(super) fn into_tensor(mut self, shape: Shape) -> FlexTensor {
        if self.len * size_of::<T>() < SMALLEST {
            let memory = std::mem::take(&mut self.memory);
            return FlexTensor::from_data(TensorData::new(memory, shape));
        }
        let bytes = Bytes::from_shared(bytes::Bytes::from_owner(self), AllocationProperty::Other);
        FlexTensor::from_data(TensorData::from_bytes(bytes, shape, T::dtype()))
    }
}

impl<T: Pooled> AsRef<[u8]> for Buffer<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.memory[..self.len])
    }
}

impl<T: Pooled> Drop for Buffer<T> {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        if size_of_val(&memory[..]) >= SMALLEST {
            T::idle().give(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::backend::{Flex, ops::FloatTensorOps};

    use super::*;

    /// Too large for any other test, so that buffers here meet only each other.
    const LEN: usize = 1_234_567;

    #[test]
    fn memory_is_reused_and_never_shared() {
        let shape = || Shape::from(vec![LEN]);
        let mut first = Buffer::<f64>::any(LEN);
        first.as_mut().fill(1.0);
        let place = first.as_ref().as_ptr();
        let tensor = first.into_tensor(shape());
        let copy = tensor.clone();
        drop(tensor);
        assert_ne!(
            Buffer::<f64>::any(LEN).as_ref().as_ptr(),
            place,
            "a tensor still holds it"
        );
        // An operation in place must leave the other holder alone.
        let sum = Flex::float_add_scalar(copy.clone(), 1.0.into());
        assert!(
            copy.as_slice::<f64>()
                .is_some_and(|values| values.iter().all(|&x| x == 1.0))
        );
        assert!(
            sum.as_slice::<f64>()
                .is_some_and(|values| values.iter().all(|&x| x == 2.0))
        );
        drop((copy, sum));
        let mut pool = (0..8).map(|_| Buffer::<f64>::any(LEN)).collect::<Vec<_>>();
        assert!(
            pool.iter().any(|buffer| buffer.as_ref().as_ptr() == place),
            "it came back"
        );
        // In place on a tensor that is held once.
        let mut buffer = pool.remove(0);
        buffer.as_mut().fill(3.0);
        let sum = Flex::float_add_scalar(buffer.into_tensor(shape()), 1.0.into());
        assert!(
            sum.as_slice::<f64>()
                .is_some_and(|values| values.iter().all(|&x| x == 4.0))
        );
    }

    #[test]
    fn idle_memory_is_limited() {
        let idle = Idle::<u8>::new();
        for size in 1..6 {
            idle.give(vec![0; MOST_IDLE / 4 + size]);
        }
        let kept: Vec<usize> = idle
            .0
            .lock()
            .expect("not poisoned")
            .iter()
            .map(Vec::len)
            .collect();
        assert_eq!(
            kept,
            [3, 4, 5].map(|size| MOST_IDLE / 4 + size),
            "the oldest go first"
        );
        assert!(
            idle.take(16).is_none(),
            "far too large a buffer is not handed out"
        );
    }
}
