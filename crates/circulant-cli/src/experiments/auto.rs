//! The default model for tables: a lift to a width, spectral layers, and the size among three that has the largest evidence.
//!
//! The evidence bound is what the data are worth under a model, the price of its parameters included; so a size is chosen without
//! held-out rows. The price is weighed as in training.

use std::ops::ControlFlow;

use circulant::bayes::{Bayesian, Network, StepReport, evidence};
use circulant::data::{LabelledData, RegressionData};
use circulant::models::{ImageClassifier, Likelihood, TargetNetwork};
use circulant::task::TrainingSet;

use super::config::{ModelConfig, ModelKind, PosteriorConfig, RunConfig, TrainingConfig};
use super::interrupt::Interrupt;
use super::model;
use super::progress::WorkProgress;
use super::training::{Watch, fit};

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
    pub network: Bayesian<M>,
}

/// Chooses the size of a classifier of standardised rows `[n, 1, 1, columns]`, and trains it. `watch` sees every step of all trials and of training,
/// [`all_steps`] in all, and may ask to stop, which is an error.
pub fn fit_classifier(
    config: &RunConfig,
    data: &LabelledData<4>,
    columns: usize,
    watch: Watch<'_>,
) -> anyhow::Result<Fitted<ImageClassifier>> {
    let chosen = classifier(config, data, columns, watch)?;
    trained(
        chosen,
        data,
        |config| classifier_network(config, data, columns),
        watch,
    )
}

/// The same for standardised targets, or counts. Predictions are in the unit of the targets that it was given.
pub fn fit_regression(
    config: &RunConfig,
    data: &RegressionData<2>,
    columns: usize,
    likelihood: Likelihood,
    watch: Watch<'_>,
) -> anyhow::Result<Fitted<TargetNetwork>> {
    let chosen = regression(config, data, columns, likelihood, watch)?;
    let network = |config: &RunConfig| model::target_network(config, columns, likelihood);
    trained(chosen, data, network, watch)
}

/// Trains a classifier of the size that the settings say.
pub fn classifier_of(
    config: RunConfig,
    data: &LabelledData<4>,
    columns: usize,
    watch: Watch<'_>,
) -> anyhow::Result<Fitted<ImageClassifier>> {
    let network = |config: &RunConfig| classifier_network(config, data, columns);
    trained(Chosen::given(config), data, network, watch)
}

/// Trains a regression of the size that the settings say.
pub fn regression_of(
    config: RunConfig,
    data: &RegressionData<2>,
    columns: usize,
    likelihood: Likelihood,
    watch: Watch<'_>,
) -> anyhow::Result<Fitted<TargetNetwork>> {
    let network = |config: &RunConfig| model::target_network(config, columns, likelihood);
    trained(Chosen::given(config), data, network, watch)
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

fn classifier_network(
    config: &RunConfig,
    data: &LabelledData<4>,
    columns: usize,
) -> anyhow::Result<Bayesian<ImageClassifier>> {
    model::network(config, [1, 1, columns], data.classes())
}

fn trained<M: Network, T: TrainingSet<M>>(
    chosen: Chosen,
    data: &T,
    network: impl FnOnce(&RunConfig) -> anyhow::Result<Bayesian<M>>,
    watch: Watch<'_>,
) -> anyhow::Result<Fitted<M>> {
    let network = network(&chosen.config)?;
    let network = fit(&chosen.config, network, data, watch)?;
    Ok(Fitted { chosen, network })
}

/// The steps of choosing and training together.
pub fn all_steps(config: &RunConfig) -> u64 {
    let trial = trial_steps(config.training.steps);
    config
        .training
        .steps
        .saturating_add(trial.saturating_mul(SIZES.len() as u64))
}

fn trial_steps(steps: u64) -> u64 {
    (steps / TRIAL).max(1)
}

/// Stops when the user asks to.
pub fn interrupted(interrupt: &Interrupt) -> impl FnMut(&StepReport) -> ControlFlow<()> + Send {
    let interrupt = interrupt.clone();
    move |_| match interrupt.is_asked() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// Chooses the size of a classifier.
pub fn classifier(
    config: &RunConfig,
    data: &LabelledData<4>,
    columns: usize,
    watch: Watch<'_>,
) -> anyhow::Result<Chosen> {
    let network = |config: &RunConfig| classifier_network(config, data, columns);
    choose(config, data, network, watch)
}

/// Chooses the size of a regression.
pub fn regression(
    config: &RunConfig,
    data: &RegressionData<2>,
    columns: usize,
    likelihood: Likelihood,
    watch: Watch<'_>,
) -> anyhow::Result<Chosen> {
    let network = |config: &RunConfig| model::target_network(config, columns, likelihood);
    choose(config, data, network, watch)
}

fn choose<M: Network, T: TrainingSet<M>>(
    config: &RunConfig,
    data: &T,
    network: impl Fn(&RunConfig) -> anyhow::Result<Bayesian<M>>,
    watch: Watch<'_>,
) -> anyhow::Result<Chosen> {
    let mut progress = WorkProgress::quiet("choosing a size", SIZES.len() as u64);
    let mut tried: Vec<(f64, RunConfig, String)> = Vec::new();
    for (index, (width, depth)) in SIZES.into_iter().enumerate() {
        let mut own = config.clone();
        own.model.lift = Some(width);
        own.model.depth = depth;
        let mut trial = own.clone();
        trial.training.steps = trial_steps(config.training.steps);
        let trained = fit(&trial, network(&trial)?, data, watch)?;
        let found = evidence(&trained, data, SAMPLES, config.training.seed)?;
        let bound = found.data - config.training.kl_weight * found.kl;
        let each = bound / data.examples() as f64;
        let layers = if depth == 1 { "layer" } else { "layers" };
        tried.push((
            each,
            own,
            format!("{depth} spectral {layers} of width {width}"),
        ));
        progress.at(index as u64 + 1, String::new);
    }
    progress.clear();
    let names: Vec<String> = tried
        .iter()
        .map(|(each, _, name)| format!("{name}: {each:.3}"))
        .collect();
    let best = tried
        .into_iter()
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let (_, config, name) = best.expect("there are three sizes");
    let line = format!(
        "model: {name}, by the evidence per row ({})",
        names.join(", ")
    );
    Ok(Chosen { config, name, line })
}
