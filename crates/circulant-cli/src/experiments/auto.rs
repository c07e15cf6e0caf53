//! The default model for tables: a lift to a width, block-circulant layers, and the size among three that predicts held-out rows best.
//!
//! A fifth of the training rows is held out while the three sizes are tried. They choose the size, and one number: what the noise of a target is
//! multiplied by, or what logits are divided by. Then the model learns from all rows.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{bail, ensure};
use circulant::bayes::{Bayesian, Network, PredictiveConfig, StepReport, Stop, Svi};
use circulant::data::{BatchOrder, ExamplesError, LabelledData, RegressionData};
use circulant::metrics::{Mixtures, class_metrics};
use circulant::models::{ImageClassifier, Likelihood, TargetNetwork};
use circulant::task::TrainingSet;

use super::config::{ModelConfig, ModelKind, PosteriorConfig, RunConfig, TrainingConfig};
use super::interrupt::Interrupt;
use super::model;
use super::progress::WorkProgress;
use super::training::{Trained, Watch, classifier_svi, fit, target_svi};

/// Width and number of hidden layers of the three sizes.
const SIZES: [(usize, usize); 3] = [(32, 1), (64, 1), (64, 2)];
/// The same for this many rows and more.
const MANY: usize = 5000;
const SIZES_OF_MANY: [(usize, usize); 3] = [(64, 1), (64, 2), (128, 2)];
/// With fewer rows nothing is held out, and the second size is taken.
const FEW: usize = 25;
/// The share that is held out, one of so many, and the most rows.
const HELD: usize = 5;
const MOST_HELD: usize = 1000;
/// Posterior samples of a prediction of held-out rows.
const SAMPLES: usize = 32;
/// The logarithm of noise factor or temperature is 0 give or take this before held-out rows say otherwise: few rows move it little.
const FACTOR_DEVIATION: f64 = 0.3;

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
    let choice = choose(config, data, svi, score, None, watch)?;
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
    let choice = choose(config, data, svi, score, checkpoint, watch)?;
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

/// The steps of choosing and training together.
pub fn all_steps(config: &RunConfig) -> u64 {
    config
        .training
        .steps
        .saturating_add(steps_of_choosing(config))
}

fn steps_of_choosing(config: &RunConfig) -> u64 {
    config.training.steps.saturating_mul(SIZES.len() as u64)
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
    let svi = |config: &RunConfig, rows| new_classifier(config, data, [1, 1, columns], rows);
    let score = class_score(config, data);
    choose(config, data, svi, score, None, watch)?.finished()
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
    choose(config, data, svi, score, None, watch)?.finished()
}

/// What held-out rows ask to change after training.
#[derive(Debug, Clone, Copy, Default)]
struct Calibration {
    temperature: Option<f64>,
    noise_factor: Option<f64>,
}

/// The calibration of a network by rows that it has not seen, and the mean of `-log p` of these rows with it.
fn class_score(
    config: &RunConfig,
    data: &LabelledData<4>,
) -> impl Fn(&Bayesian<ImageClassifier>, &[usize]) -> anyhow::Result<(Calibration, f64)> {
    let predictive = predictive(config);
    move |network, held| {
        let examples = data.batch(held);
        let inputs = examples.batch();
        let (temperature, loss) = best_factor(held.len(), |temperature| {
            let scaled = network.clone().with_scaled("output", temperature.recip())?;
            let found = predictive.predict(&scaled, inputs.clone())?;
            let (metrics, _) = class_metrics(&found.class_probabilities()?, &examples.labels.0)?;
            Ok(metrics.nll)
        })?;
        let calibration = Calibration {
            temperature: Some(temperature),
            ..Calibration::default()
        };
        Ok((calibration, loss))
    }
}

/// The same for numbers and counts.
fn target_score(
    config: &RunConfig,
    data: &RegressionData<2>,
    likelihood: Likelihood,
) -> impl Fn(&Bayesian<TargetNetwork>, &[usize]) -> anyhow::Result<(Calibration, f64)> {
    let predictive = predictive(config);
    move |network, held| {
        let rows = data.batch(held);
        let found = predictive.predict_targets(network, rows.inputs.batch(None))?;
        let mean_loss = |found: &Mixtures| -> anyhow::Result<f64> {
            let sum: f64 = found.log_likelihoods(&rows.targets)?.iter().sum();
            Ok(-sum / held.len() as f64)
        };
        if likelihood == Likelihood::Poisson {
            return Ok((Calibration::default(), mean_loss(&found)?));
        }
        let (factor, loss) = best_factor(held.len(), |factor| {
            let deviations = found.deviations().iter().map(|own| own * factor).collect();
            let (components, locations) = (found.components(), found.locations().to_vec());
            mean_loss(&Mixtures::gaussian(components, locations, deviations)?)
        })?;
        let calibration = Calibration {
            noise_factor: Some(factor),
            ..Calibration::default()
        };
        Ok((calibration, loss))
    }
}

fn predictive(config: &RunConfig) -> PredictiveConfig {
    PredictiveConfig::new()
        .with_samples(SAMPLES)
        .with_seed(config.training.seed)
}

/// The factor with the smallest `rows * loss + log^2/(2 deviation^2)` and its loss.
fn best_factor(
    rows: usize,
    mut loss: impl FnMut(f64) -> anyhow::Result<f64>,
) -> anyhow::Result<(f64, f64)> {
    let mut best = (1.0, f64::INFINITY, f64::INFINITY);
    for tenths in -12..=12 {
        let logarithm = f64::from(tenths) / 10.0;
        let own = loss(logarithm.exp())?;
        let whole = rows as f64 * own + (logarithm / FACTOR_DEVIATION).powi(2) / 2.0;
        if whole < best.2 {
            best = (logarithm.exp(), own, whole);
        }
    }
    Ok((best.0, best.1))
}

/// Some of the examples of a set.
struct Part<'a, T> {
    data: &'a T,
    rows: Vec<usize>,
}

impl<M: Network, T: TrainingSet<M>> TrainingSet<M> for Part<'_, T> {
    type Batch = T::Batch;

    fn examples(&self) -> usize {
        self.rows.len()
    }

    fn fingerprint(&self) -> u64 {
        self.data.fingerprint()
    }

    fn reads_in_place(model: &M) -> bool {
        T::reads_in_place(model)
    }

    fn batch(&self, indices: &[usize], in_place: bool) -> Result<T::Batch, ExamplesError> {
        let rows: Vec<usize> = indices.iter().map(|&index| self.rows[index]).collect();
        self.data.batch(&rows, in_place)
    }

    fn into_autodiff(batch: T::Batch) -> T::Batch {
        T::into_autodiff(batch)
    }

    fn negative_log_likelihood(&self, model: &M, batch: T::Batch) -> burn::tensor::Tensor<1> {
        self.data.negative_log_likelihood(model, batch)
    }
}

fn choose<M: Network, T: TrainingSet<M>>(
    config: &RunConfig,
    data: &T,
    svi: impl Fn(&RunConfig, usize) -> anyhow::Result<Svi<M>>,
    score: impl Fn(&Bayesian<M>, &[usize]) -> anyhow::Result<(Calibration, f64)>,
    checkpoint: Option<&Path>,
    watch: Watch<'_>,
) -> anyhow::Result<Choice<M>> {
    let rows = data.examples();
    let sizes = if rows >= MANY { SIZES_OF_MANY } else { SIZES };
    let sized = |(width, depth): (usize, usize)| {
        let mut own = config.clone();
        own.model.lift = Some(width);
        own.model.depth = depth;
        let layers = if depth == 1 { "layer" } else { "layers" };
        let title = config.model.kind.title();
        (own, format!("{depth} {title} {layers} of width {width}"))
    };
    if rows < FEW {
        let (config, name) = sized(sizes[1]);
        let line = format!("model: {name}; {rows} rows are too few to choose by");
        return Ok(Choice::Chosen(Chosen { config, name, line }));
    }
    let mut order = BatchOrder::new(config.training.seed, rows, rows)?;
    let (held, kept) = order.at(0).split_at((rows / HELD).min(MOST_HELD));
    let kept = Part {
        data,
        rows: kept.to_vec(),
    };
    let mut tried: Vec<(f64, Chosen)> = Vec::new();
    for size in sizes {
        let (mut config, name) = sized(size);
        let trained = fit(svi(&config, kept.rows.len())?, &kept, checkpoint, watch)?;
        if trained.stop == Stop::Asked {
            let line = format!("model: {name}, whose trial was stopped");
            let chosen = Chosen { config, name, line };
            return Ok(Choice::Stopped(Fitted { chosen, trained }));
        }
        let (calibration, loss) = score(&trained.network, held)?;
        config.posterior.temperature = calibration.temperature;
        config.posterior.noise_factor = calibration.noise_factor;
        let line = format!("{name}: {:.3}", -loss);
        tried.push((loss, Chosen { config, name, line }));
    }
    let lines: Vec<String> = tried.iter().map(|(_, tried)| tried.line.clone()).collect();
    let best = tried
        .into_iter()
        .min_by(|one, other| one.0.total_cmp(&other.0));
    let (_, mut best) = best.expect("there are three sizes");
    best.line = format!(
        "model: {}, by the log likelihood of {} held-out rows ({})",
        best.name,
        held.len(),
        lines.join(", ")
    );
    Ok(Choice::Chosen(best))
}
