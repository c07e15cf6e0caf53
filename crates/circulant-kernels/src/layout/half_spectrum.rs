//! The half spectrum of a real signal of length `d`: `k_half = d/2 + 1` stored bins, `d` free
//! real coordinates (`docs/mathematics.md`, section 2).
//!
//! Coordinates are stored in the order of the bins: `Re h_0, Re h_1, Im h_1, Re h_2, Im h_2, ...`
//! and, for even `d` with nothing masked, `Re h_{d/2}` last. Bin 0, and bin `d/2` when `d` is
//! even, are their own conjugates, so they have no imaginary part.

use num_complex::Complex;

use crate::error::KernelError;
use crate::layout::bins::{Bin, BinTable, wrapped_radius};
use crate::real::Real;

/// Layout of a 1D half spectrum, with the lowest `K` bins kept.
///
/// ```
/// use circulant_kernels::HalfSpectrum;
///
/// let layout = HalfSpectrum::new(8)?;
/// assert_eq!((layout.bins(), layout.coordinates()), (5, 8));
/// let low = HalfSpectrum::with_modes(8, 3)?;
/// assert_eq!(low.coordinates(), 5); // Re h0, Re h1, Im h1, Re h2, Im h2
/// # Ok::<(), circulant_kernels::KernelError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct HalfSpectrum {
    length: usize,
    modes: usize,
    table: BinTable,
}

impl HalfSpectrum {
    /// The whole half spectrum of a signal of length `length`.
    pub fn new(length: usize) -> Result<Self, KernelError> {
        Self::with_modes(length, length / 2 + 1)
    }

    /// Only the lowest `modes` bins (`K` of the paper), `1 <= K <= length/2 + 1`.
    pub fn with_modes(length: usize, modes: usize) -> Result<Self, KernelError> {
        if length == 0 {
            return Err(KernelError::ZeroSize { what: "the length" });
        }
        let max = length / 2 + 1;
        if modes == 0 || modes > max {
            return Err(KernelError::Modes {
                got: modes,
                max,
                length,
            });
        }
        let mut coordinates = 0;
        let bins = (0..max)
            .map(|k| {
                let coordinate = coordinates;
                if k >= modes {
                    Bin::Masked
                } else if k == 0 || 2 * k == length {
                    coordinates += 1;
                    Bin::Real { coordinate }
                } else {
                    coordinates += 2;
                    Bin::Complex { coordinate }
                }
            })
            .collect();
        Ok(Self {
            length,
            modes,
            table: BinTable { bins, coordinates },
        })
    }

    /// The signal length `d`.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The number of stored bins, `d/2 + 1`.
    pub fn bins(&self) -> usize {
        self.table.bins.len()
    }

    /// The number of kept bins, `K`.
    pub fn modes(&self) -> usize {
        self.modes
    }

    /// The number of free real coordinates, `d_eff`.
    pub fn coordinates(&self) -> usize {
        self.table.coordinates
    }

    /// What bin `k` of the half spectrum is.
    pub fn bin(&self, k: usize) -> Bin {
        self.table.bins[k]
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
    pub fn unpack<T: Real>(
        &self,
        coordinates: &[T],
        bins: &mut [Complex<T>],
    ) -> Result<(), KernelError> {
        self.table.unpack(coordinates, 1, bins)
    }

    /// The adjoint of T.
    pub fn adjoint<T: Real>(
        &self,
        bins: &[Complex<T>],
        coordinates: &mut [T],
    ) -> Result<(), KernelError> {
        self.table.adjoint(bins, 1, coordinates)
    }

    /// The left inverse of T: free bins back to coordinates.
    pub fn pack<T: Real>(
        &self,
        bins: &[Complex<T>],
        coordinates: &mut [T],
    ) -> Result<(), KernelError> {
        self.table.pack(bins, 1, coordinates)
    }

    /// The same map on the full spectrum, `d` bins in natural order.
    pub(crate) fn full(&self) -> Vec<Bin> {
        (0..self.length)
            .map(|k| {
                if k < self.bins() {
                    return self.bin(k);
                }
                match self.bin(self.length - k) {
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
    fn counts_follow_the_spec() {
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
        let message = HalfSpectrum::with_modes(8, 6).unwrap_err().to_string();
        assert!(
            message.contains("1..=5") && message.contains("got 6"),
            "{message}"
        );
        assert!(HalfSpectrum::with_modes(8, 0).is_err());
        let layout = HalfSpectrum::new(8).expect("valid");
        let mut bins = vec![Complex::new(0.0, 0.0); 5];
        assert_eq!(
            layout.unpack(&[0.0; 7], &mut bins),
            Err(KernelError::Length {
                what: "coordinates",
                expected: 8,
                got: 7
            })
        );
    }
}
