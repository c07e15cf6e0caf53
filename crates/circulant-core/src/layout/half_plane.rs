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
//! channel pairs a coordinate holds one value per pair: coordinates are
//! `[coordinate, channel pair]` and bins `[u, v, channel pair]`, row-major. This keeps the matrix
//! of one frequency contiguous, which is what the channel mixing reads.
//!
//! A mask keeps the first columns of every row, because the radius grows with the column. So a
//! bin's coordinate follows from the first coordinate of its row, and no table of bins is needed.
//! Radii are compared as whole numbers, so a mask is the same everywhere and a device needs no f64.

use num_complex::Complex;

use super::bin::{Bin, Bins};
use super::half_spectrum::HalfSpectrum;
use super::wrapped_radius;
use crate::error::{SizeError, expect_positive, product};
use crate::scalar::Scalar;

/// Layout of a 2D half plane, with the bins inside a relative radius kept.
///
/// ```
/// use circulant_core::HalfPlane;
///
/// let layout = HalfPlane::new(28, 28)?;
/// assert_eq!((layout.bins(), layout.coordinates()), (28 * 15, 784));
/// let low = HalfPlane::with_radius(28, 28, 0.0)?;
/// assert_eq!(low.coordinates(), 1); // only the mean
/// # Ok::<(), circulant_core::SizeError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct HalfPlane {
    height: usize,
    width: usize,
    cutoff: f64,
    /// The largest [`Self::whole_radius`] that is kept.
    limit: u64,
    coordinates: usize,
    #[cfg(feature = "alloc")]
    rows: alloc::vec::Vec<Row>,
}

/// Pixels of a grid with a mask at most: squares of radii stay below `2^64`.
const LARGEST_MASKED: usize = usize::MAX >> usize::BITS.saturating_sub(33);

/// What a row's bins follow from.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    /// The first coordinate.
    start: usize,
    /// How many columns are kept, always the first ones.
    kept: usize,
}

impl HalfPlane {
    /// The whole half plane of an image of `height x width`.
    pub fn new(height: usize, width: usize) -> Result<Self, SizeError> {
        Self::with_radius(height, width, 1.0)
    }

    /// Only the bins with `rho(u,v)/max rho <= cutoff` (`K_rad` of the paper), `0 <= K_rad <= 1`.
    pub fn with_radius(height: usize, width: usize, cutoff: f64) -> Result<Self, SizeError> {
        if !(0.0..=1.0).contains(&cutoff) {
            return Err(SizeError::Radius { got: cutoff });
        }
        let mut layout = Self::sized(height, width)?;
        layout.cutoff = cutoff;
        if cutoff < 1.0 {
            if height * width > LARGEST_MASKED {
                return Err(SizeError::TooLarge {
                    what: "a grid with a mask",
                    sizes: [height, width],
                });
            }
            let largest = cutoff * layout.radius(height / 2, width / 2);
            let row = |u: usize| {
                let kept = layout.first_beyond(|v| layout.radius(u, v) <= largest);
                (kept > 0).then(|| layout.whole_radius(u, kept - 1))
            };
            layout.limit = (0..height).filter_map(row).max().unwrap_or(0);
        }
        layout.counted()
    }

    /// Only the bins whose radius, as a whole number, is at most [`Self::limit`] of another plane of this size.
    ///
    /// ```
    /// use circulant_core::HalfPlane;
    ///
    /// let low = HalfPlane::with_radius(28, 28, 0.3)?;
    /// let same = HalfPlane::with_limit(28, 28, low.limit())?;
    /// assert!(low.iter().eq(same.iter()));
    /// # Ok::<(), circulant_core::SizeError>(())
    /// ```
    pub fn with_limit(height: usize, width: usize, limit: u64) -> Result<Self, SizeError> {
        let mut layout = Self::sized(height, width)?;
        layout.limit = limit;
        layout.counted()
    }

    /// The largest radius that is kept, as a whole number.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    fn sized(height: usize, width: usize) -> Result<Self, SizeError> {
        expect_positive(&[("the height", height), ("the width", width)])?;
        product("a grid", height, width)?;
        product("a half plane", height, width / 2 + 1)?;
        Ok(Self {
            height,
            width,
            cutoff: 1.0,
            limit: u64::MAX,
            coordinates: 0,
            #[cfg(feature = "alloc")]
            rows: alloc::vec::Vec::new(),
        })
    }

    /// Counts the coordinates.
    fn counted(self) -> Result<Self, SizeError> {
        let mut layout = self;
        let (height, _width) = (layout.height, layout.width);
        #[cfg(feature = "alloc")]
        {
            let too_large = |_| SizeError::TooLarge {
                what: "a grid",
                sizes: [height, _width],
            };
            layout.rows.try_reserve_exact(height).map_err(too_large)?;
        }
        for u in 0..height {
            let row = Row {
                start: layout.coordinates,
                kept: layout.count_kept(u),
            };
            layout.coordinates += layout.row_coordinates(u, row.kept);
            #[cfg(feature = "alloc")]
            layout.rows.push(row);
        }
        Ok(layout)
    }

    /// The bins of a signal as a plane of one row: what several channels of signals have, that is a matrix of circulant blocks.
    ///
    /// ```
    /// use circulant_core::{HalfPlane, HalfSpectrum};
    ///
    /// let row = HalfPlane::of_signal(&HalfSpectrum::with_modes(16, 4)?)?;
    /// assert_eq!((row.height(), row.width(), row.coordinates()), (1, 16, 7));
    /// # Ok::<(), circulant_core::SizeError>(())
    /// ```
    pub fn of_signal(half: &HalfSpectrum) -> Result<Self, SizeError> {
        let last = half.bins() - 1;
        let cutoff = if half.modes() == half.bins() {
            1.0
        } else {
            // Between the last bin that is kept and the next one, so that no rounding matters.
            (half.modes() as f64 - 0.5) / last as f64
        };
        Self::with_radius(1, half.length(), cutoff)
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
        self.height * self.columns()
    }

    /// The relative radius inside which bins are kept, `K_rad`.
    pub fn cutoff(&self) -> f64 {
        self.cutoff
    }

    /// The number of free real coordinates per channel pair, `d_eff/(C_in*C_out)`.
    pub fn coordinates(&self) -> usize {
        self.coordinates
    }

    /// What the stored bin `(u, v)` is; without the feature `alloc` in a time that grows with `u`, so
    /// walk all of them by [`Self::iter`]. Panics outside the grid.
    pub fn bin(&self, u: usize, v: usize) -> Bin {
        assert!(
            u < self.height && v < self.columns(),
            "bin ({u}, {v}) of {} x {}",
            self.height,
            self.columns()
        );
        let row = if self.is_filled(u, v) {
            self.height - u
        } else {
            u
        };
        let Row { start, kept } = self.row(row);
        if v < kept {
            self.kept_bin(u, v, start)
        } else {
            Bin::Masked
        }
    }

    /// The stored bins in order, row by row.
    pub fn iter(&self) -> impl Iterator<Item = Bin> {
        let (mut start, mut partner) = (0, 0);
        (0..self.height).flat_map(move |u| {
            let kept = self.kept_columns(u);
            // The partner of row u is row H - u, of the same radius: one row back for every row forward.
            if 2 * u > self.height {
                partner = if 2 * u - self.height <= 2 {
                    self.row(self.height - u).start
                } else {
                    partner - self.row_coordinates(self.height - u, kept)
                };
            }
            let (own, partner) = (start, partner);
            start += self.row_coordinates(u, kept);
            (0..self.columns()).map(move |v| {
                if v >= kept {
                    Bin::Masked
                } else if self.is_filled(u, v) {
                    self.kept_bin(u, v, partner)
                } else {
                    self.kept_bin(u, v, own)
                }
            })
        })
    }

    /// How often the stored bin `(u, v)` occurs in the full plane, together with what the stored
    /// plane holds already: 1 in the paired columns, else 2.
    pub fn multiplicity(&self, _u: usize, v: usize) -> usize {
        if self.is_paired(v) { 1 } else { 2 }
    }

    /// The normalised radius `sqrt(rho_H(u)^2 + rho_W(v)^2)`, up to `sqrt 2`.
    pub fn radius(&self, u: usize, v: usize) -> f64 {
        let (down, across) = (
            wrapped_radius(u, self.height),
            wrapped_radius(v, self.width),
        );
        #[cfg(feature = "std")]
        return down.hypot(across);
        // May differ in the last place; a test compares the masks.
        #[cfg(not(feature = "std"))]
        libm::hypot(down, across)
    }

    /// The map T: coordinates to the stored half plane, for `channels` channel pairs.
    pub fn unpack<T: Scalar>(
        &self,
        coordinates: &[T],
        channels: usize,
        bins: &mut [Complex<T>],
    ) -> Result<(), SizeError> {
        Bins::unpack(self, coordinates, channels, bins)
    }

    /// The adjoint of T.
    pub fn adjoint<T: Scalar>(
        &self,
        bins: &[Complex<T>],
        channels: usize,
        coordinates: &mut [T],
    ) -> Result<(), SizeError> {
        Bins::adjoint(self, bins, channels, coordinates)
    }

    /// The left inverse of T: free bins back to coordinates.
    pub fn pack<T: Scalar>(
        &self,
        bins: &[Complex<T>],
        channels: usize,
        coordinates: &mut [T],
    ) -> Result<(), SizeError> {
        Bins::pack(self, bins, channels, coordinates)
    }

    /// The same map on the full plane, `H*W` bins in natural order.
    pub fn full(&self) -> impl Iterator<Item = Bin> {
        let (height, width) = (self.height, self.width);
        (0..height * width).map(move |index| {
            let (u, v) = (index / width, index % width);
            if v < self.columns() {
                self.bin(u, v)
            } else {
                self.bin((height - u) % height, width - v).opposite()
            }
        })
    }

    fn is_paired(&self, v: usize) -> bool {
        v == 0 || 2 * v == self.width
    }

    /// Whether a bin is filled from its partner.
    fn is_filled(&self, u: usize, v: usize) -> bool {
        self.is_paired(v) && 2 * u > self.height
    }

    /// How many columns of a row are inside the radius, which grows with the column.
    fn count_kept(&self, u: usize) -> usize {
        if self.limit == u64::MAX {
            return self.columns();
        }
        self.first_beyond(|v| self.whole_radius(u, v) <= self.limit)
    }

    /// The square of [`Self::radius`] times that of half the height and half the width.
    fn whole_radius(&self, u: usize, v: usize) -> u64 {
        let part = |k: usize, n: usize, other: usize| {
            let part = k.min(n.saturating_sub(k)) as u64 * (other / 2).max(1) as u64;
            part.saturating_mul(part)
        };
        let down = part(u, self.height, self.width);
        down.saturating_add(part(v, self.width, self.height))
    }

    /// The first column that does not fulfil what all columns before it do.
    fn first_beyond(&self, kept_at: impl Fn(usize) -> bool) -> usize {
        let (mut kept, mut beyond) = (0, self.columns());
        while kept < beyond {
            let v = kept + (beyond - kept) / 2;
            if kept_at(v) {
                kept = v + 1;
            } else {
                beyond = v;
            }
        }
        kept
    }

    fn kept_columns(&self, u: usize) -> usize {
        #[cfg(feature = "alloc")]
        return self.rows[u].kept;
        #[cfg(not(feature = "alloc"))]
        self.count_kept(u)
    }

    fn row(&self, u: usize) -> Row {
        #[cfg(feature = "alloc")]
        return self.rows[u];
        #[cfg(not(feature = "alloc"))]
        Row {
            start: (0..u)
                .map(|row| self.row_coordinates(row, self.count_kept(row)))
                .sum(),
            kept: self.count_kept(u),
        }
    }

    /// Coordinates of a kept bin of row `u` in a paired column.
    fn paired_coordinates(&self, u: usize) -> usize {
        match 2 * u {
            0 => 1,
            twice if twice == self.height => 1,
            twice if twice > self.height => 0,
            _ => 2,
        }
    }

    /// Coordinates of the first `kept` bins of row `u`.
    fn row_coordinates(&self, u: usize, kept: usize) -> usize {
        let last = self.columns() - 1;
        let paired =
            usize::from(kept > 0) + usize::from(kept > last && last > 0 && self.is_paired(last));
        2 * (kept - paired) + paired * self.paired_coordinates(u)
    }

    /// A bin that is kept, from the first coordinate of its row, or of its partner's if it is filled.
    fn kept_bin(&self, u: usize, v: usize, start: usize) -> Bin {
        let filled = self.is_filled(u, v);
        let first = if filled {
            2
        } else {
            self.paired_coordinates(u)
        };
        let coordinate = match v {
            0 => start,
            _ => start + first + 2 * (v - 1),
        };
        if filled {
            Bin::Conjugate { coordinate }
        } else if self.is_paired(v) && self.paired_coordinates(u) == 1 {
            Bin::Real { coordinate }
        } else {
            Bin::Complex { coordinate }
        }
    }
}

impl Bins for HalfPlane {
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
mod tests;
