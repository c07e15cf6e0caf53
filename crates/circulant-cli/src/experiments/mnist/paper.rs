//! What the paper reports for MNIST against Fashion-MNIST, means of three seeds.

use super::super::config::ModelKind;
use super::super::values::Values;
use super::results::MnistResult;
use crate::report::Metric;

/// The row of a model, in the order of [`METRICS`], if the paper has it.
pub fn row(kind: ModelKind) -> Option<[f64; 6]> {
    Some(match kind {
        ModelKind::BlockCirculant => return None,
        ModelKind::SpectralBccb => [0.919, 0.124, 0.016, 0.179, 0.811, 0.616],
        ModelKind::SpectralCirculant => [0.921, 0.120, 0.022, 0.195, 0.829, 0.637],
        ModelKind::Bccb => [0.899, 0.182, 0.083, 0.373, 0.730, 0.844],
        ModelKind::Circulant => [0.903, 0.175, 0.081, 0.426, 0.781, 0.813],
        ModelKind::Conv2d => [0.962, 0.076, 0.038, 0.573, 0.621, 0.722],
        ModelKind::Dense => [0.974, 0.048, 0.024, 0.623, 0.840, 0.502],
    })
}

/// The columns of the paper's table.
pub const METRICS: [Metric; 6] = [
    Metric::higher("Accuracy"),
    Metric::lower("Brier"),
    Metric::lower("ECE"),
    Metric::lower("MCE"),
    Metric::higher("AUROC"),
    Metric::lower("FPR@95"),
];

/// Our numbers in the same order.
pub fn ours(result: &MnistResult) -> [&Values; 6] {
    [
        &result.accuracy,
        &result.brier,
        &result.ece,
        &result.mce,
        &result.auroc,
        &result.fpr95,
    ]
}
