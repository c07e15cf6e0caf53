//! One bin as a tall matrix, `rows >= columns`, in split planes with room for a Cholesky factor
//! below it, and the power of two that brings all bins to a size where nothing overflows.

use crate::real::Real;
use crate::vector::{Isa, Kernel, MAX_LANES, Present, Vector};

/// Columns are padded to whole vectors of the widest instruction set.
const WIDEST: usize = MAX_LANES;
/// The factor is computed in blocks of this many rows.
pub const BLOCK: usize = 4;

/// `rows x columns`, complex or real, row-major planes. Columns from `columns` to `stride` are
/// zero. Below the matrix there is room for a factor of `columns` rows, rounded up to blocks.
#[derive(Debug, Clone)]
pub struct Matrix<T> {
    pub rows: usize,
    pub columns: usize,
    pub stride: usize,
    /// A real matrix leaves `im` as it is, and nothing reads it.
    pub complex: bool,
    pub re: Vec<T>,
    pub im: Vec<T>,
}

impl<T: Real> Matrix<T> {
    pub fn zeros(rows: usize, columns: usize, complex: bool) -> Self {
        // An odd number of cache lines: rows that are a power of two apart share few cache sets.
        let line = 64 / size_of::<T>();
        let lines = columns.next_multiple_of(WIDEST) / line;
        let stride = (lines + 1 - lines % 2) * line;
        let len = (rows + columns.next_multiple_of(BLOCK)) * stride;
        Self {
            rows,
            columns,
            stride,
            complex,
            re: vec![T::zero(); len],
            im: vec![T::zero(); if complex { len } else { 0 }],
        }
    }

    /// Fills the matrix from one of `rows x columns`, either way round: the real parts, row-major,
    /// and for a complex matrix the imaginary parts after them.
    pub fn load(&mut self, rows: usize, columns: usize, values: &[f64], scale: Scale) {
        let (re, im) = values.split_at(rows * columns);
        let from = Transposable::new(rows, columns, re);
        Self::fill(&mut self.re, self.stride, &from, scale);
        if self.complex {
            let from = Transposable::new(rows, columns, im);
            Self::fill(&mut self.im, self.stride, &from, scale);
        }
    }

    fn fill(plane: &mut [T], stride: usize, from: &Transposable<'_>, scale: Scale) {
        Isa::best().run::<f64, _>(Fill {
            plane,
            stride,
            from,
            scale,
        });
    }
}

/// Plain loops, compiled for the best instruction set.
struct Fill<'a, T> {
    plane: &'a mut [T],
    stride: usize,
    from: &'a Transposable<'a>,
    scale: Scale,
}

impl<T: Real> Kernel<f64> for Fill<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self, _: Present<V>) {
        let (rows, columns) = self.from.shape;
        if self.from.transpose {
            for (column, source) in self.from.values.chunks_exact(rows).enumerate() {
                for (row, &x) in source.iter().enumerate() {
                    self.plane[row * self.stride + column] = T::of(self.scale.apply(x));
                }
            }
        } else {
            let targets = self.plane.chunks_exact_mut(self.stride);
            for (to, from) in targets.zip(self.from.values.chunks_exact(columns)) {
                for (to, &x) in to.iter_mut().zip(from) {
                    *to = T::of(self.scale.apply(x));
                }
            }
        }
    }
}

impl Matrix<f64> {
    /// Row `r` of both planes, padding included; the second is empty for a real matrix.
    pub fn row(&self, r: usize) -> (&[f64], &[f64]) {
        let range = r * self.stride..(r + 1) * self.stride;
        let im = if self.complex {
            &self.im[range.clone()]
        } else {
            &[]
        };
        (&self.re[range], im)
    }

    /// The square root of the sum of all squares, not rounded in any direction.
    pub fn frobenius(&self) -> f64 {
        let squares = |row: &[f64]| row.iter().map(|x| x * x).sum::<f64>();
        (0..self.rows)
            .map(|r| {
                let (re, im) = self.row(r);
                squares(re) + squares(im)
            })
            .sum::<f64>()
            .sqrt()
    }
}

/// A row-major matrix that is read as it is or transposed, whichever is tall: both have the same
/// singular values, and the work grows with the square of the columns.
#[derive(Clone, Copy)]
struct Transposable<'a> {
    values: &'a [f64],
    shape: (usize, usize),
    transpose: bool,
}

impl<'a> Transposable<'a> {
    fn new(rows: usize, columns: usize, values: &'a [f64]) -> Self {
        let transpose = rows < columns;
        let shape = (rows.max(columns), rows.min(columns));
        Self {
            values,
            shape,
            transpose,
        }
    }
}

/// What one pass over values finds.
#[derive(Debug, Clone, Copy)]
pub struct Survey {
    pub finite: bool,
    /// The largest magnitude, of no use when something is not finite.
    pub largest: f64,
    /// The sum of the squares, which may overflow.
    pub squares: f64,
}

impl Survey {
    pub fn of(values: &[f64]) -> Self {
        Isa::best().run::<f64, _>(Pass { values })
    }
}

/// A plain loop, compiled for the best instruction set.
struct Pass<'a> {
    values: &'a [f64],
}

impl Kernel<f64> for Pass<'_> {
    type Output = Survey;

    /// Lanes keep the loop free of branches and the compiler uses vectors.
    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self, _: Present<V>) -> Survey {
        const LANES: usize = 8;
        let (mut largest, mut squares) = ([0.0f64; LANES], [0.0f64; LANES]);
        // `0 x` is NaN for NaN and infinity, else 0.
        let mut zeros = [0.0f64; LANES];
        let mut take = |chunk: &[f64; LANES]| {
            for i in 0..LANES {
                let x = chunk[i];
                zeros[i] += 0.0 * x;
                squares[i] += x * x;
                largest[i] = if x.abs() > largest[i] {
                    x.abs()
                } else {
                    largest[i]
                };
            }
        };
        let (chunks, rest) = self.values.as_chunks::<LANES>();
        for chunk in chunks {
            take(chunk);
        }
        let mut last = [0.0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        take(&last);
        Survey {
            finite: zeros.iter().sum::<f64>() == 0.0,
            largest: largest.into_iter().fold(0.0, f64::max),
            squares: squares.iter().sum(),
        }
    }
}

/// A power of two, as two factors: one alone could leave the range of an f64.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    first: f64,
    second: f64,
    back: [f64; 2],
}

impl Scale {
    /// Leaves values alone.
    pub const ONE: Self = Self {
        first: 1.0,
        second: 1.0,
        back: [1.0, 1.0],
    };

    /// Brings the largest magnitude into `[1, 2)`; `None` when all values are zero. They must be
    /// finite.
    pub fn of(values: &[f64]) -> Option<Self> {
        Self::of_largest(Survey::of(values).largest)
    }

    /// Brings `largest` into `[1, 2)`; `None` when it is zero.
    pub fn of_largest(largest: f64) -> Option<Self> {
        if largest == 0.0 {
            return None;
        }
        // The exponent from the bits; a subnormal is brought into the normal range first.
        let exponent = |x: f64| (x.to_bits() >> 52) as i32 - 1023;
        let e = if largest < f64::MIN_POSITIVE {
            exponent(largest * power_of_two(60)) - 60
        } else {
            exponent(largest)
        };
        let (half, rest) = (e / 2, e - e / 2);
        Some(Self {
            first: power_of_two(-half),
            second: power_of_two(-rest),
            back: [power_of_two(half), power_of_two(rest)],
        })
    }

    /// The scaled value. It is exact, except that a value `2^1000` times smaller than the largest
    /// may lose bits below `2^-1074`, which the constants of `proof` and `leading` cover.
    #[inline(always)]
    pub fn apply(self, x: f64) -> f64 {
        x * self.first * self.second
    }

    /// Back to the size of the input. Only the second product can round (a norm here lies between
    /// `2^-20` and `2^60`, and half the exponent keeps it normal), and only when the result is
    /// subnormal or overflows; the callers round outward after it.
    pub fn undo(self, x: f64) -> f64 {
        x * self.back[0] * self.back[1]
    }

    /// A lower bound, back to the size of the input.
    pub fn undo_down(self, x: f64) -> f64 {
        let value = self.undo(x);
        if value < f64::MIN_POSITIVE || value == f64::INFINITY {
            value.next_down().max(0.0)
        } else {
            value
        }
    }

    /// An upper bound, back to the size of the input.
    pub fn undo_up(self, x: f64) -> f64 {
        let value = self.undo(x);
        if value < f64::MIN_POSITIVE {
            value.next_up()
        } else {
            value
        }
    }
}

/// `2^e` for `-1022 <= e <= 1023`.
fn power_of_two(e: i32) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}
