//! Rows of a matrix in a given order, copied by all threads.
//!
//! Rows in a random order come from main memory one cache line after the other, and the hardware
//! sees what is wanted only when a row has begun. So the rows ahead are asked for while one is
//! copied. Rows of bytes (the pixels of most data sets) become values on the way: they take a quarter of the memory, and
//! of the time to read it.
//!
//! `unsafe`: vectors are loaded from a buffer that holds the longest one.

use circulant_core::Scalar;
use rayon::prelude::*;

use crate::error::KernelError;
use crate::real::Real;
use crate::runtime::chunks::best_isa;
use crate::vector::{Isa, Kernel, MAX_LANES, Present, Vector, prefetch};

/// Below this many bytes one thread is faster than waking another.
const SMALLEST: usize = 256 * 1024;

/// Rows that one thread copies at a time.
const PART: usize = 64;

/// How many rows before its turn a row is asked for.
const AHEAD: usize = 2;

/// `out[i] = matrix[rows[i]]`, where a row is `out.len()/rows.len()` values.
///
/// # Panics
///
/// Panics if a row does not exist, or if `out` is not a whole number of rows.
pub fn gather_rows<T: Copy + Send + Sync>(matrix: &[T], rows: &[usize], out: &mut [T]) {
    if rows.is_empty() || out.is_empty() {
        return;
    }
    each_row(matrix, rows, out, |row, out: &mut [T]| {
        out.copy_from_slice(row)
    });
}

/// What the bytes of a matrix stand for: channel `c` of a row has the values `(byte/divisor - mean[c])/deviation[c]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ByteScale {
    divisor: f32,
    /// `1/divisor`, if [`quotient`] is exact with it for all bytes.
    reciprocal: Option<f32>,
    /// Mean and deviation.
    channels: Vec<(f32, f32)>,
}

impl ByteScale {
    /// `byte/divisor`: 255 gives values from 0 to 1, 1 the bytes themselves.
    pub fn new(divisor: f32) -> Result<Self, KernelError> {
        Self::standardised(divisor, &[(0.0, 1.0)])
    }

    /// `(byte/divisor - mean)/deviation`, with a mean and a deviation per channel.
    pub fn standardised(divisor: f32, channels: &[(f32, f32)]) -> Result<Self, KernelError> {
        let positive = |x: f32| x.is_normal() && x > 0.0;
        let sound = |(mean, deviation): &(f32, f32)| mean.is_finite() && positive(*deviation);
        if channels.is_empty() || !positive(divisor) || !channels.iter().all(sound) {
            return Err(KernelError::ByteScale {
                divisor,
                channels: channels.to_vec(),
            });
        }
        let reciprocal = 1.0 / divisor;
        let exact = |byte| {
            let byte = f32::from(byte);
            quotient(byte, divisor, reciprocal, f32::mul_add) == byte / divisor
        };
        Ok(Self {
            divisor,
            reciprocal: (0..=u8::MAX).all(exact).then_some(reciprocal),
            channels: channels.to_vec(),
        })
    }

    /// The number of channels.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Bytes that tell this scale from another one.
    pub fn to_bytes(&self) -> Vec<u8> {
        let channels = self.channels.iter().flat_map(|(m, d)| [*m, *d]);
        let numbers = [self.divisor].into_iter().chain(channels);
        numbers.flat_map(f32::to_le_bytes).collect()
    }
}

/// `x/divisor` without a division: a first guess, and what it leaves over. With `fused` rounded once it is mostly exact.
#[inline(always)]
fn quotient(x: f32, divisor: f32, reciprocal: f32, fused: impl Fn(f32, f32, f32) -> f32) -> f32 {
    let guess = x * reciprocal;
    fused(fused(-guess, divisor, x), reciprocal, guess)
}

/// `byte/divisor` for all bytes, by a product and what it leaves over: exact, where products are fused with sums.
#[derive(Clone, Copy)]
pub struct ByteQuotient {
    divisor: f32,
    reciprocal: f32,
}

impl ByteQuotient {
    /// Of a scale that is nothing but such a quotient, for values and an instruction set that make it exact.
    pub(crate) fn new<T: Real>(isa: Isa, scale: &ByteScale) -> Option<Self> {
        let exact = isa.is_fused() && size_of::<T>() == size_of::<f32>();
        let reciprocal = scale.reciprocal.filter(|_| exact)?;
        (scale.channels == [(0.0, 1.0)]).then_some(Self {
            divisor: scale.divisor,
            reciprocal,
        })
    }

    /// Of consecutive bytes.
    ///
    /// # Safety
    /// `from` must be valid for reading `LANES` bytes.
    #[inline(always)]
    pub(crate) unsafe fn tile<V: Vector>(self, from: *const u8) -> V {
        let mut bytes = [V::Scalar::of(0.0); MAX_LANES];
        for (i, byte) in bytes[..V::LANES].iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            *byte = V::Scalar::of(f64::from(unsafe { *from.add(i) }));
        }
        // SAFETY: no vector has more lanes.
        let x = unsafe { V::load(bytes.as_ptr()) };
        let [divisor, reciprocal] =
            [self.divisor, self.reciprocal].map(|number| x.same(V::Scalar::of(f64::from(number))));
        let guess = x.mul(reciprocal);
        guess.neg_mul_add(divisor, x).mul_add(reciprocal, guess)
    }

    /// Of one byte.
    #[inline(always)]
    pub(crate) fn number<V: Vector>(self, byte: u8) -> V::Scalar {
        let number = quotient(f32::from(byte), self.divisor, self.reciprocal, f32::mul_add);
        V::Scalar::of(f64::from(number))
    }
}

/// [`gather_rows`] of bytes, as the values that they stand for.
///
/// ```
/// use circulant_kernels::{ByteScale, gather_bytes};
///
/// let mut out = [0.0f32; 4];
/// gather_bytes(&[0, 255, 51, 102], &[1, 0], &ByteScale::new(255.0)?, &mut out);
/// assert_eq!(out, [0.2, 0.4, 0.0, 1.0]);
/// # Ok::<(), circulant_kernels::KernelError>(())
/// ```
///
/// # Panics
///
/// Panics if a row does not exist, or if `out` is not a whole number of rows, or a row of channels.
pub fn gather_bytes<T: Real>(matrix: &[u8], rows: &[usize], scale: &ByteScale, out: &mut [T]) {
    if rows.is_empty() || out.is_empty() {
        return;
    }
    let channels = scale.channels();
    assert!(
        (out.len() / rows.len()).is_multiple_of(channels),
        "a row of {} numbers has no {channels} channels",
        out.len() / rows.len(),
    );
    let isa = best_isa();
    each_row(matrix, rows, out, |bytes, out| {
        numbers_of_bytes(isa, bytes, scale, out);
    });
}

/// One row.
pub(crate) fn numbers_of_bytes<T: Real>(isa: Isa, bytes: &[u8], scale: &ByteScale, out: &mut [T]) {
    T::byte_row(isa, ByteRow { bytes, scale, out });
}

/// A row of bytes to values.
pub struct ByteRow<'a, T> {
    bytes: &'a [u8],
    scale: &'a ByteScale,
    out: &'a mut [T],
}

impl<T: Real> Kernel<T> for ByteRow<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let plane = self.out.len() / self.scale.channels();
        let divisor = self.scale.divisor;
        if V::FUSED
            && let Some(reciprocal) = self.scale.reciprocal
        {
            return self.fill(
                plane,
                #[inline(always)]
                |byte| quotient(byte, divisor, reciprocal, f32::mul_add),
            );
        }
        self.fill(
            plane,
            #[inline(always)]
            |byte| byte / divisor,
        );
    }
}

impl<T: Real> ByteRow<'_, T> {
    /// `divide` gives a byte over the divisor.
    #[inline(always)]
    fn fill(self, plane: usize, divide: impl Fn(f32) -> f32) {
        let planes = self.bytes.chunks_exact(plane);
        let outputs = self.out.chunks_exact_mut(plane);
        for ((bytes, out), &(mean, deviation)) in planes.zip(outputs).zip(&self.scale.channels) {
            if (mean, deviation) == (0.0, 1.0) {
                for (out, &byte) in out.iter_mut().zip(bytes) {
                    *out = T::of(f64::from(divide(f32::from(byte))));
                }
            } else {
                for (out, &byte) in out.iter_mut().zip(bytes) {
                    let number = (divide(f32::from(byte)) - mean) / deviation;
                    *out = T::of(f64::from(number));
                }
            }
        }
    }
}

/// `copy(matrix[rows[i]], out[i])` for all `i`.
fn each_row<A: Copy + Send + Sync, B: Send>(
    matrix: &[A],
    rows: &[usize],
    out: &mut [B],
    copy: impl Fn(&[A], &mut [B]) + Send + Sync,
) {
    let length = out.len() / rows.len();
    assert!(
        length * rows.len() == out.len(),
        "{} rows do not fill {} numbers",
        rows.len(),
        out.len()
    );
    let there = matrix.len() / length;
    if let Some(row) = rows.iter().find(|row| **row >= there) {
        panic!("row {row} of a matrix of {there} rows");
    }
    let part = |out: &mut [B], rows: &[usize]| {
        for (i, out) in out.chunks_exact_mut(length).enumerate() {
            if let Some(row) = rows.get(i + AHEAD) {
                fetch(&matrix[row * length..][..length]);
            }
            copy(&matrix[rows[i] * length..][..length], out);
        }
    };
    if size_of_val(out) < SMALLEST {
        part(out, rows);
    } else {
        let parts = out.par_chunks_mut(PART * length).zip(rows.par_chunks(PART));
        parts.for_each(|(out, rows)| part(out, rows));
    }
}

/// Asks for all cache lines of a row.
pub(crate) fn fetch<T>(row: &[T]) {
    let line = (64 / size_of::<T>().max(1)).max(1);
    for number in row.iter().step_by(line) {
        prefetch(number);
    }
}
