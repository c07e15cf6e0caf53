//! Images by the name of a data set or from a path, as runs need them.

use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, ensure};
use burn::tensor::{Tensor, TensorData};
use circulant::data::{BatchOrder, LabelledData};

use super::config::DataConfig;
use super::progress::Progress;
use circulant_data::known::{DRAWN, names};
use circulant_data::{
    Cache, DataSet, ImageSet, Labels, Normalisation, Pixels, ReadOptions, Split, load_known, read,
    tiny_imagenet,
};

/// Reads images: `place` is a name of `data list` or a path. Rows of numbers become images of the given shape, or of
/// one row of pixels.
pub fn images(place: &str, split: Split, options: &DataConfig) -> anyhow::Result<ImageSet> {
    ensure!(
        options.first != Some(0),
        "data.first: expected 1 or more, got 0"
    );
    let family = DRAWN.iter().find(|family| family.name() == place);
    if let (Some(count), Some(family)) = (options.first, family) {
        // Drawing all images to keep a few would take longer than everything else. Training images and test images come
        // from neighbouring seeds, as in `load_known`.
        return Ok(family.draw(count, u64::from(split == Split::Test))?);
    }
    let set = whole(place, split, options)?;
    Ok(match options.first {
        Some(count) => set.first(count),
        None => set,
    })
}

fn whole(place: &str, split: Split, options: &DataConfig) -> anyhow::Result<ImageSet> {
    let path = Path::new(place);
    // A folder that happens to have the name of a data set is meant only when it is written as `./mnist`.
    if names().any(|name| name == place) {
        return Ok(load_known(place, split, 0, &Cache::from_environment()?)?);
    }
    let reading = ReadOptions {
        split,
        labels: options.labels.clone(),
        input_name: options.input_name.clone(),
        label_name: options.label_name.clone(),
        size: options.size,
        labels_optional: options.labels_optional,
    };
    ensure!(
        path.exists(),
        "{place} is neither a data set by name ({}) nor a path that exists; check it for misspellings",
        names().collect::<Vec<_>>().join(", ")
    );
    if let (true, None, Ok(cache)) = (
        tiny_imagenet::is_folder(path),
        options.size,
        Cache::from_environment(),
    ) {
        let bar = Mutex::new(Progress::quiet("decoding pictures", 0));
        let progress = |done: usize, all: usize| {
            // Whoever comes while another thread draws need not.
            if let Ok(mut bar) = bar.try_lock() {
                bar.of(all as u64).at(done as u64, String::new);
            }
        };
        let set = tiny_imagenet::read_cached(path, split, &cache, &progress)?;
        if let Ok(bar) = bar.lock() {
            bar.clear();
        }
        return Ok(set);
    }
    let set = read(path, &reading)?;
    Ok(match set {
        DataSet::Images(set) => set,
        DataSet::Features(set) => {
            let row = [1, 1, set.shape()[1]];
            set.into_images(options.image.unwrap_or(row))?
        }
    })
}

/// Training images, and those held out from the end.
#[derive(Debug)]
pub struct Held {
    /// To learn from.
    pub training: ImageSet,
    /// To evaluate on, if any are held out.
    pub validation: Option<ImageSet>,
}

impl Held {
    /// Holds the last `count` images out.
    pub fn out_of(set: ImageSet, count: usize) -> anyhow::Result<Self> {
        if count == 0 {
            return Ok(Self {
                training: set,
                validation: None,
            });
        }
        ensure!(
            count < set.len(),
            "data.validation: expected fewer than the {} examples, got {count}",
            set.len()
        );
        let (training, validation) = set.split_at(set.len() - count)?;
        Self::named(&set, training, validation)
    }

    /// Holds `count` images out, drawn by a seed: for sets in the order of their classes.
    pub fn drawn(set: &ImageSet, count: usize, seed: u64) -> anyhow::Result<Self> {
        ensure!(
            (1..set.len()).contains(&count),
            "data.validation: expected at least 1 and fewer than the {} examples, got {count}",
            set.len()
        );
        let order = BatchOrder::new(seed, set.len(), set.len())?.at(0).to_vec();
        let (held, kept) = order.split_at(count);
        let [mut held, mut kept] = [held, kept].map(<[usize]>::to_vec);
        held.sort_unstable();
        kept.sort_unstable();
        Self::named(set, set.select(&kept)?, set.select(&held)?)
    }

    /// Both parts know all classes, whichever of them they have.
    fn named(set: &ImageSet, training: ImageSet, validation: ImageSet) -> anyhow::Result<Self> {
        let names = class_names(set);
        let named = |part: ImageSet| {
            let labels = Labels {
                values: part.labels().values.clone(),
                names: names.clone(),
            };
            part.with_labels(labels)
        };
        Ok(Self {
            training: named(training)?,
            validation: Some(named(validation)?),
        })
    }
}

/// The names of the classes, or numbers where there are none.
fn class_names(set: &ImageSet) -> Vec<String> {
    let labels = set.labels();
    if labels.names.is_empty() {
        (0..labels.classes())
            .map(|class| class.to_string())
            .collect()
    } else {
        labels.names.clone()
    }
}

/// Images with labels, for training.
pub fn labelled(
    set: &ImageSet,
    normalisation: &Normalisation,
    classes: usize,
) -> anyhow::Result<LabelledData<4>> {
    let (shape, device) = (set.shape(), circulant::cpu());
    let labels = set.labels().required(set.source())?;
    let data = match set.pixels() {
        Pixels::U8(bytes) => {
            let scale = normalisation.byte_scale(shape[1])?;
            LabelledData::from_bytes(bytes.clone(), scale, shape, labels, classes, &device)
        }
        Pixels::F32(_) => {
            let values = set.values(normalisation)?;
            LabelledData::new(values, shape, labels, classes, &device)
        }
    };
    data.with_context(|| format!("{} does not suit the model", set.source()))
}

/// Images alone.
pub fn tensor(set: &ImageSet, normalisation: &Normalisation) -> anyhow::Result<Tensor<4>> {
    let data = TensorData::new(set.values(normalisation)?, set.shape());
    Ok(Tensor::from_data(data, &circulant::cpu()))
}
