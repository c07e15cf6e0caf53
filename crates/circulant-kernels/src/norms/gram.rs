//! Gram bounds: a smooth upper bound on the norm, with its gradient.
//!
//! With `G = K^H K`, squared `k` times and `p = 2^(k + 1)`, the Frobenius norm of the last power gives
//! `B = |G^(2^k)|_F^(1/p) = (tr G^p)^(1/(2p)) = (sum_i sigma_i^(2p))^(1/(2p))`. It is at least
//! `sigma_max` and at most `rank^(1/(2p)) sigma_max`. Its gradient exists wherever `K` is not zero, also
//! where singular values coincide: `dB/dK = B/(tr G^p) K G^(p-1)`, the real part for `Re K` and
//! the imaginary part for `Im K`, and `G^(p-1) = G G^2 G^4 ... G^(2^k)` comes from the same powers.
//!
//! Of a layer with many bins, the bound is that of the bin with the largest norm; all other bins
//! are proven to lie below it. So the bound is a little tighter, and far cheaper, than the largest
//! bound over all bins. What is returned is not the computed `B` but a number at or just above it
//! that a factorisation in f64 has proven (`proof`), so rounding in the powers cannot break it.

use faer::{Mat, c64};

use crate::error::KernelError;
use crate::half_plane::HalfPlane;

use super::image::PlaneBins;
use super::leading::to_faer;
use super::matrix::Matrix;
use super::search::{Bins, Search};

/// `64^(2^-26)` is `1 + 6e-8`: more squarings than this change nothing that rounding leaves visible.
const MOST_SQUARINGS: usize = 24;

/// A certified upper bound on the norm of a 2D layer, coordinates `[coordinate, C_in, C_out]`.
///
/// `squarings` is `k` above; 4 to 6 are usual. For random square matrices of 64 channels the bound
/// is TIGHTNESS.
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

/// A bound in scaled numbers and the bin that it is the bound of.
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
        let upper = search.confirm(index, powers.bound);
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

/// The powers `G, G^2, G^4, ...` of one matrix, each divided by its Frobenius norm.
pub(super) struct Powers {
    matrix: Mat<c64>,
    powers: Vec<Mat<c64>>,
    bound: f64,
}

impl Powers {
    pub(super) fn new(matrix: &Matrix<f64>, squarings: usize) -> Self {
        let matrix = to_faer(matrix);
        let mut power = matrix.adjoint() * &matrix;
        let mut powers = Vec::new();
        // B^p = |G^(2^k)|_F, and every division is made up for: B = norm_0^(1/2) norm_1^(1/4) ...
        let mut bound = 1.0;
        for k in 0..=squarings.min(MOST_SQUARINGS) {
            let norm = power.norm_l2();
            if norm == 0.0 {
                return Self {
                    matrix,
                    powers: Vec::new(),
                    bound: 0.0,
                };
            }
            bound *= (0..=k).fold(norm, |root, _| root.sqrt());
            power = faer::Scale(c64::new(1.0 / norm, 0.0)) * power;
            let square = &power * &power;
            powers.push(std::mem::replace(&mut power, square));
        }
        Self {
            matrix,
            powers,
            bound,
        }
    }

    /// `B/(tr G^p) K G^(p-1)`, zero for a zero matrix.
    ///
    /// With `Q` the product of the normalised powers, `K G^(p-1)` is a multiple of `K Q`; the
    /// multiple follows from Euler's identity `sum dB/dK K = B`.
    pub(super) fn gradient(&self) -> Mat<c64> {
        let mut product = self.matrix.clone();
        for power in &self.powers {
            product = &product * power;
        }
        let mut inner = 0.0;
        for j in 0..product.ncols() {
            for i in 0..product.nrows() {
                let (x, k) = (product[(i, j)], self.matrix[(i, j)]);
                inner += x.re * k.re + x.im * k.im;
            }
        }
        let factor = if inner > 0.0 { self.bound / inner } else { 0.0 };
        faer::Scale(c64::new(factor, 0.0)) * product
    }
}
