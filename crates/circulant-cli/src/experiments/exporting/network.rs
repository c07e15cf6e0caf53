//! The posterior of a run layer by layer, in plain numbers.

use std::collections::BTreeMap;

use anyhow::{bail, ensure};
use burn::module::Module;
use burn::tensor::Tensor;
use circulant::bayes::AnyPosterior;
use circulant::models::{HiddenLayer, ImageClassifier};
use circulant_edge::write::WrittenGaussian;

use crate::experiments::loaded::LoadedRun;

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
    },
    /// Of anything.
    Dense {
        /// Inputs and outputs.
        sizes: [usize; 2],
    },
}

/// A network of layers with tanh between them.
#[derive(Debug, Clone)]
pub struct PlainNetwork {
    /// `[channels, height, width]`.
    pub image: [usize; 3],
    /// Classes.
    pub classes: usize,
    /// Their names, if they have any.
    pub class_names: Vec<String>,
    /// The last one is the read-out.
    pub layers: Vec<PlainLayer>,
    /// The network at the posterior's mean.
    pub mean: ImageClassifier,
}

impl PlainNetwork {
    /// The network of a run, or what cannot be exported.
    pub fn of(run: &LoadedRun) -> anyhow::Result<Self> {
        let mean = run.network.valid().mean();
        let mut posteriors = BTreeMap::new();
        for (stream, (path, factor)) in run.network.posteriors().enumerate() {
            let gaussian = written(&factor.posterior, stream as u16)?;
            posteriors.insert(path.to_owned(), gaussian);
        }
        let mut take = |path: String| match posteriors.remove(&path) {
            Some(gaussian) => Ok(gaussian),
            None => bail!("the parameter {path} has no posterior; train the run again"),
        };
        let facts = &run.folder.facts.data;
        let image = facts.image();
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
                    };
                    (map, "coordinates")
                }
                HiddenLayer::BlockCirculant(layer) => {
                    let (block, channels) = (layer.block(), layer.blocks());
                    ensure!(
                        channels.map(|blocks| blocks * block) == [layer.d_in(), layer.d_out()],
                        "{name}: {} inputs and {} outputs are no whole blocks of {block}, which is not exported yet",
                        layer.d_in(),
                        layer.d_out()
                    );
                    // Channels of images of one row.
                    let map = PlainMap::Bccb {
                        channels,
                        grid: [1, block],
                        cutoff: layer.layout().cutoff(),
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
                weights: take(format!("{name}.{weights}"))?,
                bias: take(format!("{name}.bias"))?,
                map,
            };
            inputs = layer.map.sizes()[1];
            layers.push(layer);
        }
        layers.push(PlainLayer {
            map: PlainMap::Dense {
                sizes: [inputs, facts.classes],
            },
            weights: take("output.weight".to_owned())?,
            bias: take("output.bias".to_owned())?,
        });
        Ok(Self {
            image,
            classes: facts.classes,
            class_names: facts.class_names.clone(),
            layers,
            mean,
        })
    }
}

impl PlainMap {
    /// Values of an input and of an output.
    pub fn sizes(&self) -> [usize; 2] {
        match self {
            Self::Circulant { length, .. } => [*length; 2],
            Self::Bccb { channels, grid, .. } => channels.map(|c| c * grid[0] * grid[1]),
            Self::Dense { sizes } => *sizes,
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
