//! Trains the model of a folder, from the start or from its checkpoint.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, ensure};
use burn::module::Module;
use burn::tensor::Device;
use circulant::bayes::{
    BayesError, Bayesian, CheckpointPlan, KlWeight, Network, StepReport, Stop, Svi, SviConfig,
};
use circulant::data::{BatchOrder, LabelledData, RegressionData};
use circulant::geometry::NormControl;
use circulant::models::{ImageClassifier, Likelihood, TargetNetwork};
use circulant::task::TrainingSet;
use circulant::train::CheckpointError;

use super::config::{Inference, RunConfig};
use super::folder::{RunFolder, StepLine};
use super::interrupt::Interrupt;
use super::model;
use super::progress::WorkProgress;
use crate::ranks::ranks;

/// What training gave.
pub struct Trained<M = ImageClassifier> {
    /// The network as it is now.
    pub network: Bayesian<M>,
    /// Why it stopped.
    pub stop: Stop,
    /// Steps done, those of earlier processes included.
    pub steps: u64,
    /// Seconds of training, those of earlier processes included.
    pub seconds: f64,
    /// The loss of the last step of this process.
    pub loss: Option<f64>,
}

/// Looks at a network in training.
pub trait Observer<M = ImageClassifier> {
    /// Steps between two looks.
    fn every(&self) -> u64;

    /// The network after so many steps.
    fn see(&mut self, step: u64, network: &Bayesian<M>) -> anyhow::Result<()>;
}

/// Trains until all steps are done or the user asks to stop. If the folder has a checkpoint, it resumes there.
pub fn train(
    folder: &RunFolder,
    data: &LabelledData<4>,
    interrupt: &Interrupt,
    title: &str,
) -> anyhow::Result<Trained> {
    train_observed(folder, data, interrupt, title, None)
}

/// [`train`] with somebody who looks at the network now and then.
pub fn train_observed(
    folder: &RunFolder,
    data: &LabelledData<4>,
    interrupt: &Interrupt,
    title: &str,
    observer: Option<&mut dyn Observer>,
) -> anyhow::Result<Trained> {
    let svi = svi(folder, data.examples())?;
    let data = match device(&folder.config)? {
        None => Cow::Borrowed(data),
        Some(device) => Cow::Owned(data.clone().to_device(&device)),
    };
    let trained = train_in(folder, svi, data.as_ref(), interrupt, title, observer)?;
    Ok(Trained {
        network: model::calibrated(&folder.config, trained.network)?,
        ..trained
    })
}

/// Trains the model of a regression in its folder; if that has a checkpoint, it resumes there.
pub fn train_targets(
    folder: &RunFolder,
    likelihood: Likelihood,
    data: &RegressionData<2>,
    interrupt: &Interrupt,
) -> anyhow::Result<Trained<TargetNetwork>> {
    ensure!(
        folder.config.training.norm_limit.is_none(),
        "--norm-limit: it is for classifiers; leave it out for a target that is a number"
    );
    let columns = folder.facts.data.image()[2];
    let network = model::target_network(&folder.config, columns, likelihood)?;
    let (network, data) = match device(&folder.config)? {
        None => (network, Cow::Borrowed(data)),
        Some(device) => (
            network.fork(&device.clone().autodiff()),
            Cow::Owned(data.clone().to_device(&device)),
        ),
    };
    let svi = target_svi(&folder.config, network, data.examples())?;
    let trained = train_in(folder, svi, data.as_ref(), interrupt, "training", None)?;
    Ok(Trained {
        network: model::calibrated_targets(&folder.config, trained.network)?,
        ..trained
    })
}

/// The device that the settings name, if it is not the processor. One that is not there is an error.
pub fn device(config: &RunConfig) -> anyhow::Result<Option<Device>> {
    let name = config.training.device;
    let device = name.open().context("--device")?;
    Ok((!name.is_native()).then_some(device))
}

/// Sees every step, and may ask to stop.
pub type Watch<'a> = &'a mut (dyn FnMut(&StepReport) -> ControlFlow<()> + Send);

/// Trains without a folder: for models that are tried, evaluated at once, or kept in memory. A checkpoint of the end may be written.
pub(super) fn fit<M: Network, T: TrainingSet<M>>(
    svi: Svi<M>,
    data: &T,
    checkpoint: Option<&Path>,
    watch: Watch<'_>,
) -> anyhow::Result<Trained<M>> {
    let mut svi = svi.with_ranks(ranks());
    let (start, mut loss) = (Instant::now(), None);
    let stop = svi.fit(data, None, |report| {
        loss = Some(report.loss);
        watch(report)
    })?;
    if let Some(path) = checkpoint {
        svi.save(path, data.fingerprint())?;
    }
    Ok(trained(svi, stop, start, loss))
}

fn trained<M: Network>(svi: Svi<M>, stop: Stop, start: Instant, loss: Option<f64>) -> Trained<M> {
    Trained {
        stop,
        steps: svi.steps_done(),
        seconds: start.elapsed().as_secs_f64(),
        loss,
        network: svi.into_network(),
    }
}

/// Steps on further examples alone, for streams: what came before is in the network, and the prior counts once for all that `svi` was
/// made for.
pub fn fit_further<M: Network, T: TrainingSet<M>>(
    mut svi: Svi<M>,
    data: &T,
    checkpoint: Option<&Path>,
    watch: Watch<'_>,
) -> anyhow::Result<Trained<M>> {
    let (start, mut loss, mut stop) = (Instant::now(), None, Stop::Finished);
    let config = svi.config().clone();
    let mut order = BatchOrder::new(config.seed, data.examples(), config.batch)?;
    for step in 0..config.steps {
        let batch = T::into_autodiff(data.batch(order.at(step), false)?);
        let report = svi.step(order.batch(), |model| {
            data.negative_log_likelihood(model, batch.clone()).neg()
        })?;
        loss = Some(report.loss);
        if watch(&report).is_break() {
            stop = Stop::Asked;
            break;
        }
    }
    if let Some(path) = checkpoint {
        svi.save(path, data.fingerprint())?;
    }
    Ok(trained(svi, stop, start, loss))
}

fn train_in<M: Network, T: TrainingSet<M>>(
    folder: &RunFolder,
    svi: Svi<M>,
    data: &T,
    interrupt: &Interrupt,
    title: &str,
    mut observer: Option<&mut dyn Observer<M>>,
) -> anyhow::Result<Trained<M>> {
    let config = &folder.config;
    let (ranks, checkpoint) = (ranks(), folder.checkpoint());
    let mut svi = svi.with_ranks(ranks.clone());
    if ranks.any(ranks.is_first() && checkpoint.exists())? {
        svi.resume(&checkpoint, data.fingerprint())
            .with_context(|| {
                format!(
                    "cannot resume {}; put a whole copy of its checkpoint back, or begin anew with \
                     `circulant train --config {} --out FOLDER`",
                    folder.path().display(),
                    folder.path().join("config.toml").display()
                )
            })?;
    }
    let mut log = folder.log_from(svi.steps_done())?;
    let mut progress = WorkProgress::new(title, config.training.steps);
    let (before, start) = (log.seconds, Instant::now());
    let mut loss = None;
    let plan = CheckpointPlan {
        path: checkpoint,
        every: config.training.checkpoint_every,
    };
    let every = observer.as_ref().map(|observer| observer.every());
    let stop = loop {
        let (mut looks, mut failed) = (false, None);
        let stop = svi.fit(data, Some(&plan), |report| {
            let line = StepLine::new(report, before + start.elapsed().as_secs_f64());
            loss = Some(report.loss);
            if let Err(error) = log.log.add(&line) {
                failed = Some(error);
                return ControlFlow::Break(());
            }
            progress.at(report.step + 1, || format!("loss {:.4}", report.loss));
            looks = every.is_some_and(|every| (report.step + 1).is_multiple_of(every.max(1)));
            if looks || interrupt.is_asked() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        let stop = stop.map_err(|error| match error {
            BayesError::Checkpoint(CheckpointError::File { .. }) => anyhow::Error::new(error).context(
                "the checkpoint cannot be written; is there space on the disk, and may you write there?",
            ),
            other => other.into(),
        })?;
        ranks.agree(failed.map_or(Ok(()), Err))?;
        if let (true, Some(observer)) = (looks, observer.as_deref_mut()) {
            observer.see(svi.steps_done(), &on_processor(svi.network().clone()))?;
            if !interrupt.is_asked_anywhere()? && svi.steps_done() < config.training.steps {
                continue;
            }
        }
        let done = svi.steps_done() >= config.training.steps;
        break if looks && done { Stop::Finished } else { stop };
    };
    let (steps, seconds) = (svi.steps_done(), before + start.elapsed().as_secs_f64());
    let loss_text = loss.map_or(String::new(), |loss| format!(", loss {loss:.4}"));
    progress.finish(format!("{steps} steps in {seconds:.1} s{loss_text}"));
    Ok(Trained {
        network: on_processor(svi.into_network()),
        stop,
        steps,
        seconds,
        loss,
    })
}

/// A network back from the device that trained it. What comes after training runs on the processor: predictions with the native kernels,
/// and certificates, which exist there only.
fn on_processor<M: Network>(network: Bayesian<M>) -> Bayesian<M> {
    match network.device() == circulant::cpu() {
        true => network,
        false => network.fork(&circulant::cpu().autodiff()),
    }
}

fn svi(folder: &RunFolder, examples: usize) -> anyhow::Result<Svi<ImageClassifier>> {
    let (config, data) = (&folder.config, &folder.facts.data);
    let mut network = model::network(config, data.image(), data.classes)?;
    if let Some(device) = device(config)? {
        network = network.fork(&device.autodiff());
    }
    classifier_svi(config, network, examples)
}

/// Training of a classifier as the settings say.
pub fn classifier_svi(
    config: &RunConfig,
    network: Bayesian<ImageClassifier>,
    examples: usize,
) -> anyhow::Result<Svi<ImageClassifier>> {
    let svi = Svi::new(network, svi_config(config), examples)?;
    let Some(limit) = config.training.norm_limit else {
        return Ok(svi);
    };
    Ok(svi.with_projection(move |mut model: ImageClassifier| {
        model.clip_norm(limit)?;
        Ok(model)
    })?)
}

/// The same for a regression.
pub fn target_svi(
    config: &RunConfig,
    network: Bayesian<TargetNetwork>,
    examples: usize,
) -> anyhow::Result<Svi<TargetNetwork>> {
    ensure!(
        config.training.norm_limit.is_none(),
        "training.norm_limit: it is for classifiers; leave it out for a target that is a number"
    );
    Ok(Svi::new(network, svi_config(config), examples)?)
}

fn svi_config(config: &RunConfig) -> SviConfig {
    let training = &config.training;
    SviConfig::new()
        .with_steps(training.steps)
        .with_batch(training.batch)
        .with_learning_rate(training.learning_rate)
        .with_final_rate(training.final_rate)
        .with_rate_from(training.rate_from)
        .with_samples(match config.posterior.inference {
            Inference::Bayesian => training.samples,
            // All samples would be the same network.
            Inference::Point => 1,
        })
        .with_kl_weight(KlWeight::Constant(training.kl_weight))
        .with_seed(training.seed)
        .with_patience(training.patience)
}
