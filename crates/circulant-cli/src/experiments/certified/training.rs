//! Trains the network of a folder, from the start or from its checkpoint, and looks at held-out images after every epoch.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use circulant::data::{Augmentation, BatchOrder};
use circulant::geometry::{CertificateConfig, Certificates, Target};
use circulant::models::OrthogonalNetwork;
use circulant::noise::NoiseKey;
use circulant::train::{Trainer, TrainingError};

use super::super::evaluation::labels_of;
use super::super::interrupt::Interrupt;
use super::super::lines::Log;
use super::super::progress::WorkProgress;
use super::super::source::tensor;
use super::folder::{CertifiedEpoch, CertifiedFolder};
use super::settings::CertifiedConfig;
use circulant_data::{ImageSet, Normalisation};

/// Between two checkpoints within an epoch.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);

/// The images of a run.
#[derive(Debug, Clone, Copy)]
pub struct CertifiedImages<'a> {
    pub training: &'a ImageSet,
    /// Held out.
    pub validation: &'a ImageSet,
}

/// The images of every step, moved and mirrored as the settings say.
pub(super) struct Batches<'a> {
    images: &'a ImageSet,
    labels: Vec<usize>,
    order: BatchOrder,
    augmentation: Augmentation,
    seed: u64,
    per_epoch: u64,
}

impl<'a> Batches<'a> {
    pub(super) fn new(config: &CertifiedConfig, images: &'a ImageSet) -> anyhow::Result<Self> {
        let training = &config.certified;
        let order = BatchOrder::new(training.seed, images.len(), training.batch)?;
        Ok(Self {
            labels: labels_of(images)?,
            per_epoch: (images.len() / order.batch()) as u64,
            order,
            augmentation: Augmentation {
                flip: training.flip,
                crop: training.shift,
            },
            seed: training.seed,
            images,
        })
    }

    pub(super) fn per_epoch(&self) -> u64 {
        self.per_epoch
    }

    /// Images per step.
    pub(super) fn size(&self) -> usize {
        self.order.batch()
    }

    /// On the device that trains.
    pub(super) fn at(&mut self, step: u64) -> anyhow::Result<(Tensor<4>, Vec<usize>)> {
        let indices = self.order.at(step);
        let [_, channels, height, width] = self.images.shape();
        let mut values = Vec::new();
        self.images
            .gather(indices, &Normalisation::Unit, &mut values)?;
        let key = NoiseKey {
            seed: !self.seed,
            stream: step,
        };
        self.augmentation
            .apply(&mut values, [channels, height, width], key);
        let labels: Vec<usize> = indices.iter().map(|&index| self.labels[index]).collect();
        let data = TensorData::new(values, [labels.len(), channels, height, width]);
        let images = Tensor::<4>::from_data(data, &circulant::cpu().autodiff());
        Ok((images, labels))
    }
}

/// Sums over the steps of an epoch that is not yet whole.
#[derive(Debug, Clone, Copy, Default, serde::Serialize, serde::Deserialize)]
struct Partial {
    loss: f64,
    correct: u64,
    steps: u64,
    /// Of training, since the start of the run.
    seconds: f64,
}

/// The note that holds them.
const PARTIAL: &str = "epoch";

/// Trains to the end of the schedule. Asked to stop, it writes a checkpoint and is an error that says how to go on.
pub fn train(
    folder: &CertifiedFolder,
    images: CertifiedImages<'_>,
    interrupt: &Interrupt,
) -> anyhow::Result<OrthogonalNetwork> {
    let config = &folder.config;
    let mut batches = Batches::new(config, images.training)?;
    let (per_epoch, batch) = (batches.per_epoch(), batches.size() as u64);
    let model = config.init(&folder.facts.data)?;
    let model = model.centred(batches.at(0)?.0);
    let mut trainer = Trainer::new(model, config.trainer(per_epoch))?;
    let mut partial = Partial::default();
    let mut epochs = Vec::new();
    if folder.last().exists() {
        let anew = || {
            format!(
                "cannot resume {}; put a whole copy of its files back, or delete the folder and train anew",
                folder.path().display()
            )
        };
        let notes = trainer.resume(folder.last()).with_context(anew)?;
        let note = notes.get(PARTIAL).map(|note| serde_json::from_str(note));
        partial = note
            .context("the checkpoint lacks the sums of its epoch")
            .with_context(anew)??;
        epochs = folder.epochs()?;
        let whole = (trainer.steps_done() / per_epoch) as usize;
        ensure!(
            epochs.len() >= whole,
            "{} has {} epochs, the checkpoint beside it {whole}; put the whole file back, or delete the folder and train anew",
            folder.epochs_file().display(),
            epochs.len()
        );
        epochs.truncate(whole);
    }
    let mut log = Log::open(&folder.epochs_file(), &epochs)?;
    let all = config.certified.epochs * per_epoch;
    while trainer.steps_done() < all {
        let title = format!(
            "{}, epoch {}/{}",
            config.name(),
            trainer.steps_done() / per_epoch + 1,
            config.certified.epochs
        );
        let mut progress = WorkProgress::new(title, per_epoch);
        let mut saved = Instant::now();
        while partial.steps < per_epoch {
            let start = Instant::now();
            let step = trainer.steps_done();
            let (inputs, labels) = batches.at(step)?;
            let report = trainer.step(inputs, &labels)?;
            partial.loss += report.loss;
            partial.correct += report.correct as u64;
            partial.steps += 1;
            partial.seconds += start.elapsed().as_secs_f64();
            progress.at(partial.steps, || {
                let left = (all - step - 1) as f64 * partial.seconds / (step + 1) as f64;
                format!(
                    "loss {:.4}, {} to the last epoch",
                    partial.loss / partial.steps as f64,
                    humantime::format_duration(Duration::from_secs(left as u64))
                )
            });
            let asked = interrupt.is_asked() && partial.steps < per_epoch;
            if asked || saved.elapsed() > CHECKPOINT_EVERY {
                save(&trainer, folder, &partial)?;
                saved = Instant::now();
            }
            if asked {
                progress.clear();
                stopped(folder)?;
            }
        }
        let found = certify(&trainer.model().valid(), images.validation)?;
        let line = CertifiedEpoch {
            epoch: trainer.steps_done() / per_epoch,
            train_loss: partial.loss / partial.steps as f64,
            train_accuracy: partial.correct as f64 / (partial.steps * batch) as f64,
            accuracy: accuracy(&found),
            certified: certified(&found, config.certified.radius),
            seconds: partial.seconds,
        };
        progress.finish(format!(
            "loss {:.4}, held out: accuracy {:.4}, certified {:.4}; {:.0} s",
            line.train_loss, line.accuracy, line.certified, line.seconds
        ));
        log.add(&line)?;
        partial = Partial {
            seconds: partial.seconds,
            ..Partial::default()
        };
        save(&trainer, folder, &partial)?;
        if interrupt.is_asked() {
            stopped(folder)?;
        }
    }
    Ok(trainer.model().valid())
}

fn save(
    trainer: &Trainer<OrthogonalNetwork>,
    folder: &CertifiedFolder,
    partial: &Partial,
) -> anyhow::Result<()> {
    let note = serde_json::to_string(partial)?;
    let notes: BTreeMap<String, String> = [(PARTIAL.to_owned(), note)].into();
    trainer
        .save(folder.last(), &notes)
        .map_err(|error: TrainingError| {
            anyhow::Error::new(error).context(
                "the checkpoint cannot be written; is there space on the disk, and may you write there?",
            )
        })
}

/// What a user sees who asked to stop.
pub(super) fn stopped(folder: &CertifiedFolder) -> anyhow::Result<()> {
    bail!(
        "stopped in {}; the same command resumes there",
        folder.path().display()
    )
}

/// The certificates of the true classes.
pub fn certify(network: &OrthogonalNetwork, set: &ImageSet) -> anyhow::Result<Certificates> {
    let labels = labels_of(set)?;
    let images = tensor(set, &Normalisation::Unit)?;
    let config = CertificateConfig::new();
    Ok(config.certify(network, images, Target::True(&labels))?)
}

/// The share of inputs whose predicted class is the certified one.
pub fn accuracy(found: &Certificates) -> f64 {
    let right = found.inputs.iter().filter(|c| c.predicted == c.class);
    right.count() as f64 / found.inputs.len() as f64
}

/// The share of inputs that are right and certified at a radius.
pub fn certified(found: &Certificates, radius: f64) -> f64 {
    let at = found.certified_at(radius).share;
    at.last_layer.unwrap_or(at.sqrt_two)
}
