//! Panels of a large product: lines of a matrix, copied so that the product reads them one number after the other.
//!
//! `unsafe`: see the module above.

use super::{MatrixView, ROWS};
use crate::real::Real;
use crate::vector::{Kernel, Present, Promised, Tile, Vector};

/// Where the lines of a panel come from: rows of `A`, columns of `B`.
#[derive(Clone, Copy)]
pub(super) struct Lines<T> {
    start: *const T,
    line: usize,
    step: usize,
}

impl<T> MatrixView<'_, T> {
    /// The rows from `row` on, from step `step` on.
    pub(super) fn lines(&self, row: usize, step: usize) -> Lines<T> {
        let first = row * self.row_stride + step * self.column_stride;
        Lines {
            start: self.values.as_ptr().wrapping_add(first),
            line: self.row_stride,
            step: self.column_stride,
        }
    }
}

/// Copies lines into panels of `width` lines, one behind the other; lines that the last one misses are zero. Panels of [`ROWS`]
/// lines may overrun their end by less than [`OVERRUN`](super::OVERRUN); those of whole vectors do not.
///
/// Whoever runs one promises that the matrix has these lines and steps, and `to` room for the panels and the overrun.
pub struct PackLines<T> {
    pub(super) from: Lines<T>,
    pub(super) lines: usize,
    /// [`ROWS`] or two vectors.
    pub(super) width: usize,
    pub(super) steps: usize,
    pub(super) to: *mut T,
}

impl<T: Real> Kernel<T> for Promised<PackLines<T>> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let job = self.job();
        for first in (0..job.lines).step_by(job.width) {
            let lines = job.width.min(job.lines - first);
            let done = match (job.from.line == 1 && lines == job.width, job.width) {
                (true, ROWS) => job.copy(
                    first,
                    #[inline(always)]
                    |from, to| {
                        // SAFETY: see the job.
                        unsafe { from.copy_to_nonoverlapping(to, ROWS) }
                    },
                ),
                (true, _) => job.copy(
                    first,
                    #[inline(always)]
                    |from, to| {
                        // SAFETY: see the job; the width is that of two vectors.
                        unsafe {
                            V::load(from).store(to);
                            V::load(from.add(V::LANES)).store(to.add(V::LANES));
                        }
                    },
                ),
                // SAFETY: see the job.
                (false, _) if job.from.step == 1 => unsafe { job.transpose::<V>(first, lines) },
                (false, _) => 0,
            };
            for step in done..job.steps {
                for line in 0..job.width {
                    // SAFETY: see the job.
                    unsafe {
                        *job.to(first, line, step) = if line < lines {
                            *job.from(first + line, step)
                        } else {
                            T::zero()
                        };
                    }
                }
            }
        }
    }
}

impl<T: Real> PackLines<T> {
    #[inline(always)]
    fn from(&self, line: usize, step: usize) -> *const T {
        let Lines {
            start,
            line: across,
            step: along,
        } = self.from;
        start.wrapping_add(line * across + step * along)
    }

    #[inline(always)]
    fn to(&self, first: usize, line: usize, step: usize) -> *mut T {
        self.to
            .wrapping_add(first * self.steps + step * self.width + line)
    }

    /// A panel whose lines are neighbours in memory, by `copy` for every step. Returns how many steps that were.
    #[inline(always)]
    fn copy(&self, first: usize, copy: impl Fn(*const T, *mut T)) -> usize {
        for step in 0..self.steps {
            copy(self.from(first, step), self.to(first, 0, step));
        }
        self.steps
    }

    /// A panel whose steps are neighbours in memory, by transposed squares. Returns how many steps that were.
    ///
    /// # Safety
    /// What the job asks for, and the instruction set of `V`.
    #[inline(always)]
    unsafe fn transpose<V: Vector<Scalar = T>>(&self, first: usize, lines: usize) -> usize {
        let side = <V::Tile as Vector>::LANES;
        let whole = self.steps - self.steps % side;
        for step in (0..whole).step_by(side) {
            // From the last line to the first: what overruns a step is mended by the next one's first square.
            for line in (0..self.width).step_by(side).rev() {
                // SAFETY: see the job.
                unsafe {
                    V::Tile::transpose(
                        #[inline(always)]
                        |i| {
                            if line + i < lines {
                                V::Tile::load(self.from(first + line + i, step))
                            } else {
                                V::Tile::splat(T::zero())
                            }
                        },
                        #[inline(always)]
                        |j| self.to(first, line, step + j),
                    );
                }
            }
        }
        whole
    }
}
