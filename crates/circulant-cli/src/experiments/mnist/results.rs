//! `results.json`.

use serde::Serialize;

use super::super::config::RunConfig;
use super::super::values::Values;
use super::baselines::BaselineLine;
use circulant::bayes::OodMetrics;
use circulant::metrics::ClassMetrics;

/// What one run gave.
#[derive(Debug, Clone, Copy)]
pub struct RunMetrics {
    pub class: ClassMetrics,
    /// Against the other set.
    pub ood: OodMetrics,
    /// Of training.
    pub seconds: f64,
}

/// A model over all seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MnistResult {
    pub name: String,
    /// Real parameters that are not biases.
    pub weights: usize,
    pub biases: usize,
    /// Shares of the test set that are right.
    pub accuracy: Values,
    /// Means of `-log p` of the true class.
    pub nll: Values,
    /// Brier scores.
    pub brier: Values,
    /// Expected calibration errors, 10 bins.
    pub ece: Values,
    /// Expected calibration errors, 15 bins.
    pub ece15: Values,
    /// Maximum calibration errors, 10 bins.
    pub mce: Values,
    /// Areas under the ROC curve of the entropy.
    pub auroc: Values,
    /// False positive rates at 95 % true positives.
    pub fpr95: Values,
    /// Areas under the ROC curve of the mutual information.
    pub auroc_mutual_information: Values,
    pub seconds: Values,
}

impl MnistResult {
    /// Puts the runs of all seeds together.
    pub fn new(name: String, [weights, biases]: [usize; 2], runs: &[RunMetrics]) -> Self {
        let values = |pick: fn(&RunMetrics) -> f64| Values::new(runs.iter().map(pick).collect());
        Self {
            name,
            weights,
            biases,
            accuracy: values(|run| run.class.accuracy),
            nll: values(|run| run.class.nll),
            brier: values(|run| run.class.brier),
            ece: values(|run| run.class.ece),
            ece15: values(|run| run.class.ece15),
            mce: values(|run| run.class.mce),
            auroc: values(|run| run.ood.auroc),
            fpr95: values(|run| run.ood.fpr95),
            auroc_mutual_information: values(|run| run.ood.auroc_mutual_information),
            seconds: values(|run| run.seconds),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct MnistResults {
    /// `mnist` or `glyphs`.
    pub data: String,
    pub ood: String,
    pub seeds: Vec<u64>,
    /// Posterior samples of the predictions.
    pub samples: usize,
    pub models: Vec<MnistResult>,
    pub beyond: Vec<MnistResult>,
    /// Other methods on the same models.
    pub baselines: Vec<BaselineLine>,
    /// What all models share.
    pub settings: RunConfig,
    pub wall_seconds: f64,
}
