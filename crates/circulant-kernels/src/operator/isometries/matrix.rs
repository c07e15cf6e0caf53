//! Small complex matrices, one in every lane.

use crate::real::Real;
use crate::vector::{MAX_LANES, Present, Vector};

/// Columns of a product at a time, and pivots of an inverse.
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

    /// Real and imaginary part of an entry of the matrix itself.
    #[inline(always)]
    fn at<V: Vector<Scalar = T>>(self, there: Present<V>, at: [usize; 2], part: usize) -> [V; 2] {
        let index = self.index(at[0], at[1]);
        [&self.matrix.re, &self.matrix.im].map(|plane| load(there, &plane[index], part))
    }

    /// What imaginary parts are multiplied by.
    #[inline(always)]
    fn sign(self) -> T {
        T::of(if self.adjoint { -1.0 } else { 1.0 })
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
    pub(super) fn add_product<V: Vector<Scalar = T>>(
        &mut self,
        there: Present<V>,
        a: Factor<'_, T>,
        b: Factor<'_, T>,
    ) {
        let [_, columns] = b.shape();
        let whole = columns - columns % BLOCK;
        for part in 0..MAX_LANES / V::LANES {
            for start in (0..whole).step_by(BLOCK) {
                self.add_columns::<V, BLOCK>(there, [a, b], start, part);
            }
            for start in whole..columns {
                self.add_columns::<V, 1>(there, [a, b], start, part);
            }
        }
    }

    /// `B` columns of it, in the lanes of one register.
    #[inline(always)]
    fn add_columns<V: Vector<Scalar = T>, const B: usize>(
        &mut self,
        there: Present<V>,
        [a, b]: [Factor<'_, T>; 2],
        start: usize,
        part: usize,
    ) {
        let [rows, inner] = a.shape();
        let signs = [a.sign(), a.sign() * b.sign(), b.sign()].map(|sign| there.splat(sign));
        for i in 0..rows {
            let at = i * self.columns + start;
            let mut re: [V; B] = std::array::from_fn(|j| load(there, &self.re[at + j], part));
            let mut im: [V; B] = std::array::from_fn(|j| load(there, &self.im[at + j], part));
            for k in 0..inner {
                let [a_re, a_im] = a.at(there, [i, k], part);
                let (of_re, negative, of_im) =
                    (a_im.mul(signs[0]), a_im.mul(signs[1]), a_re.mul(signs[2]));
                for j in 0..B {
                    let [b_re, b_im] = b.at(there, [k, start + j], part);
                    re[j] = negative.neg_mul_add(b_im, a_re.mul_add(b_re, re[j]));
                    im[j] = of_re.mul_add(b_re, of_im.mul_add(b_im, im[j]));
                }
            }
            for j in 0..B {
                store(re[j], &mut self.re[at + j], part);
                store(im[j], &mut self.im[at + j], part);
            }
        }
    }

    /// The inverse in its place, by Gauss and Jordan without a choice of pivots: the Hermitian part of every matrix that is left over is at
    /// least the identity. A few pivots at a time, so that the matrix is read and written less often.
    #[inline(always)]
    pub(super) fn invert<V: Vector<Scalar = T>>(&mut self, there: Present<V>) {
        let n = self.rows;
        if n <= BLOCK {
            self.invert_by_one(there);
            return;
        }
        for start in (0..n).step_by(BLOCK) {
            let size = BLOCK.min(n - start);
            let own = start * n..(start + size) * n;
            let mut pivot = Self::zeros(size, size);
            let mut rows = Self::zeros(size, n);
            rows.re.copy_from_slice(&self.re[own.clone()]);
            rows.im.copy_from_slice(&self.im[own]);
            for (i, k) in (0..size).flat_map(|i| (0..size).map(move |k| (i, k))) {
                let at = i * n + start + k;
                pivot.re[i * size + k] = rows.re[at];
                pivot.im[i * size + k] = rows.im[at];
                rows.re[at].fill(T::of(f64::from(u8::from(i == k))));
                rows.im[at].fill(T::of(0.0));
            }
            pivot.invert_by_one(there);
            let mut scaled = Self::zeros(size, n);
            scaled.add_product(there, pivot.plain(), rows.plain());
            // All other rows lose their multiple of these, which take their own place.
            let mut factors = Self::zeros(n, size);
            for i in 0..n {
                let is_own = (start..start + size).contains(&i);
                for k in 0..size {
                    let (at, to) = (i * n + start + k, i * size + k);
                    if is_own {
                        factors.re[to].fill(T::of(f64::from(u8::from(i - start == k))));
                    } else {
                        factors.re[to] = self.re[at].map(|value| -value);
                        factors.im[to] = self.im[at].map(|value| -value);
                    }
                    self.re[at].fill(T::of(0.0));
                    self.im[at].fill(T::of(0.0));
                }
                if is_own {
                    self.re[i * n..(i + 1) * n].as_flattened_mut().fill(T::of(0.0));
                    self.im[i * n..(i + 1) * n].as_flattened_mut().fill(T::of(0.0));
                }
            }
            self.add_product(there, factors.plain(), scaled.plain());
        }
    }

    /// The same, one pivot at a time.
    #[inline(always)]
    fn invert_by_one<V: Vector<Scalar = T>>(&mut self, there: Present<V>) {
        for part in 0..MAX_LANES / V::LANES {
            self.invert_lanes::<V>(there, part);
        }
    }

    #[inline(always)]
    fn invert_lanes<V: Vector<Scalar = T>>(&mut self, there: Present<V>, part: usize) {
        let n = self.rows;
        let (zero, one) = (there.splat(T::of(0.0)), there.splat(T::of(1.0)));
        for k in 0..n {
            let at = k * n + k;
            // 1/z = conj(z)/|z|^2.
            let [re, im] = [&self.re[at], &self.im[at]].map(|lanes| load(there, lanes, part));
            let square = re.mul_add(re, im.mul(im));
            let pivot = [re.div(square), zero.sub(im).div(square)];
            store(one, &mut self.re[at], part);
            store(zero, &mut self.im[at], part);
            for j in 0..n {
                let at = k * n + j;
                let own = [&self.re[at], &self.im[at]].map(|lanes| load(there, lanes, part));
                let [re, im] = multiply_add(pivot, own, [zero, zero]);
                store(re, &mut self.re[at], part);
                store(im, &mut self.im[at], part);
            }
            for i in (0..n).filter(|&i| i != k) {
                let at = i * n + k;
                let own = [&self.re[at], &self.im[at]].map(|lanes| load(there, lanes, part));
                let factor = own.map(|value| zero.sub(value));
                store(zero, &mut self.re[at], part);
                store(zero, &mut self.im[at], part);
                for j in 0..n {
                    let (at, other) = (i * n + j, k * n + j);
                    let row = [&self.re[other], &self.im[other]].map(|l| load(there, l, part));
                    let sum = [&self.re[at], &self.im[at]].map(|l| load(there, l, part));
                    let [re, im] = multiply_add(factor, row, sum);
                    store(re, &mut self.re[at], part);
                    store(im, &mut self.im[at], part);
                }
            }
        }
    }
}

/// `a b + c`.
#[inline(always)]
fn multiply_add<V: Vector>(a: [V; 2], b: [V; 2], c: [V; 2]) -> [V; 2] {
    [
        a[1].neg_mul_add(b[1], a[0].mul_add(b[0], c[0])),
        a[1].mul_add(b[0], a[0].mul_add(b[1], c[1])),
    ]
}

/// A register of lanes, of which there are `MAX_LANES/V::LANES`.
#[inline(always)]
fn load<V: Vector>(_: Present<V>, lanes: &Lanes<V::Scalar>, part: usize) -> V {
    let lanes = &lanes[part * V::LANES..][..V::LANES];
    // SAFETY: the slice has as many values, and the instruction set is there.
    unsafe { V::load(lanes.as_ptr()) }
}

#[inline(always)]
fn store<V: Vector>(vector: V, lanes: &mut Lanes<V::Scalar>, part: usize) {
    let lanes = &mut lanes[part * V::LANES..][..V::LANES];
    // SAFETY: the slice has as many values, and where there is a vector there is its instruction set.
    unsafe { vector.store(lanes.as_mut_ptr()) }
}
