//! The norm of a 2D layer: the largest singular value of `K(u, v)` over the half plane.

use circulant_core::{Bin, HalfPlane};
use rayon::prelude::*;

use crate::error::{KernelError, expect_positive, expect_volume};
use crate::real::Real;

use super::matrix::{Matrix, Scale, Survey};
use super::search::{Bins, Search};
use super::signal::{Moduli, enclose};
use super::{NormEnclosure, expect_finite};

/// The free bins of a layer, from its coordinates `[coordinate, C_in, C_out]`.
pub(super) struct PlaneBins<'a> {
    coordinates: &'a [f64],
    channels: (usize, usize),
    free: Vec<FreeBin>,
    /// The bins by falling Frobenius norm.
    order: Vec<usize>,
    scale: Scale,
}

/// Where a free bin starts, and whether it has an imaginary part.
#[derive(Debug, Clone, Copy)]
pub(super) struct FreeBin {
    pub(super) coordinate: usize,
    pub(super) complex: bool,
}

/// The free bins of a layout in storage order.
pub(super) fn free_bins(layout: &HalfPlane) -> Vec<FreeBin> {
    let free = |bin| match bin {
        Bin::Real { coordinate } => Some(FreeBin {
            coordinate,
            complex: false,
        }),
        Bin::Complex { coordinate } => Some(FreeBin {
            coordinate,
            complex: true,
        }),
        Bin::Conjugate { .. } | Bin::Masked => None,
    };
    (0..layout.bins())
        .filter_map(|i| free(layout.bin(i / layout.columns(), i % layout.columns())))
        .collect()
}

/// Sizes that every function on a layer checks.
pub(super) fn check_sizes(
    layout: &HalfPlane,
    channels_in: usize,
    channels_out: usize,
    coordinates: &[f64],
) -> Result<(), KernelError> {
    expect_positive(&[
        ("the number of input channels", channels_in),
        ("the number of output channels", channels_out),
    ])?;
    let sizes = [layout.coordinates(), channels_in, channels_out];
    expect_volume("coordinates", coordinates.len(), &sizes)
}

impl<'a> PlaneBins<'a> {
    /// Checks sizes and values; `None` when all coordinates are zero.
    pub(super) fn new(
        layout: &HalfPlane,
        channels_in: usize,
        channels_out: usize,
        coordinates: &'a [f64],
    ) -> Result<Option<Self>, KernelError> {
        check_sizes(layout, channels_in, channels_out, coordinates)?;
        let mut bins = Self {
            coordinates,
            channels: (channels_in, channels_out),
            free: free_bins(layout),
            order: Vec::new(),
            scale: Scale::ONE,
        };
        let surveys: Vec<Survey> = (0..bins.free.len())
            .into_par_iter()
            .with_min_len(8)
            .map(|index| Survey::of(bins.values(index)))
            .collect();
        if surveys.iter().any(|survey| !survey.finite) {
            return Err(KernelError::NotFinite {
                what: "the coordinates",
            });
        }
        let largest = surveys.iter().fold(0.0, |a: f64, b| a.max(b.largest));
        let Some(scale) = Scale::of_largest(largest) else {
            return Ok(None);
        };
        bins.scale = scale;
        bins.order = (0..bins.free.len()).collect();
        // Where squares overflow or underflow, the largest entry decides.
        let key = |index: usize| (surveys[index].squares, surveys[index].largest);
        bins.order.sort_by(|&a, &b| {
            let ((x, y), (z, w)) = (key(a), key(b));
            z.total_cmp(&x).then(w.total_cmp(&y))
        });
        Ok(Some(bins))
    }

    pub(super) fn scale(&self) -> Scale {
        self.scale
    }

    pub(super) fn free(&self, index: usize) -> FreeBin {
        self.free[index]
    }

    fn pairs(&self) -> usize {
        self.channels.0 * self.channels.1
    }

    /// The numbers of a bin: the real parts, and the imaginary parts of a complex bin after them.
    pub(super) fn values(&self, index: usize) -> &'a [f64] {
        let FreeBin {
            coordinate,
            complex,
        } = self.free[index];
        let pairs = self.pairs();
        &self.coordinates[coordinate * pairs..][..pairs * (1 + usize::from(complex))]
    }
}

impl Bins for PlaneBins<'_> {
    fn shape(&self) -> (usize, usize) {
        let (a, b) = self.channels;
        (a.max(b), a.min(b))
    }

    fn order(&self) -> Vec<usize> {
        self.order.clone()
    }

    fn complex(&self, index: usize) -> bool {
        self.free[index].complex
    }

    fn load<T: Real>(&self, index: usize, into: &mut Matrix<T>) {
        let (inputs, outputs) = self.channels;
        into.load(inputs, outputs, self.values(index), self.scale);
    }
}

/// The largest singular value of `K(u, v)` over the half plane, enclosed; coordinates
/// `[coordinate, C_in, C_out]`.
///
/// ```
/// use circulant_kernels::{HalfPlane, operator_norm_2d};
///
/// let layout = HalfPlane::new(1, 2)?; // two real bins
/// let norm = operator_norm_2d(&layout, 1, 2, &[3.0, 4.0, 0.0, 1.0])?;
/// assert!(norm.lower <= 5.0 && 5.0 <= norm.upper && norm.upper - norm.lower < 1e-12);
/// # Ok::<(), circulant_kernels::KernelError>(())
/// ```
pub fn operator_norm_2d(
    layout: &HalfPlane,
    channels_in: usize,
    channels_out: usize,
    coordinates: &[f64],
) -> Result<NormEnclosure, KernelError> {
    if channels_in == 1 && channels_out == 1 {
        check_sizes(layout, channels_in, channels_out, coordinates)?;
        expect_finite("the coordinates", coordinates)?;
        let free = free_bins(layout);
        return Ok(enclose(&SingleChannel { free, coordinates }, coordinates));
    }
    let Some(bins) = PlaneBins::new(layout, channels_in, channels_out, coordinates)? else {
        return Ok(NormEnclosure::ZERO);
    };
    let largest = Search::new(&bins)?.largest();
    Ok(NormEnclosure {
        lower: bins.scale().undo_down(largest.lower),
        upper: bins.scale().undo_up(largest.upper),
    })
}

/// One channel pair: the bins are values.
struct SingleChannel<'a> {
    free: Vec<FreeBin>,
    coordinates: &'a [f64],
}

impl Moduli for SingleChannel<'_> {
    fn largest_square(&self, scale: impl Fn(f64) -> f64) -> f64 {
        self.free.iter().fold(0.0, |largest: f64, bin| {
            let numbers = &self.coordinates[bin.coordinate..][..1 + usize::from(bin.complex)];
            largest.max(numbers.iter().map(|&x| scale(x) * scale(x)).sum())
        })
    }
}
