//! The complex transform of any length, by decimation in time.
//!
//! `n = p*m` values are `p` interleaved signals of `m`: each is transformed on its own, then value `k`
//! of all of them is multiplied by `w^(qk)` and becomes outputs `k, k + m, ...` through a transform of
//! `p` values.

use num_complex::Complex;

use super::roots::Roots;
use crate::scalar::Scalar;

/// Values `at(first), at(first + stride), ...`. They are looked up once each, by a call: one transform serves all signals,
/// which keeps the program of a device short.
pub(crate) struct Signal<'a, T> {
    at: &'a dyn Fn(usize) -> Complex<T>,
    first: usize,
    stride: usize,
}

impl<'a, T> Signal<'a, T> {
    pub(crate) fn new(at: &'a dyn Fn(usize) -> Complex<T>) -> Self {
        Self {
            at,
            first: 0,
            stride: 1,
        }
    }

    fn value(&self, index: usize) -> Complex<T> {
        (self.at)(self.first + index * self.stride)
    }

    /// Every `p`-th value, beginning with number `q`.
    fn every(&self, p: usize, q: usize) -> Self {
        Self {
            at: self.at,
            first: self.first + q * self.stride,
            stride: self.stride * p,
        }
    }
}

/// The factor that is split off first: 4, 2, or the smallest odd prime.
fn factor(n: usize) -> usize {
    if n.is_multiple_of(4) {
        return 4;
    }
    if n.is_multiple_of(2) {
        return 2;
    }
    let smallest = (3..)
        .step_by(2)
        .take_while(|p| p * p <= n)
        .find(|&p| n.is_multiple_of(p));
    smallest.unwrap_or(n)
}

/// Values of work space that the transform of `n` values needs: its largest odd prime factor.
pub(crate) fn work_len(n: usize) -> usize {
    let mut left = n;
    let mut largest = 0;
    while left > 1 {
        let p = factor(left);
        if p % 2 == 1 {
            largest = p;
        }
        left /= p;
    }
    largest
}

/// `out[k] = sum_t signal[t] w^(kt)` for the `out.len()` values of the signal, where `w` is the root of
/// that order; the order of `roots` is a multiple of it, and `work` has at least [`work_len`] values.
pub(crate) fn transform<T: Scalar>(
    roots: Roots<'_, T>,
    signal: Signal<'_, T>,
    out: &mut [Complex<T>],
    work: &mut [Complex<T>],
) {
    let n = out.len();
    if n == 1 {
        out[0] = signal.value(0);
        return;
    }
    let p = factor(n);
    let m = n / p;
    if m == 1 {
        out.iter_mut()
            .enumerate()
            .for_each(|(t, value)| *value = signal.value(t));
    } else {
        for (q, part) in out.chunks_exact_mut(m).enumerate() {
            transform(roots, signal.every(p, q), part, work);
        }
    }
    // Root number k of order n is number k*unit of the stored ones.
    let unit = roots.order() / n;
    match p {
        2 => pairs(roots, unit, out),
        4 => {
            for k in 0..m {
                let step = k * unit;
                let roots = [roots.at(step), roots.at(2 * step), roots.at(3 * step)];
                quadruple(&mut out[k..], m, roots);
            }
        }
        7 => sevens(roots, out),
        _ => {
            for k in 0..m {
                for (q, value) in work[..p].iter_mut().enumerate() {
                    *value = out[k + q * m] * roots.at(q * k * unit);
                }
                prime(&mut out[k..], m, &mut work[..p], |q| roots.at(q * m * unit));
            }
        }
    }
}

/// The last step for the factor 2; `unit` is what a root of this order is among the stored ones.
fn pairs<T: Scalar>(roots: Roots<'_, T>, unit: usize, out: &mut [Complex<T>]) {
    let (low, high) = out.split_at_mut(out.len() / 2);
    for (k, (a, b)) in low.iter_mut().zip(high).enumerate() {
        let turned = *b * roots.at(k * unit);
        (*a, *b) = (*a + turned, *a - turned);
    }
}

/// The transform of four values that are `m` apart; all but the first are multiplied by `roots` first.
fn quadruple<T: Scalar>(out: &mut [Complex<T>], m: usize, roots: [Complex<T>; 3]) {
    let a = out[0];
    let (b, c, d) = (
        out[m] * roots[0],
        out[2 * m] * roots[1],
        out[3 * m] * roots[2],
    );
    let (even, even_difference) = (a + c, a - c);
    let (odd, odd_difference) = (b + d, b - d);
    let turned = Complex::new(odd_difference.im, -odd_difference.re);
    out[0] = even + odd;
    out[m] = even_difference + turned;
    out[2 * m] = even - odd;
    out[3 * m] = even_difference - turned;
}

/// The last step for the factor 7, which images of 28 x 28 have: as [`prime`], written out.
fn sevens<T: Scalar>(roots: Roots<'_, T>, out: &mut [Complex<T>]) {
    let m = out.len() / 7;
    let unit = roots.order() / out.len();
    let order = [1, 2, 3].map(|q| roots.at(q * m * unit));
    if let Ok(values) = <&mut [Complex<T>; 7]>::try_from(&mut *out) {
        *values = seven(*values, order);
        return;
    }
    for k in 0..m {
        let mut values = [0, 1, 2, 3, 4, 5, 6].map(|q| out[k + q * m]);
        if k > 0 {
            for (q, value) in values.iter_mut().enumerate().skip(1) {
                *value = *value * roots.at(q * k * unit);
            }
        }
        for (q, value) in seven(values, order).into_iter().enumerate() {
            out[k + q * m] = value;
        }
    }
}

/// The transform of seven values, with the first three roots of that order.
#[inline(always)]
fn seven<T: Scalar>(values: [Complex<T>; 7], [w, ww, www]: [Complex<T>; 3]) -> [Complex<T>; 7] {
    let [first, one, two, three, four, five, six] = values;
    let (a, aa) = (one + six, one - six);
    let (b, bb) = (two + five, two - five);
    let (c, cc) = (three + four, three - four);
    let both = |even: Complex<T>, odd: Complex<T>| {
        let turned = Complex::new(-odd.im, odd.re);
        (even + turned, even - turned)
    };
    let (one, six) = both(
        first + a.scale(w.re) + b.scale(ww.re) + c.scale(www.re),
        aa.scale(w.im) + bb.scale(ww.im) + cc.scale(www.im),
    );
    let (two, five) = both(
        first + a.scale(ww.re) + b.scale(www.re) + c.scale(w.re),
        aa.scale(ww.im) - bb.scale(www.im) - cc.scale(w.im),
    );
    let (three, four) = both(
        first + a.scale(www.re) + b.scale(w.re) + c.scale(ww.re),
        aa.scale(www.im) - bb.scale(w.im) + cc.scale(ww.im),
    );
    [first + a + b + c, one, two, three, four, five, six]
}

/// The transform of an odd number of `values`, to places that are `m` apart, by definition; `root(q)` is
/// the q-th root of that order. Values q and p - q meet conjugate roots, `c + ie` and `c - ie`: together
/// they give `(a + b) c + i (a - b) e`, and output p - r is that of r with the other sign of `e`.
fn prime<T: Scalar>(
    out: &mut [Complex<T>],
    m: usize,
    values: &mut [Complex<T>],
    root: impl Fn(usize) -> Complex<T>,
) {
    let p = values.len();
    let mut total = values[0];
    for q in 1..=p / 2 {
        let (a, b) = (values[q], values[p - q]);
        values[q] = a + b;
        values[p - q] = a - b;
        total = total + values[q];
    }
    out[0] = total;
    for r in 1..=p / 2 {
        let (mut even, mut odd) = (values[0], Complex::new(T::zero(), T::zero()));
        let mut index = 0;
        for q in 1..=p / 2 {
            index += r;
            if index >= p {
                index -= p;
            }
            let root = root(index);
            even = even + values[q].scale(root.re);
            odd = odd + values[p - q].scale(root.im);
        }
        out_pair(out, [r * m, (p - r) * m], even, odd);
    }
}

/// Outputs of opposite numbers from what is even and what is odd in them, the latter without its factor `i`.
#[inline(always)]
fn out_pair<T: Scalar>(
    out: &mut [Complex<T>],
    places: [usize; 2],
    even: Complex<T>,
    odd: Complex<T>,
) {
    let turned = Complex::new(-odd.im, odd.re);
    out[places[0]] = even + turned;
    out[places[1]] = even - turned;
}
