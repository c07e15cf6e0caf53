//! `tanh` and its gradient `g (1 - y^2)` over whole slices, the bias of a dense layer, and sums over
//! rows. Matrices are `[rows, n]`, row-major.
//!
//! `unsafe`: vectors are loaded and stored through pointers, always `LANES` numbers within one
//! slice, or within a buffer that holds the widest vector.

use crate::error::{KernelError, expect_len};
use crate::real::Real;
use crate::runtime::chunks::{CHUNK, best_isa, rows_per_chunk, run_all};
use crate::vector::{Kernel, Lanes, MAX_LANES, Present, Vector};

/// Numbers whose sums over rows are kept in registers and the near cache together.
const SUM_CHUNKS: usize = 4;

/// `y = tanh(x)`.
pub fn tanh_into<T: Real>(x: &[T], y: &mut [T]) -> Result<(), KernelError> {
    expect_len("y", y.len(), x.len())?;
    let jobs = x
        .chunks(CHUNK)
        .zip(y.chunks_mut(CHUNK))
        .map(|(x, y)| TanhChunk { x, y });
    run_all(x.len(), jobs, |job| T::tanh_chunk(best_isa(), job));
    Ok(())
}

/// `out = grad*(1 - y^2)`: the gradient of `x` from that of `y = tanh(x)`.
pub fn tanh_backward<T: Real>(y: &[T], grad: &[T], out: &mut [T]) -> Result<(), KernelError> {
    expect_len("grad", grad.len(), y.len())?;
    expect_len("out", out.len(), y.len())?;
    let inputs = y.chunks(CHUNK).zip(grad.chunks(CHUNK));
    let jobs = inputs
        .zip(out.chunks_mut(CHUNK))
        .map(|((y, grad), out)| TanhBackwardChunk { y, grad, out });
    run_all(y.len(), jobs, |job| T::tanh_backward_chunk(best_isa(), job));
    Ok(())
}

/// `x = tanh(x + bias)` in place, for rows as long as the bias.
pub fn bias_tanh<T: Real>(x: &mut [T], bias: &[T]) -> Result<(), KernelError> {
    expect_rows("x", x.len(), bias.len())?;
    let numbers = x.len();
    let jobs = x
        .chunks_mut(rows_per_chunk(bias.len()) * bias.len())
        .map(|x| BiasTanhChunk { x, bias });
    run_all(numbers, jobs, |job| T::bias_tanh_chunk(best_isa(), job));
    Ok(())
}

/// The sum of all rows, which are as long as `out`; added up in f64.
pub fn column_sums<T: Real>(x: &[T], out: &mut [T]) -> Result<(), KernelError> {
    expect_rows("x", x.len(), out.len())?;
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

fn expect_rows(what: &'static str, got: usize, unit: usize) -> Result<(), KernelError> {
    if unit == 0 {
        return Err(KernelError::ZeroSize {
            what: "the length of a row",
        });
    }
    if got.is_multiple_of(unit) {
        Ok(())
    } else {
        Err(KernelError::Multiple { what, unit, got })
    }
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
/// `from` must be valid for reading and `to` for writing `len` numbers; they may be the same.
#[inline(always)]
unsafe fn tanh_span<V: Vector>(from: *const V::Scalar, to: *mut V::Scalar, len: usize) {
    let whole = len - len % V::LANES;
    for at in (0..whole).step_by(V::LANES) {
        // SAFETY: `at + LANES <= len`.
        unsafe { V::Scalar::tanh_lanes(V::load(from.add(at))).store(to.add(at)) };
    }
    if whole < len {
        let mut rest = Lanes::<V::Scalar, MAX_LANES>::zero();
        // SAFETY: fewer than `LANES <= MAX_LANES` numbers are copied in and out; the vector is
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::normal::standard_normal;
    use crate::random::philox::NoiseKey;

    /// Four units in the last place of an f32, as of `tanh_lanes`.
    const RELATIVE: f64 = 4.0 * 1.2e-7;
    /// Empty, shorter than a vector, a chunk and a rest, many chunks.
    const LENGTHS: [usize; 6] = [0, 1, 7, 33, CHUNK + 5, 3 * CHUNK + 1];

    fn numbers<T: Real>(len: usize) -> Vec<T> {
        let mut out = vec![T::zero(); len];
        standard_normal(NoiseKey { seed: 3, stream: 1 }, &mut out);
        out
    }

    #[test]
    fn tanh_is_that_of_the_standard_library() {
        for len in LENGTHS {
            let x: Vec<f32> = numbers(len);
            let mut y = vec![0.0; len];
            tanh_into(&x, &mut y).unwrap();
            for (x, y) in x.iter().zip(&y) {
                let exact = f64::from(*x).tanh();
                assert!((f64::from(*y) - exact).abs() <= RELATIVE * exact.abs());
            }
            let x: Vec<f64> = numbers(len);
            let mut y = vec![0.0; len];
            tanh_into(&x, &mut y).unwrap();
            assert!(x.iter().zip(&y).all(|(x, y)| x.tanh() == *y));
        }
    }

    #[test]
    fn nan_stays_nan() {
        let mut y = [0.0f32; 9];
        tanh_into(&[f32::NAN; 9], &mut y).unwrap();
        assert!(y.iter().all(|y| y.is_nan()));
    }

    #[test]
    fn the_gradient_is_one_minus_the_square() {
        for len in LENGTHS {
            let (y, grad): (Vec<f32>, Vec<f32>) = (numbers(len), numbers(len));
            let mut out = vec![0.0; len];
            tanh_backward(&y, &grad, &mut out).unwrap();
            for ((out, y), g) in out.iter().zip(&y).zip(&grad) {
                assert_eq!(*out, g * (1.0 - y * y));
            }
        }
    }

    #[test]
    fn the_bias_is_added_before_tanh() {
        for (rows, n) in [(1, 1), (3, 10), (40, 784), (2, 10_000)] {
            let x: Vec<f32> = numbers(rows * n);
            let bias: Vec<f32> = numbers(n);
            let sums: Vec<f32> = (0..rows * n).map(|i| x[i] + bias[i % n]).collect();
            let mut expected = vec![0.0; rows * n];
            tanh_into(&sums, &mut expected).unwrap();
            let mut y = x;
            bias_tanh(&mut y, &bias).unwrap();
            for (y, expected) in y.iter().zip(&expected) {
                assert!((y - expected).abs() <= 4.0 * f32::EPSILON);
            }
        }
    }

    #[test]
    fn column_sums_are_exact_to_a_rounding() {
        for (rows, n) in [(0, 3), (1, 1), (4000, 10), (512, 784), (3, 50_000)] {
            let x: Vec<f32> = numbers(rows * n);
            let mut sums = vec![1.0; n];
            column_sums(&x, &mut sums).unwrap();
            for (j, sum) in sums.iter().enumerate() {
                let exact: f64 = x.iter().skip(j).step_by(n).map(|x| f64::from(*x)).sum();
                assert!((f64::from(*sum) - exact).abs() <= 1e-7 * exact.abs() + 1e-10);
            }
        }
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let x: Vec<f32> = numbers(512 * 784);
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().unwrap().install(|| {
                let (mut y, mut sums) = (vec![0.0; x.len()], vec![0.0; 784]);
                tanh_into(&x, &mut y).unwrap();
                column_sums(&x, &mut sums).unwrap();
                (y, sums)
            })
        };
        assert_eq!(run(1), run(3));
    }

    #[test]
    fn wrong_sizes_are_errors() {
        assert!(tanh_into(&[0.0f32; 3], &mut [0.0; 2]).is_err());
        assert!(tanh_backward(&[0.0f32; 3], &[0.0; 3], &mut [0.0; 2]).is_err());
        assert!(tanh_backward(&[0.0f32; 3], &[0.0; 2], &mut [0.0; 3]).is_err());
        assert!(bias_tanh(&mut [0.0f32; 3], &[0.0; 2]).is_err());
        assert!(bias_tanh(&mut [0.0f32; 3], &[]).is_err());
        assert!(column_sums(&[0.0f32; 3], &mut [0.0; 2]).is_err());
    }
}
