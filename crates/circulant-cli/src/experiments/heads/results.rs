//! `results.json`.

use serde::Serialize;

use super::super::config::RunConfig;
use super::super::geometry::NetworkGeometry;
use super::super::values::Values;
use circulant::geometry::Quantiles;
use circulant::metrics::ClassMetrics;

/// How well one kind of corrupted images is told apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CorruptionMetrics {
    pub corruption: &'static str,
    /// 1 to 5.
    pub severity: usize,
    /// Area under the ROC curve of the entropy.
    pub auroc: f64,
    /// False positive rate at 95% true positives.
    pub fpr95: f64,
    /// The share that is still right.
    pub accuracy: f64,
}

/// What one run gave.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadMetrics {
    pub seed: u64,
    /// On the clean test features.
    pub class: ClassMetrics,
    /// For every corruption and severity.
    pub corruptions: Vec<CorruptionMetrics>,
    /// Of training.
    pub seconds: f64,
}

impl HeadMetrics {
    /// The mean over corruptions, and severities unless one is given.
    pub fn mean(&self, severity: Option<usize>, pick: fn(&CorruptionMetrics) -> f64) -> f64 {
        let rows = self.corruptions.iter();
        let rows = rows.filter(|row| severity.is_none_or(|severity| row.severity == severity));
        let values: Vec<f64> = rows.map(pick).collect();
        values.iter().sum::<f64>() / values.len() as f64
    }
}

/// Geometry of the first seed, in the space of the normalised features.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadGeometry {
    /// Inputs that were certified.
    pub inputs: usize,
    /// The Lipschitz bound of the posterior's mean.
    pub lipschitz: f64,
    /// Of networks drawn from the posterior.
    pub posterior_lipschitz: Quantiles,
    /// Margins of the true class, over samples and inputs.
    pub margin: Quantiles,
    /// The paper's radius, over samples and inputs.
    pub posterior_radius: Quantiles,
    /// The paper's radius of the posterior's mean.
    pub radius: Quantiles,
    /// The largest radius of the posterior's mean that is proven.
    pub best_radius: Quantiles,
}

impl HeadGeometry {
    /// Of what was measured.
    pub fn new(found: &NetworkGeometry) -> Self {
        let (certificates, posterior) = (&found.certificates, &found.posterior);
        Self {
            inputs: certificates.inputs.len(),
            lipschitz: certificates.network.upper().get(),
            posterior_lipschitz: Quantiles::from(&posterior.bounds),
            margin: Quantiles::from(&posterior.margins),
            posterior_radius: Quantiles::from(&posterior.paper),
            radius: found.quantiles(|input| input.paper.get()),
            best_radius: found.quantiles(|input| input.best().get()),
        }
    }
}

/// A head over all seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeadResult {
    /// Of its folder.
    pub name: String,
    /// Real parameters that are not biases.
    pub weights: usize,
    pub biases: usize,
    /// `K` of a spectral head.
    pub modes: Option<usize>,
    /// Shares of the test set that are right.
    pub accuracy: Values,
    /// Means of `-log p` of the true class.
    pub nll: Values,
    /// Expected calibration errors, 10 bins.
    pub ece: Values,
    /// Means over corruptions and severities.
    pub auroc: Values,
    /// Means over corruptions at severity 5.
    pub auroc_s5: Values,
    /// Means over corruptions at severity 5.
    pub fpr95_s5: Values,
    /// Training times.
    pub seconds: Values,
    /// Of the first seed.
    pub geometry: HeadGeometry,
    /// One per seed.
    pub runs: Vec<HeadMetrics>,
}

impl HeadResult {
    /// Of the runs of one head; `[weights, biases]`.
    pub fn new(
        name: String,
        counts: [usize; 2],
        modes: Option<usize>,
        geometry: HeadGeometry,
        runs: Vec<HeadMetrics>,
    ) -> Self {
        let values =
            |pick: &dyn Fn(&HeadMetrics) -> f64| Values::new(runs.iter().map(pick).collect());
        Self {
            name,
            weights: counts[0],
            biases: counts[1],
            modes,
            accuracy: values(&|run| run.class.accuracy),
            nll: values(&|run| run.class.nll),
            ece: values(&|run| run.class.ece),
            auroc: values(&|run| run.mean(None, |row| row.auroc)),
            auroc_s5: values(&|run| run.mean(Some(5), |row| row.auroc)),
            fpr95_s5: values(&|run| run.mean(Some(5), |row| row.fpr95)),
            seconds: values(&|run| run.seconds),
            geometry,
            runs,
        }
    }

    /// In the order of the paper's columns.
    pub fn columns(&self) -> [&Values; 6] {
        [
            &self.accuracy,
            &self.nll,
            &self.ece,
            &self.auroc,
            &self.auroc_s5,
            &self.fpr95_s5,
        ]
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct HeadsResults {
    pub data: String,
    /// Training features, test features, corrupted ones of each kind.
    pub inputs: [usize; 3],
    /// Features of a image.
    pub features: usize,
    pub seeds: Vec<u64>,
    /// Posterior samples of the predictions.
    pub samples: usize,
    pub heads: Vec<HeadResult>,
    /// What all heads share.
    pub settings: RunConfig,
    /// Training of all heads and seeds together, in seconds.
    pub training_seconds: f64,
    pub wall_seconds: f64,
}
