//! The folder of a run.
//!
//! | file | what |
//! | --- | --- |
//! | `config.toml` | all settings |
//! | `run.json` | command, versions, commit, machine; shape, classes and fingerprint of the data; parameters |
//! | `epochs.jsonl` | losses, accuracies, learning rate and seconds, one line per epoch |
//! | `last.safetensors` | parameters and optimiser, to resume from |
//! | `best.safetensors` | the same at the epoch with the smallest validation loss |
//! | `curves.svg` | losses over the epochs |

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use burn::module::Module;
use circulant::models::VisionTransformer;
use circulant::train::load_checkpoint;
use serde::{Deserialize, Serialize};

use super::super::facts::Facts;
use super::super::folder::{
    CONFIG, DataFacts, FACTS, claim, clean, ensure_same, pretty, read_facts,
};
use super::super::lines;
use super::settings::VitConfig;
use crate::files::write;

/// `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VitFacts {
    /// Program and machine.
    #[serde(flatten)]
    pub facts: Facts,
    /// The training data, without what was held out.
    pub data: DataFacts,
    /// Real parameters of the model.
    pub parameters: usize,
    /// The same as the paper counts: a complex number is one, and a slope is there for every projection.
    pub paper_count: usize,
}

/// One line of `epochs.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EpochLine {
    /// From 1.
    pub epoch: u64,
    /// Images seen since the start.
    pub images: u64,
    /// The learning rate of its last step.
    pub learning_rate: f64,
    /// The mean loss of its steps, with dropout, while the model changed.
    pub train_loss: f64,
    /// The share of right answers in them.
    pub train_accuracy: f64,
    /// At the end of the epoch.
    pub validation_loss: f64,
    /// At the end of the epoch.
    pub validation_accuracy: f64,
    /// Training up to here, without validation.
    pub seconds: f64,
    /// Of this epoch's training.
    pub images_per_second: f64,
}

/// A folder with a run in it.
#[derive(Debug, Clone)]
pub struct VitFolder {
    path: PathBuf,
    /// `config.toml`.
    pub config: VitConfig,
    /// `run.json`.
    pub facts: VitFacts,
}

impl VitFolder {
    /// The folder for these settings and data: a new one, or that of an earlier process.
    pub fn at(path: &Path, config: VitConfig, data: DataFacts) -> anyhow::Result<Self> {
        if !path.join(CONFIG).exists() {
            return Self::create(path, config, data);
        }
        let folder = Self::open(path)?;
        let same = folder.config == config && folder.facts.data.fingerprint == data.fingerprint;
        ensure_same(path, same)?;
        clean(path);
        Ok(folder)
    }

    fn create(path: &Path, config: VitConfig, data: DataFacts) -> anyhow::Result<Self> {
        config.check()?;
        ensure!(
            config.training.batch <= data.shape[0],
            "training.batch: expected no more than the {} training images, got {}",
            data.shape[0],
            config.training.batch
        );
        let model = config.model.init(&data, config.training.seed)?;
        claim(path)?;
        let facts = VitFacts {
            facts: Facts::gather(),
            data,
            parameters: model.num_params(),
            paper_count: model.paper_count(),
        };
        write(&path.join(FACTS), pretty(&facts)?)?;
        // Last: with it the folder counts as a run.
        write(&path.join(CONFIG), config.to_toml())?;
        Ok(Self {
            path: path.to_owned(),
            config,
            facts,
        })
    }

    /// Reads the folder of an earlier run.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        ensure!(
            path.join(CONFIG).is_file(),
            "{} holds no run: expected a folder with the file {CONFIG}, as `circulant reproduce vit` makes them",
            path.display()
        );
        let config = VitConfig::read(&path.join(CONFIG))?;
        let facts = read_facts(path)?;
        Ok(Self {
            path: path.to_owned(),
            config,
            facts,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The checkpoint to resume from.
    pub fn last(&self) -> PathBuf {
        self.path.join("last.safetensors")
    }

    /// The best checkpoint.
    pub fn best(&self) -> PathBuf {
        self.path.join("best.safetensors")
    }

    /// The lines of all epochs.
    pub fn epochs_file(&self) -> PathBuf {
        self.path.join("epochs.jsonl")
    }

    /// All epochs so far.
    pub fn epochs(&self) -> anyhow::Result<Vec<EpochLine>> {
        lines::read(&self.epochs_file())
    }

    /// The model with the parameters of a checkpoint of this folder, and the steps behind it.
    pub fn model(&self, checkpoint: &Path) -> anyhow::Result<(VisionTransformer, u64)> {
        ensure!(
            checkpoint.exists(),
            "{} does not exist yet; an epoch has to end first, so train on with the command in {}",
            checkpoint.display(),
            self.path.join(FACTS).display()
        );
        let mut model = self
            .config
            .model
            .init(&self.facts.data, self.config.training.seed)?;
        let steps = load_checkpoint(&mut model, checkpoint).with_context(|| {
            format!(
                "{} cannot be used; put a whole copy back, or train again",
                checkpoint.display()
            )
        })?;
        Ok((model, steps))
    }
}

/// The epoch with the smallest validation loss, the first of equals.
pub fn best_epoch(epochs: &[EpochLine]) -> Option<&EpochLine> {
    epochs
        .iter()
        .min_by(|a, b| a.validation_loss.total_cmp(&b.validation_loss))
}
