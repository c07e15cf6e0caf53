//! What a training step draws from the posterior, and the way of the gradients back to it.
//!
//! A step draws numbers for every parameter, lets Burn differentiate the network of these numbers, and turns the gradients
//! of the numbers into those of the posterior. The first and the last part are closed formulas, so they stay off Burn's tape, for
//! two reasons. An operation on the tape costs one or two microseconds, and these parts are dozens of operations. And all
//! threads may work on them: on the tape they must not, because burn-autodiff 0.22.1 loses a node when two threads record at
//! once (it looks up the graph of a node under one lock and writes to it under another; in between, the graph may have been
//! merged into a third one, and a later backward pass panics).
//!
//! What has no closed formula (a learned slope, a point estimate, another device) gets a small tape of its own.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Gradients, Tensor};
use circulant_kernels::NoiseKey;
use rayon::prelude::*;

use super::network::{Bayesian, Factor, Network, SiteDescription};
use super::noise::Noise;
use super::posterior::Posterior;
use crate::ops::fused::{NoiseShape, PlainGaussian, PlainNoise};

/// The networks that one step draws.
pub(super) struct Draws<M> {
    pub(super) models: Vec<M>,
    sites: Vec<SiteDraws>,
    /// Of the KL, all draws together.
    weight: f64,
}

/// The draws of one parameter.
enum SiteDraws {
    Plain {
        q: PlainGaussian,
        noises: Vec<PlainNoise>,
    },
    Taped {
        values: Vec<Tensor<1>>,
        /// Weighted.
        kl: Box<Tensor<1>>,
    },
}

/// The random numbers of one step. They do not depend on the posterior, so they can be made while the step before still
/// changes it.
pub(super) struct StepNoise {
    noises: Vec<Noise>,
    sites: Vec<SiteNoise>,
}

/// Those of one parameter, draw by draw.
enum SiteNoise {
    Plain(Vec<PlainNoise>),
    Taped(Vec<NoiseKey>),
}

/// What [`StepNoise`] needs to know about every parameter; `None` where the posterior is on the tape.
pub(super) fn noise_shapes<M: Network>(network: &Bayesian<M>) -> Vec<Option<NoiseShape>> {
    let shape = |factor: &Factor| factor.plain().map(|q| q.noise_shape());
    network.factors.iter().map(shape).collect()
}

impl StepNoise {
    /// A draw for each of `noises`.
    pub(super) fn new(shapes: &[Option<NoiseShape>], mut noises: Vec<Noise>) -> Self {
        let site = |shape: &Option<NoiseShape>| {
            let keys = noises.iter_mut().map(Noise::next_key);
            match shape {
                Some(shape) => SiteNoise::Plain(keys.map(|key| shape.noise(key)).collect()),
                None => SiteNoise::Taped(keys.collect()),
            }
        };
        let sites = shapes.iter().map(site).collect();
        Self { noises, sites }
    }
}

impl<M: Network> Draws<M> {
    /// Draws with a noise that was made for this network; the KL will be multiplied by `weight`.
    pub(super) fn new(network: &Bayesian<M>, noise: StepNoise, weight: f64) -> Self {
        let StepNoise {
            mut noises,
            sites: site_noises,
        } = noise;
        let draws = noises.len();
        let (mut numbers, mut sites) = (Vec::new(), Vec::new());
        for (site, noise) in site_noises.into_iter().enumerate() {
            let factor = &network.factors[site];
            let (own, site) = match noise {
                SiteNoise::Plain(noises) => {
                    let q = factor.plain().expect("as when its noise was made");
                    let own: Vec<Tensor<1>> = noises.iter().map(|noise| q.draw(noise)).collect();
                    (own, SiteDraws::Plain { q, noises })
                }
                SiteNoise::Taped(keys) => {
                    let sample = |key| factor.posterior.sample(key);
                    let values: Vec<Tensor<1>> = keys.into_iter().map(sample).collect();
                    let kl = noises
                        .iter_mut()
                        .map(|noise| network.site_kl(site, weight / draws as f64, noise))
                        .reduce(|total, kl| total + kl)
                        .expect("at least one draw");
                    let own = values.iter().map(|value| value.clone().inner()).collect();
                    let kl = Box::new(kl);
                    (own, SiteDraws::Taped { values, kl })
                }
            };
            numbers.push(own);
            sites.push(site);
        }
        let model = |draw: usize| {
            network.with_leaves(numbers.iter().map(|own| own[draw].clone()).collect())
        };
        Self {
            models: (0..draws).map(model).collect(),
            sites,
            weight,
        }
    }

    /// The sum over the draws.
    pub(super) fn sum(&self, loss: impl Fn(&M) -> Tensor<1>) -> Tensor<1> {
        let terms = self.models.iter().map(loss);
        let sum = terms.reduce(|total, term| total + term);
        sum.expect("at least one draw")
    }

    /// The weighted KL, and the gradients of `share * data + KL`, where `of_data` are those of the data term.
    pub(super) fn gradients(
        self,
        network: &Bayesian<M>,
        of_data: &Gradients,
        share: f64,
    ) -> (f64, GradientsParams) {
        let mut gradients = GradientsParams::new();
        let mut of_numbers: Vec<Vec<Tensor<1>>> = self.sites.iter().map(|_| Vec::new()).collect();
        for (draw, model) in self.models.iter().enumerate() {
            let mut collect = OfNumbers {
                of_data,
                sites: &network.sites,
                visited: 0,
                site: 0,
                of_numbers: &mut of_numbers,
                // Parameters without a posterior are the same in all draws.
                others: (draw == 0).then_some((&mut gradients, share)),
            };
            model.visit(&mut collect);
        }
        let mut kl = 0.0;
        let mut jobs = Vec::new();
        let sites = self.sites.into_iter().zip(of_numbers);
        for (index, (site, of_numbers)) in sites.enumerate() {
            match site {
                SiteDraws::Plain { q, noises } => {
                    let pairs = noises.into_iter().zip(of_numbers).collect();
                    jobs.push((index, q, network.fixed_prior(index), pairs));
                }
                SiteDraws::Taped { values, kl: own } => {
                    kl += own.clone().into_scalar::<f64>();
                    let own = *own;
                    let passed_on = values.into_iter().zip(of_numbers).map(|(value, gradient)| {
                        (value * Tensor::from_inner(gradient.mul_scalar(share))).sum()
                    });
                    let total = passed_on.fold(own, |total, term| total + term);
                    let mut collect = OfParameters {
                        from: &total.backward(),
                        into: &mut gradients,
                    };
                    network.factors[index].visit(&mut collect);
                }
            }
        }
        let weight = self.weight;
        let done: Vec<_> = jobs
            .into_par_iter()
            .map(|(index, q, prior, pairs)| (index, q.gradients(prior, weight, pairs, share)))
            .collect();
        for (index, (own, of_parameters)) in done {
            kl += own;
            let posterior = &network.factors[index].posterior;
            posterior.register(of_parameters, &mut gradients);
        }
        (kl, gradients)
    }
}

/// Collects the gradients of drawn numbers by site, and those of the other parameters.
struct OfNumbers<'a> {
    of_data: &'a Gradients,
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
        let gradient = tensor.grad(self.of_data);
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

/// Collects the gradients of a posterior's parameters.
struct OfParameters<'a> {
    from: &'a Gradients,
    into: &'a mut GradientsParams,
}

impl ModuleVisitor for OfParameters<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = param.val().grad(self.from) {
            self.into.register(param.id, gradient);
        }
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::super::{BayesianConfig, Elbo, Site};
    use super::*;
    use crate::functions::cross_entropy;
    use crate::models::{HiddenKind, ImageClassifier, ImageClassifierConfig};

    /// f32, relative to the largest entry of a gradient: sums of some dozens of terms.
    const TOLERANCE: f32 = 1e-5;
    const BATCH: usize = 4;

    /// Compares the gradients of every parameter, and counts them.
    struct Compare {
        found: GradientsParams,
        expected: GradientsParams,
        count: usize,
    }

    impl ModuleVisitor for Compare {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let expected = self.expected.get::<D>(param.id).expect("on the tape");
            let found = self.found.get::<D>(param.id).expect("off the tape");
            let size: f32 = expected.clone().abs().max().into_scalar();
            let gap: f32 = (found - expected).abs().max().into_scalar();
            assert!(gap <= TOLERANCE * size, "{gap} of {size}");
            assert!(size > 0.0);
            self.count += 1;
        }
    }

    /// All kinds of posteriors, two draws.
    #[test]
    fn gradients_are_those_of_the_tape() {
        let device = crate::cpu().autodiff();
        let config =
            ImageClassifierConfig::new(HiddenKind::SpectralCirculant).with_image([1, 3, 5]);
        let model = config.with_classes(3).init(&device);
        let layout = model.hidden.spectrum_layout().expect("spectral");
        let x = Tensor::<1, burn::tensor::Int>::arange(0..(BATCH * 15) as i64, &device).float();
        let x = x.mul_scalar(0.7).sin().reshape([BATCH, 1, 3, 5]);
        let loss = |model: &ImageClassifier| cross_entropy(model.forward(x.clone()), [0, 2, 1, 0]);
        let learned = Site::learned_slope(&layout, 0.5).expect("valid");
        for (hidden, parameters) in [
            (Site::default_spectral(&layout).with_rank(3), 8),
            (learned, 10),
            (Site::mean_field(0.5), 6),
            (Site::point(1.0), 5),
            (Site::deterministic(), 5),
        ] {
            let network = BayesianConfig::new()
                .with_site("hidden.coordinates", hidden)
                .with_site("hidden.bias", Site::point(2.0))
                .with_site("output.bias", Site::deterministic())
                .init(model.clone())
                .expect("valid");
            let elbo = Elbo::new(7).expect("valid").with_samples(2).expect("valid");
            let estimate = elbo.estimate(&network, BATCH, 5, 3, |model| loss(model).neg());
            let noise = StepNoise::new(&noise_shapes(&network), elbo.noises(5, 3));
            let draws = Draws::new(&network, noise, elbo.kl_weight(3));
            let data = draws.sum(loss);
            let (kl, found) = draws.gradients(&network, &data.backward(), elbo.share(BATCH));
            let expected: f64 = estimate.kl.into_scalar();
            assert!((kl - expected).abs() <= f64::from(TOLERANCE) * expected.abs());
            let expected = GradientsParams::from_grads(estimate.loss.backward(), &network);
            let mut compare = Compare {
                found,
                expected,
                count: 0,
            };
            network.visit(&mut compare);
            assert_eq!(compare.count, parameters);
        }
    }
}
