//! What the paper reports for vision transformers.

use super::curvature::Space;
use super::sets::PaperData;
use super::settings::Projections;
use crate::report::Metric;

/// A row of its table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaperTransformer {
    pub accuracy: f64,
    pub nll: f64,
    /// The epoch with the smallest validation loss.
    pub best_epoch: u64,
    /// Parameters, as the paper counts.
    pub parameters: usize,
}

/// The row of a model, if the paper has it.
pub fn row(data: PaperData, kind: Projections) -> Option<PaperTransformer> {
    let (accuracy, nll, best_epoch, parameters) = match (data, is_spectral(kind)?) {
        (PaperData::Cifar10, false) => (0.685, 0.966, 16, 1_205_898),
        (PaperData::Cifar10, true) => (0.716, 0.878, 30, 811_218),
        (PaperData::TinyImageNet, false) => (0.307, 3.06, 13, 1_248_840),
        (PaperData::TinyImageNet, true) => (0.344, 2.94, 58, 854_160),
    };
    Some(PaperTransformer {
        accuracy,
        nll,
        best_epoch,
        parameters,
    })
}

/// Which of the paper's two models it is.
fn is_spectral(kind: Projections) -> Option<bool> {
    match kind {
        Projections::DENSE => Some(false),
        Projections::SPECTRAL => Some(true),
        _ => None,
    }
}

/// The columns that are compared.
pub const METRICS: [Metric; 2] = [Metric::higher("Accuracy"), Metric::lower("NLL")];

/// Dominant eigenvalues of the Hessian and of the Gauss-Newton matrix. The second are about 130 times the first, so they are
/// probably sums over a batch of 128 images where the first are means.
pub fn curvature(data: PaperData, kind: Projections, space: Space) -> Option<[f64; 2]> {
    Some(match (data, is_spectral(kind)?, space) {
        (PaperData::Cifar10, false, Space::All) => [12.3, 1621.0],
        (PaperData::Cifar10, false, Space::Attention) => [6.3, 858.0],
        (PaperData::Cifar10, true, Space::All) => [19.6, 2511.0],
        (PaperData::Cifar10, true, Space::Attention) => [0.75, 40.9],
        (PaperData::TinyImageNet, false, Space::All) => [21.9, 2270.0],
        (PaperData::TinyImageNet, false, Space::Attention) => [9.3, 1132.0],
        (PaperData::TinyImageNet, true, Space::All) => [-51.4, 9204.0],
        (PaperData::TinyImageNet, true, Space::Attention) => [0.38, 70.1],
    })
}
