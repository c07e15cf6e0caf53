//! A single real matrix with orthonormal columns: that of a dense layer. There are no other bins to fill the lanes with, so it goes through
//! large products.

use crate::dense::large_product::{MatrixView, product};
use crate::real::Real;

/// Pivots of the inverse at a time.
const BLOCK: usize = 16;

/// `M` and `V` of the Cayley transform, row-major, `q x q` and `(n - q) x q`.
struct Transform<'a, T> {
    n: usize,
    q: usize,
    m: Vec<T>,
    v: &'a [T],
}

impl<'a, T: Real> Transform<'a, T> {
    /// From `S` below its diagonal, row by row, and `V`.
    fn new([n, q]: [usize; 2], parameters: &'a [T]) -> Self {
        let (skew, v) = parameters.split_at(q * (q - 1) / 2);
        let mut m = vec![T::zero(); q * q];
        let below = (0..q).flat_map(|i| (0..i).map(move |j| (i, j)));
        for ((i, j), &value) in below.zip(skew) {
            m[i * q + j] = value;
            m[j * q + i] = -value;
        }
        for i in 0..q {
            m[i * q + i] = T::one();
        }
        let tail = MatrixView::new(v, n - q, q);
        product(tail.transposed(), tail, true, &mut m);
        invert(&mut m, q);
        Self { n, q, m, v }
    }

    fn m(&self) -> MatrixView<'_, T> {
        MatrixView::new(&self.m, self.q, self.q)
    }

    fn v(&self) -> MatrixView<'_, T> {
        MatrixView::new(self.v, self.n - self.q, self.q)
    }
}

/// `Q` row-major, or its transpose.
pub(super) fn coordinates<T: Real>(
    [n, q]: [usize; 2],
    wide: bool,
    parameters: &[T],
    coordinates: &mut [T],
) {
    let transform = Transform::new([n, q], parameters);
    let mut rows = transform.m.clone();
    rows.resize(n * q, T::zero());
    product(transform.v(), transform.m(), false, &mut rows[q * q..]);
    let two = T::of(2.0);
    for (index, value) in rows.iter_mut().enumerate() {
        let (row, column) = (index / q, index % q);
        *value = match row < q {
            true => two * *value - T::of(f64::from(u8::from(row == column))),
            false => -two * *value,
        };
    }
    match wide {
        true => coordinates.copy_from_slice(&rows),
        false => transpose(&rows, [n, q], coordinates),
    }
}

/// The gradient of the parameters.
pub(super) fn gradient<T: Real>(
    [n, q]: [usize; 2],
    wide: bool,
    parameters: &[T],
    gradient: &[T],
    parameter_gradient: &mut [T],
) {
    let transform = Transform::new([n, q], parameters);
    let mut rows = gradient.to_vec();
    if !wide {
        transpose(gradient, [q, n], &mut rows);
    }
    // 2 G_1 and -2 G_2.
    let (top, tail) = rows.split_at_mut(q * q);
    top.iter_mut().for_each(|value| *value = T::of(2.0) * *value);
    tail.iter_mut().for_each(|value| *value = T::of(-2.0) * *value);
    let tail = MatrixView::new(tail, n - q, q);
    // G_M, and then -G_A and G_V.
    product(transform.v().transposed(), tail, true, top);
    let (mut left, mut a) = (vec![T::zero(); q * q], vec![T::zero(); q * q]);
    let square = |values| MatrixView::new(values, q, q);
    product(transform.m().transposed(), square(&*top), false, &mut left);
    product(square(&left), transform.m().transposed(), false, &mut a);
    let (of_s, of_v) = parameter_gradient.split_at_mut(q * (q - 1) / 2);
    let below = (0..q).flat_map(|i| (0..i).map(move |j| (i, j)));
    for ((i, j), value) in below.zip(of_s) {
        *value = a[j * q + i] - a[i * q + j];
    }
    let mut both = vec![T::zero(); q * q];
    for (index, value) in both.iter_mut().enumerate() {
        *value = -a[index] - a[index % q * q + index / q];
    }
    product(tail, transform.m().transposed(), false, of_v);
    product(transform.v(), square(&both), true, of_v);
}

fn transpose<T: Copy>(from: &[T], [rows, columns]: [usize; 2], to: &mut [T]) {
    for (index, value) in from.iter().enumerate() {
        to[index % columns * rows + index / columns] = *value;
    }
}

/// The inverse in its place, as that of the lanes: no pivots are chosen, some of them are taken at a time.
fn invert<T: Real>(a: &mut [T], n: usize) {
    let mut factors = vec![T::zero(); n * BLOCK];
    for start in (0..n).step_by(BLOCK) {
        let size = BLOCK.min(n - start);
        let own = start * n..(start + size) * n;
        let mut rows = a[own.clone()].to_vec();
        let mut pivot = vec![T::zero(); size * size];
        for (i, k) in (0..size).flat_map(|i| (0..size).map(move |k| (i, k))) {
            let at = i * n + start + k;
            pivot[i * size + k] = rows[at];
            rows[at] = T::of(f64::from(u8::from(i == k)));
        }
        invert_by_one(&mut pivot, size);
        let mut scaled = vec![T::zero(); size * n];
        let block = MatrixView::new(&pivot, size, size);
        product(block, MatrixView::new(&rows, size, n), false, &mut scaled);
        // All other rows lose their multiple of these, which take their own place.
        let factors = &mut factors[..n * size];
        for (i, k) in (0..n).flat_map(|i| (0..size).map(move |k| (i, k))) {
            let at = i * n + start + k;
            factors[i * size + k] = match i.checked_sub(start).filter(|own| *own < size) {
                Some(own) => T::of(f64::from(u8::from(own == k))),
                None => -a[at],
            };
            a[at] = T::zero();
        }
        a[own].fill(T::zero());
        let factors = MatrixView::new(factors, n, size);
        product(factors, MatrixView::new(&scaled, size, n), true, a);
    }
}

fn invert_by_one<T: Real>(a: &mut [T], n: usize) {
    for k in 0..n {
        let pivot = a[k * n + k].recip();
        a[k * n + k] = T::one();
        a[k * n..(k + 1) * n]
            .iter_mut()
            .for_each(|value| *value = *value * pivot);
        for i in (0..n).filter(|&i| i != k) {
            let factor = a[i * n + k];
            a[i * n + k] = T::zero();
            for j in 0..n {
                a[i * n + j] = a[i * n + j] - factor * a[k * n + j];
            }
        }
    }
}
