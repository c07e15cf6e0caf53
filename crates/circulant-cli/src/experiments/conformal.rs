//! Sets of classes that hold the true one as often as asked, for a trained run.

use anyhow::{Context, anyhow, ensure};
use circulant::bayes::Predictions;
use circulant::conformal::{
    ConformalConfig, ConformalSets, PredictionSets, SetMethod, SetSummary, smallest_calibration,
};
use circulant::geometry::PredictiveBoundsConfig;
use serde::Serialize;

use super::config::DataConfig;
use super::evaluation::Sampling;
use super::loaded::TrainedRun;
use super::progress::{Busy, WorkProgress};
use super::source::{Held, part, tensor};
use circulant_data::{ImageSet, Split};

/// What is promised.
#[derive(Debug, Clone)]
pub struct Guarantee {
    /// How often the true class is in the set, at least.
    pub coverage: f64,
    /// The labelled data to calibrate on, instead of what the run held out.
    pub calibration: Option<String>,
    /// The score.
    pub method: SetMethod,
    /// How far inputs may have been moved.
    pub robust: Option<f64>,
}

/// Calibrated sets of a run.
pub struct RunSets {
    sets: ConformalSets,
    robust: Option<f64>,
    /// What was calibrated on.
    source: String,
}

/// What was promised and what was found on labelled data.
#[derive(Debug, Clone, Serialize)]
pub struct CoverageReport {
    /// Asked for.
    pub asked: f64,
    /// The score: `threshold`, `aps` or `raps`.
    pub method: SetMethod,
    /// How far inputs may be moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robust: Option<f64>,
    /// What was calibrated on.
    pub calibration: String,
    /// The number of its examples.
    pub calibration_inputs: usize,
    /// The largest score in a set.
    pub threshold: f64,
    /// On the labelled data.
    #[serde(flatten)]
    pub found: SetSummary,
}

impl Guarantee {
    /// Calibrates on the data of the guarantee, or on what the run held out. `reading` says how a path is read.
    pub fn calibrate(
        &self,
        run: &dyn TrainedRun,
        sampling: &Sampling,
        reading: &DataConfig,
    ) -> anyhow::Result<RunSets> {
        let set = match &self.calibration {
            Some(place) => {
                let (place, split) = part(place, Split::Test);
                run.images(place, split, reading)?
            }
            None => run.held_out()?.with_context(|| {
                let needed = smallest_calibration(self.coverage).unwrap_or(usize::MAX);
                format!(
                    "nothing was held out of {}, so there is nothing to calibrate on; name labelled data that the model has not learned \
                     from with --calibration NAME|PATH (at least {needed} examples), or train with --validation",
                    run.path().display()
                )
            })?,
        };
        self.calibrate_on(run, sampling, &set)
    }

    /// Calibrates on labelled data.
    pub fn calibrate_on(
        &self,
        run: &dyn TrainedRun,
        sampling: &Sampling,
        set: &ImageSet,
    ) -> anyhow::Result<RunSets> {
        let labels = run.classes_of(set)?.ok_or_else(|| {
            anyhow!(
                "{} has no labels, which calibration needs; name labelled data with --calibration",
                set.source()
            )
        })?;
        let predictions = run.predict(sampling, set, "calibrating")?;
        let config = ConformalConfig::new()
            .with_coverage(self.coverage)
            .with_method(self.method);
        let sets = config
            .calibrate(&predictions.class_probabilities()?, &labels)
            .with_context(|| format!("{} cannot calibrate the sets", set.source()))?;
        Ok(RunSets {
            sets,
            robust: self.robust,
            source: set.source().to_owned(),
        })
    }
}

impl RunSets {
    /// The sets of inputs with their predictions by the same sampling.
    pub fn of(
        &self,
        run: &dyn TrainedRun,
        sampling: &Sampling,
        set: &ImageSet,
        predictions: &Predictions,
    ) -> anyhow::Result<PredictionSets> {
        let Some(radius) = self.robust else {
            return Ok(self.sets.sets(&predictions.class_probabilities()?)?);
        };
        let config = PredictiveBoundsConfig::new()
            .with_samples(sampling.samples)
            .with_seed(sampling.seed);
        let mut progress = WorkProgress::quiet("bounding networks", sampling.samples as u64);
        let mut report = |done: usize, _: usize| progress.at(done as u64, String::new);
        let bounds = run.bounds(&config, &mut report)?;
        progress.clear();
        let _busy = Busy::new("bounding probabilities");
        let images = tensor(set, &run.data_config().normalisation)?;
        Ok(self
            .sets
            .robust_sets(&bounds.probability_bounds(images, radius)?)?)
    }

    /// What was found on labelled data.
    pub fn report(
        &self,
        sets: &PredictionSets,
        labels: &[usize],
    ) -> anyhow::Result<CoverageReport> {
        Ok(CoverageReport {
            asked: self.sets.config().coverage,
            method: self.sets.config().method,
            robust: self.robust,
            calibration: self.source.clone(),
            calibration_inputs: self.sets.examples(),
            threshold: self.sets.threshold(),
            found: sets.summary(labels)?,
        })
    }

    /// One line about the calibration.
    pub fn line(&self) -> String {
        format!(
            "sets hold the true class with a probability of at least {}{}, calibrated on {} examples of {}",
            self.sets.config().coverage,
            self.robust.map_or(String::new(), |radius| format!(
                ", inputs moved by up to {radius} included"
            )),
            self.sets.examples(),
            self.source
        )
    }
}

/// Cuts labelled data in two by a seed: one half to calibrate on, the other to evaluate.
pub fn halves(set: &ImageSet, seed: u64) -> anyhow::Result<(ImageSet, ImageSet)> {
    ensure!(
        set.len() > 1,
        "{} has one example, which cannot both calibrate and evaluate; name data with --calibration",
        set.source()
    );
    let held = Held::uniform(set, set.len() / 2, seed)?;
    let half = held.validation.context("half of the data")?;
    Ok((half, held.training))
}
