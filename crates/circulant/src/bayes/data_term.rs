//! The data term of a step, `-sum log p(y|x, theta)` over batch and draws, with its gradients; summed over all ranks.

use burn::module::{ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Gradients, Tensor};

use super::network::{Bayesian, Network, SiteDescription};
use crate::parallel::{CommunicationError, Part, Ranks, register, sum_parts, trained_parts};

/// What the data say in one step.
pub(super) struct DataTerm {
    /// Summed over the batch and the draws.
    pub(super) sum: f64,
    /// The gradients of the drawn values by site, draw after draw.
    pub(super) of_numbers: Vec<Vec<Tensor<1>>>,
    /// Those of the parameters without a posterior, times the share of an example.
    pub(super) others: GradientsParams,
}

/// What a rank tells the others beside its gradients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Votes {
    /// How many ranks were asked to stop.
    pub(super) stop: usize,
    /// How many have failed.
    pub(super) failed: usize,
}

impl DataTerm {
    /// Of the networks of a step; nothing if there is no loss. `share` is the weight of an example.
    pub(super) fn new<M: Network>(
        network: &Bayesian<M>,
        models: &[M],
        loss: Option<Tensor<1>>,
        share: f64,
    ) -> Self {
        let value = loss.as_ref().map(|loss| loss.clone().inner());
        let of_data = loss.map(|loss| loss.backward());
        let mut others = GradientsParams::new();
        let mut of_numbers: Vec<Vec<Tensor<1>>> =
            network.sites.iter().map(|_| Vec::new()).collect();
        for (draw, model) in models.iter().enumerate() {
            let mut collect = OfNumbers {
                of_data: of_data.as_ref(),
                sites: &network.sites,
                visited: 0,
                site: 0,
                of_numbers: &mut of_numbers,
                // Parameters without a posterior are the same in all draws.
                others: (draw == 0).then_some((&mut others, share)),
            };
            model.visit(&mut collect);
        }
        Self {
            // Last: a device has all of the work by now, and works while we wait.
            sum: value.map_or(0.0, |value| value.into_scalar::<f64>()),
            of_numbers,
            others,
        }
    }

    /// The same summed over all ranks, and the sum of their votes. `model` is any of the drawn networks.
    pub(super) fn sum_over<M: Network>(
        &mut self,
        ranks: &Ranks,
        network: &Bayesian<M>,
        model: &M,
        votes: Votes,
    ) -> Result<Votes, CommunicationError> {
        let is_drawn = |position| {
            let mut sites = network.sites.iter();
            sites.any(|site: &SiteDescription| site.position == position)
        };
        let numbers = self.of_numbers.iter_mut().flat_map(|site| site.drain(..));
        let mut parts: Vec<Part> = numbers
            .map(|gradient| Part::new(&gradient.clone(), Some(gradient)))
            .collect();
        let drawn = parts.len();
        parts.extend(trained_parts(model, &self.others, is_drawn));
        let mut tail = [self.sum, votes.stop as f64, votes.failed as f64];
        sum_parts(ranks, &mut parts, &mut tail)?;
        let others = parts.split_off(drawn);
        let draws = drawn / network.sites.len().max(1);
        let mut summed = parts.into_iter().filter_map(|part| part.gradient);
        for site in &mut self.of_numbers {
            site.extend(summed.by_ref().take(draws));
        }
        register(model, others, is_drawn, &mut self.others);
        let [sum, stop, failed] = tail;
        self.sum = sum;
        Ok(Votes {
            stop: stop as usize,
            failed: failed as usize,
        })
    }
}

/// Collects the gradients of drawn values by site, and those of the other parameters.
struct OfNumbers<'a> {
    of_data: Option<&'a Gradients>,
    sites: &'a [SiteDescription],
    visited: usize,
    site: usize,
    of_numbers: &'a mut [Vec<Tensor<1>>],
    /// Where they go, and what they are multiplied by.
    others: Option<(&'a mut GradientsParams, f64)>,
}

impl ModuleVisitor for OfNumbers<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let position = self.visited;
        self.visited += 1;
        let tensor = param.val();
        let gradient = self.of_data.and_then(|of_data| tensor.grad(of_data));
        let next = self.sites.get(self.site);
        if next.is_some_and(|site| site.position == position) {
            // A parameter that the data term does not depend on.
            let gradient = gradient.unwrap_or_else(|| tensor.inner().zeros_like());
            let count = gradient.shape().num_elements();
            self.of_numbers[self.site].push(gradient.reshape([count]));
            self.site += 1;
        } else if let (Some((into, share)), Some(gradient)) = (&mut self.others, gradient) {
            into.register(param.id, gradient.mul_scalar(*share));
        }
    }
}
