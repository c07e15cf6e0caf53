//! The half spectrum of a real signal of length `d`: `k_half = d/2 + 1` stored bins, `d` free
//! real coordinates (`docs/mathematics.md`, section 2).
//!
//! Coordinates are stored in the order of the bins: `Re h_0, Re h_1, Im h_1, Re h_2, Im h_2, ...`
//! and, for even `d` with nothing masked, `Re h_{d/2}` last. Bin 0, and bin `d/2` when `d` is
//! even, are their own conjugates, so they have no imaginary part.

use num_complex::Complex;

use super::bin::{Bin, Bins};
use super::wrapped_radius;
use crate::error::{SizeError, expect_positive};
use crate::scalar::Scalar;

/// Layout of a 1D half spectrum, with the lowest `K` bins kept.
///
/// ```
/// use circulant_core::HalfSpectrum;
///
/// let layout = HalfSpectrum::new(8)?;
/// assert_eq!((layout.bins(), layout.coordinates()), (5, 8));
/// let low = HalfSpectrum::with_modes(8, 3)?;
/// assert_eq!(low.coordinates(), 5); // Re h0, Re h1, Im h1, Re h2, Im h2
/// # Ok::<(), circulant_core::SizeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HalfSpectrum {
    length: usize,
    modes: usize,
}

impl HalfSpectrum {
    /// The whole half spectrum of a signal of length `length`.
    pub fn new(length: usize) -> Result<Self, SizeError> {
        Self::with_modes(length, length / 2 + 1)
    }

    /// Only the lowest `modes` bins (`K` of the paper), `1 <= K <= length/2 + 1`.
    pub fn with_modes(length: usize, modes: usize) -> Result<Self, SizeError> {
        expect_positive(&[("the length", length)])?;
        let max = length / 2 + 1;
        if modes == 0 || modes > max {
            return Err(SizeError::Modes {
                got: modes,
                max,
                length,
            });
        }
        Ok(Self { length, modes })
    }

    /// The signal length `d`.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The number of stored bins, `d/2 + 1`.
    pub fn bins(&self) -> usize {
        self.length / 2 + 1
    }

    /// The number of kept bins, `K`.
    pub fn modes(&self) -> usize {
        self.modes
    }

    /// The number of free real coordinates, `d_eff`.
    pub fn coordinates(&self) -> usize {
        // Two of every kept bin but the first and, for even d, the last.
        (2 * (self.modes - 1) + 1).min(self.length)
    }

    /// What bin `k` of the half spectrum is. Panics when `k` is not a stored bin.
    #[inline]
    pub fn bin(&self, k: usize) -> Bin {
        assert!(k < self.bins(), "bin {k} of {}", self.bins());
        if k >= self.modes {
            Bin::Masked
        } else if k == 0 {
            Bin::Real { coordinate: 0 }
        } else if 2 * k == self.length {
            Bin::Real {
                coordinate: 2 * k - 1,
            }
        } else {
            Bin::Complex {
                coordinate: 2 * k - 1,
            }
        }
    }

    /// The stored bins in order.
    pub fn iter(&self) -> impl Iterator<Item = Bin> {
        (0..self.bins()).map(|k| self.bin(k))
    }

    /// How often bin `k` occurs in the full spectrum: 1 for a self-conjugate bin, else 2.
    pub fn multiplicity(&self, k: usize) -> usize {
        if k == 0 || 2 * k == self.length { 1 } else { 2 }
    }

    /// The normalised radius `rho(k) = min(k, d-k)/max(1, floor(d/2))`.
    pub fn radius(&self, k: usize) -> f64 {
        wrapped_radius(k, self.length)
    }

    /// The map T: coordinates to the stored half spectrum.
    pub fn unpack<T: Scalar>(
        &self,
        coordinates: &[T],
        bins: &mut [Complex<T>],
    ) -> Result<(), SizeError> {
        Bins::unpack(self, coordinates, 1, bins)
    }

    /// The adjoint of T.
    pub fn adjoint<T: Scalar>(
        &self,
        bins: &[Complex<T>],
        coordinates: &mut [T],
    ) -> Result<(), SizeError> {
        Bins::adjoint(self, bins, 1, coordinates)
    }

    /// The left inverse of T: free bins back to coordinates.
    pub fn pack<T: Scalar>(
        &self,
        bins: &[Complex<T>],
        coordinates: &mut [T],
    ) -> Result<(), SizeError> {
        Bins::pack(self, bins, 1, coordinates)
    }

    /// The same map on the full spectrum, `d` bins in natural order.
    pub fn full(&self) -> impl Iterator<Item = Bin> {
        (0..self.length).map(|k| {
            if k < self.bins() {
                self.bin(k)
            } else {
                self.bin(self.length - k).opposite()
            }
        })
    }
}

impl Bins for HalfSpectrum {
    fn len(&self) -> usize {
        self.bins()
    }

    fn coordinates(&self) -> usize {
        self.coordinates()
    }

    fn iter(&self) -> impl Iterator<Item = Bin> {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn a_kept_bin_has_two_coordinates_and_a_self_conjugate_one_has_one() {
        for d in 1..200 {
            let k_half = d / 2 + 1;
            assert_eq!(HalfSpectrum::new(d).expect("valid").coordinates(), d);
            for k in 1..=k_half {
                let layout = HalfSpectrum::with_modes(d, k).expect("valid");
                let expected = if k == k_half && d % 2 == 0 {
                    2 * k - 2
                } else {
                    2 * k - 1
                };
                assert_eq!(layout.coordinates(), expected, "d {d}, K {k}");
                let total: usize = (0..k_half).map(|k| layout.multiplicity(k)).sum();
                assert_eq!(total, d);
            }
        }
    }

    #[test]
    fn wrong_sizes_are_errors_that_name_the_range() {
        assert!(HalfSpectrum::new(0).is_err());
        let message = std::format!("{}", HalfSpectrum::with_modes(8, 6).unwrap_err());
        assert!(
            message.contains("1..=5") && message.contains("got 6"),
            "{message}"
        );
        assert!(HalfSpectrum::with_modes(8, 0).is_err());
        let layout = HalfSpectrum::new(8).expect("valid");
        let mut bins = [Complex::new(0.0, 0.0); 5];
        assert_eq!(
            layout.unpack(&[0.0; 7], &mut bins),
            Err(SizeError::Length {
                what: "coordinates",
                expected: 8,
                got: 7
            })
        );
    }
}
