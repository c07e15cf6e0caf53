//! The unitary transform along one axis as products of small matrices: `n` inputs to the first `k` bins, and back.
//!
//! | way | when | products per value | constants |
//! | --- | --- | --- | --- |
//! | a matrix | few bins | `2 k` | `2 n k` |
//! | two stages, `n = a b` | `n` has good factors | `2 a + 4 k/a` | `O(n + a^2 + b k/a)` |
//! | a chirp | where that costs less: long primes, and nearly primes | two complex transforms of some length above `n + k` by stages | the same for that length |
//!
//! With `w = b i + j` and `v = p + a l`, the stages are (Cooley and Tukey)
//!
//! ```text
//! X[p + a l] = sum_j e(-jl/b) e(-jp/n) sum_i e(-ip/a) x[b i + j],    e(t) = exp(2 pi i t)
//! ```
//!
//! and with the chirp `c_w = e(w^2/2n)` (Bluestein) `X[v] = conj(c_v) sum_w (x_w conj(c_w)) c_(v-w)`, a convolution.

use std::f64::consts::TAU;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};

use super::{ComplexPair, part, reshape};

/// A matrix for so many bins is small beside the values it is multiplied with.
const FEW_BINS: usize = 64;

/// Makes a constant out of values and a shape.
pub(super) type MakeConstant<'a, B> = &'a dyn Fn(Vec<f64>, &[usize]) -> FloatTensor<B>;

/// The transform of rows of one length.
pub(super) struct Line<B: Backend> {
    bins: usize,
    way: Way<B>,
}

enum Way<B: Backend> {
    /// `[n, k]`: cosines and minus sines.
    Matrix(ComplexPair<B>),
    Stages(Stages<B>),
    Chirp(Chirp<B>),
}

/// `F x` for `n = a b`, of which the first `a * groups` bins are computed.
struct Stages<B: Backend> {
    sizes: [usize; 2],
    groups: usize,
    /// `[1, a, a]`.
    first: ComplexPair<B>,
    /// `[1, a, b]`.
    twiddle: ComplexPair<B>,
    /// `[b, groups]`.
    second: ComplexPair<B>,
}

/// The transform as a convolution with a chirp, by stages of a length without bad factors.
struct Chirp<B: Backend> {
    inputs: usize,
    stages: Stages<B>,
    /// `conj(c_w)`, `[1, n]`.
    chirp: ComplexPair<B>,
    /// The transform of the chirp, `[1, length]`.
    spectrum: ComplexPair<B>,
}

impl<B: Backend> Line<B> {
    /// `n` values to the first `bins` of the unitary transform, `bins <= n`.
    pub(super) fn new(n: usize, bins: usize, make: MakeConstant<'_, B>) -> Self {
        let way = if bins <= FEW_BINS {
            let scale = (n as f64).sqrt().recip();
            let angles = (0..n * bins).map(|i| turn(i / bins, i % bins, n));
            Way::Matrix(pair(angles, scale, &[n, bins], make))
        } else {
            let (cost, a) = split(n, bins);
            let length = Chirp::<B>::length(n, bins);
            let (_, of_chirp) = split(length, length);
            let stretch = length as f64 / n as f64;
            let chirp_cost = 2.0 * stretch * 4.0 * (of_chirp + length / of_chirp) as f64;
            if cost as f64 <= chirp_cost {
                Way::Stages(Stages::new([a, n / a], bins, scale_of(n), make))
            } else {
                Way::Chirp(Chirp::new(n, bins, make))
            }
        };
        Self { bins, way }
    }

    /// `[rows, n]` to `[rows, bins]`; without an imaginary part the input is real.
    pub(super) fn there(&self, re: FloatTensor<B>, im: Option<FloatTensor<B>>) -> ComplexPair<B> {
        match &self.way {
            Way::Matrix(matrix) => product(&re, im.as_ref(), matrix, false),
            Way::Stages(stages) => self.kept(stages.there(re, im)),
            Way::Chirp(chirp) => self.kept(chirp.there(re, im)),
        }
    }

    /// The adjoint, `[rows, bins]` to `[rows, n]`: with all bins the inverse.
    pub(super) fn back(&self, bins: ComplexPair<B>) -> ComplexPair<B> {
        match &self.way {
            Way::Matrix(matrix) => {
                let turned = ComplexPair {
                    re: B::float_swap_dims(matrix.re.clone(), 0, 1),
                    im: B::float_swap_dims(matrix.im.clone(), 0, 1),
                };
                product(&bins.re, Some(&bins.im), &turned, true)
            }
            Way::Stages(stages) => stages.back(bins),
            Way::Chirp(chirp) => chirp.back(bins),
        }
    }

    /// The real part of [`Self::back`].
    pub(super) fn back_real(&self, bins: ComplexPair<B>) -> FloatTensor<B> {
        match &self.way {
            Way::Matrix(matrix) => {
                let multiply = |x: FloatTensor<B>, m: &FloatTensor<B>| {
                    B::float_matmul(x, B::float_swap_dims(m.clone(), 0, 1))
                };
                B::float_add(multiply(bins.re, &matrix.re), multiply(bins.im, &matrix.im))
            }
            Way::Stages(stages) => stages.back_real(bins),
            Way::Chirp(chirp) => chirp.back(bins).re,
        }
    }

    fn kept(&self, all: ComplexPair<B>) -> ComplexPair<B> {
        let first = |x: FloatTensor<B>| match x.shape()[1] == self.bins {
            true => x,
            false => part::<B>(x, 1, 0, self.bins),
        };
        ComplexPair {
            re: first(all.re),
            im: first(all.im),
        }
    }
}

impl<B: Backend> Stages<B> {
    fn new([a, b]: [usize; 2], bins: usize, scale: f64, make: MakeConstant<'_, B>) -> Self {
        let groups = bins.div_ceil(a);
        let angles =
            |len: usize, row: usize, n: usize| (0..len).map(move |i| turn(i / row, i % row, n));
        Self {
            sizes: [a, b],
            groups,
            first: pair(angles(a * a, a, a), 1.0, &[1, a, a], make),
            twiddle: pair(angles(a * b, b, a * b), 1.0, &[1, a, b], make),
            second: pair(angles(b * groups, groups, b), scale, &[b, groups], make),
        }
    }

    /// `[rows, n]` to `[rows, a * groups]`.
    fn there(&self, re: FloatTensor<B>, im: Option<FloatTensor<B>>) -> ComplexPair<B> {
        let [a, b] = self.sizes;
        let rows = re.shape()[0];
        let cut = |x: FloatTensor<B>| reshape::<B>(x, &[rows, a, b]);
        let (re, im) = (cut(re), im.map(cut));
        let f = &self.first;
        let first = from_left(f, &re, im.as_ref(), false);
        let turned = times(&first, &self.twiddle, false);
        let flat = |x: &FloatTensor<B>| reshape::<B>(x.clone(), &[rows * a, b]);
        let second = product(
            &flat(&turned.re),
            Some(&flat(&turned.im)),
            &self.second,
            false,
        );
        second.map(|x| {
            let x = reshape::<B>(x, &[rows, a, self.groups]);
            reshape::<B>(B::float_swap_dims(x, 1, 2), &[rows, a * self.groups])
        })
    }

    /// The adjoint: `[rows, bins]`, the others 0, to `[rows, n]`.
    fn back(&self, bins: ComplexPair<B>) -> ComplexPair<B> {
        let [rows, n] = [bins.re.shape()[0], self.sizes.iter().product()];
        let turned = self.back_within(bins);
        let whole = from_left(&self.first, &turned.re, Some(&turned.im), true);
        whole.map(|x| reshape::<B>(x, &[rows, n]))
    }

    fn back_real(&self, bins: ComplexPair<B>) -> FloatTensor<B> {
        let [rows, n] = [bins.re.shape()[0], self.sizes.iter().product()];
        let turned = self.back_within(bins);
        let multiply = |m: &FloatTensor<B>, x| B::float_matmul(m.clone(), x);
        let whole = B::float_add(
            multiply(&self.first.re, turned.re),
            multiply(&self.first.im, turned.im),
        );
        reshape::<B>(whole, &[rows, n])
    }

    /// All of [`Self::back`] but its last product: `[rows, a, b]`.
    fn back_within(&self, bins: ComplexPair<B>) -> ComplexPair<B> {
        let [a, b] = self.sizes;
        let (rows, own) = (bins.re.shape()[0], a * self.groups);
        let grouped = bins.map(|x| {
            let x = padded::<B>(x, own);
            let x = B::float_swap_dims(reshape::<B>(x, &[rows, self.groups, a]), 1, 2);
            reshape::<B>(x, &[rows * a, self.groups])
        });
        let turned = ComplexPair {
            re: B::float_swap_dims(self.second.re.clone(), 0, 1),
            im: B::float_swap_dims(self.second.im.clone(), 0, 1),
        };
        let second = product(&grouped.re, Some(&grouped.im), &turned, true);
        let second = second.map(|x| reshape::<B>(x, &[rows, a, b]));
        times(&second, &self.twiddle, true)
    }
}

impl<B: Backend> Chirp<B> {
    /// Long enough that a convolution does not wrap around into what is kept, with two factors of nearly the same size.
    fn length(n: usize, bins: usize) -> usize {
        let least = n + bins - 1;
        let a = least.isqrt();
        a * least.div_ceil(a)
    }

    fn new(n: usize, bins: usize, make: MakeConstant<'_, B>) -> Self {
        let length = Self::length(n, bins);
        let (_, a) = split(length, length);
        // c_w has the period 2n in w^2.
        let angle = |w: usize| TAU * ((w * w) % (2 * n)) as f64 / (2 * n) as f64;
        // c at v - w for v below `bins` and w below `n`, and 0 elsewhere.
        let mut kernel = vec![[0.0; 2]; length];
        for place in 0..bins.max(n) {
            let c = [angle(place).cos(), angle(place).sin()];
            if place < bins {
                kernel[place] = c;
            }
            if 0 < place && place < n {
                kernel[length - place] = c;
            }
        }
        let stages = Stages::new([a, length / a], length, 1.0, make);
        let of_part = |part: usize| {
            let values = kernel.iter().map(|c| c[part]).collect();
            make(values, &[1, length])
        };
        // Both transforms are without a scale: 1/length for the inverse, 1/sqrt(n) for the unitary one.
        let scale = 1.0 / (length as f64 * (n as f64).sqrt());
        let spectrum = stages.there(of_part(0), Some(of_part(1)));
        let spectrum = spectrum.map(|x| B::float_mul_scalar(x, scale.into()));
        let angles = (0..n).map(angle);
        Self {
            inputs: n,
            stages,
            chirp: pair(angles, 1.0, &[1, n], make),
            spectrum,
        }
    }

    fn there(&self, re: FloatTensor<B>, im: Option<FloatTensor<B>>) -> ComplexPair<B> {
        let x = match im {
            Some(im) => times(&ComplexPair { re, im }, &self.chirp, false),
            None => self.chirp.map_ref(|c| B::float_mul(re.clone(), c.clone())),
        };
        let x = x.map(|x| padded::<B>(x, self.stages.sizes.iter().product()));
        let product = times(&self.stages.there(x.re, Some(x.im)), &self.spectrum, false);
        let y = self.stages.back(product);
        let y = y.map(|x| part::<B>(x, 1, 0, self.inputs));
        times(&y, &self.chirp, false)
    }

    fn back(&self, bins: ComplexPair<B>) -> ComplexPair<B> {
        // The adjoint of every step, in the other order.
        let (given, length) = (bins.re.shape()[1], self.stages.sizes.iter().product());
        let chirp = self.chirp.map_ref(|c| part::<B>(c.clone(), 1, 0, given));
        let x = times(&bins, &chirp, true).map(|x| padded::<B>(x, length));
        let product = times(&self.stages.there(x.re, Some(x.im)), &self.spectrum, true);
        let y = self.stages.back(product);
        let y = y.map(|x| part::<B>(x, 1, 0, self.inputs));
        times(&y, &self.chirp, true)
    }
}

impl<B: Backend> ComplexPair<B> {
    pub(super) fn map(self, mut f: impl FnMut(FloatTensor<B>) -> FloatTensor<B>) -> Self {
        Self {
            re: f(self.re),
            im: f(self.im),
        }
    }

    fn map_ref(&self, f: impl Fn(&FloatTensor<B>) -> FloatTensor<B>) -> Self {
        Self {
            re: f(&self.re),
            im: f(&self.im),
        }
    }
}

fn scale_of(n: usize) -> f64 {
    (n as f64).sqrt().recip()
}

/// The angle of `e(ab/n)`: products are reduced exactly before the division, so long lengths lose no digits.
fn turn(a: usize, b: usize, n: usize) -> f64 {
    TAU * ((a * b) % n) as f64 / n as f64
}

/// `scale exp(-i angle)`.
fn pair<B: Backend>(
    angles: impl Iterator<Item = f64>,
    scale: f64,
    shape: &[usize],
    make: MakeConstant<'_, B>,
) -> ComplexPair<B> {
    let (re, im) = angles
        .map(|angle| (scale * angle.cos(), -scale * angle.sin()))
        .unzip();
    ComplexPair {
        re: make(re, shape),
        im: make(im, shape),
    }
}

/// The cost of two stages per value, and the first factor of the cheapest.
fn split(n: usize, bins: usize) -> (usize, usize) {
    let factors = (1..=n).filter(|a| n.is_multiple_of(*a));
    let costs = factors.map(|a| (2 * a + 4 * bins.div_ceil(a), a));
    costs.min().expect("1 divides everything")
}

/// `x M`, or `x conj(M)`.
fn product<B: Backend>(
    re: &FloatTensor<B>,
    im: Option<&FloatTensor<B>>,
    matrix: &ComplexPair<B>,
    conjugate: bool,
) -> ComplexPair<B> {
    let multiply = |x: &FloatTensor<B>, m: &FloatTensor<B>| B::float_matmul(x.clone(), m.clone());
    complex(re, im, matrix, conjugate, multiply)
}

/// `M x`, or `conj(M) x`.
fn from_left<B: Backend>(
    matrix: &ComplexPair<B>,
    re: &FloatTensor<B>,
    im: Option<&FloatTensor<B>>,
    conjugate: bool,
) -> ComplexPair<B> {
    let multiply = |x: &FloatTensor<B>, m: &FloatTensor<B>| B::float_matmul(m.clone(), x.clone());
    complex(re, im, matrix, conjugate, multiply)
}

/// `x c`, or `x conj(c)`, value by value.
fn times<B: Backend>(x: &ComplexPair<B>, c: &ComplexPair<B>, conjugate: bool) -> ComplexPair<B> {
    let multiply = |x: &FloatTensor<B>, c: &FloatTensor<B>| B::float_mul(x.clone(), c.clone());
    complex(&x.re, Some(&x.im), c, conjugate, multiply)
}

fn complex<B: Backend>(
    re: &FloatTensor<B>,
    im: Option<&FloatTensor<B>>,
    other: &ComplexPair<B>,
    conjugate: bool,
    multiply: impl Fn(&FloatTensor<B>, &FloatTensor<B>) -> FloatTensor<B>,
) -> ComplexPair<B> {
    let of_re = ComplexPair {
        re: multiply(re, &other.re),
        im: multiply(re, &other.im),
    };
    let Some(im) = im else {
        return match conjugate {
            true => ComplexPair {
                im: B::float_neg(of_re.im),
                ..of_re
            },
            false => of_re,
        };
    };
    let (crossed, straight) = (multiply(im, &other.im), multiply(im, &other.re));
    match conjugate {
        true => ComplexPair {
            re: B::float_add(of_re.re, crossed),
            im: B::float_sub(straight, of_re.im),
        },
        false => ComplexPair {
            re: B::float_sub(of_re.re, crossed),
            im: B::float_add(of_re.im, straight),
        },
    }
}

/// `[rows, m]` with zeros behind, up to `[rows, length]`.
fn padded<B: Backend>(x: FloatTensor<B>, length: usize) -> FloatTensor<B> {
    let [rows, own] = [x.shape()[0], x.shape()[1]];
    if own == length {
        return x;
    }
    let zeros = B::float_zeros(
        vec![rows, length - own].into(),
        &x.device(),
        x.dtype().into(),
    );
    B::float_cat(vec![x, zeros], 1)
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
