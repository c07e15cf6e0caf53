//! All settings of a run, as its `config.toml` has them, and those that held-out images of MNIST and CIFAR-10 chose.

use std::f64::consts::SQRT_2;
use std::path::Path;

use anyhow::{Context, ensure};
use circulant::models::{OrthogonalNetwork, OrthogonalNetworkConfig};
use circulant::train::{TrainerConfig, TrainingLoss, WarmUpCosine};
use serde::{Deserialize, Serialize};

use super::super::config::DataConfig;
use super::super::folder::DataFacts;
use super::super::version::{self, VERSION};
use circulant_data::Normalisation;

/// Everything that a run depends on, apart from the data themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertifiedConfig {
    /// Of the file.
    #[serde(default = "version::first")]
    pub version: u32,
    /// What to learn from.
    pub data: CertifiedData,
    /// The radius, and how it is trained for.
    pub certified: CertifiedTraining,
    /// What learns.
    pub model: CertifiedModel,
}

/// The training data. Pixels are between 0 and 1, so that radii are in their unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertifiedData {
    /// A name or a path.
    pub train: String,
    /// Only that many examples of each part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<usize>,
    /// Scales the images of a folder: `[height, width]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<[usize; 2]>,
    /// That many examples, drawn by the seed 0, are kept out of training. After every epoch they are certified, at the end they choose the
    /// temperature.
    pub validation: usize,
    /// The pixel that becomes zero: the rounding errors that certificates allow for are as large as the norm of an image, and grey images are
    /// nearer to grey than to black.
    #[serde(default)]
    pub centre: f32,
}

/// Orthogonal convolutions and a read-out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertifiedModel {
    /// The channels of every stage; before each of them the images are halved.
    pub widths: Vec<usize>,
    /// Convolutions per stage.
    pub depth: usize,
    /// The side of the kernels.
    pub kernel: usize,
    /// The sizes of the layers behind the convolutions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<usize>,
    /// The length of their circulant blocks.
    #[serde(default = "one")]
    pub block: usize,
}

fn one() -> usize {
    1
}

/// How a network is trained for a radius.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CertifiedTraining {
    /// The radius, in the 2-norm of an image with pixels between 0 and 1.
    pub radius: f64,
    /// Times all training images are seen.
    pub epochs: u64,
    /// Images per step.
    pub batch: usize,
    /// The largest learning rate of Adan; a tenth of all steps is warm-up, then it falls to zero along a cosine.
    pub learning_rate: f64,
    /// How far the right logit has to be ahead, in units of `sqrt(2) radius`, which is what the radius needs where columns of the read-out
    /// are orthogonal.
    pub offset: f64,
    /// In units of the logits.
    pub temperature: f64,
    /// Moves images by up to so many pixels.
    pub shift: usize,
    /// Mirrors every second image.
    pub flip: bool,
    /// Of initial parameters, batches and augmentation.
    pub seed: u64,
    /// Epochs of variational inference after training, for a distribution over networks; 0 for none.
    pub bayesian_epochs: u64,
}

/// Settings for a data set and a radius.
struct Chosen {
    data: &'static str,
    /// Up to this radius.
    radius: f64,
    widths: &'static [usize],
    hidden: &'static [usize],
    block: usize,
    centre: f32,
    epochs: u64,
    learning_rate: f64,
    offset: f64,
    temperature: f64,
    flip: bool,
}

/// The first that fits.
static CHOSEN: [Chosen; 3] = [
    Chosen {
        data: "mnist",
        radius: 0.8,
        widths: &[10, 10],
        hidden: &[112, 112, 112],
        block: 7,
        centre: 0.0,
        epochs: 30,
        learning_rate: 0.02,
        offset: 2.2,
        temperature: 0.1,
        flip: false,
    },
    Chosen {
        data: "mnist",
        radius: f64::INFINITY,
        widths: &[12, 12],
        hidden: &[448, 448, 448, 448],
        block: 7,
        centre: 0.0,
        epochs: 14,
        learning_rate: 0.02,
        offset: 1.0,
        temperature: 0.5,
        flip: false,
    },
    Chosen {
        data: "cifar10",
        radius: f64::INFINITY,
        widths: &[16, 32, 32],
        hidden: &[],
        block: 1,
        centre: 0.5,
        epochs: 12,
        learning_rate: 0.01,
        offset: 5.0,
        temperature: 0.25,
        flip: true,
    },
];
/// Of other data.
const EPOCHS: u64 = 10;

/// The radii at which published results are told.
pub fn published_radii(data: &str) -> Vec<f64> {
    match data {
        "mnist" => vec![0.3, 1.58],
        "cifar10" => vec![36.0 / 255.0],
        _ => vec![0.3],
    }
}

impl CertifiedData {
    /// How they are read.
    pub fn reading(&self) -> DataConfig {
        DataConfig {
            train: self.train.clone(),
            first: self.first,
            size: self.size,
            validation: self.validation,
            ..DataConfig::default()
        }
    }

    /// How the pixels of so many channels become numbers: from `-centre` to `1 - centre`.
    pub fn normalisation(&self, channels: usize) -> Normalisation {
        match self.centre == 0.0 {
            true => Normalisation::Unit,
            false => Normalisation::Standard {
                mean: vec![self.centre; channels],
                std: vec![1.0; channels],
            },
        }
    }

    /// What these numbers are between.
    pub fn range(&self) -> [f64; 2] {
        let centre = f64::from(self.centre);
        [-centre, 1.0 - centre]
    }
}

impl CertifiedConfig {
    /// For a data set with so many such images, `[n, channels, height, width]`, and a radius.
    pub fn chosen(mut data: CertifiedData, radius: f64, [n, _, height, width]: [usize; 4]) -> Self {
        let fits = |chosen: &&Chosen| chosen.data == data.train && radius <= chosen.radius;
        let chosen = CHOSEN.iter().find(fits);
        // As many stages as the sides can be halved, two at most.
        let halves = height.trailing_zeros().min(width.trailing_zeros()).min(2);
        let widths = match chosen {
            Some(chosen) => chosen.widths.to_vec(),
            None => vec![16; halves.max(1) as usize],
        };
        data.centre = chosen.map_or(0.0, |chosen| chosen.centre);
        let hidden = chosen.map_or(&[][..], |chosen| chosen.hidden);
        let block = chosen.map_or(1, |chosen| chosen.block);
        let epochs = chosen.map_or(EPOCHS, |chosen| chosen.epochs);
        let chosen = chosen.unwrap_or(&CHOSEN[0]);
        Self {
            version: VERSION,
            data,
            certified: CertifiedTraining {
                radius,
                epochs,
                // A few steps per epoch at least.
                batch: (n / 4).clamp(1, 64),
                learning_rate: chosen.learning_rate,
                offset: chosen.offset,
                temperature: chosen.temperature,
                // In trainings as short as these nothing is gained by it.
                shift: 0,
                flip: chosen.flip,
                seed: 0,
                bayesian_epochs: 0,
            },
            model: CertifiedModel {
                widths,
                depth: 2,
                kernel: 3,
                hidden: hidden.to_vec(),
                block,
            },
        }
    }

    /// Reads a file that has all of it.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the settings {}", path.display()))?;
        version::of_toml(&text, path)?;
        let mut config: Self = toml::from_str(&text).with_context(|| {
            format!(
                "{} is not the settings of a network trained for a radius; put a whole copy back, or train again",
                path.display()
            )
        })?;
        config.version = VERSION;
        config
            .check()
            .with_context(|| format!("{} cannot be used", path.display()))?;
        Ok(config)
    }

    /// Whether a file has such settings.
    pub fn is_at(path: &Path) -> bool {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let table = text.parse::<toml::Table>();
        table.is_ok_and(|table| table.contains_key("certified"))
    }

    /// All of it as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("settings are numbers, words and tables")
    }

    /// The name of the network, such as `16-16`, or `12-12-then-128-128` with hidden layers.
    pub fn widths(&self) -> String {
        let joined = |sizes: &[usize]| {
            let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
            sizes.join("-")
        };
        let widths = joined(&self.model.widths);
        match &self.model.hidden[..] {
            [] => widths,
            hidden => format!("{widths}-then-{}", joined(hidden)),
        }
    }

    /// Radius, network and seed.
    pub fn name(&self) -> String {
        format!(
            "radius {}, {}, seed {}",
            rounded(self.certified.radius),
            self.widths(),
            self.certified.seed
        )
    }

    /// Settings that no run can have are named here, before any work.
    pub fn check(&self) -> anyhow::Result<()> {
        let (training, model) = (&self.certified, &self.model);
        ensure!(
            (0.0..=1.0).contains(&self.data.centre),
            "data.centre: expected a pixel between 0 and 1, got {}",
            self.data.centre
        );
        for (what, number) in [
            ("certified.epochs", training.epochs),
            ("certified.batch", training.batch as u64),
            ("data.validation", self.data.validation as u64),
            ("model.widths", model.widths.len() as u64),
            ("model.depth", model.depth as u64),
            ("model.kernel", model.kernel as u64),
        ] {
            ensure!(number > 0, "{what}: expected 1 or more, got 0");
        }
        for (what, number) in [
            ("the radius", training.radius),
            ("certified.learning_rate", training.learning_rate),
            ("certified.temperature", training.temperature),
        ] {
            ensure!(
                number > 0.0 && number.is_finite(),
                "{what}: expected a positive number, got {number}"
            );
        }
        ensure!(
            training.offset >= 0.0 && training.offset.is_finite(),
            "certified.offset: expected 0 or a positive number, got {}",
            training.offset
        );
        Ok(())
    }

    /// The network of these settings, on the device that trains.
    pub fn init(&self, data: &DataFacts) -> anyhow::Result<OrthogonalNetwork> {
        let config = OrthogonalNetworkConfig::new(self.model.widths.clone())
            .with_image(data.image())
            .with_classes(data.classes)
            .with_depth(self.model.depth)
            .with_kernel(self.model.kernel)
            .with_hidden(self.model.hidden.clone())
            .with_block(self.model.block)
            .with_seed(self.certified.seed);
        config.try_init(&circulant::cpu().autodiff()).with_context(|| {
            let [channels, height, width] = data.image();
            format!(
                "no such network for images of {channels} x {height} x {width}; choose other --widths, or scale the images \
                 with --size"
            )
        })
    }

    /// What is minimised.
    pub fn loss(&self) -> TrainingLoss {
        TrainingLoss::Margin {
            offset: SQRT_2 * self.certified.radius * self.certified.offset,
            temperature: self.certified.temperature,
        }
    }

    /// The settings of the trainer, with so many steps per epoch.
    pub fn trainer(&self, per_epoch: u64) -> TrainerConfig {
        let steps = self.certified.epochs * per_epoch;
        TrainerConfig {
            seed: self.certified.seed,
            schedule: WarmUpCosine {
                peak: self.certified.learning_rate,
                warm_up: steps / 10,
                steps,
            },
            spectral_rate: 1.0,
            length_power: 0.0,
            weight_decay: 0.0,
            loss: self.loss(),
        }
    }
}

/// A radius with four digits after the point, at most.
pub fn rounded(radius: f64) -> f64 {
    (radius * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(radius: f64) -> CertifiedConfig {
        let data = CertifiedData {
            train: "mnist".to_owned(),
            first: None,
            size: None,
            validation: 10,
            centre: 0.0,
        };
        CertifiedConfig::chosen(data, radius, [1000, 1, 28, 28])
    }

    #[test]
    fn settings_are_read_as_they_are_written() {
        for radius in published_radii("mnist") {
            let config = config(radius);
            config.check().unwrap();
            assert_eq!(
                toml::from_str::<CertifiedConfig>(&config.to_toml()).unwrap(),
                config
            );
        }
    }

    #[test]
    fn radii_that_are_none_are_named() {
        for radius in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = config(radius).check().unwrap_err().to_string();
            assert!(error.contains("radius"), "{error}");
        }
    }
}
