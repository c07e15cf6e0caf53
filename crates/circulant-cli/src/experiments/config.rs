//! All settings of a run. A TOML file may have any part of them; the complete ones are echoed into the run's folder.
//!
//! The defaults are those of `reproduce mnist`. Steps, optimiser, learning rate and rank are the paper's. It does not give
//! batch, samples per step, size of the initial weights and initial deviation: these were chosen once for all six
//! models, on 10,000 training images of MNIST held out for that and on Fashion-MNIST's training images as the
//! other side, never on test sets.

mod file;

use std::path::PathBuf;

use anyhow::ensure;
use circulant::device::DeviceName;
use circulant::models::HiddenKind;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::version::{self, VERSION};
use circulant_data::{Normalisation, TableOptions, TableSchema};

pub use file::Difference;

/// Everything that a run depends on, apart from the data themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    /// Of the file.
    #[serde(default = "version::first")]
    pub version: u32,
    /// What to learn from.
    pub data: DataConfig,
    /// What learns.
    pub model: ModelConfig,
    /// What is inferred.
    pub posterior: PosteriorConfig,
    /// How.
    pub training: TrainingConfig,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self {
            version: VERSION,
            data: DataConfig::default(),
            model: ModelConfig::default(),
            posterior: PosteriorConfig::default(),
            training: TrainingConfig::default(),
        }
    }
}

/// Which examples are taken where not all are: by `first` and by `validation`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Draw {
    /// Drawn by a fixed seed, every class with its share.
    #[default]
    Stratified,
    /// The first ones, and the last ones for validation, as 0.1.0 did.
    InOrder,
}

impl Draw {
    /// What 0.1.0 did.
    pub fn of_0_1_0() -> Self {
        Self::InOrder
    }
}

/// The training data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DataConfig {
    /// A name of `circulant data list`, or a path.
    pub train: String,
    /// A file with the labels, for IDX and NPY.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<PathBuf>,
    /// The array with the inputs, for NPZ and safetensors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_name: Option<String>,
    /// The array with the labels, or the label column of a CSV file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_name: Option<String>,
    /// Scales the images of a folder: `[height, width]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<[usize; 2]>,
    /// Reads rows of values as images: `[channels, height, width]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<[usize; 3]>,
    /// Takes only that many examples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<usize>,
    /// What pictures are scaled and converted to, `[channels, height, width]`: for a trained model.
    #[serde(skip)]
    pub fits: Option<[usize; 3]>,
    /// A CSV file without the label column has no labels, instead of being refused: for predictions.
    #[serde(skip)]
    pub labels_optional: bool,
    /// Keeps that many examples out of training and evaluates on them at the end.
    pub validation: usize,
    /// Which ones.
    pub draw: Draw,
    /// How pixels become floats.
    pub normalisation: Normalisation,
    /// How a table of columns is understood; none for images and plain features.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<TableOptions>,
    /// What was learned from the columns of the training table; it is kept in `run.json`.
    #[serde(skip)]
    pub schema: Option<TableSchema>,
    /// Rows with missing cells are an error even where training left them out: every row gets a prediction.
    #[serde(skip)]
    pub every_row: bool,
}

impl Default for DataConfig {
    fn default() -> Self {
        Self {
            train: "mnist".to_owned(),
            labels: None,
            input_name: None,
            label_name: None,
            size: None,
            fits: None,
            image: None,
            first: None,
            labels_optional: false,
            validation: 0,
            draw: Draw::default(),
            normalisation: Normalisation::Unit,
            table: None,
            schema: None,
            every_row: false,
        }
    }
}

/// What a model's hidden layers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// Block-circulant in the spectrum: 2D.
    SpectralBccb,
    /// Circulant in the spectrum: 1D.
    SpectralCirculant,
    /// A matrix of circulant blocks, in the spectrum.
    BlockCirculant,
    /// Block-circulant with a spatial filter.
    Bccb,
    /// Circulant with a spatial filter.
    Circulant,
    /// A convolution, 3 x 3.
    Conv2d,
    /// A dense matrix.
    Dense,
}

impl ModelKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::SpectralBccb,
        Self::SpectralCirculant,
        Self::BlockCirculant,
        Self::Bccb,
        Self::Circulant,
        Self::Conv2d,
        Self::Dense,
    ];

    /// The six of the paper's table, in its order.
    pub const PAPER: [Self; 6] = [
        Self::SpectralBccb,
        Self::SpectralCirculant,
        Self::Bccb,
        Self::Circulant,
        Self::Conv2d,
        Self::Dense,
    ];

    /// As in files and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::SpectralBccb => "spectral-bccb",
            Self::SpectralCirculant => "spectral-circulant",
            Self::BlockCirculant => "block-circulant",
            Self::Bccb => "bccb",
            Self::Circulant => "circulant",
            Self::Conv2d => "conv2d",
            Self::Dense => "dense",
        }
    }

    /// As in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::SpectralBccb => "spectral BCCB",
            Self::SpectralCirculant => "spectral circulant",
            Self::BlockCirculant => "block circulant",
            Self::Bccb => "spatial BCCB",
            Self::Circulant => "spatial circulant",
            Self::Conv2d => "Conv2d",
            Self::Dense => "dense",
        }
    }

    /// As the library calls it.
    pub fn hidden(self) -> HiddenKind {
        match self {
            Self::SpectralBccb => HiddenKind::SpectralBccb,
            Self::SpectralCirculant => HiddenKind::SpectralCirculant,
            Self::BlockCirculant => HiddenKind::BlockCirculant,
            Self::Bccb => HiddenKind::SpatialBccb,
            Self::Circulant => HiddenKind::SpatialCirculant,
            Self::Conv2d => HiddenKind::Convolution,
            Self::Dense => HiddenKind::Dense,
        }
    }

    /// As [`Self::hidden`], backwards.
    pub fn of(hidden: HiddenKind) -> Self {
        let kinds = Self::ALL.into_iter();
        let mut own = kinds.filter(|kind| kind.hidden() == hidden);
        own.next().expect("there is a name for every kind")
    }

    /// Whether the hidden layers have a spectral prior.
    pub fn is_spectral(self) -> bool {
        self.hidden().is_spectral()
    }
}

/// The network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelConfig {
    /// The hidden layers.
    pub kind: ModelKind,
    /// Output channels of a BCCB or convolutional layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channels: Option<usize>,
    /// Outputs of a dense or block-circulant layer, if not as many as inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// The lowest bins of a spectral circulant or block-circulant layer, if not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modes: Option<usize>,
    /// The length of a block of a block-circulant layer; 16 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<usize>,
    /// The number of hidden layers.
    pub depth: usize,
    /// Outputs of a dense layer before the hidden layers, for tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lift: Option<usize>,
    /// What the initial weights of the hidden layers are multiplied by.
    pub initial_scale: f64,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            kind: ModelKind::SpectralCirculant,
            channels: None,
            width: None,
            modes: None,
            block: None,
            depth: 1,
            lift: None,
            initial_scale: 4.0,
        }
    }
}

/// What is inferred about the parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Inference {
    /// A distribution: low-rank for spectral coordinates, mean-field for everything else.
    #[default]
    Bayesian,
    /// The most probable parameters under prior and data.
    Point,
}

/// Posterior and prior.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PosteriorConfig {
    /// A distribution or a point.
    pub inference: Inference,
    /// The rank of the posterior of spectral coordinates.
    pub rank: usize,
    /// The standard deviation that posteriors start with, in units of the root mean square of the layer's initial
    /// weights.
    pub initial_deviation: f64,
    /// The same for the weights of hidden layers alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_deviation: Option<f64>,
    /// `sigma0` of the spectral prior.
    pub prior_deviation: f64,
    /// `alpha` of the spectral prior: how fast it falls with frequency.
    pub slope: f64,
    /// Learns the slope instead.
    pub learn_slope: bool,
    /// The prior deviation of the weights of dense layers, times the square root of their number of inputs; 1 per weight without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_deviation: Option<f64>,
    /// What all logits are divided by after training, as held-out rows asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// What the deviation of a target's noise is multiplied by after training, as held-out rows asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_factor: Option<f64>,
    /// The standard deviation that the logarithm of that noise gets besides, after training: tails heavier than a Gaussian's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_spread: Option<f64>,
    /// Whether the noise of a target depends on the inputs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub noise_per_input: bool,
}

impl Default for PosteriorConfig {
    fn default() -> Self {
        Self {
            inference: Inference::Bayesian,
            rank: 8,
            initial_deviation: 0.7,
            hidden_deviation: None,
            prior_deviation: 1.0,
            slope: 1.0,
            learn_slope: false,
            weight_deviation: None,
            temperature: None,
            noise_factor: None,
            noise_spread: None,
            noise_per_input: false,
        }
    }
}

/// What examples count in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ClassWeight {
    /// All classes the same, however many examples they have.
    Balanced,
}

/// Stochastic variational inference with Adam.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingConfig {
    /// Gradient steps.
    pub steps: u64,
    /// Examples per step.
    pub batch: usize,
    /// Of Adam.
    pub learning_rate: f64,
    /// The learning rate falls to this share of itself, along half a cosine; constant without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_rate: Option<f64>,
    /// The step at which a falling learning rate began anew, where a run was trained beyond its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_from: Option<u64>,
    /// Posterior samples per step; a point estimate needs only one.
    pub samples: usize,
    /// The weight of the KL term; 1 is the evidence bound.
    pub kl_weight: f64,
    /// The weight of the classes' examples, if not one each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class_weight: Option<ClassWeight>,
    /// The seed of initial parameters, batches and samples.
    pub seed: u64,
    /// Stops when the smoothed loss has not improved for that many steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<u64>,
    /// Keeps the operator norm of every layer's mean at or below this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub norm_limit: Option<f64>,
    /// Steps between two checkpoints.
    pub checkpoint_every: u64,
    /// What trains. A run on another device than the processor goes on there only: its checkpoints have no moments of the native kernels.
    #[serde(skip_serializing_if = "is_processor")]
    pub device: DeviceName,
}

fn is_processor(device: &DeviceName) -> bool {
    *device == DeviceName::default()
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            steps: 1000,
            batch: 256,
            learning_rate: 1e-2,
            final_rate: None,
            rate_from: None,
            samples: 4,
            kl_weight: 1.0,
            class_weight: None,
            seed: 0,
            patience: None,
            norm_limit: None,
            checkpoint_every: 250,
            device: DeviceName::default(),
        }
    }
}

impl RunConfig {
    /// Settings that no run can have are named here, before any work.
    pub fn check(&self) -> anyhow::Result<()> {
        let training = &self.training;
        for (what, number) in [
            ("training.steps", training.steps),
            ("training.batch", training.batch as u64),
            ("training.samples", training.samples as u64),
            ("training.checkpoint_every", training.checkpoint_every),
            ("posterior.rank", self.posterior.rank as u64),
            ("model.depth", self.model.depth as u64),
        ] {
            ensure!(number > 0, "{what}: expected 1 or more, got 0");
        }
        let positive = [
            ("training.learning_rate", Some(training.learning_rate)),
            ("training.norm_limit", training.norm_limit),
            (
                "posterior.initial_deviation",
                Some(self.posterior.initial_deviation),
            ),
            (
                "posterior.prior_deviation",
                Some(self.posterior.prior_deviation),
            ),
            ("model.initial_scale", Some(self.model.initial_scale)),
            (
                "posterior.weight_deviation",
                self.posterior.weight_deviation,
            ),
            (
                "posterior.hidden_deviation",
                self.posterior.hidden_deviation,
            ),
            ("posterior.temperature", self.posterior.temperature),
            ("posterior.noise_factor", self.posterior.noise_factor),
            ("posterior.noise_spread", self.posterior.noise_spread),
        ];
        for (what, number) in positive {
            let number = number.unwrap_or(1.0);
            ensure!(
                number > 0.0 && number.is_finite(),
                "{what}: expected a positive number, got {number}"
            );
        }
        for (what, number) in [
            ("training.kl_weight", training.kl_weight),
            ("posterior.slope", self.posterior.slope),
        ] {
            ensure!(
                number >= 0.0 && number.is_finite(),
                "{what}: expected 0 or a positive number, got {number}"
            );
        }
        let share = training.final_rate.unwrap_or(1.0);
        ensure!(
            (0.0..=1.0).contains(&share),
            "training.final_rate: expected a share from 0 to 1, got {share}"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_settings_are_named() {
        let error = toml::from_str::<RunConfig>("[training]\nstep = 7").unwrap_err();
        assert!(error.to_string().contains("`step`"), "{error}");
        for (text, name) in [
            ("[training]\nsteps = 0", "training.steps"),
            ("[training]\nlearning_rate = -1.0", "training.learning_rate"),
            ("[training]\nfinal_rate = 1.5", "training.final_rate"),
            ("[training]\nkl_weight = nan", "training.kl_weight"),
            (
                "[posterior]\ninitial_deviation = inf",
                "posterior.initial_deviation",
            ),
            ("[model]\ninitial_scale = 0.0", "model.initial_scale"),
        ] {
            let config: RunConfig = toml::from_str(text).unwrap();
            let error = config.check().unwrap_err().to_string();
            assert!(error.starts_with(name), "{error}");
        }
        assert!(RunConfig::default().check().is_ok());
    }
}
