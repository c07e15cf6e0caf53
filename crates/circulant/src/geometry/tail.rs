//! How large the norm of a layer can be under its prior: "bad geometry is unlikely" (proposition 2 and corollary 7 of the paper, and
//! their extension to several channels; `docs/mathematics.md`, section 7).
//!
//! A layer between different sizes (`d_in != d_out`) is a part of its circulant operator, so the bound holds for it too.

use circulant_kernels::Bin;

use super::{GeometryError, UpperBound};
use crate::bayes::SpectralPrior;

/// Covers the rounding of logarithms and roots in f64.
const OWN_ROUNDING: f64 = 1.0 + 1e-12;

/// Bounds of all layers that hold together.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PriorNetworkBound {
    /// One per layer, in the order of the priors.
    pub layers: Vec<UpperBound>,
    /// Their product: a bound of the network's Lipschitz constant if its activations have slopes of at most 1 and it has no other
    /// layers.
    pub product: UpperBound,
}

/// A number that the norm of a layer drawn from `prior` does not exceed, with a probability of at least `1 - delta`.
///
/// ```
/// use circulant::bayes::{Slope, SpectralPrior};
/// use circulant::geometry::prior_norm_bound;
/// use circulant::nn::SpectralCirculant1dConfig;
///
/// let layer = SpectralCirculant1dConfig::new(784).init(&circulant::cpu());
/// let prior = SpectralPrior::new(&layer.spectrum_layout(), &Slope::default())?;
/// // 393 bins with S of at most 1: sqrt(2 log(2*393/0.05)).
/// let bound = prior_norm_bound(&prior, 0.05)?;
/// assert!((bound.get() - (2.0 * (786.0_f64 / 0.05).ln()).sqrt()).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn prior_norm_bound(prior: &SpectralPrior, delta: f64) -> Result<UpperBound, GeometryError> {
    Ok(prior_network_bound(&[prior], delta)?.product)
}

/// Numbers that the norms of `L` layers with independent priors do not exceed, all together with a probability of at least `1 - delta`.
pub fn prior_network_bound(
    priors: &[&SpectralPrior],
    delta: f64,
) -> Result<PriorNetworkBound, GeometryError> {
    if !(delta > 0.0 && delta < 1.0) {
        return Err(GeometryError::Setting {
            what: "delta, the probability of a larger norm,",
            expected: "between 0 and 1, both excluded",
            got: delta,
        });
    }
    let share = delta / priors.len() as f64;
    let bound = |(layer, prior): (usize, &&SpectralPrior)| {
        if prior.learned().is_some() {
            return Err(GeometryError::LearnedSlope { layer });
        }
        Ok(UpperBound::new(layer_bound(prior, share) * OWN_ROUNDING))
    };
    let layers: Vec<UpperBound> = priors
        .iter()
        .enumerate()
        .map(bound)
        .collect::<Result<_, _>>()?;
    Ok(PriorNetworkBound {
        product: layers.iter().copied().product(),
        layers,
    })
}

fn layer_bound(prior: &SpectralPrior, delta: f64) -> f64 {
    let layout = prior.layout();
    let (channels_in, channels_out) = layout.channels();
    let bins = active_bins(prior);
    let count = bins.len() as f64;
    if channels_in * channels_out == 1 {
        let largest = bins.iter().map(|bin| bin.density).fold(0.0, f64::max);
        return (2.0 * largest * (2.0 * count / delta).ln()).sqrt();
    }
    let (inputs, outputs) = (channels_in as f64, channels_out as f64);
    let (roots, frobenius) = (inputs.sqrt() + outputs.sqrt(), (inputs * outputs).sqrt());
    // m/delta is above 1, so the logarithm is positive.
    let logarithm = (count / delta).ln();
    let of_bin = |bin: &ActiveBin| {
        let (mean, deviation) = if bin.is_complex {
            ((2.0_f64.sqrt() * roots).min(frobenius), logarithm.sqrt())
        } else {
            (roots.min(frobenius), (2.0 * logarithm).sqrt())
        };
        bin.density.sqrt() * (mean + deviation)
    };
    bins.iter().map(of_bin).fold(0.0, f64::max)
}

struct ActiveBin {
    density: f64,
    is_complex: bool,
}

/// The free bins of the half plane.
fn active_bins(prior: &SpectralPrior) -> Vec<ActiveBin> {
    let layout = prior.layout();
    let (height, width) = layout.grid();
    let mut bins = Vec::new();
    for u in 0..height {
        for v in 0..layout.columns() {
            let is_complex = match layout.bin(u, v) {
                Bin::Real { .. } => false,
                Bin::Complex { .. } => true,
                Bin::Conjugate { .. } | Bin::Masked => continue,
            };
            bins.push(ActiveBin {
                density: prior.densities()[u * width + v],
                is_complex,
            });
        }
    }
    bins
}
