//! A certified lower bound on `sigma_max(K)`: the gain `|K v|/|v|` of an explicit vector, less its rounding
//! (`docs/mathematics.md`, section 7).
//!
//! The vector comes from the Lanczos iteration on `K^H K` with full reorthogonalisation, or from a
//! singular value decomposition where that is not accurate enough. How good the vector is decides
//! how tight the bound is, never whether it holds.

use faer::linalg::solvers::Svd;
use faer::{Mat, Side, c64};

use crate::error::KernelError;
use crate::vector::{Isa, Kernel, Present, Vector};

use super::matrix::Matrix;

/// A vector of complex numbers in two planes; `im` is empty next to a real matrix.
#[derive(Debug, Clone)]
struct Split {
    re: Vec<f64>,
    im: Vec<f64>,
}

impl Split {
    fn zeros(len: usize, complex: bool) -> Self {
        Self {
            re: vec![0.0; len],
            im: vec![0.0; if complex { len } else { 0 }],
        }
    }

    fn norm(&self) -> f64 {
        (dot(&self.re, &self.re) + dot(&self.im, &self.im)).sqrt()
    }

    fn scale(&mut self, factor: f64) {
        self.re.iter_mut().for_each(|x| *x *= factor);
        self.im.iter_mut().for_each(|x| *x *= factor);
    }

    /// `self += (re + i im) other`.
    fn add(&mut self, re: f64, im: f64, other: &Self) {
        axpy(&mut self.re, re, &other.re);
        axpy(&mut self.im, re, &other.im);
        if !self.im.is_empty() {
            axpy(&mut self.re, -im, &other.im);
            axpy(&mut self.im, im, &other.re);
        }
    }

    /// `self^H other`.
    fn inner(&self, other: &Self) -> (f64, f64) {
        let re = dot(&self.re, &other.re) + dot(&self.im, &other.im);
        if self.im.is_empty() {
            return (re, 0.0);
        }
        (re, dot(&self.re, &other.im) - dot(&self.im, &other.re))
    }
}

/// Eight running sums, so that the compiler uses vectors.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = a.remainder().iter().zip(b.remainder());
    let rest: f64 = rest.map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[inline(always)]
fn axpy(to: &mut [f64], factor: f64, from: &[f64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += factor * from;
    }
}

/// `y = K v`; `v` is as long as a padded row.
fn apply(matrix: &Matrix<f64>, v: &Split, y: &mut Split) {
    Isa::best().run::<f64, _>(Apply { matrix, v, y });
}

/// `z = K^H K v`; both are as long as a padded row.
fn apply_gram(matrix: &Matrix<f64>, v: &Split, z: &mut Split) {
    Isa::best().run::<f64, _>(ApplyGram { matrix, v, z });
}

/// Plain loops, compiled for the best instruction set.
struct Apply<'a> {
    matrix: &'a Matrix<f64>,
    v: &'a Split,
    y: &'a mut Split,
}

impl Kernel<f64> for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self, _: Present<V>) {
        let Self { matrix, v, y } = self;
        for r in 0..matrix.rows {
            let (re, im) = matrix.row(r);
            y.re[r] = dot(re, &v.re) - dot(im, &v.im);
            if matrix.complex {
                y.im[r] = dot(re, &v.im) + dot(im, &v.re);
            }
        }
    }
}

struct ApplyGram<'a> {
    matrix: &'a Matrix<f64>,
    v: &'a Split,
    z: &'a mut Split,
}

impl Kernel<f64> for ApplyGram<'_> {
    type Output = ();

    /// Row by row, so that the matrix is read once.
    #[inline(always)]
    fn run<V: Vector<Scalar = f64>>(self, _: Present<V>) {
        let Self { matrix, v, z } = self;
        z.re.fill(0.0);
        z.im.fill(0.0);
        for r in 0..matrix.rows {
            let (re, im) = matrix.row(r);
            let y_re = dot(re, &v.re) - dot(im, &v.im);
            axpy(&mut z.re, y_re, re);
            if matrix.complex {
                let y_im = dot(re, &v.im) + dot(im, &v.re);
                axpy(&mut z.re, y_im, im);
                axpy(&mut z.im, y_im, re);
                axpy(&mut z.im, -y_re, im);
            }
        }
    }
}

/// A certified lower bound on `sigma_max`, from a vector whose residual as an eigenvector of
/// `K^H K` is below `tolerance*sigma^2` or that took `n` steps, or as many as `STEPS`.
pub(super) fn lower_bound(matrix: &Matrix<f64>, tolerance: f64) -> f64 {
    gain(matrix, &lanczos(matrix, tolerance))
}

/// A certified lower bound on `sigma_max`, from the right singular vector of a decomposition; 0 when
/// that does not converge.
pub(super) fn exact_lower_bound(matrix: &Matrix<f64>) -> f64 {
    let Ok(svd) = decompose(matrix) else {
        return 0.0;
    };
    let mut v = Split::zeros(matrix.stride, matrix.complex);
    for j in 0..matrix.columns {
        v.re[j] = svd.V()[(j, 0)].re;
        if matrix.complex {
            v.im[j] = svd.V()[(j, 0)].im;
        }
    }
    gain(matrix, &v)
}

/// The complex singular value decomposition, values in falling order.
pub(super) fn decompose(matrix: &Matrix<f64>) -> Result<Svd<c64>, KernelError> {
    to_faer(matrix).thin_svd().map_err(|_| NOT_CONVERGED)
}

/// A decomposition of finite numbers of ordinary size converges; what does not was not finite.
pub(super) const NOT_CONVERGED: KernelError = KernelError::NotFinite {
    what: "a matrix decomposition",
};

pub fn to_faer(matrix: &Matrix<f64>) -> Mat<c64> {
    Mat::from_fn(matrix.rows, matrix.columns, |i, j| {
        let (re, im) = matrix.row(i);
        c64::new(re[j], if matrix.complex { im[j] } else { 0.0 })
    })
}

fn gain(matrix: &Matrix<f64>, v: &Split) -> f64 {
    let mut y = Split::zeros(matrix.rows, matrix.complex);
    apply(matrix, v, &mut y);
    let g = (2 * matrix.columns + 16) as f64 * f64::EPSILON;
    let h = (matrix.rows / 8 + 24) as f64 * f64::EPSILON;
    let (of_y, of_v) = (y.norm(), v.norm());
    let surplus = 1.5 * g * matrix.frobenius() * of_v;
    let bound = (of_y * (1.0 - h) - surplus) / (of_v * (1.0 + h)) * (1.0 - 16.0 * f64::EPSILON);
    // A NaN (a zero vector) becomes 0 as well: no claim.
    bound.max(0.0)
}

/// More steps than this cost more than a decomposition gains.
const STEPS: usize = 160;
/// The first look at the residual; later ones are half as many steps apart as were taken, because
/// a look costs the decomposition of a tridiagonal matrix.
const LOOK: usize = 8;

/// The leading Ritz vector of `K^H K`, as long as a padded row.
fn lanczos(matrix: &Matrix<f64>, tolerance: f64) -> Split {
    let complex = matrix.complex;
    let mut v = start(matrix);
    let mut basis: Vec<Split> = Vec::new();
    let (mut diagonal, mut beside): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let steps = matrix.columns.min(STEPS);
    let mut look = LOOK;
    loop {
        let mut z = Split::zeros(matrix.stride, complex);
        apply_gram(matrix, &v, &mut z);
        diagonal.push(v.inner(&z).0);
        basis.push(v);
        for other in basis.iter().rev() {
            let (re, im) = other.inner(&z);
            z.add(-re, -im, other);
        }
        let beta = z.norm();
        let largest = diagonal.iter().copied().fold(0.0, f64::max);
        // What is left when the space is exhausted is rounding error.
        let exhausted = beta <= 1e-13 * largest || basis.len() >= steps;
        if exhausted || basis.len() == look {
            look += LOOK.max(look / 2);
            let coefficients = leading_of_tridiagonal(&diagonal, &beside);
            let last = coefficients[coefficients.len() - 1].abs();
            if exhausted || beta * last <= tolerance * largest {
                let mut ritz = Split::zeros(matrix.stride, complex);
                for (v, &c) in basis.iter().zip(&coefficients) {
                    ritz.add(c, 0.0, v);
                }
                return ritz;
            }
        }
        z.scale(1.0 / beta);
        beside.push(beta);
        v = z;
    }
}

/// The eigenvector of the largest eigenvalue of a real symmetric tridiagonal matrix; the first unit
/// vector when the decomposition does not converge.
fn leading_of_tridiagonal(diagonal: &[f64], beside: &[f64]) -> Vec<f64> {
    let n = diagonal.len();
    let matrix = Mat::from_fn(n, n, |i, j| match i.abs_diff(j) {
        0 => diagonal[i],
        1 => beside[i.min(j)],
        _ => 0.0,
    });
    match matrix.self_adjoint_eigen(Side::Lower) {
        // Values come in rising order.
        Ok(eigen) => (0..n).map(|i| eigen.U()[(i, n - 1)]).collect(),
        Err(_) => (0..n).map(|i| f64::from(u8::from(i == 0))).collect(),
    }
}

/// A fixed vector of norm 1 of values that look random, so that it is orthogonal to nothing in
/// particular.
fn start(matrix: &Matrix<f64>) -> Split {
    let mut v = Split::zeros(matrix.stride, matrix.complex);
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    for j in 0..matrix.columns {
        v.re[j] = next();
        if matrix.complex {
            v.im[j] = next();
        }
    }
    let norm = v.norm();
    v.scale(1.0 / norm);
    v
}
