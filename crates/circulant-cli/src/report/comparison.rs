//! Our numbers beside the paper's: one column group per metric, ours and the paper's, and below the
//! paper's the difference. Six metrics fit a desktop's width so.

use super::number::fixed;
use super::table::{Cell, Column, Table};

/// Which way a metric improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Better {
    Higher,
    Lower,
}

/// A column group.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    name: &'static str,
    better: Better,
}

/// Digits after the point.
const DIGITS: usize = 3;

impl Metric {
    /// Such as accuracy, AUROC.
    pub const fn higher(name: &'static str) -> Self {
        let better = Better::Higher;
        Self { name, better }
    }

    /// Such as NLL, Brier, ECE, FPR.
    pub const fn lower(name: &'static str) -> Self {
        let better = Better::Lower;
        Self { name, better }
    }

    /// The name, and an arrow that says which way is better.
    fn heading(&self) -> String {
        let arrow = match self.better {
            Better::Higher => '↑',
            Better::Lower => '↓',
        };
        format!("{} {arrow}", self.name)
    }
}

/// A mean over seeds.
#[derive(Debug, Clone, Copy)]
pub struct Estimate {
    pub mean: f64,
    /// The standard deviation, with more than one seed.
    pub spread: Option<f64>,
}

/// The numbers of one model, one per metric.
#[derive(Debug, Clone, Default)]
pub struct ComparisonRow {
    pub name: String,
    /// More cells after the name, such as the number of weights.
    pub facts: Vec<Cell>,
    pub ours: Vec<Option<Estimate>>,
    pub paper: Vec<Option<f64>>,
}

/// A table in the making.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// Above the table.
    pub caption: String,
    /// What a row is, such as `model`.
    pub subject: String,
    /// Columns of the rows' facts.
    pub facts: Vec<Column>,
    pub metrics: Vec<Metric>,
    pub rows: Vec<ComparisonRow>,
    /// Below the table, before the line that explains the differences.
    pub footnotes: Vec<String>,
}

impl Comparison {
    /// The table. The best of our numbers and the best of the paper's in each metric are bold. Where the paper has nothing
    /// at all, there are no columns for it.
    pub fn table(&self) -> Table {
        let has_paper = self.rows.iter().any(ComparisonRow::has_paper);
        let mut columns = vec![Column::text(self.subject.clone())];
        columns.extend(self.facts.iter().cloned());
        for metric in &self.metrics {
            let group = metric.heading();
            if has_paper {
                let names = ["ours", "paper"];
                columns.extend(names.map(|name| Column::number(name).grouped(group.clone())));
            } else {
                columns.push(Column::number(group));
            }
        }
        let ours = |row: &ComparisonRow, metric: usize| {
            let value = row.ours.get(metric).copied().flatten();
            value.filter(|value| value.mean.is_finite())
        };
        let paper = |row: &ComparisonRow, metric: usize| {
            let value = row.paper.get(metric).copied().flatten();
            value.filter(|value| value.is_finite())
        };
        let named = |row: &ComparisonRow| {
            let name = Cell::text(row.name.clone());
            [&[name][..], &row.facts].concat()
        };
        let mut rows: Vec<Vec<Cell>> = self.rows.iter().map(named).collect();
        for (index, metric) in self.metrics.iter().enumerate() {
            let means = self.rows.iter().map(|row| Some(ours(row, index)?.mean));
            let best_ours = best(means, metric);
            let best_paper = best(self.rows.iter().map(|row| paper(row, index)), metric);
            for (row, cells) in self.rows.iter().zip(&mut rows) {
                let (ours, paper) = (ours(row, index), paper(row, index));
                cells.push(ours.map_or(Cell::Missing, |value| Cell::Number {
                    value: value.mean,
                    digits: DIGITS,
                    spread: value.spread,
                    best: Some(rounded(value.mean)) == best_ours,
                }));
                if !has_paper {
                    continue;
                }
                let paper_cell = paper.map_or(Cell::Missing, |value| Cell::Number {
                    value,
                    digits: DIGITS,
                    spread: None,
                    best: Some(rounded(value)) == best_paper,
                });
                cells.push(match (ours, paper) {
                    (Some(ours), Some(paper)) => Cell::Stacked(
                        Box::new(paper_cell),
                        Box::new(difference(ours.mean - paper, metric)),
                    ),
                    _ => paper_cell,
                });
            }
        }
        let mut footnotes = self.footnotes.clone();
        if has_paper {
            footnotes.push(
                "Below the paper's number: ours minus theirs, coloured by whether that is better or worse.".to_owned(),
            );
        }
        let last =
            "Below ours: ± the standard deviation over seeds. The best of each column is bold.";
        footnotes.push(last.to_owned());
        Table {
            caption: self.caption.clone(),
            columns,
            rows,
            footnotes,
        }
    }
}

impl Comparison {
    /// For a terminal: our means, and the paper's numbers in a line below them.
    pub fn plain(&self) -> String {
        let line = |name: &str, facts: Vec<String>, numbers: Vec<String>| {
            let cells = facts.iter().map(|cell| format!("{cell:>14}"));
            let numbers = numbers.iter().map(|cell| format!("{cell:>12}"));
            let cells: String = cells.chain(numbers).collect();
            format!("{name:<34}{cells}\n")
        };
        let facts = self.facts.iter().map(|column| column.name.clone());
        let headings = self.metrics.iter().map(Metric::heading);
        let mut text = line(&self.subject, facts.collect(), headings.collect());
        for row in &self.rows {
            let (facts, below): (Vec<String>, Vec<String>) =
                row.facts.iter().map(Cell::plain).unzip();
            let means = row.ours.iter().map(|value| value.map(|value| value.mean));
            let number = |value: Option<f64>| value.map_or("-".to_owned(), |x| fixed(x, DIGITS));
            text.push_str(&line(&row.name, facts, means.map(number).collect()));
            if row.has_paper() {
                let numbers = row.paper.iter().copied().map(number);
                text.push_str(&line("  paper", below, numbers.collect()));
            }
        }
        text
    }
}

impl ComparisonRow {
    fn has_paper(&self) -> bool {
        self.paper.iter().any(Option::is_some)
    }
}

/// In units of the last digit shown: what reads the same is equally good.
fn rounded(value: f64) -> i64 {
    (value * 10_f64.powi(DIGITS as i32)).round() as i64
}

fn best(values: impl Iterator<Item = Option<f64>>, metric: &Metric) -> Option<i64> {
    let values: Vec<i64> = values.flatten().map(rounded).collect();
    // Alone, a number is not the best of anything.
    if values.len() < 2 {
        return None;
    }
    match metric.better {
        Better::Higher => values.into_iter().max(),
        Better::Lower => values.into_iter().min(),
    }
}

fn difference(value: f64, metric: &Metric) -> Cell {
    let better = match metric.better {
        Better::Higher => value > 0.0,
        Better::Lower => value < 0.0,
    };
    Cell::Difference {
        value,
        digits: DIGITS,
        better,
    }
}
