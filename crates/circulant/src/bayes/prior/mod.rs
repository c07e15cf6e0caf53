//! The spectral prior: independent Gaussian coordinates with the variances of a spectrum `S(k)`
//! are exactly a stationary Gaussian process over filters.
//!
//! A real bin's coordinate has variance `S`, each part of a complex bin `S/2`. With
//! `w_t = d^{-1/2} sum_k F_k e^{2 pi i k t/d}` over the full spectrum,
//! `Cov(w_t, w_{t+tau}) = k(tau) = (1/d) sum_k S(k) e^{2 pi i k tau/d}`, and the same on the torus
//! (`kappa(tau_x, tau_y)`). A masked bin has no coordinate and counts as `S = 0`. The filter of a
//! layer is `w/sqrt(d)`, because the prior is on the eigenvalues `h = F` themselves.

mod slope;
mod spectra;

use std::f64::consts::{PI, TAU};

use circulant_kernels::{Bin, NoiseKey, standard_normal};

pub(crate) use self::slope::{LearnedSlope, SlopeConstants};
pub use self::spectra::{Frequency, Matern, Slope, SquaredExponential, StationarySpectrum, Table};
use super::BayesError;
use crate::operator::{Layout, Operator};

/// A stationary Gaussian process over filters, in the free coordinates of a layer.
///
/// ```
/// use circulant::bayes::{Slope, SpectralPrior};
/// use circulant::operator::HalfSpectrum;
/// use circulant::operator::Layout;
///
/// let layout = Layout::Signal(HalfSpectrum::new(4)?);
/// let prior = SpectralPrior::new(&layout, &Slope { deviation: 1.0, alpha: 0.0 })?;
/// // alpha = 0 is flat at 1/2; the parts of the complex bin 1 have half of it.
/// assert_eq!(prior.variances(), [0.5, 0.25, 0.25, 0.5]);
/// // A flat spectrum is white noise.
/// assert!((prior.covariance(0) - 0.5).abs() < 1e-12 && prior.covariance(1).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct SpectralPrior {
    layout: Layout,
    /// `S` over the full grid of one channel pair, zero where masked.
    densities: Vec<f64>,
    variances: Vec<f64>,
    /// `ln rho` and `sigma0^2` times the share of a bin, if the slope is learned.
    learned: Option<LearnedSlope>,
}

/// `(u, v)` of the mirror bin `-k`.
fn mirror((height, width): (usize, usize), u: usize, v: usize) -> (usize, usize) {
    ((height - u) % height, (width - v) % width)
}

fn frequencies(layout: &Layout) -> Vec<Frequency> {
    let (height, width) = layout.grid();
    let waves = |k: usize, d: usize| k.min(d - k) as f64;
    let radius = |u: usize, v: usize| match layout {
        Layout::Signal(half) => half.radius(v),
        Layout::Image { plane, .. } => plane.radius(u, v),
    };
    // A row is a signal, with channels too.
    let dimensions = if height == 1 { 1 } else { 2 };
    (0..height * width)
        .map(|index| {
            let (u, v) = (index / width, index % width);
            Frequency {
                waves: [waves(u, height), waves(v, width)],
                radius: radius(u, v),
                dimensions,
            }
        })
        .collect()
}

/// One value per coordinate and channel pair from one per bin of the full grid: `value(bin, parts)`
/// with 1 part for a real bin and 2 for a complex one.
fn per_coordinate(layout: &Layout, value: impl Fn(usize, f64) -> f64) -> Vec<f64> {
    let (height, width) = layout.grid();
    let (channels_in, channels_out) = layout.channels();
    let pairs = channels_in * channels_out;
    let mut values = vec![0.0; layout.pair_coordinates() * pairs];
    for u in 0..height {
        for v in 0..layout.columns() {
            let bin = u * width + v;
            let mut set = |coordinate: usize, parts: f64| {
                values[coordinate * pairs..][..pairs].fill(value(bin, parts));
            };
            match layout.bin(u, v) {
                Bin::Real { coordinate } => set(coordinate, 1.0),
                Bin::Complex { coordinate } => {
                    set(coordinate, 2.0);
                    set(coordinate + 1, 2.0);
                }
                Bin::Conjugate { .. } | Bin::Masked => {}
            }
        }
    }
    values
}

/// Whether the bin of the full grid has a coordinate, its own or its mirror's.
fn is_active(layout: &Layout, u: usize, v: usize) -> bool {
    let (height, width) = layout.grid();
    let (u, v) = if v <= width / 2 {
        (u, v)
    } else {
        mirror((height, width), u, v)
    };
    v < layout.columns() && !matches!(layout.bin(u, v), Bin::Masked)
}

impl SpectralPrior {
    /// The prior with the given spectrum.
    pub fn new(layout: &Layout, spectrum: &dyn StationarySpectrum) -> Result<Self, BayesError> {
        let (height, width) = layout.grid();
        let mut densities = spectrum.densities(&frequencies(layout))?;
        if densities.len() != height * width {
            return Err(BayesError::Length {
                what: "the spectrum",
                expected: height * width,
                got: densities.len(),
            });
        }
        for bin in 0..densities.len() {
            let value = densities[bin];
            if !(value.is_finite() && value > 0.0) {
                return Err(BayesError::NotPositive {
                    what: "a variance of the spectrum",
                    got: value,
                });
            }
            let (u, v) = mirror((height, width), bin / width, bin % width);
            let mirror = densities[u * width + v];
            // Exact up to the rounding of a user's own arithmetic.
            if (value - mirror).abs() > 1e-9 * value.abs() {
                return Err(BayesError::Asymmetric { bin, value, mirror });
            }
        }
        let variances = per_coordinate(layout, |bin, parts| densities[bin] / parts);
        for (bin, density) in densities.iter_mut().enumerate() {
            if !is_active(layout, bin / width, bin % width) {
                *density = 0.0;
            }
        }
        Ok(Self {
            layout: layout.clone(),
            densities,
            variances,
            learned: None,
        })
    }

    /// The slope family with a learned slope `alpha = softplus(z)`, `z ~ N(0, 1)`. The values of this prior
    /// ([`Self::variances`], [`Self::covariance`], ...) are those at the prior mean `z = 0`, `alpha = ln 2`.
    pub fn learned_slope(layout: &Layout, deviation: f64) -> Result<Self, BayesError> {
        let alpha = std::f64::consts::LN_2;
        let mut prior = Self::new(layout, &Slope { deviation, alpha })?;
        prior.learned = Some(LearnedSlope::new(layout, deviation));
        Ok(prior)
    }

    pub(crate) fn learned(&self) -> Option<&LearnedSlope> {
        self.learned.as_ref()
    }

    /// The layout that the prior was made for.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The variance of every effective coordinate, in the order of the layer's parameter.
    pub fn variances(&self) -> &[f64] {
        &self.variances
    }

    /// `S` over the full grid, row-major; 0 at masked bins.
    pub fn densities(&self) -> &[f64] {
        &self.densities
    }

    /// Coordinates drawn from the prior.
    pub fn draw(&self, key: NoiseKey) -> Vec<f64> {
        let mut coordinates = vec![0.0; self.variances.len()];
        standard_normal(key, &mut coordinates);
        for (coordinate, variance) in coordinates.iter_mut().zip(&self.variances) {
            *coordinate *= variance.sqrt();
        }
        coordinates
    }

    /// Filters `w` drawn from the process of covariance `k(tau)`: `[C_out, C_in, H, W]` in row-major order.
    /// The filter of the layer with these coordinates is `w/sqrt(H*W)`.
    pub fn draw_filter(&self, key: NoiseKey) -> Vec<f64> {
        let operator = Operator::of(self.layout.clone());
        let (height, width) = self.layout.grid();
        let mut filter = vec![0.0; self.layout.channels().0 * operator.output_len()];
        operator
            .plans::<f64>()
            .filters
            .synthesise(&self.draw(key), &mut filter)
            .expect("sizes of one layout");
        let scale = ((height * width) as f64).sqrt();
        filter.iter_mut().for_each(|value| *value *= scale);
        filter
    }

    /// `k(tau) = (1/d) sum_k S(k) cos(2 pi k tau/d)`, the covariance of filter elements `tau` apart. For
    /// images this is [`Self::covariance_2d`] along a row.
    pub fn covariance(&self, tau: usize) -> f64 {
        self.covariance_2d(tau, 0)
    }

    /// `kappa(tau_x, tau_y)`: `tau_x` along the width, `tau_y` along the height.
    pub fn covariance_2d(&self, tau_x: usize, tau_y: usize) -> f64 {
        let (height, width) = self.layout.grid();
        let term = |(bin, density): (usize, &f64)| {
            let (u, v) = (bin / width, bin % width);
            // Whole periods are taken off exactly, before the cosine.
            let phase = (u * tau_y % height) as f64 / height as f64
                + (v * tau_x % width) as f64 / width as f64;
            density * (TAU * phase).cos()
        };
        self.densities.iter().enumerate().map(term).sum::<f64>() / (height * width) as f64
    }

    /// The log density of coordinates.
    pub fn log_density(&self, coordinates: &[f64]) -> Result<f64, BayesError> {
        if coordinates.len() != self.variances.len() {
            return Err(BayesError::Length {
                what: "the coordinates",
                expected: self.variances.len(),
                got: coordinates.len(),
            });
        }
        let term =
            |(a, variance): (&f64, &f64)| -0.5 * (a * a / variance + (2.0 * PI * variance).ln());
        Ok(coordinates.iter().zip(&self.variances).map(term).sum())
    }
}
