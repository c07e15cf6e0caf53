//! The half plane of a real image of size `H x W`: `H x (W/2 + 1)` stored bins, `H*W` free real
//! coordinates per channel pair (`docs/mathematics.md`, section 2).
//!
//! Interior columns `0 < v < W/2` hold free complex bins. Column 0, and column `W/2` when `W` is
//! even, are paired with themselves, `K[u,v] = conj(K[(-u) mod H, v])`: row 0 (and `H/2` when `H`
//! is even) is real there, rows below the middle are free, rows above it are filled by
//! conjugation. Making such a column real as a whole would lose degrees of freedom, and leaving
//! both members of a pair free would double them.
//!
//! Coordinates walk the half plane row by row and skip the bins that are filled. With several
//! channel pairs a coordinate holds one number per pair: coordinates are
//! `[coordinate, channel pair]` and bins `[u, v, channel pair]`, row-major. This keeps the matrix
//! of one frequency contiguous, which is what the channel mixing reads.

use num_complex::Complex;

use crate::error::KernelError;
use crate::layout::bins::{Bin, BinTable, wrapped_radius};
use crate::real::Real;

/// Layout of a 2D half plane, with the bins inside a relative radius kept.
///
/// ```
/// use circulant_kernels::HalfPlane;
///
/// let layout = HalfPlane::new(28, 28)?;
/// assert_eq!((layout.bins(), layout.coordinates()), (28 * 15, 784));
/// let low = HalfPlane::with_radius(28, 28, 0.0)?;
/// assert_eq!(low.coordinates(), 1); // only the mean
/// # Ok::<(), circulant_kernels::KernelError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct HalfPlane {
    height: usize,
    width: usize,
    cutoff: f64,
    table: BinTable,
}

impl HalfPlane {
    /// The whole half plane of an image of `height x width`.
    pub fn new(height: usize, width: usize) -> Result<Self, KernelError> {
        Self::with_radius(height, width, 1.0)
    }

    /// Only the bins with `rho(u,v)/max rho <= cutoff` (`K_rad` of the paper), `0 <= K_rad <= 1`.
    pub fn with_radius(height: usize, width: usize, cutoff: f64) -> Result<Self, KernelError> {
        if height == 0 || width == 0 {
            let what = if height == 0 {
                "the height"
            } else {
                "the width"
            };
            return Err(KernelError::ZeroSize { what });
        }
        if !(0.0..=1.0).contains(&cutoff) {
            return Err(KernelError::Radius { got: cutoff });
        }
        let mut layout = Self {
            height,
            width,
            cutoff,
            table: BinTable {
                bins: Vec::new(),
                coordinates: 0,
            },
        };
        layout.table = layout.build_table();
        Ok(layout)
    }

    fn build_table(&self) -> BinTable {
        let (height, columns) = (self.height, self.width / 2 + 1);
        let farthest = self.radius(height / 2, self.width / 2);
        let mut bins = Vec::with_capacity(height * columns);
        let mut coordinates = 0;
        for u in 0..height {
            for v in 0..columns {
                let paired = v == 0 || 2 * v == self.width;
                let kept = self.radius(u, v) <= self.cutoff * farthest;
                let coordinate = coordinates;
                bins.push(if !kept {
                    Bin::Masked
                } else if paired && (u == 0 || 2 * u == height) {
                    coordinates += 1;
                    Bin::Real { coordinate }
                } else if paired && 2 * u > height {
                    match bins[(height - u) * columns + v] {
                        Bin::Complex { coordinate } => Bin::Conjugate { coordinate },
                        other => other,
                    }
                } else {
                    coordinates += 2;
                    Bin::Complex { coordinate }
                });
            }
        }
        BinTable { bins, coordinates }
    }

    /// The image height `H`.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The image width `W`.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The number of stored columns, `W/2 + 1`.
    pub fn columns(&self) -> usize {
        self.width / 2 + 1
    }

    /// The number of stored bins, `H*(W/2 + 1)`.
    pub fn bins(&self) -> usize {
        self.table.bins.len()
    }

    /// The relative radius inside which bins are kept, `K_rad`.
    pub fn cutoff(&self) -> f64 {
        self.cutoff
    }

    /// The number of free real coordinates per channel pair, `d_eff/(C_in*C_out)`.
    pub fn coordinates(&self) -> usize {
        self.table.coordinates
    }

    /// What the stored bin `(u, v)` is.
    pub fn bin(&self, u: usize, v: usize) -> Bin {
        self.table.bins[u * self.columns() + v]
    }

    /// How often the stored bin `(u, v)` occurs in the full plane, together with what the stored
    /// plane holds already: 1 in the paired columns, else 2.
    pub fn multiplicity(&self, _u: usize, v: usize) -> usize {
        if v == 0 || 2 * v == self.width { 1 } else { 2 }
    }

    /// The normalised radius `sqrt(rho_H(u)^2 + rho_W(v)^2)`, up to `sqrt 2`.
    pub fn radius(&self, u: usize, v: usize) -> f64 {
        wrapped_radius(u, self.height).hypot(wrapped_radius(v, self.width))
    }

    /// The map T: coordinates to the stored half plane, for `channels` channel pairs.
    pub fn unpack<T: Real>(
        &self,
        coordinates: &[T],
        channels: usize,
        bins: &mut [Complex<T>],
    ) -> Result<(), KernelError> {
        self.table.unpack(coordinates, channels, bins)
    }

    /// The adjoint of T.
    pub fn adjoint<T: Real>(
        &self,
        bins: &[Complex<T>],
        channels: usize,
        coordinates: &mut [T],
    ) -> Result<(), KernelError> {
        self.table.adjoint(bins, channels, coordinates)
    }

    /// The left inverse of T: free bins back to coordinates.
    pub fn pack<T: Real>(
        &self,
        bins: &[Complex<T>],
        channels: usize,
        coordinates: &mut [T],
    ) -> Result<(), KernelError> {
        self.table.pack(bins, channels, coordinates)
    }

    /// The same map on the full plane, `H*W` bins in natural order.
    pub(crate) fn full(&self) -> Vec<Bin> {
        let (height, width) = (self.height, self.width);
        (0..height * width)
            .map(|index| {
                let (u, v) = (index / width, index % width);
                if v < self.columns() {
                    return self.bin(u, v);
                }
                match self.bin((height - u) % height, width - v) {
                    Bin::Complex { coordinate } => Bin::Conjugate { coordinate },
                    other => other,
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_grid_has_as_many_coordinates_as_pixels() {
        for height in 1..20 {
            for width in 1..20 {
                let layout = HalfPlane::new(height, width).expect("valid");
                assert_eq!(layout.coordinates(), height * width, "{height} x {width}");
                let total: usize = (0..layout.bins())
                    .map(|i| layout.multiplicity(i / layout.columns(), i % layout.columns()))
                    .sum();
                assert_eq!(total, height * width);
            }
        }
    }

    #[test]
    fn masks_keep_conjugate_pairs_together() {
        for (height, width) in [(1, 1), (4, 6), (5, 7), (8, 3), (7, 8)] {
            for cutoff in [0.0, 0.3, 0.5, 0.8, 1.0] {
                let layout = HalfPlane::with_radius(height, width, cutoff).expect("valid");
                // Every pixel of the full plane inside the radius is one real degree of freedom.
                let farthest = layout.radius(height / 2, width / 2);
                let inside = (0..height * width)
                    .filter(|i| layout.radius(i / width, i % width) <= cutoff * farthest)
                    .count();
                assert_eq!(layout.coordinates(), inside, "{height} x {width}, {cutoff}");
            }
        }
    }

    #[test]
    fn wrong_sizes_are_errors() {
        assert!(HalfPlane::new(0, 3).is_err());
        assert!(HalfPlane::new(3, 0).is_err());
        for cutoff in [-0.1, 1.1, f64::NAN] {
            assert!(HalfPlane::with_radius(4, 4, cutoff).is_err());
        }
    }
}
