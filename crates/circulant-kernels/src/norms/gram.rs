//! Gram bounds: a smooth upper bound on the norm, with its gradient (`docs/mathematics.md`, section 7). The powers of the gradient are
//! those of the bound, `G^(p-1) = G G^2 G^4 ... G^(2^k)`.
//!
//! Of a layer with many bins, the bound is that of the bin with the largest norm; all other bins
//! are proven to lie below it. What is returned is not the computed `B` but a number at or just above it
//! that a factorisation in f64 has proven (`proof`), so rounding in the powers cannot break it.

use circulant_core::HalfPlane;
use faer::traits::ComplexField;
use faer::{Mat, c64};

use crate::error::KernelError;

use super::image::PlaneBins;
use super::leading::to_faer;
use super::matrix::Matrix;
use super::search::{Bins, Search};

/// `64^(2^-26)` is `1 + 6e-8`: more squarings than this change nothing that rounding leaves visible.
const MOST_SQUARINGS: usize = 24;

/// A certified upper bound on the norm of a 2D layer, coordinates `[coordinate, C_in, C_out]`.
///
/// `squarings` is `k` above. For a random Gaussian layer of 64 to 64 channels on 32 x 32 pixels the
/// bound exceeds the norm by 17, 4, 0.6 and 0.04 percent for `k` = 1, 2, 3 and 4; singular values that lie
/// closer together need more.
///
/// ```
/// use circulant_kernels::{HalfPlane, gram_bound_2d};
///
/// let layout = HalfPlane::new(1, 1)?; // one real bin: here the 2 x 2 identity
/// let bound = gram_bound_2d(&layout, 2, 2, &[1.0, 0.0, 0.0, 1.0], 4)?;
/// assert!(1.0 <= bound && bound < 1.02);
/// # Ok::<(), circulant_kernels::KernelError>(())
/// ```
pub fn gram_bound_2d(
    layout: &HalfPlane,
    channels_in: usize,
    channels_out: usize,
    coordinates: &[f64],
    squarings: usize,
) -> Result<f64, KernelError> {
    let Some(bins) = PlaneBins::new(layout, channels_in, channels_out, coordinates)? else {
        return Ok(0.0);
    };
    let bound = bound_of(&bins, squarings)?;
    Ok(bins.scale().undo_up(bound.upper))
}

/// [`gram_bound_2d`] with the gradient of the bound before rounding, in the shape of the
/// coordinates. It is zero outside the bin with the largest norm, and zero for a zero layer.
pub fn gram_bound_2d_with_gradient(
    layout: &HalfPlane,
    channels_in: usize,
    channels_out: usize,
    coordinates: &[f64],
    squarings: usize,
) -> Result<(f64, Vec<f64>), KernelError> {
    let mut gradient = vec![0.0; coordinates.len()];
    let Some(bins) = PlaneBins::new(layout, channels_in, channels_out, coordinates)? else {
        return Ok((0.0, gradient));
    };
    let bound = bound_of(&bins, squarings)?;
    let of_bin = bound.powers.gradient();
    let pairs = channels_in * channels_out;
    let free = bins.free(bound.index);
    // The bound is homogeneous of degree 1, so the scale of the bins leaves the gradient alone.
    let at = |part: usize| (free.coordinate + part) * pairs;
    write_gradient(
        &of_bin,
        channels_in,
        |i, c| i * channels_out + c,
        |i, x| {
            gradient[at(0) + i] = x.re;
            if free.complex {
                gradient[at(1) + i] = x.im;
            }
        },
    );
    Ok((bins.scale().undo_up(bound.upper), gradient))
}

/// Calls `write(index, value)` for every entry of a tall gradient, with the index of the entry in
/// the matrix of `rows` rows that the tall one was made from.
pub(super) fn write_gradient(
    gradient: &Mat<c64>,
    rows: usize,
    index: impl Fn(usize, usize) -> usize,
    mut write: impl FnMut(usize, c64),
) {
    let transposed = gradient.nrows() != rows;
    for i in 0..gradient.nrows() {
        for j in 0..gradient.ncols() {
            let (row, column) = if transposed { (j, i) } else { (i, j) };
            write(index(row, column), gradient[(i, j)]);
        }
    }
}

/// A bound in scaled values and the bin that it is the bound of.
pub(super) struct Bound {
    pub(super) upper: f64,
    pub(super) index: usize,
    pub(super) powers: Powers,
}

/// The bound of a layer; the bins must not all be zero.
pub(super) fn bound_of<B: Bins>(bins: &B, squarings: usize) -> Result<Bound, KernelError> {
    let search = Search::new(bins)?;
    let candidates = search.candidates();
    let of_bin = |index: usize| {
        let powers = Powers::new(&search.load(index), squarings);
        let upper = search.confirm(index, powers.bound());
        Bound {
            upper,
            index,
            powers,
        }
    };
    let mut bound = of_bin(candidates[0].index);
    // Bins that were excluded have a norm of at most the best lower bound, so of at most `upper`.
    let others: Vec<usize> = candidates[1..].iter().map(|bin| bin.index).collect();
    for index in search.not_bounded(&others, bound.upper) {
        let other = of_bin(index);
        if other.upper > bound.upper {
            bound = other;
        }
    }
    Ok(bound)
}

/// The powers of one matrix, in real arithmetic for a real one: that is four times less work.
pub(super) enum Powers {
    Real(Chain<f64>),
    Complex(Chain<c64>),
}

impl Powers {
    fn new(matrix: &Matrix<f64>, squarings: usize) -> Self {
        if matrix.complex {
            return Self::Complex(Chain::new(to_faer(matrix), squarings));
        }
        let real = Mat::from_fn(matrix.rows, matrix.columns, |i, j| matrix.row(i).0[j]);
        Self::Real(Chain::new(real, squarings))
    }

    fn bound(&self) -> f64 {
        match self {
            Self::Real(chain) => chain.bound,
            Self::Complex(chain) => chain.bound,
        }
    }

    /// `B/(tr G^p) K G^(p-1)`, zero for a zero matrix.
    pub(super) fn gradient(&self) -> Mat<c64> {
        match self {
            Self::Real(chain) => chain.gradient(),
            Self::Complex(chain) => chain.gradient(),
        }
    }
}

/// A real or complex number.
pub(super) trait Entry: ComplexField<Real = f64> + Copy {
    fn of(real: f64) -> Self;
    fn parts(self) -> c64;
}

impl Entry for f64 {
    fn of(real: f64) -> Self {
        real
    }
    fn parts(self) -> c64 {
        c64::new(self, 0.0)
    }
}

impl Entry for c64 {
    fn of(real: f64) -> Self {
        Self::new(real, 0.0)
    }
    fn parts(self) -> c64 {
        self
    }
}

/// `G, G^2, G^4, ...`, each divided by its Frobenius norm.
pub(super) struct Chain<E> {
    matrix: Mat<E>,
    powers: Vec<Mat<E>>,
    bound: f64,
}

impl<E: Entry> Chain<E> {
    fn new(matrix: Mat<E>, squarings: usize) -> Self {
        let last = squarings.min(MOST_SQUARINGS);
        let mut power = matrix.adjoint() * &matrix;
        let mut powers = Vec::new();
        // B^p = |G^(2^k)|_F, and every division is made up for: B = norm_0^(1/2) norm_1^(1/4) ...
        let mut bound = 1.0;
        for k in 0..=last {
            let norm = power.norm_l2();
            // Only a zero matrix has it: the square of a normalised power has at least 1/sqrt(n).
            if norm == 0.0 {
                bound = 0.0;
                break;
            }
            bound *= (0..=k).fold(norm, |root, _| root.sqrt());
            power = faer::Scale(E::of(1.0 / norm)) * power;
            let next = if k < last {
                &power * &power
            } else {
                Mat::new()
            };
            powers.push(std::mem::replace(&mut power, next));
        }
        Self {
            matrix,
            powers,
            bound,
        }
    }

    /// With `Q` the product of the normalised powers, `K G^(p-1)` is a multiple of `K Q`; the
    /// multiple follows from Euler's identity, `sum dB/dK K = B`.
    fn gradient(&self) -> Mat<c64> {
        let mut product = self.matrix.clone();
        for power in &self.powers {
            product = &product * power;
        }
        let (rows, columns) = (product.nrows(), product.ncols());
        let mut inner = 0.0;
        for j in 0..columns {
            for i in 0..rows {
                let (x, k) = (product[(i, j)].parts(), self.matrix[(i, j)].parts());
                inner += x.re * k.re + x.im * k.im;
            }
        }
        let factor = if inner > 0.0 { self.bound / inner } else { 0.0 };
        Mat::from_fn(rows, columns, |i, j| product[(i, j)].parts() * factor)
    }
}
