//! `report.html` of the experiment.

use anyhow::Context;

use super::super::facts::Facts;
use super::super::geometry::{NetworkGeometry, section};
use super::super::values::seeds;
use super::super::{figures, layer_figures};
use super::results::MnistResults;
use super::settings::LONGER;
use super::{MnistExperiment, MnistOutcome, baselines, paper};
use crate::report::figure::{
    Axis, Curve, Curves, Drawing, LabelledPoint, PointGroup, Reliability, scatter,
};
use crate::report::{Cell, Column, Comparison, ComparisonRow, Document, Estimate, Figure, Section};

/// Test images per posterior sample; the bounds themselves need none.
const PER_SAMPLE: usize = 16;
/// Steps that the curves are averaged over.
const SMOOTH: usize = 15;

pub fn document(experiment: &MnistExperiment) -> anyhow::Result<Document> {
    let plan = &experiment.plan;
    let mut warnings = Vec::new();
    if !plan.sets.is_real() {
        let why = match &plan.sets.fallback {
            None => "as asked for".to_owned(),
            Some(reason) => format!("because MNIST could not be had: {reason}"),
        };
        warnings.push(format!(
                "This ran on drawn glyphs, not on MNIST, {why}. The numbers cannot be held against the paper's. \
                 `circulant data fetch mnist fashion-mnist` gets the real data."
        ));
    }
    let mut sections = vec![results(experiment)];
    if !experiment.beyond.is_empty() {
        let text = "The paper stops after 1000 steps with one hidden layer. This is what the same kinds of layers \
                    reach with more.";
        let section = Section::new("How far small models go").text(text);
        sections.push(section.table(beyond(experiment).table()));
    }
    if !experiment.baselines.is_empty() {
        sections.push(baselines::section(&experiment.baselines));
    }
    sections.extend([
        entropies(experiment)?,
        calibration(experiment),
        spectra(experiment)?,
        geometry(experiment)?,
        settings(experiment),
    ]);
    Ok(Document {
        title: format!(
            "{} against {}",
            upper(plan.sets.name),
            upper(plan.sets.ood_name)
        ),
        intro: vec![format!(
            "Compact Bayesian models, {} SVI steps each, seeds {}, {} posterior samples per prediction. Learned from \
             {} images, tested on {}, and on {} out-of-distribution ones.",
            plan.shared.settings.training.steps,
            seeds(&plan.shared.seeds),
            plan.shared.samples,
            plan.sets.train.len(),
            plan.sets.test.len(),
            plan.sets.ood.len()
        )],
        warnings,
        sections,
        provenance: Facts::gather().provenance(
            plan.shared.seeds.clone(),
            experiment.start.elapsed(),
            plan.shared.settings.to_toml(),
        ),
    })
}

/// As people write it.
fn upper(name: &str) -> &str {
    match name {
        "mnist" => "MNIST",
        "fashion-mnist" => "Fashion-MNIST",
        name => name,
    }
}

fn comparison_row(outcome: &MnistOutcome, paper: Option<[f64; 6]>) -> ComparisonRow {
    let ours = paper::ours(&outcome.result).map(|values| Some(Estimate::from(values)));
    ComparisonRow {
        name: outcome.variant.title.clone(),
        facts: vec![
            Cell::Count(outcome.result.weights as u64),
            Cell::Count(outcome.result.biases as u64),
            Cell::number(outcome.result.seconds.mean, 1),
        ],
        ours: ours.to_vec(),
        paper: paper.map_or(vec![None; 6], |row| row.map(Some).to_vec()),
    }
}

fn comparison(caption: String, rows: Vec<ComparisonRow>, footnotes: Vec<String>) -> Comparison {
    Comparison {
        caption,
        subject: "model".to_owned(),
        facts: ["weights", "biases", "seconds"]
            .map(Column::number)
            .to_vec(),
        metrics: paper::METRICS.to_vec(),
        rows,
        footnotes,
    }
}

/// Our numbers beside the paper's.
fn models(experiment: &MnistExperiment) -> Comparison {
    let real = experiment.plan.sets.is_real();
    let rows = experiment.models.iter().map(|outcome| {
        let kind = outcome.variant.config.model.kind;
        comparison_row(outcome, real.then(|| paper::row(kind)).flatten())
    });
    let footnote = "ECE and MCE with 10 bins. AUROC and FPR@95 of the predictive entropy. Weights are real \
                    parameters. Seconds of training, per seed.";
    let caption = "Means over the seeds, with the sample standard deviation".to_owned();
    comparison(caption, rows.collect(), vec![footnote.to_owned()])
}

fn beyond(experiment: &MnistExperiment) -> Comparison {
    let rows = experiment
        .beyond
        .iter()
        .map(|outcome| comparison_row(outcome, None));
    let caption = format!("The same data and metrics, {LONGER} times the steps");
    comparison(caption, rows.collect(), Vec::new())
}

/// The tables for the terminal.
pub fn plain(experiment: &MnistExperiment, results: &MnistResults) -> String {
    let warning = match experiment.plan.sets.is_real() {
        true => "",
        false => {
            "NOT MNIST: this ran on drawn glyphs. The paper's numbers are about other data and not comparable.\n\n"
        }
    };
    let mut text = format!(
        "{warning}{} against {}, seeds {}, {} posterior samples\n{}",
        results.data,
        results.ood,
        seeds(&results.seeds),
        results.samples,
        models(experiment).plain()
    );
    if !experiment.beyond.is_empty() {
        text.push_str(&format!("beyond the paper, {LONGER} times the steps:\n"));
        text.push_str(&beyond(experiment).plain());
    }
    if !experiment.baselines.is_empty() {
        text.push_str(&baselines::plain(&experiment.baselines));
    }
    text
}

fn results(experiment: &MnistExperiment) -> Section {
    let caption = "Test accuracy against the number of weights. Bars are one standard deviation over the seeds.";
    Section::new("Results beside the paper's")
        .table(models(experiment).table())
        .figure(Figure::new("size", caption, sizes(experiment)))
        .figure(training(experiment))
}

fn sizes(experiment: &MnistExperiment) -> Drawing {
    let point = |outcome: &MnistOutcome, label: &str| {
        let accuracy = &outcome.result.accuracy;
        let (low, high) = (accuracy.mean - accuracy.std, accuracy.mean + accuracy.std);
        LabelledPoint {
            label: label.to_owned(),
            x: outcome.result.weights as f64,
            y: accuracy.mean,
            error: (accuracy.values.len() > 1).then_some([low, high]),
        }
    };
    let group = |name: &str, points| PointGroup {
        name: name.to_owned(),
        points,
    };
    let (models, beyond) = (experiment.models.iter(), experiment.beyond.iter());
    let own = models
        .clone()
        .map(|outcome| point(outcome, &outcome.variant.title));
    let mut groups = vec![group("ours", own.collect())];
    if experiment.plan.sets.is_real() {
        let points = models.filter_map(|outcome| {
            Some(LabelledPoint {
                y: paper::row(outcome.variant.config.model.kind)?[0],
                error: None,
                ..point(outcome, "")
            })
        });
        groups.push(group("paper", points.collect()));
    }
    if beyond.len() > 0 {
        let points = beyond.map(|outcome| point(outcome, ""));
        groups.push(group("beyond the paper", points.collect()));
    }
    let [x, y] = [Axis::log("weights"), Axis::linear("test accuracy")];
    scatter("Accuracy against size", &x, &y, &groups)
}

fn training(experiment: &MnistExperiment) -> Figure {
    let curves = experiment.models.iter().map(|outcome| {
        let longest = outcome.steps.iter().map(Vec::len).max().unwrap_or(0);
        let x = (1..=longest).map(|step| step as f64).collect();
        let runs: Vec<Vec<f64>> = outcome
            .steps
            .iter()
            .map(|steps| steps.iter().map(|line| line.loss).collect())
            .collect();
        Curve::over_seeds(outcome.variant.title.as_str(), x, &runs).smoothed(SMOOTH)
    });
    let drawing = Curves {
        title: "Negative ELBO per input".to_owned(),
        x: Axis::linear("step"),
        y: Axis::log("nats"),
        curves: curves.collect(),
    };
    Figure::new(
        "elbo",
        format!(
            "Training: mean over the seeds, with a band from the smallest to the largest; averaged over {SMOOTH} steps."
        ),
        drawing.draw(),
    )
}

fn entropies(experiment: &MnistExperiment) -> anyhow::Result<Section> {
    let sets = &experiment.plan.sets;
    let mut drawings = Vec::new();
    for outcome in &experiment.models {
        let example = &outcome.example;
        let ood = format!("{} (OOD)", upper(sets.ood_name));
        drawings.push(figures::entropies(
            &outcome.variant.title,
            example.id.classes,
            &[
                (upper(sets.name), &example.id.predictive_entropy),
                (&ood, &example.ood.predictive_entropy),
            ],
        )?);
    }
    Ok(Section::new("Knowing what it does not know").figure(Figure::of(
        "entropy",
        "Densities of the predictive entropy, first seed. Digits should be on the left, out-of-distribution images on \
         the right; the small window shows where the model is nearly certain.",
        drawings,
    )))
}

fn calibration(experiment: &MnistExperiment) -> Section {
    let drawings = experiment.models.iter().map(|outcome| {
        Reliability::from_diagram(outcome.variant.title.as_str(), &outcome.example.diagram).draw()
    });
    Section::new("Calibration").figure(Figure::of(
        "reliability",
        "How often the model is right, given how sure it is, first seed. On the diagonal it is exactly as sure as it \
         should be.",
        drawings.collect(),
    ))
}

fn spectra(experiment: &MnistExperiment) -> anyhow::Result<Section> {
    let (mut spectra, mut filters) = (Vec::new(), Vec::new());
    for outcome in &experiment.models {
        let (network, posterior) = (&outcome.example.network, &outcome.variant.config.posterior);
        let title = &outcome.variant.title;
        if outcome.variant.config.model.kind.is_spectral() {
            spectra.extend(layer_figures::spectrum(network, posterior, title)?);
            filters.push(layer_figures::filters(network, posterior, title)?);
        }
    }
    let section = Section::new("Spectra and filters");
    if spectra.is_empty() {
        return Ok(section.text("None of the models that ran is spectral."));
    }
    Ok(section
        .figure(Figure::of(
            "spectrum",
            "What the spectral layers learned, with the posterior's band, against their prior; first seed.",
            spectra,
        ))
        .figure(Figure::of(
            "filters",
            "The same in space: learned filters beside draws from the prior.",
            filters,
        )))
}

fn geometry(experiment: &MnistExperiment) -> anyhow::Result<Section> {
    let test = &experiment.plan.sets.test;
    let normalisation = &experiment.plan.shared.settings.data.normalisation;
    let mut found = Vec::new();
    for outcome in &experiment.models {
        let (network, title) = (&outcome.example.network, outcome.variant.title.as_str());
        let geometry = NetworkGeometry::measure(network, test, normalisation, PER_SAMPLE);
        found.push((title, geometry.with_context(|| title.to_owned())?));
    }
    let networks: Vec<_> = found.iter().map(|(title, found)| (*title, found)).collect();
    Ok(section(
        "pixels as the model sees them",
        Vec::new(),
        &networks,
    ))
}

fn settings(experiment: &MnistExperiment) -> Section {
    let training = &experiment.plan.shared.settings.training;
    let model = &experiment.plan.shared.settings.model;
    let deviation = experiment.plan.shared.settings.posterior.initial_deviation;
    Section::new("How the settings were chosen").text(format!(
        "Steps, optimiser, learning rate and rank are the paper's. It does not say the batch ({}), the size of the \
         initial weights of hidden layers (times {}), the initial deviation of posteriors ({deviation} times the layer's initial weights) and the samples \
         per step ({}). They are the same for all models and were chosen on 10,000 MNIST training images held out \
         for that, with Fashion-MNIST's training images as the out-of-distribution ones; no test set was looked at.",
        training.batch, model.initial_scale, training.samples
    ))
}
