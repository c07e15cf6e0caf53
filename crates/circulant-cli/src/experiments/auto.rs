//! The default model for tables: a lift to a width, block-circulant layers, and the size among three that predicts held-out rows best.
//!
//! A fifth of the training rows is held out while the three sizes are tried. They choose the size, whether the noise of a target depends on the row,
//! its size and tails, or what logits are divided by. Then the model learns from all rows.

mod calibration;
mod choosing;

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{bail, ensure};
use circulant::bayes::{Bayesian, Network, StepReport, Stop, Svi};
use circulant::data::{LabelledData, RegressionData};
use circulant::models::{ImageClassifier, Likelihood, TargetNetwork};
use circulant::task::TrainingSet;

use self::calibration::{class_score, target_score};
use self::choosing::{MANY, choose, trials};
use super::config::{ModelConfig, ModelKind, PosteriorConfig, RunConfig, TrainingConfig};
use super::interrupt::Interrupt;
use super::model;
use super::progress::WorkProgress;
use super::training::{Trained, Watch, classifier_svi, fit, target_svi};

/// The settings that tables of so many rows are learned with unless a user says otherwise, where the target is a number: the same for all tables, from trials on held-out parts of the
/// training rows of `reproduce tables --validate`.
pub fn table_settings(rows: usize) -> RunConfig {
    let many = rows >= MANY;
    RunConfig {
        model: ModelConfig {
            kind: ModelKind::BlockCirculant,
            lift: Some(64),
            depth: 1,
            initial_scale: 1.0,
            ..ModelConfig::default()
        },
        posterior: PosteriorConfig {
            initial_deviation: 0.02,
            weight_deviation: Some(2.0),
            ..PosteriorConfig::default()
        },
        training: TrainingConfig {
            steps: if many { 6000 } else { 4000 },
            batch: if many { 256 } else { 128 },
            learning_rate: 1e-2,
            final_rate: Some(0.0),
            // Batches of many rows are noisier than one sample.
            samples: if many { 1 } else { 2 },
            kl_weight: 0.3,
            ..TrainingConfig::default()
        },
        ..RunConfig::default()
    }
}

/// The same where the target is a class.
pub fn class_settings(rows: usize) -> RunConfig {
    let mut config = table_settings(rows);
    config.training.kl_weight = 0.1;
    config
}

/// What was chosen, and why.
pub struct Chosen {
    /// The settings with the size, and with the temperature or noise factor that held-out rows asked for.
    pub config: RunConfig,
    /// The size, for people.
    pub name: String,
    /// What was chosen and why, for people.
    pub line: String,
}

/// A model in memory, of the size that was chosen and calibrated. A checkpoint has it without its calibration, which is in the settings.
pub struct Fitted<M> {
    /// What was chosen, and why.
    pub chosen: Chosen,
    /// The trained network.
    pub trained: Trained<M>,
}

/// What came of choosing a size.
enum Choice<M> {
    Chosen(Chosen),
    /// Somebody asked to stop: what was being tried, as far as it came.
    Stopped(Fitted<M>),
}

impl<M> Fitted<M> {
    /// With what its settings ask for after training. What was stopped stays as it is.
    fn calibrated(
        mut self,
        change: impl FnOnce(&RunConfig, Bayesian<M>) -> anyhow::Result<Bayesian<M>>,
    ) -> anyhow::Result<Self> {
        self.trained.network = change(&self.chosen.config, self.trained.network)?;
        Ok(self)
    }

    /// An error if somebody asked to stop.
    pub fn finished(self) -> anyhow::Result<Self> {
        ensure!(self.trained.stop != Stop::Asked, STOPPED);
        Ok(self)
    }
}

impl<M> Choice<M> {
    fn finished(self) -> anyhow::Result<Chosen> {
        match self {
            Self::Chosen(chosen) => Ok(chosen),
            Self::Stopped(_) => bail!(STOPPED),
        }
    }
}

const STOPPED: &str = "stopped; the same command resumes";

/// Chooses the size of a classifier of standardised rows `[n, 1, 1, columns]`, and trains it. `watch` sees every step of all trials and of training,
/// [`all_steps`] in all, and may ask to stop.
pub fn fit_classifier(
    config: &RunConfig,
    data: &LabelledData<4>,
    columns: usize,
    watch: Watch<'_>,
) -> anyhow::Result<Fitted<ImageClassifier>> {
    let svi = |config: &RunConfig, rows| new_classifier(config, data, [1, 1, columns], rows);
    let score = class_score(config, data);
    let choice = choose(config, data, None, svi, score, None, watch)?;
    let fitted = fit_chosen(choice, data, svi, None, watch)?;
    fitted.calibrated(model::calibrated)
}

/// The same for standardised targets, or counts. Predictions are in the unit of the targets that it was given. A checkpoint may be
/// written, which ends as that of the trained network.
pub fn fit_regression(
    config: &RunConfig,
    data: &RegressionData<2>,
    columns: usize,
    likelihood: Likelihood,
    checkpoint: Option<&Path>,
    watch: Watch<'_>,
) -> anyhow::Result<Fitted<TargetNetwork>> {
    let svi = |config: &RunConfig, rows| new_regression(config, columns, likelihood, rows);
    let score = target_score(config, data, likelihood);
    let choice = choose(
        config,
        data,
        Some(likelihood),
        svi,
        score,
        checkpoint,
        watch,
    )?;
    let fitted = fit_chosen(choice, data, svi, checkpoint, watch)?;
    fitted.calibrated(model::calibrated_targets)
}

/// Trains a classifier of images `[channels, height, width]`, of the size that the settings say.
pub fn classifier_of(
    config: RunConfig,
    data: &LabelledData<4>,
    image: [usize; 3],
    watch: Watch<'_>,
) -> anyhow::Result<Fitted<ImageClassifier>> {
    let svi = |config: &RunConfig, rows| new_classifier(config, data, image, rows);
    let choice = Choice::Chosen(Chosen::given(config));
    fit_chosen(choice, data, svi, None, watch)
}

/// Trains a regression of the size that the settings say.
pub fn regression_of(
    config: RunConfig,
    data: &RegressionData<2>,
    columns: usize,
    likelihood: Likelihood,
    checkpoint: Option<&Path>,
    watch: Watch<'_>,
) -> anyhow::Result<Fitted<TargetNetwork>> {
    let svi = |config: &RunConfig, rows| new_regression(config, columns, likelihood, rows);
    let choice = Choice::Chosen(Chosen::given(config));
    fit_chosen(choice, data, svi, checkpoint, watch)
}

impl Chosen {
    fn given(config: RunConfig) -> Self {
        let name = config.model.kind.title().to_owned();
        Self {
            config,
            line: format!("model: {name}, as the settings say"),
            name,
        }
    }
}

fn new_classifier(
    config: &RunConfig,
    data: &LabelledData<4>,
    image: [usize; 3],
    rows: usize,
) -> anyhow::Result<Svi<ImageClassifier>> {
    let network = model::network(config, image, data.classes())?;
    classifier_svi(config, network, rows)
}

fn new_regression(
    config: &RunConfig,
    columns: usize,
    likelihood: Likelihood,
    rows: usize,
) -> anyhow::Result<Svi<TargetNetwork>> {
    let network = model::target_network(config, columns, likelihood)?;
    target_svi(config, network, rows)
}

fn fit_chosen<M: Network, T: TrainingSet<M>>(
    choice: Choice<M>,
    data: &T,
    svi: impl Fn(&RunConfig, usize) -> anyhow::Result<Svi<M>>,
    checkpoint: Option<&Path>,
    watch: Watch<'_>,
) -> anyhow::Result<Fitted<M>> {
    let chosen = match choice {
        Choice::Chosen(chosen) => chosen,
        Choice::Stopped(fitted) => return Ok(fitted),
    };
    let svi = svi(&chosen.config, data.examples())?;
    let trained = fit(svi, data, checkpoint, watch)?;
    Ok(Fitted { chosen, trained })
}

/// The steps of choosing and training together; without a likelihood, of a classifier.
pub fn all_steps(config: &RunConfig, likelihood: Option<Likelihood>) -> u64 {
    let trials = trials(config, likelihood);
    config.training.steps.saturating_mul(trials + 1)
}

/// Stops when the user asks to.
pub fn interrupted(
    interrupt: &Interrupt,
) -> impl FnMut(&StepReport) -> ControlFlow<()> + Send + use<> {
    let interrupt = interrupt.clone();
    move |_| match interrupt.is_asked() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// The same, and shows how far choosing is.
pub fn shown(
    interrupt: &Interrupt,
    config: &RunConfig,
    likelihood: Option<Likelihood>,
) -> impl FnMut(&StepReport) -> ControlFlow<()> + Send + use<> {
    let mut interrupted = interrupted(interrupt);
    let steps = config
        .training
        .steps
        .saturating_mul(trials(config, likelihood));
    let mut progress = WorkProgress::quiet("choosing a size", steps);
    let mut done = 0;
    move |report| {
        done += 1;
        progress.at(done, || format!("loss {:.4}", report.loss));
        if done == steps {
            progress.clear();
        }
        interrupted(report)
    }
}

/// Chooses the size of a classifier.
pub fn classifier(
    config: &RunConfig,
    data: &LabelledData<4>,
    columns: usize,
    watch: Watch<'_>,
) -> anyhow::Result<Chosen> {
    let svi = |config: &RunConfig, rows| new_classifier(config, data, [1, 1, columns], rows);
    let score = class_score(config, data);
    choose(config, data, None, svi, score, None, watch)?.finished()
}

/// Chooses the size of a regression.
pub fn regression(
    config: &RunConfig,
    data: &RegressionData<2>,
    columns: usize,
    likelihood: Likelihood,
    watch: Watch<'_>,
) -> anyhow::Result<Chosen> {
    let svi = |config: &RunConfig, rows| new_regression(config, columns, likelihood, rows);
    let score = target_score(config, data, likelihood);
    choose(config, data, Some(likelihood), svi, score, None, watch)?.finished()
}
