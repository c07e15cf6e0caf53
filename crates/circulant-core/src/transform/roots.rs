//! Roots of unity.

use core::f64::consts::TAU;

use num_complex::Complex;

use crate::error::{SizeError, expect_len};
use crate::scalar::Scalar;

/// `exp(-2 pi i k/order)` for `k = 0..order`, of which the first half is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Roots<'a, T> {
    order: usize,
    stored: &'a [Complex<T>],
}

impl<'a, T: Scalar> Roots<'a, T> {
    pub(crate) fn new(order: usize, memory: &'a mut [Complex<T>]) -> Result<Self, SizeError> {
        expect_len("roots", memory.len(), order / 2 + 1)?;
        for (k, root) in memory.iter_mut().enumerate() {
            let (sine, cosine) = libm::sincos(TAU * k as f64 / order as f64);
            *root = Complex::new(T::of(cosine), T::of(-sine));
        }
        Ok(Self {
            order,
            stored: memory,
        })
    }

    pub(crate) fn given(order: usize, stored: &'a [Complex<T>]) -> Result<Self, SizeError> {
        expect_len("roots", stored.len(), order / 2 + 1)?;
        Ok(Self { order, stored })
    }

    pub(crate) fn order(&self) -> usize {
        self.order
    }

    #[inline]
    pub(crate) fn at(&self, k: usize) -> Complex<T> {
        if k < self.stored.len() {
            self.stored[k]
        } else {
            self.stored[self.order - k].conj()
        }
    }
}
