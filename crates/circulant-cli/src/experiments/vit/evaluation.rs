//! What a model says about a set, and what that is worth.

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use circulant::metrics::{Logits, Probabilities, ReliabilityDiagram};
use circulant::models::VisionTransformer;

use super::super::progress::WorkProgress;
use crate::ranks::ranks;
use circulant::metrics::{ClassMetrics, class_metrics};
use circulant_data::{ImageSet, Normalisation};

/// Images that go through the model at once.
const BATCH: usize = 250;

/// The logits of a set, row by row, without dropout; shared out among all ranks by whole batches.
pub fn logits(
    model: &VisionTransformer,
    set: &ImageSet,
    normalisation: &Normalisation,
    title: &str,
) -> anyhow::Result<Vec<f32>> {
    let model = model.valid();
    let [count, channels, height, width] = set.shape();
    let ranks = ranks();
    let share = ranks.share(count.div_ceil(BATCH));
    let mut progress = WorkProgress::quiet(title, share.len() as u64);
    let own = || -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for (done, batch) in share.enumerate() {
            let chunk: Vec<usize> = (batch * BATCH..((batch + 1) * BATCH).min(count)).collect();
            let mut values = Vec::new();
            set.gather(&chunk, normalisation, &mut values)?;
            let data = TensorData::new(values, [chunk.len(), channels, height, width]);
            let images = Tensor::<4>::from_data(data, &circulant::cpu());
            let data = model.forward(images).into_data();
            bytes.extend(data.iter::<f32>().flat_map(f32::to_le_bytes));
            progress.at(done as u64 + 1, String::new);
        }
        progress.clear();
        Ok(bytes)
    };
    let parts = ranks.gather(ranks.agree(own())?)?;
    let number = |bytes: &[u8; 4]| f32::from_le_bytes(*bytes);
    let numbers = parts.iter().flat_map(|part| part.as_chunks().0);
    Ok(numbers.map(number).collect())
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
