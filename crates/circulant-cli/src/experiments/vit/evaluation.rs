//! What a model says about a set, and what that is worth.

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use circulant::metrics::{Logits, Probabilities, ReliabilityDiagram};
use circulant::models::VisionTransformer;

use super::super::progress::WorkProgress;
use circulant::metrics::{ClassMetrics, class_metrics};
use circulant_data::{ImageSet, Normalisation};

/// Images that go through the model at once.
const BATCH: usize = 250;

/// The logits of a set, row by row, without dropout.
pub fn logits(
    model: &VisionTransformer,
    set: &ImageSet,
    normalisation: &Normalisation,
    title: &str,
) -> anyhow::Result<Vec<f32>> {
    let model = model.valid();
    let [count, channels, height, width] = set.shape();
    let mut progress = WorkProgress::quiet(title, count as u64);
    let mut logits = Vec::new();
    let indices: Vec<usize> = (0..count).collect();
    for chunk in indices.chunks(BATCH) {
        let mut values = Vec::new();
        set.gather(chunk, normalisation, &mut values)?;
        let data = TensorData::new(values, [chunk.len(), channels, height, width]);
        let images = Tensor::<4>::from_data(data, &circulant::cpu());
        let data = model.forward(images).into_data();
        logits.extend(data.iter::<f32>());
        progress.at(chunk[chunk.len() - 1] as u64 + 1, String::new);
    }
    progress.clear();
    Ok(logits)
}

/// The metrics of logits.
pub fn classify(
    logits: &Logits<'_, f32>,
    labels: &[usize],
) -> anyhow::Result<(ClassMetrics, ReliabilityDiagram)> {
    let probabilities = logits.softmax();
    Ok(class_metrics(
        &Probabilities::new(&probabilities, logits.classes())?,
        labels,
    )?)
}
