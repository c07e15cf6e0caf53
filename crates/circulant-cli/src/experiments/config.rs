//! All settings of a run. A TOML file may have any part of them; the complete ones are echoed into the run's folder.
//!
//! The defaults are those of `reproduce mnist`. Steps, optimiser, learning rate and rank are the paper's. It does not give
//! batch, samples per step, size of the initial weights and initial deviation: these were chosen once for all six
//! models, on 10,000 training images of MNIST held out for that and on Fashion-MNIST's training images as the
//! other side, never on test sets.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use circulant::models::HiddenKind;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::version::{self, VERSION};
use circulant_data::Normalisation;

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
    /// Reads rows of numbers as images: `[channels, height, width]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<[usize; 3]>,
    /// Takes only that many examples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<usize>,
    /// A CSV file without the label column has no labels, instead of being refused: for predictions.
    #[serde(skip)]
    pub labels_optional: bool,
    /// Keeps that many examples out of training and evaluates on them at the end.
    pub validation: usize,
    /// Which ones.
    pub draw: Draw,
    /// How pixels become floats.
    pub normalisation: Normalisation,
}

impl Default for DataConfig {
    fn default() -> Self {
        Self {
            train: "mnist".to_owned(),
            labels: None,
            input_name: None,
            label_name: None,
            size: None,
            image: None,
            first: None,
            labels_optional: false,
            validation: 0,
            draw: Draw::default(),
            normalisation: Normalisation::Unit,
        }
    }
}

/// The six models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// Block-circulant in the spectrum: 2D.
    SpectralBccb,
    /// Circulant in the spectrum: 1D.
    SpectralCirculant,
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
    /// In the order of the paper's table.
    pub const ALL: [Self; 6] = [
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
        matches!(self, Self::SpectralBccb | Self::SpectralCirculant)
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
    /// Outputs of a dense layer, if not as many as inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// The lowest bins of a spectral circulant layer, if not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modes: Option<usize>,
    /// The number of hidden layers.
    pub depth: usize,
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
            depth: 1,
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
    /// `sigma0` of the spectral prior.
    pub prior_deviation: f64,
    /// `alpha` of the spectral prior: how fast it falls with frequency.
    pub slope: f64,
    /// Learns the slope instead.
    pub learn_slope: bool,
}

impl Default for PosteriorConfig {
    fn default() -> Self {
        Self {
            inference: Inference::Bayesian,
            rank: 8,
            initial_deviation: 0.7,
            prior_deviation: 1.0,
            slope: 1.0,
            learn_slope: false,
        }
    }
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
    /// Posterior samples per step; a point estimate needs only one.
    pub samples: usize,
    /// The weight of the KL term; 1 is the evidence bound.
    pub kl_weight: f64,
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
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            steps: 1000,
            batch: 256,
            learning_rate: 1e-2,
            final_rate: None,
            samples: 4,
            kl_weight: 1.0,
            seed: 0,
            patience: None,
            norm_limit: None,
            checkpoint_every: 250,
        }
    }
}

impl RunConfig {
    /// Reads a TOML file; what it leaves out has its default.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        Ok(Self::parse(path)?.0)
    }

    /// The settings, and the file's own version and entries.
    fn parse(path: &Path) -> anyhow::Result<(Self, u32, toml::Table)> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the settings {}", path.display()))?;
        Self::parse_text(&text, path)
    }

    fn parse_text(text: &str, path: &Path) -> anyhow::Result<(Self, u32, toml::Table)> {
        let version = version::of_toml(text, path)?;
        let unknown = || format!("{} has settings that are not understood", path.display());
        let config: Self = toml::from_str(text).with_context(unknown)?;
        let found = toml::from_str(text).with_context(unknown)?;
        let config = Self {
            version: VERSION,
            ..config
        };
        Ok((config, version, found))
    }

    /// Reads a TOML file that must say everything that its version knows: a setting that was lost must not silently have its
    /// default. A setting that came later has the value that older versions worked by.
    pub fn read_complete(path: &Path) -> anyhow::Result<Self> {
        let (mut config, version, found) = Self::parse(path)?;
        let lost = differences(&config.table(), &found)
            .into_iter()
            .find(|difference| {
                let since = SINCE.iter().find(|(name, _)| *name == difference.name);
                difference.other.is_none() && since.is_none_or(|&(_, since)| since <= version)
            });
        if let Some(lost) = lost {
            bail!(
                "{} is damaged: the setting {} is missing; put a whole copy back, or train again",
                path.display(),
                lost.name
            );
        }
        if version < 2 && (config.data.first.is_some() || config.data.validation > 0) {
            config.data.draw = Draw::InOrder;
        }
        config
            .check()
            .with_context(|| format!("{} cannot be used", path.display()))?;
        Ok(config)
    }

    /// All of it as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("settings are numbers, words and tables")
    }

    fn table(&self) -> toml::Table {
        toml::Table::try_from(self).expect("settings are a table")
    }

    /// The settings that another run has otherwise.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let (own, other) = (self.table(), other.table());
        let mut found = differences(&own, &other);
        // What only the other one has.
        let turned = differences(&other, &own).into_iter();
        found.extend(
            turned
                .filter(|only| only.other.is_none())
                .map(|only| Difference {
                    name: only.name,
                    own: None,
                    other: only.own,
                }),
        );
        found
    }

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

/// Settings that files of older versions lack, and the version that they came with.
const SINCE: [(&str, u32); 2] = [("version", 2), ("data.draw", 2)];

/// A setting with two values; none where it is not set.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// With its table, as `training.seed`.
    pub name: String,
    /// On this side.
    pub own: Option<String>,
    /// On the other side.
    pub other: Option<String>,
}

/// The settings of `own` that `other` lacks or has otherwise.
fn differences(own: &toml::Table, other: &toml::Table) -> Vec<Difference> {
    let mut found = Vec::new();
    for (key, value) in own {
        let there = other.get(key);
        if let (toml::Value::Table(own), Some(toml::Value::Table(other))) = (value, there) {
            found.extend(differences(own, other).into_iter().map(|inner| Difference {
                name: format!("{key}.{}", inner.name),
                ..inner
            }));
        } else if there != Some(value) {
            found.push(Difference {
                name: key.clone(),
                own: Some(value.to_string()),
                other: there.map(toml::Value::to_string),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::option::of;
    use proptest::prelude::*;

    use super::*;

    prop_compose! {
        /// Settings that a run can have.
        fn settings()(
            (steps, batch, seed) in (1..=u64::MAX >> 1, 1..10_000_usize, 0..=u64::MAX >> 1),
            (rate, weight) in (1e-300..1e300_f64, 0.0..10.0_f64),
            (share, limit) in (of(0.0..=1.0_f64), of(1e-9..1e9_f64)),
            kind in proptest::sample::select(&ModelKind::ALL[..]),
            (channels, size, first) in (of(1..99_usize), of([1..4096_usize, 1..4096]), of(1..99_usize)),
            (name, train, learned) in (of(".*"), ".*", any::<bool>()),
        ) -> RunConfig {
            let mut config = RunConfig::default();
            (config.training.steps, config.training.batch, config.training.seed) = (steps, batch, seed);
            (config.training.learning_rate, config.training.kl_weight) = (rate, weight);
            (config.training.final_rate, config.training.norm_limit) = (share, limit);
            (config.model.kind, config.model.channels) = (kind, channels);
            (config.data.size, config.data.first, config.data.label_name) = (size, first, name);
            (config.data.train, config.posterior.learn_slope) = (train, learned);
            config
        }
    }

    proptest! {
        #[test]
        fn all_settings_are_read_as_they_are_written(config in settings(), other in settings()) {
            let place = Path::new("config.toml");
            let (read, version, table) = RunConfig::parse_text(&config.to_toml(), place).unwrap();
            prop_assert_eq!(&read, &config);
            prop_assert_eq!(version, VERSION);
            prop_assert!(differences(&config.table(), &table).is_empty());
            prop_assert!(read.check().is_ok());
            prop_assert_eq!(config.differences(&other).is_empty(), config == other);
        }

        #[test]
        fn damaged_settings_are_refused_or_read(config in settings(), cut in any::<prop::sample::Index>(), with in ".{0,3}") {
            let mut text = config.to_toml();
            let mut at = cut.index(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            text.insert_str(at, &with);
            // Whatever it is, it is an error or settings, never a panic.
            if let Ok((config, _, _)) = RunConfig::parse_text(&text, Path::new("config.toml")) {
                config.check().ok();
            }
        }
    }

    #[test]
    fn settings_survive_a_file() {
        let mut config = RunConfig::default();
        config.model.channels = Some(3);
        config.training.norm_limit = Some(2.5);
        config.data.normalisation = Normalisation::Standard {
            mean: vec![0.5],
            std: vec![0.25],
        };
        assert_eq!(
            toml::from_str::<RunConfig>(&config.to_toml()).unwrap(),
            config
        );
        let part: RunConfig = toml::from_str("[training]\nsteps = 7").unwrap();
        assert_eq!(part.training.steps, 7);
        assert_eq!(part.model, ModelConfig::default());
    }

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
