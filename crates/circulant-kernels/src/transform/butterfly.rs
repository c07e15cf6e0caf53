//! Small DFTs on registers: `X_k = sum_j x_j exp(-2 pi i jk/R)` for a fixed radix `R`.
//!
//! Real and imaginary parts are separate vectors whose lanes are different rows, so there are no
//! shuffles. The inverse transform is the forward one with the parts exchanged. The powers of two
//! are split by hand; the odd primes share one loop over the pairs `x_j +- x_{R-j}`.
//!
//! `unsafe`: loads, stores and new vectors pass their callers' promise on; arithmetic is safe.

use std::f64::consts::{FRAC_1_SQRT_2, TAU};

use circulant_core::Scalar;
use num_traits::Zero;

use crate::vector::Vector;

/// Radices with a butterfly; a length is a lane length when it is a product of these.
pub(crate) const RADICES: [usize; 9] = [2, 3, 4, 5, 7, 8, 11, 13, 16];

/// A complex number in every lane.
#[derive(Clone, Copy)]
pub(crate) struct Complexes<V> {
    pub(crate) re: V,
    pub(crate) im: V,
}

impl<V: Vector> Complexes<V> {
    /// # Safety
    /// The instruction set of the vector must be there.
    #[inline(always)]
    pub(crate) unsafe fn splat(re: V::Scalar, im: V::Scalar) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                re: V::splat(re),
                im: V::splat(im),
            }
        }
    }
    /// Another number in every lane.
    #[inline(always)]
    pub(crate) fn same(self, re: V::Scalar, im: V::Scalar) -> Self {
        Self {
            re: self.re.same(re),
            im: self.re.same(im),
        }
    }
    /// # Safety
    /// `at` must be valid for reading `2*LANES` values.
    #[inline(always)]
    pub(crate) unsafe fn load(at: *const V::Scalar) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                re: V::load(at),
                im: V::load(at.add(V::LANES)),
            }
        }
    }
    /// # Safety
    /// `at` must be valid for writing `2*LANES` values.
    #[inline(always)]
    pub(crate) unsafe fn store(self, at: *mut V::Scalar) {
        // SAFETY: the caller's promise.
        unsafe {
            self.re.store(at);
            self.im.store(at.add(V::LANES));
        }
    }
    #[inline(always)]
    pub(crate) fn add(self, other: Self) -> Self {
        Self {
            re: self.re.add(other.re),
            im: self.im.add(other.im),
        }
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self {
            re: self.re.sub(other.re),
            im: self.im.sub(other.im),
        }
    }
    #[inline(always)]
    pub(crate) fn mul(self, other: Self) -> Self {
        Self {
            re: self.im.neg_mul_add(other.im, self.re.mul(other.re)),
            im: self.im.mul_add(other.re, self.re.mul(other.im)),
        }
    }
    /// `self + other/i`, without a multiplication.
    #[inline(always)]
    fn add_rotated(self, other: Self) -> Self {
        Self {
            re: self.re.add(other.im),
            im: self.im.sub(other.re),
        }
    }
    /// `self - other/i`.
    #[inline(always)]
    fn sub_rotated(self, other: Self) -> Self {
        Self {
            re: self.re.sub(other.im),
            im: self.im.add(other.re),
        }
    }
    /// `self*exp(-i pi/4)` with `root_half` the square root of one half.
    #[inline(always)]
    fn eighth_turn(self, root_half: V) -> Self {
        Self {
            re: self.re.add(self.im).mul(root_half),
            im: self.im.sub(self.re).mul(root_half),
        }
    }
    /// `self*exp(-3 i pi/4)`.
    #[inline(always)]
    fn three_eighths_turn(self, root_half: V) -> Self {
        Self {
            re: self.im.sub(self.re).mul(root_half),
            im: root_half
                .same(V::Scalar::zero())
                .sub(self.re.add(self.im))
                .mul(root_half),
        }
    }
}

/// The DFT of `R` complex vectors, in place and in natural order.
#[inline(always)]
pub(crate) fn butterfly<V: Vector, const R: usize>(x: &mut [Complexes<V>; R]) {
    match R {
        2 => {
            let (a, b) = (x[0], x[1]);
            x[0] = a.add(b);
            x[1] = a.sub(b);
        }
        4 => {
            let [a, b, c, d] = fourths([x[0], x[1], x[2], x[3]]);
            x[0] = a;
            x[1] = b;
            x[2] = c;
            x[3] = d;
        }
        8 => eighths(x),
        16 => sixteenths(x),
        _ => odd(x),
    }
}

#[inline(always)]
fn fourths<V: Vector>(x: [Complexes<V>; 4]) -> [Complexes<V>; 4] {
    let (sum02, difference02) = (x[0].add(x[2]), x[0].sub(x[2]));
    let (sum13, difference13) = (x[1].add(x[3]), x[1].sub(x[3]));
    [
        sum02.add(sum13),
        difference02.add_rotated(difference13),
        sum02.sub(sum13),
        difference02.sub_rotated(difference13),
    ]
}

/// `8 = 2*4`: two DFTs of four, joined by eighth turns.
#[inline(always)]
fn eighths<V: Vector, const R: usize>(x: &mut [Complexes<V>; R]) {
    let root_half = x[0].re.same(V::Scalar::of(FRAC_1_SQRT_2));
    let even = fourths([x[0], x[2], x[4], x[6]]);
    let odd = fourths([x[1], x[3], x[5], x[7]]);
    x[0] = even[0].add(odd[0]);
    x[4] = even[0].sub(odd[0]);
    let turned = odd[1].eighth_turn(root_half);
    x[1] = even[1].add(turned);
    x[5] = even[1].sub(turned);
    x[2] = even[2].add_rotated(odd[2]);
    x[6] = even[2].sub_rotated(odd[2]);
    let turned = odd[3].three_eighths_turn(root_half);
    x[3] = even[3].add(turned);
    x[7] = even[3].sub(turned);
}

/// `16 = 4*4`: columns, twiddles, rows.
#[inline(always)]
fn sixteenths<V: Vector, const R: usize>(x: &mut [Complexes<V>; R]) {
    for j in 0..4 {
        let mut column = fourths([x[j], x[j + 4], x[j + 8], x[j + 12]]);
        for (k, value) in column.iter_mut().enumerate().skip(1) {
            if j > 0 {
                *value = sixteenth_turns(*value, j * k);
            }
        }
        x[j] = column[0];
        x[j + 4] = column[1];
        x[j + 8] = column[2];
        x[j + 12] = column[3];
    }
    let mut out = *x;
    for k in 0..4 {
        let row = fourths([x[4 * k], x[4 * k + 1], x[4 * k + 2], x[4 * k + 3]]);
        for (m, value) in row.into_iter().enumerate() {
            out[k + 4 * m] = value;
        }
    }
    *x = out;
}

/// `x*exp(-2 pi i turns/16)` for the products `turns = jk` with `1 <= j, k <= 3`.
#[inline(always)]
fn sixteenth_turns<V: Vector>(x: Complexes<V>, turns: usize) -> Complexes<V> {
    let root_half = x.re.same(V::Scalar::of(FRAC_1_SQRT_2));
    match turns {
        2 => x.eighth_turn(root_half),
        4 => Complexes {
            re: x.im,
            im: x.re.same(V::Scalar::zero()).sub(x.re),
        },
        6 => x.three_eighths_turn(root_half),
        _ => {
            let (cos, sin) = SIXTEENTHS[turns];
            x.mul(x.same(V::Scalar::of(cos), V::Scalar::of(-sin)))
        }
    }
}

/// Cosine and sine of `2 pi n/16` for the odd products (1, 3, 9).
const SIXTEENTHS: [(f64, f64); 10] = {
    const C: f64 = 0.923_879_532_511_286_7;
    const S: f64 = 0.382_683_432_365_089_8;
    let mut table = [(1.0, 0.0); 10];
    table[1] = (C, S);
    table[3] = (S, C);
    table[9] = (-C, -S);
    table
};

/// An odd prime: with `t_j = x_j + x_{R-j}` and `s_j = x_j - x_{R-j}`,
/// `X_k = x_0 + sum_j cos(2 pi jk/R) t_j - i sum_j sin(2 pi jk/R) s_j` and `X_{R-k}` with plus.
#[inline(always)]
fn odd<V: Vector, const R: usize>(x: &mut [Complexes<V>; R]) {
    let half = R / 2;
    let first = x[0];
    let (mut sums, mut differences) = (*x, *x);
    let mut total = first;
    for j in 1..=half {
        sums[j] = x[j].add(x[R - j]);
        differences[j] = x[j].sub(x[R - j]);
        total = total.add(sums[j]);
    }
    x[0] = total;
    for k in 1..=half {
        let (cos, sin) = root_of_unity::<R>(k);
        let mut even = scaled_add(first, sums[1], cos);
        let sin = first.re.same(V::Scalar::of(sin));
        let mut odd = Complexes {
            re: differences[1].re.mul(sin),
            im: differences[1].im.mul(sin),
        };
        for j in 2..=half {
            let (cos, sin) = root_of_unity::<R>(j * k % R);
            even = scaled_add(even, sums[j], cos);
            odd = scaled_add(odd, differences[j], sin);
        }
        x[k] = even.add_rotated(odd);
        x[R - k] = even.sub_rotated(odd);
    }
}

#[inline(always)]
fn scaled_add<V: Vector>(sum: Complexes<V>, x: Complexes<V>, factor: f64) -> Complexes<V> {
    let factor = x.re.same(V::Scalar::of(factor));
    Complexes {
        re: x.re.mul_add(factor, sum.re),
        im: x.im.mul_add(factor, sum.im),
    }
}

/// Cosine and sine of `2 pi k/R`, from a table for the odd primes.
#[inline(always)]
fn root_of_unity<const R: usize>(k: usize) -> (f64, f64) {
    match R {
        3 => ROOTS_3[k],
        5 => ROOTS_5[k],
        7 => ROOTS_7[k],
        11 => ROOTS_11[k],
        13 => ROOTS_13[k],
        _ => {
            let angle = TAU * k as f64 / R as f64;
            (angle.cos(), angle.sin())
        }
    }
}

/// The values of cos(2 pi k/n) and sin(2 pi k/n) for `k = 0..n`, from those with `k <= n/2`.
const fn roots<const N: usize, const H: usize>(upper: [(f64, f64); H]) -> [(f64, f64); N] {
    let mut table = [(1.0, 0.0); N];
    let mut k = 1;
    while k <= H {
        table[k] = upper[k - 1];
        table[N - k] = (upper[k - 1].0, -upper[k - 1].1);
        k += 1;
    }
    table
}

const ROOTS_3: [(f64, f64); 3] = roots([(-0.5, 0.8660254037844387)]);
const ROOTS_5: [(f64, f64); 5] = roots([
    (0.30901699437494745, 0.9510565162951535),
    (-0.8090169943749473, 0.5877852522924732),
]);
const ROOTS_7: [(f64, f64); 7] = roots([
    (0.6234898018587336, 0.7818314824680298),
    (-0.22252093395631434, 0.9749279121818236),
    (-0.900968867902419, 0.43388373911755823),
]);
const ROOTS_11: [(f64, f64); 11] = roots([
    (0.8412535328311812, 0.5406408174555976),
    (0.41541501300188644, 0.9096319953545183),
    (-0.142314838273285, 0.9898214418809328),
    (-0.654860733945285, 0.7557495743542583),
    (-0.9594929736144974, 0.28173255684142967),
]);
const ROOTS_13: [(f64, f64); 13] = roots([
    (0.8854560256532099, 0.4647231720437685),
    (0.5680647467311559, 0.8229838658936564),
    (0.120536680255323, 0.992708874098054),
    (-0.35460488704253545, 0.9350162426854148),
    (-0.7485107481711012, 0.6631226582407952),
    (-0.970941817426052, 0.23931566428755768),
]);
