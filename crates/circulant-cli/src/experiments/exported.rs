//! From a run to the library's two files, and back.

use std::path::Path;

use anyhow::Context;
use circulant::bayes::Bayesian;
use circulant::models::{ImageClassifier, ImageClassifierConfig, ParameterCount, SavedClassifier};

use super::config::{Inference, ModelKind, RunConfig};
use super::facts::Facts;
use super::folder::{DataFacts, RunFacts, RunFolder};
use super::loaded::LoadedRun;
use circulant_data::Normalisation;

/// The note with the steps of training.
const STEPS: &str = "steps";
/// The note with the seed of training, which Python's predictions use too.
const SEED: &str = "seed";
/// The note with what was learned from the columns of a table.
const TABLE: &str = "table";

/// Describes the classifier of a run.
pub fn describe(folder: &RunFolder, steps: u64) -> SavedClassifier {
    let (config, data) = (&folder.config, &folder.facts.data);
    let model = ImageClassifierConfig::new(config.model.kind.hidden())
        .with_image(data.image())
        .with_classes(data.classes)
        .with_channels(config.model.channels)
        .with_width(config.model.width)
        .with_modes(config.model.modes)
        .with_block(config.model.block)
        .with_depth(config.model.depth)
        .with_lift(config.model.lift);
    let bayesian = config.posterior.inference == Inference::Bayesian;
    let mut saved = SavedClassifier::new(&model, bayesian.then_some(config.posterior.rank));
    saved.learned_slope = config.posterior.learn_slope;
    saved.slope = config.posterior.slope;
    saved.prior_deviation = config.posterior.prior_deviation;
    saved.weight_deviation = config.posterior.weight_deviation;
    saved.class_names.clone_from(&data.class_names);
    match &config.data.normalisation {
        Normalisation::Raw => {}
        Normalisation::Unit => saved.unit = true,
        Normalisation::Standard { mean, std } => {
            saved.unit = true;
            saved.mean.clone_from(mean);
            saved.std.clone_from(std);
        }
    }
    saved.notes.insert(STEPS.to_owned(), steps.to_string());
    let seed = config.training.seed;
    saved.notes.insert(SEED.to_owned(), seed.to_string());
    saved
        .notes
        .insert("data".to_owned(), data.fingerprint.clone());
    saved
        .notes
        .insert("command".to_owned(), folder.facts.facts.command.clone());
    let schema = data
        .table
        .as_ref()
        .and_then(|schema| serde_json::to_string(schema).ok());
    saved
        .notes
        .extend(schema.map(|schema| (TABLE.to_owned(), schema)));
    saved
}

/// Loads a saved classifier as if it were a run.
pub fn load(path: &Path) -> anyhow::Result<LoadedRun> {
    let (saved, network): (_, Bayesian<ImageClassifier>) =
        SavedClassifier::read(path, &circulant::cpu().autodiff())?;
    let mut config = RunConfig::default();
    config.model.kind = ModelKind::of(saved.hidden);
    config.model.channels = saved.channels;
    config.model.width = saved.width;
    config.model.modes = saved.modes;
    config.model.block = saved.block;
    config.model.depth = saved.depth;
    config.model.lift = saved.lift;
    config.posterior.learn_slope = saved.learned_slope;
    config.posterior.slope = saved.slope;
    config.posterior.prior_deviation = saved.prior_deviation;
    config.posterior.weight_deviation = saved.weight_deviation;
    // The file does not say what the classifier was trained on.
    config.data.train = String::new();
    match saved.rank {
        Some(rank) => config.posterior.rank = rank,
        None => config.posterior.inference = Inference::Point,
    }
    config.data.normalisation = match (saved.unit, saved.mean.is_empty()) {
        (false, _) => Normalisation::Raw,
        (true, true) => Normalisation::Unit,
        (true, false) => Normalisation::Standard {
            mean: saved.mean.clone(),
            std: saved.std.clone(),
        },
    };
    let note = |key: &str| saved.notes.get(key).cloned().unwrap_or_default();
    let steps = note(STEPS).parse().unwrap_or(0);
    config.training.seed = note(SEED).parse().unwrap_or(0);
    let schema = match saved.notes.get(TABLE) {
        None => None,
        Some(text) => Some(serde_json::from_str(text).with_context(|| {
            format!(
                "{}: the columns of its table are not understood; save the classifier again",
                path.display()
            )
        })?),
    };
    config.data.schema.clone_from(&schema);
    let [channels, height, width] = saved.image;
    let count = ParameterCount::of(&network.mean());
    let facts = RunFacts {
        facts: Facts::gather(),
        data: DataFacts {
            source: path.display().to_string(),
            shape: [0, channels, height, width],
            classes: saved.classes,
            class_names: saved.class_names.clone(),
            fingerprint: note("data"),
            table: schema.clone(),
        },
        weights: count.weights,
        biases: count.biases,
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    Ok(LoadedRun {
        folder: RunFolder::without_files(folder, config, facts),
        network,
        steps,
    })
}
