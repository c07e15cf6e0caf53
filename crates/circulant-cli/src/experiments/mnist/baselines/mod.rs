//! What others do instead of our posterior, on the same models and the same images: two sizes, every method with every seed.
//!
//! A twelfth of the training images is held out: it chooses temperatures, dropout rates and precisions. All methods, ours too, learn from the others.
//! Trained networks are run folders; lines of finished methods are kept, so the same command resumes.

mod methods;
mod report;

use std::path::Path;

use anyhow::Context;
use circulant_data::ImageSet;
use serde::{Deserialize, Serialize};

use self::methods::Methods;
pub use self::report::{plain, section};
use super::super::config::{Inference, ModelKind, RunConfig};
use super::super::interrupt::Interrupt;
use super::super::lines::{self, Log};
use super::super::progress::WorkProgress;
use super::super::source::Held;
use super::super::variant::{SharedPlan, SharedRuns, Variant};
use super::sets::MnistSets;

/// The share of the training images that is held out: one of so many.
const HELD: usize = 12;
/// Networks of a deep ensemble.
pub const MEMBERS: u64 = 5;

/// A way to be uncertain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// A posterior over all parameters, and the entropy of its predictions.
    Ours,
    /// The same predictions; the density of the hidden features of the posterior's mean tells other inputs.
    OursDensity,
    /// One network.
    Softmax,
    /// One network, its logits divided by a held-out temperature.
    Temperature,
    /// Masks on the hidden layer.
    Dropout,
    /// Several networks.
    Ensemble,
    /// A Gaussian around the read-out.
    Laplace,
    /// One network; the density of its hidden features tells other inputs.
    Density,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Ours,
        Self::OursDensity,
        Self::Softmax,
        Self::Temperature,
        Self::Dropout,
        Self::Ensemble,
        Self::Laplace,
        Self::Density,
    ];

    /// As in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::OursDensity => "ours, feature density",
            Self::Softmax => "softmax",
            Self::Temperature => "temperature scaling",
            Self::Dropout => "MC dropout",
            Self::Ensemble => "deep ensemble of 5",
            Self::Laplace => "last-layer Laplace",
            Self::Density => "feature density",
        }
    }
}

/// What a method with one seed is worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineLine {
    /// What the run was asked for; lines of other runs are not used.
    pub settings: String,
    /// The name of the model.
    pub model: String,
    /// Which method.
    pub method: Method,
    /// Of its training.
    pub seed: u64,
    /// Weights of one network.
    pub weights: usize,
    /// Numbers that are kept for predictions, biases included.
    pub stored: usize,
    /// The share of the test images that is right.
    pub accuracy: f64,
    /// The mean of `-log p` of the true class.
    pub nll: f64,
    /// Expected calibration error, 10 bins.
    pub ece: f64,
    /// Area under the ROC curve of the method's score for inputs unlike the training data.
    pub auroc: f64,
    /// False positive rate at 95 % true positives.
    pub fpr95: f64,
    /// Milliseconds for 1000 test images.
    pub milliseconds: f64,
}

/// The two models, 8.6 thousand and 60 thousand weights on MNIST.
fn models(shared: &RunConfig) -> [Variant; 2] {
    let variant = |name: &str, title: &str, kind: ModelKind, block: Option<usize>| {
        let mut config = shared.clone();
        config.model.kind = kind;
        config.model.block = block;
        Variant {
            name: name.to_owned(),
            title: title.to_owned(),
            config,
        }
    };
    [
        variant(
            "spectral-circulant",
            "spectral circulant",
            ModelKind::SpectralCirculant,
            None,
        ),
        variant(
            "block-circulant-12",
            "blocks of 12",
            ModelKind::BlockCirculant,
            Some(12),
        ),
    ]
}

/// The same model as one network: the most probable parameters under prior and data.
fn point(variant: &Variant) -> Variant {
    let mut point = variant.clone();
    point.name.push_str("-point");
    point.title.push_str(", one network");
    point.config.posterior.inference = Inference::Point;
    // A point has one sample.
    point.config.training.samples = 1;
    point
}

/// Runs what is not done yet: all lines, model by model and method by method.
pub fn run(
    sets: &MnistSets,
    shared: &SharedPlan,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<BaselineLine>> {
    let held = (sets.train.len() / HELD).max(sets.train.labels().classes());
    let mut settings = shared.settings.clone();
    settings.data.validation = held;
    let parts = Held::out_of(sets.train.clone(), &settings.data)
        .context("too few training images for the baselines, which hold some out")?;
    let validation = parts.validation.context("something is held out")?;
    let plan = SharedPlan {
        seeds: shared.seeds.clone(),
        settings,
        samples: shared.samples,
        out: shared.out.join("baselines"),
    };
    std::fs::create_dir_all(&plan.out)?;
    let runs = SharedRuns::new(&plan, &parts.training, interrupt)?;
    let asked = asked_for(sets, &plan);
    let (mut lines, mut log) = opened(&plan.out, &asked)?;
    let models = models(&plan.settings);
    let all = (models.len() * plan.seeds.len() * Method::ALL.len()) as u64;
    for variant in models {
        for &seed in &plan.seeds {
            let mut methods = Methods {
                runs: &runs,
                plan: &plan,
                sets,
                training: &parts.training,
                validation: &validation,
                variant: variant.clone(),
                point: point(&variant),
                seed,
                interrupt,
                networks: Default::default(),
            };
            for method in Method::ALL {
                let is_own = |line: &BaselineLine| {
                    line.model == variant.name && line.seed == seed && line.method == method
                };
                if lines.iter().any(is_own) {
                    continue;
                }
                let title = format!("baselines: {}, {}", variant.title, method.title());
                let mut progress = WorkProgress::quiet(&title, all);
                progress.at(lines.len() as u64, String::new);
                let line = methods.line(method, &asked)?;
                progress.clear();
                log.add(&line)?;
                lines.push(line);
            }
        }
    }
    // Lines of an earlier process may have come in another order.
    let place = |line: &BaselineLine| {
        let method = Method::ALL.iter().position(|own| *own == line.method);
        (line.model != "spectral-circulant", method, line.seed)
    };
    lines.sort_by_key(place);
    Ok(lines)
}

/// What lines depend on.
fn asked_for(sets: &MnistSets, plan: &SharedPlan) -> String {
    let training = &plan.settings.training;
    format!(
        "{}: {} training images, {} test images, {} steps, {} samples",
        sets.name,
        sets.train.len(),
        sets.test.len(),
        training.steps,
        plan.samples
    )
}

/// The lines that are done, and their file.
fn opened(out: &Path, settings: &str) -> anyhow::Result<(Vec<BaselineLine>, Log<BaselineLine>)> {
    let place = out.join("baselines.jsonl");
    let mut lines: Vec<BaselineLine> = lines::read(&place)?;
    lines.retain(|line| line.settings == settings);
    let log = Log::open(&place, &lines)?;
    Ok((lines, log))
}

/// Images that a fit looks at, at most.
fn some(set: &ImageSet, count: usize) -> anyhow::Result<ImageSet> {
    super::super::source::few(set, count)
}
