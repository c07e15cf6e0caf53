//! Which values of a half spectrum are free, and the linear map T from free real
//! coordinates to stored bins.
//!
//! A real signal's spectrum obeys `h[-f] = conj(h[f])`. Each stored bin is therefore one of four
//! kinds ([`Bin`]), and T is a look-up: a real bin reads one coordinate, a complex bin reads
//! two (Re, then Im), a conjugate bin reads its partner's two, a masked bin is zero. This is the
//! only place where that map is written down; 1D and 2D differ only in the order of their bins.

use num_complex::Complex;

use crate::error::{SizeError, expect_len, product};
use crate::scalar::Scalar;

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
    pub fn value<T: Scalar>(self, at: impl Fn(usize) -> T) -> Complex<T> {
        match self {
            Self::Real { coordinate } => Complex::new(at(coordinate), T::zero()),
            Self::Complex { coordinate } => Complex::new(at(coordinate), at(coordinate + 1)),
            Self::Conjugate { coordinate } => Complex::new(at(coordinate), -at(coordinate + 1)),
            Self::Masked => Complex::new(T::zero(), T::zero()),
        }
    }

    /// The bin of the opposite frequency.
    #[inline]
    pub fn opposite(self) -> Self {
        match self {
            Self::Complex { coordinate } => Self::Conjugate { coordinate },
            Self::Conjugate { coordinate } => Self::Complex { coordinate },
            other => other,
        }
    }
}

/// Bins in storage order, and how many coordinates they read: what T is made of.
pub(super) trait Bins {
    /// Stored bins.
    fn len(&self) -> usize;
    /// Free real coordinates.
    fn coordinates(&self) -> usize;
    /// The bins in storage order.
    fn iter(&self) -> impl Iterator<Item = Bin>;

    fn check<T, B>(&self, coordinates: &[T], channels: usize, bins: &[B]) -> Result<(), SizeError> {
        let expected = product("coordinates", self.coordinates(), channels)?;
        expect_len("coordinates", coordinates.len(), expected)?;
        let expected = product("bins", self.len(), channels)?;
        expect_len("bins", bins.len(), expected)
    }

    /// `bins = T(coordinates)`.
    fn unpack<T: Scalar>(
        &self,
        coordinates: &[T],
        channels: usize,
        bins: &mut [Complex<T>],
    ) -> Result<(), SizeError> {
        self.check(coordinates, channels, bins)?;
        if channels == 1 {
            for (bin, out) in self.iter().zip(bins) {
                *out = bin.value(|coordinate| coordinates[coordinate]);
            }
            return Ok(());
        }
        for (bin, out) in self.iter().zip(bins.chunks_exact_mut(channels.max(1))) {
            for (channel, value) in out.iter_mut().enumerate() {
                *value = bin.value(|coordinate| coordinates[coordinate * channels + channel]);
            }
        }
        Ok(())
    }

    /// `coordinates = T^t(bins)`, the adjoint for the inner product that sums `Re Re + Im Im`
    /// over the stored bins.
    fn adjoint<T: Scalar>(
        &self,
        bins: &[Complex<T>],
        channels: usize,
        coordinates: &mut [T],
    ) -> Result<(), SizeError> {
        self.check(coordinates, channels, bins)?;
        coordinates.fill(T::zero());
        for (bin, values) in self.iter().zip(bins.chunks_exact(channels.max(1))) {
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
    fn pack<T: Scalar>(
        &self,
        bins: &[Complex<T>],
        channels: usize,
        coordinates: &mut [T],
    ) -> Result<(), SizeError> {
        self.check(coordinates, channels, bins)?;
        for (bin, values) in self.iter().zip(bins.chunks_exact(channels.max(1))) {
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
