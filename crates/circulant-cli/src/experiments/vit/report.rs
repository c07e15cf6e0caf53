//! `report.html` of the experiment.

use super::super::facts::Facts;
use super::folder::EpochLine;
use super::results::{VitResult, VitResults, VitRunResult};
use super::sets::PaperData;
use super::{VitExperiment, VitOutcome, paper};
use crate::report::figure::{Axis, Curve, CurveLook, Curves, Drawing, Reliability};
use crate::report::{Cell, Column, Comparison, ComparisonRow, Document, Figure, Section, Table};

pub fn document(experiment: &VitExperiment, results: &VitResults) -> Document {
    let (plan, data) = (&experiment.plan, experiment.plan.sets.paper);
    let [training, validation, test] = results.images;
    let settings = &results.settings.training;
    let augmentation = match (settings.flip, settings.crop) {
        (false, 0) => "no augmentation".to_owned(),
        (true, 0) => "mirrored images".to_owned(),
        (false, crop) => format!("images moved by up to {crop} pixels"),
        (true, crop) => format!("mirrored images, moved by up to {crop} pixels"),
    };
    let spectral = match settings.spectral_rate {
        1.0 => String::new(),
        rate => format!(" ({rate} times as much for spectral coordinates)"),
    };
    let spectral = match settings.length_power {
        0.0 => spectral,
        power => format!(
            "{spectral} (times the length of a circulant matrix or block to the power of {power})"
        ),
    };
    Document {
        title: format!("Vision transformers on {}", results.data),
        intro: vec![
            format!(
                "Projections of attention as matrices and as circulant matrices, everything else alike: Adan, peak learning \
                 rate {}{spectral}, {} epochs of warm-up, cosine to zero at epoch {}, weight decay {}, batch {}, {augmentation}. \
                 {training} training images, {validation} to choose the checkpoint by, {test} test images.",
                settings.learning_rate,
                settings.warm_up,
                settings.epochs,
                settings.weight_decay,
                settings.batch
            ),
            results.stopped.clone(),
        ],
        warnings: Vec::new(),
        sections: vec![
            Section::new("Results beside the paper's").table(comparison(data, results).table()),
            learning(experiment),
            curvature(experiment, results),
            calibration(experiment),
        ],
        provenance: Facts::gather().provenance(
            plan.seeds(),
            experiment.start.elapsed(),
            results.settings.to_toml(),
        ),
    }
}

/// Our numbers beside the paper's.
pub fn comparison(data: Option<PaperData>, results: &VitResults) -> Comparison {
    let row = |model: &VitResult| {
        let paper = data.and_then(|data| paper::row(data, model.name));
        let epochs = |pick: fn(&VitRunResult) -> u64| -> String {
            let epochs: Vec<String> = model.runs.iter().map(|run| pick(run).to_string()).collect();
            epochs.join(", ")
        };
        let below = |cell: Cell, below: Option<u64>| match below {
            Some(number) => Cell::Stacked(Box::new(cell), Box::new(Cell::Count(number))),
            None => cell,
        };
        ComparisonRow {
            name: model.name.name(),
            facts: vec![
                Cell::Count(model.parameters as u64),
                below(
                    Cell::Count(model.paper_count as u64),
                    paper.map(|row| row.parameters as u64),
                ),
                below(
                    Cell::text(epochs(|run| run.best_epoch)),
                    paper.map(|row| row.best_epoch),
                ),
                Cell::text(epochs(|run| run.epochs)),
                Cell::number(model.images_per_second.mean, 0),
                Cell::number(model.ece.mean, 3),
            ],
            ours: vec![Some((&model.accuracy).into()), Some((&model.nll).into())],
            paper: paper.map_or(vec![None; 2], |row| vec![Some(row.accuracy), Some(row.nll)]),
        }
    };
    let names = [
        "parameters",
        "paper's count",
        "best epoch",
        "epochs",
        "images/s",
        "ECE",
    ];
    Comparison {
        caption: "On the test set, at the epoch with the smallest validation loss".to_owned(),
        subject: "projections".to_owned(),
        facts: names.map(Column::number).to_vec(),
        metrics: paper::METRICS.to_vec(),
        rows: results.models.iter().map(row).collect(),
        footnotes: vec![
            "Parameters are real; the paper counts a complex number once and a slope per projection. Below the \
             count and the best epoch are the paper's, where it has this data set. ECE with 10 bins."
                .to_owned(),
        ],
    }
}

/// Losses of one run, and the best epoch.
pub fn curves(title: &str, epochs: &[EpochLine]) -> Drawing {
    let (train, validation) = pair("", epochs, 0);
    Curves {
        title: title.to_owned(),
        x: Axis::linear("epoch"),
        y: Axis::linear("cross-entropy (nats)"),
        curves: vec![train, validation],
    }
    .draw()
}

fn pair(name: &str, epochs: &[EpochLine], colour: usize) -> (Curve, Curve) {
    let x: Vec<f64> = epochs.iter().map(|line| line.epoch as f64).collect();
    let of = |pick: fn(&EpochLine) -> f64| -> Vec<f64> { epochs.iter().map(pick).collect() };
    let name = |part: &str| format!("{name} {part}").trim().to_owned();
    let train = Curve::new(name("training"), x.clone(), of(|line| line.train_loss))
        .looking(CurveLook::Dashed)
        .coloured(colour);
    let mut validation =
        Curve::new(name("validation"), x, of(|line| line.validation_loss)).coloured(colour);
    let losses = epochs.iter().map(|line| line.validation_loss).enumerate();
    if let Some((best, _)) = losses.min_by(|a, b| a.1.total_cmp(&b.1)) {
        validation = validation.marked(best, format!("epoch {}", epochs[best].epoch));
    }
    (train, validation)
}

fn learning(experiment: &VitExperiment) -> Section {
    let (mut losses, mut accuracies) = (Vec::new(), Vec::new());
    for (colour, outcome) in experiment.outcomes.iter().enumerate() {
        let name = outcome.folder.config.name();
        let (train, validation) = pair(&name, &outcome.epochs, colour);
        losses.extend([train, validation]);
        let lines = outcome.epochs.iter();
        let points = lines.map(|line| (line.epoch as f64, line.validation_accuracy));
        let (x, y) = points.unzip();
        accuracies.push(Curve::new(name, x, y).coloured(colour));
    }
    let draw = |title: &str, unit: &str, curves| {
        Curves {
            title: title.to_owned(),
            x: Axis::linear("epoch"),
            y: Axis::linear(unit),
            curves,
        }
        .draw()
    };
    Section::new("Learning curves").figure(Figure::of(
        "learning",
        "Loss of the training images, with dropout and while the model changed (dashed), and of the validation images at the \
         end of each epoch; the best epoch is marked.",
        vec![
            draw("Cross-entropy", "nats", losses),
            draw("Validation accuracy", "share", accuracies),
        ],
    ))
}

fn curvature(experiment: &VitExperiment, results: &VitResults) -> Section {
    let section = Section::new("Curvature");
    let mut rows = Vec::new();
    let (mut images, mut seed) = (0, 0);
    for model in &results.models {
        for run in &model.runs {
            let Some(measured) = &run.curvature else {
                continue;
            };
            (images, seed) = (measured.settings.images, run.seed);
            for space in &measured.spaces {
                let paper = experiment
                    .plan
                    .sets
                    .paper
                    .and_then(|data| paper::curvature(data, model.name, space.subspace));
                let value = |eigenvalue: &super::curvature::Eigenvalue| Cell::Number {
                    value: eigenvalue.value,
                    digits: 3,
                    spread: Some(eigenvalue.residual),
                    best: false,
                };
                let theirs = |which: usize, digits| {
                    paper.map_or(Cell::Missing, |values: [f64; 2]| {
                        Cell::number(values[which], digits)
                    })
                };
                rows.push(vec![
                    Cell::text(model.name.name()),
                    Cell::text(space.subspace.title()),
                    Cell::Count(space.dimension as u64),
                    value(&space.hessian),
                    theirs(0, 2),
                    value(&space.gauss_newton),
                    theirs(1, 1),
                    Cell::Count((space.hessian.products + space.gauss_newton.products) as u64),
                ]);
            }
        }
    }
    if rows.is_empty() {
        return section.text("Not measured: --no-curvature.");
    }
    let columns = [
        Column::text("projections"),
        Column::text("subspace"),
        Column::number("dimension"),
        Column::number("ours").grouped("Hessian"),
        Column::number("paper").grouped("Hessian"),
        Column::number("ours").grouped("Gauss-Newton"),
        Column::number("paper").grouped("Gauss-Newton"),
        Column::number("products"),
    ];
    section
        .text(
            "How sharply the validation loss bends around the best checkpoint: the eigenvalue of largest magnitude of the \
             Hessian, and the largest of the Gauss-Newton matrix.",
        )
        .table(Table {
            caption: format!("Of the mean loss over {images} validation images, seed {seed}"),
            columns: columns.to_vec(),
            rows,
            footnotes: vec![
                "In small print the residual: an eigenvalue lies within this distance. In f64, products by differences of \
                 exact gradients, Lanczos. The paper's Gauss-Newton values are about 130 times its Hessian's, so they are \
                 probably sums over a batch where ours are means: compare rows, not ours with the paper's."
                    .to_owned(),
            ],
        })
}

fn calibration(experiment: &VitExperiment) -> Section {
    let drawing = |outcome: &VitOutcome| {
        Reliability::from_diagram(outcome.folder.config.name(), &outcome.diagram).draw()
    };
    Section::new("Calibration").figure(Figure::of(
        "reliability",
        "How often the model is right on the test set, given how sure it is.",
        experiment.outcomes.iter().map(drawing).collect(),
    ))
}
