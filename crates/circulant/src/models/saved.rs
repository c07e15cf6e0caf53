//! A trained Bayesian classifier in two files, to be used elsewhere: `NAME.json` says what it is and how inputs are
//! prepared, `NAME.safetensors` holds the values of its posterior.
//!
//! The tensors have plain names (`output.weight.posterior.mean`, `.log_deviation`; `.factor` and `.scale` of a low-rank one), so that
//! other programs can use them too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::nn::Linear;
use burn::store::ModuleSnapshot;
use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::{HiddenKind, HiddenLayer, ImageClassifier, ImageClassifierConfig};
use crate::LayerError;
use crate::bayes::{BayesError, Bayesian, BayesianConfig, JITTER, PosteriorKind, Site, Slope};
use crate::record::{self, RecordError};
use crate::train::write_atomically;

/// The version is behind the last dash. Version 1, of circulant 0.1.0, had neither jitter nor slope nor deviation of the prior.
const FORMAT: &str = "circulant-classifier-";
const VERSION: u64 = 2;

/// Why a classifier cannot be saved or loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that does not describe a classifier.
    #[error("{}: expected the description of a classifier ({FORMAT}{VERSION}), found {found}; save the classifier again", path.display())]
    Description {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        found: String,
    },
    /// A file of a later version of this library.
    #[error(
        "{}: written by a newer circulant (version {found} of the format, this one reads up to {VERSION}); update circulant",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of its format.
        found: u64,
    },
    /// A network that is not the described one.
    #[error(
        "{part}: the description says {expected}, the network has {found}; describe the network as it is \
         (`SavedClassifier::new` and its fields)"
    )]
    OtherNetwork {
        /// The part of the network that differs.
        part: String,
        /// What is described.
        expected: String,
        /// What there is.
        found: String,
    },
    /// A model that cannot be made.
    #[error(transparent)]
    Model(#[from] LayerError),
    /// A posterior that cannot be made.
    #[error(transparent)]
    Posterior(#[from] BayesError),
    /// Numbers that do not fit the description.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// What a classifier is, and how its inputs are prepared.
///
/// ```
/// use circulant::bayes::PredictiveConfig;
/// use circulant::models::{HiddenKind, ImageClassifierConfig, SavedClassifier};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("head.json");
///
/// let device = circulant::cpu();
/// let config = ImageClassifierConfig::new(HiddenKind::SpectralCirculant).with_image([1, 1, 64]).with_classes(3);
/// let saved = SavedClassifier::new(&config, Some(8));
/// let network = saved.network(&device)?; // train it
/// saved.write(&network, &path)?;
///
/// let (saved, network) = SavedClassifier::read(&path, &device)?;
/// let mut row = vec![0.5; 64];
/// saved.prepare(&mut row);
/// let inputs = burn::tensor::Tensor::<1>::from_floats(row.as_slice(), &device).reshape([1, 1, 1, 64]);
/// let predictions = PredictiveConfig::new().predict(&network, inputs)?;
/// assert_eq!(predictions.probabilities.len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedClassifier {
    format: String,
    /// The kind of its hidden layers.
    pub hidden: HiddenKind,
    /// `[channels, height, width]` of an input; features are `[1, 1, features]`.
    pub image: [usize; 3],
    /// The number of classes.
    pub classes: usize,
    /// Output channels of the hidden layers, where they can be chosen.
    pub channels: Option<usize>,
    /// Outputs of dense or block-circulant hidden layers, if not as many as inputs.
    pub width: Option<usize>,
    /// The lowest bins of spectral circulant or block-circulant layers, if not all.
    pub modes: Option<usize>,
    /// The length of a block of block-circulant layers, if not the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<usize>,
    /// The number of hidden layers, without the lift.
    pub depth: usize,
    /// Outputs of a dense layer before the hidden layers, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lift: Option<usize>,
    /// The rank of the posterior of spectral coordinates; none for a point estimate.
    pub rank: Option<usize>,
    /// Whether the slope of the prior was learned.
    pub learned_slope: bool,
    /// `alpha` of the spectral prior, unless it was learned; 1 in files of circulant 0.1.0, which did not say.
    #[serde(default = "one")]
    pub slope: f64,
    /// `sigma0` of the spectral prior; 1 in files of circulant 0.1.0, which did not say.
    #[serde(default = "one")]
    pub prior_deviation: f64,
    /// The prior deviation of the weights of dense layers, times the square root of their number of inputs; 1 per weight without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_deviation: Option<f64>,
    /// The jitter of the posterior of spectral coordinates; [`JITTER`] in files of circulant 0.1.0, which did not say.
    #[serde(default = "default_jitter")]
    pub jitter: f64,
    /// The names of the classes; empty when unknown.
    pub class_names: Vec<String>,
    /// Whether bytes are divided by 255 first; floats are not.
    pub unit: bool,
    /// Then subtracted, per channel; empty for nothing.
    pub mean: Vec<f32>,
    /// Then divided by, per channel; empty for nothing.
    pub std: Vec<f32>,
    /// The temperature that the read-out has been divided by; 1 for none.
    pub temperature: f64,
    /// Whatever else should be known: where it was trained, how well it did.
    pub notes: BTreeMap<String, String>,
}

fn one() -> f64 {
    1.0
}

fn default_jitter() -> f64 {
    JITTER
}

impl SavedClassifier {
    /// Describes a model, with a posterior of this rank at spectral coordinates or a point estimate, and inputs as they are.
    pub fn new(config: &ImageClassifierConfig, rank: Option<usize>) -> Self {
        Self {
            format: format!("{FORMAT}{VERSION}"),
            hidden: config.hidden,
            image: config.image,
            classes: config.classes,
            channels: config.channels,
            width: config.width,
            modes: config.modes,
            block: config.block,
            depth: config.depth,
            lift: config.lift,
            rank,
            learned_slope: false,
            slope: 1.0,
            prior_deviation: 1.0,
            weight_deviation: None,
            jitter: JITTER,
            class_names: Vec::new(),
            unit: false,
            mean: Vec::new(),
            std: Vec::new(),
            temperature: 1.0,
            notes: BTreeMap::new(),
        }
    }

    fn model(&self) -> ImageClassifierConfig {
        ImageClassifierConfig::new(self.hidden)
            .with_image(self.image)
            .with_classes(self.classes)
            .with_channels(self.channels)
            .with_width(self.width)
            .with_modes(self.modes)
            .with_block(self.block)
            .with_depth(self.depth)
            .with_lift(self.lift)
    }

    /// The network with fresh values.
    pub fn network(&self, device: &Device) -> Result<Bayesian<ImageClassifier>, SavedError> {
        let model = self.model().try_init(device)?;
        let mut sites = BayesianConfig::new();
        if let Some(size) = self.weight_deviation {
            for (name, site) in weight_sites(&model, size) {
                sites = sites.with_site(name, site);
            }
        }
        for (name, layer) in model.hidden_layers() {
            let Some(layout) = layer.spectrum_layout() else {
                continue;
            };
            let site = if self.learned_slope {
                Site::learned_slope(&layout, self.prior_deviation)?
            } else {
                let spectrum = Slope {
                    deviation: self.prior_deviation,
                    alpha: self.slope,
                };
                Site::spectral(&layout, &spectrum)?
            };
            let site = site.with_posterior(PosteriorKind::LowRank {
                rank: self.rank.unwrap_or(1),
                jitter: self.jitter,
            });
            sites = sites.with_site(format!("{name}.coordinates"), site);
        }
        let sites = match self.rank {
            Some(_) => sites,
            None => sites.into_point_estimate(),
        };
        Ok(sites.init(model)?)
    }

    /// Prepares floats, `[..., channels, height, width]`, as the network was trained on them.
    pub fn prepare(&self, values: &mut [f32]) {
        let [channels, height, width] = self.image;
        for (index, plane) in values.chunks_mut(height * width).enumerate() {
            let channel = index % channels;
            let mean = self.mean.get(channel).copied().unwrap_or(0.0);
            let std = self.std.get(channel).copied().unwrap_or(1.0);
            plane.iter_mut().for_each(|x| *x = (*x - mean) / std);
        }
    }

    /// The same of bytes.
    pub fn prepare_bytes(&self, bytes: &[u8]) -> Vec<f32> {
        let unit = if self.unit { 255.0 } else { 1.0 };
        let mut values: Vec<f32> = bytes.iter().map(|&x| f32::from(x) / unit).collect();
        self.prepare(&mut values);
        values
    }

    /// Writes `path`, a JSON file, and the values beside it, with the extension `safetensors`. The description comes
    /// last: where it is, the values are. A network that is not the described one is refused.
    pub fn write(
        &self,
        network: &Bayesian<ImageClassifier>,
        path: impl AsRef<Path>,
    ) -> Result<(), SavedError> {
        self.check(network)?;
        let path = path.as_ref();
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| SavedError::File { path, source }
        };
        let numbers = path.with_extension("safetensors");
        let bytes = record::to_bytes(network)?;
        write_atomically(&numbers, &bytes).map_err(failed(&numbers))?;
        let text = serde_json::to_string_pretty(self).expect("numbers and words") + "\n";
        write_atomically(path, text.as_bytes()).map_err(failed(path))
    }

    /// Names the first difference between the description and a network.
    fn check(&self, network: &Bayesian<ImageClassifier>) -> Result<(), SavedError> {
        let described = self.network(&network.device())?;
        let shapes = |network: &Bayesian<ImageClassifier>| {
            let tensors = network.collect(None, None, true).into_iter();
            tensors
                .map(|tensor| {
                    (
                        tensor.name.clone(),
                        format!("{:?} {:?}", tensor.dtype, tensor.shape),
                    )
                })
                .collect()
        };
        compare("the hidden layers", layers(&described), layers(network))?;
        compare(
            "the parameters with a posterior",
            described.site_descriptions(),
            network.site_descriptions(),
        )?;
        compare("the tensors", shapes(&described), shapes(network))
    }

    /// Reads what [`Self::write`] wrote, in this version or an earlier one.
    pub fn read(
        path: impl AsRef<Path>,
        device: &Device,
    ) -> Result<(Self, Bayesian<ImageClassifier>), SavedError> {
        let path = path.as_ref();
        let wrong = |found: String| SavedError::Description {
            path: path.to_owned(),
            found,
        };
        let text = std::fs::read_to_string(path).map_err(|source| SavedError::File {
            path: path.to_owned(),
            source,
        })?;
        let format: Format =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let version = format.format.strip_prefix(FORMAT);
        match version.and_then(|version| version.parse().ok()) {
            Some(1..=VERSION) => {}
            Some(found) if found > VERSION => {
                let path = path.to_owned();
                return Err(SavedError::Newer { path, found });
            }
            _ => return Err(wrong(format!("{:?}", format.format))),
        }
        let mut saved: Self =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        saved.format = format!("{FORMAT}{VERSION}");
        let fits = |numbers: &[f32]| numbers.is_empty() || numbers.len() == saved.image[0];
        if !fits(&saved.mean) || !fits(&saved.std) {
            return Err(wrong(format!(
                "{} means and {} deviations for {} channels",
                saved.mean.len(),
                saved.std.len(),
                saved.image[0]
            )));
        }
        // Sizes that the values cannot have would fill the memory before anybody notices.
        let numbers = path.with_extension("safetensors");
        if let Ok(file) = std::fs::metadata(&numbers) {
            let least = saved.model().least_values(saved.rank);
            if least.is_none_or(|least| least as u64 > file.len() / size_of::<f32>() as u64) {
                return Err(wrong(format!(
                    "sizes of {least:?} values or more, and {} bytes of them",
                    file.len()
                )));
            }
        }
        let mut network = saved.network(device)?;
        record::load(&mut network, numbers)?;
        Ok((saved, network))
    }
}

/// Mean-field posteriors of the weights of all dense layers, under priors of the deviation `size/sqrt(inputs)`, by their names.
pub fn weight_sites(model: &ImageClassifier, size: f64) -> Vec<(String, Site)> {
    let site = |layer: &Linear| {
        let [inputs, _] = layer.weight.dims();
        Site::mean_field(size / (inputs.max(1) as f64).sqrt())
    };
    let hidden = model
        .hidden_layers()
        .filter_map(|(name, layer)| match layer {
            HiddenLayer::Dense(layer) => Some((format!("{name}.weight"), site(layer))),
            _ => None,
        });
    let output = ("output.weight".to_owned(), site(&model.output));
    hidden.chain([output]).collect()
}

/// What every version of the description has.
#[derive(Deserialize)]
struct Format {
    format: String,
}

/// The hidden layers and a line about each.
fn layers(network: &Bayesian<ImageClassifier>) -> Vec<(String, String)> {
    let model = network.mean();
    let layers = model.hidden_layers();
    let describe = |layer: &HiddenLayer| {
        let kind = layer.kind();
        match layer.spectrum_layout() {
            Some(layout) => {
                let ((height, width), coordinates) = (layout.grid(), layout.pair_coordinates());
                format!("{kind:?} on {height} x {width} with {coordinates} coordinates")
            }
            None => format!("{kind:?}"),
        }
    };
    layers
        .map(|(name, layer)| (name, describe(layer)))
        .collect()
}

/// Compares named lines.
fn compare(
    what: &str,
    expected: Vec<(String, String)>,
    found: Vec<(String, String)>,
) -> Result<(), SavedError> {
    let names = |lines: &[(String, String)]| -> String {
        let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
        names.join(", ")
    };
    let other = |part: &str, expected, found| SavedError::OtherNetwork {
        part: part.to_owned(),
        expected,
        found,
    };
    if names(&expected) != names(&found) {
        return Err(other(what, names(&expected), names(&found)));
    }
    for ((part, expected), (_, found)) in expected.into_iter().zip(found) {
        if expected != found {
            return Err(other(&part, expected, found));
        }
    }
    Ok(())
}
