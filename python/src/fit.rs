//! The fit of a classifier.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::ensure;
use circulant::bayes::{StepReport, Svi};
use circulant::data::{BatchOrder, LabelledData};
use circulant::geometry::NormControl;
use circulant::models::{ImageClassifier, ParameterCount};
use circulant_cli::bindings::{
    DataFacts, Facts, LoadedRun, RunConfig, RunFacts, RunFolder, network as network_of,
};
use circulant_data::Normalisation;

use crate::arrays::Number;
use crate::classifier::Classifier;
use crate::table::{Columns, Examples, Rows};
use crate::threads::Stop;
use crate::training::{Progress, Weighted, svi_config, tape};

/// The arguments of a fit, as slices.
pub struct Task<'a, T> {
    /// The settings.
    pub config: RunConfig,
    /// `[channels, height, width]`.
    pub image: [usize; 3],
    /// What to learn from.
    pub rows: Rows<'a, T>,
    /// One per row.
    pub labels: &'a [i64],
    /// One per row.
    pub weights: Option<&'a [f64]>,
    /// As many as classes.
    pub class_names: Vec<String>,
    /// Whether columns are shifted and scaled.
    pub standardise: bool,
    /// Where training begins, and the examples seen before.
    pub begin: Option<(&'a Classifier, usize)>,
}

/// Trains until all steps are done or somebody asks to stop.
pub fn train<T: Number>(
    task: Task<'_, T>,
    stop: &Stop,
    told: &Progress,
) -> anyhow::Result<Classifier> {
    let Task {
        mut config,
        image,
        rows,
        labels,
        weights,
        class_names,
        standardise,
        begin,
    } = task;
    let classes = class_names.len();
    ensure!(
        rows.columns > 0 && rows.values.len() == labels.len() * rows.columns,
        "x: expected {} rows of {} values, got {} values",
        labels.len(),
        rows.columns,
        rows.values.len()
    );
    ensure!(
        labels
            .iter()
            .all(|&label| usize::try_from(label).is_ok_and(|label| label < classes)),
        "labels: expected classes from 0 to {classes}, without the last"
    );
    ensure!(
        weights.is_none_or(|weights| weights.len() == labels.len()),
        "one weight per row is expected"
    );
    let targets: Vec<u64> = labels.iter().map(|&label| label as u64).collect();
    let examples = Examples::of(rows, &targets, weights);
    ensure!(
        !examples.rows.is_empty(),
        "expected at least one example with a positive weight"
    );
    let columns = match begin {
        Some((before, _)) => before.columns().clone(),
        None if standardise => Columns::of(rows, &examples),
        None => Columns::identity(rows.columns),
    };
    config.data.normalisation = if standardise {
        Normalisation::Standard {
            mean: columns.mean.clone(),
            std: columns.std.clone(),
        }
    } else {
        Normalisation::Raw
    };
    config.data.train = String::new();
    // Every column is a channel of its own, with a mean and a deviation: so the program reads the files too.
    let image = if standardise {
        [rows.columns, 1, 1]
    } else {
        image
    };
    let values = columns.apply(rows, examples.rows.iter().copied());
    let chosen: Vec<i64> = examples.rows.iter().map(|&row| labels[row]).collect();
    let count = examples.rows.len();
    let shape = [count, image[0], image[1], image[2]];
    let fingerprint = format!("{:016x}", examples.fingerprint(&values, &chosen));
    let _tape = tape(stop)?;
    let network = match begin {
        Some((before, _)) => {
            // What was learned so far is where it goes on.
            before.lock().network.clone()
        }
        None => network_of(&config, image, classes)?,
    };
    let seen = begin.map_or(0, |(_, seen)| seen);
    let mut svi = Svi::new(network, svi_config(&config), count + seen)?;
    if let Some(limit) = config.training.norm_limit {
        svi = svi.with_projection(move |mut model: ImageClassifier| {
            model.clip_norm(limit)?;
            Ok(model)
        })?;
    }
    let mut loss = None;
    let mut callback = |report: &StepReport| {
        loss = Some(report.loss);
        told.loss.store(report.loss.to_bits(), Ordering::Relaxed);
        told.step.store(report.step + 1, Ordering::Relaxed);
        if stop.is_asked() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    if let (None, 0) = (&examples.weights, seen) {
        let data = LabelledData::new(values, shape, &chosen, classes, &circulant::cpu())?;
        svi.fit(&data, None, &mut callback)?;
    } else {
        let weighted = Weighted {
            values,
            labels: chosen,
            weights: examples.weights.unwrap_or_else(|| vec![1.0; count]),
            shape,
        };
        let mut order = BatchOrder::new(config.training.seed, count, config.training.batch)?;
        for step in 0..config.training.steps {
            let batch = weighted.batch(order.at(step));
            let report = svi.step(order.batch(), |model| batch.log_likelihood(model))?;
            if callback(&report).is_break() {
                break;
            }
        }
    }
    let steps = svi.steps_done() + begin.map_or(0, |(before, _)| before.steps_done());
    let network = svi.into_network();
    let counted = ParameterCount::of(&network.mean());
    let facts = RunFacts {
        facts: Facts::gather(),
        data: facts_of_array(shape, classes, class_names, fingerprint)?,
        weights: counted.weights,
        biases: counted.biases,
    };
    let folder = RunFolder::without_files(Path::new("."), config, facts);
    let run = LoadedRun {
        folder,
        network,
        steps,
    };
    Ok(Classifier::new(run, columns, loss))
}

/// What is known of an array; facts that only files have are left out.
fn facts_of_array(
    shape: [usize; 4],
    classes: usize,
    class_names: Vec<String>,
    fingerprint: String,
) -> anyhow::Result<DataFacts> {
    Ok(serde_json::from_value(serde_json::json!({
        "source": "an array",
        "shape": shape,
        "classes": classes,
        "class_names": class_names,
        "fingerprint": fingerprint,
    }))?)
}
