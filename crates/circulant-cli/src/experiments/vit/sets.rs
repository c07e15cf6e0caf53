//! The data: CIFAR-10, Tiny ImageNet, or any images with a training and a test part.

use std::path::PathBuf;

use anyhow::{Context, ensure};

use super::super::config::{DataConfig, Draw};
use super::super::source::{self, Held};
use super::training::VitImages;
use circulant_data::fetch::{FetchOptions, Progress, fetch};
use circulant_data::known::KNOWN;
use circulant_data::{ImageSet, Split, tiny_imagenet};

/// The name of Tiny ImageNet, which has to be unpacked by hand.
pub const TINY_IMAGENET: &str = "tiny-imagenet";
/// The folder in its archive.
const TINY_IMAGENET_FOLDER: &str = "tiny-imagenet-200";
/// Which of all images are held out does not depend on the seed of a run.
const SPLIT_SEED: u64 = 0;

/// A data set of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaperData {
    /// 32 x 32, ten classes.
    Cifar10,
    /// 64 x 64, 200 classes.
    TinyImageNet,
}

#[derive(Debug, Clone)]
pub struct VitRequest {
    /// A name or a path.
    pub place: String,
    pub first: Option<usize>,
    /// Which ones.
    pub draw: Draw,
    /// `[height, width]` to scale the images of a folder to.
    pub size: Option<[usize; 2]>,
    /// How many are held out; without it a tenth.
    pub validation: Option<usize>,
}

/// Images for training, validation and testing.
pub struct VitSets {
    pub place: String,
    /// Which set of the paper it is, whole.
    pub paper: Option<PaperData>,
    /// Those that a run sees.
    pub images: VitImages,
    pub test: ImageSet,
}

impl VitSets {
    /// Loads the sets; known ones are fetched if they are not cached.
    pub fn load(
        request: &VitRequest,
        options: &FetchOptions,
        progress: &dyn Progress,
    ) -> anyhow::Result<Self> {
        let mut place = request.place.clone();
        if let Some(known) = KNOWN.iter().find(|known| known.name == place) {
            fetch(known, options, progress)
                .with_context(|| format!("{place} cannot be had; --data takes a path too"))?;
        } else if place == TINY_IMAGENET {
            place = tiny_imagenet_folder(options)?.display().to_string();
        }
        let config = DataConfig {
            first: request.first,
            draw: request.draw,
            size: request.size,
            ..DataConfig::default()
        };
        let [train, test] =
            [Split::Train, Split::Test].map(|split| source::images(&place, split, &config));
        let (train, test) = (train?, test?);
        ensure!(
            train.shape()[1..] == test.shape()[1..],
            "{place}: training images are {:?} (channels, height, width), test images {:?}; scale them with --size",
            &train.shape()[1..],
            &test.shape()[1..]
        );
        ensure!(
            test.labels().classes() <= train.labels().classes(),
            "{place}: the test part has {} classes, the training part only {}",
            test.labels().classes(),
            train.labels().classes()
        );
        let whole = match (&request.place, request.first) {
            (name, None) if name == "cifar10" => Some(PaperData::Cifar10),
            (_, None) if tiny_imagenet::is_folder(place.as_ref()) => Some(PaperData::TinyImageNet),
            _ => None,
        };
        let count = request.validation.unwrap_or((train.len() / 10).max(1));
        let held = Held::uniform(&train, count, SPLIT_SEED)?;
        let validation = held.validation.context("some are held out")?;
        Ok(Self {
            place: request.place.clone(),
            paper: whole,
            images: VitImages {
                training: held.training,
                validation,
            },
            test,
        })
    }
}

fn tiny_imagenet_folder(options: &FetchOptions) -> anyhow::Result<PathBuf> {
    let roots = options
        .from
        .iter()
        .cloned()
        .chain([options.cache.root().to_owned()]);
    let candidates: Vec<PathBuf> = roots
        .flat_map(|root| {
            [
                root.join(TINY_IMAGENET_FOLDER),
                root.join(TINY_IMAGENET),
                root,
            ]
        })
        .collect();
    let found = candidates
        .iter()
        .find(|folder| tiny_imagenet::is_folder(folder));
    found.cloned().with_context(|| {
        let places: Vec<String> = candidates.iter().map(|place| place.display().to_string()).collect();
        format!(
            "Tiny ImageNet is not here: expected a folder with train/CLASS/images and val/val_annotations.txt at one of {}; \
             unpack {TINY_IMAGENET_FOLDER}.zip there, or give its folder with --data",
            places.join(", ")
        )
    })
}
