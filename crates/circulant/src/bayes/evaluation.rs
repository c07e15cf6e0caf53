//! What predictions are worth: their probabilities for [`metrics`](crate::metrics), and how well they tell other data apart.

use serde::Serialize;

use super::Predictions;
use crate::metrics::{MetricError, Probabilities, ood_report};

/// How well out-of-distribution data are told apart, with the score `-H`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OodMetrics {
    /// The number of out-of-distribution inputs.
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

impl Predictions {
    /// The class probabilities, for [`metrics`](crate::metrics).
    pub fn class_probabilities(&self) -> Result<Probabilities<'_, f32>, MetricError> {
        Probabilities::new(&self.probabilities, self.classes)
    }

    /// How well the entropy, and the mutual information, tell `ood` from these inputs.
    pub fn ood_metrics(&self, ood: &Self) -> Result<OodMetrics, MetricError> {
        let negative = |values: &[f32]| -> Vec<f32> { values.iter().map(|h| -h).collect() };
        let entropy = |predictions: &Self| negative(&predictions.predictive_entropy);
        let information = |predictions: &Self| -> Vec<f32> {
            negative(&predictions.mutual_information().collect::<Vec<_>>())
        };
        let report = ood_report(&entropy(self), &entropy(ood))?;
        Ok(OodMetrics {
            inputs: ood.predictive_entropy.len(),
            auroc: report.auroc,
            aupr: report.aupr,
            fpr95: report.fpr95,
            auroc_mutual_information: ood_report(&information(self), &information(ood))?.auroc,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predictions(predictive: [f32; 3], expected: [f32; 3]) -> Predictions {
        Predictions {
            classes: 2,
            probabilities: vec![0.5; 6],
            predictive_entropy: predictive.to_vec(),
            expected_entropy: expected.to_vec(),
        }
    }

    #[test]
    fn higher_entropies_are_found() {
        let familiar = predictions([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]);
        let other = predictions([0.4, 0.5, 0.6], [0.4, 0.5, 0.6]);
        let found = familiar.ood_metrics(&other).unwrap();
        assert_eq!((found.inputs, found.auroc, found.fpr95), (3, 1.0, 0.0));
        assert_eq!(found.auroc_mutual_information, 0.5, "there is none");
        assert_eq!(other.ood_metrics(&familiar).unwrap().auroc, 0.0);
        let disagreeing = predictions([0.1, 0.2, 0.3], [0.0, 0.1, 0.2]);
        let found = familiar.ood_metrics(&disagreeing).unwrap();
        assert_eq!((found.auroc, found.auroc_mutual_information), (0.5, 1.0));
        assert_eq!(familiar.class_probabilities().unwrap().rows(), 3);
    }
}
