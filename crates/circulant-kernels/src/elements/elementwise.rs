//! `tanh` and its gradient `g (1 - y^2)` over whole slices, the bias of a dense layer, and sums over
//! rows. Matrices are `[rows, n]`, row-major.
//!
//! `unsafe`: vectors are loaded and stored through pointers, always `LANES` values within one
//! slice, or within a buffer that holds the widest vector.

use crate::error::{KernelError, expect_len, rows_of};
use crate::real::Real;
use crate::runtime::chunks::{CHUNK, best_isa, each_chunk, rows_per_chunk, run_all};
use crate::vector::{Kernel, Lanes, MAX_LANES, Present, Vector};

/// Values whose sums over rows are kept in registers and the L1 or L2 cache together.
const SUM_CHUNKS: usize = 4;

/// `y = tanh(x)`.
pub fn tanh_into<T: Real>(x: &[T], y: &mut [T]) -> Result<(), KernelError> {
    expect_len("y", y.len(), x.len())?;
    each_chunk(x.len(), [(x, CHUNK)], [(y, CHUNK)], |_, [x], [y]| {
        T::tanh_chunk(best_isa(), TanhChunk { x, y });
    });
    Ok(())
}

/// `out = grad*(1 - y^2)`: the gradient of `x` from that of `y = tanh(x)`.
pub fn tanh_backward<T: Real>(y: &[T], grad: &[T], out: &mut [T]) -> Result<(), KernelError> {
    expect_len("grad", grad.len(), y.len())?;
    expect_len("out", out.len(), y.len())?;
    let inputs = [(y, CHUNK), (grad, CHUNK)];
    each_chunk(y.len(), inputs, [(out, CHUNK)], |_, [y, grad], [out]| {
        T::tanh_backward_chunk(best_isa(), TanhBackwardChunk { y, grad, out });
    });
    Ok(())
}

/// `x = tanh(x + bias)` in place, for rows as long as the bias.
pub fn bias_tanh<T: Real>(x: &mut [T], bias: &[T]) -> Result<(), KernelError> {
    rows_of("x", x.len(), bias.len())?;
    let chunk = rows_per_chunk(bias.len()) * bias.len();
    each_chunk(x.len(), [], [(x, chunk)], |_, [], [x]| {
        T::bias_tanh_chunk(best_isa(), BiasTanhChunk { x, bias });
    });
    Ok(())
}

/// The sum of all rows, which are as long as `out`; added up in f64.
pub fn column_sums<T: Real>(x: &[T], out: &mut [T]) -> Result<(), KernelError> {
    rows_of("x", x.len(), out.len())?;
    let columns = out.len();
    let rows = SUM_CHUNKS * rows_per_chunk(columns);
    let jobs = x
        .chunks(rows * columns)
        .map(|x| ColumnSumChunk { x, columns });
    let parts = run_all(x.len(), jobs, |job| T::column_sum_chunk(best_isa(), job));
    let mut totals = vec![0.0; columns];
    for part in parts {
        for (total, sum) in totals.iter_mut().zip(part) {
            *total += sum;
        }
    }
    for (out, total) in out.iter_mut().zip(totals) {
        *out = T::of(total);
    }
    Ok(())
}

/// `tanh` of one chunk.
pub struct TanhChunk<'a, T> {
    x: &'a [T],
    y: &'a mut [T],
}

impl<T: Real> Kernel<T> for TanhChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        // SAFETY: both slices of a chunk are of the same length.
        unsafe { tanh_span::<V>(self.x.as_ptr(), self.y.as_mut_ptr(), self.x.len()) }
    }
}

/// # Safety
/// `from` must be valid for reading and `to` for writing `len` values; they may be the same.
#[inline(always)]
unsafe fn tanh_span<V: Vector>(from: *const V::Scalar, to: *mut V::Scalar, len: usize) {
    let whole = len - len % V::LANES;
    for at in (0..whole).step_by(V::LANES) {
        // SAFETY: `at + LANES <= len`.
        unsafe { V::Scalar::tanh_lanes(V::load(from.add(at))).store(to.add(at)) };
    }
    if whole < len {
        let mut rest = Lanes::<V::Scalar, MAX_LANES>::zero();
        // SAFETY: fewer than `LANES <= MAX_LANES` values are copied in and out; the vector is
        // within the buffer.
        unsafe {
            let buffer = rest.0.as_mut_ptr();
            buffer.copy_from_nonoverlapping(from.add(whole), len - whole);
            V::Scalar::tanh_lanes(V::load(buffer)).store(buffer);
            to.add(whole).copy_from_nonoverlapping(buffer, len - whole);
        }
    }
}

/// The gradient of one chunk.
pub struct TanhBackwardChunk<'a, T> {
    y: &'a [T],
    grad: &'a [T],
    out: &'a mut [T],
}

impl<T: Real> Kernel<T> for TanhBackwardChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        for ((out, &y), &g) in self.out.iter_mut().zip(self.y).zip(self.grad) {
            *out = g * (T::one() - y * y);
        }
    }
}

/// Whole rows.
pub struct BiasTanhChunk<'a, T> {
    x: &'a mut [T],
    bias: &'a [T],
}

impl<T: Real> Kernel<T> for BiasTanhChunk<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        for row in self.x.chunks_exact_mut(self.bias.len()) {
            for (x, &bias) in row.iter_mut().zip(self.bias) {
                *x = *x + bias;
            }
        }
        let len = self.x.len();
        let x = self.x.as_mut_ptr();
        // SAFETY: one slice, in place.
        unsafe { tanh_span::<V>(x, x, len) }
    }
}

/// Whole rows.
pub struct ColumnSumChunk<'a, T> {
    x: &'a [T],
    columns: usize,
}

impl<T: Real> Kernel<T> for ColumnSumChunk<'_, T> {
    type Output = Vec<f64>;
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) -> Vec<f64> {
        let mut sums = vec![0.0; self.columns];
        for row in self.x.chunks_exact(self.columns) {
            for (sum, x) in sums.iter_mut().zip(row) {
                *sum += x.wide();
            }
        }
        sums
    }
}
