//! Variational inference on several processes: what they compare, and when.

use super::network::Network;
use super::resume::identity;
use super::{BayesError, CheckpointPlan, Svi};
use crate::parallel::{Ranks, program_facts};
use crate::parameters::checksum;

impl<M: Network> Svi<M> {
    /// Trains on these ranks ([`crate::parallel`]): each takes its share of every batch. Every rank makes the same `Svi`, and calls the
    /// same methods of it.
    ///
    /// [`Self::fit`] compares data, settings and parameters of all ranks before its first step. Running statistics, such as those of batch
    /// norm, are of each rank's share; a checkpoint has those of rank 0.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use circulant::bayes::{BayesianConfig, Svi, SviConfig};
    /// use circulant::data::LabelledData;
    /// use circulant::models::{HiddenKind, ImageClassifierConfig};
    /// use circulant::parallel::{Alone, Ranks};
    ///
    /// let device = circulant::cpu().autodiff();
    /// let model = ImageClassifierConfig::new(HiddenKind::SpectralCirculant).init(&device);
    /// let network = BayesianConfig::new().init(model)?;
    /// let data = LabelledData::new(vec![0.5; 4 * 784], [4, 1, 28, 28], &[0, 1, 2, 3], 10, &device)?;
    /// let ranks = Ranks::new(Alone); // or your own `Communicator`
    /// let mut svi = Svi::new(network, SviConfig::new().with_steps(3), 4)?.with_ranks(ranks.clone());
    /// svi.fit(&data, None, |report| {
    ///     if ranks.is_first() {
    ///         println!("step {}: loss {:.3}", report.step, report.loss);
    ///     }
    ///     ControlFlow::Continue(())
    /// })?;
    /// # Ok::<(), circulant::bayes::BayesError>(())
    /// ```
    pub fn with_ranks(mut self, ranks: Ranks) -> Self {
        self.ranks = ranks;
        self
    }

    /// The ranks that it trains on.
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// An error on all ranks unless all are about to do the same.
    pub(super) fn compare_ranks(
        &self,
        data_fingerprint: u64,
        checkpoints: Option<&CheckpointPlan>,
    ) -> Result<(), BayesError> {
        if self.ranks.is_alone() {
            return Ok(());
        }
        let every = checkpoints.map(|plan| plan.every.to_string());
        let mut facts = program_facts();
        facts.extend(identity(self, data_fingerprint));
        facts.extend([
            ("the settings", self.config.to_string()),
            ("steps done", self.step.to_string()),
            (
                "steps between checkpoints",
                every.unwrap_or_else(|| "none".to_owned()),
            ),
        ]);
        self.ranks.compare(&facts)?;
        self.compare_parameters()
    }

    /// An error on all ranks unless the parameters are the same everywhere: they cannot drift apart unseen.
    pub(super) fn compare_parameters(&self) -> Result<(), BayesError> {
        if self.ranks.is_alone() {
            return Ok(());
        }
        let sum = format!("{:08x}", checksum(self.network()));
        Ok(self.ranks.compare(&[("the parameters", sum)])?)
    }
}
