//! A run that is used: its network, and other data read as its own were.

use std::path::Path;

use anyhow::{bail, ensure};
use burn::module::Module;
use burn::tensor::Device;
use circulant::bayes::Bayesian;
use circulant::models::ImageClassifier;

use super::config::{DataConfig, Draw, Inference};
use super::folder::RunFolder;
use super::{exported, source};
use circulant_data::{ImageSet, Split};

/// A trained network with the folder that it came from.
pub struct LoadedRun {
    /// Settings and facts.
    pub folder: RunFolder,
    /// At its last checkpoint.
    pub network: Bayesian<ImageClassifier>,
    /// Steps of training behind it.
    pub steps: u64,
}

impl LoadedRun {
    /// Opens the folder of a run; its checkpoint may be named instead, or the JSON file of a saved classifier.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            return exported::load(path);
        }
        let path = match path.parent() {
            Some(parent) if path.is_file() && path.ends_with("checkpoint.safetensors") => parent,
            _ => path,
        };
        let folder = RunFolder::open(path)?;
        let (network, steps) = folder.network()?;
        Ok(Self {
            folder,
            network,
            steps,
        })
    }

    /// The run with its network on a device, if another one is asked for.
    pub fn on(mut self, device: Option<&Device>) -> Self {
        if let Some(device) = device {
            self.network = self.network.to_device(device);
        }
        self
    }

    /// Whether it is a saved classifier, which has no folder and does not say what it was trained on.
    pub fn is_exported(&self) -> bool {
        self.folder.config.data.train.is_empty()
    }

    /// Whether there is a distribution, or a point only.
    pub fn is_bayesian(&self) -> bool {
        self.folder.config.posterior.inference == Inference::Bayesian
    }

    /// How data of the same kind as the run's own are read.
    pub fn reading(&self) -> DataConfig {
        let image = self.folder.facts.data.image();
        DataConfig {
            labels: None,
            first: None,
            validation: 0,
            draw: Draw::default(),
            image: Some(image),
            // Features are no pictures of one row.
            fits: Some(image).filter(|[_, height, _]| *height > 1),
            every_row: true,
            labels_optional: true,
            ..self.folder.config.data.clone()
        }
    }

    /// Reads images that fit the network.
    pub fn images(
        &self,
        place: &str,
        split: Split,
        options: &DataConfig,
    ) -> anyhow::Result<ImageSet> {
        let set = source::images(place, split, options)?;
        let expected = self.folder.facts.data.image();
        let [_, found @ ..] = set.shape();
        ensure!(
            found == expected,
            "{}: expected images of {}, which {} was trained on, found {}; use other data or another run",
            set.source(),
            sides(expected),
            self.folder.path().display(),
            sides(found)
        );
        Ok(set)
    }

    /// The labels of a set as classes of the run, if it has labels. Classes with names are found by their names: a
    /// part of the classes may be numbered otherwise.
    pub fn classes_of(&self, set: &ImageSet) -> anyhow::Result<Option<Vec<usize>>> {
        let data = &self.folder.facts.data;
        let (labels, known) = (set.labels(), &data.class_names);
        let Some(values) = &labels.values else {
            return Ok(None);
        };
        let class = |(example, &label): (usize, &i64)| -> anyhow::Result<usize> {
            let label = usize::try_from(label).unwrap_or(usize::MAX);
            let name = labels.names.get(label).filter(|_| !known.is_empty());
            let class = match name {
                Some(name) => known.iter().position(|other| other == name),
                None => Some(label).filter(|&class| class < data.classes),
            };
            match class {
                Some(class) => Ok(class),
                None => bail!(
                    "{}: example {example} has the class {}, expected one of the run's {} classes{}; use data of the \
                     same classes",
                    set.source(),
                    name.cloned().unwrap_or_else(|| label.to_string()),
                    data.classes,
                    if known.is_empty() {
                        String::new()
                    } else {
                        format!(" ({})", known.join(", "))
                    }
                ),
            }
        };
        let classes = values.iter().enumerate().map(class);
        classes.collect::<anyhow::Result<_>>().map(Some)
    }

    /// The name of a class, where classes have names.
    pub fn class_name(&self, class: usize) -> Option<&str> {
        let names = &self.folder.facts.data.class_names;
        names.get(class).map(String::as_str)
    }
}

/// `[1, 28, 28]` as `1 x 28 x 28`.
fn sides(image: [usize; 3]) -> String {
    image.map(|side| side.to_string()).join(" x ")
}
