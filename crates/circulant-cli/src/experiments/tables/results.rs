//! What `reproduce tables` gives: a line per split, and means over splits.

use serde::{Deserialize, Serialize};

/// What a model is worth on the test part of a split.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "kebab-case")]
pub enum SplitMetrics {
    /// Classes.
    Classification {
        /// The share that is right.
        accuracy: f64,
        /// Mean of `-log p` of the true class.
        log_loss: f64,
        /// Expected calibration error, 15 bins.
        ece: f64,
    },
    /// Numbers, in the unit of the target.
    Regression {
        /// The root mean square error.
        rmse: f64,
        /// The mean of `log p`.
        log_likelihood: f64,
        /// The continuous ranked probability score.
        crps: f64,
        /// The share of targets in the 90 % intervals.
        coverage90: f64,
    },
}

/// One split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SplitResult {
    /// The name of the table.
    pub set: String,
    /// From 0.
    pub split: usize,
    /// Training rows.
    pub rows: usize,
    /// Inputs of the model.
    pub inputs: usize,
    /// The size that was chosen.
    pub model: String,
    /// Of choosing and training.
    pub seconds: f64,
    /// On the test part.
    #[serde(flatten)]
    pub metrics: SplitMetrics,
}

/// A table, over its splits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetResult {
    /// Its name.
    pub set: String,
    /// How many splits were run.
    pub splits: usize,
    /// Training rows of the first split.
    pub rows: usize,
    /// Inputs of the model in the first split.
    pub inputs: usize,
    /// Means over the splits.
    pub mean: SplitMetrics,
    /// The standard error of the mean of the log likelihood, or of the log loss.
    pub standard_error: f64,
    /// The mean of the seconds of a split.
    pub seconds: f64,
}

impl SetResult {
    /// Of the splits of one table; none without any.
    pub fn of(results: &[SplitResult]) -> Option<Self> {
        let first = results.first()?;
        let count = results.len() as f64;
        let mean = |pick: &dyn Fn(&SplitMetrics) -> f64| {
            results
                .iter()
                .map(|result| pick(&result.metrics))
                .sum::<f64>()
                / count
        };
        let classes = matches!(first.metrics, SplitMetrics::Classification { .. });
        let column = |which: usize| mean(&|metrics| metrics.numbers()[which]);
        let score = |result: &SplitResult| result.metrics.numbers()[1];
        let middle = column(1);
        let squares: f64 = results
            .iter()
            .map(|result| (score(result) - middle).powi(2))
            .sum();
        Some(Self {
            set: first.set.clone(),
            splits: results.len(),
            rows: first.rows,
            inputs: first.inputs,
            mean: if classes {
                SplitMetrics::Classification {
                    accuracy: column(0),
                    log_loss: middle,
                    ece: column(2),
                }
            } else {
                SplitMetrics::Regression {
                    rmse: column(0),
                    log_likelihood: middle,
                    crps: column(2),
                    coverage90: column(3),
                }
            },
            standard_error: (squares / (count * (count - 1.0).max(1.0))).sqrt(),
            seconds: results.iter().map(|result| result.seconds).sum::<f64>() / count,
        })
    }
}

impl SplitMetrics {
    /// In the order of the fields; a class has no coverage.
    pub fn numbers(&self) -> [f64; 4] {
        match *self {
            Self::Classification {
                accuracy,
                log_loss,
                ece,
            } => [accuracy, log_loss, ece, f64::NAN],
            Self::Regression {
                rmse,
                log_likelihood,
                crps,
                coverage90,
            } => [rmse, log_likelihood, crps, coverage90],
        }
    }
}

/// `results.json`.
#[derive(Debug, Clone, Serialize)]
pub struct TableResults {
    /// One per table.
    pub sets: Vec<SetResult>,
    /// Posterior samples per prediction.
    pub samples: usize,
    /// The one seed.
    pub seed: u64,
    /// Everything.
    pub wall_seconds: f64,
}

/// The tables as text.
pub fn text(results: &TableResults) -> String {
    let mut text = String::new();
    let regression = |result: &&SetResult| matches!(result.mean, SplitMetrics::Regression { .. });
    let (numbers, classes): (Vec<&SetResult>, Vec<&SetResult>) =
        results.sets.iter().partition(regression);
    for (rows, header) in [
        (numbers, ["RMSE", "log likelihood", "CRPS", "90 % coverage"]),
        (classes, ["accuracy", "log loss", "ECE", ""]),
    ] {
        if rows.is_empty() {
            continue;
        }
        let [a, b, c, d] = header;
        text.push_str(&format!(
            "{:<16}{:>8}{:>8}{:>8}{a:>12}{b:>24}{c:>10}{d:>15}{:>10}\n",
            "table", "rows", "inputs", "splits", "seconds"
        ));
        for row in rows {
            let [a, b, c, d] = row.mean.numbers();
            let spread = format!("{b:.4} +- {:.4}", row.standard_error);
            let d = if d.is_nan() {
                String::new()
            } else {
                format!("{d:.3}")
            };
            text.push_str(&format!(
                "{:<16}{:>8}{:>8}{:>8}{a:>12.4}{spread:>24}{c:>10.4}{d:>15}{:>10.1}\n",
                row.set, row.rows, row.inputs, row.splits, row.seconds
            ));
        }
        text.push('\n');
    }
    text
}
