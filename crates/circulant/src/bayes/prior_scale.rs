//! How well the size of a prior fits: the evidence bound as a function of one factor `c^2` on all prior variances of a parameter,
//! `-(d/2) log c^2 - sum (mu^2 + sigma^2)/(2 c^2 tau^2)`, is largest at `c^2 = mean (mu^2 + sigma^2)/tau^2`.

use super::network::{Bayesian, Network};
use super::posterior::{AnyPosterior, Posterior};
use crate::nn::to_host;

impl<M: Network> Bayesian<M> {
    /// `c` of every parameter with a posterior, with its path: what its prior deviation would have to be multiplied by for the largest
    /// evidence bound of this posterior. 1 where the prior fits.
    pub fn prior_misfits(&self) -> Vec<(&str, f64)> {
        let sites = self.sites.iter().zip(&self.factors);
        let of = |(site, factor): (&super::network::SiteDescription, &super::Factor)| {
            let prior = site.prior.variances();
            let moments = second_moments(&factor.posterior);
            // One variance for all, or one each.
            let ratio = |(index, moment): (usize, &f64)| moment / prior[index.min(prior.len() - 1)];
            let sum: f64 = moments.iter().enumerate().map(ratio).sum();
            (sum / moments.len() as f64).sqrt()
        };
        sites.map(|pair| (pair.0.path.as_str(), of(pair))).collect()
    }
}

/// `mu^2 + sigma^2` of every value.
fn second_moments(posterior: &AnyPosterior) -> Vec<f64> {
    let mean = to_host(posterior.mean());
    let variances = match posterior {
        AnyPosterior::Point(_) => vec![0.0; mean.len()],
        AnyPosterior::MeanField(q) => {
            let deviations = to_host(q.log_deviation.val()).into_iter();
            deviations.map(|s| (2.0 * s).exp()).collect()
        }
        AnyPosterior::LowRank(q) => {
            let (factor, scale) = (to_host(q.factor.val()), to_host(q.scale.val()));
            let own = to_host(q.log_deviation.val()).into_iter();
            let rows = factor.chunks_exact(scale.len());
            let low_rank = |row: &[f64]| -> f64 {
                let terms = row.iter().zip(&scale);
                terms.map(|(u, lambda)| (u * lambda).powi(2)).sum()
            };
            let variance = |(s, row): (f64, &[f64])| (2.0 * s).exp() + q.jitter() + low_rank(row);
            own.zip(rows).map(variance).collect::<Vec<f64>>()
        }
    };
    let pairs = mean.iter().zip(variances);
    pairs
        .map(|(mean, variance)| mean * mean + variance)
        .collect()
}
