//! What a network is for: one trait per task, and the data of each.
//!
//! | trait | what a network says about an input | data |
//! | --- | --- | --- |
//! | [`Classifier`] | one logit per class | [`LabelledData`](crate::data::LabelledData), [`StoredData`](crate::data::StoredData) |
//! | [`Regressor`] | the distribution of a number or a count: Gaussian or Poisson | [`RegressionData`](crate::data::RegressionData) |
//!
//! A [`TrainingSet`] brings both together: batches, and what a network pays for one.
//! [`Svi::fit`](crate::bayes::Svi::fit) takes any.

mod classifier;
mod regressor;
mod training_set;

pub use self::classifier::{Classifier, Ensemble};
pub use self::regressor::{Regressor, TargetDistribution, TargetEnsemble};
pub use self::training_set::{TrainingSet, WeightedBatch};
