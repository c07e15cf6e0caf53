//! Deterministic training of a classifier: the mean cross-entropy, Adan with decoupled weight decay, and a learning rate that
//! warms up linearly and falls to zero along a cosine.
//!
//! Dropout follows from seed and step, so a run that goes on from a checkpoint gives the same numbers, to the last bit, as
//! one that never stopped, if it sees the same batches ([`crate::bayes::BatchOrder`] is a function of seed and step too).
//!
//! A pretrained transformer with circulant projections in the place of dense ones, fine-tuned:
//!
//! ```
//! use burn::tensor::Tensor;
//! use circulant::models::{ProjectionKind, VisionTransformerConfig};
//! use circulant::nn::BiasKind;
//! use circulant::surgery::to_spectral_projections;
//! use circulant::training::{Trainer, TrainerConfig, WarmUpCosine};
//!
//! let device = circulant::cpu().autodiff();
//! let config = VisionTransformerConfig::new(8, 4, 3, ProjectionKind::Dense).with_d(8).with_depth(2).with_heads(2);
//! let dense = config.init(&device); // circulant::pretrained::load_vision_transformer(&mut dense, "model.pt")?;
//! let (model, changes) = to_spectral_projections(dense, BiasKind::Vector)?;
//! println!("{}: {:.2} of the matrix is lost", changes[0].path, changes[0].relative_error);
//!
//! # let folder = tempfile::tempdir()?;
//! let schedule = WarmUpCosine { peak: 1e-3, warm_up: 2, steps: 10 };
//! let mut trainer = Trainer::new(model, TrainerConfig { seed: 0, schedule, spectral_rate: 1.0, weight_decay: 1e-4 })?;
//! let images = Tensor::<4>::ones([2, 3, 8, 8], &device); // yours
//! let first = trainer.step(images.clone(), &[0, 2])?;
//! trainer.save(folder.path().join("checkpoint.safetensors"), &Default::default())?;
//! println!("step {}: loss {:.3}, {} of 2 right", first.step, first.loss, first.correct);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::f64::consts::PI;
use std::path::Path;

use burn::module::{Module, ParamId};
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::Tensor;
use circulant_kernels::NoiseKey;

use crate::bayes::find_not_finite;
use crate::checkpoint::{self, Checkpoint, CheckpointError};
use crate::functions::cross_entropy;
use crate::models::VisionTransformer;
use crate::nn::to_host;
use crate::optim::FusedAdan;
use crate::parameters::{trained_parameters, with_stable_ids};

const FORMAT: &str = "circulant-training-1";

/// A network with one logit per class, and dropout in training.
pub trait Supervised<const D: usize>: Module {
    /// The logits of a batch. Without a key there is no dropout.
    ///
    /// # Shapes
    ///
    /// - inputs: `[batch, ...]`
    /// - output: `[batch, classes]`
    fn logits(&self, inputs: Tensor<D>, dropout: Option<NoiseKey>) -> Tensor<2>;
}

impl Supervised<4> for VisionTransformer {
    fn logits(&self, inputs: Tensor<4>, dropout: Option<NoiseKey>) -> Tensor<2> {
        match dropout {
            Some(key) => self.forward_training(inputs, key),
            None => self.forward(inputs),
        }
    }
}

/// Why training cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    /// Training produced NaN or infinity.
    #[error(
        "step {step}: {what} is not finite; lower the learning rate, or go back to the last checkpoint"
    )]
    Diverged {
        /// The step.
        step: u64,
        /// What.
        what: String,
    },
    /// A batch that is empty, or whose labels do not fit it.
    #[error("expected one label below {classes} for each of the {inputs} inputs, got {labels:?}")]
    Labels {
        /// The number of inputs.
        inputs: usize,
        /// The number of classes.
        classes: usize,
        /// The labels.
        labels: Vec<usize>,
    },
    /// A setting outside its range.
    #[error("{what} must be {expected}, got {got}")]
    Setting {
        /// Which setting.
        what: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        got: f64,
    },
    /// A checkpoint that cannot be written or used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

/// A learning rate for every step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmUpCosine {
    /// The largest rate.
    pub peak: f64,
    /// Steps of linear growth.
    pub warm_up: u64,
    /// All steps; after the last one the rate is zero.
    pub steps: u64,
}

impl WarmUpCosine {
    /// The rate of a step, from 0: `peak (step + 1)/warm_up` at first, then
    /// `peak (1 + cos(pi (step - warm_up)/(steps - warm_up)))/2`.
    pub fn at(&self, step: u64) -> f64 {
        if step < self.warm_up {
            return self.peak * (step + 1) as f64 / self.warm_up as f64;
        }
        if step >= self.steps {
            return 0.0;
        }
        let along = (step - self.warm_up) as f64 / (self.steps - self.warm_up) as f64;
        self.peak * (1.0 + (PI * along).cos()) / 2.0
    }
}

/// Settings of a [`Trainer`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainerConfig {
    /// The seed of dropout.
    pub seed: u64,
    /// The learning rate.
    pub schedule: WarmUpCosine,
    /// The learning rate of spectral coordinates, in units of the schedule's.
    ///
    /// Optimisers such as Adan move every number by about the learning rate, whatever its size. A coordinate of an initial circulant layer is of
    /// size 1, a weight of a dense one of size `1/sqrt(d)`: with `sqrt(d)` here, both layers change their outputs at about the same pace.
    pub spectral_rate: f64,
    /// The weight decay of Adan.
    pub weight_decay: f64,
}

/// What a step gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainingStep {
    /// From 0.
    pub step: u64,
    /// The mean cross-entropy of the batch before the step, with dropout.
    pub loss: f64,
    /// How many of the batch were right.
    pub correct: usize,
}

/// A model in training.
pub struct Trainer<M> {
    /// Only a step takes it out.
    model: Option<M>,
    optimizer: ModuleOptimizer,
    /// The spectral coordinates, if their learning rate is another.
    spectral: Vec<ParamId>,
    step: u64,
    config: TrainerConfig,
}

impl<M: Module> Trainer<M> {
    /// Takes a model on an autodiff device.
    pub fn new(model: M, config: TrainerConfig) -> Result<Self, TrainingError> {
        let TrainerConfig {
            schedule,
            spectral_rate,
            weight_decay,
            ..
        } = config;
        let setting = |what, expected, got: f64, fits: bool| {
            if fits {
                Ok(())
            } else {
                Err(TrainingError::Setting {
                    what,
                    expected,
                    got,
                })
            }
        };
        let positive = |x: f64| x > 0.0 && x.is_finite();
        setting(
            "the peak learning rate",
            "positive and finite",
            schedule.peak,
            positive(schedule.peak),
        )?;
        setting(
            "the spectral learning rate",
            "positive and finite",
            spectral_rate,
            positive(spectral_rate),
        )?;
        let fits = weight_decay == 0.0 || positive(weight_decay);
        setting(
            "the weight decay",
            "zero or positive and finite",
            weight_decay,
            fits,
        )?;
        let fits = schedule.warm_up <= schedule.steps;
        setting(
            "the warm-up",
            "no longer than the training",
            schedule.warm_up as f64,
            fits,
        )?;
        let optimizer = FusedAdan {
            weight_decay: weight_decay as f32,
            ..FusedAdan::default()
        };
        let model = with_stable_ids(model);
        let spectral = if spectral_rate == 1.0 {
            Vec::new()
        } else {
            let found = trained_parameters(&model).into_iter();
            let spectral = found.filter(|found| found.path.ends_with(".coordinates"));
            spectral.map(|found| found.id).collect()
        };
        Ok(Self {
            model: Some(model),
            optimizer: optimizer.init(),
            spectral,
            step: 0,
            config,
        })
    }

    /// The model as it is now.
    pub fn model(&self) -> &M {
        self.model
            .as_ref()
            .expect("there is always a model between steps")
    }

    /// The number of steps done.
    pub fn steps_done(&self) -> u64 {
        self.step
    }

    /// One step on a batch.
    ///
    /// # Shapes
    ///
    /// - inputs: `[batch, ...]`, labels: `batch` classes
    pub fn step<const D: usize>(
        &mut self,
        inputs: Tensor<D>,
        labels: &[usize],
    ) -> Result<TrainingStep, TrainingError>
    where
        M: Supervised<D>,
    {
        let step = self.step;
        let key = NoiseKey {
            seed: self.config.seed,
            stream: step,
        };
        let batch = inputs.dims()[0];
        let logits = self.model().logits(inputs, Some(key));
        let [_, classes] = logits.dims();
        if batch == 0 || labels.len() != batch || labels.iter().any(|&label| label >= classes) {
            return Err(TrainingError::Labels {
                inputs: batch,
                classes,
                labels: labels.to_vec(),
            });
        }
        let correct = count_correct(&to_host(logits.clone()), labels);
        let loss = cross_entropy(logits, labels.to_vec()).div_scalar(batch as f64);
        let value = to_host(loss.clone())[0];
        if !value.is_finite() {
            let parameter = find_not_finite(self.model(), None);
            let what = parameter.map_or("the loss".to_owned(), |name| {
                format!("the parameter {name}")
            });
            return Err(TrainingError::Diverged { step, what });
        }
        let mut gradients = loss.backward();
        let mut model = self
            .model
            .take()
            .expect("there is always a model between steps");
        let rate = self.config.schedule.at(step);
        if !self.spectral.is_empty() {
            let own = GradientsParams::from_params(&mut gradients, &model, &self.spectral);
            let rate = rate * self.config.spectral_rate;
            model = self.optimizer.step(rate, model, own);
        }
        let rest = GradientsParams::from_grads(gradients, &model);
        self.model = Some(self.optimizer.step(rate, model, rest));
        self.step += 1;
        Ok(TrainingStep {
            step,
            loss: value,
            correct,
        })
    }

    /// Writes a checkpoint with notes of the caller's. An existing file is replaced in one step. Parameters that are not finite
    /// are refused, so that a good checkpoint is never replaced by a useless one.
    pub fn save(
        &self,
        path: impl AsRef<Path>,
        notes: &BTreeMap<String, String>,
    ) -> Result<(), TrainingError> {
        if let Some(name) = find_not_finite(self.model(), None) {
            return Err(TrainingError::Diverged {
                step: self.step,
                what: format!("the parameter {name}"),
            });
        }
        let mut metadata: BTreeMap<String, String> = self
            .identity()
            .map(|(key, value)| (key.to_owned(), value))
            .into();
        metadata.insert("step".to_owned(), self.step.to_string());
        let notes = notes.iter();
        metadata.extend(notes.map(|(key, value)| (format!("{NOTE}{key}"), value.clone())));
        Ok(checkpoint::write(
            path.as_ref(),
            self.model(),
            &self.optimizer,
            None,
            metadata,
        )?)
    }

    /// Goes on from a checkpoint of the same settings, and gives its notes back. On any error `self` is as it was.
    pub fn resume(
        &mut self,
        path: impl AsRef<Path>,
    ) -> Result<BTreeMap<String, String>, TrainingError> {
        let checkpoint = Checkpoint::read(path.as_ref())?;
        for (what, expected) in self.identity() {
            checkpoint.check(what, expected)?;
        }
        let step = checkpoint.number("step")?;
        let mut model = self.model().clone();
        let state = checkpoint.load(&mut model)?;
        self.model = Some(with_stable_ids(model));
        self.optimizer = self.optimizer.clone().load_record(state.optimizer);
        self.step = step;
        let notes = checkpoint.metadata.iter().filter_map(|(key, value)| {
            let key = key.strip_prefix(NOTE)?;
            Some((key.to_owned(), value.clone()))
        });
        Ok(notes.collect())
    }

    /// What must agree between a checkpoint and the run that resumes from it.
    fn identity(&self) -> [(&'static str, String); 5] {
        let WarmUpCosine {
            peak,
            warm_up,
            steps,
        } = self.config.schedule;
        let spectral = match self.config.spectral_rate {
            1.0 => String::new(),
            rate => format!(", {rate} times as much for spectral coordinates"),
        };
        [
            ("format", FORMAT.to_owned()),
            ("seed", self.config.seed.to_string()),
            (
                "learning rate",
                format!("{peak}, {warm_up} steps of warm-up{spectral}"),
            ),
            ("steps", steps.to_string()),
            ("weight decay", self.config.weight_decay.to_string()),
        ]
    }
}

/// Before the names of the caller's notes.
const NOTE: &str = "note.";

/// Puts the parameters of a checkpoint that [`Trainer::save`] wrote into a model, and gives the number of its steps.
pub fn load_checkpoint<M: Module>(
    model: &mut M,
    path: impl AsRef<Path>,
) -> Result<u64, TrainingError> {
    let checkpoint = Checkpoint::read(path.as_ref())?;
    checkpoint.check("format", FORMAT.to_owned())?;
    let step = checkpoint.number("step")?;
    checkpoint.load(model)?;
    Ok(step)
}

/// How many rows of logits have their largest number, the first of equals, at the label.
pub fn count_correct(logits: &[f64], labels: &[usize]) -> usize {
    let rows = logits.chunks_exact((logits.len() / labels.len().max(1)).max(1));
    let hit = |(row, &label): (&[f64], &usize)| {
        let before = row[..label].iter().all(|z| *z < row[label]);
        before && row[label + 1..].iter().all(|z| *z <= row[label])
    };
    rows.zip(labels)
        .filter(|pair| hit((pair.0, pair.1)))
        .count()
}
