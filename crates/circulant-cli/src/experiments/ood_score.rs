//! Scores that are high for inputs unlike the training data.

use anyhow::{Context, ensure};
use burn::module::Module;
use circulant::baselines::{FeatureDensity, HiddenFeatures};
use circulant::bayes::Predictions;
use circulant::metrics::{OodReport, max_probabilities, ood_report};
use circulant::models::ImageClassifier;
use clap::ValueEnum;
use serde::Serialize;

use super::loaded::LoadedRun;
use super::progress::Busy;
use super::source::{self, Held, few, tensor};
use circulant_data::{ImageSet, Split};

/// What tells inputs unlike the training data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Score {
    /// The entropy of the averaged probabilities: all uncertainty.
    Entropy,
    /// What more data would remove: how far the posterior's networks disagree.
    MutualInformation,
    /// One less the largest probability.
    Probability,
    /// Minus the logarithm of the density of the hidden features, a Gaussian per class; reads the training data.
    FeatureDensity,
}

/// A score of a run, ready for inputs.
pub enum Scorer {
    /// From predictions alone.
    OfPredictions(Score),
    /// From the hidden layer of the posterior's mean.
    Density(Box<(FeatureDensity, ImageClassifier)>),
}

/// How well a score tells other data apart.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ScoreReport {
    /// Which one.
    pub score: Score,
    /// Area under the ROC curve and so on.
    #[serde(flatten)]
    pub report: OodReport,
}

/// Directions with a covariance per class.
const DIRECTIONS: usize = 64;
/// Training examples that the density is fitted to, at most.
const EXAMPLES: usize = 10_000;
/// The covariance of the features takes the square of this.
const MOST_FEATURES: usize = 2048;
/// Inputs at a time.
const BATCH: usize = 256;

impl Scorer {
    /// Fits what the score needs.
    pub fn new(score: Score, run: &LoadedRun) -> anyhow::Result<Self> {
        if score != Score::FeatureDensity {
            return Ok(Self::OfPredictions(score));
        }
        let trained_on = &run.folder.config.data;
        ensure!(
            !trained_on.train.is_empty(),
            "--score feature-density: {} does not say what it was trained on; choose another score",
            run.folder.path().display()
        );
        let set = source::images(&trained_on.train, Split::Train, trained_on)?;
        let training = few(&Held::out_of(set, trained_on)?.training, EXAMPLES)?;
        let labels = run
            .classes_of(&training)?
            .context("training data have labels")?;
        let model = run.network.valid().mean();
        let busy = Busy::new("fitting the density of the features");
        let features = features(run, &model, &training)?;
        ensure!(
            features.columns <= MOST_FEATURES,
            "--score feature-density: expected at most {MOST_FEATURES} hidden features, this model has {}; choose another score",
            features.columns
        );
        let classes = run.folder.facts.data.classes;
        let density = FeatureDensity::fit(
            &features.values,
            features.columns,
            &labels,
            classes,
            DIRECTIONS,
        )?;
        drop(busy);
        Ok(Self::Density(Box::new((density, model))))
    }

    /// The scores of inputs, high for those unlike the training data.
    pub fn values(
        &self,
        run: &LoadedRun,
        set: &ImageSet,
        predictions: &Predictions,
    ) -> anyhow::Result<Vec<f32>> {
        Ok(match self {
            Self::OfPredictions(Score::MutualInformation) => {
                predictions.mutual_information().collect()
            }
            Self::OfPredictions(Score::Probability) => {
                let largest = max_probabilities(&predictions.class_probabilities()?);
                largest.into_iter().map(|p| (1.0 - p) as f32).collect()
            }
            Self::OfPredictions(_) => predictions.predictive_entropy.clone(),
            Self::Density(fitted) => {
                let (density, model) = &**fitted;
                let densities = density.log_densities(&features(run, model, set)?.values)?;
                densities.into_iter().map(|log| -log as f32).collect()
            }
        })
    }

    /// Which one it is.
    pub fn score(&self) -> Score {
        match self {
            Self::OfPredictions(score) => *score,
            Self::Density(_) => Score::FeatureDensity,
        }
    }

    /// How well scores of familiar inputs and of others differ.
    pub fn report(&self, familiar: &[f32], others: &[f32]) -> anyhow::Result<ScoreReport> {
        let negative = |scores: &[f32]| -> Vec<f32> { scores.iter().map(|score| -score).collect() };
        Ok(ScoreReport {
            score: self.score(),
            report: ood_report(&negative(familiar), &negative(others))?,
        })
    }
}

fn features(
    run: &LoadedRun,
    model: &ImageClassifier,
    set: &ImageSet,
) -> anyhow::Result<HiddenFeatures> {
    let images = tensor(set, &run.folder.config.data.normalisation)?;
    Ok(HiddenFeatures::of::<4>(model, images, BATCH))
}
