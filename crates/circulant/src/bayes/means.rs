//! The posterior means as a network that can be changed: for projections onto a set of allowed networks.

use burn::module::{ModuleVisitor, Param};
use burn::tensor::Tensor;

use super::network::{Bayesian, Network, SiteDescription};
use super::posterior::AnyPosterior;
use super::replace::Replace;
use crate::nn::{to_host, with_values};

impl<M: Network> Bayesian<M> {
    /// Replaces the means of the posterior by those of `change(mean)`, and the parameters without a posterior by its parameters. Deviations
    /// and low-rank factors stay. If `change` fails, its error is returned and the network is lost with it; keep a clone to go back to.
    ///
    /// ```
    /// use circulant::bayes::BayesianConfig;
    /// use circulant::geometry::NormControl;
    /// use circulant::models::{HiddenKind, ImageClassifierConfig};
    ///
    /// let model = ImageClassifierConfig::new(HiddenKind::SpectralCirculant).init(&circulant::cpu());
    /// let network = BayesianConfig::new().init(model)?;
    /// let network = network.map_mean(|mut mean| {
    ///     mean.clip_norm(1.0)?;
    ///     Ok::<_, circulant::geometry::GeometryError>(mean)
    /// })?;
    /// # let _ = network;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map_mean<E>(self, change: impl FnOnce(M) -> Result<M, E>) -> Result<Self, E> {
        let changed = change(self.mean())?;
        let mut values = SiteValues {
            sites: &self.sites,
            visited: 0,
            found: Vec::with_capacity(self.sites.len()),
        };
        changed.visit(&mut values);
        let found = values.found;
        let mut factors = self.factors;
        for (factor, values) in factors.iter_mut().zip(found) {
            let mean = match &mut factor.posterior {
                AnyPosterior::LowRank(posterior) => &mut posterior.mean,
                AnyPosterior::MeanField(posterior) => &mut posterior.mean,
                AnyPosterior::Point(posterior) => &mut posterior.mean,
            };
            *mean = with_values(mean, values);
        }
        Ok(Self {
            skeleton: changed.map(&mut Replace::new(&self.sites, None)),
            factors,
            sites: self.sites,
        })
    }
}

/// The values of the parameters that have a posterior, in the order of the sites.
struct SiteValues<'a> {
    sites: &'a [SiteDescription],
    visited: usize,
    found: Vec<Vec<f64>>,
}

impl ModuleVisitor for SiteValues<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.sites.iter().any(|site| site.position == self.visited) {
            self.found.push(to_host(param.val()));
        }
        self.visited += 1;
    }
}
