//! A trained Bayesian classifier in two files, to be used elsewhere: `NAME.json` says what it is and how inputs are
//! prepared, `NAME.safetensors` holds the numbers of its posterior.
//!
//! The tensors have plain names (`output.weight.posterior.mean`, `.log_deviation`; `.factor` and `.scale` of a low-rank one), so that
//! other programs can use them too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::{HiddenKind, ImageClassifier, ImageClassifierConfig};
use crate::LayerError;
use crate::bayes::{BayesError, Bayesian, BayesianConfig, Site};
use crate::record::{self, RecordError};
use crate::train::write_atomically;

const FORMAT: &str = "circulant-classifier-1";

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
    #[error("{}: expected the description of a classifier ({FORMAT}), found {found}; save the classifier again", path.display())]
    Description {
        /// The file.
        path: PathBuf,
        /// What is wrong.
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
    /// Outputs of dense hidden layers, if not as many as inputs.
    pub width: Option<usize>,
    /// The lowest bins of spectral circulant layers, if not all.
    pub modes: Option<usize>,
    /// The number of hidden layers.
    pub depth: usize,
    /// The rank of the posterior of spectral coordinates; none for a point estimate.
    pub rank: Option<usize>,
    /// Whether the slope of the prior was learned.
    pub learned_slope: bool,
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

impl SavedClassifier {
    /// Describes a model, with a posterior of this rank at spectral coordinates or a point estimate, and inputs as they are.
    pub fn new(config: &ImageClassifierConfig, rank: Option<usize>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            hidden: config.hidden,
            image: config.image,
            classes: config.classes,
            channels: config.channels,
            width: config.width,
            modes: config.modes,
            depth: config.depth,
            rank,
            learned_slope: false,
            class_names: Vec::new(),
            unit: false,
            mean: Vec::new(),
            std: Vec::new(),
            temperature: 1.0,
            notes: BTreeMap::new(),
        }
    }

    /// The network with fresh numbers.
    pub fn network(&self, device: &Device) -> Result<Bayesian<ImageClassifier>, SavedError> {
        let model = ImageClassifierConfig::new(self.hidden)
            .with_image(self.image)
            .with_classes(self.classes)
            .with_channels(self.channels)
            .with_width(self.width)
            .with_modes(self.modes)
            .with_depth(self.depth)
            .try_init(device)?;
        let mut sites = BayesianConfig::new();
        for (name, layer) in model.hidden_layers() {
            let Some(layout) = layer.spectrum_layout() else {
                continue;
            };
            let site = if self.learned_slope {
                Site::learned_slope(&layout, 1.0)?
            } else {
                Site::default_spectral(&layout)
            };
            let site = site.with_rank(self.rank.unwrap_or(1));
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

    /// Writes `path`, a JSON file, and the numbers beside it, with the extension `safetensors`. The description comes
    /// last: where it is, the numbers are.
    pub fn write(
        &self,
        network: &Bayesian<ImageClassifier>,
        path: impl AsRef<Path>,
    ) -> Result<(), SavedError> {
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

    /// Reads what [`Self::write`] wrote.
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
        let saved: Self = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if saved.format != FORMAT {
            return Err(wrong(saved.format));
        }
        let fits = |numbers: &[f32]| numbers.is_empty() || numbers.len() == saved.image[0];
        if !fits(&saved.mean) || !fits(&saved.std) {
            return Err(wrong(format!(
                "{} means and {} deviations for {} channels",
                saved.mean.len(),
                saved.std.len(),
                saved.image[0]
            )));
        }
        let mut network = saved.network(device)?;
        record::load(&mut network, path.with_extension("safetensors"))?;
        Ok((saved, network))
    }
}
