//! What a training step draws from the posterior, and the way of the gradients back to it.
//!
//! A step draws values for every parameter, lets Burn differentiate the network of these values, and turns the gradients
//! of the values into those of the posterior. The first and the last part are closed formulas, so they stay off Burn's tape, for
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

use super::data_term::DataTerm;
use super::factor::Factor;
use super::network::{Bayesian, Network};
use super::normals::Normals;
use super::posterior::FromNormals;
use crate::backend::fused::{PlainGaussian, PlainGradients, PlainNoise};
use crate::nn::to_host;
use crate::noise::Noise;

/// The networks that one step draws.
pub(super) struct Draws<M> {
    pub(super) models: Vec<M>,
    pub(super) plain: PlainSites,
    /// In the order of their sites.
    taped: Vec<TapedDraws>,
    /// Of the KL, all draws together.
    weight: f64,
}

/// The draws of one parameter on a tape of its own.
struct TapedDraws {
    site: usize,
    values: Vec<Tensor<1>>,
    /// Weighted.
    kl: Tensor<1>,
}

/// The draws of one parameter off the tape.
pub(super) struct PlainDraws {
    q: PlainGaussian,
    noises: Vec<PlainNoise>,
    numbers: Vec<Tensor<1>>,
}

impl PlainDraws {
    /// One for every key.
    pub(super) fn new(q: PlainGaussian, keys: &[NoiseKey]) -> Self {
        let noises: Vec<PlainNoise> = keys.iter().map(|&key| q.noise(key)).collect();
        let numbers = noises.iter().map(|noise| q.draw(noise)).collect();
        Self { q, noises, numbers }
    }
}

/// The draws of all parameters off the tape; `None` for the others.
pub(super) struct PlainSites(pub(super) Vec<Option<PlainDraws>>);

impl PlainSites {
    /// All threads at once.
    pub(super) fn new<M: Network>(network: &Bayesian<M>, keys: &StepKeys) -> Self {
        let plain = network.factors.iter().map(Factor::plain);
        let plain: Vec<_> = plain.enumerate().collect();
        let draw = |(site, q): (usize, Option<PlainGaussian>)| {
            q.map(|q| PlainDraws::new(q, keys.of(site)))
        };
        Self(plain.into_par_iter().map(draw).collect())
    }

    /// The network takes over the values of these posteriors.
    pub(super) fn settle<M>(&self, network: &mut Bayesian<M>) {
        for (draws, factor) in self.0.iter().zip(&mut network.factors) {
            if let Some(draws) = draws {
                factor.posterior.set(draws.q.tensors());
            }
        }
    }
}

/// The random numbers of one step, by name: a key for every parameter and draw.
pub(super) struct StepKeys {
    noises: Vec<Noise>,
    sites: Vec<Vec<NoiseKey>>,
}

impl StepKeys {
    /// A draw for each of `noises`.
    pub(super) fn new<M>(network: &Bayesian<M>, mut noises: Vec<Noise>) -> Self {
        let keys = |_| noises.iter_mut().map(Noise::next_key).collect();
        let sites = (0..network.factors.len()).map(keys).collect();
        Self { noises, sites }
    }

    /// Of one parameter, draw by draw.
    pub(super) fn of(&self, site: usize) -> &[NoiseKey] {
        &self.sites[site]
    }
}

impl<M: Network> Draws<M> {
    /// `plain` was drawn with the same keys; the KL will be multiplied by `weight`.
    pub(super) fn new(
        network: &Bayesian<M>,
        plain: PlainSites,
        keys: StepKeys,
        weight: f64,
    ) -> Self {
        let mut noises = keys.noises;
        let draws = noises.len();
        let sites: Vec<usize> = (0..plain.0.len())
            .filter(|&site| plain.0[site].is_none())
            .collect();
        let mut streams = Vec::new();
        for &site in &sites {
            let factor = &network.factors[site];
            let count = factor.posterior.normals();
            streams.extend(keys.sites[site].iter().map(|&key| (key, count)));
            if let Some(count) = factor.slope_normals() {
                streams.extend(noises.iter_mut().map(|noise| (noise.next_key(), count)));
            }
        }
        let mut normals = Normals::new(streams, &network.device_of_factors());
        let mut draw_taped = |site: usize| {
            let posterior = &network.factors[site].posterior;
            let values = (0..draws).map(|_| normals.draw(posterior)).collect();
            let kl = (0..draws)
                .map(|_| network.site_kl(site, weight / draws as f64, &mut normals))
                .reduce(|total, kl| total + kl);
            TapedDraws {
                site,
                values,
                kl: kl.expect("at least one draw"),
            }
        };
        let taped: Vec<TapedDraws> = sites.into_iter().map(&mut draw_taped).collect();
        let model = |draw: usize| {
            let mut taped = taped.iter();
            let numbers = plain.0.iter().map(|plain| match plain {
                Some(plain) => plain.numbers[draw].clone(),
                None => {
                    let taped = taped.next().expect("every site is one or the other");
                    taped.values[draw].clone().inner()
                }
            });
            network.with_leaves(numbers.collect())
        };
        Self {
            models: (0..draws).map(model).collect(),
            plain,
            taped,
            weight,
        }
    }

    /// The sum over the draws.
    pub(super) fn sum(&self, loss: impl Fn(&M) -> Tensor<1>) -> Tensor<1> {
        let terms = self.models.iter().map(loss);
        let sum = terms.reduce(|total, term| total + term);
        sum.expect("at least one draw")
    }

    /// The weighted KL, and the gradients of `share * data + KL`.
    pub(super) fn gradients(
        &self,
        network: &Bayesian<M>,
        data: DataTerm,
        share: f64,
    ) -> (f64, GradientsParams) {
        let (kl, mut gradients, plain) =
            self.pull_back(network, data, share, |_, _, gradients| gradients);
        for (site, own) in plain {
            let posterior = &network.factors[site].posterior;
            posterior.register(own.into_tensors(), &mut gradients);
        }
        (kl, gradients)
    }

    /// The same, but those off the tape go to `plain`, with the number of the parameter and its posterior, on all threads; what it
    /// returns comes back, a parameter after the other.
    pub(super) fn pull_back<R: Send>(
        &self,
        network: &Bayesian<M>,
        data: DataTerm,
        share: f64,
        plain: impl Fn(usize, &PlainGaussian, PlainGradients) -> R + Sync,
    ) -> (f64, GradientsParams, Vec<(usize, R)>) {
        let DataTerm {
            mut of_numbers,
            others: mut gradients,
            ..
        } = data;
        for draws in &self.taped {
            let of_numbers = of_numbers[draws.site].drain(..);
            let passed_on = draws
                .values
                .iter()
                .zip(of_numbers)
                .map(|(value, gradient)| {
                    let gradient = Tensor::from_inner(gradient.mul_scalar(share));
                    (value.clone() * gradient).sum()
                });
            let total = passed_on.fold(draws.kl.clone(), |total, term| total + term);
            let mut collect = OfParameters {
                from: &total.backward(),
                into: &mut gradients,
            };
            network.factors[draws.site].visit(&mut collect);
        }
        let kl = self.taped_kl();
        let sites = self.plain.0.iter().zip(of_numbers).enumerate();
        let jobs: Vec<_> = sites
            .filter_map(|(site, (draws, of_numbers))| {
                Some((site, draws.as_ref()?, network.fixed_prior(site), of_numbers))
            })
            .collect();
        let weight = self.weight;
        let work = |(site, draws, prior, of_numbers): (usize, &PlainDraws, _, _)| {
            let PlainDraws { q, noises, .. } = draws;
            let (kl, gradients) = q.gradients(prior, weight, noises, of_numbers, share);
            (kl, (site, plain(site, q, gradients)))
        };
        let done: Vec<_> = jobs.into_par_iter().map(work).collect();
        let (kls, results): (Vec<f64>, _) = done.into_iter().unzip();
        let kl = kls.into_iter().fold(kl, |total, own| total + own);
        (kl, gradients, results)
    }
}

impl<M> Draws<M> {
    /// The weighted KL of all parameters on tapes, in one transfer.
    fn taped_kl(&self) -> f64 {
        if self.taped.is_empty() {
            return 0.0;
        }
        let kls = self.taped.iter().map(|draws| draws.kl.clone().inner());
        to_host(Tensor::cat(kls.collect(), 0)).into_iter().sum()
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

#[cfg(test)]
mod tests {
    use super::super::{BayesianConfig, Elbo, Site};
    use super::*;
    use crate::functional::cross_entropy;
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
            let keys = StepKeys::new(&network, elbo.noises(5, 3));
            let plain = PlainSites::new(&network, &keys);
            let draws = Draws::new(&network, plain, keys, elbo.kl_weight(3));
            let data = draws.sum(loss);
            let share = elbo.share(BATCH);
            let data = DataTerm::new(&network, &draws.models, Some(data), share);
            let (kl, found) = draws.gradients(&network, data, share);
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
