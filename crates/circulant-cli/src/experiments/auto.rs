//! The default model for tables: a lift to a width, spectral layers, and the size among three that has the largest evidence.
//!
//! The evidence bound is what the data are worth under a model, the price of its parameters included; so a size is chosen without
//! held-out rows. The price is weighed as in training.

use circulant::bayes::{Bayesian, Network, evidence};
use circulant::data::{LabelledData, RegressionData};
use circulant::models::Likelihood;
use circulant::task::TrainingSet;

use super::config::{ModelConfig, ModelKind, PosteriorConfig, RunConfig, TrainingConfig};
use super::interrupt::Interrupt;
use super::model;
use super::progress::WorkProgress;
use super::training::fit;

/// Width and number of hidden layers of the three sizes.
const SIZES: [(usize, usize); 3] = [(16, 1), (64, 1), (64, 2)];
/// The share of the steps that a size is tried for.
const TRIAL: u64 = 3;
/// Posterior samples of an evidence.
const SAMPLES: usize = 16;

/// The settings that tables are learned with unless a user says otherwise. Likelihood, weight of the KL term, prior and initial
/// deviation are from trials with one split of energy, concrete, housing and wine, on held-out parts of the training rows; the three
/// sizes are not tuned yet.
pub fn table_settings() -> RunConfig {
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

/// Chooses the size of a classifier.
pub fn classifier(
    config: &RunConfig,
    data: &LabelledData<4>,
    columns: usize,
    interrupt: &Interrupt,
) -> anyhow::Result<Chosen> {
    let network = |config: &RunConfig| model::network(config, [1, 1, columns], data.classes());
    choose(config, data, network, interrupt)
}

/// Chooses the size of a regression.
pub fn regression(
    config: &RunConfig,
    data: &RegressionData<2>,
    columns: usize,
    likelihood: Likelihood,
    interrupt: &Interrupt,
) -> anyhow::Result<Chosen> {
    let network = |config: &RunConfig| model::target_network(config, columns, likelihood);
    choose(config, data, network, interrupt)
}

fn choose<M: Network, T: TrainingSet<M>>(
    config: &RunConfig,
    data: &T,
    network: impl Fn(&RunConfig) -> anyhow::Result<Bayesian<M>>,
    interrupt: &Interrupt,
) -> anyhow::Result<Chosen> {
    let mut progress = WorkProgress::quiet("choosing a size", SIZES.len() as u64);
    let mut tried: Vec<(f64, RunConfig, String)> = Vec::new();
    for (index, (width, depth)) in SIZES.into_iter().enumerate() {
        let mut own = config.clone();
        own.model.lift = Some(width);
        own.model.depth = depth;
        let mut trial = own.clone();
        trial.training.steps = (config.training.steps / TRIAL).max(1);
        let trained = fit(&trial, network(&trial)?, data, interrupt)?;
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
