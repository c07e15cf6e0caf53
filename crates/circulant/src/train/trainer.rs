//! One step after the other, checkpoints between them.

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::Tensor;
use circulant_kernels::seed_for;

use super::{FusedAdan, TrainingError, TrainingLoss, WarmUpCosine, find_not_finite};
use crate::nn::to_host;
use crate::noise::NoiseKey;
use crate::parallel::{ParallelError, Ranks, program_facts, register, sum_parts, trained_parts};
use crate::parameters::{checksum, trained_parameters, with_stable_ids};
use crate::task::Classifier;

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
    /// What is minimised.
    pub loss: TrainingLoss,
}

/// What a step gave.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct TrainingStep {
    /// From 0.
    pub step: u64,
    /// The mean loss of the batch before the step, with dropout.
    pub loss: f64,
    /// How many of the batch were right.
    pub correct: usize,
}

/// A model in training.
pub struct Trainer<M> {
    /// Only a step takes it out.
    pub(super) model: Option<M>,
    pub(super) optimizer: ModuleOptimizer,
    /// Spectral coordinates whose learning rate is another, and how many times as large it is.
    spectral: Vec<(f64, Vec<ParamId>)>,
    pub(super) step: u64,
    pub(super) config: TrainerConfig,
    pub(super) ranks: Ranks,
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
        config.loss.check()?;
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
            ranks: Ranks::default(),
        })
    }

    /// Trains on these ranks ([`crate::parallel`]): every rank makes the same trainer, hands [`Self::step`] its share of each batch
    /// (`ranks.share(batch)`), and calls the same methods. Ranks with other settings or parameters are an error on all.
    ///
    /// Masks of dropout are drawn by each rank for its share, so with dropout another number of ranks sees other masks.
    pub fn with_ranks(mut self, ranks: Ranks) -> Result<Self, TrainingError> {
        self.ranks = ranks;
        if !self.ranks.is_alone() {
            let mut facts = program_facts();
            facts.extend(self.identity());
            self.ranks.compare(&facts)?;
            self.compare_parameters()?;
        }
        Ok(self)
    }

    pub(super) fn compare_parameters(&self) -> Result<(), TrainingError> {
        if self.ranks.is_alone() {
            return Ok(());
        }
        let sum = format!("{:08x}", checksum(self.model()));
        Ok(self.ranks.compare(&[("the parameters", sum)])?)
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

    /// One step on a batch, or on this rank's share of one. What comes back is of the whole batch.
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
        let own = self.loss(inputs, labels);
        let (done, mut gradients) = if self.ranks.is_alone() {
            self.own_gradients(own?)?
        } else {
            self.summed_gradients(own)?
        };
        let mut model = self
            .model
            .take()
            .expect("there is always a model between steps");
        let rate = self.config.schedule.at(self.step);
        for (factor, ids) in &self.spectral {
            let mut take = Take {
                ids,
                from: &mut gradients,
                into: GradientsParams::new(),
            };
            model.visit(&mut take);
            model = self.optimizer.step(rate * factor, model, take.into);
        }
        self.model = Some(self.optimizer.step(rate, model, gradients));
        self.step += 1;
        Ok(done)
    }

    /// What this rank's examples say.
    fn loss<const D: usize>(
        &self,
        inputs: Tensor<D>,
        labels: &[usize],
    ) -> Result<BatchLoss, TrainingError>
    where
        M: Classifier<D>,
    {
        let seed = match self.ranks.rank() {
            0 => self.config.seed,
            rank => seed_for(self.config.seed, rank as u64),
        };
        let stream = self.step;
        let examples = inputs.dims()[0];
        let logits = self
            .model()
            .training_logits(inputs, NoiseKey { seed, stream });
        let [_, classes] = logits.dims();
        if examples == 0 || labels.len() != examples || labels.iter().any(|&label| label >= classes)
        {
            return Err(TrainingError::Labels {
                inputs: examples,
                classes,
                labels: labels.to_vec(),
            });
        }
        Ok(BatchLoss {
            correct: count_correct(&to_host(logits.clone()), labels),
            sum: self.config.loss.sum(logits, labels),
            examples,
        })
    }

    /// The gradients of the mean loss of a batch that is all here.
    fn own_gradients(
        &self,
        batch: BatchLoss,
    ) -> Result<(TrainingStep, GradientsParams), TrainingError> {
        let loss = batch.sum.div_scalar(batch.examples as f64);
        let done = self.done(to_host(loss.clone())[0], batch.correct)?;
        let gradients = GradientsParams::from_grads(loss.backward(), self.model());
        Ok((done, gradients))
    }

    /// The gradients of the mean loss of a batch that all ranks share.
    fn summed_gradients(
        &self,
        own: Result<BatchLoss, TrainingError>,
    ) -> Result<(TrainingStep, GradientsParams), TrainingError> {
        let model = self.model();
        let (gradients, mut numbers) = match &own {
            Ok(batch) => (
                GradientsParams::from_grads(batch.sum.clone().backward(), model),
                [
                    to_host(batch.sum.clone())[0],
                    batch.examples as f64,
                    batch.correct as f64,
                    0.0,
                ],
            ),
            Err(_) => (GradientsParams::new(), [0.0, 0.0, 0.0, 1.0]),
        };
        let mut parts = trained_parts(model, &gradients, |_| false);
        sum_parts(&self.ranks, &mut parts, &mut numbers).map_err(ParallelError::from)?;
        let [sum, examples, correct, failed] = numbers;
        if failed > 0.0 {
            self.ranks.agree(own)?;
        }
        let done = self.done(sum / examples, correct as usize)?;
        let mean = parts.into_iter().map(|part| part.times(1.0 / examples));
        let mut gradients = GradientsParams::new();
        register(model, mean, |_| false, &mut gradients);
        Ok((done, gradients))
    }

    fn done(&self, loss: f64, correct: usize) -> Result<TrainingStep, TrainingError> {
        let step = self.step;
        if loss.is_finite() {
            return Ok(TrainingStep {
                step,
                loss,
                correct,
            });
        }
        let parameter = find_not_finite(self.model(), None);
        let what = parameter.map_or("the loss".to_owned(), |name| {
            format!("the parameter {name}")
        });
        Err(TrainingError::Diverged { step, what })
    }
}

/// The loss of this rank's examples.
struct BatchLoss {
    /// The loss, summed: `[1]`.
    sum: Tensor<1>,
    examples: usize,
    correct: usize,
}

/// Takes the gradients of some parameters out of those of all.
struct Take<'a> {
    ids: &'a [ParamId],
    from: &'a mut GradientsParams,
    into: GradientsParams,
}

impl ModuleVisitor for Take<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.ids.contains(&param.id)
            && let Some(gradient) = self.from.remove::<D>(param.id)
        {
            self.into.register(param.id, gradient);
        }
    }
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
