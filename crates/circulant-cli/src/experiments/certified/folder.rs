//! The folder of a run.
//!
//! | file | what |
//! | --- | --- |
//! | `config.toml` | all settings |
//! | `run.json` | command, versions, commit, machine; shape, classes and fingerprint of the data; parameters |
//! | `epochs.jsonl` | loss, accuracy and certified accuracy, one line per epoch |
//! | `last.safetensors` | parameters and optimiser, to resume from |
//! | `posterior.safetensors` | the distribution over networks, where there is one |
//! | `temperatures.json` | what logits are divided by, chosen by the held-out images |
//! | `evaluation.json` | what the test set said, once |

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use circulant::models::{OrthogonalNetwork, ParameterCount};
use circulant::train::load_checkpoint;
use serde::{Deserialize, Serialize};

use super::super::facts::Facts;
use super::super::folder::{
    CONFIG, DataFacts, FACTS, claim, clean, ensure_same, pretty, read_facts,
};
use super::super::lines;
use super::settings::CertifiedConfig;
use crate::files::write;

/// `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CertifiedFacts {
    /// Program and machine.
    #[serde(flatten)]
    pub facts: Facts,
    /// The training data, without what was held out.
    pub data: DataFacts,
    /// Real parameters of the model.
    pub parameters: usize,
}

/// One line of `epochs.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CertifiedEpoch {
    /// From 1.
    pub epoch: u64,
    /// The mean loss of its steps, while the model changed.
    pub train_loss: f64,
    /// The share of right answers in them.
    pub train_accuracy: f64,
    /// Of images that are held out, at the end of the epoch.
    pub accuracy: f64,
    /// The share of them that is right and certified at the radius.
    pub certified: f64,
    /// Training up to here, without validation.
    pub seconds: f64,
}

/// `temperatures.json`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Temperatures {
    /// Of the trained network.
    pub network: f64,
    /// Of the distribution over networks, where there is one.
    pub posterior: Option<f64>,
}

/// A folder with a run in it.
#[derive(Debug, Clone)]
pub struct CertifiedFolder {
    path: PathBuf,
    /// `config.toml`.
    pub config: CertifiedConfig,
    /// `run.json`.
    pub facts: CertifiedFacts,
}

impl CertifiedFolder {
    /// The folder for these settings and data: a new one, or that of an earlier process.
    pub fn at(path: &Path, config: CertifiedConfig, data: DataFacts) -> anyhow::Result<Self> {
        if !path.join(CONFIG).exists() {
            return Self::create(path, config, data);
        }
        let folder = Self::open(path)?;
        let same = folder.config == config && folder.facts.data.fingerprint == data.fingerprint;
        ensure_same(path, same)?;
        clean(path);
        Ok(folder)
    }

    /// Makes the folder of a new run.
    pub fn create(path: &Path, config: CertifiedConfig, data: DataFacts) -> anyhow::Result<Self> {
        config.check()?;
        ensure!(
            config.certified.batch <= data.shape[0],
            "certified.batch: expected no more than the {} training images, got {}",
            data.shape[0],
            config.certified.batch
        );
        let model = config.init(&data)?;
        claim(path)?;
        let facts = CertifiedFacts {
            facts: Facts::gather(),
            data,
            parameters: ParameterCount::of(&model).total(),
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

    /// Whether a folder holds a run of this kind.
    pub fn is_at(path: &Path) -> bool {
        CertifiedConfig::is_at(&path.join(CONFIG))
    }

    /// Reads the folder of an earlier run.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let config = CertifiedConfig::read(&path.join(CONFIG))?;
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

    /// The checkpoint of variational inference.
    pub fn posterior(&self) -> PathBuf {
        self.path.join("posterior.safetensors")
    }

    /// Whether training ends with variational inference, and has begun with that.
    pub fn has_posterior(&self) -> bool {
        self.config.certified.bayesian_epochs > 0 && self.posterior().exists()
    }

    fn temperatures_file(&self) -> PathBuf {
        self.path.join("temperatures.json")
    }

    /// What logits are divided by; 1 before training is done.
    pub fn temperatures(&self) -> anyhow::Result<Temperatures> {
        let path = self.temperatures_file();
        if !path.exists() {
            return Ok(Temperatures {
                network: 1.0,
                posterior: None,
            });
        }
        let read = || -> anyhow::Result<Temperatures> {
            let found: Temperatures = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
            let all = [Some(found.network), found.posterior];
            for temperature in all.into_iter().flatten() {
                ensure!(
                    temperature > 0.0 && temperature.is_finite(),
                    "expected positive numbers, got {temperature}"
                );
            }
            Ok(found)
        };
        read().with_context(|| {
            format!(
                "{} cannot be used; remove it, and the command that trained makes it again",
                path.display()
            )
        })
    }

    /// Writes them.
    pub fn write_temperatures(&self, temperatures: &Temperatures) -> anyhow::Result<()> {
        write(&self.temperatures_file(), pretty(temperatures)?)
    }

    /// What the test set said.
    pub fn evaluation(&self) -> PathBuf {
        self.path.join("evaluation.json")
    }

    /// The lines of all epochs.
    pub fn epochs_file(&self) -> PathBuf {
        self.path.join("epochs.jsonl")
    }

    /// All epochs so far.
    pub fn epochs(&self) -> anyhow::Result<Vec<CertifiedEpoch>> {
        lines::read(&self.epochs_file())
    }

    /// The trained network, and the steps behind it.
    pub fn network(&self) -> anyhow::Result<(OrthogonalNetwork, u64)> {
        let checkpoint = self.last();
        ensure!(
            checkpoint.exists(),
            "{} does not exist yet; train on with the command in {}",
            checkpoint.display(),
            self.path.join(FACTS).display()
        );
        let mut model = self.config.init(&self.facts.data)?;
        let steps = load_checkpoint(&mut model, &checkpoint).with_context(|| {
            format!(
                "{} cannot be used; put a whole copy back, or train again",
                checkpoint.display()
            )
        })?;
        Ok((model, steps))
    }
}
