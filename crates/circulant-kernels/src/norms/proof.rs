//! The proof that `sigma_max(K) <= t`: a Cholesky factorisation of `t^2 I - K^H K` that goes
//! through in floating point (`docs/mathematics.md`, section 7, which also counts the roundings of [`Slack`]).
//!
//! The Gram matrix is never formed. Row `j` of the factor `U` is
//! `U[j,o] = (t^2 [j = o] - sum_r conj(W[r,j]) W[r,o])/U[j,j]`, where `W` is `K` with the rows of
//! `U` so far below it, so that one loop does the Gram product and the factorisation.
//!
//! `unsafe`: loads and stores through pointers into the planes of one [`Matrix`], whose size the
//! kernel checks before it starts; every row is `stride` long and a vector starts at a multiple of
//! its width below `columns`, so it ends below `stride`.

use crate::real::Real;
use crate::vector::{Isa, Kernel, Present, Vector};

use super::matrix::{BLOCK, Matrix};

/// Rows that are summed before the sum is added to the total: short sums have small errors.
const CHUNK: usize = 32;

/// What rounding can hide from a proof for matrices of one size.
#[derive(Debug, Clone, Copy)]
pub struct Slack {
    /// `sigma_max <= factor*t`.
    factor: f64,
    /// `slack` above.
    pub squared: f64,
    unit: f64,
}

impl Slack {
    /// For `rows x columns` matrices in f32, rounded from f64.
    pub fn single(rows: usize, columns: usize) -> Option<Self> {
        Self::new(rows, columns, 2f64.powi(-24), true)
    }

    /// For `rows x columns` matrices in f64. `None` needs more than `10^13` rows.
    pub fn double(rows: usize, columns: usize) -> Option<Self> {
        Self::new(rows, columns, 2f64.powi(-53), false)
    }

    /// `None` when the matrix is so large that the bounds above do not hold.
    fn new(rows: usize, columns: usize, unit: f64, rounded: bool) -> Option<Self> {
        let depth = 2 * CHUNK + (rows + columns).div_ceil(CHUNK) + 12;
        let gamma = depth as f64 * unit / (1.0 - depth as f64 * unit);
        let squared = (1.5 * columns as f64 + 1.0) * gamma;
        let conversion = if rounded {
            1.01 * unit * (columns as f64).sqrt()
        } else {
            0.0
        };
        // Sixteen units cover the roundings of this line and of `proven`.
        let factor = ((1.0 + squared).sqrt() + conversion) * (1.0 + 16.0 * f64::EPSILON);
        (gamma <= 0.01 && squared <= 1.0).then_some(Self {
            factor,
            squared,
            unit,
        })
    }

    /// The bound on `sigma_max` that a factorisation with `shift = t^2` proves.
    pub fn proven(&self, shift: f64) -> f64 {
        shift.sqrt() * self.factor
    }

    /// A shift that proves `sigma_max <= limit`.
    pub fn shift_below(&self, limit: f64) -> f64 {
        let t = limit / self.factor;
        // Rounding to f32 may go up by one unit; the other roundings are covered by `factor`.
        t * t * (1.0 - 4.0 * self.unit)
    }

    /// A shift at which a matrix with `sigma_max = sigma` passes for certain: `raise >= 1` times the
    /// slack above `sigma^2`.
    pub fn shift_above(&self, sigma: f64, raise: f64) -> f64 {
        sigma * sigma * (1.0 + 2.0 * raise * self.squared)
    }
}

/// The smallest `t^2` that the error bounds allow.
const SMALLEST_SHIFT: f64 = 0.25;

/// Whether the factorisation of `shift I - K^H K` goes through. The rows below the matrix are
/// overwritten, the matrix itself stays.
pub fn proves<T: Real>(isa: Isa, matrix: &mut Matrix<T>, shift: f64) -> bool {
    shift >= SMALLEST_SHIFT && shift.is_finite() && isa.run(Factor { matrix, shift })
}

struct Factor<'a, T> {
    matrix: &'a mut Matrix<T>,
    shift: f64,
}

impl<T: Real> Kernel<T> for Factor<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) -> bool {
        let matrix = self.matrix;
        let padded = matrix.columns.next_multiple_of(BLOCK);
        let len = (matrix.rows + padded).saturating_mul(matrix.stride);
        assert!(matrix.re.len() >= len && (!matrix.complex || matrix.im.len() >= len));
        assert!(matrix.columns.next_multiple_of(V::LANES) <= matrix.stride);
        let planes = FactorPlanes::<T> {
            re: matrix.re.as_mut_ptr(),
            im: matrix.im.as_mut_ptr(),
            stride: matrix.stride,
            rows: matrix.rows,
            columns: matrix.columns,
        };
        let shift = T::of(self.shift);
        // SAFETY: the planes have the asserted size; a real matrix never touches `im`.
        unsafe {
            if matrix.complex {
                planes.factor::<V, true>(shift)
            } else {
                planes.factor::<V, false>(shift)
            }
        }
    }
}

/// The planes of `W`, see the head of the file.
#[derive(Clone, Copy)]
struct FactorPlanes<T> {
    re: *mut T,
    im: *mut T,
    stride: usize,
    rows: usize,
    columns: usize,
}

impl<T: Real> FactorPlanes<T> {
    /// # Safety
    /// `re`, and `im` when `COMPLEX`, hold `rows + columns` rows of `stride`, `columns` rounded up
    /// to blocks there and to vectors in `stride`. The instruction set of `V` is there.
    #[inline(always)]
    unsafe fn factor<V: Vector<Scalar = T>, const COMPLEX: bool>(self, shift: T) -> bool {
        for first in (0..self.columns).step_by(BLOCK) {
            let start = first / V::LANES * V::LANES;
            // SAFETY: blocks of rows and vectors stay inside the padded sizes.
            unsafe {
                for at in (start..self.columns).step_by(V::LANES) {
                    self.tile::<V, COMPLEX>(first, at);
                }
                for j in first..self.columns.min(first + BLOCK) {
                    if !self.finish_row::<V, COMPLEX>(shift, first, j, start) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// `-sum_r conj(W[r, first + i]) W[r, at..]` over the rows before the block, into the block.
    ///
    /// # Safety
    /// As [`Self::factor`]; `first + BLOCK` and `at + LANES` are within the padded columns.
    #[inline(always)]
    unsafe fn tile<V: Vector<Scalar = T>, const COMPLEX: bool>(self, first: usize, at: usize) {
        // SAFETY: the caller promises the instruction set.
        let zero = unsafe { V::splat(T::zero()) };
        let (mut total_re, mut total_im) = ([zero; BLOCK], [zero; BLOCK]);
        let rows = self.rows + first;
        let mut done = 0;
        while done < rows {
            let (mut sum_re, mut sum_im) = ([zero; BLOCK], [zero; BLOCK]);
            let end = rows.min(done + CHUNK);
            for r in done..end {
                // SAFETY: `r` is a row before the block, the rest is the caller's promise.
                unsafe {
                    let re = self.re.add(r * self.stride);
                    let b_re = V::load(re.add(at));
                    if COMPLEX {
                        let im = self.im.add(r * self.stride);
                        let b_im = V::load(im.add(at));
                        for i in 0..BLOCK {
                            let a_re = V::splat(*re.add(first + i));
                            let a_im = V::splat(*im.add(first + i));
                            sum_re[i] = a_im.mul_add(b_im, a_re.mul_add(b_re, sum_re[i]));
                            sum_im[i] = a_im.neg_mul_add(b_re, a_re.mul_add(b_im, sum_im[i]));
                        }
                    } else {
                        for (i, sum) in sum_re.iter_mut().enumerate() {
                            let a_re = V::splat(*re.add(first + i));
                            *sum = a_re.mul_add(b_re, *sum);
                        }
                    }
                }
            }
            for i in 0..BLOCK {
                total_re[i] = total_re[i].sub(sum_re[i]);
                if COMPLEX {
                    total_im[i] = total_im[i].sub(sum_im[i]);
                }
            }
            done = end;
        }
        for i in 0..BLOCK {
            let to = (self.rows + first + i) * self.stride + at;
            // SAFETY: the rows of the block lie within the padded rows.
            unsafe {
                total_re[i].store(self.re.add(to));
                if COMPLEX {
                    total_im[i].store(self.im.add(to));
                }
            }
        }
    }

    /// Takes the rows of the block before `j` off row `j` and divides it by the root of its pivot;
    /// `false` when the pivot is not positive.
    ///
    /// # Safety
    /// As [`Self::factor`]; the block's rows before `j` are finished.
    #[inline(always)]
    unsafe fn finish_row<V: Vector<Scalar = T>, const COMPLEX: bool>(
        self,
        shift: T,
        first: usize,
        j: usize,
        start: usize,
    ) -> bool {
        let row = (self.rows + j) * self.stride;
        // SAFETY: rows of the block, vectors within the padded columns.
        unsafe {
            for l in first..j {
                let other = (self.rows + l) * self.stride;
                let a_re = V::splat(*self.re.add(other + j));
                for at in (start..self.columns).step_by(V::LANES) {
                    let b_re = V::load(self.re.add(other + at));
                    let mut re = a_re.neg_mul_add(b_re, V::load(self.re.add(row + at)));
                    if COMPLEX {
                        let a_im = V::splat(*self.im.add(other + j));
                        let b_im = V::load(self.im.add(other + at));
                        re = a_im.neg_mul_add(b_im, re);
                        let im = a_re.neg_mul_add(b_im, V::load(self.im.add(row + at)));
                        a_im.mul_add(b_re, im).store(self.im.add(row + at));
                    }
                    re.store(self.re.add(row + at));
                }
            }
            let pivot = shift + *self.re.add(row + j);
            // NaN is not positive either.
            if !(pivot > T::zero() && pivot.is_finite()) {
                return false;
            }
            let root = pivot.sqrt();
            let reciprocal = V::splat(T::one() / root);
            for at in (start..self.columns).step_by(V::LANES) {
                let to = self.re.add(row + at);
                V::load(to).mul(reciprocal).store(to);
                if COMPLEX {
                    let to = self.im.add(row + at);
                    V::load(to).mul(reciprocal).store(to);
                }
            }
            *self.re.add(row + j) = root;
            if COMPLEX {
                *self.im.add(row + j) = T::zero();
            }
        }
        true
    }
}
