//! Regression: a network that gives the distribution of a number, or of a count.
//!
//! | distribution | `-log p(y)` |
//! | --- | --- |
//! | Gaussian, mean `m`, log deviation `s` | `log(2 pi)/2 + s + (y - m)^2 exp(-2 s)/2` |
//! | Poisson, log rate `r` | `exp(r) - y r + log y!` |

use burn::module::{Module, ModuleDisplay};
use burn::tensor::Tensor;

use crate::data::RegressionExamples;
use crate::functional::{gaussian_nll, poisson_nll, weighted_gaussian_nll, weighted_poisson_nll};
use crate::metrics::Family;

/// The distributions of the targets of a batch, for one network.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "one per batch, and a box would be in the way of patterns"
)]
pub enum TargetDistribution {
    /// A number with Gaussian noise.
    Gaussian {
        /// `[batch]`.
        mean: Tensor<1>,
        /// The logarithm of the noise's standard deviation: `[batch]`, or `[1]` if it is the same for all inputs.
        log_deviation: Tensor<1>,
    },
    /// A count.
    Poisson {
        /// `[batch]`.
        log_rate: Tensor<1>,
    },
}

impl TargetDistribution {
    /// Which one it is.
    pub fn family(&self) -> Family {
        match self {
            Self::Gaussian { .. } => Family::Gaussian,
            Self::Poisson { .. } => Family::Poisson,
        }
    }

    /// `-log p` of these targets, summed: `[1]`.
    ///
    /// # Panics
    ///
    /// Panics if there is not one target per row.
    pub fn negative_log_likelihood(self, targets: &[f32]) -> Tensor<1> {
        match self {
            Self::Gaussian {
                mean,
                log_deviation,
            } => gaussian_nll(mean, log_deviation, targets),
            Self::Poisson { log_rate } => poisson_nll(log_rate, targets),
        }
    }

    /// The same with a weight per target.
    ///
    /// # Panics
    ///
    /// Panics if there is not one target and one weight per row.
    pub fn weighted_negative_log_likelihood(self, targets: &[f32], weights: &[f32]) -> Tensor<1> {
        match self {
            Self::Gaussian {
                mean,
                log_deviation,
            } => weighted_gaussian_nll(mean, log_deviation, targets, weights),
            Self::Poisson { log_rate } => weighted_poisson_nll(log_rate, targets, weights),
        }
    }
}

/// From a batch of inputs to what every member says about their targets.
pub type TargetEnsemble<const D: usize> = Box<dyn Fn(Tensor<D>) -> Vec<TargetDistribution> + Send>;

/// A network that says how its target is distributed.
///
/// Any Burn module can be one:
///
/// ```
/// use std::ops::ControlFlow;
/// use burn::module::Module;
/// use burn::nn::Linear;
/// use burn::tensor::Tensor;
/// use circulant::bayes::{BayesianConfig, PredictiveConfig, Svi, SviConfig};
/// use circulant::data::RegressionData;
/// use circulant::task::{Regressor, TargetDistribution};
///
/// /// A straight line, noise of deviation `exp(-1)`.
/// #[derive(Module, Debug)]
/// struct Line {
///     linear: Linear,
/// }
///
/// impl Regressor<2> for Line {
///     fn distribution(&self, inputs: Tensor<2>) -> TargetDistribution {
///         let mean: Tensor<1> = self.linear.forward(inputs).flatten(0, 1);
///         let log_deviation = Tensor::full([1], -1.0, &mean.device());
///         TargetDistribution::Gaussian { mean, log_deviation }
///     }
/// }
///
/// let device = circulant::cpu().autodiff();
/// let line = Line { linear: burn::nn::LinearConfig::new(1, 1).init(&device) };
/// let data = RegressionData::new(vec![0.0, 1.0, 2.0], [3, 1], &[1.0, 3.0, 5.0], &device)?;
/// let mut svi = Svi::new(BayesianConfig::new().init(line)?, SviConfig::new().with_steps(20), 3)?;
/// svi.fit(&data, None, |_| ControlFlow::Continue(()))?;
/// let predictions = PredictiveConfig::new().predict_targets(svi.network(), data.inputs())?;
/// assert_eq!(predictions.mean().len(), 3);
/// assert!(predictions.deviation().iter().all(|deviation| *deviation > (-1.0_f64).exp()));
/// # Ok::<(), circulant::bayes::BayesError>(())
/// ```
pub trait Regressor<const D: usize>: Module + ModuleDisplay + 'static {
    /// The distributions of the targets of a batch `[batch, ...]`.
    fn distribution(&self, inputs: Tensor<D>) -> TargetDistribution;

    /// `-log p` of the batch, summed: `[1]`. A model that makes it and its gradients in one pass has its own version.
    fn negative_log_likelihood(&self, examples: RegressionExamples<D>) -> Tensor<1> {
        self.distribution(examples.inputs.batch(None))
            .negative_log_likelihood(&examples.targets)
    }

    /// Several networks of the same structure as one map. A model whose layers can share work between them has its own
    /// version.
    ///
    /// # Panics
    ///
    /// Panics if there are no members.
    fn ensemble(members: Vec<Self>) -> TargetEnsemble<D> {
        assert!(!members.is_empty(), "an ensemble has at least one member");
        Box::new(move |inputs: Tensor<D>| {
            let one = |member: &Self| member.distribution(inputs.clone());
            members.iter().map(one).collect()
        })
    }
}
