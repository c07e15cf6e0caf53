//! `circulant params`: how many parameters every model of the paper learns, counted from the models
//! themselves.

use circulant::models::{CountedModel, parameter_table};
use clap::Args;
use serde::Serialize;

use super::output::{json_line, print};
use crate::report::number::grouped;

/// Print the parameter counts of all models.
///
/// Every model is built and its real parameters are counted. Beside them stands what the paper prints, if it does; it
/// counts something else for some models: weights only, or a complex spectral coefficient (two real parameters) as one.
#[derive(Args)]
pub struct Params {
    /// Print one JSON object per line instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct CountedRow<'a> {
    model: &'a str,
    weights: usize,
    biases: usize,
    total: usize,
    paper: Option<usize>,
    paper_counts: &'a str,
}

impl Params {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<()> {
        let table = parameter_table(&circulant::cpu());
        let text = if self.json {
            json(&table)?
        } else {
            plain(&table)
        };
        print(&text)
    }
}

fn json(table: &[CountedModel]) -> anyhow::Result<String> {
    let mut text = String::new();
    for row in table {
        let row = CountedRow {
            model: &row.model,
            weights: row.count.weights,
            biases: row.count.biases,
            total: row.count.total(),
            paper: row.paper,
            paper_counts: row.paper_counts,
        };
        text.push_str(&json_line(&row)?);
    }
    Ok(text)
}

fn plain(table: &[CountedModel]) -> String {
    let mut text = format!(
        "{:<44}{:>10}{:>8}{:>11}{:>11}  {}\n",
        "model", "weights", "biases", "total", "paper", "paper counts"
    );
    for row in table {
        let count = &row.count;
        let [weights, biases, total] =
            [count.weights, count.biases, count.total()].map(|count| grouped(count as u64));
        let paper = row
            .paper
            .map_or("-".to_owned(), |count| grouped(count as u64));
        text.push_str(&format!(
            "{:<44}{weights:>10}{biases:>8}{total:>11}{paper:>11}  {}\n",
            row.model, row.paper_counts
        ));
    }
    text
}
