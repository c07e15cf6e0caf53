//! Operator norms in f64: certified enclosures, Gram bounds with gradients, and clipping (`docs/mathematics.md`,
//! section 7).
//!
//! With unitary transforms the bins are the blocks of the operator, so its norm is the largest
//! singular value of any bin: `max_k |h_k|` in 1D, `max_(u,v) sigma_max(K(u,v))` in 2D. Conjugate
//! bins have the singular values of their partners and masked bins are zero, so only the free
//! bins are looked at.
//!
//! Nothing here trusts an eigenvalue routine. A lower bound is the gain `|K v|/|v|` of an explicit
//! vector, however `v` was found. An upper bound `t` is proven by a Cholesky factorisation of
//! `t^2 I - K^H K` that goes through (`proof`), however `t` was found. Both carry the rounding
//! errors of their own arithmetic.

pub mod clip;
pub mod convolution;
pub mod dense;
pub mod gram;
pub mod image;
pub mod leading;
pub mod matrix;
pub mod proof;
pub mod search;
pub mod signal;
pub mod spectrum;

pub use clip::{clip_norm_1d, clip_norm_2d};
pub use convolution::convolution_norm_bound;
pub use dense::{gram_bound_matrix, gram_bound_matrix_with_gradient, matrix_norm};
pub use gram::{gram_bound_2d, gram_bound_2d_with_gradient};
pub use image::operator_norm_2d;
pub use signal::operator_norm_1d;
pub use spectrum::singular_values_2d;

use crate::error::KernelError;

/// A certified enclosure of a norm: `lower <= true norm <= upper`, rounded outward.
///
/// `upper` is infinite only when the norm itself is too large for an f64.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormEnclosure {
    /// Not above the norm.
    pub lower: f64,
    /// Not below the norm.
    pub upper: f64,
}

impl NormEnclosure {
    const ZERO: Self = Self {
        lower: 0.0,
        upper: 0.0,
    };

    /// The middle of the enclosure: an estimate, not a bound.
    pub fn estimate(&self) -> f64 {
        // Halved first: the sum of two large bounds would overflow.
        0.5 * self.lower + 0.5 * self.upper
    }
}

/// `Ok` when every value is finite.
fn expect_finite(what: &'static str, values: &[f64]) -> Result<(), KernelError> {
    // `0 x` is NaN for NaN and infinity, else 0; lanes keep the loop free of branches.
    let (chunks, rest) = values.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for chunk in chunks {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum += 0.0 * x;
        }
    }
    if sums.iter().chain(rest).all(|x| x.is_finite()) {
        Ok(())
    } else {
        Err(KernelError::NotFinite { what })
    }
}
