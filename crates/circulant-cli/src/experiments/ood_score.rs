//! Scores that are high for inputs unlike the training data.

use anyhow::{Context, ensure};
use burn::module::Module;
use circulant::baselines::{FeatureDensity, HiddenFeatures};
use circulant::bayes::{Bayesian, Predictions};
use circulant::metrics::{OodReport, max_probabilities, ood_report};
use circulant::models::ImageClassifier;
use clap::ValueEnum;
use serde::Serialize;

use super::evaluation::labels_of;
use super::folder::RunFolder;
use super::loaded::{LoadedRun, TrainedRun};
use super::progress::Busy;
use super::source::{self, Held, few, tensor};
use crate::files::write;
use crate::ranks::first_only;
use circulant_data::{ImageSet, Normalisation, Split};

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
    /// Minus the logarithm of the density of the hidden features, a Gaussian per class; training keeps it in the run's folder.
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

/// The density of a run's features, beside its checkpoint.
const FILE: &str = "density.safetensors";

/// Fits the density of the hidden features of a trained run and keeps it in its folder: predictions elsewhere need no training data. A model of
/// very many features has none.
pub fn keep_density(
    folder: &RunFolder,
    network: &Bayesian<ImageClassifier>,
    steps: u64,
    training: &ImageSet,
) -> anyhow::Result<()> {
    let normalisation = &folder.config.data.normalisation;
    first_only(|| {
        let model = network.valid().mean();
        let one = features(normalisation, &model, &few(training, 1)?)?;
        if one.columns > MOST_FEATURES {
            return Ok(());
        }
        let training = few(training, EXAMPLES)?;
        let (labels, classes) = (labels_of(&training)?, folder.facts.data.classes);
        let density = fit(normalisation, &model, &training, &labels, classes)?;
        write(
            &folder.path().join(FILE),
            density.to_bytes(&identity(folder, steps))?,
        )
    })?;
    Ok(())
}

/// What a density is one of: training that went on makes it another one.
fn identity(folder: &RunFolder, steps: u64) -> String {
    format!("{steps} steps on {}", folder.facts.data.fingerprint)
}

fn fit(
    normalisation: &Normalisation,
    model: &ImageClassifier,
    training: &ImageSet,
    labels: &[usize],
    classes: usize,
) -> anyhow::Result<FeatureDensity> {
    let _busy = Busy::new("fitting the density of the features");
    let features = features(normalisation, model, training)?;
    ensure!(
        features.columns <= MOST_FEATURES,
        "--score feature-density: expected at most {MOST_FEATURES} hidden features, this model has {}; choose another score",
        features.columns
    );
    let (values, columns) = (&features.values, features.columns);
    Ok(FeatureDensity::fit(
        values, columns, labels, classes, DIRECTIONS,
    )?)
}

/// The density that training kept, if it is one of this checkpoint.
fn kept(run: &LoadedRun) -> anyhow::Result<Option<FeatureDensity>> {
    let path = run.folder.path().join(FILE);
    if run.is_exported() || !path.exists() {
        return Ok(None);
    }
    let read = || -> anyhow::Result<_> { Ok(FeatureDensity::from_bytes(&std::fs::read(&path)?)?) };
    let (density, of) = read().with_context(|| {
        format!(
            "{} cannot be used; remove it, and it is made again from the training data",
            path.display()
        )
    })?;
    Ok((of == identity(&run.folder, run.steps)).then_some(density))
}

impl Scorer {
    /// Reads or fits what the score needs.
    pub fn new(score: Score, run: &dyn TrainedRun) -> anyhow::Result<Self> {
        if score != Score::FeatureDensity {
            return Ok(Self::OfPredictions(score));
        }
        let run = run.classifier().with_context(|| {
            format!(
                "--score feature-density: {} was trained for a radius and keeps no density of its features; choose another score, \
                 such as --score entropy",
                run.path().display()
            )
        })?;
        let model = run.network.valid().mean();
        if let Some(density) = kept(run)? {
            return Ok(Self::Density(Box::new((density, model))));
        }
        let trained_on = &run.folder.config.data;
        ensure!(
            !run.is_exported(),
            "--score feature-density: {} does not say what it was trained on; choose another score",
            run.folder.path().display()
        );
        let set = source::images(&trained_on.train, Split::Train, trained_on)?;
        let training = few(&Held::out_of(set, trained_on)?.training, EXAMPLES)?;
        let labels = run
            .classes_of(&training)?
            .context("training data have labels")?;
        let classes = run.folder.facts.data.classes;
        let density = fit(
            &trained_on.normalisation,
            &model,
            &training,
            &labels,
            classes,
        )?;
        Ok(Self::Density(Box::new((density, model))))
    }

    /// The scores of inputs, high for those unlike the training data.
    pub fn values(
        &self,
        run: &dyn TrainedRun,
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
                let normalisation = &run.data_config().normalisation;
                let features = features(normalisation, model, set)?;
                ensure!(
                    features.columns == density.columns(),
                    "{}: {FILE} is of {} features, the model has {}; remove it, and it is made again from the training data",
                    run.path().display(),
                    density.columns(),
                    features.columns
                );
                let densities = density.log_densities(&features.values)?;
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
    normalisation: &Normalisation,
    model: &ImageClassifier,
    set: &ImageSet,
) -> anyhow::Result<HiddenFeatures> {
    let images = tensor(set, normalisation)?;
    Ok(HiddenFeatures::of::<4>(model, images, BATCH))
}
