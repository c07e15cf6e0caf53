//! Stationary spectra `S(k)` on the circle and the torus: [`Slope`], [`SquaredExponential`], [`Matern`], and [`Table`], what the user
//! gives (`docs/mathematics.md`, section 5).

use std::f64::consts::PI;

use crate::bayes::BayesError;

/// Where a bin lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frequency {
    /// Waves per period along height and width, `min(k, d-k)`; the first is 0 for signals.
    pub waves: [f64; 2],
    /// The normalised radius `rho` (`docs/mathematics.md`, section 2): 1 at the highest frequency of an axis.
    pub radius: f64,
    /// 1 for signals, 2 for images.
    pub dimensions: usize,
}

impl Frequency {
    fn squared_waves(&self) -> f64 {
        self.waves.iter().map(|waves| waves * waves).sum()
    }
}

/// The variance of every bin of a whole spectrum.
pub trait StationarySpectrum: std::fmt::Debug {
    /// `S` at every bin of the full grid (`d` bins, or `H*W` in row-major order), all of them
    /// finite and positive.
    fn densities(&self, grid: &[Frequency]) -> Result<Vec<f64>, BayesError>;
}

/// `S(k) = sigma0^2 / (1 + rho^alpha)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// `sigma0`.
    pub deviation: f64,
    /// `alpha >= 0`; 0 is flat at `sigma0^2/2`.
    pub alpha: f64,
}

/// Smooth filters: the Gaussian kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SquaredExponential {
    /// The standard deviation `sqrt(k(0))` of the filter.
    pub deviation: f64,
    /// The length scale as a fraction of the period.
    pub length_scale: f64,
}

/// Filters that are `nu` times differentiable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Matern {
    /// The standard deviation `sqrt(k(0))` of the filter.
    pub deviation: f64,
    /// The length scale as a fraction of the period.
    pub length_scale: f64,
    /// The smoothness.
    pub nu: f64,
}

/// `S` bin by bin.
#[derive(Debug, Clone, PartialEq)]
pub struct Table(
    /// One variance per bin of the full grid, symmetric: `S(-k) = S(k)`.
    pub Vec<f64>,
);

fn positive(what: &'static str, value: f64) -> Result<f64, BayesError> {
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err(BayesError::NotPositive { what, got: value })
    }
}

impl Default for Slope {
    fn default() -> Self {
        Self {
            deviation: 1.0,
            alpha: 1.0,
        }
    }
}

impl StationarySpectrum for Slope {
    fn densities(&self, grid: &[Frequency]) -> Result<Vec<f64>, BayesError> {
        let variance = positive("sigma0", self.deviation)?.powi(2);
        if !(self.alpha >= 0.0 && self.alpha.is_finite()) {
            return Err(BayesError::Slope { got: self.alpha });
        }
        // `powf` has 0^0 = 1.
        let density = |bin: &Frequency| variance / (1.0 + bin.radius.powf(self.alpha));
        Ok(grid.iter().map(density).collect())
    }
}

/// Smooth kernels have spectra that underflow, and a coordinate of variance zero has no density:
/// bins are lifted to this share of the mean, the usual jitter of Gaussian processes.
const JITTER: f64 = 1e-6;

/// Scales `log_densities` so that the mean density is `variance`.
fn with_variance(log_densities: Vec<f64>, variance: f64) -> Vec<f64> {
    // Relative to the largest, so that nothing overflows.
    let top = log_densities
        .iter()
        .fold(f64::NEG_INFINITY, |a, &b| a.max(b));
    let relative = log_densities.iter().map(|log| (log - top).exp());
    let mean = relative.clone().sum::<f64>() / log_densities.len() as f64;
    relative
        .map(|density| variance * (density / mean).max(JITTER))
        .collect()
}

impl StationarySpectrum for SquaredExponential {
    fn densities(&self, grid: &[Frequency]) -> Result<Vec<f64>, BayesError> {
        let variance = positive("the deviation", self.deviation)?.powi(2);
        let rate = 2.0 * PI * PI * positive("the length scale", self.length_scale)?.powi(2);
        let logs = grid.iter().map(|bin| -rate * bin.squared_waves());
        Ok(with_variance(logs.collect(), variance))
    }
}

impl StationarySpectrum for Matern {
    fn densities(&self, grid: &[Frequency]) -> Result<Vec<f64>, BayesError> {
        let variance = positive("the deviation", self.deviation)?.powi(2);
        let nu = positive("nu", self.nu)?;
        let base = 2.0 * nu / positive("the length scale", self.length_scale)?.powi(2);
        let log = |bin: &Frequency| {
            let exponent = nu + bin.dimensions as f64 / 2.0;
            -exponent * (base + 4.0 * PI * PI * bin.squared_waves()).ln()
        };
        Ok(with_variance(grid.iter().map(log).collect(), variance))
    }
}

impl StationarySpectrum for Table {
    fn densities(&self, grid: &[Frequency]) -> Result<Vec<f64>, BayesError> {
        if self.0.len() != grid.len() {
            return Err(BayesError::Length {
                what: "the table of the spectrum",
                expected: grid.len(),
                got: self.0.len(),
            });
        }
        self.0
            .iter()
            .map(|&variance| positive("a variance of the table", variance))
            .collect()
    }
}
