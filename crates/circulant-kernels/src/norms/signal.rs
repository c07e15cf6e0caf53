//! The norm of a 1D layer, `max_k |h_k|`.

use circulant_core::HalfSpectrum;

use crate::error::{KernelError, expect_len};

use super::matrix::Scale;
use super::{NormEnclosure, expect_finite};

/// Squares between these two are far from overflow and from the loss of bits to underflow.
const SAFE: std::ops::Range<f64> = 1e-270..1e270;

/// `max_k |h_k|`, enclosed.
///
/// ```
/// use circulant_kernels::{HalfSpectrum, operator_norm_1d};
///
/// let layout = HalfSpectrum::new(4)?; // Re h0, Re h1, Im h1, Re h2
/// let norm = operator_norm_1d(&layout, &[1.0, 3.0, 4.0, -2.0])?;
/// assert!(norm.lower <= 5.0 && 5.0 <= norm.upper && norm.upper - norm.lower < 1e-14);
/// # Ok::<(), circulant_kernels::KernelError>(())
/// ```
pub fn operator_norm_1d(
    layout: &HalfSpectrum,
    coordinates: &[f64],
) -> Result<NormEnclosure, KernelError> {
    expect_len("coordinates", coordinates.len(), layout.coordinates())?;
    expect_finite("the coordinates", coordinates)?;
    Ok(enclose(&Signal { coordinates }, coordinates))
}

/// Bins that are single values.
pub(super) trait Moduli {
    /// The largest `re^2 + im^2` after every number went through `scale`.
    fn largest_square(&self, scale: impl Fn(f64) -> f64) -> f64;
}

struct Signal<'a> {
    coordinates: &'a [f64],
}

impl Moduli for Signal<'_> {
    fn largest_square(&self, scale: impl Fn(f64) -> f64) -> f64 {
        // Bin 0 is one number; then come pairs, and for an even length bin d/2 is one number again.
        let (first, rest) = self.coordinates.split_at(1);
        let mut lanes = [0.0f64; 4];
        let chunks = rest.chunks_exact(8);
        let others = chunks.remainder().chunks(2).chain([first]);
        for chunk in chunks {
            for (lane, pair) in lanes.iter_mut().zip(chunk.chunks_exact(2)) {
                let (re, im) = (scale(pair[0]), scale(pair[1]));
                let square = re * re + im * im;
                *lane = if square > *lane { square } else { *lane };
            }
        }
        others.fold(lanes.into_iter().fold(0.0, f64::max), |largest, bin| {
            largest.max(bin.iter().map(|&x| scale(x) * scale(x)).sum())
        })
    }
}

/// The root of the largest square; `coordinates` are all values that `bins` reads, finite.
///
/// Rounding: `re^2 + im^2` has a relative error of at most `2u + u^2` (two products, one sum, all
/// terms positive), so the largest computed square is within that of the largest exact one. The
/// root halves it and adds `u`: less than `2.1 u < 1.1 eps` in all. Where the square is in
/// [`SAFE`], a part that underflowed is smaller by more than `10^20`. Factors `1 +- 2 eps` and the
/// rounding of the two products enclose the norm.
pub(super) fn enclose(bins: &impl Moduli, coordinates: &[f64]) -> NormEnclosure {
    let enclose = |square: f64| {
        let root = square.sqrt();
        let (down, up) = (1.0 - 2.0 * f64::EPSILON, 1.0 + 2.0 * f64::EPSILON);
        ((root * down).next_down(), (root * up).next_up())
    };
    let square = bins.largest_square(|x| x);
    if SAFE.contains(&square) {
        let (lower, upper) = enclose(square);
        return NormEnclosure { lower, upper };
    }
    let Some(scale) = Scale::of(coordinates) else {
        return NormEnclosure::ZERO;
    };
    let (lower, upper) = enclose(bins.largest_square(|x| scale.apply(x)));
    NormEnclosure {
        lower: scale.undo_down(lower),
        upper: scale.undo_up(upper),
    }
}
