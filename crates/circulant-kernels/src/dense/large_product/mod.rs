//! A large real matrix product, `C = A B` or `C + A B` with `C[i][n] = sum_k A[i][k] B[k][n]`.
//!
//! On AVX2 it is our own: on an AMD EPYC it is 1.1 to 1.4 times as fast as the crate `gemm`, and about as fast as MKL
//! (`docs/performance.md`). Everywhere else, and for thin matrices, it is `gemm`'s, with which a dense model keeps up with its
//! peers on AVX-512.
//!
//! | memory | what lies there | values |
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
//! `unsafe`: matrices are pointers with strides. [`MatrixView`] holds a slice together with its shape, [`product`] checks that
//! the shapes fit, and tasks write different numbers of `C`.

mod panels;
mod tiles;

use std::ops::Range;

pub use self::panels::PackLines;
pub use self::tiles::BlockProduct;
use crate::real::Real;
use crate::runtime::chunks::best_isa;
use crate::runtime::scratch::Scratch;
use crate::runtime::shared::Shared;
use crate::runtime::threads::share;
use crate::vector::{Isa, MAX_LANES, Promised};

/// Products with fewer multiplications stay on their thread.
const MULTIPLIED_ALONE: usize = 1 << 18;
/// Matrices with fewer rows, columns or steps are thin: to copy them takes too long beside multiplying them.
const THIN_BELOW: usize = 96;

/// Rows of a tile of `C`: a step of `k` is twelve fused multiply-adds for eight loads.
const ROWS: usize = 6;
/// Steps of `k` that a panel holds.
const STEPS: usize = 400;
/// Rows of `A` in a block.
const BLOCK: usize = 96;
/// Values of `B` that are copied at a time.
pub const PACKED: usize = 1 << 20;
/// What a panel may overrun its end by: less than the longest vector.
const OVERRUN: usize = MAX_LANES;

/// `rows x columns` values with strides, all within `values`.
#[derive(Clone, Copy)]
pub struct MatrixView<'a, T> {
    values: &'a [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a, T> MatrixView<'a, T> {
    pub fn new(values: &'a [T], rows: usize, columns: usize) -> Self {
        assert!(
            rows.checked_mul(columns) == Some(values.len()),
            "a whole matrix"
        );
        Self {
            values,
            rows,
            columns,
            row_stride: columns,
            column_stride: 1,
        }
    }

    pub fn transposed(self) -> Self {
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
    left: MatrixView<'_, T>,
    right: MatrixView<'_, T>,
    accumulate: bool,
    out: &mut [T],
) {
    expect_shapes(&left, &right, out);
    let thinnest = left.rows.min(left.columns).min(right.columns);
    // Measured on AVX2 alone; see the head of the file.
    if thinnest >= THIN_BELOW && best_isa().is_avx2() {
        return own_product(best_isa(), left, right, accumulate, out);
    }
    let multiplications = left.rows * left.columns * right.columns;
    let parallelism = if multiplications < MULTIPLIED_ALONE {
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

/// What all pointers below rest on.
fn expect_shapes<T>(left: &MatrixView<'_, T>, right: &MatrixView<'_, T>, out: &[T]) {
    assert!(
        left.columns == right.rows && left.rows.checked_mul(right.columns) == Some(out.len()),
        "shapes of a product"
    );
}

/// [`product`] by the kernels below.
pub fn own_product<T: Real>(
    isa: Isa,
    left: MatrixView<'_, T>,
    right: MatrixView<'_, T>,
    accumulate: bool,
    out: &mut [T],
) {
    expect_shapes(&left, &right, out);
    let (rows, steps, columns) = (left.rows, left.columns, right.columns);
    if rows == 0 || columns == 0 {
        return;
    }
    if steps == 0 && !accumulate {
        out.fill(T::zero());
    }
    let width = 2 * isa.lanes::<T>();
    let (tiles, panels) = (rows.div_ceil(ROWS), columns.div_ceil(width));
    let threads = if rows * steps * columns < MULTIPLIED_ALONE {
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
            // SAFETY: `B` has these columns and steps, and the panel its own part of `packed`.
            T::pack_lines(isa, unsafe { Promised::new(job) });
        });
        let factors = Operands {
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
struct Operands<'a, T> {
    isa: Isa,
    left: MatrixView<'a, T>,
    /// Those that `packed` holds.
    steps: Range<usize>,
    packed: Shared<T>,
    /// Of a panel.
    width: usize,
    out: Shared<T>,
    columns: usize,
    accumulate: bool,
}

impl<T: Real> Operands<'_, T> {
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
            // SAFETY: `A` has these rows and steps, and `block` room for them and the overrun.
            T::pack_lines(self.isa, unsafe { Promised::new(job) });
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
            // SAFETY: both factors have just been packed; no other task has these tiles and panels of `C`.
            T::block_product(self.isa, unsafe { Promised::new(job) });
        }
    }
}
