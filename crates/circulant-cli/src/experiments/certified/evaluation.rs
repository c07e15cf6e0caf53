//! What a set says about a trained network: accuracy, certified accuracy by the radius, what an attack leaves, calibration, and for a
//! distribution over networks the certificates of the average and how well it knows other data.

use anyhow::Context;
use circulant::bayes::{Bayesian, Predictions, PredictiveConfig};
use circulant::geometry::{
    AttackConfig, Certificates, PredictiveBoundsConfig, PredictiveCertificates, Target,
};
use circulant::metrics::{Logits, Probabilities, class_metrics};
use circulant::models::OrthogonalNetwork;
use serde::{Deserialize, Serialize};

use super::super::evaluation::labels_of;
use super::super::progress::WorkProgress;
use super::super::source::{few, tensor};
use super::bayes;
use super::folder::CertifiedFolder;
use super::training::{accuracy, certified, certify};
use circulant_data::{ImageSet, Normalisation};

/// How a run is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Judging {
    /// Images that are attacked; 0 for none.
    pub attack_images: usize,
    /// Gradient steps of the attack.
    pub attack_steps: usize,
    /// Its starts.
    pub attack_restarts: usize,
    /// Networks drawn from a distribution.
    pub samples: usize,
}

/// Other data that a distribution should not know.
pub struct Unfamiliar {
    pub name: String,
    pub set: ImageSet,
}

/// `evaluation.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CertifiedEvaluation {
    /// How it was made.
    pub judging: Judging,
    /// `test` or `held out`.
    pub part: String,
    /// Images of the set.
    pub images: usize,
    /// The share that is right.
    pub accuracy: f64,
    /// The share that is right and certified at the radius of training.
    pub certified: f64,
    /// Radius and certified accuracy.
    pub curve: Vec<[f64; 2]>,
    /// The mean of `-log p` of the true class, at the temperature of the held-out images.
    pub nll: f64,
    /// Expected calibration error, 10 bins.
    pub ece: f64,
    /// The attack, if there was one.
    pub attack: Option<AttackResult>,
    /// Of a distribution over networks.
    pub bayesian: Option<BayesianEvaluation>,
}

/// An attack at the radius of training, on a part of the set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AttackResult {
    /// Its images, every class with its share.
    pub images: usize,
    /// The share of these that is right.
    pub accuracy: f64,
    /// That withstands the attack.
    pub robust: f64,
    /// That is certified.
    pub certified: f64,
}

/// What the average over drawn networks is worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BayesianEvaluation {
    /// Of its average.
    pub accuracy: f64,
    /// The share that is right and whose averaged prediction is certified at the radius of training.
    pub certified: f64,
    /// Radius and certified accuracy.
    pub curve: Vec<[f64; 2]>,
    /// Of the averaged probabilities.
    pub nll: f64,
    /// Of the averaged probabilities, 10 bins.
    pub ece: f64,
    /// What all logits are divided by.
    pub temperature: f64,
    /// How well other data are told apart.
    pub unfamiliar: Vec<UnfamiliarResult>,
}

/// One other set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnfamiliarResult {
    /// Its name.
    pub name: String,
    /// Area under the ROC curve of the predictive entropy.
    pub auroc: f64,
    /// Of the mutual information of class and parameters.
    pub auroc_mutual_information: f64,
}

/// Points of a curve.
const POINTS: usize = 60;
/// Where a curve ends, in units of the radius of training.
const END: f64 = 3.0;

/// Radii from 0 on, the one of training among them.
fn radii(radius: f64) -> impl Iterator<Item = f64> {
    (0..=POINTS).map(move |point| END * radius * point as f64 / POINTS as f64)
}

impl Judging {
    /// Evaluates the network of a folder on a set.
    pub fn evaluate(
        &self,
        folder: &CertifiedFolder,
        network: &OrthogonalNetwork,
        part: &str,
        set: &ImageSet,
        held_out: &ImageSet,
    ) -> anyhow::Result<CertifiedEvaluation> {
        let radius = folder.config.certified.radius;
        let labels = labels_of(set)?;
        let found = certify(network, set)?;
        let single = bayes::alone(network.clone())?;
        let temperature = bayes::temperature(&single, held_out, 1)?;
        let single = single.with_scaled("output", temperature.recip())?;
        let logits = logits(&single.mean(), set)?;
        let logits = Logits::new(&logits, folder.facts.data.classes)?;
        let probabilities = logits.softmax();
        let probabilities = Probabilities::new(&probabilities, logits.classes())?;
        let (metrics, _) = class_metrics(&probabilities, &labels)?;
        Ok(CertifiedEvaluation {
            judging: *self,
            part: part.to_owned(),
            images: set.len(),
            accuracy: accuracy(&found),
            certified: certified(&found, radius),
            curve: radii(radius)
                .map(|at| [at, certified(&found, at)])
                .collect(),
            nll: metrics.nll,
            ece: metrics.ece,
            attack: self.attack(network, set, radius)?,
            bayesian: None,
        })
    }

    fn attack(
        &self,
        network: &OrthogonalNetwork,
        set: &ImageSet,
        radius: f64,
    ) -> anyhow::Result<Option<AttackResult>> {
        if self.attack_images == 0 {
            return Ok(None);
        }
        let set = few(set, self.attack_images)?;
        let found: Certificates = certify(network, &set)?;
        let attack = AttackConfig::new(radius)
            .with_steps(self.attack_steps)
            .with_restarts(self.attack_restarts)
            .with_range(Some([0.0, 1.0]));
        let (images, labels) = (tensor(&set, &Normalisation::Unit)?, labels_of(&set)?);
        let mut progress = WorkProgress::new("attack", set.len() as u64);
        let attacked = attack.attack_with_progress(network, images, &labels, |done, all| {
            progress.of(all as u64).at(done as u64, String::new);
        })?;
        progress.clear();
        Ok(Some(AttackResult {
            images: set.len(),
            accuracy: attacked.accuracy(),
            robust: attacked.robust_accuracy(),
            certified: certified(&found, radius),
        }))
    }

    /// Evaluates a distribution over networks.
    pub fn evaluate_bayesian(
        &self,
        folder: &CertifiedFolder,
        network: &Bayesian<OrthogonalNetwork>,
        set: &ImageSet,
        held_out: &ImageSet,
        others: &[Unfamiliar],
    ) -> anyhow::Result<BayesianEvaluation> {
        let radius = folder.config.certified.radius;
        let samples = self.samples.min(bayes::CALIBRATION_SAMPLES);
        let temperature = bayes::temperature(network, held_out, samples)?;
        let network = network.clone().with_scaled("output", temperature.recip())?;
        let labels = labels_of(set)?;
        let predictions = self.predict(&network, set, "predictions")?;
        let (metrics, _) = class_metrics(&predictions.class_probabilities()?, &labels)?;
        let found = self.certify_average(&network, set, &labels)?;
        let mut unfamiliar = Vec::new();
        for other in others {
            let own = self.predict(&network, &other.set, &other.name)?;
            let report = predictions
                .ood_metrics(&own)
                .with_context(|| format!("{}: no comparison", other.name))?;
            unfamiliar.push(UnfamiliarResult {
                name: other.name.clone(),
                auroc: report.auroc,
                auroc_mutual_information: report.auroc_mutual_information,
            });
        }
        Ok(BayesianEvaluation {
            accuracy: metrics.accuracy,
            certified: share(&found, radius),
            curve: radii(radius).map(|at| [at, share(&found, at)]).collect(),
            nll: metrics.nll,
            ece: metrics.ece,
            temperature,
            unfamiliar,
        })
    }

    fn predict(
        &self,
        network: &Bayesian<OrthogonalNetwork>,
        set: &ImageSet,
        title: &str,
    ) -> anyhow::Result<Predictions> {
        let images = tensor(set, &Normalisation::Unit)?;
        let mut progress = WorkProgress::new(title, set.len() as u64);
        let config = PredictiveConfig::new().with_samples(self.samples);
        let predictions = config.predict_with_progress(network, images, |done, all| {
            progress.of(all as u64).at(done as u64, String::new);
        })?;
        progress.clear();
        Ok(predictions)
    }

    fn certify_average(
        &self,
        network: &Bayesian<OrthogonalNetwork>,
        set: &ImageSet,
        labels: &[usize],
    ) -> anyhow::Result<PredictiveCertificates> {
        let config = PredictiveBoundsConfig::new().with_samples(self.samples);
        let images = tensor(set, &Normalisation::Unit)?;
        let mut progress = WorkProgress::new("networks of the average", self.samples as u64);
        let bounds = config.bound_with_progress(network, |done, _| {
            progress.at(done as u64, String::new);
        })?;
        progress.clear();
        Ok(bounds.certify(images, Target::True(labels))?)
    }
}

/// Images that go through a network at once.
const BATCH: usize = 250;

/// The logits of a set, row by row.
fn logits(network: &OrthogonalNetwork, set: &ImageSet) -> anyhow::Result<Vec<f32>> {
    let images = tensor(set, &Normalisation::Unit)?;
    let mut logits = Vec::new();
    for start in (0..set.len()).step_by(BATCH) {
        let rows = BATCH.min(set.len() - start);
        let batch = images.clone().narrow(0, start, rows);
        logits.extend(network.forward(batch).into_data().iter::<f32>());
    }
    Ok(logits)
}

/// The share of inputs whose averaged prediction is right and certified at a radius.
fn share(found: &PredictiveCertificates, radius: f64) -> f64 {
    let reached = found
        .inputs
        .iter()
        .filter(|input| input.is_certified() && input.per_sample.get() >= radius);
    reached.count() as f64 / found.inputs.len() as f64
}
