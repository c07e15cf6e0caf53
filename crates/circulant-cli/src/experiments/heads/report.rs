//! `report.html` of the experiment.

use super::super::facts::Facts;
use super::super::figures;
use super::super::geometry::section;
use super::super::values::{Values, seeds};
use super::results::{HeadResult, HeadsResults};
use super::{HeadOutcome, HeadsExperiment, paper};
use crate::report::figure::{Axis, Curve, CurveLook, Curves};
use crate::report::{Cell, Column, Comparison, ComparisonRow, Document, Figure, Section, Table};

pub fn document(experiment: &HeadsExperiment, results: &HeadsResults) -> anyhow::Result<Document> {
    let [train, test, corrupted] = results.inputs;
    Ok(Document {
        title: format!("Bayesian heads on frozen features of {}", results.data),
        intro: vec![format!(
            "{} pooled features per image; {} SVI steps per head, seeds {}, {} posterior samples per prediction. Learned from \
             {train} images, tested on {test}, and shown {corrupted} corrupted ones of each of {} kinds.",
            results.features,
            results.settings.training.steps,
            seeds(&results.seeds),
            results.samples,
            experiment.plan.sets.corrupted.len()
        )],
        warnings: Vec::new(),
        sections: vec![
            Section::new("Results beside the paper's")
                .table(comparison(experiment, results).table()),
            spectrum(results),
            entropies(experiment, results)?,
            geometry(experiment),
            corruptions(results),
        ],
        provenance: Facts::gather().provenance(
            results.seeds.clone(),
            experiment.start.elapsed(),
            results.settings.to_toml(),
        ),
    })
}

/// The table for the terminal.
pub fn plain(experiment: &HeadsExperiment, results: &HeadsResults) -> String {
    format!(
        "{}: {} features, seeds {}, {} posterior samples; AUROC over {} kinds of corrupted images\n{}",
        results.data,
        results.features,
        seeds(&results.seeds),
        results.samples,
        experiment.plan.sets.corrupted.len(),
        comparison(experiment, results).plain()
    )
}

fn comparison(experiment: &HeadsExperiment, results: &HeadsResults) -> Comparison {
    let row = |outcome: &HeadOutcome| {
        let result = &outcome.result;
        let is_the_papers = experiment.plan.is_the_papers();
        let paper = is_the_papers.then(|| paper::row(&result.name)).flatten();
        ComparisonRow {
            name: outcome.variant.title.clone(),
            facts: vec![
                Cell::Count(result.weights as u64),
                Cell::number(result.geometry.lipschitz, 2),
                Cell::number(result.geometry.radius.median, 4),
                Cell::number(result.seconds.mean, 1),
            ],
            ours: result.columns().map(|values| Some(values.into())).to_vec(),
            paper: paper.map_or(vec![None; 6], |row| row.to_vec()),
        }
    };
    Comparison {
        caption: "Means over the seeds, with the sample standard deviation".to_owned(),
        subject: "head".to_owned(),
        facts: ["weights", "Lipschitz", "radius", "seconds"]
            .map(Column::number)
            .to_vec(),
        metrics: paper::METRICS.to_vec(),
        rows: experiment.heads.iter().map(row).collect(),
        footnotes: vec![format!(
            "AUROC and FPR@95 of the predictive entropy: means over corruptions and severities, and at severity 5. ECE with 10 \
             bins. Weights are real parameters, without biases; Lipschitz bound and median radius are those of the paper, \
             for the first seed. Training of all heads and seeds took {:.0} s.",
            results.training_seconds
        )],
    }
}

fn spectrum(results: &HeadsResults) -> Section {
    let mut spectral: Vec<&HeadResult> = results
        .heads
        .iter()
        .filter(|head| head.modes.is_some())
        .collect();
    spectral.sort_by_key(|head| head.modes);
    let section = Section::new("How many frequencies are needed");
    if spectral.len() < 2 {
        return section.text("Only one spectral head ran.");
    }
    let draw = |title: &str, unit: &str, pick: fn(&HeadResult) -> &Values| {
        let x = || {
            spectral
                .iter()
                .map(|head| head.modes.unwrap_or(0) as f64)
                .collect()
        };
        let runs: Vec<Vec<f64>> = (0..results.seeds.len())
            .map(|seed| {
                spectral
                    .iter()
                    .map(|head| pick(head).values[seed])
                    .collect()
            })
            .collect();
        let mut curves = vec![Curve::over_seeds("spectral", x(), &runs)];
        for head in results.heads.iter().filter(|head| head.modes.is_none()) {
            let level = vec![pick(head).mean; spectral.len()];
            curves.push(Curve::new(head.name.clone(), x(), level).looking(CurveLook::Dashed));
        }
        Curves {
            title: title.to_owned(),
            x: Axis::log("K, the lowest frequencies of the head"),
            y: Axis::linear(unit),
            curves,
        }
        .draw()
    };
    section.figure(Figure::of(
        "modes",
        "Heads that keep only the K lowest frequencies; other heads as dashed lines. Bands from the smallest to the largest \
         seed.",
        vec![
            draw("Accuracy", "test accuracy", |head| &head.accuracy),
            draw("NLL", "nats", |head| &head.nll),
            draw("AUROC", "mean over corruptions and severities", |head| &head.auroc),
        ],
    ))
}

fn entropies(experiment: &HeadsExperiment, results: &HeadsResults) -> anyhow::Result<Section> {
    let classes = experiment.plan.sets.train.labels().classes();
    let mut drawings = Vec::new();
    for outcome in experiment
        .heads
        .iter()
        .filter(|outcome| !outcome.ood_entropy.is_empty())
    {
        drawings.push(figures::entropies(
            &outcome.variant.title,
            classes,
            &[
                (&results.data, &outcome.id_entropy),
                ("corrupted, severity 5", &outcome.ood_entropy),
            ],
        )?);
    }
    Ok(Section::new("Knowing what it does not know").figure(Figure::of(
        "entropy",
        "Densities of the predictive entropy, first seed: clean test images, and all corruptions at severity 5.",
        drawings,
    )))
}

fn geometry(experiment: &HeadsExperiment) -> Section {
    let trajectory = |outcome: &HeadOutcome| {
        let lines = outcome.trajectory.iter();
        let (x, y) = lines.map(|line| (line.step as f64, line.bound)).unzip();
        Curve::new(outcome.variant.title.as_str(), x, y)
    };
    let training = Curves {
        title: "Lipschitz bound along training".to_owned(),
        x: Axis::linear("step"),
        y: Axis::log("upper bound"),
        curves: experiment.heads.iter().map(trajectory).collect(),
    };
    let networks = experiment.heads.iter();
    let networks = networks.map(|head| (head.variant.title.as_str(), &head.geometry));
    let footnote =
        "The paper reports bounds of about 200 (spectral) and 5200 (dense 32), for other features.";
    section(
        "normalised features",
        vec![footnote.to_owned()],
        &networks.collect::<Vec<_>>(),
    )
    .figure(Figure::new(
        "lipschitz-training",
        "The Lipschitz bound of the posterior's mean along training.",
        training.draw(),
    ))
}

fn corruptions(results: &HeadsResults) -> Section {
    let Some(first) = results.heads.first().and_then(|head| head.runs.first()) else {
        return Section::new("Corruption by corruption");
    };
    let mut names: Vec<&str> = first.corruptions.iter().map(|row| row.corruption).collect();
    names.dedup();
    let mut columns = vec![Column::text("corruption")];
    for head in &results.heads {
        columns.push(Column::number(head.name.clone()));
    }
    let row = |name: &&str| {
        let mut cells = vec![Cell::text(name.replace('_', " "))];
        for head in &results.heads {
            let rows = head.runs.iter().flat_map(|run| &run.corruptions);
            let own: Vec<f64> = rows
                .filter(|row| row.corruption == *name)
                .map(|row| row.auroc)
                .collect();
            cells.push(Cell::number(own.iter().sum::<f64>() / own.len() as f64, 3));
        }
        cells
    };
    Section::new("Corruption by corruption").table(Table {
        caption: "AUROC of the predictive entropy, mean over severities and seeds".to_owned(),
        columns,
        rows: names.iter().map(row).collect(),
        footnotes: vec!["Per severity, with accuracies, in results.json.".to_owned()],
    })
}
