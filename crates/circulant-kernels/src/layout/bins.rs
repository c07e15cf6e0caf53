//! Which numbers of a half spectrum are free, and the linear map T from free real
//! coordinates to stored bins.
//!
//! A real signal's spectrum obeys `h[-f] = conj(h[f])`. Each stored bin is therefore one of four
//! kinds ([`Bin`]), and T is a table look-up: a real bin reads one coordinate, a complex bin reads
//! two (Re, then Im), a conjugate bin reads its partner's two, a masked bin is zero. This is the
//! only place where that map is written down; 1D and 2D differ only in the table.

use num_complex::Complex;

use crate::error::{KernelError, expect_len};
use crate::real::Real;

/// Where a bin of the spectrum takes its value from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bin {
    /// Self-conjugate: real, one coordinate.
    Real {
        /// Index of the coordinate.
        coordinate: usize,
    },
    /// Free complex bin: Re at `coordinate`, Im at `coordinate + 1`.
    Complex {
        /// Index of the coordinate that holds the real part.
        coordinate: usize,
    },
    /// Filled by conjugation: Re at `coordinate`, minus Im at `coordinate + 1`.
    Conjugate {
        /// Index of the coordinate that holds the partner's real part.
        coordinate: usize,
    },
    /// Removed by the mask: zero, without a coordinate.
    Masked,
}

impl Bin {
    /// The bin's value, from the coordinates that `at` looks up.
    #[inline]
    pub(crate) fn value<T: Real>(self, at: impl Fn(usize) -> T) -> Complex<T> {
        match self {
            Self::Real { coordinate } => Complex::new(at(coordinate), T::zero()),
            Self::Complex { coordinate } => Complex::new(at(coordinate), at(coordinate + 1)),
            Self::Conjugate { coordinate } => Complex::new(at(coordinate), -at(coordinate + 1)),
            Self::Masked => Complex::new(T::zero(), T::zero()),
        }
    }
}

/// A list of bins in storage order with the number of coordinates that they read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BinTable {
    pub(crate) bins: Vec<Bin>,
    pub(crate) coordinates: usize,
}

impl BinTable {
    fn check<T, B>(
        &self,
        coordinates: &[T],
        channels: usize,
        bins: &[B],
    ) -> Result<(), KernelError> {
        expect_len(
            "coordinates",
            coordinates.len(),
            self.coordinates * channels,
        )?;
        expect_len("bins", bins.len(), self.bins.len() * channels)
    }

    /// `bins = T(coordinates)`.
    pub(crate) fn unpack<T: Real>(
        &self,
        coordinates: &[T],
        channels: usize,
        bins: &mut [Complex<T>],
    ) -> Result<(), KernelError> {
        self.check(coordinates, channels, bins)?;
        if channels == 1 {
            for (bin, out) in self.bins.iter().zip(bins) {
                *out = bin.value(|coordinate| coordinates[coordinate]);
            }
            return Ok(());
        }
        for (bin, out) in self.bins.iter().zip(bins.chunks_exact_mut(channels)) {
            for (channel, value) in out.iter_mut().enumerate() {
                *value = bin.value(|coordinate| coordinates[coordinate * channels + channel]);
            }
        }
        Ok(())
    }

    /// `coordinates = T^t(bins)`, the adjoint for the inner product that sums `Re Re + Im Im`
    /// over the stored bins.
    pub(crate) fn adjoint<T: Real>(
        &self,
        bins: &[Complex<T>],
        channels: usize,
        coordinates: &mut [T],
    ) -> Result<(), KernelError> {
        self.check(coordinates, channels, bins)?;
        coordinates.fill(T::zero());
        for (&bin, values) in self.bins.iter().zip(bins.chunks_exact(channels)) {
            for (channel, value) in values.iter().enumerate() {
                let mut add = |coordinate: usize, x: T| {
                    let slot = &mut coordinates[coordinate * channels + channel];
                    *slot = *slot + x;
                };
                match bin {
                    Bin::Real { coordinate } => add(coordinate, value.re),
                    Bin::Complex { coordinate } => {
                        add(coordinate, value.re);
                        add(coordinate + 1, value.im);
                    }
                    Bin::Conjugate { coordinate } => {
                        add(coordinate, value.re);
                        add(coordinate + 1, -value.im);
                    }
                    Bin::Masked => {}
                }
            }
        }
        Ok(())
    }

    /// The left inverse of T: reads every free bin back into its coordinates.
    pub(crate) fn pack<T: Real>(
        &self,
        bins: &[Complex<T>],
        channels: usize,
        coordinates: &mut [T],
    ) -> Result<(), KernelError> {
        self.check(coordinates, channels, bins)?;
        for (&bin, values) in self.bins.iter().zip(bins.chunks_exact(channels)) {
            for (channel, value) in values.iter().enumerate() {
                match bin {
                    Bin::Real { coordinate } => {
                        coordinates[coordinate * channels + channel] = value.re;
                    }
                    Bin::Complex { coordinate } => {
                        coordinates[coordinate * channels + channel] = value.re;
                        coordinates[(coordinate + 1) * channels + channel] = value.im;
                    }
                    Bin::Conjugate { .. } | Bin::Masked => {}
                }
            }
        }
        Ok(())
    }
}

/// The bins in the order of a transformed block; a gap is as good as a masked bin.
pub(crate) fn in_order(order: &[Option<usize>], full: &[Bin]) -> Vec<Bin> {
    order
        .iter()
        .map(|frequency| frequency.map_or(Bin::Masked, |f| full[f]))
        .collect()
}

/// `min(k, n - k)/max(1, floor(n/2))`, the wrapped frequency in `[0, 1]`.
pub(crate) fn wrapped_radius(k: usize, n: usize) -> f64 {
    k.min(n - k) as f64 / (n / 2).max(1) as f64
}
