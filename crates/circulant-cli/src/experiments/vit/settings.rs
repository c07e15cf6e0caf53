//! All settings of a run, as its `config.toml` has them.

use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, ensure};
use circulant::LayerError;
use circulant::models::{ProjectionKind, VisionTransformer, VisionTransformerConfig};
use circulant::train::{TrainerConfig, TrainingLoss, WarmUpCosine};
use clap::Args;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::super::config::Draw;
use super::super::folder::DataFacts;
use super::super::version::{self, VERSION};
use circulant_data::Normalisation;

/// Everything that a run depends on, apart from the data themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VitConfig {
    /// Of the file.
    #[serde(default = "version::first")]
    pub version: u32,
    /// What to learn from.
    pub data: VitData,
    /// What learns.
    pub model: VitModel,
    /// How.
    pub training: VitTraining,
}

/// The training data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VitData {
    /// A name or a path.
    pub train: String,
    /// Only that many examples of each part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<usize>,
    /// Which ones.
    #[serde(default = "Draw::of_0_1_0")]
    pub draw: Draw,
    /// That many examples, drawn by the seed 0, are kept out of training and decide which checkpoint is best.
    pub validation: usize,
    /// How pixels become floats.
    pub normalisation: Normalisation,
}

/// The model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VitModel {
    /// The projections of attention and MLP.
    pub projection: Projections,
    /// The side of a patch.
    pub patch: usize,
    /// The width of a token.
    pub d: usize,
    /// The number of blocks.
    pub depth: usize,
    /// The number of heads.
    pub heads: usize,
    /// The hidden width of the MLP, as a multiple of `d`.
    pub expansion: usize,
    /// The dropout probability.
    pub dropout: f64,
}

/// Training. The defaults are the paper's; it does not tell its patience, if it had one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Args)]
#[serde(deny_unknown_fields)]
pub struct VitTraining {
    /// The length of the schedule: after so many epochs the learning rate is zero.
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub epochs: u64,
    /// Epochs of linear warm-up.
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub warm_up: u64,
    /// Images per step.
    #[arg(long, default_value_t = 128, value_name = "N")]
    pub batch: usize,
    /// The largest learning rate.
    #[arg(long, default_value_t = 1e-3, value_name = "RATE")]
    pub learning_rate: f64,
    /// The learning rate of spectral coordinates, in units of the other. The paper has 1; with the square root of the width (11.3) circulant and dense
    /// projections change their outputs at about the same pace.
    #[arg(long, default_value_t = 1.0, value_name = "X")]
    #[serde(default = "one")]
    pub spectral_rate: f64,
    /// And this power of the length of a layer's transform: with 0.5 circulant matrices and blocks of every length change their outputs at
    /// about the pace of dense ones.
    #[arg(
        long,
        default_value_t = 0.0,
        value_name = "POWER",
        allow_negative_numbers = true
    )]
    #[serde(default)]
    pub length_power: f64,
    /// The weight decay of Adan.
    #[arg(long, default_value_t = 1e-4, value_name = "RATE")]
    pub weight_decay: f64,
    /// Stop a model after so many epochs without a smaller validation loss; 0 never does.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub patience: u64,
    /// Of initial parameters, order and dropout.
    #[arg(skip)]
    pub seed: u64,
    /// Mirror every second training image. The paper does not.
    #[arg(long)]
    pub flip: bool,
    /// Move training images by up to N pixels each way. The paper does not.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub crop: usize,
}

/// What settings from before there was a choice have.
fn one() -> f64 {
    1.0
}

/// Which projections, role by role: `ATTENTION[:VALUES][+MLP_IN[+MLP_OUT]]`.
///
/// `VALUES` are those of values and output, if others than those of queries and keys; without the rest the MLP is dense, and
/// without `MLP_OUT` it is as `MLP_IN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Projections {
    /// Of queries and keys.
    pub scores: ProjectionKind,
    /// Of values and output.
    pub values: ProjectionKind,
    /// Into and out of the hidden layer of the MLP.
    pub mlp: [ProjectionKind; 2],
}

impl Projections {
    /// Matrices.
    pub const DENSE: Self = Self::attention(ProjectionKind::Dense);
    /// Circulant matrices in attention.
    pub const SPECTRAL: Self = Self::attention(ProjectionKind::Spectral);

    const fn attention(kind: ProjectionKind) -> Self {
        Self {
            scores: kind,
            values: kind,
            mlp: [ProjectionKind::Dense; 2],
        }
    }

    /// For folders, files and JSON: what [`FromStr`] reads.
    pub fn name(self) -> String {
        let mut name = self.scores.name();
        if self.values != self.scores {
            name += &format!(":{}", self.values.name());
        }
        let [mlp_in, mlp_out] = self.mlp;
        if self.mlp != [ProjectionKind::Dense; 2] {
            name += &format!("+{}", mlp_in.name());
        }
        if mlp_in != mlp_out {
            name += &format!("+{}", mlp_out.name());
        }
        name
    }
}

impl FromStr for Projections {
    type Err = LayerError;

    fn from_str(text: &str) -> Result<Self, LayerError> {
        let wrong = || LayerError::Projection {
            got: text.to_owned(),
        };
        let mut roles = text.split('+');
        let attention = roles.next().ok_or_else(wrong)?;
        let (scores, values) = attention.split_once(':').unwrap_or((attention, attention));
        let mlp_in = roles.next().unwrap_or("dense");
        let mlp_out = roles.next().unwrap_or(mlp_in);
        if roles.next().is_some() {
            return Err(wrong());
        }
        Ok(Self {
            scores: scores.parse()?,
            values: values.parse()?,
            mlp: [mlp_in.parse()?, mlp_out.parse()?],
        })
    }
}

impl Serialize for Projections {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

impl<'de> Deserialize<'de> for Projections {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl VitModel {
    /// The paper's model; 4 heads and dropout 0.1 are those of its authors' code.
    pub fn paper(projection: Projections, patch: usize) -> Self {
        Self {
            projection,
            patch,
            d: 128,
            depth: 6,
            heads: 4,
            expansion: 4,
            dropout: 0.1,
        }
    }

    /// The model with fresh parameters, on an autodiff device.
    pub fn init(&self, data: &DataFacts, seed: u64) -> anyhow::Result<VisionTransformer> {
        let [channels, height, width] = data.image();
        ensure!(
            height == width,
            "expected square images, found {height} x {width}; scale them first, for instance with --size"
        );
        let Projections {
            scores,
            values,
            mlp,
        } = self.projection;
        let config = VisionTransformerConfig::new(height, self.patch, data.classes, scores)
            .with_values(Some(values))
            .with_mlp(mlp)
            .with_channels(channels)
            .with_d(self.d)
            .with_depth(self.depth)
            .with_heads(self.heads)
            .with_expansion(self.expansion)
            .with_dropout(self.dropout)
            .with_seed(seed);
        Ok(config.try_init(&circulant::cpu().autodiff())?)
    }
}

impl VitConfig {
    /// Reads a file that has all of it.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the settings {}", path.display()))?;
        version::of_toml(&text, path)?;
        let mut config: Self = toml::from_str(&text).with_context(|| {
            format!(
                "{} is not the settings of a vision transformer; put a whole copy back, or train again",
                path.display()
            )
        })?;
        config.version = VERSION;
        if config.data.first.is_none() {
            config.data.draw = Draw::default();
        }
        config
            .check()
            .with_context(|| format!("{} cannot be used", path.display()))?;
        Ok(config)
    }

    /// Model and seed.
    pub fn name(&self) -> String {
        format!(
            "{}, seed {}",
            self.model.projection.name(),
            self.training.seed
        )
    }

    /// All of it as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("settings are numbers, words and tables")
    }

    /// Settings that no run can have are named here, before any work.
    pub fn check(&self) -> anyhow::Result<()> {
        let (training, model) = (&self.training, &self.model);
        for (what, number) in [
            ("training.epochs", training.epochs),
            ("training.batch", training.batch as u64),
            ("data.validation", self.data.validation as u64),
            ("model.d", model.d as u64),
            ("model.depth", model.depth as u64),
            ("model.expansion", model.expansion as u64),
        ] {
            ensure!(number > 0, "{what}: expected 1 or more, got 0");
        }
        ensure!(
            training.warm_up <= training.epochs,
            "training.warm_up: expected no more than the {} epochs, got {}",
            training.epochs,
            training.warm_up
        );
        for (what, number, least) in [
            (
                "training.learning_rate",
                training.learning_rate,
                f64::MIN_POSITIVE,
            ),
            (
                "training.spectral_rate",
                training.spectral_rate,
                f64::MIN_POSITIVE,
            ),
            ("training.weight_decay", training.weight_decay, 0.0),
            ("training.length_power", training.length_power, -2.0),
        ] {
            ensure!(
                number >= least && number.is_finite(),
                "{what}: expected a number from {least} on, got {number}"
            );
        }
        Ok(())
    }

    /// The settings of the trainer, with so many steps per epoch.
    pub fn trainer(&self, per_epoch: u64) -> TrainerConfig {
        TrainerConfig {
            seed: self.training.seed,
            schedule: WarmUpCosine {
                peak: self.training.learning_rate,
                warm_up: self.training.warm_up * per_epoch,
                steps: self.training.epochs * per_epoch,
            },
            spectral_rate: self.training.spectral_rate,
            length_power: self.training.length_power,
            weight_decay: self.training.weight_decay,
            loss: TrainingLoss::CrossEntropy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_read_as_they_are_written() {
        let kinds = ["dense", "spectral", "diagonal", "block-16"];
        for scores in kinds {
            for values in kinds {
                for mlp_in in kinds {
                    for mlp_out in kinds {
                        let text = format!("{scores}:{values}+{mlp_in}+{mlp_out}");
                        let roles: Projections = text.parse().unwrap();
                        let again: Projections = roles.name().parse().unwrap();
                        assert_eq!(roles, again, "{text} {}", roles.name());
                        assert_eq!(roles.mlp[1].name(), mlp_out);
                    }
                }
            }
        }
        let name = |text: &str| text.parse::<Projections>().unwrap().name();
        for text in [
            "dense",
            "spectral",
            "spectral:dense",
            "spectral+block-8",
            "dense+spectral+dense",
        ] {
            assert_eq!(name(text), text);
        }
        assert_eq!(Projections::SPECTRAL.name(), "spectral");
        for text in [
            "",
            "sparse",
            "dense+",
            "dense+dense+dense+dense",
            "block-",
            "block-0",
            "block-x",
            "a:b:c",
        ] {
            assert!(text.parse::<Projections>().is_err(), "{text}");
        }
    }
}
