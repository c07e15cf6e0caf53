//! Small complex matrices, one in every lane.

use crate::real::Real;
use crate::vector::{MAX_LANES, Vector};

/// Columns of a product at a time.
const BLOCK: usize = 4;

/// One number of each lane.
type Lanes<T> = [T; MAX_LANES];

/// A complex matrix per lane.
pub(super) struct Matrix<T> {
    rows: usize,
    columns: usize,
    pub(super) re: Vec<Lanes<T>>,
    pub(super) im: Vec<Lanes<T>>,
}

/// A matrix, or its adjoint.
#[derive(Clone, Copy)]
pub(super) struct Factor<'a, T> {
    matrix: &'a Matrix<T>,
    adjoint: bool,
}

impl<'a, T: Real> Factor<'a, T> {
    #[inline(always)]
    fn shape(self) -> [usize; 2] {
        let Matrix { rows, columns, .. } = *self.matrix;
        match self.adjoint {
            true => [columns, rows],
            false => [rows, columns],
        }
    }

    #[inline(always)]
    fn index(self, row: usize, column: usize) -> usize {
        match self.adjoint {
            true => column * self.matrix.columns + row,
            false => row * self.matrix.columns + column,
        }
    }

    /// Real part and imaginary part, the latter with the sign of the adjoint.
    #[inline(always)]
    fn at(self, row: usize, column: usize) -> [Lanes<T>; 2] {
        let index = self.index(row, column);
        let (re, mut im) = (self.matrix.re[index], self.matrix.im[index]);
        if self.adjoint {
            im.iter_mut().for_each(|im| *im = -*im);
        }
        [re, im]
    }
}

impl<T: Real> Matrix<T> {
    #[inline(always)]
    pub(super) fn zeros(rows: usize, columns: usize) -> Self {
        let zeros = vec![[T::of(0.0); MAX_LANES]; rows * columns];
        Self {
            rows,
            columns,
            re: zeros.clone(),
            im: zeros,
        }
    }

    #[inline(always)]
    pub(super) fn plain(&self) -> Factor<'_, T> {
        Factor {
            matrix: self,
            adjoint: false,
        }
    }

    #[inline(always)]
    pub(super) fn adjoint(&self) -> Factor<'_, T> {
        Factor {
            matrix: self,
            adjoint: true,
        }
    }

    #[inline(always)]
    pub(super) fn negate(&mut self) {
        let values = self.re.iter_mut().chain(&mut self.im);
        values.flatten().for_each(|value| *value = -*value);
    }

    /// Adds the product of two others. Some entries of a row are summed at a time, so that sums stay in registers.
    #[inline(always)]
    pub(super) fn add_product<V: Vector<Scalar = T>>(&mut self, a: Factor<'_, T>, b: Factor<'_, T>) {
        let [_, columns] = b.shape();
        let whole = columns - columns % BLOCK;
        for start in (0..whole).step_by(BLOCK) {
            self.add_columns::<V, BLOCK>(a, b, start);
        }
        for start in whole..columns {
            self.add_columns::<V, 1>(a, b, start);
        }
    }

    /// `B` columns of it.
    #[inline(always)]
    fn add_columns<V: Vector<Scalar = T>, const B: usize>(
        &mut self,
        a: Factor<'_, T>,
        b: Factor<'_, T>,
        start: usize,
    ) {
        let [rows, inner] = a.shape();
        let zero = [T::of(0.0); MAX_LANES];
        for i in 0..rows {
            let (mut re, mut im) = ([zero; B], [zero; B]);
            for k in 0..inner {
                let a = a.at(i, k);
                for j in 0..B {
                    multiply_add::<T, V>([&mut re[j], &mut im[j]], a, b.at(k, start + j));
                }
            }
            for j in 0..B {
                let at = i * self.columns + start + j;
                for lane in 0..MAX_LANES {
                    self.re[at][lane] = self.re[at][lane] + re[j][lane];
                    self.im[at][lane] = self.im[at][lane] + im[j][lane];
                }
            }
        }
    }

    /// The inverse in its place, by Gauss and Jordan without a choice of pivots: the Hermitian part of every matrix that is left over is at
    /// least the identity.
    #[inline(always)]
    pub(super) fn invert<V: Vector<Scalar = T>>(&mut self) {
        let n = self.rows;
        for k in 0..n {
            let at = k * n + k;
            let pivot = reciprocal([self.re[at], self.im[at]]);
            let zero = [T::of(0.0); MAX_LANES];
            for j in 0..n {
                let at = k * n + j;
                let own = match j == k {
                    true => {
                        let mut one = zero;
                        one.fill(T::of(1.0));
                        [one, zero]
                    }
                    false => [self.re[at], self.im[at]],
                };
                let mut product = [zero, zero];
                let [re, im] = &mut product;
                multiply_add::<T, V>([re, im], pivot, own);
                [self.re[at], self.im[at]] = product;
            }
            for i in (0..n).filter(|&i| i != k) {
                let at = i * n + k;
                let (mut re, mut im) = (self.re[at], self.im[at]);
                re.iter_mut().chain(&mut im).for_each(|value| *value = -*value);
                (self.re[at], self.im[at]) = (zero, zero);
                for j in 0..n {
                    let (at, other) = (i * n + j, k * n + j);
                    let row = [self.re[other], self.im[other]];
                    let out = [&mut self.re[at], &mut self.im[at]];
                    multiply_add::<T, V>(out, [re, im], row);
                }
            }
        }
    }
}

/// `out += a b`.
#[inline(always)]
fn multiply_add<T: Real, V: Vector<Scalar = T>>(
    [re, im]: [&mut Lanes<T>; 2],
    a: [Lanes<T>; 2],
    b: [Lanes<T>; 2],
) {
    for lane in 0..MAX_LANES {
        let ([a_re, a_im], [b_re, b_im]) = ([a[0][lane], a[1][lane]], [b[0][lane], b[1][lane]]);
        re[lane] = V::fused(-a_im, b_im, V::fused(a_re, b_re, re[lane]));
        im[lane] = V::fused(a_im, b_re, V::fused(a_re, b_im, im[lane]));
    }
}

/// `1/z = conj(z)/|z|^2`.
#[inline(always)]
fn reciprocal<T: Real>([mut re, mut im]: [Lanes<T>; 2]) -> [Lanes<T>; 2] {
    for (re, im) in re.iter_mut().zip(&mut im) {
        let square = *re * *re + *im * *im;
        (*re, *im) = (*re / square, -*im / square);
    }
    [re, im]
}
