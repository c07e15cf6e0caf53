//! Predictions of a set by a network, with their progress.

use circulant::bayes::{Bayesian, Predictions, PredictiveConfig};
use circulant::task::Classifier;

use super::progress::WorkProgress;
use super::source::tensor;
use crate::ranks::ranks;
use circulant_data::{ImageSet, Normalisation};

/// How networks are sampled.
#[derive(Debug, Clone, Copy)]
pub struct Sampling {
    pub samples: usize,
    pub seed: u64,
}

impl Sampling {
    /// Predicts a set, shared out among all ranks. Long work shows its progress under a title.
    pub fn predict<M: Classifier<4>>(
        &self,
        network: &Bayesian<M>,
        set: &ImageSet,
        normalisation: &Normalisation,
        title: &str,
    ) -> anyhow::Result<Predictions> {
        let config = PredictiveConfig::new()
            .with_samples(self.samples)
            .with_seed(self.seed);
        let ranks = ranks();
        if !ranks.is_alone() {
            ranks.compare(&[("the data", set.fingerprint().to_string())])?;
        }
        let mut progress = WorkProgress::quiet(title, set.len() as u64);
        let images = tensor(set, normalisation)?;
        let report = |done: usize, all: usize| progress.of(all as u64).at(done as u64, String::new);
        let predictions = config.predict_on(&ranks, network, images, report)?;
        progress.clear();
        Ok(predictions)
    }
}

/// The labels of a set that must have some.
pub fn labels_of(set: &ImageSet) -> anyhow::Result<Vec<usize>> {
    let labels = set.labels().required(set.source())?;
    let classes = labels.iter().map(|&label| usize::try_from(label));
    Ok(classes.collect::<Result<_, _>>()?)
}
