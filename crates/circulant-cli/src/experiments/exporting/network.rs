//! The posterior of a run layer by layer, in plain numbers.

use std::collections::BTreeMap;

use anyhow::{bail, ensure};
use burn::module::Module;
use burn::tensor::Tensor;
use circulant::bayes::{AnyPosterior, Factor};
use circulant::models::{HiddenLayer, ImageClassifier, Likelihood};
use circulant_data::TableTask;
use circulant_edge::write::{WrittenGaussian, WrittenTarget};

use crate::experiments::loaded::LoadedRun;
use crate::experiments::regression::LoadedRegression;

/// What can be exported, for messages.
const KINDS: &str = "spectral circulant, block-circulant, spectral BCCB and dense hidden layers";

/// A linear map with its bias.
#[derive(Debug, Clone)]
pub struct PlainLayer {
    /// Which.
    pub map: PlainMap,
    /// Coordinates, or a matrix `[inputs, outputs]`.
    pub weights: WrittenGaussian,
    /// Of all outputs or one each.
    pub bias: WrittenGaussian,
}

/// Which linear map.
#[derive(Debug, Clone, PartialEq)]
pub enum PlainMap {
    /// Of signals.
    Circulant {
        /// Their length.
        length: usize,
        /// Kept bins.
        modes: usize,
    },
    /// Of images.
    Bccb {
        /// In and out.
        channels: [usize; 2],
        /// Height and width.
        grid: [usize; 2],
        /// Of the mask.
        cutoff: f64,
        /// Inputs and outputs: less than whole channels where those do not divide them.
        sizes: [usize; 2],
    },
    /// Of anything.
    Dense {
        /// Inputs and outputs.
        sizes: [usize; 2],
    },
}

/// What the outputs of a network are.
#[derive(Debug, Clone, Copy)]
pub enum Outcome {
    /// Logits of classes.
    Classes,
    /// A number in this unit.
    Value(WrittenTarget),
    /// A number, and a second output for the noise of an input.
    ValueWithNoise(WrittenTarget),
    /// The logarithm of the rate of a count.
    Count,
}

/// A network of layers with tanh between them.
#[derive(Debug, Clone)]
pub struct PlainNetwork {
    /// `[channels, height, width]`.
    pub image: [usize; 3],
    /// Classes; one for a number or a count.
    pub classes: usize,
    /// Their names, if they have any; of a regression the name of the target.
    pub class_names: Vec<String>,
    /// What the outputs are.
    pub outcome: Outcome,
    /// The last one is the read-out.
    pub layers: Vec<PlainLayer>,
    /// The network at the posterior's mean.
    pub mean: ImageClassifier,
}

impl PlainNetwork {
    /// The network of a run, or what cannot be exported.
    pub fn of(run: &LoadedRun) -> anyhow::Result<Self> {
        let facts = &run.folder.facts.data;
        let posteriors = Posteriors::of(run.network.posteriors(), "")?;
        let network = run.network.valid().mean();
        let names = facts.class_names.clone();
        Self::with(network, posteriors, facts.image(), facts.classes, names)
    }

    /// The network of a regression or of counts, or what cannot be exported.
    pub fn of_regression(run: &LoadedRegression) -> anyhow::Result<Self> {
        let schema = &run.schema;
        let network = run.network.valid().mean();
        let likelihood = network.likelihood();
        let mut posteriors = Posteriors::of(run.network.posteriors(), "layers.")?;
        let outcome = match (&schema.task, likelihood) {
            (TableTask::Counts { .. }, Likelihood::Poisson) => Outcome::Count,
            (TableTask::Regression { mean, deviation }, _) => {
                // Of the variances of the draws, which are lognormal, the mean.
                let logarithm = posteriors.take("noise")?;
                let variance = logarithm.deviation.first().map_or(0.0, |s| s * s);
                let noise = logarithm.mean.first().map(|mean| (mean + variance).exp());
                let target = WrittenTarget {
                    scale: *deviation as f32,
                    offset: *mean as f32,
                    noise: noise.unwrap_or(0.0) * *deviation as f32,
                };
                match likelihood {
                    Likelihood::GaussianPerInput => Outcome::ValueWithNoise(target),
                    _ => Outcome::Value(target),
                }
            }
            (task, _) => bail!(
                "{}: the network gives {likelihood:?}, which does not suit {task:?}; train the run again",
                run.folder.path().display()
            ),
        };
        let (image, names) = (run.folder.facts.data.image(), vec![schema.target.clone()]);
        let outputs = likelihood.outputs();
        let plain = Self::with(network.layers, posteriors, image, outputs, names)?;
        Ok(Self {
            classes: 1,
            outcome,
            ..plain
        })
    }

    fn with(
        mean: ImageClassifier,
        mut posteriors: Posteriors,
        image: [usize; 3],
        outputs: usize,
        class_names: Vec<String>,
    ) -> anyhow::Result<Self> {
        let mut inputs = image.iter().product();
        let mut layers = Vec::new();
        for (name, layer) in mean.hidden_layers() {
            let (map, weights) = match layer {
                HiddenLayer::SpectralCirculant(layer) => {
                    ensure!(
                        layer.d_in() == layer.d_out(),
                        "{name}: a layer between different sizes is not exported yet"
                    );
                    let modes = layer.layout().modes();
                    let length = layer.d_in();
                    (PlainMap::Circulant { length, modes }, "coordinates")
                }
                HiddenLayer::SpectralBccb(layer) => {
                    let plane = layer.layout();
                    let map = PlainMap::Bccb {
                        channels: layer.channels(),
                        grid: [plane.height(), plane.width()],
                        cutoff: plane.cutoff(),
                        sizes: layer.channels().map(|c| c * plane.height() * plane.width()),
                    };
                    (map, "coordinates")
                }
                HiddenLayer::BlockCirculant(layer) => {
                    // Channels of images of one row.
                    let map = PlainMap::Bccb {
                        channels: layer.blocks(),
                        grid: [1, layer.block()],
                        cutoff: layer.layout().cutoff(),
                        sizes: [layer.d_in(), layer.d_out()],
                    };
                    (map, "coordinates")
                }
                HiddenLayer::Dense(layer) => {
                    let sizes = layer.weight.shape().dims();
                    (PlainMap::Dense { sizes }, "weight")
                }
                other => bail!(
                    "{name} is a {:?} layer, expected {KINDS}; train a run of one of these kinds, for example with \
                     --model spectral-circulant",
                    other.kind()
                ),
            };
            let layer = PlainLayer {
                weights: posteriors.take(&format!("{name}.{weights}"))?,
                bias: posteriors.take(&format!("{name}.bias"))?,
                map,
            };
            inputs = layer.map.sizes()[1];
            layers.push(layer);
        }
        layers.push(PlainLayer {
            map: PlainMap::Dense {
                sizes: [inputs, outputs],
            },
            weights: posteriors.take("output.weight")?,
            bias: posteriors.take("output.bias")?,
        });
        Ok(Self {
            image,
            classes: outputs,
            class_names,
            outcome: Outcome::Classes,
            layers,
            mean,
        })
    }
}

/// Posteriors by the paths of their parameters.
struct Posteriors(BTreeMap<String, WrittenGaussian>);

impl Posteriors {
    /// All of a network, without this at the beginning of their paths.
    fn of<'a>(
        factors: impl Iterator<Item = (&'a str, &'a Factor)>,
        before: &str,
    ) -> anyhow::Result<Self> {
        let mut found = BTreeMap::new();
        for (stream, (path, factor)) in factors.enumerate() {
            let gaussian = written(&factor.posterior, stream as u16)?;
            let path = path.strip_prefix(before).unwrap_or(path);
            found.insert(path.to_owned(), gaussian);
        }
        Ok(Self(found))
    }

    fn take(&mut self, path: &str) -> anyhow::Result<WrittenGaussian> {
        match self.0.remove(path) {
            Some(gaussian) => Ok(gaussian),
            None => bail!("the parameter {path} has no posterior; train the run again"),
        }
    }
}

impl PlainMap {
    /// Values of an input and of an output.
    pub fn sizes(&self) -> [usize; 2] {
        match self {
            Self::Circulant { length, .. } => [*length; 2],
            Self::Bccb { sizes, .. } | Self::Dense { sizes } => *sizes,
        }
    }
}

fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    let data = tensor.into_data().convert::<f32>();
    data.try_into_vec().expect("converted to f32 just before")
}

fn written(posterior: &AnyPosterior, stream: u16) -> anyhow::Result<WrittenGaussian> {
    Ok(match posterior {
        AnyPosterior::Point(point) => WrittenGaussian {
            stream,
            ..WrittenGaussian::point(host(point.mean.val()))
        },
        AnyPosterior::MeanField(field) => WrittenGaussian {
            mean: host(field.mean.val()),
            deviation: deviations(&host(field.log_deviation.val()), 0.0),
            stream,
            ..WrittenGaussian::default()
        },
        AnyPosterior::LowRank(low) => {
            let (mut factor, scale) = (host(low.factor.val()), host(low.scale.val()));
            for row in factor.chunks_exact_mut(scale.len()) {
                row.iter_mut()
                    .zip(&scale)
                    .for_each(|(u, scale)| *u *= scale);
            }
            WrittenGaussian {
                mean: host(low.mean.val()),
                factor,
                deviation: deviations(&host(low.log_deviation.val()), low.jitter()),
                stream,
            }
        }
        _ => bail!("a posterior of an unknown kind; update this program"),
    })
}

fn deviations(logarithms: &[f32], jitter: f64) -> Vec<f32> {
    let deviation = |logarithm: &f32| (2.0 * f64::from(*logarithm)).exp() + jitter;
    let roots = logarithms.iter().map(deviation).map(f64::sqrt);
    roots.map(|deviation| deviation as f32).collect()
}
