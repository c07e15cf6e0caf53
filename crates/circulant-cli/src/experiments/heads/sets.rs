//! Features of CIFAR-10, clean and corrupted: computed by an encoder, or found in a folder.
//!
//! | file | what |
//! | --- | --- |
//! | `train.safetensors`, `test.safetensors` | the two parts |
//! | `corrupted/NAME-S.safetensors` | some test images after a corruption of severity S |

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use circulant::data::BatchOrder;

use super::super::config::DataConfig;
use super::super::features::{Done, compute};
use super::super::interrupt::Interrupt;
use super::super::progress::Busy;
use super::super::source;
use circulant_data::corrupt::{Corruption, Published, Severity, corrupt};
use circulant_data::encode::{Encoder, Numbers, Preprocessing};
use circulant_data::fetch::{FetchOptions, Progress, fetch};
use circulant_data::known::KNOWN;
use circulant_data::{ImageSet, Split};

/// The seed of which images are corrupted, and of the corruptions' noise.
const SEED: u64 = 0;

/// How the features are had.
#[derive(Debug, Clone)]
pub struct FeatureRequest {
    /// The folder with the files.
    pub folder: PathBuf,
    /// Computes those that are missing.
    pub encoder: Option<PathBuf>,
    /// What the encoder wants done to images.
    pub preprocessing: Preprocessing,
    /// The images, by name or path.
    pub data: String,
    /// Only the first images of each part.
    pub first: Option<usize>,
    /// Test images that are corrupted.
    pub corrupted: usize,
    /// The published files of CIFAR-10-C, instead of our corruptions.
    pub published: Option<PathBuf>,
}

/// Corrupted test images.
pub struct Corrupted {
    pub corruption: Corruption,
    pub severity: Severity,
    /// Their features, as images of one row.
    pub set: ImageSet,
}

/// All features, as images of one row.
pub struct FeatureSets {
    pub train: ImageSet,
    pub test: ImageSet,
    /// Out of distribution.
    pub corrupted: Vec<Corrupted>,
}

impl FeatureSets {
    /// Features of every image.
    pub fn features(&self) -> usize {
        self.train.row()
    }
}

impl FeatureRequest {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.safetensors"))
    }

    /// The images that are corrupted, drawn: a set may be in the order of its classes.
    fn few(&self, set: &ImageSet) -> anyhow::Result<ImageSet> {
        let mut indices = BatchOrder::new(SEED, set.len(), set.len())?.at(0).to_vec();
        indices.truncate(self.corrupted);
        indices.sort_unstable();
        Ok(set.select(&indices)?)
    }

    fn corrupted_file(&self, corruption: Corruption, severity: Severity) -> PathBuf {
        self.folder
            .join("corrupted")
            .join(format!("{corruption}-{severity}.safetensors"))
    }

    /// Computes what is missing, if there is an encoder.
    pub fn compute(
        &self,
        options: &FetchOptions,
        progress: &dyn Progress,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Done> {
        let mut total = Done {
            images: 0,
            seconds: 0.0,
        };
        let Some(path) = &self.encoder else {
            return Ok(total);
        };
        if let Some(known) = KNOWN.iter().find(|known| known.name == self.data) {
            fetch(known, options, progress)
                .with_context(|| format!("{} cannot be had; --data takes a path too", self.data))?;
        }
        let config = DataConfig {
            first: self.first,
            ..DataConfig::default()
        };
        let [train, test] =
            [Split::Train, Split::Test].map(|split| source::images(&self.data, split, &config));
        let (train, test) = (train?, test?);
        let [_, _, height, width] = test.shape();
        let busy = Busy::new("loading the encoder");
        let encoder = Encoder::open(path, self.preprocessing.clone(), [height, width])?;
        drop(busy);
        let folder = self.folder.join("corrupted");
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let mut add = |set: &ImageSet, path: &Path, title: &str| -> anyhow::Result<()> {
            let done = compute(&encoder, set, path, Numbers::F32, interrupt, title)?;
            total.images += done.images;
            total.seconds += done.seconds;
            Ok(())
        };
        add(&train, &self.file("train"), "training images")?;
        add(&test, &self.file("test"), "test images")?;
        let few = self.few(&test)?;
        let published = self.published.as_deref().map(Published::open).transpose()?;
        for &corruption in Corruption::COMMON {
            let sets = published
                .as_ref()
                .map(|published| published.severities(corruption));
            let sets = sets.transpose()?;
            for (index, severity) in Severity::ALL.into_iter().enumerate() {
                let set = match &sets {
                    Some(sets) => self.few(&sets[index])?,
                    None => corrupt(&few, corruption, severity, SEED)?,
                };
                let path = self.corrupted_file(corruption, severity);
                add(&set, &path, &format!("{corruption}, severity {severity}"))?;
            }
        }
        Ok(total)
    }

    pub fn load(&self) -> anyhow::Result<FeatureSets> {
        let read = |path: &Path| -> anyhow::Result<ImageSet> {
            let place = path
                .to_str()
                .context("expected a path of Unicode letters")?;
            source::images(place, Split::Train, &DataConfig::default())
        };
        for name in ["train", "test"] {
            let path = self.file(name);
            if !path.exists() {
                bail!(
                    "{} is missing; compute it with --encoder FILE.onnx, or say where features are with --features",
                    path.display()
                );
            }
        }
        let (train, test) = (read(&self.file("train"))?, read(&self.file("test"))?);
        let mut corrupted = Vec::new();
        for &corruption in Corruption::COMMON {
            for severity in Severity::ALL {
                let path = self.corrupted_file(corruption, severity);
                if path.exists() {
                    let set = read(&path)?;
                    ensure!(
                        set.row() == train.row(),
                        "{}: expected {} features as in training, found {}",
                        path.display(),
                        train.row(),
                        set.row()
                    );
                    corrupted.push(Corrupted {
                        corruption,
                        severity,
                        set,
                    });
                }
            }
        }
        ensure!(
            !corrupted.is_empty(),
            "{} has no corrupted images; compute them with --encoder FILE.onnx",
            self.folder.join("corrupted").display()
        );
        ensure!(
            train.row() == test.row(),
            "{} has {} features, the training file {}",
            self.file("test").display(),
            test.row(),
            train.row()
        );
        Ok(FeatureSets {
            train,
            test,
            corrupted,
        })
    }
}
