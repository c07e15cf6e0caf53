//! Which real coordinates make up a half spectrum (`docs/mathematics.md`, sections 2 and 3).

mod bin;
mod half_plane;
mod half_spectrum;

pub use bin::Bin;
pub use half_plane::HalfPlane;
pub use half_spectrum::HalfSpectrum;

/// `min(k, n - k)/max(1, floor(n/2))`, the wrapped frequency in `[0, 1]`.
fn wrapped_radius(k: usize, n: usize) -> f64 {
    k.min(n.saturating_sub(k)) as f64 / (n / 2).max(1) as f64
}
