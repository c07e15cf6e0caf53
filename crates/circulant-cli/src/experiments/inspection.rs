//! What a run has learned, as values and as a page to look at.

use std::path::Path;
use std::time::Duration;

use burn::module::Module;
use circulant::bayes::Bayesian;
use circulant::geometry::Lipschitz;
use circulant::models::Likelihood;
use serde::Serialize;

use super::certification::{DELTA, prior_norms};
use super::config::Inference;
use super::folder::{RunFolder, StepLine};
use super::layer_figures::{self, LayerFigures, Layered};
use super::progress::Busy;
use crate::report::figure::{Axis, Curve, CurveLook, Curves, Drawing};
use crate::report::number::grouped;
use crate::report::{Cell, Column, Document, Figure, Section, Table};
use circulant::geometry::Quantiles;

#[derive(Debug, Clone, Serialize)]
pub struct Inspection {
    pub run: String,
    pub model: &'static str,
    /// `bayesian` or `point`.
    pub inference: &'static str,
    /// `[channels, height, width]`.
    pub image: [usize; 3],
    pub classes: usize,
    /// Real parameters of the model.
    pub weights: usize,
    pub biases: usize,
    /// All parameters that are trained: those of the posterior.
    pub trained: usize,
    /// Steps of training behind the checkpoint.
    pub steps: u64,
    pub seconds: Option<f64>,
    /// The loss of the first and of the last step.
    pub loss: Option<[f64; 2]>,
    /// In the order in which they are applied.
    pub layers: Vec<LayerNumbers>,
}

/// One layer at the posterior's mean.
#[derive(Debug, Clone, Serialize)]
pub struct LayerNumbers {
    /// As in the network.
    pub name: String,
    /// Its norm from below.
    pub lower: f64,
    /// From above.
    pub upper: f64,
    /// What the norm does not exceed under the prior with a probability of 95 %, for spectral layers.
    pub prior: Option<f64>,
    /// The learned slope of the prior.
    pub slope: Option<f64>,
    /// How many singular values there are.
    pub singular_count: usize,
    /// Their distribution.
    pub singular_values: Quantiles,
}

/// Everything that the page needs.
pub struct Inspected {
    /// For `--json`.
    pub numbers: Inspection,
    steps: Vec<StepLine>,
    layers: Vec<LayerFigures>,
    /// Names and singular values in falling order, the read-out's too.
    singular: Vec<(String, Vec<f64>)>,
}

impl Inspected {
    /// Looks at a run of so many steps.
    pub fn new<M: Layered>(
        folder: &RunFolder,
        network: &Bayesian<M>,
        steps_done: u64,
    ) -> anyhow::Result<Self> {
        let (config, facts) = (&folder.config, &folder.facts);
        let layers = layer_figures::hidden_layers(network, &config.posterior)?;
        let _busy = Busy::new("norms and singular values");
        let singular = network.valid().mean().layers().singular_values()?;
        let steps = folder.steps()?;
        let ends = steps.first().zip(steps.last());
        let numbers = Inspection {
            run: folder.path().display().to_string(),
            model: config.model.kind.name(),
            inference: match config.posterior.inference {
                Inference::Bayesian => "bayesian",
                Inference::Point => "point",
            },
            image: facts.data.image(),
            classes: facts.data.classes,
            weights: facts.weights,
            biases: facts.biases,
            trained: network.num_params(),
            steps: steps_done,
            seconds: steps.last().map(|line| line.seconds),
            loss: ends.map(|(first, last)| [first.loss, last.loss]),
            layers: layer_numbers(folder, network, &layers, &singular)?,
        };
        Ok(Self {
            numbers,
            steps,
            layers,
            singular,
        })
    }

    /// The page.
    pub fn document(&self, folder: &RunFolder) -> Document {
        let (config, facts) = (&folder.config, &folder.facts);
        let kind = config.model.kind;
        let mut sections = vec![self.settings(folder)];
        sections.extend(self.training());
        sections.push(self.spectra());
        sections.push(self.norms());
        let seconds = self.numbers.seconds.unwrap_or_default();
        let seconds = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        Document {
            title: format!("A {} network and what it learned", kind.title()),
            intro: vec![format!(
                "Trained on {}; {}, {} trained parameters, {} steps.",
                facts.data.source,
                match facts.data.likelihood() {
                    None => format!("{} classes", facts.data.classes),
                    Some(Likelihood::Poisson) => "a count as target".to_owned(),
                    Some(_) => "a number as target".to_owned(),
                },
                grouped(self.numbers.trained as u64),
                grouped(self.numbers.steps)
            )],
            warnings: Vec::new(),
            sections,
            provenance: facts.facts.provenance(
                vec![config.training.seed],
                seconds,
                config.to_toml(),
            ),
        }
    }

    /// The figures of the page: names and SVG texts.
    pub fn figures(&self, folder: &RunFolder) -> Vec<(String, String)> {
        let document = self.document(folder);
        let drawings = document.drawings().into_iter();
        let figure = |(name, drawing): (String, &Drawing)| (name, drawing.standalone());
        drawings.map(figure).collect()
    }

    /// Writes the page.
    pub fn write(&self, folder: &RunFolder, path: &Path) -> anyhow::Result<()> {
        self.document(folder).write(path)
    }

    fn settings(&self, folder: &RunFolder) -> Section {
        let (config, numbers) = (&folder.config, &self.numbers);
        let [channels, height, width] = numbers.image;
        let mut rows = vec![
            ("hidden layers", Cell::text(config.model.kind.title())),
            ("depth", Cell::Count(config.model.depth as u64)),
            (
                "images",
                Cell::text(format!("{channels} x {height} x {width}")),
            ),
            ("weights", Cell::Count(numbers.weights as u64)),
            ("biases", Cell::Count(numbers.biases as u64)),
            ("inference", Cell::text(numbers.inference)),
            ("trained parameters", Cell::Count(numbers.trained as u64)),
            ("steps", Cell::Count(numbers.steps)),
            ("batch", Cell::Count(config.training.batch as u64)),
            (
                "learning rate",
                Cell::text(config.training.learning_rate.to_string()),
            ),
        ];
        if config.model.kind.is_spectral() && config.posterior.inference == Inference::Bayesian {
            rows.push((
                "rank of the posterior",
                Cell::Count(config.posterior.rank as u64),
            ));
        }
        if numbers.classes > 0 {
            rows.insert(3, ("classes", Cell::Count(numbers.classes as u64)));
        }
        if let Some([_, last]) = numbers.loss {
            rows.push(("loss of the last step", Cell::number(last, 4)));
        }
        let rows = rows
            .into_iter()
            .map(|(name, cell)| vec![Cell::text(name), cell]);
        Section::new("Settings").table(Table {
            caption: "The run; all settings are at the end of this page".to_owned(),
            columns: vec![Column::text("setting"), Column::number("value")],
            rows: rows.collect(),
            footnotes: vec![
                "Weights and biases are those of the model. Trained parameters include the spread of the posterior."
                    .to_owned(),
            ],
        })
    }

    fn training(&self) -> Option<Section> {
        if self.steps.is_empty() {
            return None;
        }
        let x: Vec<f64> = self.steps.iter().map(|line| line.step as f64).collect();
        let curve = |name: &str, value: fn(&StepLine) -> f64| {
            Curve::new(name, x.clone(), self.steps.iter().map(value).collect())
        };
        let drawing = Curves {
            title: "Negative evidence bound per example".to_owned(),
            x: Axis::linear("step"),
            y: Axis::log("nats"),
            curves: vec![
                curve("loss", |line| line.loss),
                curve("data", |line| line.data).looking(CurveLook::Faint),
                curve("KL", |line| line.kl).looking(CurveLook::Dashed),
            ],
        }
        .draw();
        let caption = "The loss is the sum of its data part, as seen by one batch, and of the KL of the posterior from the \
                       prior.";
        Some(Section::new("Training").figure(Figure::new("loss", caption, drawing)))
    }

    fn spectra(&self) -> Section {
        let mut section = Section::new("Spectra and filters");
        for layer in &self.layers {
            let title = |what: &str| format!("{what} of {}", layer.name);
            if let Some(drawing) = layer.spectrum(&title("Spectrum")) {
                let caption = "Magnitudes of the eigenvalues at the posterior's mean, with the range of its draws, \
                               before the range and draws of the prior.";
                section = section.figure(Figure::new("spectrum", caption, drawing));
            }
            let caption = "Learned filters, draws from the posterior (draw 1, ...) and from the prior. Circular filters have offset 0 in the middle; \
                           a dense layer shows the weights of its first outputs.";
            let drawing = layer.filters(&title("Filters"));
            section = section.figure(Figure::new("filters", caption, drawing));
        }
        section
    }

    fn norms(&self) -> Section {
        let rows = self.numbers.layers.iter().map(|layer| {
            let values = &layer.singular_values;
            vec![
                Cell::text(layer.name.clone()),
                Cell::number(layer.lower, 4),
                Cell::number(layer.upper, 4),
                layer
                    .prior
                    .map_or(Cell::Missing, |bound| Cell::number(bound, 4)),
                Cell::Count(layer.singular_count as u64),
                Cell::number(values.q05, 4),
                Cell::number(values.median, 4),
                Cell::number(values.q95, 4),
            ]
        });
        let table = Table {
            caption: "Norms and singular values at the posterior's mean".to_owned(),
            columns: vec![
                Column::text("layer"),
                Column::number("from").grouped("norm"),
                Column::number("to").grouped("norm"),
                Column::number("prior").grouped("norm"),
                Column::number("count").grouped("singular values"),
                Column::number("5 %").grouped("singular values"),
                Column::number("median").grouped("singular values"),
                Column::number("95 %").grouped("singular values"),
            ],
            rows: rows.collect(),
            footnotes: vec![format!(
                "Prior: what the norms of all spectral layers together do not exceed with a probability of {}. \
                 Singular values of a convolution are those of the circular one.",
                1.0 - DELTA
            )],
        };
        Section::new("Norms and singular values")
            .table(table)
            .figure(Figure::new(
                "singular-values",
                "All singular values in falling order, the position as a share of their number.",
                singular_values(&self.singular),
            ))
    }
}

fn singular_values(layers: &[(String, Vec<f64>)]) -> Drawing {
    let curves = layers.iter().map(|(name, values)| {
        let last = (values.len().max(2) - 1) as f64;
        let x = (0..values.len()).map(|index| index as f64 / last).collect();
        Curve::new(name.clone(), x, values.clone())
    });
    Curves {
        title: "Singular values".to_owned(),
        x: Axis::linear("position, from the largest to the smallest"),
        y: Axis::log("singular value"),
        curves: curves.collect(),
    }
    .draw()
}

fn layer_numbers<M: Layered>(
    folder: &RunFolder,
    network: &Bayesian<M>,
    layers: &[LayerFigures],
    singular: &[(String, Vec<f64>)],
) -> anyhow::Result<Vec<LayerNumbers>> {
    let bound = network.valid().mean().layers().network_bound()?;
    let priors = prior_norms(network, &folder.config.posterior)?;
    let numbers = singular.iter().map(|(name, values)| {
        let norms = bound.layers();
        let norm = norms.iter().find(|layer| layer.name() == name)?.norm();
        let prior = priors.iter().find(|(layer, _)| layer == name);
        let figures = layers.iter().find(|layer| layer.name == *name);
        Some(LayerNumbers {
            name: name.clone(),
            lower: norm.lower().get(),
            upper: norm.upper().get(),
            prior: prior.map(|(_, bound)| *bound),
            slope: figures.and_then(|layer| layer.learned_slope),
            singular_count: values.len(),
            singular_values: Quantiles::of(values.clone()),
        })
    });
    Ok(numbers.flatten().collect())
}
