//! `report.html` of the experiment.

use anyhow::Context;

use super::super::facts::Facts;
use super::super::geometry::{CERTIFIED, DRAWN, NetworkGeometry};
use super::super::{figures, layer_figures};
use super::settings::LONGER;
use super::{MnistExperiment, MnistOutcome, paper};
use crate::report::figure::{
    Axis, Curve, Curves, Drawing, LabelledPoint, PointGroup, Reliability, Scatter,
};
use crate::report::{
    Cell, Column, Comparison, ComparisonRow, Document, Estimate, Figure, Section, Table,
};

/// Test images per posterior sample; the bounds themselves need none.
const PER_SAMPLE: usize = 16;
/// Steps that the curves are averaged over.
const SMOOTH: usize = 15;

/// The page.
pub fn document(experiment: &MnistExperiment) -> anyhow::Result<Document> {
    let plan = &experiment.plan;
    let seeds: Vec<String> = plan.seeds.iter().map(u64::to_string).collect();
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
        sections.push(beyond(experiment));
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
            plan.settings.training.steps,
            seeds.join(", "),
            plan.samples,
            plan.sets.train.len(),
            plan.sets.test.len(),
            plan.sets.ood.len()
        )],
        warnings,
        sections,
        provenance: Facts::gather().provenance(
            plan.seeds.clone(),
            experiment.start.elapsed(),
            plan.settings.to_toml(),
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

fn facts() -> Vec<Column> {
    ["weights", "biases", "seconds"]
        .map(Column::number)
        .to_vec()
}

fn results(experiment: &MnistExperiment) -> Section {
    let real = experiment.plan.sets.is_real();
    let rows = experiment.models.iter().map(|outcome| {
        let kind = outcome.variant.config.model.kind;
        comparison_row(outcome, real.then(|| paper::row(kind)).flatten())
    });
    let table = Comparison {
        caption: "Means over the seeds, with the sample standard deviation".to_owned(),
        subject: "model".to_owned(),
        facts: facts(),
        metrics: paper::metrics(),
        rows: rows.collect(),
        footnotes: vec![
            "ECE and MCE with 10 bins. AUROC and FPR@95 of the predictive entropy. Weights are real parameters. Seconds \
             of training, per seed."
                .to_owned(),
        ],
    };
    let section = Section::new("Results beside the paper's").table(table.table());
    section
        .figure(Figure::new(
            "size",
            "Test accuracy against the number of weights. Bars are one standard deviation over the seeds.",
            sizes(experiment),
        ))
        .figure(training(experiment))
}

fn sizes(experiment: &MnistExperiment) -> Drawing {
    let point = |outcome: &MnistOutcome, label: bool| {
        let accuracy = &outcome.result.accuracy;
        let (low, high) = (accuracy.mean - accuracy.std, accuracy.mean + accuracy.std);
        LabelledPoint {
            label: if label {
                outcome.variant.title.clone()
            } else {
                String::new()
            },
            x: outcome.result.weights as f64,
            y: accuracy.mean,
            error: (accuracy.values.len() > 1).then_some([low, high]),
        }
    };
    let mut groups = vec![PointGroup {
        name: "ours".to_owned(),
        points: experiment
            .models
            .iter()
            .map(|outcome| point(outcome, true))
            .collect(),
    }];
    if experiment.plan.sets.is_real() {
        let points = experiment.models.iter().filter_map(|outcome| {
            Some(LabelledPoint {
                y: paper::row(outcome.variant.config.model.kind)?[0],
                error: None,
                ..point(outcome, false)
            })
        });
        groups.push(PointGroup {
            name: "paper".to_owned(),
            points: points.collect(),
        });
    }
    if !experiment.beyond.is_empty() {
        groups.push(PointGroup {
            name: "beyond the paper".to_owned(),
            points: experiment
                .beyond
                .iter()
                .map(|outcome| point(outcome, false))
                .collect(),
        });
    }
    Scatter {
        title: "Accuracy against size".to_owned(),
        x: Axis::log("weights"),
        y: Axis::linear("test accuracy"),
        groups,
    }
    .draw()
}

fn beyond(experiment: &MnistExperiment) -> Section {
    let rows = experiment
        .beyond
        .iter()
        .map(|outcome| comparison_row(outcome, None));
    let table = Comparison {
        caption: format!("The same data and metrics, {LONGER} times the steps"),
        subject: "model".to_owned(),
        facts: facts(),
        metrics: paper::metrics(),
        rows: rows.collect(),
        footnotes: Vec::new(),
    };
    Section::new("How far small models go")
        .text("The paper stops after 1000 steps with one hidden layer. This is what the same kinds of layers reach with more.")
        .table(table.table())
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
    let normalisation = &experiment.plan.settings.data.normalisation;
    let (mut bounds, mut radii, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for outcome in &experiment.models {
        let (network, title) = (&outcome.example.network, &outcome.variant.title);
        let found = NetworkGeometry::measure(network, test, normalisation, PER_SAMPLE)
            .with_context(|| title.clone())?;
        rows.push(vec![
            Cell::text(title),
            Cell::number(found.certificates.network.upper().get(), 2),
            Cell::number(found.posterior.bounds.mean(), 2),
            Cell::number(found.quantiles(|input| input.paper.get()).median, 4),
            Cell::number(found.quantiles(|input| input.sqrt_two.get()).median, 4),
            Cell::number(
                found
                    .quantiles(|input| input.last_layer.map_or(f64::NAN, |radius| radius.get()))
                    .median,
                4,
            ),
        ]);
        bounds.push(found.bounds(title));
        radii.push(found.radii(title));
    }
    let columns = [
        Column::text("model"),
        Column::number("of the mean").grouped("Lipschitz bound"),
        Column::number("posterior mean of").grouped("Lipschitz bound"),
        Column::number("paper's").grouped("median certified radius"),
        Column::number("with sqrt(2)").grouped("median certified radius"),
        Column::number("last layer").grouped("median certified radius"),
    ];
    Ok(Section::new("Norms, radii, certificates")
        .text(
            "Bounds are proven upper bounds in l2 and radii proven lower bounds, for pixels as the model sees them; f32 \
             rounding is accounted for. A wrongly classified image has the radius 0.",
        )
        .table(Table {
            caption: format!("Of the first seed's posterior mean, at {} test images", test.len().min(CERTIFIED)),
            columns: columns.to_vec(),
            rows,
            footnotes: Vec::new(),
        })
        .figure(Figure::new(
            "lipschitz",
            format!("Lipschitz bounds of {DRAWN} networks drawn from each posterior."),
            figures::lipschitz(bounds),
        ))
        .figure(Figure::new(
            "certified",
            "The share of test images that no perturbation up to the radius can turn into a mistake.",
            figures::certified(radii),
        )))
}

fn settings(experiment: &MnistExperiment) -> Section {
    let training = &experiment.plan.settings.training;
    let model = &experiment.plan.settings.model;
    let deviation = experiment.plan.settings.posterior.initial_deviation;
    Section::new("How the settings were chosen").text(format!(
        "Steps, optimiser, learning rate and rank are the paper's. It does not say the batch ({}), the size of the \
         initial weights of hidden layers (times {}), the initial deviation of posteriors ({deviation} times the layer's initial weights) and the samples \
         per step ({}). They are the same for all models and were chosen on 10,000 MNIST training images held out \
         for that, with Fashion-MNIST's training images as the out-of-distribution ones; no test set was looked at.",
        training.batch, model.initial_scale, training.samples
    ))
}
