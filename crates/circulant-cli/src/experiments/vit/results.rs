//! `results.json`.

use serde::Serialize;

use super::super::values::Values;
use super::curvature::Measured;
use super::folder::EpochLine;
use super::settings::{Projections, VitConfig};
use circulant::metrics::ClassMetrics;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VitRunResult {
    pub seed: u64,
    /// The epoch with the smallest validation loss: the one that is tested.
    pub best_epoch: u64,
    /// Epochs trained.
    pub epochs: u64,
    /// Images seen.
    pub images: u64,
    /// Of training, without validation.
    pub seconds: f64,
    /// On the test set, at the best epoch.
    pub test: ClassMetrics,
    /// At the best epoch.
    pub validation: EpochLine,
    /// At the best epoch, if it was asked for.
    pub curvature: Option<Measured>,
}

/// A model over all seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VitResult {
    /// Its projections.
    pub name: Projections,
    /// Real parameters.
    pub parameters: usize,
    /// As the paper counts.
    pub paper_count: usize,
    /// Shares of the test set that are right.
    pub accuracy: Values,
    /// Means of `-log p` of the true class.
    pub nll: Values,
    /// Expected calibration errors, 10 bins.
    pub ece: Values,
    /// Training images per second.
    pub images_per_second: Values,
    /// One per seed.
    pub runs: Vec<VitRunResult>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VitResults {
    pub data: String,
    /// Training, validation and test images.
    pub images: [usize; 3],
    /// `schedule` if all models came to its end or ran out of patience, `budget` if that stopped them.
    pub stopped_by: &'static str,
    /// The same in words.
    pub stopped: String,
    pub models: Vec<VitResult>,
    /// What they share, as in the run of the first one.
    pub settings: VitConfig,
}

impl VitResult {
    /// Of the runs of one model.
    pub fn new(name: Projections, counts: [usize; 2], runs: Vec<VitRunResult>) -> Self {
        let values = |pick: fn(&VitRunResult) -> f64| Values::new(runs.iter().map(pick).collect());
        Self {
            name,
            parameters: counts[0],
            paper_count: counts[1],
            accuracy: values(|run| run.test.accuracy),
            nll: values(|run| run.test.nll),
            ece: values(|run| run.test.ece),
            images_per_second: values(|run| run.images as f64 / run.seconds),
            runs,
        }
    }
}
