//! The settings of variational inference, what its steps report, and when it stops.

use std::f64::consts::PI;
use std::path::PathBuf;

use burn::config::Config;

use super::elbo::KlWeight;

/// The settings of a training run.
#[derive(Config, Debug)]
pub struct SviConfig {
    /// Steps in all.
    #[config(default = 1000)]
    pub steps: u64,
    /// Examples per step.
    #[config(default = 128)]
    pub batch: usize,
    /// The learning rate.
    #[config(default = 1e-2)]
    pub learning_rate: f64,
    /// The learning rate falls along half a cosine to this share of itself at the last step; without it, it is constant.
    pub final_rate: Option<f64>,
    /// The step at which a falling learning rate begins (anew): a run that has ended is trained further on a schedule of its own.
    pub rate_from: Option<u64>,
    /// Monte-Carlo samples per step.
    #[config(default = 1)]
    pub samples: usize,
    /// The weight of the KL term.
    #[config(default = "KlWeight::One")]
    pub kl_weight: KlWeight,
    /// The seed of the data order and of the noise.
    #[config(default = 0)]
    pub seed: u64,
    /// Stop when the smoothed loss has not improved for this many steps.
    pub patience: Option<u64>,
}

impl SviConfig {
    /// The learning rate of a step.
    pub fn rate(&self, step: u64) -> f64 {
        let Some(share) = self.final_rate else {
            return self.learning_rate;
        };
        let from = self.rate_from.unwrap_or(0);
        let last = self.steps.saturating_sub(1).saturating_sub(from).max(1);
        let along = step.saturating_sub(from).min(last) as f64 / last as f64;
        self.learning_rate * (share + (1.0 - share) * (1.0 + (PI * along).cos()) / 2.0)
    }
}

/// One step, as the callback sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct StepReport {
    /// 0, 1, ...
    pub step: u64,
    /// The negative ELBO per example.
    pub loss: f64,
    /// The negative log likelihood per example.
    pub data: f64,
    /// The weighted KL per example.
    pub kl: f64,
}

/// Why training ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// All steps are done.
    Finished,
    /// The loss no longer improves.
    Converged,
    /// The callback asked for it.
    Asked,
}

/// Where and how often checkpoints are written; one is always written at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointPlan {
    /// The file.
    pub path: PathBuf,
    /// Steps between two checkpoints.
    pub every: u64,
}

/// Watches the smoothed loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Watch {
    pub(super) average: f64,
    pub(super) best: f64,
    pub(super) best_step: u64,
}

/// The weight of the newest loss in the running average: minibatch noise is smoothed over some 50 steps.
const NEWEST: f64 = 0.02;

impl Watch {
    pub(super) const START: Self = Self {
        average: f64::INFINITY,
        best: f64::INFINITY,
        best_step: 0,
    };

    pub(super) fn see(&mut self, step: u64, loss: f64) {
        self.average = if self.average.is_finite() {
            self.average + NEWEST * (loss - self.average)
        } else {
            loss
        };
        if self.average < self.best {
            (self.best, self.best_step) = (self.average, step);
        }
    }
}
