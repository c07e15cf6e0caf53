//! The table of the baselines.

use super::{BaselineLine, HELD, MEMBERS, Method};
use crate::experiments::values::Values;
use crate::report::{Cell, Column, Comparison, ComparisonRow, Estimate, Metric, Section};

const METRICS: [Metric; 5] = [
    Metric::higher("Accuracy"),
    Metric::lower("NLL"),
    Metric::lower("ECE"),
    Metric::higher("AUROC"),
    Metric::lower("FPR@95"),
];

/// A table per model, in the order of the lines.
fn tables(lines: &[BaselineLine]) -> Vec<Comparison> {
    let mut models: Vec<&str> = lines.iter().map(|line| line.model.as_str()).collect();
    models.dedup();
    models
        .into_iter()
        .map(|model| table(lines, model))
        .collect()
}

fn table(lines: &[BaselineLine], model: &str) -> Comparison {
    let own = || lines.iter().filter(move |line| line.model == model);
    let weights = own().next().map_or(0, |line| line.weights);
    let row = |method: Method| {
        let own: Vec<&BaselineLine> = own().filter(|line| line.method == method).collect();
        let values = |pick: fn(&BaselineLine) -> f64| {
            let values = Values::new(own.iter().map(|line| pick(line)).collect());
            Some(Estimate::from(&values))
        };
        let cost = Values::new(own.iter().map(|line| line.milliseconds).collect());
        (!own.is_empty()).then(|| ComparisonRow {
            name: method.title().to_owned(),
            facts: vec![
                Cell::Count(own[0].stored as u64),
                Cell::number(cost.mean, 1),
            ],
            ours: vec![
                values(|line| line.accuracy),
                values(|line| line.nll),
                values(|line| line.ece),
                values(|line| line.auroc),
                values(|line| line.fpr95),
            ],
            paper: vec![None; METRICS.len()],
        })
    };
    Comparison {
        caption: format!(
            "{model}, {weights} weights: means over the seeds, with the sample standard deviation"
        ),
        subject: "method".to_owned(),
        facts: ["stored", "ms per 1000"].map(Column::number).to_vec(),
        metrics: METRICS.to_vec(),
        rows: Method::ALL.into_iter().filter_map(row).collect(),
        footnotes: vec![format!(
            "One in {HELD} training images is held out from all methods; it chooses temperature, dropout rate and prior precision. ECE with 10 bins. AUROC and \
             FPR@95 of the entropy, or of the feature density where a row says so. Stored: numbers that are kept for predictions. Ensembles have {MEMBERS} networks."
        )],
    }
}

/// The tables for the terminal.
pub fn plain(lines: &[BaselineLine]) -> String {
    let tables = tables(lines);
    let tables = tables.iter().map(|table| format!("\n{}", table.plain()));
    format!(
        "beside other methods, on the same models:{}",
        tables.collect::<String>()
    )
}

/// The tables for the report.
pub fn section(lines: &[BaselineLine]) -> Section {
    let section = Section::new("Beside other methods, on the same models");
    let tables = tables(lines);
    tables
        .iter()
        .fold(section, |section, table| section.table(table.table()))
}
