//! A large real matrix product, `C = A B` or `C + A B` with `C[i][n] = sum_k A[i][k] B[k][n]`.
//!
//! On AVX2 it is our own: on an AMD EPYC it is 1.1 to 1.4 times as fast as the crate `gemm`, and about as fast as MKL
//! (`docs/performance.md`). Everywhere else, and for thin matrices, it is `gemm`'s, with which a dense model keeps up with its
//! peers on AVX-512.
//!
//! | memory | what lies there | numbers |
//! | --- | --- | --- |
//! | registers | a tile of `C` | [`ROWS`] rows of two vectors |
//! | first-level cache | a panel of `B`, two vectors wide | up to [`STEPS`] steps of `k` |
//! | second-level cache | a block of `A`, panels of [`ROWS`] rows | up to [`BLOCK`] rows of [`STEPS`] steps |
//! | shared cache | panels of `B` for all columns | up to [`PACKED`] |
//!
//! A panel is a copy of `width` lines (rows of `A`, columns of `B`): number `i` of step `k` is at `k*width + i`, and lines that the
//! matrix does not have are zero. All threads copy `B`, then each takes blocks of rows of `C` through all steps. The order of a
//! sum depends on the shape alone.
//!
//! `unsafe`: matrices are pointers with strides. [`Matrix`] holds a slice together with its shape, [`product`] checks that
//! the shapes fit, and tasks write different numbers of `C`.

use std::ops::Range;

use crate::blocks::Shared;
use crate::chunks::best_isa;
use crate::real::Real;
use crate::scratch::Scratch;
use crate::simd::{Isa, Kernel, Tile, Vector, prefetch};
use crate::threads::share;

/// Products with fewer multiplications stay on their thread.
const SEQUENTIAL_BELOW: usize = 1 << 18;
/// Matrices with fewer rows, columns or steps are thin: to copy them takes too long beside multiplying them.
const THIN_BELOW: usize = 96;

/// Rows of a tile of `C`: a step of `k` is twelve fused multiply-adds for eight loads.
const ROWS: usize = 6;
/// Steps of `k` that a panel holds.
const STEPS: usize = 400;
/// Rows of `A` in a block.
const BLOCK: usize = 96;
/// Numbers of `B` that are copied at a time.
const PACKED: usize = 1 << 20;
/// What a panel may overrun its end by: less than the longest vector.
const OVERRUN: usize = 16;

/// `rows x columns` numbers with strides, all within `values`.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    values: &'a [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a, T> Matrix<'a, T> {
    pub(crate) fn new(values: &'a [T], rows: usize, columns: usize) -> Self {
        assert!(values.len() == rows * columns, "a whole matrix");
        Self {
            values,
            rows,
            columns,
            row_stride: columns,
            column_stride: 1,
        }
    }

    pub(crate) fn transposed(self) -> Self {
        Self {
            values: self.values,
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }
}

/// `out = left * right`, or `out + left * right` when it accumulates; `out` row-major.
pub(crate) fn product<T: Real>(
    left: Matrix<'_, T>,
    right: Matrix<'_, T>,
    accumulate: bool,
    out: &mut [T],
) {
    assert!(
        left.columns == right.rows && out.len() == left.rows * right.columns,
        "shapes of a product"
    );
    let thinnest = left.rows.min(left.columns).min(right.columns);
    if thinnest >= THIN_BELOW && is_ours_faster(best_isa()) {
        return own_product(best_isa(), left, right, accumulate, out);
    }
    let multiplications = left.rows * left.columns * right.columns;
    let parallelism = if multiplications < SEQUENTIAL_BELOW {
        gemm::Parallelism::None
    } else {
        gemm::Parallelism::Rayon(0)
    };
    // SAFETY: the strides reach every element of `left` and `right` exactly once (a row-major matrix or its transpose),
    // `out` has one element per row and column, and nothing else can see it.
    unsafe {
        gemm::gemm(
            left.rows,
            right.columns,
            left.columns,
            out.as_mut_ptr(),
            1,
            right.columns as isize,
            accumulate,
            left.values.as_ptr(),
            left.column_stride as isize,
            left.row_stride as isize,
            right.values.as_ptr(),
            right.column_stride as isize,
            right.row_stride as isize,
            T::one(),
            T::one(),
            false,
            false,
            false,
            parallelism,
        );
    }
}

/// Measured on AVX2 alone; see the head of the file.
fn is_ours_faster(isa: Isa) -> bool {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => true,
        _ => false,
    }
}

/// [`product`] by the kernels below.
fn own_product<T: Real>(
    isa: Isa,
    left: Matrix<'_, T>,
    right: Matrix<'_, T>,
    accumulate: bool,
    out: &mut [T],
) {
    let (rows, steps, columns) = (left.rows, left.columns, right.columns);
    if rows == 0 || columns == 0 {
        return;
    }
    if steps == 0 && !accumulate {
        out.fill(T::zero());
    }
    let width = 2 * isa.lanes::<T>();
    let (tiles, panels) = (rows.div_ceil(ROWS), columns.div_ceil(width));
    let threads = if rows * steps * columns < SEQUENTIAL_BELOW {
        1
    } else {
        rayon::current_num_threads()
    };
    let run = |tasks: usize, work: &(dyn Fn(usize) + Sync)| {
        if threads == 1 {
            (0..tasks).for_each(work);
        } else {
            share(tasks, work);
        }
    };
    // As many blocks for every thread; where there are too few rows for that, parts of the columns.
    let blocks = rows.div_ceil(BLOCK).next_multiple_of(threads).min(tiles);
    let parts = threads.div_ceil(blocks).min(panels);
    let rounds = (steps * columns).div_ceil(PACKED).min(steps);
    let longest = steps.div_ceil(rounds.max(1));
    let mut packed = Scratch::<T>::take(panels * width * longest);
    let out = Shared::writer(out);
    for round in 0..rounds {
        let steps = part_of(steps, rounds, round);
        let packed = Shared::writer(&mut packed);
        run(panels, &|panel| {
            let job = PackLines {
                from: right.transposed().lines(panel * width, steps.start),
                lines: width.min(columns - panel * width),
                width,
                steps: steps.len(),
                to: packed.at(panel * width * steps.len()),
            };
            T::pack_lines(isa, job);
        });
        let factors = Factors {
            isa,
            left,
            steps: steps.clone(),
            packed,
            width,
            out,
            columns,
            accumulate: accumulate || round > 0,
        };
        run(blocks * parts, &|task| {
            factors.multiply(
                part_of(tiles, blocks, task / parts),
                part_of(panels, parts, task % parts),
            );
        });
    }
}

/// Number `part` of `parts` parts of `0..count`; the longest has `count.div_ceil(parts)`.
fn part_of(count: usize, parts: usize, part: usize) -> Range<usize> {
    let cut = |part: usize| (part * count).div_ceil(parts);
    cut(part)..cut(part + 1)
}

/// `A`, some steps of `B` in panels, and `C`.
struct Factors<'a, T> {
    isa: Isa,
    left: Matrix<'a, T>,
    /// Those that `packed` holds.
    steps: Range<usize>,
    packed: Shared<T>,
    /// Of a panel.
    width: usize,
    out: Shared<T>,
    columns: usize,
    accumulate: bool,
}

impl<T: Real> Factors<'_, T> {
    /// A block of `C`: these tiles of rows, these panels of columns.
    fn multiply(&self, tiles: Range<usize>, panels: Range<usize>) {
        let chunks = self.steps.len().div_ceil(STEPS);
        let longest = self.steps.len().div_ceil(chunks);
        let mut block = Scratch::<T>::take(tiles.len() * ROWS * longest + OVERRUN);
        let rows = tiles.start * ROWS..(tiles.end * ROWS).min(self.left.rows);
        let columns = panels.start * self.width..(panels.end * self.width).min(self.columns);
        for chunk in 0..chunks {
            let steps = part_of(self.steps.len(), chunks, chunk);
            let job = PackLines {
                from: self.left.lines(rows.start, self.steps.start + steps.start),
                lines: rows.len(),
                width: ROWS,
                steps: steps.len(),
                to: block.as_mut_ptr(),
            };
            T::pack_lines(self.isa, job);
            let panel = self.width * self.steps.len();
            let job = BlockProduct {
                shape: [rows.len(), steps.len(), columns.len()],
                left: block.as_ptr(),
                right: self
                    .packed
                    .at(panels.start * panel + steps.start * self.width),
                panel,
                out: self.out.at(rows.start * self.columns + columns.start),
                out_stride: self.columns,
                accumulate: self.accumulate || chunk > 0,
            };
            T::block_product(self.isa, job);
        }
    }
}

/// Where the lines of a panel come from: rows of `A`, columns of `B`.
#[derive(Clone, Copy)]
struct Lines<T> {
    start: *const T,
    line: usize,
    step: usize,
}

impl<T> Matrix<'_, T> {
    /// The rows from `row` on, from step `step` on.
    fn lines(&self, row: usize, step: usize) -> Lines<T> {
        let first = row * self.row_stride + step * self.column_stride;
        Lines {
            start: self.values.as_ptr().wrapping_add(first),
            line: self.row_stride,
            step: self.column_stride,
        }
    }
}

/// Copies lines into panels of `width` lines, one behind the other; lines that the last one misses are zero. Panels of [`ROWS`]
/// lines may overrun their end by less than [`OVERRUN`]; those of whole vectors do not.
///
/// Whoever makes one promises that the matrix has these lines and steps, and `to` room for the panels and the overrun.
pub struct PackLines<T> {
    from: Lines<T>,
    lines: usize,
    /// [`ROWS`] or two vectors.
    width: usize,
    steps: usize,
    to: *mut T,
}

impl<T: Real> Kernel<T> for PackLines<T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        for first in (0..self.lines).step_by(self.width) {
            let lines = self.width.min(self.lines - first);
            let done = match (self.from.line == 1 && lines == self.width, self.width) {
                (true, ROWS) => self.copy(
                    first,
                    #[inline(always)]
                    |from, to| {
                        // SAFETY: see the job.
                        unsafe { from.copy_to_nonoverlapping(to, ROWS) }
                    },
                ),
                (true, _) => self.copy(
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
                (false, _) if self.from.step == 1 => self.transpose::<V>(first, lines),
                (false, _) => 0,
            };
            for step in done..self.steps {
                for line in 0..self.width {
                    // SAFETY: see the job.
                    unsafe {
                        *self.to(first, line, step) = if line < lines {
                            *self.from(first + line, step)
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
    #[inline(always)]
    fn transpose<V: Vector<Scalar = T>>(&self, first: usize, lines: usize) -> usize {
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

/// `C = A B` or `C + A B` for a block of `A` and panels of `B`.
pub struct BlockProduct<T> {
    /// Rows, steps, columns.
    shape: [usize; 3],
    left: *const T,
    right: *const T,
    /// From one panel of `B` to the next.
    panel: usize,
    out: *mut T,
    out_stride: usize,
    accumulate: bool,
}

impl<T: Real> Kernel<T> for BlockProduct<T> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self) {
        let [rows, steps, columns] = self.shape;
        let width = 2 * V::LANES;
        for (panel, column) in (0..columns).step_by(width).enumerate() {
            for row in (0..rows).step_by(ROWS) {
                // SAFETY: the panels are there in full; `C` has `rows x columns` numbers that are this task's alone.
                unsafe {
                    let out = self.out.add(row * self.out_stride + column);
                    let (height, here) = (ROWS.min(rows - row), width.min(columns - column));
                    // They arrive while the sums are made.
                    for i in 0..height {
                        prefetch(out.add(i * self.out_stride));
                        prefetch(out.add(i * self.out_stride + here - 1));
                    }
                    let left = self.left.add(row * steps);
                    let sums = tile::<V>(steps, left, self.right.add(panel * self.panel));
                    if (height, here) == (ROWS, width) {
                        self.store_tile(sums, out);
                    } else {
                        self.store_edge(sums, out, height, here);
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
            // SAFETY: `row` holds two of the longest vectors; `height x width` numbers are there by the caller's promise.
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
    let mut sums = [[V::splat(num_traits::Zero::zero()); 2]; ROWS];
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole numbers so small that every sum is exact in any order.
    fn numbers<T: Real>(seed: usize, count: usize) -> Vec<T> {
        (0..count)
            .map(|i| T::of(((i * 7919 + seed * 104_729) % 7) as f64 - 3.0))
            .collect()
    }

    fn check<T: Real>(isa: Isa, [rows, steps, columns]: [usize; 3]) {
        let (a, b) = (
            numbers::<T>(1, rows * steps),
            numbers::<T>(2, steps * columns),
        );
        let before = numbers::<T>(3, rows * columns);
        for [turned_a, turned_b, accumulate] in (0..8).map(|i| [i & 1 > 0, i & 2 > 0, i & 4 > 0]) {
            let matrix = |values, rows, columns, turned: bool| {
                if turned {
                    Matrix::new(values, columns, rows).transposed()
                } else {
                    Matrix::new(values, rows, columns)
                }
            };
            let left = matrix(&a[..], rows, steps, turned_a);
            let right = matrix(&b[..], steps, columns, turned_b);
            let at = |m: &Matrix<'_, T>, i, j| m.values[i * m.row_stride + j * m.column_stride];
            let mut out = if accumulate {
                before.clone()
            } else {
                vec![T::nan(); rows * columns]
            };
            own_product(isa, left, right, accumulate, &mut out);
            for (index, got) in out.into_iter().enumerate() {
                let (i, n) = (index / columns, index % columns);
                let start = if accumulate { before[index] } else { T::zero() };
                let expected =
                    (0..steps).fold(start, |sum, k| sum + at(&left, i, k) * at(&right, k, n));
                assert!(
                    got == expected,
                    "{isa:?} {rows} x {steps} x {columns}, {turned_a} {turned_b} {accumulate}: {got:?} instead of {expected:?} at {i}, {n}"
                );
            }
        }
    }

    #[test]
    fn equals_the_sums_on_every_instruction_set() {
        let shapes = [
            [1, 1, 1],
            [5, 3, 7],
            [6, 8, 16],
            [7, 9, 17],
            [12, 16, 64],
            [13, 401, 33],
            [97, 65, 47],
            [200, 31, 49],
            [3, 50, 300],
            [40, 20, 300],
            [4, 0, 5],
            [0, 4, 5],
            [4, 5, 0],
        ];
        for isa in Isa::available() {
            for shape in shapes {
                check::<f32>(isa, shape);
                check::<f64>(isa, shape);
            }
        }
    }

    #[test]
    fn steps_beyond_one_round_are_added() {
        // More numbers of `B` than are packed at a time, few enough elsewhere for the slow sums.
        check::<f32>(best_isa(), [7, PACKED / 40 + 3, 41]);
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let (a, b) = (
            (0..130 * 500).map(|i| (i as f32).sin()).collect::<Vec<_>>(),
            (0..500 * 70).map(|i| (i as f32).cos()).collect::<Vec<_>>(),
        );
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            let mut out = vec![0.0; 130 * 70];
            let (left, right) = (Matrix::new(&a, 130, 500), Matrix::new(&b, 500, 70));
            let work = || own_product(best_isa(), left, right, false, &mut out);
            pool.build().unwrap().install(work);
            out
        };
        let alone = run(1);
        assert!([2, 3, 7].into_iter().all(|threads| run(threads) == alone));
    }
}
