//! Trains what a method needs, and measures its predictions.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{bail, ensure};
use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use circulant::baselines::{
    DropoutClassifier, FeatureDensity, HiddenFeatures, LastLayerLaplace, LinearReadout, average,
    temperature,
};
use circulant::bayes::{Bayesian, Predictions, PredictiveConfig};
use circulant::data::BatchOrder;
use circulant::metrics::{Logits, Probabilities, class_metrics, entropies, ood_report};
use circulant::models::ImageClassifier;
use circulant::train::{Trainer, TrainerConfig, TrainingLoss, WarmUpCosine};
use circulant_data::ImageSet;

use super::super::super::config::RunConfig;
use super::super::super::evaluation::labels_of;
use super::super::super::interrupt::Interrupt;
use super::super::super::model;
use super::super::super::source::{self, tensor};
use super::super::super::variant::{SharedPlan, SharedRuns, Variant};
use super::super::sets::MnistSets;
use super::{BaselineLine, MEMBERS, Method, some};

/// Rates of dropout, and precisions of the prior of a read-out, that held-out images choose from.
const RATES: [f64; 3] = [0.1, 0.3, 0.5];
const PRECISIONS: [f64; 6] = [0.1, 1.0, 10.0, 100.0, 1e3, 1e4];
/// Training images that densities and curvatures are fitted to, and held-out images that choose precisions, at most.
const FITTED: usize = 10_000;
const CHOOSING: usize = 1000;
/// Directions with a covariance per class.
const DIRECTIONS: usize = 64;
/// Images at a time.
const BATCH: usize = 256;

/// A model with a seed.
pub(super) struct Methods<'a> {
    pub(super) runs: &'a SharedRuns<'a>,
    pub(super) plan: &'a SharedPlan,
    pub(super) sets: &'a MnistSets,
    pub(super) training: &'a ImageSet,
    pub(super) validation: &'a ImageSet,
    pub(super) variant: Variant,
    /// As one network.
    pub(super) point: Variant,
    pub(super) seed: u64,
    pub(super) interrupt: &'a Interrupt,
    /// Those that are trained, by name and seed.
    pub(super) networks: BTreeMap<(String, u64), Bayesian<ImageClassifier>>,
}

/// What a method says of images.
struct Said {
    /// `[images, classes]`.
    probabilities: Vec<f64>,
    /// High for images unlike the training data.
    scores: Vec<f64>,
}

/// From images to what a method says of them.
type Say<'a> = Box<dyn Fn(&ImageSet) -> anyhow::Result<Said> + 'a>;

/// A method ready for images, and how many numbers it keeps.
struct Ready<'a> {
    stored: usize,
    say: Say<'a>,
}

impl Said {
    /// The score is the entropy.
    fn of(predictions: &Predictions) -> Self {
        let wide = |values: &[f32]| values.iter().map(|&x| x.into()).collect();
        Self {
            probabilities: wide(&predictions.probabilities),
            scores: wide(&predictions.predictive_entropy),
        }
    }

    fn of_probabilities(probabilities: Vec<f64>, classes: usize) -> anyhow::Result<Self> {
        let scores = entropies(&Probabilities::new(&probabilities, classes)?);
        Ok(Self {
            probabilities,
            scores,
        })
    }
}

impl Methods<'_> {
    /// Trains and measures.
    pub(super) fn line(&mut self, method: Method, settings: &str) -> anyhow::Result<BaselineLine> {
        let own = self.variant.clone();
        let weights = self.runs.folder(&own, self.seed)?.facts.weights;
        let members: Vec<Bayesian<ImageClassifier>> = match method {
            Method::Ours | Method::OursDensity => vec![self.network(&own, self.seed)?],
            Method::Dropout => Vec::new(),
            Method::Ensemble => (0..MEMBERS)
                .map(|member| self.member(member))
                .collect::<anyhow::Result<_>>()?,
            _ => vec![self.member(0)?],
        };
        let ready = self.ready(method, &members)?;
        let start = Instant::now();
        let found = (ready.say)(&self.sets.test)?;
        let seconds = start.elapsed().as_secs_f64();
        let others = (ready.say)(&self.sets.ood)?;
        let probabilities = Probabilities::new(&found.probabilities, self.classes())?;
        let (class, _) = class_metrics(&probabilities, &labels_of(&self.sets.test)?)?;
        let negative = |scores: &[f64]| -> Vec<f64> { scores.iter().map(|score| -score).collect() };
        let ood = ood_report(&negative(&found.scores), &negative(&others.scores))?;
        Ok(BaselineLine {
            settings: settings.to_owned(),
            model: own.name,
            method,
            seed: self.seed,
            weights,
            stored: ready.stored,
            accuracy: class.accuracy,
            nll: class.nll,
            ece: class.ece,
            auroc: ood.auroc,
            fpr95: ood.fpr95,
            milliseconds: seconds * 1e6 / self.sets.test.len() as f64,
        })
    }

    fn classes(&self) -> usize {
        self.training.labels().classes()
    }

    /// The network of a member of this seed's ensemble; the first one is the one network of the other methods.
    fn member(&mut self, member: u64) -> anyhow::Result<Bayesian<ImageClassifier>> {
        let seed = self.seed.wrapping_mul(MEMBERS).wrapping_add(member);
        self.network(&self.point.clone(), seed)
    }

    fn network(
        &mut self,
        variant: &Variant,
        seed: u64,
    ) -> anyhow::Result<Bayesian<ImageClassifier>> {
        let key = (variant.name.clone(), seed);
        if let Some(network) = self.networks.get(&key) {
            return Ok(network.clone());
        }
        let folder = self.runs.folder(variant, seed)?;
        let network = self.runs.train(&folder, variant, None)?.network.valid();
        self.networks.insert(key, network.clone());
        Ok(network)
    }

    fn ready<'a>(
        &'a self,
        method: Method,
        members: &'a [Bayesian<ImageClassifier>],
    ) -> anyhow::Result<Ready<'a>> {
        let (classes, seed) = (self.classes(), self.seed);
        if method == Method::Dropout {
            return self.dropout();
        }
        let Some(network) = members.first() else {
            bail!("{} needs a network", method.title());
        };
        let one = parameters(&network.mean());
        let images = |set: &ImageSet| self.images(set);
        let predict = move |network: &Bayesian<ImageClassifier>, set: &ImageSet, samples| {
            let config = PredictiveConfig::new()
                .with_samples(samples)
                .with_seed(seed);
            anyhow::Ok(config.predict(network, images(set)?)?)
        };
        Ok(match method {
            Method::Ours => Ready {
                stored: parameters(network),
                say: Box::new(move |set| Ok(Said::of(&predict(network, set, self.plan.samples)?))),
            },
            Method::Temperature => {
                let labels = labels_of(self.validation)?;
                let (_, logits) = self.features(&network.mean(), self.validation)?;
                let found = temperature(&Logits::new(&logits, classes)?, &labels)?;
                let scaled = network.clone().with_scaled("output", found.recip())?;
                Ready {
                    stored: one + 1,
                    say: Box::new(move |set| Ok(Said::of(&predict(&scaled, set, 1)?))),
                }
            }
            Method::Ensemble => Ready {
                stored: members.len() * one,
                say: Box::new(move |set| {
                    let members = members.iter().map(|member| predict(member, set, 1));
                    let members = members.collect::<anyhow::Result<Vec<_>>>()?;
                    Ok(Said::of(&average(&members)?))
                }),
            },
            Method::Laplace => self.laplace(network.mean(), one)?,
            Method::OursDensity | Method::Density => {
                let (density, mean) = (self.density(&network.mean())?, network.mean());
                let samples = match method {
                    Method::Density => 1,
                    _ => self.plan.samples,
                };
                Ready {
                    stored: density.stored() + parameters(network),
                    say: Box::new(move |set| {
                        let said = Said::of(&predict(network, set, samples)?);
                        let features =
                            HiddenFeatures::of::<4>(&mean, self.images(set)?, BATCH).values;
                        let logarithms = density.log_densities(&features)?;
                        Ok(Said {
                            scores: logarithms.into_iter().map(|log| -log).collect(),
                            ..said
                        })
                    }),
                }
            }
            Method::Softmax | Method::Dropout => Ready {
                stored: one,
                say: Box::new(move |set| Ok(Said::of(&predict(network, set, 1)?))),
            },
        })
    }

    fn images(&self, set: &ImageSet) -> anyhow::Result<Tensor<4>> {
        tensor(set, &self.plan.settings.data.normalisation)
    }

    /// Hidden features and logits of a set.
    fn features(
        &self,
        model: &ImageClassifier,
        set: &ImageSet,
    ) -> anyhow::Result<(HiddenFeatures, Vec<f32>)> {
        let features = HiddenFeatures::of::<4>(model, self.images(set)?, BATCH);
        let shape = [set.len(), features.columns];
        let data = TensorData::new(features.values.clone(), shape);
        let rows = Tensor::<2>::from_data(data, &circulant::cpu());
        let logits = LinearReadout::<4>::readout(model).forward(rows);
        let logits: Vec<f32> = logits.into_data().iter::<f32>().collect();
        Ok((features, logits))
    }

    fn density(&self, model: &ImageClassifier) -> anyhow::Result<FeatureDensity> {
        let set = some(self.training, FITTED)?;
        let (features, _) = self.features(model, &set)?;
        let labels = labels_of(&set)?;
        let (columns, classes) = (features.columns, self.classes());
        Ok(FeatureDensity::fit(
            &features.values,
            columns,
            &labels,
            classes,
            DIRECTIONS,
        )?)
    }

    /// Its precision is the one with the smallest held-out negative log likelihood.
    fn laplace(&self, model: ImageClassifier, stored: usize) -> anyhow::Result<Ready<'_>> {
        let classes = self.classes();
        let (features, logits) = self.features(&model, &some(self.training, FITTED)?)?;
        let probabilities = Logits::new(&logits, classes)?.softmax();
        let fitted = LastLayerLaplace::fit(
            &features.values,
            features.columns,
            &Probabilities::new(&probabilities, classes)?,
            self.training.len(),
            1.0,
        )?;
        let held = some(self.validation, CHOOSING)?;
        let labels = labels_of(&held)?;
        let (features, logits) = self.features(&model, &held)?;
        let mut best: Option<(f64, LastLayerLaplace)> = None;
        for precision in PRECISIONS {
            let own = fitted.clone().with_precision(precision)?;
            let found = own.probabilities(&features.values, &Logits::new(&logits, classes)?)?;
            let (metrics, _) = class_metrics(&Probabilities::new(&found, classes)?, &labels)?;
            if best.as_ref().is_none_or(|(nll, _)| metrics.nll < *nll) {
                best = Some((metrics.nll, own));
            }
        }
        let Some((_, laplace)) = best else {
            bail!("no precision was tried");
        };
        Ok(Ready {
            stored: stored + laplace.stored(),
            say: Box::new(move |set| {
                let (features, logits) = self.features(&model, set)?;
                let logits = Logits::new(&logits, classes)?;
                Said::of_probabilities(laplace.probabilities(&features.values, &logits)?, classes)
            }),
        })
    }

    /// Its rate is the one with the smallest held-out negative log likelihood.
    fn dropout(&self) -> anyhow::Result<Ready<'_>> {
        let (samples, seed) = (self.plan.samples, self.seed);
        let held = self.images(&some(self.validation, CHOOSING)?)?;
        let labels = labels_of(&some(self.validation, CHOOSING)?)?;
        let mut best: Option<(f64, DropoutClassifier)> = None;
        for rate in RATES {
            let network = self.trained_with_dropout(rate)?;
            let found = network.predict(held.clone(), samples, seed, BATCH)?;
            let (metrics, _) = class_metrics(&found.class_probabilities()?, &labels)?;
            if best.as_ref().is_none_or(|(nll, _)| metrics.nll < *nll) {
                best = Some((metrics.nll, network));
            }
        }
        let Some((_, network)) = best else {
            bail!("no rate was tried");
        };
        Ok(Ready {
            stored: parameters(&network),
            say: Box::new(move |set| {
                let found = network.predict(self.images(set)?, samples, seed, BATCH)?;
                Ok(Said::of(&found))
            }),
        })
    }

    fn trained_with_dropout(&self, rate: f64) -> anyhow::Result<DropoutClassifier> {
        let mut config: RunConfig = self.point.config.clone();
        config.training.seed = self.seed;
        let [_, channels, height, width] = self.training.shape();
        let classes = self.classes();
        let device = circulant::cpu().autodiff();
        let model =
            model::classifier(&config, [channels, height, width], classes).try_init(&device)?;
        let training = &config.training;
        let settings = TrainerConfig {
            seed: self.seed,
            schedule: WarmUpCosine {
                peak: training.learning_rate,
                warm_up: training.steps / 20,
                steps: training.steps,
            },
            spectral_rate: 1.0,
            length_power: 0.0,
            weight_decay: 0.0,
            loss: TrainingLoss::CrossEntropy,
        };
        let mut trainer = Trainer::new(DropoutClassifier::new(model, rate)?, settings)?;
        let normalisation = &self.plan.settings.data.normalisation;
        let data = source::labelled(self.training, normalisation, classes, None)?;
        let mut order = BatchOrder::new(self.seed, data.examples(), training.batch)?;
        for step in 0..training.steps {
            ensure!(
                !self.interrupt.is_asked(),
                "stopped; the same command resumes (--out {})",
                self.plan.out.display()
            );
            let batch = data.batch(order.at(step)).into_autodiff();
            trainer.step(batch.batch(), &batch.labels.0)?;
        }
        Ok(trainer.model().valid())
    }
}

/// Real numbers of a module.
fn parameters<M: Module>(module: &M) -> usize {
    module.num_params()
}
