//! `circulant train`: a model on one's own data.

mod certified;
mod table;

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use circulant::bayes::Stop;
use clap::Args;
use serde::Serialize;

use self::table::{ModelChoice, Prepared, TableFlags, ensure_finished};
use super::certified_flags::CertifiedFlags;
use super::output::{json_line, print};
use super::reading::Reading;
use crate::experiments::baseline::{check_training, ensure_classes, warning};
use crate::experiments::config::{Difference, Inference, RunConfig};
use crate::experiments::evaluation::{Sampling, labels_of};
use crate::experiments::folder::{DataFacts, RunFolder};
use crate::experiments::interrupt::Interrupt;
use crate::experiments::metrics::Metrics;
use crate::experiments::ood_score::keep_density;
use crate::experiments::regression::read_again;
use crate::experiments::table::read as read_table;
use crate::experiments::training::{Trained, device, train};
use crate::experiments::{Held, source};
use crate::ranks::{self, say};
use circulant::metrics::{ClassMetrics, class_metrics};
use circulant_data::{Normalisation, Split};

/// Train a model on images, or on a table of columns.
///
/// A table (CSV, or an array [n, d]) is standardised column by column, text is coded, and the model's size is chosen by
/// rows that are held out meanwhile; whether its target is a class or a number is recognised.
///
/// Settings come from a TOML file (--config) and from flags; flags win. All of them, also those left out, are
/// written into the run's folder as config.toml, beside the steps and checkpoints. Ctrl-C stops with a
/// checkpoint; `circulant train --resume FOLDER` continues as if nothing had happened.
#[derive(Args)]
#[command(after_help = "Examples:
  circulant train --data mnist --out runs/first
  circulant train --data pictures/ --size 32x32 --model spectral-bccb --channels 4 --out runs/pictures
  circulant train --data mnist --model block-circulant --block 28 --width 256 --out runs/blocks
  circulant train --data table.csv --out runs/table
  circulant train --data houses.csv --target price --missing median --validation 100 --out runs/houses
  circulant train --data mnist --certified 0.3 --shift 1 --out runs/certified
  circulant train --config settings.toml --seed 7 --out runs/seven
  circulant train --resume runs/first --steps 5000")]
pub struct Train {
    /// A TOML file with settings; `config.toml` of any run is an example.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Resume the run in this folder, with its settings. Only --steps and --checkpoint-every may change them; a learning rate that falls with the
    /// steps then falls anew.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["config", "out", "data"])]
    resume: Option<PathBuf>,
    /// The folder for the run; must not hold one yet.
    #[arg(long, value_name = "FOLDER", required_unless_present = "resume")]
    out: Option<PathBuf>,
    /// A data set by name (see `circulant data list`) or a path [default: mnist].
    #[arg(long, value_name = "NAME|PATH")]
    data: Option<String>,
    /// Keep N examples out of training, drawn, every class with its share, and evaluate on them [default: a tenth of a
    /// folder of pictures by class without `train/` and `test/`, otherwise none].
    #[arg(long, value_name = "N")]
    validation: Option<usize>,
    /// Scale inputs by mean and standard deviation of the training set, per channel.
    #[arg(long)]
    standardise: bool,
    /// The hidden layers: auto (for tables: the size that predicts held-out rows best), spectral-bccb, spectral-circulant,
    /// block-circulant, bccb, circulant, conv2d or dense [default: auto for tables, else spectral-circulant].
    #[arg(long, value_name = "MODEL", value_parser = table::parse_model)]
    model: Option<ModelChoice>,
    /// Output channels of BCCB and convolutional layers.
    #[arg(long, value_name = "N")]
    channels: Option<usize>,
    /// Outputs of dense or block-circulant layers, if not as many as inputs.
    #[arg(long, value_name = "N")]
    width: Option<usize>,
    /// The lowest bins of spectral circulant or block-circulant layers, if not all.
    #[arg(long, value_name = "K")]
    modes: Option<usize>,
    /// The length of a block of block-circulant layers: 1 is dense, longer blocks have fewer weights [default: 16].
    #[arg(long, value_name = "B")]
    block: Option<usize>,
    /// The number of hidden layers [default: 1].
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    /// What the initial weights of hidden layers are multiplied by [default: 4].
    #[arg(long, value_name = "X")]
    initial_scale: Option<f64>,
    /// A distribution over parameters, or the most probable ones [default: bayesian].
    #[arg(long, value_enum)]
    inference: Option<Inference>,
    /// The rank of the posterior of spectral coordinates [default: 8].
    #[arg(long, value_name = "R")]
    rank: Option<usize>,
    /// The standard deviation that posteriors start with, in units of the layer's initial weights [default: 0.7].
    #[arg(long, value_name = "X")]
    initial_deviation: Option<f64>,
    /// How fast the spectral prior falls with frequency, or `learned` [default: 1].
    #[arg(long, value_name = "ALPHA|learned")]
    slope: Option<String>,
    /// Gradient steps [default: 1000].
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Examples per step [default: 256].
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// The learning rate of Adam [default: 0.01].
    #[arg(long, value_name = "X")]
    learning_rate: Option<f64>,
    /// Let the learning rate fall to this share of itself, along half a cosine [default: constant].
    #[arg(long, value_name = "SHARE")]
    final_rate: Option<f64>,
    /// Posterior samples per step [default: 4].
    #[arg(long, value_name = "N")]
    samples: Option<usize>,
    /// The weight of the KL term [default: 1].
    #[arg(long, value_name = "X")]
    kl_weight: Option<f64>,
    /// Stop when the smoothed loss has not improved for N steps.
    #[arg(long, value_name = "N")]
    patience: Option<u64>,
    /// Keep the operator norm of every layer at or below this.
    #[arg(long, value_name = "X")]
    norm_limit: Option<f64>,
    /// Steps between checkpoints [default: 250].
    #[arg(long, value_name = "N")]
    checkpoint_every: Option<u64>,
    /// The seed of initial parameters, batches and samples [default: 0].
    #[arg(long)]
    seed: Option<u64>,
    /// Train a network of Lipschitz constant one for this radius, in the 2-norm of an image with pixels between 0 and 1: orthogonal
    /// convolutions with MaxMin, and a margin in the loss. Held-out images are certified after every epoch.
    #[arg(long, value_name = "EPS", allow_negative_numbers = true)]
    certified: Option<f64>,
    /// Train on flex, the processor with the native kernels, or on a device that this program was built with (cargo features cpu, cuda,
    /// metal, ndarray, rocm, tch, vulkan, webgpu, wgpu), `:N` for its number N. Certificates are the processor's, whatever trained
    /// [default: flex].
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    // Last: their headings hold for all flags that follow.
    #[command(flatten)]
    network: CertifiedFlags,
    #[command(flatten)]
    columns: TableFlags,
    #[command(flatten)]
    reading: Reading,
}

/// What `--json` prints.
#[derive(Serialize)]
struct TrainSummary {
    out: PathBuf,
    model: &'static str,
    weights: usize,
    biases: usize,
    steps: u64,
    seconds: f64,
    loss: Option<f64>,
    stopped: &'static str,
    validation: Option<ClassMetrics>,
}

impl Train {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        let interrupt = Interrupt::listen()?;
        if self.is_certified() {
            return self.train_certified(&interrupt);
        }
        if let Some(flag) = self.network.given() {
            bail!(
                "{flag}: it is for networks that are trained for a radius; add --certified EPS, or leave it out"
            );
        }
        let prepared = match &self.resume {
            Some(path) => self.reopen(&ranks::folder(path)?)?,
            None => self.create(&interrupt)?,
        };
        let (folder, held) = match prepared {
            Prepared::Classes(folder, held) => (folder, held),
            Prepared::Numbers(folder, learned) => {
                return self.train_numbers(&folder, &learned, &interrupt);
            }
        };
        let data = source::labelled(
            &held.training,
            &folder.config.data.normalisation,
            folder.facts.data.classes,
            folder.config.training.class_weight,
        )?;
        let title = folder.config.model.kind.title();
        let trained = train(&folder, &data, &interrupt, title)?;
        ensure_finished(&folder, trained.stop, trained.steps)?;
        self.report(&folder, &held, trained)
    }

    fn report(&self, folder: &RunFolder, held: &Held, trained: Trained) -> anyhow::Result<()> {
        let (seed, normalisation) = (
            folder.config.training.seed,
            &folder.config.data.normalisation,
        );
        let network = &trained.network;
        let (validation, warning) = match &held.validation {
            None => {
                let set = &held.training;
                (None, check_training(network, set, normalisation, seed)?)
            }
            Some(set) => {
                let samples = 50;
                let sampling = Sampling { samples, seed };
                let predictions = sampling.predict(network, set, normalisation, "validation")?;
                let (class, _) =
                    class_metrics(&predictions.class_probabilities()?, &labels_of(set)?)?;
                folder.write_metrics(&Metrics {
                    run: folder.path().to_owned(),
                    model: folder.config.model.kind.name(),
                    steps: trained.steps,
                    samples,
                    data: set.source().to_owned(),
                    class,
                    intervals: None,
                    coverage: None,
                    ood: Vec::new(),
                })?;
                (Some(class), warning(class.accuracy, set, "held-out"))
            }
        };
        if let Some(warning) = warning {
            say!("{warning}");
        }
        keep_density(folder, network, trained.steps, &held.training)?;
        let summary = TrainSummary {
            out: folder.path().to_owned(),
            model: folder.config.model.kind.name(),
            weights: folder.facts.weights,
            biases: folder.facts.biases,
            steps: trained.steps,
            seconds: trained.seconds,
            loss: trained.loss,
            stopped: match trained.stop {
                Stop::Converged => "converged",
                _ => "finished",
            },
            validation,
        };
        if self.json {
            return print(&json_line(&summary)?);
        }
        let mut text = format!(
            "{}: {} weights, {} biases, {} steps in {:.1} s\n",
            folder.path().display(),
            summary.weights,
            summary.biases,
            summary.steps,
            summary.seconds
        );
        if let Some(metrics) = &summary.validation {
            text.push_str(&format!(
                "held out: {} inputs, accuracy {:.4}, NLL {:.4}, Brier {:.4}, ECE {:.4}\n",
                metrics.inputs, metrics.accuracy, metrics.nll, metrics.brier, metrics.ece
            ));
        }
        text.push_str(&format!(
            "next: circulant evaluate {}\n",
            folder.path().display()
        ));
        print(&text)
    }

    /// The settings of file and flags together.
    fn settings(&self) -> anyhow::Result<RunConfig> {
        let config = match &self.config {
            Some(path) => RunConfig::read(path)?,
            None => RunConfig::default(),
        };
        self.apply(config)
    }

    /// Settings with the flags that are given.
    fn apply(&self, mut config: RunConfig) -> anyhow::Result<RunConfig> {
        /// Flags that are given replace settings.
        macro_rules! replace {
            ($($flag:ident => $($place:ident).+),* $(,)?) => {
                $(if let Some(value) = self.$flag.clone() {
                    config.$($place).+ = value.into();
                })*
            };
        }
        replace!(
            data => data.train,
            validation => data.validation,
            channels => model.channels,
            width => model.width,
            modes => model.modes,
            block => model.block,
            depth => model.depth,
            initial_scale => model.initial_scale,
            inference => posterior.inference,
            rank => posterior.rank,
            initial_deviation => posterior.initial_deviation,
            steps => training.steps,
            batch => training.batch,
            learning_rate => training.learning_rate,
            final_rate => training.final_rate,
            samples => training.samples,
            kl_weight => training.kl_weight,
            patience => training.patience,
            norm_limit => training.norm_limit,
            checkpoint_every => training.checkpoint_every,
            seed => training.seed,
        );
        if let Some(device) = &self.device {
            config.training.device = device.parse().context("--device")?;
        }
        if let Some(ModelChoice::Kind(kind)) = self.model {
            config.model.kind = kind;
        }
        self.reading.apply(&mut config.data);
        self.columns.apply(&mut config);
        match self.slope.as_deref() {
            None => {}
            Some("learned") => config.posterior.learn_slope = true,
            Some(text) => match text.parse() {
                Ok(slope) => {
                    config.posterior.slope = slope;
                    config.posterior.learn_slope = false;
                }
                Err(_) => bail!("--slope: expected a number or the word `learned`, got {text:?}"),
            },
        }
        config.check()?;
        Ok(config)
    }

    fn create(&self, interrupt: &Interrupt) -> anyhow::Result<Prepared> {
        let out = self
            .out
            .as_ref()
            .expect("required unless --resume is there");
        let out = &ranks::folder(out)?;
        let mut config = self.settings()?;
        device(&config)?;
        if let Some(raw) = read_table(&config.data)? {
            return self.create_table(out, config, raw, interrupt);
        }
        self.ensure_no_table_flags(&config)?;
        let set = source::images(&config.data.train, Split::Train, &config.data)?;
        ensure_classes(&set)?;
        let unsaid = self.validation.is_none() && self.config.is_none();
        if let Some(count) = source::tenth(&config.data.train, &set).filter(|_| unsaid) {
            config.data.validation = count;
            say!(
                "{}: {count} of {} pictures are held out to evaluate on, every class with its share; --validation N decides",
                set.source(),
                set.len()
            );
        }
        let held = Held::out_of(set, &config.data)?;
        if self.standardise {
            config.data.normalisation = Normalisation::standard_of(&held.training);
        }
        let facts = DataFacts::of(&held.training);
        let folder = RunFolder::create(out, config, facts)?;
        Ok(Prepared::Classes(folder, held))
    }

    fn reopen(&self, path: &std::path::Path) -> anyhow::Result<Prepared> {
        let mut folder = RunFolder::open(path)?;
        let mut config = self.resumed(&folder)?;
        device(&config)?;
        folder.clean();
        falls_anew(&folder, &mut config)?;
        let data = &folder.config.data;
        let numbers = folder.facts.data.likelihood().is_some();
        let prepared = if numbers {
            Err(read_again(data)?)
        } else {
            let set = source::images(&data.train, Split::Train, data)?;
            Ok(Held::out_of(set, data)?)
        };
        let fingerprint = match &prepared {
            Ok(held) => held.training.fingerprint().to_string(),
            Err(learned) => table::fingerprint(learned)?,
        };
        let (was, is) = (&folder.facts.data.fingerprint, fingerprint);
        ensure!(
            *was == is,
            "{}: the data have changed since this run began: expected the fingerprint {was}, found {is}; \
             put the old data back, or begin a new run",
            data.train
        );
        if config != folder.config {
            folder.set_config(config)?;
        }
        Ok(match prepared {
            Ok(held) => Prepared::Classes(folder, held),
            Err(learned) => Prepared::Numbers(folder, Box::new(learned)),
        })
    }

    /// The settings of a run that is resumed. Flags may say again what the run has, and change what it does not depend on.
    fn resumed(&self, folder: &RunFolder) -> anyhow::Result<RunConfig> {
        let config = self.apply(folder.config.clone())?;
        let standardised = matches!(config.data.normalisation, Normalisation::Standard { .. });
        ensure!(
            standardised || !self.standardise,
            "--standardise: the run in {} has raw inputs; leave the flag out, or begin a new run with --out",
            folder.path().display()
        );
        for Difference { name, own, other } in folder.config.differences(&config) {
            if ["training.steps", "training.checkpoint_every"].contains(&name.as_str()) {
                continue;
            }
            let flag = match name.as_str() {
                "model.kind" => "model".to_owned(),
                "posterior.learn_slope" => "slope".to_owned(),
                name => name.rsplit('.').next().unwrap_or(name).replace('_', "-"),
            };
            let absent = if flag == "device" { "flex" } else { "none" };
            let text = |value: Option<String>| value.unwrap_or_else(|| absent.to_owned());
            bail!(
                "--{flag}: the run in {} has {name} = {}, got {}; leave the flag out to resume it, or begin a new run \
                 with --out",
                folder.path().display(),
                text(own),
                text(other)
            );
        }
        Ok(config)
    }
}

/// A learning rate that falls to its end with the steps falls anew where there are other steps than before.
fn falls_anew(folder: &RunFolder, config: &mut RunConfig) -> anyhow::Result<()> {
    let (was, is) = (folder.config.training.steps, config.training.steps);
    if config.training.final_rate.is_none() || was == is {
        return Ok(());
    }
    let done = folder.steps_done()?;
    ensure!(
        is > done,
        "--steps: the run in {} has {done} steps behind it, and {is} are no more; give more, or leave the flag out",
        folder.path().display()
    );
    config.training.rate_from = (done > 0).then_some(done);
    if done > 0 {
        say!("the learning rate falls anew, from step {done} to step {is}");
    }
    Ok(())
}
