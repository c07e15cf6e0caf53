//! The matrices of one head in the L1 and L2 caches: copies with rows of whole vectors, transposes, and
//! the rows of a softmax.
//!
//! `unsafe`: see the head of the module; every pointer below stays within a head or within the
//! scratch memory that was cut for the block.

use super::{Head, HeadColumns};
use crate::dense::small_product::{RowMajor, Strided};
use crate::real::Real;
use crate::transformer::dropout::{Dropout, GROUP};
use crate::vector::{MAX_LANES, Present, Tile, Vector};

/// Sums and maxima of a row that run side by side.
pub(super) const LANES: usize = 16;

/// `len` rounded up to whole vectors of any instruction set.
pub(super) fn padded(len: usize) -> usize {
    len.next_multiple_of(MAX_LANES)
}

/// Room for `[rows, columns]`, whose rows are rounded up to whole vectors.
pub(super) fn block_len(rows: usize, columns: usize) -> usize {
    rows * padded(columns)
}

/// A row-major matrix in scratch memory.
pub(super) struct HeadBlock<'a, T> {
    pub(super) values: &'a mut [T],
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Values from a row to the next, whole vectors.
    pub(super) row: usize,
}

impl<'a, T: Real> HeadBlock<'a, T> {
    /// Takes its memory off the front of `scratch`. What it holds at first is anything.
    #[inline(always)]
    pub(super) fn cut<V: Vector<Scalar = T>>(
        scratch: &mut &'a mut [T],
        rows: usize,
        columns: usize,
    ) -> Self {
        let row = columns.next_multiple_of(V::LANES);
        let (values, rest) = std::mem::take(scratch).split_at_mut(rows * row);
        *scratch = rest;
        Self {
            values,
            rows,
            columns,
            row,
        }
    }

    #[inline(always)]
    pub(super) fn left(&self) -> Strided<T> {
        Strided {
            start: self.values.as_ptr(),
            row: self.row,
            column: 1,
        }
    }

    #[inline(always)]
    pub(super) fn transposed_left(&self) -> Strided<T> {
        Strided {
            start: self.values.as_ptr(),
            row: 1,
            column: self.row,
        }
    }

    #[inline(always)]
    pub(super) fn right(&self) -> RowMajor<*const T> {
        RowMajor {
            start: self.values.as_ptr(),
            row: self.row,
        }
    }

    #[inline(always)]
    pub(super) fn out(&mut self) -> RowMajor<*mut T> {
        RowMajor {
            start: self.values.as_mut_ptr(),
            row: self.row,
        }
    }

    /// Copies a head, `[tokens, dim]`, times `factor`.
    #[inline(always)]
    pub(super) fn copy_head(&mut self, head: Head, values: &[T], factor: T) {
        for token in 0..self.rows {
            let from = &values[head.first + token * head.width..][..self.columns];
            let to = &mut self.values[token * self.row..][..self.row];
            let (to, padding) = to.split_at_mut(self.columns);
            for (to, &x) in to.iter_mut().zip(from) {
                *to = x * factor;
            }
            padding.fill(T::zero());
        }
    }

    /// Copies a head transposed, `[dim, tokens]`.
    #[inline(always)]
    pub(super) fn transpose_head<V: Vector<Scalar = T>>(
        &mut self,
        _: Present<V>,
        head: Head,
        values: &[T],
    ) {
        let values = &values[head.first..];
        let side = <V::Tile as Vector>::LANES;
        let (tokens, dim) = (head.tokens - head.tokens % side, head.dim - head.dim % side);
        assert!(
            values.len() >= (head.tokens - 1) * head.width + head.dim
                && self.values.len() >= head.dim * self.row
                && self.row >= head.tokens
        );
        let (from, to) = (values.as_ptr(), self.values.as_mut_ptr());
        for token in (0..tokens).step_by(side) {
            for k in (0..dim).step_by(side) {
                // SAFETY: tokens `token..token + side` and their values `k..k + side` are within
                // the head, and so within `values`; the block has `dim` rows of `tokens` or more.
                unsafe {
                    V::Tile::transpose(
                        |i| V::Tile::load(from.add((token + i) * head.width + k)),
                        |j| to.add((k + j) * self.row + token),
                    );
                }
            }
        }
        for token in 0..head.tokens {
            let first = if token < tokens { dim } else { 0 };
            for k in first..head.dim {
                self.values[k * self.row + token] = values[token * head.width + k];
            }
        }
        for row in self.values.chunks_exact_mut(self.row) {
            row[head.tokens..].fill(T::zero());
        }
    }

    /// Writes the rows to the columns of a head, each times its factor, or all times the only one.
    ///
    /// # Safety
    /// `to` must hold the head, and nobody else may use its columns there.
    #[inline(always)]
    pub(super) unsafe fn write_head(&self, head: Head, to: HeadColumns<T>, factors: &[T]) {
        for token in 0..self.rows {
            let from = &self.values[token * self.row..][..self.columns];
            let factor = factors[token.min(factors.len() - 1)];
            // SAFETY: the numbers of a token within the head.
            let to = unsafe {
                let start = to.start.add(head.first + token * head.width);
                std::slice::from_raw_parts_mut(start, head.dim)
            };
            for (to, &x) in to.iter_mut().zip(from) {
                *to = x * factor;
            }
        }
    }

    #[inline(always)]
    pub(super) fn row_of(&self, i: usize) -> &[T] {
        &self.values[i * self.row..][..self.columns]
    }

    /// All values, padding included, to their exponentials. One flat loop: rows are too short for a
    /// loop of their own to be vector code throughout.
    #[inline(always)]
    pub(super) fn exponentials<V: Vector<Scalar = T>>(&mut self) {
        for value in self.values.iter_mut() {
            *value = value.exponential_of_negative::<V>();
        }
    }

    /// `x = x*factor - shift` in row `i`.
    #[inline(always)]
    pub(super) fn shift_row<V: Vector<Scalar = T>>(&mut self, i: usize, factor: T, shift: T) {
        for value in &mut self.values[i * self.row..][..self.row] {
            *value = V::fused(*value, factor, -shift);
        }
    }

    /// Zeroes what the dropout drops; `numbers` has room for the groups of a head.
    #[inline(always)]
    pub(super) fn drop_numbers(&mut self, dropout: Dropout, numbers: &[u16]) {
        let threshold = dropout.threshold();
        let rows = self.values.chunks_exact_mut(self.row);
        for (row, numbers) in rows.zip(numbers.chunks_exact(self.columns)) {
            for (value, &number) in row.iter_mut().zip(numbers) {
                *value = if number < threshold {
                    T::zero()
                } else {
                    *value
                };
            }
        }
    }
}

/// Room for the random numbers of a head, in numbers of type `T`.
pub(super) fn random_len<T>(tokens: usize) -> usize {
    let groups = (tokens * tokens).div_ceil(GROUP);
    (groups * GROUP * size_of::<u16>()).div_ceil(size_of::<T>())
}

/// The random numbers of a head, in the memory of `scratch`.
#[inline(always)]
pub(super) fn random_numbers<T: Real>(dropout: Dropout, head: Head, scratch: &mut [T]) -> &[u16] {
    // SAFETY: the number types have neither padding nor forbidden bits, and their alignment is a
    // multiple of that of `u16`.
    let (_, numbers, _) = unsafe { scratch.align_to_mut::<u16>() };
    let groups = (head.tokens * head.tokens).div_ceil(GROUP);
    let numbers = &mut numbers[..groups * GROUP];
    dropout.numbers(head.first_group, numbers);
    numbers
}
