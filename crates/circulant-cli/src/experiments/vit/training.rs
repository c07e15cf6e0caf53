//! Trains the model of a folder epoch by epoch, from the start or from its checkpoint.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use burn::tensor::{Tensor, TensorData};
use circulant::data::{Augmentation, BatchOrder};
use circulant::metrics::Logits;
use circulant::models::VisionTransformer;
use circulant::noise::NoiseKey;
use circulant::parallel::Ranks;
use circulant::train::{Trainer, TrainingError};

use super::super::evaluation::labels_of;
use super::super::interrupt::Interrupt;
use super::super::lines::Log;
use super::super::progress::WorkProgress;
use super::evaluation::{classify, logits};
use super::folder::{EpochLine, VitFolder, best_epoch};
use super::report::curves;
use crate::files::write;
use crate::ranks::ranks;
use circulant_data::ImageSet;

/// Between two checkpoints within an epoch.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);

/// The images of a run.
#[derive(Debug)]
pub struct VitImages {
    pub training: ImageSet,
    /// To choose the checkpoint by.
    pub validation: ImageSet,
}

/// Sums over the steps of an epoch that is not yet whole.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Partial {
    loss: f64,
    correct: u64,
    steps: u64,
    seconds: f64,
}

impl Partial {
    /// Bits, because a decimal number need not read back as itself.
    fn notes(&self, seconds: f64) -> BTreeMap<String, String> {
        let entries = [
            ("loss", self.loss.to_bits()),
            ("correct", self.correct),
            ("steps", self.steps),
            ("epoch_seconds", self.seconds.to_bits()),
            ("seconds", seconds.to_bits()),
        ];
        entries
            .map(|(key, value)| (key.to_owned(), value.to_string()))
            .into()
    }

    fn read(notes: &BTreeMap<String, String>) -> Option<(Self, f64)> {
        let number = |key: &str| notes.get(key)?.parse::<u64>().ok();
        let partial = Self {
            loss: f64::from_bits(number("loss")?),
            correct: number("correct")?,
            steps: number("steps")?,
            seconds: f64::from_bits(number("epoch_seconds")?),
        };
        Some((partial, f64::from_bits(number("seconds")?)))
    }
}

/// Why a run will not train any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VitEnd {
    /// The schedule is at its end.
    Schedule,
    /// The validation loss has not improved for too long.
    Patience,
}

/// A run on its way.
pub struct VitRun<'a> {
    folder: VitFolder,
    images: &'a VitImages,
    labels: Vec<usize>,
    validation_labels: Vec<usize>,
    ranks: Ranks,
    trainer: Trainer<VisionTransformer>,
    order: BatchOrder,
    per_epoch: u64,
    epochs: Vec<EpochLine>,
    log: Log<EpochLine>,
    partial: Partial,
    /// Of training, in all processes.
    seconds: f64,
}

impl<'a> VitRun<'a> {
    /// Begins the run of a folder, or resumes it from its last checkpoint.
    pub fn open(folder: VitFolder, images: &'a VitImages) -> anyhow::Result<Self> {
        let (config, set) = (&folder.config, &images.training);
        let batch = config.training.batch;
        let order = BatchOrder::new(config.training.seed, set.len(), batch)?;
        let per_epoch = (set.len() / batch) as u64;
        let model = config
            .model
            .init(&folder.facts.data, config.training.seed)?;
        let ranks = ranks();
        ranks.ensure_shared(batch)?;
        ranks.compare(&[
            ("the data", folder.facts.data.fingerprint.clone()),
            ("the settings", config.to_toml()),
        ])?;
        let trainer = Trainer::new(model, config.trainer(per_epoch))?;
        let mut trainer = trainer.with_ranks(ranks.clone())?;
        let (mut partial, mut seconds) = (Partial::default(), 0.0);
        let mut epochs = Vec::new();
        if ranks.any(ranks.is_first() && folder.last().exists())? {
            let anew = || {
                format!(
                    "cannot resume {}; put a whole copy of its files back, or delete the folder and train anew",
                    folder.path().display()
                )
            };
            let notes = trainer.resume(folder.last()).with_context(anew)?;
            (partial, seconds) = Partial::read(&notes)
                .context("the checkpoint lacks the sums of its epoch")
                .with_context(anew)?;
            epochs = folder.epochs()?;
            let whole = trainer.steps_done() / per_epoch;
            ensure!(
                epochs.len() as u64 >= whole,
                "{} has {} epochs, the checkpoint beside it {whole}; put the whole file back, or delete the folder \
                 and train anew",
                folder.epochs_file().display(),
                epochs.len()
            );
            epochs.truncate(whole as usize);
        }
        let log = Log::open(&folder.epochs_file(), &epochs)?;
        Ok(Self {
            labels: labels_of(set)?,
            validation_labels: labels_of(&images.validation)?,
            images,
            ranks,
            trainer,
            order,
            per_epoch,
            epochs,
            log,
            partial,
            seconds,
            folder,
        })
    }

    pub fn folder(&self) -> &VitFolder {
        &self.folder
    }

    /// All whole epochs.
    pub fn epochs(&self) -> &[EpochLine] {
        &self.epochs
    }

    /// Whether there is nothing left to do, and why.
    pub fn finished(&self) -> Option<VitEnd> {
        let (training, done) = (&self.folder.config.training, self.epochs.len() as u64);
        if done >= training.epochs {
            return Some(VitEnd::Schedule);
        }
        let best = best_epoch(&self.epochs)?.epoch;
        (training.patience > 0 && done - best >= training.patience).then_some(VitEnd::Patience)
    }

    /// Trains to the end of the epoch, evaluates and writes everything down. `false` if the user asked to stop before.
    pub fn epoch(&mut self, interrupt: &Interrupt, title: &str) -> anyhow::Result<bool> {
        let training = self.folder.config.training;
        let batch = self.order.batch() as u64;
        let title = format!(
            "{title}, epoch {}/{}",
            self.epochs.len() + 1,
            training.epochs
        );
        let mut progress = WorkProgress::new(&title, self.per_epoch);
        let mut saved = Instant::now();
        while self.partial.steps < self.per_epoch {
            let start = Instant::now();
            self.step()?;
            let seconds = start.elapsed().as_secs_f64();
            self.seconds += seconds;
            self.partial.seconds += seconds;
            let (loss, steps) = (self.partial.loss, self.partial.steps);
            let seconds = self.partial.seconds;
            progress.at(steps, || {
                let speed = (steps * batch) as f64 / seconds;
                let epochs = training.epochs - self.epochs.len() as u64;
                let left = ((epochs * self.per_epoch - steps) * batch) as f64 / speed;
                let left = Duration::from_secs(left as u64);
                format!(
                    "loss {:.4}, {speed:.0} images/s, {} to the last epoch",
                    loss / steps as f64,
                    humantime::format_duration(left)
                )
            });
            // The clock of rank 0 counts.
            let is_due = self.ranks.is_first() && saved.elapsed() > CHECKPOINT_EVERY;
            let [asked, due] = self.ranks.counts([interrupt.is_asked(), is_due])?;
            let asked = asked > 0 && steps < self.per_epoch;
            if asked || due > 0 {
                self.save_last()?;
                saved = Instant::now();
            }
            if asked {
                progress.clear();
                return Ok(false);
            }
        }
        let line = self.line()?;
        progress.finish(format!(
            "loss {:.4}, validation loss {:.4}, accuracy {:.4}, {:.0} images/s",
            line.train_loss, line.validation_loss, line.validation_accuracy, line.images_per_second
        ));
        self.write(line)?;
        Ok(true)
    }

    fn step(&mut self) -> anyhow::Result<()> {
        let step = self.trainer.steps_done();
        let config = &self.folder.config;
        let share = self.ranks.share(self.order.batch());
        let indices = &self.order.at(step)[share.clone()];
        let (mut values, [_, channels, height, width]) = (Vec::new(), self.images.training.shape());
        let image = [channels, height, width];
        self.images
            .training
            .gather(indices, &config.data.normalisation, &mut values)?;
        let augmentation = Augmentation {
            flip: config.training.flip,
            crop: config.training.crop,
        };
        let key = NoiseKey {
            // Other noise than that of dropout, which has the same seed and steps.
            seed: !config.training.seed,
            stream: step,
        };
        augmentation.apply_from(share.start, &mut values, image, key);
        let labels: Vec<usize> = indices.iter().map(|&index| self.labels[index]).collect();
        let shape = [labels.len(), channels, height, width];
        let inputs =
            Tensor::<4>::from_data(TensorData::new(values, shape), &circulant::cpu().autodiff());
        let report = self.trainer.step(inputs, &labels)?;
        self.partial.loss += report.loss;
        self.partial.correct += report.correct as u64;
        self.partial.steps += 1;
        Ok(())
    }

    /// The epoch that has just ended.
    fn line(&self) -> anyhow::Result<EpochLine> {
        let (partial, steps) = (&self.partial, self.trainer.steps_done());
        let images = (self.per_epoch * self.order.batch() as u64) as f64;
        let config = &self.folder.config;
        let values = logits(
            self.trainer.model(),
            &self.images.validation,
            &config.data.normalisation,
            "validation",
        )?;
        let classes = self.folder.facts.data.classes;
        let (metrics, _) = classify(&Logits::new(&values, classes)?, &self.validation_labels)?;
        Ok(EpochLine {
            epoch: steps / self.per_epoch,
            images: steps * self.order.batch() as u64,
            learning_rate: config.trainer(self.per_epoch).schedule.at(steps - 1),
            train_loss: partial.loss / partial.steps as f64,
            train_accuracy: partial.correct as f64 / images,
            validation_loss: metrics.nll,
            validation_accuracy: metrics.accuracy,
            seconds: self.seconds,
            images_per_second: images / partial.seconds,
        })
    }

    /// The best checkpoint and the line before the last checkpoint: a process that dies in between does the epoch's end
    /// again.
    fn write(&mut self, line: EpochLine) -> anyhow::Result<()> {
        let best = best_epoch(&self.epochs).map_or(f64::INFINITY, |best| best.validation_loss);
        self.partial = Partial::default();
        if line.validation_loss < best {
            let notes = [("epoch".to_owned(), line.epoch.to_string())].into();
            self.trainer
                .save(self.folder.best(), &notes)
                .map_err(disk)?;
        }
        self.log.add(&line)?;
        self.epochs.push(line);
        let name = self.folder.config.model.projection.name();
        let drawing = curves(&name, &self.epochs).standalone();
        write(&self.folder.path().join("curves.svg"), drawing)?;
        self.save_last()
    }

    fn save_last(&self) -> anyhow::Result<()> {
        let notes = self.partial.notes(self.seconds);
        self.trainer.save(self.folder.last(), &notes).map_err(disk)
    }
}

fn disk(error: TrainingError) -> anyhow::Error {
    anyhow::Error::new(error).context(
        "the checkpoint cannot be written; is there space on the disk, and may you write there?",
    )
}
