//! Blocks of a large product, tile after tile.
//!
//! `unsafe`: see the module above.

use super::{OVERRUN, ROWS};
use crate::real::Real;
use crate::vector::{Kernel, Present, Promised, Vector, prefetch};

/// `C = A B` or `C + A B` for a block of `A` and panels of `B`.
///
/// Whoever runs one promises that the panels are there in full, and that `out` has these rows and columns, for this job alone.
pub struct BlockProduct<T> {
    /// Rows, steps, columns.
    pub(super) shape: [usize; 3],
    pub(super) left: *const T,
    pub(super) right: *const T,
    /// From one panel of `B` to the next.
    pub(super) panel: usize,
    pub(super) out: *mut T,
    pub(super) out_stride: usize,
    pub(super) accumulate: bool,
}

impl<T: Real> Kernel<T> for Promised<BlockProduct<T>> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let job = self.job();
        let [rows, steps, columns] = job.shape;
        let width = 2 * V::LANES;
        for (panel, column) in (0..columns).step_by(width).enumerate() {
            for row in (0..rows).step_by(ROWS) {
                // SAFETY: the panels are there in full; `C` has `rows x columns` values that are this task's alone.
                unsafe {
                    let out = job.out.add(row * job.out_stride + column);
                    let (height, here) = (ROWS.min(rows - row), width.min(columns - column));
                    // They arrive while the sums are made.
                    for i in 0..height {
                        prefetch(out.add(i * job.out_stride));
                        prefetch(out.add(i * job.out_stride + here - 1));
                    }
                    let left = job.left.add(row * steps);
                    let sums = tile::<V>(steps, left, job.right.add(panel * job.panel));
                    if (height, here) == (ROWS, width) {
                        job.store_tile(sums, out);
                    } else {
                        job.store_edge(sums, out, height, here);
                    }
                }
            }
        }
    }
}

impl<T: Real> BlockProduct<T> {
    #[inline(always)]
    unsafe fn store_tile<V: Vector<Scalar = T>>(&self, sums: [[V; 2]; ROWS], out: *mut T) {
        for (i, pair) in sums.into_iter().enumerate() {
            for (half, sum) in pair.into_iter().enumerate() {
                // SAFETY: the caller's promise: a whole tile is there.
                unsafe {
                    let to = out.add(i * self.out_stride + half * V::LANES);
                    let sum = if self.accumulate {
                        V::load(to).add(sum)
                    } else {
                        sum
                    };
                    sum.store(to);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn store_edge<V: Vector<Scalar = T>>(
        &self,
        sums: [[V; 2]; ROWS],
        out: *mut T,
        height: usize,
        width: usize,
    ) {
        let mut row = [T::zero(); 2 * OVERRUN];
        for (i, [low, high]) in sums.into_iter().enumerate().take(height) {
            // SAFETY: `row` holds two of the longest vectors; `height x width` values are there by the caller's promise.
            unsafe {
                low.store(row.as_mut_ptr());
                high.store(row.as_mut_ptr().add(V::LANES));
                for (j, sum) in row.iter().enumerate().take(width) {
                    let to = out.add(i * self.out_stride + j);
                    *to = if self.accumulate { *to + *sum } else { *sum };
                }
            }
        }
    }
}

/// The sums of one tile from a panel of `A` and one of `B`.
#[inline(always)]
unsafe fn tile<V: Vector>(
    steps: usize,
    left: *const V::Scalar,
    right: *const V::Scalar,
) -> [[V; 2]; ROWS] {
    // SAFETY: the caller promises the instruction set.
    let mut sums = [[unsafe { V::splat(num_traits::Zero::zero()) }; 2]; ROWS];
    for step in 0..steps {
        // SAFETY: the caller promises `steps` steps of both panels.
        unsafe {
            let right = right.add(step * 2 * V::LANES);
            let (low, high) = (V::load(right), V::load(right.add(V::LANES)));
            for (i, [a, b]) in sums.iter_mut().enumerate() {
                let factor = V::splat(*left.add(step * ROWS + i));
                *a = factor.mul_add(low, *a);
                *b = factor.mul_add(high, *b);
            }
        }
    }
    sums
}
