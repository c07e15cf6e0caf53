//! Any Burn network as a Bayesian one: a distribution over its parameters in the place of fixed values.
//!
//! The network is written once. [`BayesianConfig`](super::BayesianConfig) takes a network of fixed values and puts a posterior in the place of every
//! parameter; [`Bayesian::sample`] gives back an ordinary network whose parameters are one draw, and through which
//! gradients flow to the posterior; [`Bayesian::mean`] gives the network at the posterior means.

use std::collections::BTreeSet;
use std::sync::Arc;

use burn::module::{Module, ModuleDisplay};
use burn::tensor::{Device, Shape, Tensor};

use super::BayesError;
use super::factor::{Factor, PriorTensor};
use super::normals::Normals;
use super::posterior::{AnyPosterior, FromNormals, Posterior};
use super::replace::{Replace, Scale};
use crate::noise::{Noise, NoiseKey};
use crate::parameters::ParameterPath;

/// What can be made Bayesian: every type with `#[derive(Module, Debug)]`.
pub trait Network: Module + ModuleDisplay {}

impl<M: Module + ModuleDisplay> Network for M {}

/// A distribution over the networks `M`. Made by [`BayesianConfig`](super::BayesianConfig).
///
/// It is a Burn module itself, so that optimisers, records and devices work as for any other. A posterior's tensors are named
/// after its parameter (`hidden.coordinates.posterior.mean`); deterministic parameters keep their names.
#[derive(Debug, Clone)]
pub struct Bayesian<M> {
    /// The network; where a parameter has a posterior, an empty tensor stands.
    pub(super) skeleton: M,
    /// One per parameter with a posterior, in the order in which Burn visits them.
    pub(super) factors: Vec<Factor>,
    pub(super) sites: Arc<[SiteDescription]>,
}

#[derive(Debug, Clone)]
pub(super) struct SiteDescription {
    pub(super) path: String,
    /// Which float parameter of the network it is, in the order of visits.
    pub(super) position: usize,
    pub(super) shape: Shape,
    pub(super) prior: PriorTensor,
}

fn checksum(numbers: &[f64]) -> u32 {
    let bytes: Vec<u8> = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
    crc32fast::hash(&bytes)
}

impl<M: Network> Bayesian<M> {
    /// A network whose parameters are one draw from the posterior. Gradients flow through it to the posterior.
    pub fn sample(&self, mut noise: Noise) -> M {
        let streams = self.streams(&mut noise).collect();
        let mut normals = Normals::new(streams, &self.device_of_factors());
        self.with_values(self.drawn(&mut normals))
    }

    /// The random numbers of a draw by parameter: their name, and how many.
    fn streams(&self, noise: &mut Noise) -> impl Iterator<Item = (NoiseKey, usize)> {
        let factors = self.factors.iter();
        factors.map(|factor| (noise.next_key(), factor.posterior.normals()))
    }

    fn drawn(&self, normals: &mut Normals) -> Vec<Tensor<1>> {
        let draw = |factor: &Factor| normals.draw(&factor.posterior);
        self.factors.iter().map(draw).collect()
    }

    /// That of [`Self::device`], if there are posteriors; it is looked up in the first one.
    pub(super) fn device_of_factors(&self) -> Device {
        match self.factors.first() {
            Some(factor) => factor.posterior.mean().device(),
            None => crate::cpu(),
        }
    }

    /// A draw, and `weight` times the KL of the posterior from the prior, `[1]`. With a learned slope the KL is taken at
    /// a drawn slope.
    pub fn sample_with_kl(&self, mut noise: Noise, weight: f64) -> (M, Tensor<1>) {
        let mut streams: Vec<_> = self.streams(&mut noise).collect();
        let learned = self.factors.iter().filter_map(Factor::slope_normals);
        streams.extend(learned.map(|count| (noise.next_key(), count)));
        let mut normals = Normals::new(streams, &self.device_of_factors());
        let values = self.drawn(&mut normals);
        let kl = (0..self.factors.len())
            .map(|site| self.site_kl(site, weight, &mut normals))
            .reduce(|total, kl| total + kl);
        let kl = kl.unwrap_or_else(|| Tensor::zeros([1], &self.device()));
        (self.with_values(values), kl)
    }

    /// `weight` times the KL of one parameter's posterior, `[1]`. A learned slope is the next draw of `normals`.
    pub(super) fn site_kl(&self, site: usize, weight: f64, normals: &mut Normals) -> Tensor<1> {
        self.factors[site].kl(&self.sites[site].prior, weight, normals)
    }

    /// The variances of the prior of one parameter, without a history.
    pub(super) fn fixed_prior(&self, site: usize) -> Tensor<1> {
        match &self.sites[site].prior {
            PriorTensor::Fixed(variances) => variances.as_ref().clone().inner(),
            PriorTensor::Learned(_) => unreachable!("a learned prior is never off the tape"),
        }
    }

    /// The network at the posterior means.
    pub fn mean(&self) -> M {
        self.with_values(
            self.factors
                .iter()
                .map(|factor| factor.posterior.mean())
                .collect(),
        )
    }

    fn with_values(&self, values: Vec<Tensor<1>>) -> M {
        let mut replace = Replace::new(&self.sites, Some(values));
        self.skeleton.clone().map(&mut replace)
    }

    /// The network of these values, which have no history; gradients reach them and no further.
    pub(super) fn with_leaves(&self, values: Vec<Tensor<1>>) -> M {
        let mut replace = Replace::new(&self.sites, Some(values));
        replace.leaves = true;
        self.skeleton.clone().map(&mut replace)
    }

    /// Paths and posteriors of the parameters that have one.
    pub fn posteriors(&self) -> impl Iterator<Item = (&str, &Factor)> {
        let paths = self.sites.iter().map(|site| site.path.as_str());
        paths.zip(&self.factors)
    }

    /// The distribution of networks whose parameters directly below a path (`output` for `output.weight` and `output.bias`) are
    /// multiplied by a positive factor, those without a posterior too. On a linear read-out this is a temperature: all logits
    /// are multiplied. A path without parameters is an error that names those that have some.
    pub fn with_scaled(mut self, below: &str, factor: f64) -> Result<Self, BayesError> {
        if !(factor > 0.0 && factor.is_finite()) {
            return Err(BayesError::NotPositive {
                what: "the factor",
                got: factor,
            });
        }
        let mut scale = Scale {
            path: ParameterPath::default(),
            sites: &self.sites,
            visited: 0,
            below,
            factor,
            known: BTreeSet::new(),
        };
        self.skeleton = self.skeleton.map(&mut scale);
        let known = scale.known;
        if !known.contains(below) {
            return Err(BayesError::UnknownLayer {
                path: below.to_owned(),
                known: known.into_iter().collect(),
            });
        }
        let sites = self.sites.iter().zip(&mut self.factors);
        let own = sites.filter(|(site, _)| layer_of(&site.path) == below);
        own.for_each(|(_, own)| own.posterior = own.posterior.scaled(factor));
        Ok(self)
    }

    /// The distribution of networks with a number added to all values of one parameter that has a posterior. On the logarithm of a
    /// noise it is a factor of the noise. A path without such a parameter is an error that names those there are.
    pub fn with_shifted(mut self, path: &str, by: f64) -> Result<Self, BayesError> {
        if !by.is_finite() {
            return Err(BayesError::Setting {
                what: "the number that is added",
                expected: "finite",
                got: by.to_string(),
            });
        }
        let site = self.site(path)?;
        let posterior = self.factors[site].posterior.clone();
        self.factors[site].posterior = posterior.shifted(by);
        Ok(self)
    }

    /// The distribution of networks with independent Gaussians of this deviation added to all values of one parameter that has a posterior.
    /// On the logarithm of a noise it gives predictions heavier tails: a mixture of Gaussians of several widths. A path without such a
    /// parameter is an error that names those there are.
    pub fn with_widened(mut self, path: &str, by: f64) -> Result<Self, BayesError> {
        if !(by > 0.0 && by.is_finite()) {
            return Err(BayesError::NotPositive {
                what: "the deviation that is added",
                got: by,
            });
        }
        let site = self.site(path)?;
        let posterior = self.factors[site].posterior.clone();
        self.factors[site].posterior = posterior.widened(by);
        Ok(self)
    }

    fn site(&self, path: &str) -> Result<usize, BayesError> {
        let found = self.sites.iter().position(|site| site.path == path);
        found.ok_or_else(|| BayesError::UnknownLayer {
            path: path.to_owned(),
            known: self.sites.iter().map(|site| site.path.clone()).collect(),
        })
    }

    /// The device of the parameters.
    ///
    /// # Panics
    ///
    /// Panics if the network has no parameters at all.
    pub fn device(&self) -> Device {
        self.devices()
            .into_iter()
            .next()
            .expect("a network has parameters")
    }

    /// Paths of the parameters that have a posterior, with a line about posterior and prior each.
    pub(crate) fn site_descriptions(&self) -> Vec<(String, String)> {
        let sites = self.sites.iter().zip(&self.factors);
        let describe = |(site, factor): (&SiteDescription, &Factor)| {
            let posterior = match &factor.posterior {
                AnyPosterior::LowRank(q) => {
                    format!("low-rank (rank {}, jitter {:e})", q.rank(), q.jitter())
                }
                AnyPosterior::MeanField(_) => "mean-field".to_owned(),
                AnyPosterior::Point(_) => "a point".to_owned(),
            };
            let slope = match &site.prior {
                PriorTensor::Fixed(_) => "",
                PriorTensor::Learned(_) => " of a learned slope",
            };
            let prior = site.prior.variances();
            let least = prior.iter().copied().fold(f64::INFINITY, f64::min);
            let largest = prior.iter().copied().fold(0.0, f64::max);
            let sum = checksum(&prior);
            let shape = site.shape.to_vec();
            let text = format!(
                "{posterior}, shape {shape:?}, prior{slope} of variances {least:.6} to {largest:.6} ({sum:08x})"
            );
            (site.path.clone(), text)
        };
        sites.map(describe).collect()
    }

    /// The jitter of every low-rank posterior.
    pub(super) fn jitter(&self) -> String {
        let jitter = |factor: &Factor| match &factor.posterior {
            AnyPosterior::LowRank(q) => Some(format!("{:e}", q.jitter())),
            _ => None,
        };
        let all: Vec<String> = self.factors.iter().filter_map(jitter).collect();
        all.join(", ")
    }

    /// What tells this network from another one whose posteriors happen to have as many values: paths, shapes and priors.
    pub(super) fn identity(&self) -> String {
        let describe = |site: &SiteDescription| {
            let sum = checksum(&site.prior.variances());
            format!("{} {:?} prior {sum:08x}", site.path, site.shape.to_vec())
        };
        let sites: Vec<String> = self.sites.iter().map(describe).collect();
        sites.join(", ")
    }
}

/// `hidden` of `hidden.weight`: parameters below it belong to one layer.
pub(super) fn layer_of(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(layer, _)| layer)
}
