//! A whole training run: batches, steps, checkpoints between them, and when it ends.

use std::ops::ControlFlow;

use circulant_kernels::join_awake;

use super::data_term::Votes;
use super::draws::Draws;
use super::network::Network;
use super::svi_config::{CheckpointPlan, StepReport, Stop};
use super::{BayesError, Svi};
use crate::data::{BatchOrder, ExamplesError};
use crate::task::TrainingSet;

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
        callback: impl FnMut(&StepReport) -> ControlFlow<()>,
    ) -> Result<Stop, BayesError> {
        if data.examples() != self.examples() {
            return Err(BayesError::Length {
                what: "the data set of this run",
                expected: self.examples(),
                got: data.examples(),
            });
        }
        let mut order = BatchOrder::new(self.config.seed, data.examples(), self.config.batch)?;
        let batch = order.batch();
        self.ranks.ensure_shared(batch)?;
        self.compare_ranks(data.fingerprint(), checkpoints)?;
        let share = self.ranks.share(batch);
        let draws = self.draw();
        let in_place = draws.models.iter().all(T::reads_in_place);
        let mut take = |step| data.batch(&order.at(step)[share.clone()], in_place);
        let mut ready = Some(Ready {
            examples: take(self.step),
            draws,
        });
        let stop = self.fit_steps(data, batch, &mut ready, take, checkpoints, callback);
        if let Some(ready) = &ready {
            self.settle(&ready.draws.plain);
        }
        let stop = stop?;
        match checkpoints {
            Some(plan) => self.save(&plan.path, data.fingerprint())?,
            None => self.compare_parameters()?,
        }
        Ok(stop)
    }

    /// All steps. `ready` is empty only while a step has it, and when one failed or was not done; the network is not behind then.
    fn fit_steps<T: TrainingSet<M>>(
        &mut self,
        data: &T,
        batch: usize,
        ready: &mut Option<Ready<M, T::Batch>>,
        mut take: impl FnMut(u64) -> Result<T::Batch, ExamplesError> + Send,
        checkpoints: Option<&CheckpointPlan>,
        mut callback: impl FnMut(&StepReport) -> ControlFlow<()>,
    ) -> Result<Stop, BayesError> {
        let (mut asked, mut converged) = (false, false);
        loop {
            let finished = self.step >= self.config.steps;
            // Ranks tell each other with the gradients of the next step, unless there is none.
            if (finished || converged) && self.ranks.any(asked)? {
                return Ok(Stop::Asked);
            }
            if converged {
                return Ok(Stop::Converged);
            }
            if finished {
                return Ok(Stop::Finished);
            }
            let (start, next) = (ready.take().expect("put back after a step"), self.step + 1);
            let done = self.fit_step(data, batch, start, asked, || take(next))?;
            let Some(Done { report, next }) = done else {
                return Ok(Stop::Asked);
            };
            let next = ready.insert(next);
            if let Some(plan) = checkpoints
                && self.step.is_multiple_of(plan.every.max(1))
            {
                self.settle(&next.draws.plain);
                self.save(&plan.path, data.fingerprint())?;
            }
            asked = callback(&report).is_break();
            converged = self.has_converged();
        }
    }

    /// One step, and what the next one starts from; nothing if a rank was `asked` to stop before it.
    fn fit_step<T: TrainingSet<M>>(
        &mut self,
        data: &T,
        batch: usize,
        Ready { examples, draws }: Ready<M, T::Batch>,
        asked: bool,
        next: impl FnOnce() -> Result<T::Batch, ExamplesError> + Send,
    ) -> Result<Option<Done<M, T::Batch>>, BayesError> {
        let step = || {
            let (examples, own) = match examples {
                Ok(examples) => (Some(examples).filter(|_| !asked), Ok(())),
                Err(error) => (None, Err(BayesError::from(error))),
            };
            let votes = Votes {
                stop: asked.into(),
                failed: own.is_err().into(),
            };
            let loss = examples.map(|examples| {
                let examples = T::into_autodiff(examples);
                draws.sum(|model| data.negative_log_likelihood(model, examples.clone()))
            });
            let keys = self.keys(self.step + 1);
            let descend = || {
                let term = self.data_term(&draws, loss, batch, votes);
                let (term, votes) = term.inspect_err(|_| self.settle(&draws.plain))?;
                if votes != Votes::default() {
                    self.settle(&draws.plain);
                    if votes.failed > 0 {
                        self.ranks.agree(own)?;
                    }
                    return Ok(None);
                }
                self.descend(draws, term, batch, &keys).map(Some)
            };
            let (done, examples) = rayon::join(descend, next);
            let Some((report, plain)) = done? else {
                return Ok(None);
            };
            let draws = self.draws(plain, keys);
            let next = Ready { examples, draws };
            Ok(Some(Done { report, next }))
        };
        // Another thread is awake all the time: the parts of a step are shorter than what waking it takes.
        join_awake(step, || ()).0
    }
}

/// What a step starts from.
struct Ready<M, B> {
    /// An error counts when the step begins, so that the one before it is whole.
    examples: Result<B, ExamplesError>,
    draws: Draws<M>,
}

/// A step that was done.
struct Done<M, B> {
    report: StepReport,
    next: Ready<M, B>,
}
