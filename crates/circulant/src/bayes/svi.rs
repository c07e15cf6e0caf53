//! Stochastic variational inference: gradient steps on the negative ELBO (algorithm 2 of the paper).

use std::ops::ControlFlow;

use burn::optim::ModuleOptimizer;
use burn::tensor::Tensor;
use circulant_kernels::join_awake;

use super::divergence::diverged;
use super::draws::{Draws, PlainSites, StepKeys};
use super::elbo::Elbo;
use super::network::Network;
use super::projection::Constraint;
use super::site_adam::SiteAdam;
use super::svi_config::{CheckpointPlan, StepReport, Stop, SviConfig, Watch};
use super::{BayesError, Bayesian};
use crate::data::{BatchOrder, ExamplesError};
use crate::task::TrainingSet;
use crate::train::FusedAdam;

/// A training run.
///
/// ```
/// use std::ops::ControlFlow;
/// use circulant::data::LabelledData;
/// use circulant::bayes::{BayesianConfig, Svi, SviConfig};
/// use circulant::models::{HiddenKind, ImageClassifierConfig};
///
/// let device = circulant::cpu().autodiff();
/// let model = ImageClassifierConfig::new(HiddenKind::SpectralCirculant).init(&device);
/// let config = BayesianConfig::new();
/// let data = LabelledData::new(vec![0.5; 4 * 784], [4, 1, 28, 28], &[0, 1, 2, 3], 10, &device)?;
/// let mut svi = Svi::new(config.init(model)?, SviConfig::new().with_steps(3), data.examples())?;
/// svi.fit(&data, None, |report| {
///     println!("step {}: loss {:.3}, data {:.3}, KL {:.3}", report.step, report.loss, report.data, report.kl);
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(svi.steps_done(), 3);
/// # Ok::<(), circulant::bayes::BayesError>(())
/// ```
pub struct Svi<M> {
    /// Only absent while the optimiser has it.
    network: Option<Bayesian<M>>,
    pub(super) optimizer: ModuleOptimizer,
    /// Moves what is off the tape, if the optimiser is our own.
    pub(super) site_adam: Option<SiteAdam>,
    pub(super) config: SviConfig,
    /// The learning rate that the run began with.
    initial_rate: f64,
    elbo: Elbo,
    pub(super) projection: Option<Constraint<M>>,
    pub(super) step: u64,
    pub(super) watch: Watch,
}

impl<M: Network> std::fmt::Debug for Svi<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Svi")
            .field("step", &self.step)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl<M: Network> Svi<M> {
    /// Training with Adam on `examples` examples. The network must be on an autodiff device.
    pub fn new(
        network: Bayesian<M>,
        config: SviConfig,
        examples: usize,
    ) -> Result<Self, BayesError> {
        let adam = FusedAdam::default();
        let mut svi = Self::with_optimizer(network, adam.init(), config, examples)?;
        svi.site_adam = Some(SiteAdam::new(svi.network(), adam));
        Ok(svi)
    }

    /// Training with any optimiser of Burn, with its own gradient clipping if it has one.
    pub fn with_optimizer(
        network: Bayesian<M>,
        optimizer: ModuleOptimizer,
        config: SviConfig,
        examples: usize,
    ) -> Result<Self, BayesError> {
        let setting = |what, expected, got: String| {
            Err(BayesError::Setting {
                what,
                expected,
                got,
            })
        };
        if !(config.learning_rate > 0.0 && config.learning_rate.is_finite()) {
            let got = config.learning_rate.to_string();
            return setting("the learning rate", "positive and finite", got);
        }
        if let Some(share) = config.final_rate
            && !(0.0..=1.0).contains(&share)
        {
            return setting(
                "the final learning rate",
                "a share from 0 to 1",
                share.to_string(),
            );
        }
        if !network.device().is_autodiff() {
            let got = format!("{:?}", network.device());
            return setting(
                "the device of the network",
                "an autodiff device (`device.autodiff()`)",
                got,
            );
        }
        if config.batch == 0 {
            return Err(BayesError::Empty { what: "the batch" });
        }
        let elbo = Elbo::new(examples)?
            .with_samples(config.samples)?
            .with_kl_weight(config.kl_weight)?;
        Ok(Self {
            network: Some(network),
            optimizer,
            site_adam: None,
            initial_rate: config.learning_rate,
            config,
            elbo,
            projection: None,
            step: 0,
            watch: Watch::START,
        })
    }

    /// The posterior as it is.
    pub fn network(&self) -> &Bayesian<M> {
        self.network.as_ref().expect("only the optimiser takes it")
    }

    /// The posterior, at the end of training.
    pub fn into_network(self) -> Bayesian<M> {
        self.network.expect("only the optimiser takes it")
    }

    pub(super) fn set_network(&mut self, network: Bayesian<M>) {
        self.network = Some(network);
    }

    /// Steps so far.
    pub fn steps_done(&self) -> u64 {
        self.step
    }

    /// The number of training examples, `N`.
    pub fn examples(&self) -> usize {
        self.elbo.examples()
    }

    /// The settings.
    pub fn config(&self) -> &SviConfig {
        &self.config
    }

    /// The settings that the run began with, as JSON.
    pub(super) fn initial_settings(&self) -> String {
        let settings = self.config.clone();
        settings.with_learning_rate(self.initial_rate).to_string()
    }

    /// Another learning rate from the next step on, for schedules. A checkpoint does not have it: set it again after resuming.
    pub fn set_learning_rate(&mut self, learning_rate: f64) {
        self.config.learning_rate = learning_rate;
    }

    /// One gradient step on a batch of `batch` examples; `log_likelihood` gives the sum of `log p(y|x, theta)` over
    /// the batch, `[1]`, for a network of drawn parameters. Any likelihood will do.
    ///
    /// A loss that is not finite is an error and changes nothing. A projection that fails is an error too; the step itself is done by then.
    pub fn step(
        &mut self,
        batch: usize,
        log_likelihood: impl Fn(&M) -> Tensor<1>,
    ) -> Result<StepReport, BayesError> {
        let draws = self.draw();
        let data = draws.sum(|model| log_likelihood(model).neg());
        let nothing = StepKeys::new(self.network(), Vec::new());
        let (report, plain) = self.descend(draws, data, batch, &nothing)?;
        self.settle(&plain);
        Ok(report)
    }

    /// What the next step draws.
    fn draw(&self) -> Draws<M> {
        let keys = self.keys(self.step);
        self.draws(PlainSites::new(self.network(), &keys), keys)
    }

    /// The names of a step's random numbers.
    fn keys(&self, step: u64) -> StepKeys {
        StepKeys::new(self.network(), self.elbo.noises(self.config.seed, step))
    }

    fn draws(&self, plain: PlainSites, keys: StepKeys) -> Draws<M> {
        Draws::new(self.network(), plain, keys, self.elbo.kl_weight(self.step))
    }

    /// The network takes over the values of posteriors that are ahead of it.
    fn settle(&mut self, plain: &PlainSites) {
        plain.settle(self.network.as_mut().expect("only the optimiser takes it"));
    }

    /// A step down the gradient; `data` is the negative log likelihood, summed over the batch and the draws. Returns the
    /// posteriors off the tape with the draws of `next`; the network lags behind until it is settled. After an error it is not behind.
    fn descend(
        &mut self,
        draws: Draws<M>,
        data: Tensor<1>,
        batch: usize,
        next: &StepKeys,
    ) -> Result<(StepReport, PlainSites), BayesError> {
        let (network, step) = (self.network(), self.step);
        let share = self.elbo.share(batch);
        let sum = data.clone().into_scalar::<f64>();
        let (rate, of_data) = (self.config.rate(step), data.backward());
        let (kl, mut gradients, moved) = match &self.site_adam {
            None => {
                let (kl, gradients) = draws.gradients(network, &of_data, share);
                (kl, gradients, Vec::new())
            }
            Some(adam) => {
                let settings = adam.settings(rate, step);
                draws.pull_back(network, &of_data, share, |site, q, gradients| {
                    adam.advance(site, q, gradients, settings, next)
                })
            }
        };
        let report = StepReport {
            step,
            loss: share * sum + kl,
            data: share * sum,
            kl,
        };
        if !report.loss.is_finite() {
            self.settle(&draws.plain);
            let network = self.network();
            for (site, moved) in moved {
                let posterior = &network.factors[site].posterior;
                posterior.register(moved.gradients.into_tensors(), &mut gradients);
            }
            return Err(diverged(network, &gradients, step));
        }
        if !gradients.is_empty() {
            let network = self.network.take().expect("put back at once");
            self.network = Some(self.optimizer.step(rate, network, gradients));
        }
        self.step += 1;
        self.watch.see(report.step, report.loss);
        if let Some(adam) = &mut self.site_adam {
            let plain = adam.take_over(moved);
            if !self.has_projection() {
                return Ok((report, plain));
            }
            self.settle(&plain);
        }
        self.project()?;
        Ok((report, PlainSites::new(self.network(), next)))
    }

    fn has_converged(&self) -> bool {
        let patience = self.config.patience;
        patience.is_some_and(|patience| self.step > self.watch.best_step + patience)
    }
}

impl<M: Network> Svi<M> {
    /// Trains on [`LabelledData`](crate::data::LabelledData), [`RegressionData`](crate::data::RegressionData) or any other [`TrainingSet`] until all steps are done, the loss no longer improves, or the callback asks to stop. May be
    /// called again, or after [`Self::resume`]: it continues where training stands.
    ///
    /// It runs on a thread of rayon's pool, the callback too: entering the pool for every operation of a step costs
    /// as much as a small step itself.
    pub fn fit<T: TrainingSet<M>>(
        &mut self,
        data: &T,
        checkpoints: Option<&CheckpointPlan>,
        callback: impl FnMut(&StepReport) -> ControlFlow<()> + Send,
    ) -> Result<Stop, BayesError> {
        rayon::scope(|_| self.fit_in_pool(data, checkpoints, callback))
    }

    fn fit_in_pool<T: TrainingSet<M>>(
        &mut self,
        data: &T,
        checkpoints: Option<&CheckpointPlan>,
        mut callback: impl FnMut(&StepReport) -> ControlFlow<()>,
    ) -> Result<Stop, BayesError> {
        if data.examples() != self.examples() {
            return Err(BayesError::Length {
                what: "the data set of this run",
                expected: self.examples(),
                got: data.examples(),
            });
        }
        let mut order = BatchOrder::new(self.config.seed, data.examples(), self.config.batch)?;
        let mut stop = Stop::Finished;
        let draws = self.draw();
        let in_place = draws.models.iter().all(T::reads_in_place);
        let batch = order.batch();
        let mut take = |step| data.batch(order.at(step), in_place);
        let mut ready = Ready {
            examples: take(self.step)?,
            draws,
        };
        while self.step < self.config.steps {
            let next = self.step + 1;
            let report;
            (report, ready) = self.fit_step(data, batch, ready, || take(next))?;
            if let Some(plan) = checkpoints
                && self.step.is_multiple_of(plan.every.max(1))
            {
                self.settle(&ready.draws.plain);
                self.save(&plan.path, data.fingerprint())?;
            }
            if callback(&report).is_break() {
                stop = Stop::Asked;
                break;
            }
            if self.has_converged() {
                stop = Stop::Converged;
                break;
            }
        }
        self.settle(&ready.draws.plain);
        if let Some(plan) = checkpoints {
            self.save(&plan.path, data.fingerprint())?;
        }
        Ok(stop)
    }

    /// One step, and what the next one starts from.
    fn fit_step<T: TrainingSet<M>>(
        &mut self,
        data: &T,
        batch: usize,
        Ready { examples, draws }: Ready<M, T::Batch>,
        next: impl FnOnce() -> Result<T::Batch, ExamplesError> + Send,
    ) -> Result<(StepReport, Ready<M, T::Batch>), BayesError> {
        let step = || {
            let examples = T::into_autodiff(examples);
            let loss = draws.sum(|model| data.negative_log_likelihood(model, examples.clone()));
            let keys = self.keys(self.step + 1);
            let descend = || self.descend(draws, loss, batch, &keys);
            let (done, examples) = rayon::join(descend, next);
            let (report, plain) = done?;
            let draws = self.draws(plain, keys);
            Ok::<_, BayesError>((report, draws, examples))
        };
        // Another thread is awake all the time: the parts of a step are shorter than what waking it takes.
        let (report, draws, examples) = join_awake(step, || ()).0?;
        match examples {
            Ok(examples) => Ok((report, Ready { examples, draws })),
            Err(error) => {
                // The step is done; the network must not lag behind it.
                self.settle(&draws.plain);
                Err(error.into())
            }
        }
    }
}

/// What a step starts from.
struct Ready<M, B> {
    examples: B,
    draws: Draws<M>,
}
