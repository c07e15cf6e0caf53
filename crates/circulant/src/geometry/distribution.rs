//! The geometry of a posterior: norms, margins and radii over posterior samples and inputs.
//!
//! Every posterior sample is a network of its own, with its own bound and its own certificates; this page collects them. A certificate
//! is about one sampled network. It says nothing about the averaged probabilities of
//! [`PredictiveConfig`](crate::bayes::PredictiveConfig): their class can change although that of no single sample does at the
//! same place, and need not change where samples do.

use std::ops::Range;

use burn::config::Config;
use burn::module::Module;
use burn::tensor::Tensor;

use super::certificate::MeasuredInputs;
use super::{CertificateConfig, GeometryError, Lipschitz, Target};
use crate::bayes::Bayesian;
use crate::noise::{Noise, Purpose};
use crate::parallel::{ParallelError, Ranks};
use crate::task::Classifier;

/// Numbers in order, for means, quantiles and histograms.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    sorted: Vec<f64>,
}

/// Counts of equally wide bins.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// One more than there are counts.
    pub edges: Vec<f64>,
    /// Numbers in `[edge, next edge)`; the last bin has its upper edge too.
    pub counts: Vec<usize>,
    /// Infinite values, which are in no bin.
    pub infinite: usize,
}

impl Distribution {
    /// Sorts the values; there is at least one.
    pub(super) fn new(mut values: Vec<f64>) -> Self {
        debug_assert!(!values.is_empty(), "samples and inputs are checked before");
        values.sort_by(f64::total_cmp);
        Self { sorted: values }
    }

    /// All values, in ascending order.
    pub fn values(&self) -> &[f64] {
        &self.sorted
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.sorted.iter().sum::<f64>() / self.sorted.len() as f64
    }

    /// The standard deviation, with the number of values as divisor; infinite where a number is.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        if !mean.is_finite() {
            return f64::INFINITY;
        }
        let squares: f64 = self.sorted.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / self.sorted.len() as f64).sqrt()
    }

    /// The quantile at `probability` in `[0, 1]`, linear between neighbours.
    pub fn quantile(&self, probability: f64) -> f64 {
        let at = probability.clamp(0.0, 1.0) * (self.sorted.len() - 1) as f64;
        let (low, high) = (at.floor() as usize, at.ceil() as usize);
        let share = at - at.floor();
        let (low, high) = (self.sorted[low], self.sorted[high]);
        // Zero times an infinite neighbour is no number, nor is the difference of two.
        if share == 0.0 || low == high {
            return low;
        }
        low * (1.0 - share) + high * share
    }

    /// Counts in `bins` equally wide bins from the smallest to the largest finite number.
    pub fn histogram(&self, bins: usize) -> Histogram {
        let bins = bins.max(1);
        let finite = self.sorted.iter().filter(|value| value.is_finite());
        let finite: Vec<f64> = finite.copied().collect();
        let infinite = self.sorted.len() - finite.len();
        let low = finite.first().copied().unwrap_or(0.0);
        let high = finite.last().copied().unwrap_or(0.0);
        let width = (high - low) / bins as f64;
        let edges = (0..=bins)
            .map(|i| {
                if i == bins {
                    high
                } else {
                    low + width * i as f64
                }
            })
            .collect();
        let mut counts = vec![0; bins];
        for value in &finite {
            let bin = if width > 0.0 {
                (value - low) / width
            } else {
                0.0
            };
            counts[(bin as usize).min(bins - 1)] += 1;
        }
        Histogram {
            edges,
            counts,
            infinite,
        }
    }
}

/// How the geometry of a posterior is measured.
#[derive(Config, Debug)]
pub struct PosteriorGeometryConfig {
    /// Posterior samples. With the seed of a [`PredictiveConfig`](crate::bayes::PredictiveConfig) they are the same networks.
    #[config(default = 50)]
    pub samples: usize,
    /// The seed of the samples.
    #[config(default = 0)]
    pub seed: u64,
    /// The largest norm of an input, as in [`CertificateConfig`].
    pub input_norm: Option<f64>,
    /// Inputs at a time.
    #[config(default = 256)]
    pub batch: usize,
}

/// Distributions over posterior samples, and over all pairs of sample and input.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PosteriorGeometry {
    /// The Lipschitz bounds of the networks, one per sample.
    pub bounds: Distribution,
    /// Names and norms of the linear layers, one norm per sample.
    pub layers: Vec<(String, Distribution)>,
    /// The rounding error of the f32 logits, one per sample.
    pub rounding: Distribution,
    /// Margins, one per sample and input.
    pub margins: Distribution,
    /// The paper's radius, one per sample and input.
    pub paper: Distribution,
    /// The `sqrt(2)` radius, one per sample and input.
    pub sqrt_two: Distribution,
    /// The pairwise radius, one per sample and input, if the last layer is dense.
    pub last_layer: Option<Distribution>,
    /// The share of pairs whose class is certain in spite of rounding.
    pub certified_share: f64,
}

impl PosteriorGeometryConfig {
    /// Draws networks and certifies each of them at all inputs `[n, ...]`.
    pub fn measure<const D: usize, M: Classifier<D> + Lipschitz>(
        &self,
        network: &Bayesian<M>,
        inputs: Tensor<D>,
        target: Target<'_>,
    ) -> Result<PosteriorGeometry, GeometryError> {
        self.measure_with_progress(network, inputs, target, |_, _| {})
    }

    /// [`Self::measure`] that calls `progress(done, all)` after every sample.
    pub fn measure_with_progress<const D: usize, M: Classifier<D> + Lipschitz>(
        &self,
        network: &Bayesian<M>,
        inputs: Tensor<D>,
        target: Target<'_>,
        progress: impl FnMut(usize, usize),
    ) -> Result<PosteriorGeometry, GeometryError> {
        self.measure_on(&Ranks::default(), network, inputs, target, progress)
    }

    /// [`Self::measure_with_progress`] on several ranks ([`crate::parallel`]): all of them call it with all inputs, each certifies some of
    /// the networks, and all get everything, the same to the last bit as from a single process.
    pub fn measure_on<const D: usize, M: Classifier<D> + Lipschitz>(
        &self,
        ranks: &Ranks,
        network: &Bayesian<M>,
        inputs: Tensor<D>,
        target: Target<'_>,
        progress: impl FnMut(usize, usize),
    ) -> Result<PosteriorGeometry, GeometryError> {
        let share = ranks.share(self.samples);
        let own = ranks.agree(self.find(network, inputs, target, share, progress))?;
        Ok(own.gathered(ranks)?.into_geometry())
    }

    /// What a share of the samples give.
    fn find<const D: usize, M: Classifier<D> + Lipschitz>(
        &self,
        network: &Bayesian<M>,
        inputs: Tensor<D>,
        target: Target<'_>,
        share: Range<usize>,
        mut progress: impl FnMut(usize, usize),
    ) -> Result<Found, GeometryError> {
        if self.samples == 0 {
            return Err(GeometryError::Setting {
                what: "the number of posterior samples",
                expected: "at least 1",
                got: 0.0,
            });
        }
        let inputs = MeasuredInputs::new(inputs)?;
        let config = CertificateConfig {
            input_norm: self.input_norm,
            batch: self.batch,
            bands: 1,
        };
        let network = network.valid();
        let mut found = Found::default();
        let (first, all) = (share.start, share.len());
        for sample in share {
            let member = network.sample(Noise::new(self.seed, Purpose::Prediction, 0, sample));
            found.add(&config.certify_checked(&member, &inputs, target)?);
            progress(sample + 1 - first, all);
        }
        Ok(found)
    }
}

/// Numbers as they come.
#[derive(Default)]
struct Found {
    bounds: Vec<f64>,
    /// The names of the layers.
    layers: Vec<String>,
    /// Their norms, `[samples, layers]`.
    norms: Vec<f64>,
    rounding: Vec<f64>,
    margins: Vec<f64>,
    paper: Vec<f64>,
    sqrt_two: Vec<f64>,
    last_layer: Vec<f64>,
    certified: usize,
}

impl Found {
    fn add(&mut self, certificates: &super::Certificates) {
        self.bounds.push(certificates.network.upper().get());
        self.rounding.push(certificates.rounding.get());
        let layers = certificates.network.layers();
        self.layers.clear();
        for layer in layers {
            self.layers.push(layer.name().to_owned());
            self.norms.push(layer.norm().upper().get());
        }
        for certificate in &certificates.inputs {
            self.margins.push(certificate.margin);
            self.paper.push(certificate.paper.get());
            self.sqrt_two.push(certificate.sqrt_two.get());
            self.last_layer
                .extend(certificate.last_layer.map(super::LowerBound::get));
            self.certified += usize::from(certificate.is_certified());
        }
    }

    /// The numbers of all ranks, in the order of the samples.
    fn gathered(self, ranks: &Ranks) -> Result<Self, ParallelError> {
        if ranks.is_alone() {
            return Ok(self);
        }
        // A rank without a sample knows no names.
        let names = ranks.gather(self.layers.join("\n").into_bytes())?;
        let names = names.into_iter().find(|names| !names.is_empty());
        let names = String::from_utf8_lossy(&names.unwrap_or_default()).into_owned();
        let certified = ranks.concatenate(vec![self.certified])?;
        Ok(Self {
            bounds: ranks.concatenate(self.bounds)?,
            layers: names.lines().map(str::to_owned).collect(),
            norms: ranks.concatenate(self.norms)?,
            rounding: ranks.concatenate(self.rounding)?,
            margins: ranks.concatenate(self.margins)?,
            paper: ranks.concatenate(self.paper)?,
            sqrt_two: ranks.concatenate(self.sqrt_two)?,
            last_layer: ranks.concatenate(self.last_layer)?,
            certified: certified.into_iter().sum(),
        })
    }

    fn into_geometry(self) -> PosteriorGeometry {
        let pairs = self.margins.len() as f64;
        let count = self.layers.len();
        let norms = |layer: usize| {
            let own = self.norms.iter().skip(layer).step_by(count);
            Distribution::new(own.copied().collect())
        };
        let layers = self.layers.into_iter().enumerate();
        PosteriorGeometry {
            bounds: Distribution::new(self.bounds),
            layers: layers.map(|(layer, name)| (name, norms(layer))).collect(),
            rounding: Distribution::new(self.rounding),
            margins: Distribution::new(self.margins),
            paper: Distribution::new(self.paper),
            sqrt_two: Distribution::new(self.sqrt_two),
            last_layer: (!self.last_layer.is_empty()).then(|| Distribution::new(self.last_layer)),
            certified_share: self.certified as f64 / pairs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_known_numbers() {
        let numbers = Distribution::new(vec![3.0, 1.0, 2.0, 4.0]);
        assert_eq!(numbers.values(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!((numbers.mean(), numbers.quantile(0.5)), (2.5, 2.5));
        assert_eq!((numbers.quantile(0.0), numbers.quantile(1.0)), (1.0, 4.0));
        assert!((numbers.deviation() - 1.25_f64.sqrt()).abs() < 1e-15);
        let histogram = numbers.histogram(3);
        assert_eq!(histogram.edges, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(histogram.counts, [1, 1, 2]);
        // Bounds may be infinite.
        let infinity = f64::INFINITY;
        let numbers = Distribution::new(vec![infinity, 1.0, 2.0, infinity, infinity]);
        assert_eq!(numbers.quantile(0.25), 2.0);
        assert_eq!(numbers.quantile(0.3), infinity);
        assert_eq!(numbers.quantile(1.0), infinity);
        assert_eq!((numbers.mean(), numbers.deviation()), (infinity, infinity));
        let histogram = numbers.histogram(2);
        assert_eq!(histogram.edges, [1.0, 1.5, 2.0]);
        assert_eq!((histogram.counts, histogram.infinite), (vec![1, 1], 3));
        let numbers = Distribution::new(vec![infinity; 2]);
        assert_eq!(numbers.quantile(0.5), infinity);
        assert_eq!(numbers.histogram(1).counts, [0]);
        // Equal numbers have no width.
        let same = Distribution::new(vec![2.0; 5]).histogram(4);
        assert_eq!(same.counts, [5, 0, 0, 0]);
    }
}
