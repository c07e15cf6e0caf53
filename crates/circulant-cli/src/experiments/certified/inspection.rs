//! What a network that was trained for a radius has learned, as values and as a page.

use std::path::Path;
use std::time::Duration;

use circulant::geometry::{Lipschitz, Quantiles, SingularValues};
use circulant::models::OrthogonalNetwork;
use serde::Serialize;

use super::folder::{CertifiedEpoch, CertifiedFolder};
use super::settings::rounded;
use crate::report::figure::{Axis, Curve, Curves, Drawing};
use crate::report::{Cell, Column, Document, Figure, Section, Table};

/// For `--json`.
#[derive(Debug, Clone, Serialize)]
pub struct CertifiedInspection {
    pub run: String,
    pub model: &'static str,
    /// `bayesian` or `point`.
    pub inference: &'static str,
    /// `[channels, height, width]`.
    pub image: [usize; 3],
    pub classes: usize,
    /// Real parameters of the network.
    pub parameters: usize,
    /// The radius that was trained for.
    pub radius: f64,
    pub steps: u64,
    pub seconds: Option<f64>,
    /// What logits are divided by.
    pub temperature: f64,
    /// Of the whole network, from pixels to logits.
    pub lipschitz: f64,
    pub epochs: Vec<CertifiedEpoch>,
    /// In the order in which they are applied.
    pub layers: Vec<OrthogonalLayer>,
}

/// One layer of the trained network.
#[derive(Debug, Clone, Serialize)]
pub struct OrthogonalLayer {
    /// As in the network.
    pub name: String,
    /// Its norm from below.
    pub lower: f64,
    /// From above.
    pub upper: f64,
    pub singular_count: usize,
    pub singular_values: Quantiles,
}

impl CertifiedInspection {
    /// Looks at the run of a folder.
    pub fn of(folder: &CertifiedFolder) -> anyhow::Result<Self> {
        let (network, steps) = folder.network()?;
        let (data, epochs) = (&folder.facts.data, folder.epochs()?);
        let temperatures = folder.temperatures()?;
        let bound = network.network_bound()?;
        let values = singular_values(&network)?;
        let layers = bound.layers().into_iter().zip(values);
        let has_posterior = folder.has_posterior();
        Ok(Self {
            run: folder.path().display().to_string(),
            model: "orthogonal",
            inference: if has_posterior { "bayesian" } else { "point" },
            image: data.image(),
            classes: data.classes,
            parameters: folder.facts.parameters,
            radius: folder.config.certified.radius,
            steps,
            seconds: epochs.last().map(|line| line.seconds),
            temperature: temperatures
                .posterior
                .filter(|_| has_posterior)
                .unwrap_or(temperatures.network),
            lipschitz: bound.upper().get(),
            layers: layers
                .map(|(layer, values)| OrthogonalLayer {
                    name: layer.name().to_owned(),
                    lower: layer.norm().lower().get(),
                    upper: layer.norm().upper().get(),
                    singular_count: values.len(),
                    singular_values: Quantiles::of(values),
                })
                .collect(),
            epochs,
        })
    }

    /// Writes the page.
    pub fn write(&self, folder: &CertifiedFolder, path: &Path) -> anyhow::Result<()> {
        self.document(folder).write(path)
    }

    /// The page.
    pub fn document(&self, folder: &CertifiedFolder) -> Document {
        let seconds = self.seconds.unwrap_or_default();
        Document {
            title: "A network trained for a radius".to_owned(),
            intro: vec![format!(
                "Trained on {} for the radius {}; {} classes, {} parameters, {} steps. Its Lipschitz constant is {} at most, the largest \
                 distance of two logits moves by no more than the difference of their read-outs.",
                folder.facts.data.source,
                rounded(self.radius),
                self.classes,
                self.parameters,
                self.steps,
                rounded(self.lipschitz)
            )],
            warnings: Vec::new(),
            sections: [self.training(), Some(self.norms())]
                .into_iter()
                .flatten()
                .collect(),
            provenance: folder.facts.facts.provenance(
                vec![folder.config.certified.seed],
                Duration::try_from_secs_f64(seconds).unwrap_or_default(),
                folder.config.to_toml(),
            ),
        }
    }

    fn training(&self) -> Option<Section> {
        if self.epochs.is_empty() {
            return None;
        }
        let x: Vec<f64> = self.epochs.iter().map(|line| line.epoch as f64).collect();
        let curve = |name: &str, value: fn(&CertifiedEpoch) -> f64| {
            Curve::new(name, x.clone(), self.epochs.iter().map(value).collect())
        };
        let drawing: Drawing = Curves {
            title: "Held-out images".to_owned(),
            x: Axis::linear("epoch"),
            y: Axis::linear("share of images").within(0.0, 1.0),
            curves: vec![
                curve("right", |line| line.accuracy),
                curve("right and certified", |line| line.certified),
                curve("right, training images", |line| line.train_accuracy),
            ],
        }
        .draw();
        let caption = "Certified at the radius of training.";
        Some(Section::new("Training").figure(Figure::new("training", caption, drawing)))
    }

    fn norms(&self) -> Section {
        let rows = self.layers.iter().map(|layer| {
            let values = &layer.singular_values;
            vec![
                Cell::text(layer.name.clone()),
                Cell::number(layer.lower, 6),
                Cell::number(layer.upper, 6),
                Cell::Count(layer.singular_count as u64),
                Cell::number(values.q05, 6),
                Cell::number(values.median, 6),
                Cell::number(values.q95, 6),
            ]
        });
        Section::new("Norms and singular values").table(Table {
            caption: "Of the trained network; all but the read-out are one by construction, but for rounding".to_owned(),
            columns: vec![
                Column::text("layer"),
                Column::number("from").grouped("norm"),
                Column::number("to").grouped("norm"),
                Column::number("count").grouped("singular values"),
                Column::number("5 %").grouped("singular values"),
                Column::number("median").grouped("singular values"),
                Column::number("95 %").grouped("singular values"),
            ],
            rows: rows.collect(),
            footnotes: Vec::new(),
        })
    }
}

/// Of all layers, in the order of [`Lipschitz::network_bound`].
fn singular_values(network: &OrthogonalNetwork) -> anyhow::Result<Vec<Vec<f64>>> {
    let mut all = Vec::new();
    for layer in &network.layers {
        all.push(layer.singular_values()?);
    }
    for layer in &network.hidden {
        all.push(layer.singular_values()?);
    }
    all.push(network.readout().singular_values()?);
    Ok(all)
}
