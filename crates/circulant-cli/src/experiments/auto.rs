//! The default model for tables: a lift to a width, spectral layers, and the size among three that has the largest evidence.
//!
//! The evidence bound is what the data are worth under a model, the price of its parameters included; so a size is chosen without
//! held-out rows. The price is weighed as in training.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{bail, ensure};
use circulant::bayes::{Network, StepReport, Stop, Svi, evidence};
use circulant::data::{LabelledData, RegressionData};
use circulant::models::{ImageClassifier, Likelihood, TargetNetwork};
use circulant::task::TrainingSet;

use super::config::{ModelConfig, ModelKind, PosteriorConfig, RunConfig, TrainingConfig};
use super::interrupt::Interrupt;
use super::model;
use super::progress::WorkProgress;
use super::training::{Trained, Watch, classifier_svi, fit, target_svi};

/// Width and number of hidden layers of the three sizes.
const SIZES: [(usize, usize); 3] = [(16, 1), (64, 1), (64, 2)];
/// The share of the steps that a size is tried for.
const TRIAL: u64 = 3;
/// Posterior samples of an evidence.
const SAMPLES: usize = 16;

/// The settings that tables of so many rows are learned with unless a user says otherwise. Likelihood, weight of the KL term, prior and initial
/// deviation are from trials with one split of energy, concrete, housing and wine, on held-out parts of the training rows; the three
/// sizes are not tuned yet.
pub fn table_settings(_rows: usize) -> RunConfig {
    RunConfig {
        model: ModelConfig {
            kind: ModelKind::SpectralCirculant,
            lift: Some(SIZES[1].0),
            depth: SIZES[1].1,
            initial_scale: 1.0,
            ..ModelConfig::default()
        },
        posterior: PosteriorConfig {
            initial_deviation: 0.02,
            weight_deviation: Some(2.0),
            ..PosteriorConfig::default()
        },
        training: TrainingConfig {
            steps: 3000,
            batch: 128,
            learning_rate: 1e-2,
            final_rate: Some(0.0),
            samples: 1,
            kl_weight: 0.3,
            ..TrainingConfig::default()
        },
        ..RunConfig::default()
    }
}

/// What was chosen, and why.
pub struct Chosen {
    /// The settings with the size.
    pub config: RunConfig,
    /// The size, for people.
    pub name: String,
    /// What was chosen and why, for people.
    pub line: String,
}

/// A model in memory, of the size that was chosen.
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
    let svi = |config: &RunConfig| new_classifier(config, data, [1, 1, columns]);
    let choice = choose(config, data, svi, None, watch)?;
    fit_chosen(choice, data, svi, None, watch)
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
    let svi = |config: &RunConfig| new_regression(config, data, columns, likelihood);
    let choice = choose(config, data, svi, checkpoint, watch)?;
    fit_chosen(choice, data, svi, checkpoint, watch)
}

/// Trains a classifier of images `[channels, height, width]`, of the size that the settings say.
pub fn classifier_of(
    config: RunConfig,
    data: &LabelledData<4>,
    image: [usize; 3],
    watch: Watch<'_>,
) -> anyhow::Result<Fitted<ImageClassifier>> {
    let svi = |config: &RunConfig| new_classifier(config, data, image);
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
    let svi = |config: &RunConfig| new_regression(config, data, columns, likelihood);
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
) -> anyhow::Result<Svi<ImageClassifier>> {
    let network = model::network(config, image, data.classes())?;
    classifier_svi(config, network, data.examples())
}

fn new_regression(
    config: &RunConfig,
    data: &RegressionData<2>,
    columns: usize,
    likelihood: Likelihood,
) -> anyhow::Result<Svi<TargetNetwork>> {
    let network = model::target_network(config, columns, likelihood)?;
    target_svi(config, network, data.examples())
}

fn fit_chosen<M: Network, T: TrainingSet<M>>(
    choice: Choice<M>,
    data: &T,
    svi: impl Fn(&RunConfig) -> anyhow::Result<Svi<M>>,
    checkpoint: Option<&Path>,
    watch: Watch<'_>,
) -> anyhow::Result<Fitted<M>> {
    let chosen = match choice {
        Choice::Chosen(chosen) => chosen,
        Choice::Stopped(fitted) => return Ok(fitted),
    };
    let trained = fit(svi(&chosen.config)?, data, checkpoint, watch)?;
    Ok(Fitted { chosen, trained })
}

/// The steps of choosing and training together.
pub fn all_steps(config: &RunConfig) -> u64 {
    config
        .training
        .steps
        .saturating_add(steps_of_choosing(config))
}

fn steps_of_choosing(config: &RunConfig) -> u64 {
    trial_steps(config).saturating_mul(SIZES.len() as u64)
}

fn trial_steps(config: &RunConfig) -> u64 {
    (config.training.steps / TRIAL).max(1)
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
) -> impl FnMut(&StepReport) -> ControlFlow<()> + Send + use<> {
    let (mut interrupted, steps) = (interrupted(interrupt), steps_of_choosing(config));
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
    let svi = |config: &RunConfig| new_classifier(config, data, [1, 1, columns]);
    choose(config, data, svi, None, watch)?.finished()
}

/// Chooses the size of a regression.
pub fn regression(
    config: &RunConfig,
    data: &RegressionData<2>,
    columns: usize,
    likelihood: Likelihood,
    watch: Watch<'_>,
) -> anyhow::Result<Chosen> {
    let svi = |config: &RunConfig| new_regression(config, data, columns, likelihood);
    choose(config, data, svi, None, watch)?.finished()
}

fn choose<M: Network, T: TrainingSet<M>>(
    config: &RunConfig,
    data: &T,
    svi: impl Fn(&RunConfig) -> anyhow::Result<Svi<M>>,
    checkpoint: Option<&Path>,
    watch: Watch<'_>,
) -> anyhow::Result<Choice<M>> {
    let mut tried: Vec<(f64, Chosen)> = Vec::new();
    for (width, depth) in SIZES {
        let mut own = config.clone();
        own.model.lift = Some(width);
        own.model.depth = depth;
        let mut trial = own.clone();
        trial.training.steps = trial_steps(config);
        let trained = fit(svi(&trial)?, data, checkpoint, watch)?;
        let layers = if depth == 1 { "layer" } else { "layers" };
        let name = format!("{depth} spectral {layers} of width {width}");
        if trained.stop == Stop::Asked {
            let line = format!("model: {name}, whose trial was stopped");
            let config = own;
            let chosen = Chosen { config, name, line };
            return Ok(Choice::Stopped(Fitted { chosen, trained }));
        }
        let found = evidence(&trained.network, data, SAMPLES, config.training.seed)?;
        let bound = found.data - config.training.kl_weight * found.kl;
        let each = bound / data.examples() as f64;
        let line = format!("{name}: {each:.3}");
        let config = own;
        tried.push((each, Chosen { config, name, line }));
    }
    let lines: Vec<String> = tried.iter().map(|(_, tried)| tried.line.clone()).collect();
    let best = tried
        .into_iter()
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let (_, mut best) = best.expect("there are three sizes");
    best.line = format!(
        "model: {}, by the evidence per row ({})",
        best.name,
        lines.join(", ")
    );
    Ok(Choice::Chosen(best))
}
