//! `circulant certify` where the target is a number: how far its prediction can move.

use anyhow::{Context, ensure};
use burn::module::Module;
use burn::tensor::{Tensor, TensorData};
use circulant::geometry::{Lipschitz, Quantiles, TargetBounds, TargetBoundsConfig};
use circulant_data::TableTask;
use serde::Serialize;

use super::Certify;
use crate::commands::output::{RowFormat, json_line, print};
use crate::experiments::config::Inference;
use crate::experiments::folder::pretty;
use crate::experiments::progress::Busy;
use crate::experiments::regression::LoadedRegression;
use crate::files::write;
use crate::ranks::say;

/// The interval whose half is the tolerance unless another one is given.
const COVERAGE: f64 = 0.9;

/// Everything but the single rows.
#[derive(Serialize)]
struct TargetSummary {
    run: String,
    model: &'static str,
    steps: u64,
    data: String,
    target: String,
    inputs: usize,
    samples: usize,
    seed: u64,
    /// Norms of the posterior's mean.
    layers: Vec<LayerNorm>,
    /// Of the averaged mean, in the unit of the target per standardised unit of the inputs (2-norm).
    lipschitz: f64,
    /// How far an averaged f32 mean can be from the exact one, in the unit of the target.
    rounding: f64,
    /// The largest norm of a standardised input for which the promise holds.
    input_norm: f64,
    /// Whether every rounding error is proven.
    proven: bool,
    /// Within it the prediction moves by at most the tolerance.
    radius: Quantiles,
    /// One column alone.
    columns: Vec<ColumnChange>,
}

#[derive(Serialize)]
struct LayerNorm {
    name: String,
    lower: f64,
    upper: f64,
}

/// What one column can do.
#[derive(Serialize)]
struct ColumnChange {
    column: String,
    /// The largest change of the prediction per unit of the column.
    largest_slope: f64,
    /// How far it may change alone, at the median row.
    radius: f64,
}

/// One row.
#[derive(Serialize)]
struct TargetRow {
    index: usize,
    mean: f64,
    /// In the unit of the target.
    tolerance: f64,
    /// In standardised units, 2-norm.
    radius: f64,
}

/// The JSON file of `--out`.
#[derive(Serialize)]
struct Everything<'a> {
    #[serde(flatten)]
    summary: &'a TargetSummary,
    rows: &'a [TargetRow],
}

impl Certify {
    pub(super) fn targets(&self, run: &LoadedRegression) -> anyhow::Result<()> {
        ensure!(
            !self.predicted,
            "--predicted: it is for classes, and this run predicts a number; leave it out"
        );
        let TableTask::Regression { deviation, .. } = run.schema.task else {
            anyhow::bail!(
                "{} predicts counts: their rate is an exponential, which has no global Lipschitz constant; train with --task regression \
                 to certify it",
                self.run.display()
            );
        };
        let samples = match run.folder.config.posterior.inference {
            Inference::Bayesian => (self.samples as usize).max(1),
            // Draws from a point are all the same.
            Inference::Point => 1,
        };
        let table = run.table(&self.data, self.split)?;
        let found = run.predict(&table, samples, self.seed)?;
        let busy = Busy::new("bounding networks");
        let data = TensorData::new(table.inputs.values().to_vec(), table.inputs.shape());
        let config = TargetBoundsConfig::new()
            .with_samples(samples)
            .with_seed(self.seed);
        let bounds = config.bound(&run.network, Tensor::from_data(data, &circulant::cpu()))?;
        drop(busy);
        let tolerances: Vec<f64> = match self.tolerance {
            Some(tolerance) => vec![tolerance; found.rows()],
            None => {
                let intervals = found.interval(COVERAGE)?.into_iter();
                intervals
                    .map(|[lower, upper]| (upper - lower) / 2.0)
                    .collect()
            }
        };
        let means = found.mean();
        let rows: Vec<TargetRow> = (0..found.rows())
            .map(|index| TargetRow {
                index,
                mean: means[index],
                tolerance: tolerances[index],
                radius: bounds.radius(index, tolerances[index] / deviation).get(),
            })
            .collect();
        let summary = self.target_summary(run, &bounds, deviation, &rows, table.inputs.source())?;
        if let Some(file) = &self.out {
            let text = match file.format {
                RowFormat::Json => pretty(&Everything {
                    summary: &summary,
                    rows: &rows,
                })?,
                _ => csv(&rows),
            };
            write(&file.path, text.as_bytes())?;
            say!("{} inputs in {}", rows.len(), file.path.display());
        }
        if self.json {
            return print(&json_line(&summary)?);
        }
        print(&plain(&summary, self.tolerance))
    }

    fn target_summary(
        &self,
        run: &LoadedRegression,
        bounds: &TargetBounds,
        deviation: f64,
        rows: &[TargetRow],
        source: &str,
    ) -> anyhow::Result<TargetSummary> {
        let mean = run.network.valid().mean();
        let network = mean.network_bound()?;
        let layers = network.layers().into_iter().map(|layer| LayerNorm {
            name: layer.name().to_owned(),
            lower: layer.norm().lower().get(),
            upper: layer.norm().upper().get(),
        });
        let radius = Quantiles::of(rows.iter().map(|row| row.radius).collect());
        let lipschitz = bounds.lipschitz.get() * deviation;
        let column = |(name, unit): (&str, f64)| ColumnChange {
            column: name.to_owned(),
            largest_slope: lipschitz / unit,
            radius: radius.median * unit,
        };
        Ok(TargetSummary {
            run: run.folder.path().display().to_string(),
            model: run.folder.config.model.kind.name(),
            steps: run.steps,
            data: source.to_owned(),
            target: run.schema.target.clone(),
            inputs: rows.len(),
            samples: bounds.samples.len(),
            seed: self.seed,
            layers: layers.collect(),
            lipschitz,
            rounding: bounds.rounding.get() * deviation,
            input_norm: bounds.input_norm.get(),
            proven: bounds.is_proven,
            radius,
            columns: run.schema.units().map(column).collect(),
        })
    }

    /// Refuses a tolerance that is none.
    pub(super) fn check_tolerance(&self) -> anyhow::Result<()> {
        let Some(tolerance) = self.tolerance else {
            return Ok(());
        };
        let fits = tolerance > 0.0 && tolerance.is_finite();
        fits.then_some(()).with_context(|| {
            format!(
                "--tolerance: expected a positive number in the unit of the target, got {tolerance}"
            )
        })
    }
}

fn csv(rows: &[TargetRow]) -> String {
    let mut text = "index,mean,tolerance,radius\n".to_owned();
    for row in rows {
        text.push_str(&format!(
            "{},{},{},{}\n",
            row.index, row.mean, row.tolerance, row.radius
        ));
    }
    text
}

fn plain(summary: &TargetSummary, tolerance: Option<f64>) -> String {
    let mut text = format!(
        "{}: {}, {} steps\n\n{:<14}{:>12}{:>12}\n",
        summary.run, summary.model, summary.steps, "layer", "norm from", "to"
    );
    for layer in &summary.layers {
        text.push_str(&format!(
            "{:<14}{:>12.5}{:>12.5}\n",
            layer.name, layer.lower, layer.upper
        ));
    }
    let moved = match tolerance {
        Some(tolerance) => format!("{tolerance}"),
        None => "half of its own 90 % interval".to_owned(),
    };
    text.push_str(&format!(
        "\nthe mean of {:?}, averaged over {} networks, changes by at most {:.5} per standardised unit of the inputs (2-norm), and {:.1e} by \
         rounding, for inputs of norm up to {:.4}\n\n{}: {} inputs\nit moves by no more than {moved} within a radius of {:.5} (median; 5 to 95 %: \
         {:.5}..{:.5})\n\none column alone{:>26}{:>22}\n",
        summary.target,
        summary.samples,
        summary.lipschitz,
        summary.rounding,
        summary.input_norm,
        summary.data,
        summary.inputs,
        summary.radius.median,
        summary.radius.q05,
        summary.radius.q95,
        "may change by (median)",
        "moves it per unit by",
    ));
    for column in &summary.columns {
        text.push_str(&format!(
            "  {:<24}{:>16.6}{:>22.6}\n",
            column.column, column.radius, column.largest_slope
        ));
    }
    text
}
