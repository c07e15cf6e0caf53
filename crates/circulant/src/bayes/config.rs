//! From a network of values to a Bayesian one: which parameter gets which posterior and prior.

use std::collections::BTreeMap;

use super::factor::PriorTensor;
use super::network::{Bayesian, Network, SiteDescription, layer_of};
use super::replace::Replace;
use super::{BayesError, Factor, InitialDeviation, PosteriorKind, Site};
use crate::noise::{Noise, Purpose};
use crate::parameters::{FoundParameter, trained_parameters, with_stable_ids};

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

    /// Puts posteriors in the place of the parameters of `model`, with their values as means. Frozen parameters
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

/// The root mean square of the values of every layer.
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
