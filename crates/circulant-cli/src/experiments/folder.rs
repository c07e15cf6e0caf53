//! The folder of a run. It describes itself: whoever has it can use the model, resume its training, or repeat it.
//!
//! | file | what |
//! | --- | --- |
//! | `config.toml` | all settings |
//! | `run.json` | command, versions, commit, machine; shape, classes and fingerprint of the data; parameters |
//! | `steps.jsonl` | loss, its parts and the seconds of training so far, one line per step |
//! | `checkpoint.safetensors` | parameters, posterior and optimiser |
//! | `density.safetensors` | the density of a classifier's hidden features on training data, for `predict --score` |
//! | `metrics.json` | the last evaluation |

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use circulant::bayes::{Bayesian, Network, StepReport};
use circulant::models::{ImageClassifier, Likelihood, ParameterCount, TargetNetwork};
use circulant::train::UNFINISHED;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::certified::settings::CertifiedConfig;
use super::config::RunConfig;
use super::facts::Facts;
use super::lines::{self, Log};
use super::model;
use super::version::{self, Versioned};
use crate::files::write;
use crate::ranks::ranks;
use crate::report::Document;
use circulant_data::{ImageSet, TableSchema, TableTask};

/// The data that a run learned from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataFacts {
    /// Where they came from.
    pub source: String,
    /// `[n, channels, height, width]`, without what was held out.
    pub shape: [usize; 4],
    /// The number of classes.
    pub classes: usize,
    /// The names of the classes; empty when unknown.
    pub class_names: Vec<String>,
    /// The SHA-256 of shape, pixels and labels.
    pub fingerprint: String,
    /// What was learned from the columns of a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<TableSchema>,
}

impl DataFacts {
    /// Of a set. Hashes all of it.
    pub fn of(set: &ImageSet) -> Self {
        Self {
            source: set.source().to_owned(),
            shape: set.shape(),
            classes: set.labels().classes(),
            class_names: set.labels().names.clone(),
            fingerprint: set.fingerprint().to_string(),
            table: None,
        }
    }

    /// How the targets of a regression are distributed; none for classes.
    pub fn likelihood(&self) -> Option<Likelihood> {
        match &self.table.as_ref()?.task {
            TableTask::Classification { .. } => None,
            TableTask::Regression { .. } => Some(Likelihood::Gaussian),
            TableTask::Counts { .. } => Some(Likelihood::Poisson),
        }
    }

    /// `[channels, height, width]`.
    pub fn image(&self) -> [usize; 3] {
        let [_, channels, height, width] = self.shape;
        [channels, height, width]
    }
}

/// `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Program and machine.
    #[serde(flatten)]
    pub facts: Facts,
    /// The training data.
    pub data: DataFacts,
    /// Real parameters of the model, without those of the posterior's spread.
    pub weights: usize,
    /// Those of them that are biases.
    pub biases: usize,
}

/// One line of `steps.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepLine {
    /// From 0.
    pub step: u64,
    /// The negative evidence bound per example.
    pub loss: f64,
    /// Its data part.
    pub data: f64,
    /// Its KL part.
    pub kl: f64,
    /// Time spent in training up to here.
    pub seconds: f64,
}

impl StepLine {
    /// A step and when it was done.
    pub fn new(report: &StepReport, seconds: f64) -> Self {
        Self {
            step: report.step,
            loss: report.loss,
            data: report.data,
            kl: report.kl,
            seconds,
        }
    }
}

/// A folder with a run in it.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
    /// `config.toml`.
    pub config: RunConfig,
    /// `run.json`.
    pub facts: RunFacts,
}

/// The settings of a run. A folder with this file holds one.
pub const CONFIG: &str = "config.toml";
/// What else is known of it.
pub const FACTS: &str = "run.json";
const STEPS: &str = "steps.jsonl";
const CHECKPOINT: &str = "checkpoint.safetensors";
const METRICS: &str = "metrics.json";

impl RunFolder {
    /// A new folder, or the one of an earlier process with the same settings and data.
    pub fn at(path: &Path, config: RunConfig, data: DataFacts) -> anyhow::Result<Self> {
        if !path.join(CONFIG).exists() {
            return Self::create(path, config, data);
        }
        let folder = Self::open(path)?;
        let same = folder.config == config && folder.facts.data.fingerprint == data.fingerprint;
        ensure_same(path, same)?;
        Ok(folder)
    }

    /// Makes the folder for a new run. A folder with anything in it is left alone.
    pub fn create(path: &Path, config: RunConfig, data: DataFacts) -> anyhow::Result<Self> {
        ensure_alike(&config, &data)?;
        let count = match data.likelihood() {
            None => {
                let network = model::network(&config, data.image(), data.classes)?;
                ParameterCount::of(&network.mean())
            }
            Some(likelihood) => {
                let columns = data.image()[2];
                let network = model::target_network(&config, columns, likelihood)?;
                ParameterCount::of(&network.mean())
            }
        };
        claim(path)?;
        let facts = RunFacts {
            facts: Facts::gather(),
            data,
            weights: count.weights,
            biases: count.biases,
        };
        let folder = Self {
            path: path.to_owned(),
            config,
            facts,
        };
        folder.write(FACTS, &pretty(&folder.facts)?)?;
        // Last: with it the folder counts as a run.
        folder.write(CONFIG, &folder.config.to_toml())?;
        Ok(folder)
    }

    /// Writes the run with this checkpoint into a new folder.
    pub fn write_to(&self, path: &Path, checkpoint: &[u8]) -> anyhow::Result<Self> {
        claim(path)?;
        let folder = Self {
            path: path.to_owned(),
            ..self.clone()
        };
        folder.write(FACTS, &pretty(&folder.facts)?)?;
        write(&folder.checkpoint(), checkpoint)?;
        folder.write(CONFIG, &folder.config.to_toml())?;
        Ok(folder)
    }

    /// What is known of a run that has no folder, under the path of a file.
    pub fn without_files(path: &Path, config: RunConfig, facts: RunFacts) -> Self {
        Self {
            path: path.to_owned(),
            config,
            facts,
        }
    }

    /// Reads the folder of an earlier run.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        ensure!(
            path.join(CONFIG).is_file(),
            "{} holds no run: expected a folder with the file {CONFIG}, as `circulant train` makes it",
            path.display()
        );
        ensure!(
            !CertifiedConfig::is_at(&path.join(CONFIG)),
            "{} was trained for a radius: `circulant certify` and `circulant train --resume` know it, this command does not",
            path.display()
        );
        let mut config = RunConfig::read_complete(&path.join(CONFIG))?;
        let facts: RunFacts = read_facts(path)?;
        config.data.schema.clone_from(&facts.data.table);
        Ok(Self {
            path: path.to_owned(),
            config,
            facts,
        })
    }

    /// Removes what a process that was killed had begun to write.
    pub fn clean(&self) {
        clean(&self.path);
    }

    /// Takes other settings, in `config.toml` too.
    pub fn set_config(&mut self, config: RunConfig) -> anyhow::Result<()> {
        self.config = config;
        self.write(CONFIG, &self.config.to_toml())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The checkpoint, whether there is one yet or not.
    pub fn checkpoint(&self) -> PathBuf {
        self.path.join(CHECKPOINT)
    }

    /// The trained network, and the steps that it was trained for.
    pub fn network(&self) -> anyhow::Result<(Bayesian<ImageClassifier>, u64)> {
        let data = &self.facts.data;
        ensure!(
            data.likelihood().is_none(),
            "{} predicts numbers, not classes: `circulant predict` and `evaluate` know it, this command does not",
            self.path.display()
        );
        let (network, steps) = self.load(data.classes, || {
            model::network(&self.config, data.image(), data.classes)
        })?;
        Ok((model::calibrated(&self.config, network)?, steps))
    }

    /// The trained network of a regression, and the steps that it was trained for.
    pub fn target_network(
        &self,
        likelihood: Likelihood,
    ) -> anyhow::Result<(Bayesian<TargetNetwork>, u64)> {
        let columns = self.facts.data.image()[2];
        let outputs = model::noise_of(&self.config, likelihood).outputs();
        let (network, steps) = self.load(outputs, || {
            model::target_network(&self.config, columns, likelihood)
        })?;
        Ok((model::calibrated_targets(&self.config, network)?, steps))
    }

    fn load<M: Network>(
        &self,
        outputs: usize,
        network: impl FnOnce() -> anyhow::Result<Bayesian<M>>,
    ) -> anyhow::Result<(Bayesian<M>, u64)> {
        let path = self.checkpoint();
        if !path.exists() {
            bail!(
                "{} has no checkpoint yet; resume with `circulant train --resume {}`",
                self.path.display(),
                self.path.display()
            );
        }
        let load = || {
            let (image, bytes) = (self.facts.data.image(), fs::metadata(&path)?.len());
            model::ensure_fits(&self.config, image, outputs, bytes)?;
            anyhow::Ok(network()?.load_checkpoint(&path)?)
        };
        load().with_context(|| {
            format!(
                "the checkpoint of {} cannot be used; copy it again from where it was made, or train anew with \
                 `circulant train --config {} --out FOLDER`",
                self.path.display(),
                self.path.join(CONFIG).display()
            )
        })
    }

    /// Steps of training that its checkpoint has behind it; 0 without one.
    pub fn steps_done(&self) -> anyhow::Result<u64> {
        if !self.checkpoint().exists() {
            return Ok(0);
        }
        Ok(match self.facts.data.likelihood() {
            Some(likelihood) => self.target_network(likelihood)?.1,
            None => self.network()?.1,
        })
    }

    /// All steps that were logged. A line that was being written when the process died is left out.
    pub fn steps(&self) -> anyhow::Result<Vec<StepLine>> {
        lines::read(&self.path.join(STEPS))
    }

    /// Opens the log at a step: later lines, of steps that no checkpoint has, are forgotten.
    pub fn log_from(&self, step: u64) -> anyhow::Result<StepLog> {
        let mut kept = self.steps()?;
        kept.retain(|line| line.step < step);
        let log = Log::open(&self.path.join(STEPS), &kept)?;
        Ok(StepLog {
            log,
            seconds: kept.last().map_or(0.0, |line| line.seconds),
        })
    }

    /// Writes `metrics.json`.
    pub fn write_metrics(&self, metrics: &impl Serialize) -> anyhow::Result<()> {
        write_metrics(&self.path, metrics)
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        write(&self.path.join(name), text)
    }
}

/// Writes `metrics.json` of any run.
pub fn write_metrics(folder: &Path, metrics: &impl Serialize) -> anyhow::Result<()> {
    write(&folder.join(METRICS), pretty(metrics)?)
}

/// Refuses ranks that are about to do different things, or too many of them, while there is no folder yet.
fn ensure_alike(config: &RunConfig, data: &DataFacts) -> anyhow::Result<()> {
    let ranks = ranks();
    if ranks.is_alone() {
        return Ok(());
    }
    ranks.ensure_shared(config.training.batch.min(data.shape[0]))?;
    Ok(ranks.compare(&[
        ("the settings", config.to_toml()),
        ("the data", data.fingerprint.clone()),
    ])?)
}

/// Removes what a process that was killed had begun to write into a folder.
pub fn clean(path: &Path) {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let unfinished =
        |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(UNFINISHED);
    for entry in entries.filter(unfinished) {
        // It is only in the way, and may stay.
        fs::remove_file(entry.path()).ok();
    }
}

/// Makes the folder of a new run. A folder with anything in it is left alone.
pub fn claim(path: &Path) -> anyhow::Result<()> {
    ensure!(
        !path.join(CONFIG).exists(),
        "{} already holds a run; resume it with --resume, or choose another folder with --out",
        path.display()
    );
    fs::create_dir_all(path)
        .with_context(|| format!("cannot make the folder {}", path.display()))?;
    let mut entries = fs::read_dir(path)
        .with_context(|| format!("cannot look into the folder {}", path.display()))?;
    ensure!(
        entries.next().is_none(),
        "{} is not empty, and no run is in it; choose another folder with --out",
        path.display()
    );
    Ok(())
}

/// Writes `report.html`, its figures as files, and `results.json`, which is there only when everything else is.
pub fn write_report(
    out: &Path,
    document: &Document,
    results: &impl Serialize,
) -> anyhow::Result<()> {
    document.write(&out.join("report.html"))?;
    let figures = out.join("figures");
    fs::create_dir_all(&figures)
        .with_context(|| format!("cannot make the folder {}", figures.display()))?;
    for (name, drawing) in document.drawings() {
        write(&figures.join(format!("{name}.svg")), drawing.standalone())?;
    }
    write(&out.join("results.json"), pretty(results)?)
}

/// Reads `run.json` of a folder.
pub fn read_facts<T: DeserializeOwned>(folder: &Path) -> anyhow::Result<T> {
    let place = folder.join(FACTS);
    let text = fs::read_to_string(&place).with_context(|| {
        format!(
            "cannot read {}; put it back, or train again with the settings of {CONFIG}",
            place.display()
        )
    })?;
    version::of_json(&text, &place)?;
    serde_json::from_str(&text).with_context(|| {
        format!(
            "{} is damaged; train again with the settings of {CONFIG}",
            place.display()
        )
    })
}

/// Refuses to resume a run of other settings or other data.
pub fn ensure_same(path: &Path, same: bool) -> anyhow::Result<()> {
    ensure!(
        same,
        "{} holds a run with other settings or other data; choose another folder with --out, or delete it",
        path.display()
    );
    Ok(())
}

/// An object as JSON for people, with the version.
pub fn pretty(object: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(&Versioned::new(object))? + "\n")
}

/// The open end of `steps.jsonl`.
#[derive(Debug)]
pub struct StepLog {
    /// To add to.
    pub log: Log<StepLine>,
    /// Of training before this process.
    pub seconds: f64,
}
