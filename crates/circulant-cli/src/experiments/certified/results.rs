//! `results.json`, and its table.

use serde::Serialize;

use super::super::values::Values;
use super::evaluation::{AttackResult, BayesianEvaluation, CertifiedEvaluation};
use super::folder::CertifiedEpoch;
use super::published::published;
use super::settings::{CertifiedConfig, rounded};

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CertifiedRunResult {
    pub seed: u64,
    /// Of training, without validation.
    pub seconds: f64,
    pub epochs: Vec<CertifiedEpoch>,
    pub evaluation: CertifiedEvaluation,
}

/// One network and radius, over all seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CertifiedResult {
    /// Channels per stage.
    pub widths: String,
    /// Real parameters.
    pub parameters: usize,
    pub radius: f64,
    pub accuracy: Values,
    /// Right and certified at the radius.
    pub certified: Values,
    /// Right in spite of the attack, on its images.
    pub robust: Option<Values>,
    pub ece: Values,
    /// Of the average over drawn networks.
    pub bayesian_accuracy: Option<Values>,
    pub bayesian_certified: Option<Values>,
    pub bayesian_ece: Option<Values>,
    /// The area under the ROC curve of the first other set.
    pub auroc: Option<Values>,
    pub seconds: Values,
    pub runs: Vec<CertifiedRunResult>,
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CertifiedResults {
    pub data: String,
    /// Training, held-out and test images.
    pub images: [usize; 3],
    pub models: Vec<CertifiedResult>,
    /// As in the first run.
    pub settings: CertifiedConfig,
}

impl CertifiedResult {
    /// Of the runs of one network and radius.
    pub fn new(config: &CertifiedConfig, parameters: usize, runs: Vec<CertifiedRunResult>) -> Self {
        let values = |pick: &dyn Fn(&CertifiedRunResult) -> f64| {
            Values::new(runs.iter().map(pick).collect())
        };
        let some = |pick: &dyn Fn(&CertifiedRunResult) -> Option<f64>| {
            let values: Option<Vec<f64>> = runs.iter().map(pick).collect();
            values.map(Values::new)
        };
        let bayesian = |pick: fn(&BayesianEvaluation) -> f64| {
            some(&move |run: &CertifiedRunResult| run.evaluation.bayesian.as_ref().map(pick))
        };
        Self {
            widths: config.widths(),
            parameters,
            radius: config.certified.radius,
            accuracy: values(&|run| run.evaluation.accuracy),
            certified: values(&|run| run.evaluation.certified),
            robust: some(&|run| {
                run.evaluation
                    .attack
                    .map(|attack: AttackResult| attack.robust)
            }),
            ece: values(&|run| run.evaluation.ece),
            bayesian_accuracy: bayesian(|found| found.accuracy),
            bayesian_certified: bayesian(|found| found.certified),
            bayesian_ece: bayesian(|found| found.ece),
            auroc: some(&|run| {
                let bayesian = run.evaluation.bayesian.as_ref()?;
                Some(bayesian.unfamiliar.first()?.auroc)
            }),
            seconds: values(&|run| run.seconds),
            runs,
        }
    }
}

/// A table for the terminal.
pub fn plain(results: &CertifiedResults) -> String {
    let [training, validation, test] = results.images;
    let part = results
        .models
        .iter()
        .flat_map(|model| &model.runs)
        .map(|run| run.evaluation.part.as_str())
        .next();
    let mut text = format!(
        "{}: {training} training images, {validation} held out, {test} for the test; evaluated: {}\n\n{:<18}{:>8}{:>12}{:>10}{:>16}{:>8}{:>8}{:>20}{:>8}{:>8}\n",
        results.data,
        part.unwrap_or("nothing"),
        "network",
        "radius",
        "parameters",
        "accuracy",
        "certified",
        "attack",
        "ECE",
        "Bayesian certified",
        "ECE",
        "AUROC"
    );
    let dash = |values: Option<&Values>, digits: usize| {
        values.map_or("-".to_owned(), |values| format!("{:.digits$}", values.mean))
    };
    for model in &results.models {
        let spread = match model.certified.values.len() {
            1 => String::new(),
            _ => format!(" ±{:.4}", model.certified.std),
        };
        text.push_str(&format!(
            "{:<18}{:>8}{:>12}{:>10.4}{:>16}{:>8}{:>8.3}{:>20}{:>8}{:>8}\n",
            model.widths,
            rounded(model.radius),
            model.parameters,
            model.accuracy.mean,
            format!("{:.4}{spread}", model.certified.mean),
            dash(model.robust.as_ref(), 3),
            model.ece.mean,
            dash(model.bayesian_certified.as_ref(), 4),
            dash(model.bayesian_ece.as_ref(), 3),
            dash(model.auroc.as_ref(), 3),
        ));
        for row in published(&results.data, model.radius) {
            let [low, high] = row.certified;
            let certified = match low == high {
                true => low.to_string(),
                false => format!("{low} to {high}"),
            };
            text.push_str(&format!(
                "  {:<16}{:>8}{:>12}{:>10}{certified:>16}\n",
                row.name,
                rounded(model.radius),
                row.parameters,
                "-"
            ));
        }
    }
    text
}
