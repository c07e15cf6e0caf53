//! Whether a model has learned anything: the least it must do is better than always answering the largest class.

use anyhow::{bail, ensure};
use circulant::bayes::Bayesian;
use circulant::models::ImageClassifier;

use super::evaluation::{Sampling, labels_of};
use super::source::few;
use circulant::metrics::class_metrics;
use circulant_data::{ImageSet, Normalisation};

/// Training examples that are looked at where nothing is held out, and posterior samples of their predictions.
const EXAMPLES: usize = 1000;
const SAMPLES: usize = 8;

/// Labels that nothing can be learned from are refused: none at all, one class, more classes than examples.
pub fn ensure_classes(set: &ImageSet) -> anyhow::Result<()> {
    let (place, labels) = (set.source(), set.labels());
    ensure!(
        labels.values.is_some(),
        "{place}: expected examples with their classes, found none; put pictures into one folder per class, or name a file of labels \
         with --labels"
    );
    let (counts, classes) = (labels.counts(), labels.classes());
    let present: Vec<usize> = (0..classes).filter(|&class| counts[class] > 0).collect();
    ensure!(
        classes <= set.len(),
        "{place}: expected an example of every class, found {classes} classes in {} examples; add examples, or number the classes \
         0, 1, 2, ... without gaps",
        set.len()
    );
    if let [one] = present[..] {
        let name = labels.names.get(one).cloned();
        bail!(
            "{place}: expected examples of two classes at least, found {} of the class {} alone; there is nothing to tell apart",
            set.len(),
            name.unwrap_or_else(|| one.to_string())
        );
    }
    Ok(())
}

/// A warning about training examples, a draw of them; none where the model does better.
pub fn check_training(
    network: &Bayesian<ImageClassifier>,
    training: &ImageSet,
    normalisation: &Normalisation,
    seed: u64,
) -> anyhow::Result<Option<String>> {
    let set = few(training, EXAMPLES)?;
    let samples = SAMPLES;
    let predictions =
        Sampling { samples, seed }.predict(network, &set, normalisation, "checking")?;
    let (metrics, _) = class_metrics(&predictions.class_probabilities()?, &labels_of(&set)?)?;
    Ok(warning(metrics.accuracy, &set, "training"))
}

/// The warning about an accuracy that is no better, within its standard error, than the share of the largest class.
pub fn warning(accuracy: f64, set: &ImageSet, what: &str) -> Option<String> {
    let counts = set.labels().counts();
    let (class, &largest) = counts.iter().enumerate().max_by_key(|(_, count)| **count)?;
    let inputs = set.len() as f64;
    let share = largest as f64 / inputs;
    let error = (share * (1.0 - share) / inputs).sqrt();
    let names = &set.labels().names;
    let name = names.get(class).cloned().unwrap_or(class.to_string());
    (accuracy <= share + error).then(|| {
        format!(
            "warning: an accuracy of {accuracy:.3} on {} {what} examples is no better than always answering {name} \
             ({share:.3}); try --standardise, more --steps or another --learning-rate",
            set.len()
        )
    })
}
