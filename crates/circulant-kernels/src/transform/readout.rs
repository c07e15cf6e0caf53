//! A linear read-out joined to the border of the transforms: `z = y W` of the rows `y` that an
//! inverse transform yields, and back. Rows stay in lanes, so they are neither written to
//! row-major memory nor transposed, and a posterior sample's hidden layer never leaves the cache.
//!
//! Lane form: an entry of `2*LANES` values (Re lanes, Im lanes) per position of `y`, or per class
//! of `z`.
//!
//! `unsafe`: see the module above.

use crate::real::Real;
use crate::transform::butterfly::Complexes;
use crate::vector::{Kernel, Present, Promised, Vector};

/// Classes, or positions, that are summed at a time: with Re and Im they leave registers for the
/// factors.
const GROUP: usize = 5;
const POSITIONS: usize = 4;

/// `sums += y W`.
pub struct LaneReadout<T> {
    /// `[len, classes]`.
    pub(crate) weight: *const T,
    pub(crate) classes: usize,
    /// `[classes]` entries.
    pub(crate) sums: *mut T,
    /// Where the rows are kept for the backward pass, `[len]` entries; null when they are not.
    pub(crate) hidden: *mut T,
}

impl<T: Real> LaneReadout<T> {
    /// Adds `count` positions of `y`, from `column` on; they are already where they are kept.
    #[inline(always)]
    pub(super) unsafe fn add_columns<V: Vector<Scalar = T>>(
        &self,
        column: usize,
        count: usize,
        from: *const T,
    ) {
        // SAFETY: `from` holds `count` entries, the others what their comments say.
        unsafe {
            let mut class = 0;
            while class + GROUP <= self.classes {
                self.add_group::<V, GROUP>(class, column, count, from);
                class += GROUP;
            }
            for class in class..self.classes {
                self.add_group::<V, 1>(class, column, count, from);
            }
        }
    }

    #[inline(always)]
    unsafe fn add_group<V: Vector<Scalar = T>, const N: usize>(
        &self,
        class: usize,
        column: usize,
        count: usize,
        from: *const T,
    ) {
        let entry = 2 * V::LANES;
        // SAFETY: as above; `class + N <= classes`.
        unsafe {
            let at = self.sums.add(class * entry);
            let mut sums: [Complexes<V>; N] = [Complexes::load(at); N];
            for (n, sum) in sums.iter_mut().enumerate().skip(1) {
                *sum = Complexes::load(at.add(n * entry));
            }
            for j in 0..count {
                let y: Complexes<V> = Complexes::load(from.add(j * entry));
                let w = self.weight.add((column + j) * self.classes + class);
                for (n, sum) in sums.iter_mut().enumerate() {
                    let w = V::splat(*w.add(n));
                    sum.re = y.re.mul_add(w, sum.re);
                    sum.im = y.im.mul_add(w, sum.im);
                }
            }
            for (n, sum) in sums.iter().enumerate() {
                sum.store(at.add(n * entry));
            }
        }
    }
}

/// The gradient of the biased, not yet activated `y`: `(g W^T) * act'(y)`.
pub struct LaneReadoutGradient<T> {
    /// `[len, classes]`.
    pub(crate) weight: *const T,
    pub(crate) classes: usize,
    /// The gradient of `z`, `[classes]` entries.
    pub(crate) gradient: *const T,
    /// `y`, `[len]` entries.
    pub(crate) hidden: *const T,
    pub(crate) tanh: bool,
}

impl<T: Real> LaneReadoutGradient<T> {
    /// Writes `count` positions, from `column` on, to `to`.
    #[inline(always)]
    pub(super) unsafe fn load_columns<V: Vector<Scalar = T>>(
        &self,
        column: usize,
        count: usize,
        to: *mut T,
    ) {
        let whole = count / POSITIONS * POSITIONS;
        // SAFETY: `to` holds `count` entries.
        unsafe {
            for j in (0..whole).step_by(POSITIONS) {
                self.load_group::<V, POSITIONS>(column + j, to.add(j * 2 * V::LANES));
            }
            for j in whole..count {
                self.load_group::<V, 1>(column + j, to.add(j * 2 * V::LANES));
            }
        }
    }

    #[inline(always)]
    unsafe fn load_group<V: Vector<Scalar = T>, const N: usize>(&self, column: usize, to: *mut T) {
        let entry = 2 * V::LANES;
        // SAFETY: the positions `column..column + N` exist.
        unsafe {
            let one = V::splat(T::one());
            let mut sums: [Complexes<V>; N] = [Complexes::splat(T::zero(), T::zero()); N];
            let weight = self.weight.add(column * self.classes);
            for class in 0..self.classes {
                let g: Complexes<V> = Complexes::load(self.gradient.add(class * entry));
                for (n, sum) in sums.iter_mut().enumerate() {
                    let w = V::splat(*weight.add(n * self.classes + class));
                    sum.re = g.re.mul_add(w, sum.re);
                    sum.im = g.im.mul_add(w, sum.im);
                }
            }
            for (n, mut sum) in sums.into_iter().enumerate() {
                if self.tanh {
                    let y: Complexes<V> = Complexes::load(self.hidden.add((column + n) * entry));
                    sum.re = sum.re.mul(y.re.neg_mul_add(y.re, one));
                    sum.im = sum.im.mul(y.im.neg_mul_add(y.im, one));
                }
                sum.store(to.add(n * entry));
            }
        }
    }
}

/// The gradient of the weights from one block: `sums[t] += sum over rows of y[t] g`.
pub struct WeightGradient<T> {
    pub(crate) len: usize,
    /// `y`, `[len]` entries.
    pub(crate) hidden: *const T,
    /// The gradient of `z` by rows, `[2*LANES, stride]`, in the order of an entry.
    pub(crate) gradient: *const T,
    /// Classes rounded up to whole vectors.
    pub(crate) stride: usize,
    /// `[len, stride]`.
    pub(crate) sums: *mut T,
}

impl<T: Real> Kernel<T> for Promised<WeightGradient<T>> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) {
        let job = self.job();
        for class in (0..job.stride).step_by(2 * V::LANES) {
            // Twelve sums at a time, so that no addition waits for the last one.
            // SAFETY: positions are below `len`, and vectors of classes end at `stride`.
            unsafe {
                if class + V::LANES < job.stride {
                    job.tiles::<V, 6>(class, true);
                } else {
                    job.tiles::<V, 12>(class, false);
                }
            }
        }
    }
}

impl<T: Real> WeightGradient<T> {
    /// All positions, `N` at a time as long as there are so many.
    #[inline(always)]
    unsafe fn tiles<V: Vector<Scalar = T>, const N: usize>(&self, class: usize, pair: bool) {
        let whole = self.len / N * N;
        // SAFETY: the caller's promise.
        unsafe {
            for t in (0..whole).step_by(N) {
                self.tile::<V, N>(t, class, pair);
            }
            for t in whole..self.len {
                self.tile::<V, 1>(t, class, pair);
            }
        }
    }

    /// `N` positions and one or two vectors of classes.
    #[inline(always)]
    unsafe fn tile<V: Vector<Scalar = T>, const N: usize>(
        &self,
        t: usize,
        class: usize,
        pair: bool,
    ) {
        let entry = 2 * V::LANES;
        // SAFETY: the caller's promise.
        unsafe {
            let sums = self.sums.add(t * self.stride + class);
            let hidden = self.hidden.add(t * entry);
            let gradient = self.gradient.add(class);
            let mut first = [V::splat(T::zero()); N];
            for (n, sum) in first.iter_mut().enumerate() {
                *sum = V::load(sums.add(n * self.stride));
            }
            if !pair {
                for row in 0..entry {
                    let g = V::load(gradient.add(row * self.stride));
                    for (n, sum) in first.iter_mut().enumerate() {
                        *sum = V::splat(*hidden.add(n * entry + row)).mul_add(g, *sum);
                    }
                }
            } else {
                let mut second = first;
                for (n, sum) in second.iter_mut().enumerate() {
                    *sum = V::load(sums.add(n * self.stride + V::LANES));
                }
                for row in 0..entry {
                    let g = V::load(gradient.add(row * self.stride));
                    let h = V::load(gradient.add(row * self.stride + V::LANES));
                    for (n, (a, b)) in first.iter_mut().zip(&mut second).enumerate() {
                        let y = V::splat(*hidden.add(n * entry + row));
                        *a = y.mul_add(g, *a);
                        *b = y.mul_add(h, *b);
                    }
                }
                for (n, sum) in second.iter().enumerate() {
                    sum.store(sums.add(n * self.stride + V::LANES));
                }
            }
            for (n, sum) in first.iter().enumerate() {
                sum.store(sums.add(n * self.stride));
            }
        }
    }
}
