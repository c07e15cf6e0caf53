//! One step after the other, checkpoints between them.

use std::collections::BTreeMap;
use std::path::Path;

use burn::module::{Module, ParamId};
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::Tensor;

use super::checkpoint::{self, Checkpoint};
use super::{FusedAdan, TrainingError, WarmUpCosine, find_not_finite};
use crate::functional::cross_entropy;
use crate::nn::to_host;
use crate::noise::NoiseKey;
use crate::parameters::{trained_parameters, with_stable_ids};
use crate::task::Classifier;

/// The version is behind the last dash.
const FORMAT: &str = "circulant-training-";
const VERSION: u64 = 1;

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
    /// And this power of the length of the layer's transform (`d` of a circulant layer, `b` of blocks): 0 for the same rate for all, 0.5 for
    /// layers of different structures that change their outputs at about the same pace.
    pub length_power: f64,
    /// The weight decay of Adan.
    pub weight_decay: f64,
}

/// What a step gave.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
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
    /// Spectral coordinates whose learning rate is another, and how many times as large it is.
    spectral: Vec<(f64, Vec<ParamId>)>,
    step: u64,
    config: TrainerConfig,
}

impl<M: Module> Trainer<M> {
    /// Takes a model on an autodiff device.
    pub fn new(model: M, config: TrainerConfig) -> Result<Self, TrainingError> {
        let TrainerConfig {
            schedule,
            spectral_rate,
            length_power,
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
        setting(
            "the power of the length",
            "between -2 and 2",
            length_power,
            length_power.abs() <= 2.0,
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
        let mut spectral: Vec<(f64, Vec<ParamId>)> = Vec::new();
        for found in trained_parameters(&model) {
            let Some(layout) = found.spectrum else {
                continue;
            };
            let (height, width) = layout.grid();
            let factor = spectral_rate * ((height * width) as f64).powf(length_power);
            if factor == 1.0 {
                continue;
            }
            match spectral.iter_mut().find(|(other, _)| *other == factor) {
                Some((_, ids)) => ids.push(found.id),
                None => spectral.push((factor, vec![found.id])),
            }
        }
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
        M: Classifier<D>,
    {
        let step = self.step;
        let key = NoiseKey {
            seed: self.config.seed,
            stream: step,
        };
        let batch = inputs.dims()[0];
        let logits = self.model().training_logits(inputs, key);
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
        for (factor, ids) in &self.spectral {
            let own = GradientsParams::from_params(&mut gradients, &model, ids);
            model = self.optimizer.step(rate * factor, model, own);
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
        checkpoint.version(FORMAT, VERSION)?;
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
        let by_length = match self.config.length_power {
            0.0 => String::new(),
            power => format!(", times the length to the power of {power}"),
        };
        [
            ("format", format!("{FORMAT}{VERSION}")),
            ("seed", self.config.seed.to_string()),
            (
                "learning rate",
                format!("{peak}, {warm_up} steps of warm-up{spectral}{by_length}"),
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
    checkpoint.version(FORMAT, VERSION)?;
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
