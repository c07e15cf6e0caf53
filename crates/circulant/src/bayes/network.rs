//! Any Burn network as a Bayesian one: a distribution over its parameters in place of numbers.
//!
//! The network is written once. [`BayesianConfig`] takes a network of numbers and puts a posterior in the place of every
//! parameter; [`Bayesian::sample`] gives back an ordinary network whose parameters are one draw, and through which
//! gradients flow to the posterior; [`Bayesian::mean`] gives the network at the posterior means.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use burn::module::{Module, ModuleDisplay, ModuleMapper, Param};
use burn::tensor::{Device, Shape, Tensor, TensorData};

use super::posterior::{
    AnyPosterior, INITIAL_DEVIATION, LowRankGaussian, MeanFieldGaussian, PointEstimate, Posterior,
};
use super::{BayesError, InitialDeviation, PosteriorKind, Prior, Site, SpectralPrior};
use crate::backend::fused::PlainGaussian;
use crate::nn::{to_host, with_values};
use crate::noise::{Noise, Purpose};
use crate::parameters::{FoundParameter, ParameterPath, trained_parameters, with_stable_ids};

/// What can be made Bayesian: every type with `#[derive(Module, Debug)]`.
pub trait Network: Module + ModuleDisplay {}

impl<M: Module + ModuleDisplay> Network for M {}

/// Which parameters of a network get which posterior and prior.
///
/// ```
/// use circulant::bayes::{BayesianConfig, Site};
/// use circulant::noise::{Noise, Purpose};
/// use circulant::models::{HiddenKind, ImageClassifierConfig};
///
/// let model = ImageClassifierConfig::new(HiddenKind::Dense).init(&circulant::cpu());
/// // Everything mean-field with a standard normal prior, except for the read-out's bias.
/// let network = BayesianConfig::new().with_site("output.bias", Site::deterministic()).init(model)?;
/// let one_draw = network.sample(Noise::new(7, Purpose::Prediction, 0, 0));
/// # let _ = one_draw;
/// // A parameter that does not exist is an error that names those that do.
/// let model = ImageClassifierConfig::new(HiddenKind::Dense).init(&circulant::cpu());
/// let error = BayesianConfig::new().with_site("outptu.bias", Site::default()).init(model).unwrap_err();
/// assert!(error.to_string().contains("output.bias"));
/// # Ok::<(), circulant::bayes::BayesError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct BayesianConfig {
    sites: BTreeMap<String, Site>,
    /// For everything that is not named; what [`Self::new`] says unless given.
    default: Option<Site>,
    point: bool,
    seed: u64,
}

/// A distribution over the networks `M`. Made by [`BayesianConfig`].
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

/// The posterior of one parameter, and of its prior's slope if that is learned.
#[derive(Module, Debug)]
pub struct Factor {
    /// Of the parameter.
    pub posterior: AnyPosterior,
    /// Of `z` with `alpha = softplus(z)`.
    pub slope: Option<MeanFieldGaussian>,
}

#[derive(Debug, Clone)]
pub(super) struct SiteDescription {
    pub(super) path: String,
    /// Which float parameter of the network it is, in the order of visits.
    pub(super) position: usize,
    shape: Shape,
    prior: PriorTensor,
}

#[derive(Debug, Clone)]
enum PriorTensor {
    /// `[1]` or `[d]`.
    Fixed(Box<Tensor<1>>),
    Learned(Box<SpectralPrior>),
}

/// `z` at the start: `alpha = softplus(z) = 1`, the paper's slope.
const INITIAL_SLOPE: f64 = 0.541_324_854_612_918_1;

impl BayesianConfig {
    /// The coordinates of spectral layers, wherever they are in the network, with a low-rank posterior and the spectral prior
    /// ([`Site::default_spectral`]); every other parameter mean-field with a standard normal prior.
    pub fn new() -> Self {
        Self::default()
    }

    /// The choice for the parameter at `path`, e.g. `"hidden.coordinates"`: the names of the fields, without those of
    /// enum variants, as in records.
    pub fn with_site(mut self, path: impl Into<String>, site: Site) -> Self {
        self.sites.insert(path.into(), site);
        self
    }

    /// The choice for all parameters that are not named, spectral or not.
    pub fn with_default(mut self, site: Site) -> Self {
        self.default = Some(site);
        self
    }

    /// The seed of the initial posterior.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The point estimate of the same model: every posterior a point, every prior as it is.
    pub fn into_point_estimate(mut self) -> Self {
        let sites = self.sites.values_mut().chain(&mut self.default);
        sites.for_each(Site::make_point);
        self.point = true;
        self
    }

    /// Puts posteriors in the place of the parameters of `model`, with their numbers as means. Frozen parameters
    /// (`no_grad`) and running statistics stay as they are.
    pub fn init<M: Network>(&self, model: M) -> Result<Bayesian<M>, BayesError> {
        let found = trained_parameters(&model);
        if let Some(path) = self
            .sites
            .keys()
            .find(|path| found.iter().all(|found| found.path != **path))
        {
            return Err(BayesError::UnknownParameter {
                path: path.clone(),
                known: found.into_iter().map(|found| found.path).collect(),
            });
        }
        let mut noise = Noise::new(self.seed, Purpose::Initial, 0, 0);
        let sizes = layer_sizes(&found);
        let (mut factors, mut sites) = (Vec::new(), Vec::new());
        for parameter in found {
            let site = &self.site(&parameter);
            // Every parameter has its stream, so that a choice for one leaves the others alone.
            let key = noise.next_key();
            if site.posterior == PosteriorKind::Deterministic {
                continue;
            }
            site.check(&parameter.path, parameter.values.len())?;
            let deviation = match site.initial_deviation {
                InitialDeviation::Absolute(deviation) => deviation,
                InitialDeviation::Relative(ratio) => {
                    let size = sizes[layer_of(&parameter.path)];
                    if size == 0.0 {
                        return Err(BayesError::NoSize {
                            path: parameter.path,
                        });
                    }
                    ratio * size
                }
            };
            factors.push(Factor::new(site, &parameter, deviation, key));
            sites.push(SiteDescription {
                prior: PriorTensor::new(&site.prior, &parameter.device),
                path: parameter.path,
                position: parameter.position,
                shape: parameter.shape,
            });
        }
        let mut empty = Replace::new(&sites, None);
        let skeleton = model.map(&mut empty);
        let network = Bayesian {
            skeleton,
            factors,
            sites: sites.into(),
        };
        Ok(with_stable_ids(network))
    }
}

impl BayesianConfig {
    fn site(&self, parameter: &FoundParameter) -> Site {
        let given = self.sites.get(&parameter.path).or(self.default.as_ref());
        given.cloned().unwrap_or_else(|| {
            let spectrum = parameter.spectrum.as_ref();
            let mut site = spectrum.map_or_else(Site::default, Site::default_spectral);
            if self.point {
                site.make_point();
            }
            site
        })
    }
}

impl Factor {
    fn new(
        site: &Site,
        parameter: &FoundParameter,
        deviation: f64,
        key: circulant_kernels::NoiseKey,
    ) -> Self {
        let (values, device) = (parameter.values.clone(), &parameter.device);
        let posterior = match site.posterior {
            PosteriorKind::LowRank { rank, jitter } => AnyPosterior::LowRank(LowRankGaussian::new(
                values, rank, deviation, jitter, key, device,
            )),
            PosteriorKind::MeanField => {
                AnyPosterior::MeanField(MeanFieldGaussian::new(values, deviation, device))
            }
            PosteriorKind::Point | PosteriorKind::Deterministic => {
                AnyPosterior::Point(PointEstimate::new(values, device))
            }
        };
        let learned = matches!(&site.prior, Prior::Spectral(prior) if prior.learned().is_some());
        let slope =
            learned.then(|| MeanFieldGaussian::new(vec![INITIAL_SLOPE], INITIAL_DEVIATION, device));
        Self { posterior, slope }
    }

    /// The posterior off the tape, if all of it has a closed form.
    pub(super) fn plain(&self) -> Option<PlainGaussian> {
        match &self.slope {
            None => self.posterior.plain(),
            Some(_) => None,
        }
    }

    /// `weight * KL` of the parameter and of the slope.
    fn kl(&self, prior: &PriorTensor, weight: f64, noise: &mut Noise) -> Tensor<1> {
        let prior = match (prior, &self.slope) {
            (PriorTensor::Fixed(variance), _) => variance.as_ref().clone(),
            (PriorTensor::Learned(prior), slope) => {
                let slope = slope.as_ref().expect("made together with the prior");
                let learned = prior.learned().expect("a learned prior");
                let z = slope.sample(noise.next_key());
                let device = z.device();
                let unit = Tensor::ones([1], &device);
                let kl = self.posterior.kl(learned.variances(z, &device), weight);
                return kl + slope.kl(unit, weight);
            }
        };
        self.posterior.kl(prior, weight)
    }
}

impl PriorTensor {
    fn new(prior: &Prior, device: &Device) -> Self {
        let tensor = |values: Vec<f64>| {
            let shape = [values.len()];
            Self::Fixed(Box::new(Tensor::from_data(
                TensorData::new(values, shape),
                device,
            )))
        };
        match prior {
            Prior::Normal { variance } => tensor(vec![*variance]),
            Prior::Diagonal(variances) => tensor(variances.clone()),
            Prior::Spectral(prior) if prior.learned().is_some() => {
                Self::Learned(Box::new(prior.clone()))
            }
            Prior::Spectral(prior) => tensor(prior.variances().to_vec()),
        }
    }
}

impl PriorTensor {
    fn variances(&self) -> Vec<f64> {
        match self {
            Self::Fixed(variance) => to_host(variance.as_ref().clone()),
            Self::Learned(prior) => prior.variances().to_vec(),
        }
    }
}

fn checksum(numbers: &[f64]) -> u32 {
    let bytes: Vec<u8> = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
    crc32fast::hash(&bytes)
}

impl<M: Network> Bayesian<M> {
    /// A network whose parameters are one draw from the posterior. Gradients flow through it to the posterior.
    pub fn sample(&self, mut noise: Noise) -> M {
        let values = self
            .factors
            .iter()
            .map(|factor| factor.posterior.sample(noise.next_key()))
            .collect();
        self.with_values(values)
    }

    /// A draw, and `weight` times the KL of the posterior from the prior, `[1]`. With a learned slope the KL is taken at
    /// a drawn slope.
    pub fn sample_with_kl(&self, mut noise: Noise, weight: f64) -> (M, Tensor<1>) {
        let sample = |factor: &Factor| factor.posterior.sample(noise.next_key());
        let values = self.factors.iter().map(sample).collect();
        let kl = (0..self.factors.len())
            .map(|site| self.site_kl(site, weight, &mut noise))
            .reduce(|total, kl| total + kl);
        let kl = kl.unwrap_or_else(|| Tensor::zeros([1], &self.device()));
        (self.with_values(values), kl)
    }

    /// `weight` times the KL of one parameter's posterior, `[1]`.
    pub(super) fn site_kl(&self, site: usize, weight: f64, noise: &mut Noise) -> Tensor<1> {
        self.factors[site].kl(&self.sites[site].prior, weight, noise)
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

    /// The network of these numbers, which have no history; gradients reach them and no further.
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

    /// What tells this network from another one whose posteriors happen to have as many numbers: paths, shapes and priors.
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
fn layer_of(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(layer, _)| layer)
}

/// The root mean square of the numbers of every layer.
fn layer_sizes(parameters: &[FoundParameter]) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::<String, (f64, usize)>::new();
    for FoundParameter { path, values, .. } in parameters {
        let (squares, count) = sums.entry(layer_of(path).to_owned()).or_default();
        *squares += values.iter().map(|value| value * value).sum::<f64>();
        *count += values.len();
    }
    let sizes = sums.into_iter();
    sizes
        .map(|(layer, (squares, count))| (layer, (squares / count as f64).sqrt()))
        .collect()
}

/// Multiplies what has no posterior in one layer, and notes the paths of all layers.
struct Scale<'a> {
    path: ParameterPath,
    sites: &'a [SiteDescription],
    visited: usize,
    below: &'a str,
    factor: f64,
    known: BTreeSet<String>,
}

impl ModuleMapper for Scale<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, container: &str) {
        self.path.exit(container);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let position = self.visited;
        self.visited += 1;
        let path = self.path.name();
        self.known.insert(layer_of(&path).to_owned());
        let has_posterior = self.sites.iter().any(|site| site.position == position);
        if has_posterior || layer_of(&path) != self.below {
            return param;
        }
        let values = to_host(param.val()).into_iter();
        with_values(&param, values.map(|value| value * self.factor).collect())
    }
}

/// Puts values, or empty tensors, in the place of the parameters of the sites.
pub(super) struct Replace<'a> {
    visited: usize,
    sites: std::iter::Peekable<std::slice::Iter<'a, SiteDescription>>,
    values: Option<std::vec::IntoIter<Tensor<1>>>,
    /// Whether the values begin a tape.
    leaves: bool,
}

impl<'a> Replace<'a> {
    pub(super) fn new(sites: &'a [SiteDescription], values: Option<Vec<Tensor<1>>>) -> Self {
        Self {
            visited: 0,
            sites: sites.iter().peekable(),
            values: values.map(Vec::into_iter),
            leaves: false,
        }
    }
}

impl ModuleMapper for Replace<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let position = self.visited;
        self.visited += 1;
        let Some(site) = self.sites.next_if(|site| site.position == position) else {
            return param;
        };
        match &mut self.values {
            None => param.map(|old| Tensor::empty([0; D], &old.device())),
            Some(values) => {
                let value = values.next().expect("one value per site");
                let value = match D {
                    // The same tensor: a reshape would be recorded for the backward pass.
                    1 => Tensor::from_dispatch(value.into_dispatch()),
                    _ => value.reshape(site.shape.clone()),
                };
                let value = if self.leaves {
                    Tensor::from_inner(value).require_grad()
                } else {
                    value
                };
                // Not a new parameter: it must stay as trainable as it was.
                param.map(|_| value)
            }
        }
    }
}
