//! A run that is used: its network, and other data read as its own were.

use std::path::Path;

use anyhow::{bail, ensure};
use circulant::bayes::{Bayesian, Predictions};
use circulant::geometry::{PredictiveBounds, PredictiveBoundsConfig};
use circulant::models::ImageClassifier;

use super::certified::folder::CertifiedFolder;
use super::certified::loaded::LoadedCertified;
use super::config::{DataConfig, Draw, Inference};
use super::evaluation::Sampling;
use super::folder::{DataFacts, RunFolder};
use super::source::Held;
use super::{exported, source};
use circulant_data::{ImageSet, Split};

/// A trained network that predicts classes, with what it was trained on: what `predict` and `evaluate` use of a run.
pub trait TrainedRun {
    /// Its folder.
    fn path(&self) -> &Path;

    /// The data that it was trained on.
    fn data(&self) -> &DataFacts;

    /// How they were read.
    fn data_config(&self) -> &DataConfig;

    /// What was held out of them, if anything was.
    fn held_out(&self) -> anyhow::Result<Option<ImageSet>>;

    /// The name of the model.
    fn model(&self) -> &'static str;

    /// Steps of training behind it.
    fn steps(&self) -> u64;

    fn seed(&self) -> u64;

    /// All settings.
    fn to_toml(&self) -> String;

    /// Whether there is a distribution, or a point only.
    fn is_bayesian(&self) -> bool;

    /// Predicts a set, shared out among all ranks. Long work shows its progress under a title.
    fn predict(
        &self,
        sampling: &Sampling,
        set: &ImageSet,
        title: &str,
    ) -> anyhow::Result<Predictions>;

    /// Bounds of drawn networks.
    fn bounds(
        &self,
        config: &PredictiveBoundsConfig,
        progress: &mut dyn FnMut(usize, usize),
    ) -> anyhow::Result<PredictiveBounds<4>>;

    /// The run itself where the network is of circulant layers: for what needs more of it than this.
    fn classifier(&self) -> Option<&LoadedRun> {
        None
    }

    /// How data of the same kind as the run's own are read.
    fn reading(&self) -> DataConfig {
        let image = self.data().image();
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
            ..self.data_config().clone()
        }
    }

    /// Reads images that fit the network.
    fn images(&self, place: &str, split: Split, options: &DataConfig) -> anyhow::Result<ImageSet> {
        let set = source::images(place, split, options)?;
        let expected = self.data().image();
        let [_, found @ ..] = set.shape();
        ensure!(
            found == expected,
            "{}: expected images of {}, which {} was trained on, found {}; use other data or another run",
            set.source(),
            sides(expected),
            self.path().display(),
            sides(found)
        );
        Ok(set)
    }

    /// The labels of a set as classes of the run, if it has labels. Classes with names are found by their names: a
    /// part of the classes may be numbered otherwise.
    fn classes_of(&self, set: &ImageSet) -> anyhow::Result<Option<Vec<usize>>> {
        let data = self.data();
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
    fn class_name(&self, class: usize) -> Option<&str> {
        self.data().class_names.get(class).map(String::as_str)
    }
}

/// Opens the folder of a run of either kind; its checkpoint may be named instead, or the JSON file of a saved classifier.
pub fn open(path: &Path) -> anyhow::Result<Box<dyn TrainedRun>> {
    Ok(match CertifiedFolder::is_at(path) {
        true => Box::new(LoadedCertified::open(path)?),
        false => Box::new(LoadedRun::open(path)?),
    })
}

/// A trained network of circulant layers with the folder that it came from.
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

    /// Whether it is a saved classifier, which has no folder and does not say what it was trained on.
    pub fn is_exported(&self) -> bool {
        self.folder.config.data.train.is_empty()
    }
}

impl TrainedRun for LoadedRun {
    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn data(&self) -> &DataFacts {
        &self.folder.facts.data
    }

    fn data_config(&self) -> &DataConfig {
        &self.folder.config.data
    }

    fn held_out(&self) -> anyhow::Result<Option<ImageSet>> {
        let trained_on = self.data_config();
        if trained_on.train.is_empty() || trained_on.validation == 0 {
            return Ok(None);
        }
        let set = source::images(&trained_on.train, Split::Train, trained_on)?;
        Ok(Held::out_of(set, trained_on)?.validation)
    }

    fn model(&self) -> &'static str {
        self.folder.config.model.kind.name()
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn seed(&self) -> u64 {
        self.folder.config.training.seed
    }

    fn to_toml(&self) -> String {
        self.folder.config.to_toml()
    }

    fn is_bayesian(&self) -> bool {
        self.folder.config.posterior.inference == Inference::Bayesian
    }

    fn predict(
        &self,
        sampling: &Sampling,
        set: &ImageSet,
        title: &str,
    ) -> anyhow::Result<Predictions> {
        sampling.predict(&self.network, set, &self.data_config().normalisation, title)
    }

    fn bounds(
        &self,
        config: &PredictiveBoundsConfig,
        progress: &mut dyn FnMut(usize, usize),
    ) -> anyhow::Result<PredictiveBounds<4>> {
        Ok(config.bound_with_progress(&self.network, progress)?)
    }

    fn classifier(&self) -> Option<&LoadedRun> {
        Some(self)
    }
}

/// `[1, 28, 28]` as `1 x 28 x 28`.
fn sides(image: [usize; 3]) -> String {
    image.map(|side| side.to_string()).join(" x ")
}
