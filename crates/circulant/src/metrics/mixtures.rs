//! Predictive distributions of many targets, checked once.

use rayon::prelude::*;

use super::MetricError;
use super::mixture::{LARGEST_RATE, Mixture, Moments};
use super::{Family, Real};

/// One predictive distribution per row: the average of as many Gaussian or Poisson distributions as there are networks.
///
/// ```
/// use circulant::metrics::Mixtures;
///
/// // Two networks disagree about the first input and agree on the second.
/// let predictions = Mixtures::gaussian(2, vec![-1.0, 1.0, 3.0, 3.0], vec![0.5; 4])?;
/// assert_eq!(predictions.mean(), [0.0, 3.0]);
/// assert_eq!(predictions.aleatoric_deviation(), [0.5, 0.5]);
/// assert_eq!(predictions.epistemic_deviation(), [1.0, 0.0]);
/// let [lower, upper] = predictions.interval(0.9)?[1];
/// assert!((lower - (3.0 - 0.5 * 1.644_853_6)).abs() < 1e-6 && (upper - (6.0 - lower)).abs() < 1e-9);
/// # Ok::<(), circulant::metrics::MetricError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Mixtures {
    family: Family,
    components: usize,
    locations: Vec<f64>,
    deviations: Vec<f64>,
}

impl Mixtures {
    /// Gaussians: means and standard deviations `[rows, components]`, row-major.
    pub fn gaussian(
        components: usize,
        means: Vec<f64>,
        deviations: Vec<f64>,
    ) -> Result<Self, MetricError> {
        whole_rows(components, means.len())?;
        if means.len() != deviations.len() {
            return Err(MetricError::Length {
                what: "the standard deviations",
                expected: means.len(),
                got: deviations.len(),
            });
        }
        finite("the means", &means, |mean| mean.is_finite())?;
        let positive = |v: f64| v > 0.0 && v.is_finite();
        if let Some(&got) = deviations.iter().find(|v| !positive(**v)) {
            let what = "a standard deviation";
            return Err(MetricError::NotPositive { what, got });
        }
        Ok(Self {
            family: Family::Gaussian,
            components,
            locations: means,
            deviations,
        })
    }

    /// Counts: the rates `[rows, components]`, row-major, from 0 to 1e8.
    pub fn poisson(components: usize, rates: Vec<f64>) -> Result<Self, MetricError> {
        whole_rows(components, rates.len())?;
        let fits = |rate: f64| (0.0..=LARGEST_RATE).contains(&rate);
        finite("the rates, from 0 to 1e8,", &rates, fits)?;
        Ok(Self {
            family: Family::Poisson,
            components,
            locations: rates,
            deviations: Vec::new(),
        })
    }

    /// The distribution of a target for one network.
    pub fn family(&self) -> Family {
        self.family
    }

    /// The number of predictions.
    pub fn rows(&self) -> usize {
        self.locations.len() / self.components
    }

    /// The number of networks.
    pub fn components(&self) -> usize {
        self.components
    }

    /// The means or rates of all networks, `[rows, components]`.
    pub fn locations(&self) -> &[f64] {
        &self.locations
    }

    /// The standard deviations of all networks, `[rows, components]`; empty for counts.
    pub fn deviations(&self) -> &[f64] {
        &self.deviations
    }

    pub(super) fn row(&self, row: usize) -> Mixture<'_> {
        let range = row * self.components..(row + 1) * self.components;
        Mixture {
            family: self.family,
            locations: &self.locations[range.clone()],
            deviations: self.deviations.get(range).unwrap_or_default(),
        }
    }

    fn by_row<R: Send>(&self, of: impl Fn(usize, Mixture<'_>) -> R + Sync) -> Vec<R> {
        let rows = (0..self.rows()).into_par_iter();
        rows.map(|row| of(row, self.row(row))).collect()
    }

    fn moments(&self, of: impl Fn(Moments) -> f64 + Sync) -> Vec<f64> {
        self.by_row(|_, mixture| of(mixture.moments()))
    }

    /// The mean of every prediction.
    pub fn mean(&self) -> Vec<f64> {
        self.moments(|moments| moments.mean)
    }

    /// The standard deviation of every prediction: all uncertainty.
    pub fn deviation(&self) -> Vec<f64> {
        self.moments(|moments| (moments.aleatoric + moments.epistemic).sqrt())
    }

    /// The part of it that no amount of data removes.
    pub fn aleatoric_deviation(&self) -> Vec<f64> {
        self.moments(|moments| moments.aleatoric.sqrt())
    }

    /// The part of it that more data would remove; high for inputs unlike the training data. The squares of both parts add up.
    pub fn epistemic_deviation(&self) -> Vec<f64> {
        self.moments(|moments| moments.epistemic.sqrt())
    }

    /// The least value of every prediction that is not exceeded with probability `p`.
    pub fn quantile(&self, p: f64) -> Result<Vec<f64>, MetricError> {
        share("the quantile", p)?;
        Ok(self.by_row(|_, mixture| mixture.quantile(p)))
    }

    /// The central interval of every prediction: as much probability is left out below as above.
    pub fn interval(&self, coverage: f64) -> Result<Vec<[f64; 2]>, MetricError> {
        share("the coverage of an interval", coverage)?;
        let tail = (1.0 - coverage) / 2.0;
        Ok(self.by_row(|_, mixture| [tail, 1.0 - tail].map(|p| mixture.quantile(p))))
    }

    /// `log p` of one target per row: of the density, or of the probability of a count.
    pub fn log_likelihoods<T: Real>(&self, targets: &[T]) -> Result<Vec<f64>, MetricError> {
        let targets = self.targets(targets)?;
        Ok(self.by_row(|row, mixture| mixture.log_likelihood(targets[row])))
    }

    /// The continuous ranked probability score of one target per row, in the unit of the targets; of a point it is the absolute error.
    pub fn crps<T: Real>(&self, targets: &[T]) -> Result<Vec<f64>, MetricError> {
        let targets = self.targets(targets)?;
        Ok(self.by_row(|row, mixture| mixture.crps(targets[row])))
    }

    /// `P(Y <= y)` of one target per row. Of predictions that are exactly as sure as they should be, these are uniform.
    pub fn cdf<T: Real>(&self, targets: &[T]) -> Result<Vec<f64>, MetricError> {
        let targets = self.targets(targets)?;
        Ok(self.by_row(|row, mixture| mixture.cdf(targets[row])))
    }

    pub(super) fn targets<T: Real>(&self, targets: &[T]) -> Result<Vec<f64>, MetricError> {
        if targets.len() != self.rows() {
            return Err(MetricError::Length {
                what: "the targets",
                expected: self.rows(),
                got: targets.len(),
            });
        }
        super::rows::finite("the targets", targets)
    }

    /// The distributions of `offset + scale * y`: from standardised targets back to their own unit. Counts cannot be rescaled.
    pub fn rescaled(mut self, offset: f64, scale: f64) -> Result<Self, MetricError> {
        if self.family != Family::Gaussian {
            return Err(MetricError::OtherFamily {
                expected: Family::Gaussian,
                got: self.family,
            });
        }
        if !(scale > 0.0 && scale.is_finite()) {
            let what = "the scale";
            return Err(MetricError::NotPositive { what, got: scale });
        }
        self.locations
            .iter_mut()
            .for_each(|m| *m = offset + scale * *m);
        self.deviations.iter_mut().for_each(|v| *v *= scale);
        Self::gaussian(self.components, self.locations, self.deviations)
    }

    /// The average of the predictions of several posteriors on the same inputs, each with the weight of its networks.
    pub fn average(parts: &[Self]) -> Result<Self, MetricError> {
        let first = parts.first().ok_or(MetricError::Empty {
            what: "the predictions",
        })?;
        let rows = first.rows();
        for part in parts {
            if part.rows() != rows {
                return Err(MetricError::Length {
                    what: "the predictions",
                    expected: rows,
                    got: part.rows(),
                });
            }
            if part.family != first.family {
                return Err(MetricError::OtherFamily {
                    expected: first.family,
                    got: part.family,
                });
            }
        }
        let components = parts.iter().map(Self::components).sum();
        let joined = |of: fn(&Self) -> &[f64]| {
            let mut values = Vec::with_capacity(rows * components);
            for row in 0..rows {
                for part in parts {
                    let range = row * part.components..(row + 1) * part.components;
                    values.extend_from_slice(of(part).get(range).unwrap_or_default());
                }
            }
            values
        };
        Ok(Self {
            family: first.family,
            components,
            locations: joined(Self::locations),
            deviations: joined(Self::deviations),
        })
    }
}

fn whole_rows(components: usize, values: usize) -> Result<(), MetricError> {
    if components == 0 {
        return Err(MetricError::Zero { what: "networks" });
    }
    if values == 0 {
        return Err(MetricError::Empty {
            what: "the predictions",
        });
    }
    if !values.is_multiple_of(components) {
        return Err(MetricError::Samples {
            samples: components,
            rows: values,
        });
    }
    Ok(())
}

fn finite(
    what: &'static str,
    values: &[f64],
    fits: impl Fn(f64) -> bool,
) -> Result<(), MetricError> {
    match values.iter().position(|&x| !fits(x)) {
        None => Ok(()),
        Some(index) => Err(MetricError::NotFinite {
            what,
            index,
            got: values[index],
        }),
    }
}

fn share(what: &'static str, got: f64) -> Result<(), MetricError> {
    if got > 0.0 && got < 1.0 {
        return Ok(());
    }
    Err(MetricError::Share { what, got })
}
