//! Stochastic variational inference: gradient steps on the negative ELBO (algorithm 2 of the paper).

use burn::optim::ModuleOptimizer;
use burn::tensor::Tensor;

use super::data_term::{DataTerm, Votes};
use super::divergence::diverged;
use super::draws::{Draws, PlainSites, StepKeys};
use super::elbo::Elbo;
use super::network::Network;
use super::projection::Constraint;
use super::site_adam::SiteAdam;
use super::svi_config::{StepReport, SviConfig, Watch};
use super::{BayesError, Bayesian};
use crate::parallel::{ParallelError, Ranks};
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
    pub(super) ranks: Ranks,
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
            ranks: Ranks::default(),
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
    ///
    /// On several ranks `batch` is the size of the whole batch, and every rank's `log_likelihood` sums over its own share of it.
    pub fn step(
        &mut self,
        batch: usize,
        log_likelihood: impl Fn(&M) -> Tensor<1>,
    ) -> Result<StepReport, BayesError> {
        let draws = self.draw();
        let loss = draws.sum(|model| log_likelihood(model).neg());
        let nothing = StepKeys::new(self.network(), Vec::new());
        let (data, _) = self.data_term(&draws, Some(loss), batch, Votes::default())?;
        let (report, plain) = self.descend(draws, data, batch, &nothing)?;
        self.settle(&plain);
        Ok(report)
    }

    /// What the next step draws.
    pub(super) fn draw(&self) -> Draws<M> {
        let keys = self.keys(self.step);
        self.draws(PlainSites::new(self.network(), &keys), keys)
    }

    /// The names of a step's random numbers.
    pub(super) fn keys(&self, step: u64) -> StepKeys {
        StepKeys::new(self.network(), self.elbo.noises(self.config.seed, step))
    }

    pub(super) fn draws(&self, plain: PlainSites, keys: StepKeys) -> Draws<M> {
        Draws::new(self.network(), plain, keys, self.elbo.kl_weight(self.step))
    }

    /// The network takes over the values of posteriors that are ahead of it.
    pub(super) fn settle(&mut self, plain: &PlainSites) {
        plain.settle(self.network.as_mut().expect("only the optimiser takes it"));
    }

    /// The data term of all ranks, whose batches have `batch` examples together, and the sum of their votes.
    pub(super) fn data_term(
        &self,
        draws: &Draws<M>,
        loss: Option<Tensor<1>>,
        batch: usize,
        votes: Votes,
    ) -> Result<(DataTerm, Votes), BayesError> {
        let (network, share) = (self.network(), self.elbo.share(batch));
        let mut data = DataTerm::new(network, &draws.models, loss, share);
        if self.ranks.is_alone() {
            return Ok((data, votes));
        }
        let votes = data.sum_over(&self.ranks, network, &draws.models[0], votes);
        Ok((data, votes.map_err(ParallelError::from)?))
    }

    /// A step down the gradient. Returns the
    /// posteriors off the tape with the draws of `next`; the network lags behind until it is settled. After an error it is not behind.
    pub(super) fn descend(
        &mut self,
        draws: Draws<M>,
        data: DataTerm,
        batch: usize,
        next: &StepKeys,
    ) -> Result<(StepReport, PlainSites), BayesError> {
        let (network, step) = (self.network(), self.step);
        let share = self.elbo.share(batch);
        let (rate, sum) = (self.config.rate(step), data.sum);
        let (kl, mut gradients, moved) = match &self.site_adam {
            None => {
                let (kl, gradients) = draws.gradients(network, data, share);
                (kl, gradients, Vec::new())
            }
            Some(adam) => {
                let settings = adam.settings(rate, step);
                draws.pull_back(network, data, share, |site, q, gradients| {
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

    pub(super) fn has_converged(&self) -> bool {
        let patience = self.config.patience;
        patience.is_some_and(|patience| self.step > self.watch.best_step + patience)
    }
}
