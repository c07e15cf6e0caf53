//! What the paper reports for vision transformers.

use super::curvature::Space;
use super::sets::PaperData;
use super::settings::ProjectionChoice;
use crate::report::{Better, Metric};

/// A row of its table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaperTransformer {
    /// Test accuracy.
    pub accuracy: f64,
    /// Test NLL.
    pub nll: f64,
    /// The epoch with the smallest validation loss.
    pub best_epoch: u64,
    /// Parameters, as the paper counts.
    pub parameters: usize,
}

/// The row of a model.
pub fn row(data: PaperData, kind: ProjectionChoice) -> PaperTransformer {
    let (accuracy, nll, best_epoch, parameters) = match (data, kind) {
        (PaperData::Cifar10, ProjectionChoice::Dense) => (0.685, 0.966, 16, 1_205_898),
        (PaperData::Cifar10, ProjectionChoice::Spectral) => (0.716, 0.878, 30, 811_218),
        (PaperData::TinyImageNet, ProjectionChoice::Dense) => (0.307, 3.06, 13, 1_248_840),
        (PaperData::TinyImageNet, ProjectionChoice::Spectral) => (0.344, 2.94, 58, 854_160),
    };
    PaperTransformer {
        accuracy,
        nll,
        best_epoch,
        parameters,
    }
}

/// The columns that are compared.
pub fn metrics() -> Vec<Metric> {
    vec![
        Metric::new("Accuracy", Better::Higher),
        Metric::new("NLL", Better::Lower),
    ]
}

/// Dominant eigenvalues of the Hessian and of the Gauss-Newton matrix. The second are about 130 times the first, so they are
/// probably sums over a batch of 128 images where the first are means.
pub fn curvature(data: PaperData, kind: ProjectionChoice, space: Space) -> [f64; 2] {
    match (data, kind, space) {
        (PaperData::Cifar10, ProjectionChoice::Dense, Space::All) => [12.3, 1621.0],
        (PaperData::Cifar10, ProjectionChoice::Dense, Space::Attention) => [6.3, 858.0],
        (PaperData::Cifar10, ProjectionChoice::Spectral, Space::All) => [19.6, 2511.0],
        (PaperData::Cifar10, ProjectionChoice::Spectral, Space::Attention) => [0.75, 40.9],
        (PaperData::TinyImageNet, ProjectionChoice::Dense, Space::All) => [21.9, 2270.0],
        (PaperData::TinyImageNet, ProjectionChoice::Dense, Space::Attention) => [9.3, 1132.0],
        (PaperData::TinyImageNet, ProjectionChoice::Spectral, Space::All) => [-51.4, 9204.0],
        (PaperData::TinyImageNet, ProjectionChoice::Spectral, Space::Attention) => [0.38, 70.1],
    }
}
