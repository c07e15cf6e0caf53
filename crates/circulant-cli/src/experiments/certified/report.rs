//! `report.html` of the experiment.

use super::super::facts::Facts;
use super::super::values::Values;
use super::published::published;
use super::results::{CertifiedResult, CertifiedResults};
use super::settings::rounded;
use super::{CertifiedExperiment, Judging};
use crate::report::figure::{
    Axis, Curve, CurveLook, Curves, Drawing, LabelledPoint, PointGroup, scatter,
};
use crate::report::{Cell, Column, Document, Figure, Section, Table};

pub fn document(experiment: &CertifiedExperiment, results: &CertifiedResults) -> Document {
    let [training, validation, test] = results.images;
    let settings = &results.settings.certified;
    let models = &results.models;
    Document {
        title: format!("Certified by training: {}", results.data),
        intro: vec![format!(
            "Orthogonal convolutions with MaxMin and a read-out of columns of norm one, trained with a margin loss: a network of \
             Lipschitz constant one by construction. {training} training images, {validation} held out, {test} for the test. \
             Batch {}, Adan, images moved by up to {} pixels. Radii are of the 2-norm, with pixels between 0 and 1, and hold for the \
             f32 computation.",
            settings.batch, settings.shift
        )],
        warnings: experiment.warnings(),
        sections: vec![
            Section::new("Results")
                .table(table(models, &experiment.plan.judging))
                .figure(Figure::of(
                    "certified",
                    "Certified accuracy at the radius of training, ours and published.",
                    sizes(results),
                )),
            Section::new("By the radius").figure(Figure::of(
                "radius",
                "The share of inputs that is right and certified; dashed: of the average over networks drawn from the posterior.",
                vec![curves(models)],
            )),
            Section::new("Training").figure(Figure::of(
                "training",
                "Certified accuracy of held-out images after every epoch, against the time of training.",
                vec![learning(models)],
            )),
        ],
        provenance: Facts::gather().provenance(
            experiment.plan.seeds(),
            experiment.start.elapsed(),
            results.settings.to_toml(),
        ),
    }
}

fn table(models: &[CertifiedResult], judging: &Judging) -> Table {
    let names = [
        "parameters",
        "radius",
        "accuracy",
        "certified",
        "under attack",
        "ECE",
        "accuracy",
        "certified",
        "ECE",
        "AUROC",
        "seconds",
    ];
    let columns = names.into_iter().enumerate().map(|(index, name)| {
        let column = Column::number(name);
        match index {
            6..=9 => column.grouped("averaged over the posterior"),
            _ => column,
        }
    });
    let some =
        |values: Option<&Values>, digits: usize| values.map_or(Cell::Missing, |v| of(v, digits));
    let row = |model: &CertifiedResult| {
        vec![
            Cell::text(model.widths.clone()),
            Cell::Count(model.parameters as u64),
            Cell::text(rounded(model.radius).to_string()),
            of(&model.accuracy, 4),
            of(&model.certified, 4),
            some(model.robust.as_ref(), 3),
            of(&model.ece, 3),
            some(model.bayesian_accuracy.as_ref(), 4),
            some(model.bayesian_certified.as_ref(), 4),
            some(model.bayesian_ece.as_ref(), 3),
            some(model.auroc.as_ref(), 3),
            of(&model.seconds, 0),
        ]
    };
    Table {
        caption: "Channels per stage, and what the set said".to_owned(),
        columns: [Column::text("network")]
            .into_iter()
            .chain(columns)
            .collect(),
        rows: models.iter().map(row).collect(),
        footnotes: vec![format!(
            "Under attack: projected gradient in the 2-norm, {} steps from {} starts, on {} images. ECE with 10 bins, at the \
             temperature of the held-out images. Averages over {} networks.",
            judging.attack_steps, judging.attack_restarts, judging.attack_images, judging.samples
        )],
    }
}

fn of(values: &Values, digits: usize) -> Cell {
    Cell::Number {
        value: values.mean,
        digits,
        spread: (values.values.len() > 1).then_some(values.std),
        best: false,
    }
}

/// Certified accuracy against parameters, a figure per radius.
fn sizes(results: &CertifiedResults) -> Vec<Drawing> {
    let mut radii: Vec<f64> = results.models.iter().map(|model| model.radius).collect();
    radii.dedup();
    let figure = |radius: f64| {
        let own = results.models.iter().filter(|model| model.radius == radius);
        let ours = own.map(|model| {
            let (mean, std) = (model.certified.mean, model.certified.std);
            LabelledPoint {
                label: model.widths.clone(),
                x: model.parameters as f64,
                y: mean,
                error: (model.runs.len() > 1).then_some([mean - std, mean + std]),
            }
        });
        let theirs = published(&results.data, radius).map(|row| LabelledPoint {
            label: row.name.to_owned(),
            x: row.parameters,
            y: f64::midpoint(row.certified[0], row.certified[1]),
            error: (row.certified[0] < row.certified[1]).then_some(row.certified),
        });
        let mut groups = vec![PointGroup {
            name: "ours".to_owned(),
            points: ours.collect(),
        }];
        let theirs: Vec<LabelledPoint> = theirs.collect();
        if !theirs.is_empty() {
            groups.push(PointGroup {
                name: "published".to_owned(),
                points: theirs,
            });
        }
        scatter(
            &format!("{}, radius {}", results.data, rounded(radius)),
            &Axis::log("parameters"),
            &Axis::linear("certified accuracy"),
            &groups,
        )
    };
    radii.into_iter().map(figure).collect()
}

fn curves(models: &[CertifiedResult]) -> Drawing {
    let mut all = Vec::new();
    for (colour, model) in models.iter().enumerate() {
        let Some(run) = model.runs.first() else {
            continue;
        };
        let name = format!("{}, trained for {}", model.widths, rounded(model.radius));
        let points = |curve: &[[f64; 2]]| -> (Vec<f64>, Vec<f64>) {
            curve.iter().map(|point| (point[0], point[1])).unzip()
        };
        let (x, y) = points(&run.evaluation.curve);
        all.push(Curve::new(name.clone(), x, y).coloured(colour));
        if let Some(bayesian) = &run.evaluation.bayesian {
            let (x, y) = points(&bayesian.curve);
            let curve = Curve::new(format!("{name}, average"), x, y);
            all.push(curve.coloured(colour).looking(CurveLook::Dashed));
        }
    }
    Curves {
        title: "Certified accuracy".to_owned(),
        x: Axis::linear("radius (l2)"),
        y: Axis::linear("share of inputs, right and certified").within(0.0, 1.0),
        curves: all,
    }
    .draw()
}

fn learning(models: &[CertifiedResult]) -> Drawing {
    let mut all = Vec::new();
    for (colour, model) in models.iter().enumerate() {
        for run in &model.runs {
            let name = format!(
                "{}, radius {}, seed {}",
                model.widths,
                rounded(model.radius),
                run.seed
            );
            let lines = run.epochs.iter();
            let (x, y) = lines.map(|line| (line.seconds, line.certified)).unzip();
            all.push(Curve::new(name, x, y).coloured(colour));
        }
    }
    Curves {
        title: "Held-out images".to_owned(),
        x: Axis::linear("seconds of training"),
        y: Axis::linear("certified accuracy"),
        curves: all,
    }
    .draw()
}
