//! The pictures that say most about a model: what it is most and least certain of, and where it is wrong.

use circulant::bayes::Predictions;

use super::loaded::TrainedRun;
use crate::report::figure::{Drawing, Gallery, GalleryPicture};
use circulant_data::ImageSet;

/// Pictures of each kind.
const COUNT: usize = 8;

/// Three galleries, each with its words; none for features and other inputs that are no pictures.
pub fn galleries(
    run: &dyn TrainedRun,
    set: &ImageSet,
    predictions: &Predictions,
    labels: &[usize],
) -> anyhow::Result<Vec<(&'static str, &'static str, Drawing)>> {
    let [_, channels, height, width] = set.shape();
    if height < 2 || width < 2 || !matches!(channels, 1 | 3) {
        return Ok(Vec::new());
    }
    let classes: Vec<usize> = predictions.classes_of_inputs().collect();
    let mut order: Vec<usize> = (0..set.len()).collect();
    let entropy = |index: usize| predictions.predictive_entropy[index];
    order.sort_by(|&a, &b| entropy(a).total_cmp(&entropy(b)));
    let name = |class: usize| {
        run.class_name(class)
            .map_or_else(|| class.to_string(), str::to_owned)
    };
    let picture = |index: usize| -> anyhow::Result<GalleryPicture> {
        let class = classes[index];
        let p = predictions.probabilities[index * predictions.classes + class];
        let mut lines = vec![format!("{}: {p:.3}", name(class))];
        let label = labels[index];
        if label != class {
            let p = predictions.probabilities[index * predictions.classes + label];
            lines.push(format!("is {}: {p:.3}", name(label)));
        }
        lines.extend(set.files().get(index).cloned());
        Ok(GalleryPicture {
            address: set.png_address(index)?,
            aspect: width as f64 / height as f64,
            lines,
        })
    };
    let drawn =
        |title: &str, indices: &mut dyn Iterator<Item = usize>| -> anyhow::Result<Drawing> {
            let pictures = indices
                .take(COUNT)
                .map(&picture)
                .collect::<anyhow::Result<_>>()?;
            Ok(Gallery {
                title: title.to_owned(),
                pictures,
            }
            .draw())
        };
    let wrong = |index: &usize| classes[*index] != labels[*index];
    Ok(vec![
        (
            "certain",
            "The pictures with the smallest predictive entropy, with the predicted class and its probability.",
            drawn("Most certain", &mut order.iter().copied())?,
        ),
        (
            "uncertain",
            "The pictures with the largest predictive entropy.",
            drawn("Least certain", &mut order.iter().rev().copied())?,
        ),
        (
            "wrong",
            "Pictures whose class is wrong, the most certain of them first: what was predicted, and what it is.",
            drawn("Wrong", &mut order.iter().copied().filter(wrong))?,
        ),
    ])
}
