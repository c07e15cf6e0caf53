//! Bayesian inference over the parameters of any Burn network.
//!
//! ```text
//! network of values --BayesianConfig--> Bayesian --Svi--> trained posterior --PredictiveConfig--> Predictions
//! ```
//!
//! | piece | what it is |
//! | --- | --- |
//! | [`SpectralPrior`] | a stationary Gaussian process over filters, in the coordinates of the spectrum |
//! | [`Posterior`] | [`LowRankGaussian`], [`MeanFieldGaussian`], [`PointEstimate`] |
//! | [`BayesianConfig`], [`Site`] | which parameter gets which posterior and prior |
//! | [`Bayesian`] | a distribution over networks: draws, KL, means |
//! | [`Elbo`], [`Svi`] | the objective, and training with any optimiser of Burn |
//! | [`PredictiveConfig`] | averaged probabilities, entropies, mutual information; distributions of numbers and counts |
//! | [`evidence`] | the evidence bound of a posterior, to compare models by |
//!
//! One seed decides initial values, data order, noise and predictions, and the same seed gives the same bytes on the
//! same machine.

mod calibration;
mod config;
mod data_term;
mod divergence;
mod draws;
mod elbo;
mod error;
mod evaluation;
mod evidence;
mod factor;
mod fit;
mod gaussian;
mod means;
mod network;
mod normals;
mod on_ranks;
mod posterior;
mod predictive;
mod prior;
mod prior_scale;
mod projection;
mod replace;
mod resume;
mod site;
mod site_adam;
mod svi;
mod svi_config;
mod targets;
mod traversal;

pub use self::calibration::calibrate;
pub(crate) use self::calibration::minimum;
pub use self::config::BayesianConfig;
pub use self::elbo::{Elbo, ElboEstimate, KlWeight};
pub use self::error::BayesError;
pub use self::evaluation::OodMetrics;
pub use self::evidence::{Evidence, evidence};
pub use self::factor::Factor;
pub use self::network::{Bayesian, Network};
pub use self::posterior::{
    AnyPosterior, INITIAL_DEVIATION, JITTER, LowRankGaussian, MeanFieldGaussian, PointEstimate,
    Posterior, RANK,
};
pub use self::predictive::{Drawn, Predictions, PredictiveConfig};
pub use self::prior::{
    Frequency, Matern, Slope, SpectralPrior, SquaredExponential, StationarySpectrum, Table,
};
pub use self::site::{InitialDeviation, PosteriorKind, Prior, Site};
pub use self::svi::Svi;
pub use self::svi_config::{CheckpointPlan, StepReport, Stop, SviConfig};
