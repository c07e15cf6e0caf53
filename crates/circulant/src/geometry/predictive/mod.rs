//! Certificates of what is actually predicted: the class with the largest probability in the average over posterior samples.
//!
//! Every sample `s` is a network with a Lipschitz bound `L_s`; `p_s` is its softmax. The difference of two of these probabilities,
//! `D = p_y - p_k`, changes with the logits at a rate of at most `(1 - D^2)/sqrt(2)`, which two classes attain (docs/mathematics.md, section 8). So
//! `D` is `1/sqrt(2)`-Lipschitz, and so is `artanh D`, which is sharper where `D` is not small:
//!
//! | radius | formula |
//! | --- | --- |
//! | [`PredictiveCertificate::average`] | `min over k of mean_s D_s / (mean_s L_s / sqrt(2))` |
//! | [`PredictiveCertificate::per_sample`] | the largest `r` with `mean_s tanh(artanh D_s - a_s r) > 0` for all `k` |
//!
//! with `a_s = L_s/sqrt(2)` or, where the last layer is dense with columns `W_k` behind a body of the bound `L'_s`, the half of
//! `L'_s max over j of (norm(W_y - W_j), norm(W_k - W_j))` if that is smaller. Where the logits alone tell more (`y` stays above `k` in a sample), that is used
//! too, and the second radius is never the smaller one.
//!
//! # The promise
//!
//! > The class of [`Predictions::classes_of_inputs`](crate::bayes::Predictions::classes_of_inputs) at `x'`, from these samples on the CPU, is `y`, for **every** f32 input `x'` with
//! > `norm(x' - x) <= r`, in every batch whose inputs all have norms of at most `input_norm`.
//!
//! With `e_s` of [`NetworkBound::rounding_error`], computed logits at `x` and `x'` differ by at most `L_s r + 2 e_s`, and the f32 softmax and average of
//! a probability are off by at most [`PredictiveCertificates::probability_rounding`]. Both are in the radii.

mod input;

use std::ops::Range;

use burn::config::Config;
use burn::module::Module;
use burn::tensor::Tensor;
use circulant_kernels::ensemble_statistics;
use rayon::prelude::*;

use self::input::{Input, Slacks, own_error};
use super::certificate::{MeasuredInputs, NumberTypes, checked_norm};
use super::exponential::{Softmax, below_exponential_of_minus};
use super::radii::{checked_classes, checked_labels, pair_constants};
use super::rounding::{UNIT, gamma};
use super::{GeometryError, Lipschitz, LowerBound, NetworkBound, Target, UpperBound};
use crate::bayes::Bayesian;
use crate::conformal::ProbabilityBounds;
use crate::noise::{Noise, Purpose};
use crate::parallel::Ranks;
use crate::task::{Classifier, Ensemble};

/// Which posterior samples are averaged, and for which inputs.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::bayes::BayesianConfig;
/// use circulant::geometry::{PredictiveBoundsConfig, Target};
/// use circulant::models::{HiddenKind, ImageClassifierConfig};
///
/// let device = circulant::cpu();
/// let model = ImageClassifierConfig::new(HiddenKind::SpectralCirculant).with_image([1, 1, 16]).with_classes(3);
/// let network = BayesianConfig::new().init(model.init(&device))?;
/// // The samples of a PredictiveConfig with the same number and seed.
/// let bounds = PredictiveBoundsConfig::new().with_samples(10).bound(&network)?;
/// let x = Tensor::<2>::ones([1, 16], &device);
/// let certificates = bounds.certify(x, Target::Predicted)?;
/// let first = certificates.inputs[0];
/// assert!(first.average <= first.per_sample);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Config, Debug)]
pub struct PredictiveBoundsConfig {
    /// Posterior samples.
    #[config(default = 50)]
    pub samples: usize,
    /// The seed of the samples.
    #[config(default = 0)]
    pub seed: u64,
    /// The largest norm of an input, the perturbed ones included; unless given, twice that of the largest input, and one.
    pub input_norm: Option<f64>,
    /// Inputs at a time.
    #[config(default = 256)]
    pub batch: usize,
}

/// The networks of posterior samples with their bounds.
pub struct PredictiveBounds<const D: usize> {
    config: PredictiveBoundsConfig,
    ensemble: Ensemble<D>,
    samples: Vec<SampleBound>,
}

/// One network.
struct SampleBound {
    network: NetworkBound,
    classes: usize,
    /// `L' norm(W_y - W_k)`, row-major, or `sqrt(2) L` where the last layer is not dense.
    pairs: Vec<UpperBound>,
    /// Of the logarithm of the odds of a class: the largest constant of a pair with it, or `sqrt(2) L`.
    odds: Vec<UpperBound>,
}

/// What is known about one input.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct PredictiveCertificate {
    /// The class that the radii are about.
    pub class: usize,
    /// The class with the largest probability in the f32 average; the first of equals.
    pub predicted: usize,
    /// The probability of `class` less the largest of the others.
    pub difference: f64,
    /// What is left of it in spite of rounding.
    pub certified_difference: LowerBound,
    /// The radius from the mean of the samples' Lipschitz bounds.
    pub average: LowerBound,
    /// The radius sample by sample, at least as large.
    pub per_sample: LowerBound,
}

impl PredictiveCertificate {
    /// Whether the predicted class is certain, at least at the input itself.
    pub fn is_certified(&self) -> bool {
        self.certified_difference.get() > 0.0 || self.per_sample.get() > 0.0
    }

    fn numbers(&self) -> [f64; 6] {
        [
            self.class as f64,
            self.predicted as f64,
            self.difference,
            self.certified_difference.get(),
            self.average.get(),
            self.per_sample.get(),
        ]
    }

    fn from_numbers(numbers: &[f64; 6]) -> Self {
        let [class, predicted, difference, bounds @ ..] = *numbers;
        let [certified_difference, average, per_sample] = bounds.map(LowerBound::new);
        Self {
            class: class as usize,
            predicted: predicted as usize,
            difference,
            certified_difference,
            average,
            per_sample,
        }
    }
}

/// The certificates of a batch of inputs and what they rest on.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PredictiveCertificates {
    /// One per input.
    pub inputs: Vec<PredictiveCertificate>,
    /// The mean of the Lipschitz bounds of the samples.
    pub lipschitz: UpperBound,
    /// The mean over samples of how far f32 logits can be from exact ones.
    pub rounding: UpperBound,
    /// How far an average of computed softmaxes can be from the exact one, per class.
    pub probability_rounding: UpperBound,
    /// The largest norm of an input in any batch for which the promise holds.
    pub input_norm: UpperBound,
    /// Whether every rounding error behind the radii is proven.
    pub is_proven: bool,
}

impl PredictiveBoundsConfig {
    /// Draws the networks and bounds each of them.
    pub fn bound<const D: usize, M: Classifier<D> + Lipschitz>(
        &self,
        network: &Bayesian<M>,
    ) -> Result<PredictiveBounds<D>, GeometryError> {
        self.bound_with_progress(network, |_, _| {})
    }

    /// [`Self::bound`] that calls `progress(done, all)` after every sample.
    pub fn bound_with_progress<const D: usize, M: Classifier<D> + Lipschitz>(
        &self,
        network: &Bayesian<M>,
        mut progress: impl FnMut(usize, usize),
    ) -> Result<PredictiveBounds<D>, GeometryError> {
        if self.samples == 0 {
            return Err(GeometryError::Setting {
                what: "the number of posterior samples",
                expected: "at least 1",
                got: 0.0,
            });
        }
        let network = network.valid();
        let (mut members, mut samples) = (Vec::new(), Vec::new());
        for sample in 0..self.samples {
            let member = network.sample(Noise::new(self.seed, Purpose::Prediction, 0, sample));
            NumberTypes::check(&member)?;
            samples.push(SampleBound::new(member.network_bound()?)?);
            members.push(member);
            progress(sample + 1, self.samples);
        }
        Ok(PredictiveBounds {
            config: self.clone(),
            ensemble: M::ensemble(members),
            samples,
        })
    }
}

impl SampleBound {
    fn new(network: NetworkBound) -> Result<Self, GeometryError> {
        let classes = network.outputs();
        let classes = classes.ok_or_else(|| GeometryError::Shape {
            what: "the last layer of the description",
            expected: "a linear layer, with one output per class".to_owned(),
            got: "another part".to_owned(),
        })?;
        let global = UpperBound::new(2.0).sqrt() * network.upper();
        let pairs = match network.read_out() {
            None => vec![global; classes * classes],
            Some(read_out) => {
                let pairs = pair_constants(&read_out).into_iter();
                pairs.map(|pair| pair.min(global)).collect()
            }
        };
        let largest = |row: &[UpperBound]| row.iter().fold(UpperBound::ZERO, |a, b| a.max(*b));
        Ok(Self {
            classes,
            odds: pairs.chunks_exact(classes.max(1)).map(largest).collect(),
            pairs,
            network: network.without_weights(),
        })
    }

    /// `2 a_s`: twice the Lipschitz constant of `artanh(p_y - p_k)`.
    fn twice_artanh(&self, y: usize, k: usize) -> f64 {
        self.odds[y].max(self.odds[k]).get()
    }
}

/// The errors of the samples' logits in one call.
struct Errors {
    input_norm: UpperBound,
    /// One per sample.
    logits: Vec<UpperBound>,
}

/// The f32 logits of a batch by all samples.
struct BatchLogits {
    rows: usize,
    classes: usize,
    /// `[samples, rows, classes]`.
    values: Vec<f32>,
}

impl BatchLogits {
    fn of(&self, sample: usize, row: usize) -> &[f32] {
        &self.values[(sample * self.rows + row) * self.classes..][..self.classes]
    }
}

impl<const D: usize> PredictiveBounds<D> {
    /// Certifies the averaged prediction at inputs `[n, ...]`.
    pub fn certify(
        &self,
        inputs: Tensor<D>,
        target: Target<'_>,
    ) -> Result<PredictiveCertificates, GeometryError> {
        self.certify_on(&Ranks::default(), inputs, target)
    }

    /// [`Self::certify`] on several ranks ([`crate::parallel`]): all of them call it with all inputs, each certifies whole batches of them,
    /// and all get everything, the same to the last bit as from a single process.
    pub fn certify_on(
        &self,
        ranks: &Ranks,
        inputs: Tensor<D>,
        target: Target<'_>,
    ) -> Result<PredictiveCertificates, GeometryError> {
        let batches = inputs.dims()[0].div_ceil(self.config.batch.max(1));
        let own = self.certify_batches(ranks.share(batches), inputs, target);
        if ranks.is_alone() {
            return own;
        }
        let own = ranks.agree(own)?;
        let numbers = own.inputs.iter().flat_map(PredictiveCertificate::numbers);
        let numbers = ranks.concatenate(numbers.collect())?;
        let rows = numbers.as_chunks().0;
        Ok(PredictiveCertificates {
            inputs: rows
                .iter()
                .map(PredictiveCertificate::from_numbers)
                .collect(),
            ..own
        })
    }

    /// With the certificates of some batches only.
    fn certify_batches(
        &self,
        share: Range<usize>,
        inputs: Tensor<D>,
        target: Target<'_>,
    ) -> Result<PredictiveCertificates, GeometryError> {
        let inputs = MeasuredInputs::new(inputs)?;
        let samples = &self.samples[..];
        let errors = self.errors(&inputs, 0.0)?;
        let classes = samples[0].classes;
        let rounding = gamma(
            classes + samples.len() + classes.ilog2() as usize + 14,
            UNIT,
        );
        let mean = |values: &mut dyn Iterator<Item = UpperBound>| {
            let sum: UpperBound = values.sum();
            sum / LowerBound::new(samples.len() as f64)
        };
        let slacks = Slacks {
            lipschitz: mean(&mut samples.iter().map(|sample| sample.network.upper())),
            rounding: mean(&mut errors.logits.iter().copied()),
            probability: UpperBound::new(rounding),
        };
        let mut found = Vec::with_capacity(inputs.norms.len());
        self.batches(share, &inputs, |start, logits| {
            let predicted = predicted(logits)?;
            let norms = &inputs.norms[start..][..logits.rows];
            let classes = match checked_labels(target, inputs.norms.len(), logits.classes)? {
                Some(labels) => &labels[start..][..logits.rows],
                None => &predicted,
            };
            let certificate = |row: usize| {
                let input = Input {
                    samples,
                    errors: &errors.logits,
                    logits: (0..samples.len()).map(|s| logits.of(s, row)).collect(),
                    softmax: (0..samples.len())
                        .map(|s| Softmax::new(logits.of(s, row)))
                        .collect(),
                    class: classes[row],
                    slacks: &slacks,
                };
                let room = (LowerBound::new(errors.input_norm.get()) - norms[row]).at_least_zero();
                input.certificate(predicted[row], room)
            };
            found.par_extend((0..logits.rows).into_par_iter().map(certificate));
            Ok(())
        })?;
        Ok(PredictiveCertificates {
            inputs: found,
            lipschitz: slacks.lipschitz,
            rounding: slacks.rounding,
            probability_rounding: slacks.probability,
            input_norm: errors.input_norm,
            is_proven: samples.iter().all(|sample| sample.network.is_proven()),
        })
    }

    /// Bounds of the f32 probabilities of [`Predictions`](crate::bayes::Predictions) at **every** f32 input within `radius` of each of these inputs `[n, ...]`, with the same promise about
    /// batches. For [`ConformalSets::robust_sets`](crate::conformal::ConformalSets::robust_sets).
    ///
    /// The logarithm of the odds of a class is `sqrt(2)`-Lipschitz in the logits, or `L' max_j norm(W_k - W_j)` in the input.
    pub fn probability_bounds(
        &self,
        inputs: Tensor<D>,
        radius: f64,
    ) -> Result<ProbabilityBounds, GeometryError> {
        if !(radius >= 0.0 && radius.is_finite()) {
            return Err(GeometryError::Setting {
                what: "the radius",
                expected: "0 or positive, and finite",
                got: radius,
            });
        }
        let inputs = MeasuredInputs::new(inputs)?;
        let samples = &self.samples[..];
        let errors = self.errors(&inputs, radius)?;
        let classes = samples[0].classes;
        let count = samples.len();
        let rounding =
            gamma(classes + count + classes.ilog2() as usize + 14, UNIT) + own_error(count);
        // Logits within `radius`, of which the rounding at both ends.
        let reach = |sample: usize, class: usize| {
            let bound = &samples[sample];
            let error = UpperBound::new(8.0).sqrt() * errors.logits[sample];
            (bound.odds[class] * UpperBound::new(radius) + error).get()
        };
        let mut bounds = ProbabilityBounds {
            classes,
            lower: Vec::new(),
            upper: Vec::new(),
        };
        let all = inputs.norms.len().div_ceil(self.config.batch.max(1));
        self.batches(0..all, &inputs, |_, logits| {
            let row = |row: usize| -> Vec<[f64; 2]> {
                let softmax = (0..count).map(|s| Softmax::new(logits.of(s, row)));
                let softmax: Vec<Softmax> = softmax.collect();
                let of_class = |class: usize| {
                    let mut sums = [0.0, 0.0];
                    for (sample, softmax) in softmax.iter().enumerate() {
                        let reach = reach(sample, class);
                        let low = softmax.below_odds(class) * below_exponential_of_minus(reach);
                        sums[0] += low / (1.0 + low);
                        let inverse = below_exponential_of_minus(reach) / softmax.above_odds(class);
                        sums[1] += 1.0 / (1.0 + inverse);
                    }
                    let [low, high] = sums.map(|sum| sum / count as f64);
                    [(low - rounding).max(0.0), (high + rounding).min(1.0)]
                };
                (0..classes).map(of_class).collect()
            };
            let rows: Vec<Vec<[f64; 2]>> = (0..logits.rows).into_par_iter().map(row).collect();
            for [low, high] in rows.into_iter().flatten() {
                bounds.lower.push(low);
                bounds.upper.push(high);
            }
            Ok(())
        })?;
        Ok(bounds)
    }

    /// The rounding errors of all samples for these inputs and what is within `radius` of them.
    fn errors(&self, inputs: &MeasuredInputs<D>, radius: f64) -> Result<Errors, GeometryError> {
        let farthest = inputs.largest() + UpperBound::new(radius);
        let input_norm = match self.config.input_norm {
            Some(norm) => checked_norm(norm, inputs, UpperBound::new(radius))?,
            None => UpperBound::new(2.0) * farthest + UpperBound::ONE,
        };
        let error = |sample: &SampleBound| {
            sample
                .network
                .rounding_error_of(input_norm, Some(inputs.size))
        };
        Ok(Errors {
            input_norm,
            logits: self.samples.iter().map(error).collect::<Result<_, _>>()?,
        })
    }

    /// Calls `work` with the index of the first input of every one of these batches, and the logits of all samples.
    fn batches(
        &self,
        share: Range<usize>,
        inputs: &MeasuredInputs<D>,
        mut work: impl FnMut(usize, &BatchLogits) -> Result<(), GeometryError>,
    ) -> Result<(), GeometryError> {
        let (all, batch, samples) = (
            inputs.norms.len(),
            self.config.batch.max(1),
            self.samples.len(),
        );
        let classes = self.samples[0].classes;
        for start in share.map(|index| index * batch) {
            let rows = batch.min(all - start);
            let logits = (self.ensemble)(inputs.tensor.clone().narrow(0, start, rows));
            let found = checked_classes(&logits.dims()[1..], rows)?;
            if found != classes {
                return Err(GeometryError::Shape {
                    what: "the last layer of the description",
                    expected: format!("one output per class, {found}"),
                    got: classes.to_string(),
                });
            }
            let logits = logits.into_data().convert::<f32>();
            let values = logits.try_to_vec::<f32>().expect("converted just before");
            let logits = BatchLogits {
                rows,
                classes,
                values,
            };
            debug_assert_eq!(logits.values.len(), samples * rows * classes);
            if let Some(position) = logits.values.iter().position(|value| !value.is_finite()) {
                let input = start + position / classes % rows;
                return Err(GeometryError::NotFiniteLogits { input });
            }
            work(start, &logits)?;
        }
        Ok(())
    }
}

/// The classes of the f32 average, as [`PredictiveConfig`](crate::bayes::PredictiveConfig) has them.
fn predicted(logits: &BatchLogits) -> Result<Vec<usize>, GeometryError> {
    let (rows, classes) = (logits.rows, logits.classes);
    let mut p = vec![0.0; rows * classes];
    let (mut predictive, mut expected) = (vec![0.0; rows], vec![0.0; rows]);
    ensemble_statistics(
        &logits.values,
        rows,
        classes,
        &mut p,
        &mut predictive,
        &mut expected,
    )?;
    let best =
        |row: &[f32]| (1..classes).fold(0, |best, k| if row[k] > row[best] { k } else { best });
    Ok(p.chunks_exact(classes).map(best).collect())
}
