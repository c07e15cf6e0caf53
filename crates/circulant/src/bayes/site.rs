//! What is chosen for one parameter of a network: its posterior and its prior.

use super::posterior::{INITIAL_DEVIATION, JITTER, RANK};
use super::prior::{SpectralPrior, StationarySpectrum};
use super::{BayesError, Slope};
use crate::operator::Layout;

/// The prior of one parameter: independent Gaussians of mean zero.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Prior {
    /// `N(0, variance)` for every number.
    Normal {
        /// The variance.
        variance: f64,
    },
    /// A variance per number, in row-major order.
    Diagonal(Vec<f64>),
    /// A stationary process over filters.
    Spectral(SpectralPrior),
}

/// Which posterior a parameter gets.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum PosteriorKind {
    /// [`LowRankGaussian`](super::LowRankGaussian).
    LowRank {
        /// `r`.
        rank: usize,
        /// `eps`.
        jitter: f64,
    },
    /// [`MeanFieldGaussian`](super::MeanFieldGaussian).
    MeanField,
    /// [`PointEstimate`](super::PointEstimate): the most probable value under prior and data.
    Point,
    /// An ordinary parameter without a prior, trained by maximum likelihood.
    Deterministic,
}

/// The standard deviation that a posterior starts with.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum InitialDeviation {
    /// The given one.
    Absolute(f64),
    /// The given share of the root mean square of the initial values of the parameter's layer, its bias included. Layers
    /// with many inputs start with small weights; so their posteriors start narrow, and all layers with the same
    /// ratio of noise to signal.
    Relative(f64),
}

/// Posterior and prior of one parameter.
///
/// ```
/// use circulant::bayes::{Site, Slope};
/// use circulant::nn::SpectralCirculant1dConfig;
///
/// let layer = SpectralCirculant1dConfig::new(784).init(&circulant::cpu());
/// let hidden = Site::spectral(&layer.spectrum_layout(), &Slope::default())?.with_rank(4);
/// let bias = Site::mean_field(1.0);
/// # Ok::<(), circulant::bayes::BayesError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Site {
    /// The posterior.
    pub posterior: PosteriorKind,
    /// The prior.
    pub prior: Prior,
    /// The standard deviation that the posterior starts with.
    pub initial_deviation: InitialDeviation,
}

impl Default for Site {
    /// Mean-field with a standard normal prior.
    fn default() -> Self {
        Self::mean_field(1.0)
    }
}

impl Site {
    fn new(posterior: PosteriorKind, prior: Prior) -> Self {
        Self {
            posterior,
            prior,
            initial_deviation: InitialDeviation::Absolute(INITIAL_DEVIATION),
        }
    }

    /// A mean-field posterior with the prior `N(0, prior_deviation^2)`.
    pub fn mean_field(prior_deviation: f64) -> Self {
        let variance = prior_deviation * prior_deviation;
        Self::new(PosteriorKind::MeanField, Prior::Normal { variance })
    }

    /// The most probable value under the prior `N(0, prior_deviation^2)`.
    pub fn point(prior_deviation: f64) -> Self {
        let variance = prior_deviation * prior_deviation;
        Self::new(PosteriorKind::Point, Prior::Normal { variance })
    }

    /// An ordinary parameter, outside the prior.
    pub fn deterministic() -> Self {
        Self::new(
            PosteriorKind::Deterministic,
            Prior::Normal { variance: 1.0 },
        )
    }

    /// The coordinates of a spectral layer: a low-rank posterior and the prior of the given spectrum.
    pub fn spectral(
        layout: &Layout,
        spectrum: &dyn StationarySpectrum,
    ) -> Result<Self, BayesError> {
        Ok(Self::spectral_prior(SpectralPrior::new(layout, spectrum)?))
    }

    /// [`Self::spectral`] with the slope family, whose slope `alpha = softplus(z)`, `z ~ N(0, 1)`, is learned.
    pub fn learned_slope(layout: &Layout, deviation: f64) -> Result<Self, BayesError> {
        SpectralPrior::learned_slope(layout, deviation).map(Self::spectral_prior)
    }

    /// [`Self::spectral`] with the paper's spectrum, `sigma0 = alpha = 1`.
    pub fn default_spectral(layout: &Layout) -> Self {
        Self::spectral(layout, &Slope::default()).expect("the default spectrum fits every layout")
    }

    fn spectral_prior(prior: SpectralPrior) -> Self {
        let posterior = PosteriorKind::LowRank {
            // A layer of fewer coordinates has no room for more directions.
            rank: RANK.min(prior.variances().len()),
            jitter: JITTER,
        };
        Self::new(posterior, Prior::Spectral(prior))
    }

    /// A low-rank posterior of this rank; the prior stays.
    pub fn with_rank(mut self, rank: usize) -> Self {
        let jitter = match self.posterior {
            PosteriorKind::LowRank { jitter, .. } => jitter,
            _ => JITTER,
        };
        self.posterior = PosteriorKind::LowRank { rank, jitter };
        self
    }

    /// Another posterior; the prior stays.
    pub fn with_posterior(mut self, posterior: PosteriorKind) -> Self {
        self.posterior = posterior;
        self
    }

    /// Another prior; the posterior stays.
    pub fn with_prior(mut self, prior: Prior) -> Self {
        self.prior = prior;
        self
    }

    pub(super) fn make_point(&mut self) {
        if self.posterior != PosteriorKind::Deterministic {
            self.posterior = PosteriorKind::Point;
        }
    }

    /// The standard deviation that the posterior starts with.
    pub fn with_initial_deviation(mut self, deviation: f64) -> Self {
        self.initial_deviation = InitialDeviation::Absolute(deviation);
        self
    }

    /// The same in units of the layer's initial values, as [`InitialDeviation::Relative`] says.
    pub fn with_relative_deviation(mut self, ratio: f64) -> Self {
        self.initial_deviation = InitialDeviation::Relative(ratio);
        self
    }

    /// Names what is wrong for a parameter of `count` values.
    pub(super) fn check(&self, path: &str, count: usize) -> Result<(), BayesError> {
        let positive = |what: &'static str, got: f64| {
            if got > 0.0 && got.is_finite() {
                Ok(())
            } else {
                Err(BayesError::NotPositive { what, got })
            }
        };
        match self.initial_deviation {
            InitialDeviation::Absolute(deviation) => positive("the initial deviation", deviation),
            InitialDeviation::Relative(ratio) => positive("the relative initial deviation", ratio),
        }?;
        if let PosteriorKind::LowRank { rank, jitter } = self.posterior {
            if rank == 0 || rank > count {
                let (path, got) = (path.to_owned(), rank);
                return Err(BayesError::Rank {
                    path,
                    got,
                    max: count,
                });
            }
            if jitter < 0.0 || !jitter.is_finite() {
                return Err(BayesError::Setting {
                    what: "the jitter",
                    expected: "finite and at least 0",
                    got: jitter.to_string(),
                });
            }
        }
        let variances = match &self.prior {
            Prior::Normal { variance } => {
                return positive("the prior variance", *variance);
            }
            Prior::Diagonal(variances) => variances,
            Prior::Spectral(prior) => prior.variances(),
        };
        if variances.len() != count {
            return Err(BayesError::PriorSize {
                path: path.to_owned(),
                prior: variances.len(),
                parameter: count,
            });
        }
        variances
            .iter()
            .try_for_each(|&variance| positive("a prior variance", variance))
    }
}
