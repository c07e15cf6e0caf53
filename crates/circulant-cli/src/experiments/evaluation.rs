//! Predictions of a network, and what they are worth.

use circulant::bayes::{Bayesian, Predictions, PredictiveConfig};
use circulant::metrics::{
    OodReport, Probabilities, Real, ReliabilityDiagram, classification_report,
    expected_calibration_error, ood_report, reliability_diagram,
};
use circulant::models::ImageClassifier;
use serde::Serialize;

use super::progress::WorkProgress;
use super::source::tensor;
use circulant_data::{ImageSet, Normalisation};

/// Bins of the paper's tables.
pub const BINS: usize = 10;
/// Bins of the second calibration error.
const MORE_BINS: usize = 15;

/// On data of the training distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClassMetrics {
    /// The number of inputs.
    pub inputs: u64,
    /// The share that is right.
    pub accuracy: f64,
    /// Mean of `-log p` of the true class.
    pub nll: f64,
    /// The Brier score.
    pub brier: f64,
    /// Expected calibration error, 10 bins.
    pub ece: f64,
    /// Expected calibration error, 15 bins.
    pub ece15: f64,
    /// Maximum calibration error, 10 bins.
    pub mce: f64,
}

/// How well other data are told apart, with the score `-H`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OodMetrics {
    /// The number of other inputs.
    pub inputs: usize,
    /// Area under the ROC curve.
    pub auroc: f64,
    /// Area under the precision-recall curve, the training distribution positive.
    pub aupr: f64,
    /// False positive rate at 95% true positives.
    pub fpr95: f64,
    /// Area under the ROC curve with the mutual information of class and parameters as the score.
    pub auroc_mutual_information: f64,
}

/// How networks are sampled.
#[derive(Debug, Clone, Copy)]
pub struct Sampling {
    /// Posterior samples.
    pub samples: usize,
    /// Their seed.
    pub seed: u64,
}

impl Sampling {
    /// Predicts a set. Long work shows its progress under a title.
    pub fn predict(
        &self,
        network: &Bayesian<ImageClassifier>,
        set: &ImageSet,
        normalisation: &Normalisation,
        title: &str,
    ) -> anyhow::Result<Predictions> {
        let config = PredictiveConfig::new()
            .with_samples(self.samples)
            .with_seed(self.seed);
        let mut progress = WorkProgress::quiet(title, set.len() as u64);
        let images = tensor(set, normalisation)?;
        let report = |done: usize, _| progress.at(done as u64, String::new);
        let predictions = config.predict_with_progress(network, images, report)?;
        progress.clear();
        Ok(predictions)
    }
}

/// The class probabilities of predictions.
pub fn probabilities(predictions: &Predictions) -> anyhow::Result<Probabilities<'_, f32>> {
    Ok(Probabilities::new(
        &predictions.probabilities,
        predictions.classes,
    )?)
}

/// The metrics of labelled data, and the reliability diagram behind them.
pub fn class_metrics<T: Real>(
    probabilities: &Probabilities<'_, T>,
    labels: &[usize],
) -> anyhow::Result<(ClassMetrics, ReliabilityDiagram)> {
    let report = classification_report(probabilities, labels, BINS)?;
    let diagram = reliability_diagram(probabilities, labels, BINS)?;
    let metrics = ClassMetrics {
        inputs: report.rows,
        accuracy: report.accuracy,
        nll: report.nll,
        brier: report.brier,
        ece: report.ece,
        ece15: expected_calibration_error(probabilities, labels, MORE_BINS)?,
        mce: report.mce,
    };
    Ok((metrics, diagram))
}

/// The labels of a set that must have some.
pub fn labels_of(set: &ImageSet) -> anyhow::Result<Vec<usize>> {
    let labels = set.labels().required(set.source())?;
    let classes = labels.iter().map(|&label| usize::try_from(label));
    Ok(classes.collect::<Result<_, _>>()?)
}

/// How well the entropy, and the mutual information, tell `ood` from `id`.
pub fn ood_metrics(id: &Predictions, ood: &Predictions) -> anyhow::Result<OodMetrics> {
    let negative = |values: &[f32]| -> Vec<f32> { values.iter().map(|h| -h).collect() };
    let entropy = |predictions: &Predictions| negative(&predictions.predictive_entropy);
    let information = |predictions: &Predictions| -> Vec<f32> {
        negative(&predictions.mutual_information().collect::<Vec<_>>())
    };
    let report: OodReport = ood_report(&entropy(id), &entropy(ood))?;
    Ok(OodMetrics {
        inputs: ood.predictive_entropy.len(),
        auroc: report.auroc,
        aupr: report.aupr,
        fpr95: report.fpr95,
        auroc_mutual_information: ood_report(&information(id), &information(ood))?.auroc,
    })
}
