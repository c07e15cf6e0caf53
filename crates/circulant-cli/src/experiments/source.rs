//! Images by the name of a data set or from a path, as runs need them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, ensure};
use burn::tensor::{Tensor, TensorData};
use circulant::data::{BatchOrder, ByteScale, LabelledData};

use super::config::{ClassWeight, DataConfig, Draw};
use super::picture_list;
use super::progress::{Busy, WorkProgress};
use crate::ranks::{first_then_others, say};
use circulant_data::known::{DRAWN, names};
use circulant_data::{
    Cache, DataSet, ImageSet, Labels, Normalisation, Pixels, ReadOptions, Split, flat, folder,
    load_known, read, tiny_imagenet,
};

/// Reads images: `place` is a name of `data list` or a path. Rows of values become images of the given shape, or of
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
    Ok(match (options.first, options.draw) {
        (Some(count), Draw::Stratified) => few(&set, count)?,
        (Some(count), Draw::InOrder) => set.first(count),
        (None, _) => set,
    })
}

/// At most `count` examples, every class with its share.
pub fn few(set: &ImageSet, count: usize) -> anyhow::Result<ImageSet> {
    if count >= set.len() {
        return Ok(set.clone());
    }
    Ok(set.select(&stratified(set, count, DRAW_SEED, 0)?)?)
}

/// Runs that differ in their own seed learn from the same examples and are evaluated on the same ones.
pub(super) const DRAW_SEED: u64 = 0;

/// The indices of `count` examples, sorted: drawn by a seed, every class with its share and, as far as `count` goes, with at
/// least one. Every class keeps `spare` examples if there are enough others. Examples without labels are of one class.
pub(super) fn stratified(
    set: &ImageSet,
    count: usize,
    seed: u64,
    spare: usize,
) -> anyhow::Result<Vec<usize>> {
    let unlabelled = vec![0; set.len()];
    let labels = set.labels().values.as_ref().unwrap_or(&unlabelled);
    /// Examples of a class, and how many of them to take.
    #[derive(Default)]
    struct ClassShare {
        size: usize,
        taken: usize,
    }
    let mut classes: BTreeMap<i64, ClassShare> = BTreeMap::new();
    for label in labels {
        classes.entry(*label).or_default().size += 1;
    }
    let share = count as f64 / set.len() as f64;
    for _ in 0..count {
        // The class with the most right to the next place.
        let claim = |class: &ClassShare| {
            let room = [class.taken < class.size, class.taken + spare < class.size];
            let lacks = class.size as f64 * share - class.taken as f64;
            (room, class.taken == 0, lacks)
        };
        let next = classes.values_mut().max_by(|one, other| {
            let (one, other) = (claim(one), claim(other));
            let order = (one.0, one.1).cmp(&(other.0, other.1));
            order.then(one.2.total_cmp(&other.2))
        });
        if let Some(class) = next {
            class.taken += 1;
        }
    }
    let mut chosen = Vec::with_capacity(count);
    for &index in BatchOrder::new(seed, set.len(), set.len())?.at(0) {
        let class = classes.get_mut(&labels[index]);
        if let Some(class) = class.filter(|class| class.taken > 0) {
            class.taken -= 1;
            chosen.push(index);
        }
    }
    chosen.sort_unstable();
    Ok(chosen)
}

/// `mnist:train` as a name and a part.
pub fn part(place: &str, default: Split) -> (&str, Split) {
    for (ending, split) in [(":train", Split::Train), (":test", Split::Test)] {
        if let Some(name) = place.strip_suffix(ending) {
            return (name, split);
        }
    }
    (place, default)
}

/// What the readers are told.
pub(super) fn reading(split: Split, options: &DataConfig) -> ReadOptions {
    ReadOptions {
        split,
        labels: options.labels.clone(),
        input_name: options.input_name.clone(),
        label_name: options.label_name.clone(),
        size: options
            .size
            .or(options.fits.map(|[_, height, width]| [height, width])),
        channels: options.fits.map(|[channels, ..]| channels),
        labels_optional: options.labels_optional,
    }
}

fn whole(place: &str, split: Split, options: &DataConfig) -> anyhow::Result<ImageSet> {
    let reading = reading(split, options);
    if let Some(files) = picture_list::files(place)? {
        let _busy = Busy::new(format!("reading {place}"));
        return scaled(flat::read_files(&files, &reading, place)?);
    }
    let path = Path::new(place);
    // A folder that happens to have the name of a data set is meant only when it is written as `./mnist`.
    if names().any(|name| name == place) {
        return Ok(load_known(place, split, 0, &Cache::from_environment()?)?);
    }
    if let Some(schema) = &options.schema {
        let set = super::table::encoded(place, &reading, schema, options)?.inputs;
        let row = [1, 1, set.shape()[1]];
        return Ok(set.into_images(row)?);
    }
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
        let bar = Mutex::new(WorkProgress::quiet("decoding images", 0));
        let progress = |done: usize, all: usize| {
            // A thread that finds the bar in use leaves it to the other one.
            if let Ok(mut bar) = bar.try_lock() {
                bar.of(all as u64).at(done as u64, String::new);
            }
        };
        let read = || Ok(tiny_imagenet::read_cached(path, split, &cache, &progress)?);
        let set = first_then_others(read)?;
        if let Ok(bar) = bar.lock() {
            bar.clear();
        }
        return Ok(set);
    }
    let _busy = Busy::new(format!("reading {place}"));
    let set = read(path, &reading)?;
    Ok(match set {
        DataSet::Images(set) => scaled(set)?,
        DataSet::Features(set) => {
            let row = [1, 1, set.shape()[1]];
            set.into_images(options.image.unwrap_or(row))?
        }
    })
}

/// A set of pictures, with a line if some were scaled.
fn scaled(set: ImageSet) -> anyhow::Result<ImageSet> {
    if set.scaled() > 0 {
        let [_, _, height, width] = set.shape();
        say!(
            "{}: {} of {} pictures scaled to {height} x {width} pixels (height x width)",
            set.source(),
            set.scaled(),
            set.len()
        );
    }
    Ok(set)
}

/// How many pictures to hold out of a folder by class that has no test part, if nobody said: a tenth, and one per class at least. None
/// where that would leave little to learn from.
pub fn tenth(place: &str, set: &ImageSet) -> Option<usize> {
    let count = (set.len() / 10).max(set.labels().classes());
    let path = Path::new(place);
    (!names().any(|name| name == place) && folder::is_whole(path) && 4 * count <= set.len())
        .then_some(count)
}

/// Training images, and those held out.
#[derive(Debug)]
pub struct Held {
    /// To learn from.
    pub training: ImageSet,
    /// To evaluate on, if any are held out.
    pub validation: Option<ImageSet>,
}

impl Held {
    /// As the settings say.
    pub fn out_of(set: ImageSet, settings: &DataConfig) -> anyhow::Result<Self> {
        let count = settings.validation;
        if count == 0 {
            return Ok(Self {
                training: set,
                validation: None,
            });
        }
        fits(&set, count)?;
        match settings.draw {
            Draw::Stratified => Self::stratified(&set, count, DRAW_SEED),
            Draw::InOrder => Self::at(&set, &(set.len() - count..set.len()).collect::<Vec<_>>()),
        }
    }

    /// Holds `count` images out, every class with its share.
    pub fn stratified(set: &ImageSet, count: usize, seed: u64) -> anyhow::Result<Self> {
        fits(set, count)?;
        Self::at(set, &stratified(set, count, seed, 1)?)
    }

    /// Holds `count` images out, all equally probable.
    pub fn uniform(set: &ImageSet, count: usize, seed: u64) -> anyhow::Result<Self> {
        fits(set, count)?;
        let mut held = BatchOrder::new(seed, set.len(), set.len())?.at(0)[..count].to_vec();
        held.sort_unstable();
        Self::at(set, &held)
    }

    /// Holds the images at these indices out, which are sorted.
    fn at(set: &ImageSet, held: &[usize]) -> anyhow::Result<Self> {
        let kept = (0..set.len()).filter(|index| held.binary_search(index).is_err());
        Self::named(
            set,
            set.select(&kept.collect::<Vec<_>>())?,
            set.select(held)?,
        )
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

pub(super) fn fits(set: &ImageSet, count: usize) -> anyhow::Result<()> {
    ensure!(
        (1..set.len()).contains(&count),
        "data.validation: expected at least 1 and fewer than the {} examples, got {count}",
        set.len()
    );
    Ok(())
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
    class_weight: Option<ClassWeight>,
) -> anyhow::Result<LabelledData<4>> {
    let (shape, device) = (set.shape(), circulant::cpu());
    let labels = set.labels().required(set.source())?;
    let data = match set.pixels() {
        Pixels::U8(bytes) => {
            let scale = normalisation.byte_scale(shape[1])?;
            let scale = ByteScale::standardised(scale.0, &scale.1)?;
            LabelledData::from_bytes(bytes.clone(), scale, shape, labels, classes, &device)
        }
        Pixels::F32(_) => {
            let values = set.values(normalisation)?;
            LabelledData::new(values, shape, labels, classes, &device)
        }
    };
    let data = data.with_context(|| format!("{} does not suit the model", set.source()))?;
    Ok(match class_weight {
        Some(ClassWeight::Balanced) => data.balanced(),
        None => data,
    })
}

/// Images alone.
pub fn tensor(set: &ImageSet, normalisation: &Normalisation) -> anyhow::Result<Tensor<4>> {
    let data = TensorData::new(set.values(normalisation)?, set.shape());
    Ok(Tensor::from_data(data, &circulant::cpu()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets whose classes come one after another.
    fn sorted(sizes: &[usize]) -> ImageSet {
        let classes = sizes.iter().enumerate();
        let labels: Vec<i64> = classes
            .flat_map(|(class, &size)| vec![class as i64; size])
            .collect();
        let shape = [labels.len(), 1, 1, 1];
        let pixels = Pixels::F32((0..labels.len()).map(|index| index as f32).collect());
        ImageSet::new(pixels, shape, Labels::numbered(labels), "sorted".to_owned()).unwrap()
    }

    #[test]
    fn parts_are_named_after_a_colon() {
        assert_eq!(part("mnist:train", Split::Test), ("mnist", Split::Train));
        assert_eq!(part("a:b/c:test", Split::Train), ("a:b/c", Split::Test));
        assert_eq!(part("mnist", Split::Test), ("mnist", Split::Test));
    }

    #[test]
    fn every_class_has_its_share() {
        let set = sorted(&[60, 30, 9, 1]);
        let held = Held::stratified(&set, 20, 3).unwrap();
        let validation = held.validation.unwrap();
        assert_eq!(
            validation.labels().counts(),
            [12, 6, 2, 0],
            "the last one is needed to learn"
        );
        assert_eq!(held.training.labels().counts(), [48, 24, 7, 1]);
        let chosen = |seed| stratified(&set, 20, seed, 1).unwrap();
        assert_eq!(chosen(3), chosen(3));
        assert_ne!(chosen(3), chosen(4));
        // Few examples, and many.
        let counts = |count, spare| {
            let indices = stratified(&set, count, 0, spare).unwrap();
            assert_eq!(indices.len(), count);
            assert!(indices.is_sorted_by(|one, other| one < other));
            set.select(&indices).unwrap().labels().counts()
        };
        assert_eq!(counts(4, 0), [1, 1, 1, 1]);
        assert_eq!(counts(2, 0).iter().sum::<usize>(), 2);
        assert_eq!(counts(99, 1), [59, 30, 9, 1]);
        assert_eq!(counts(100, 0), [60, 30, 9, 1]);
    }

    #[test]
    fn old_runs_hold_out_the_same_examples() {
        let set = sorted(&[4, 4]);
        let settings = DataConfig {
            validation: 3,
            draw: Draw::InOrder,
            ..DataConfig::default()
        };
        let held = Held::out_of(set, &settings).unwrap();
        assert_eq!(held.validation.unwrap().labels().counts(), [0, 3]);
        for count in [8, 9] {
            let set = sorted(&[4, 4]);
            assert!(Held::stratified(&set, count, 0).is_err());
        }
    }
}
