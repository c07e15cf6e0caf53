//! `metrics.json` of a run: its last evaluation, by `train` on what was held out or by `evaluate`.

use std::path::PathBuf;

use circulant::metrics::{ClassificationIntervals, OodIntervals};
use serde::Serialize;

use super::conformal::CoverageReport;
use super::ood_score::ScoreReport;
use circulant::bayes::OodMetrics;
use circulant::metrics::ClassMetrics;

/// One evaluation.
#[derive(Debug, Clone, Serialize)]
pub struct Metrics {
    pub run: PathBuf,
    pub model: &'static str,
    /// Steps of training behind it.
    pub steps: u64,
    pub samples: usize,
    /// The labelled data.
    pub data: String,
    /// On them.
    #[serde(flatten)]
    pub class: ClassMetrics,
    /// 95 % intervals of the same, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<ClassificationIntervals>,
    /// Sets of classes, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<CoverageReport>,
    /// Against data of other distributions.
    pub ood: Vec<OodEvaluation>,
}

/// Data of another distribution.
#[derive(Debug, Clone, Serialize)]
pub struct OodEvaluation {
    pub data: String,
    /// How well they are told apart.
    #[serde(flatten)]
    pub metrics: OodMetrics,
    /// 95 % intervals of the same, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<OodIntervals>,
    /// By another score, if one was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<ScoreReport>,
}
