//! Our numbers beside the paper's: one column group per metric, ours and the paper's, and below the
//! paper's the difference. Six metrics fit a desktop's width so.

use super::table::{Cell, Column, Table};

/// Which way a metric improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Accuracy, AUROC.
    Higher,
    /// NLL, Brier, ECE, FPR.
    Lower,
}

/// A column group.
#[derive(Debug, Clone)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// Digits after the point.
    pub digits: usize,
    /// Which way it improves.
    pub better: Better,
}

impl Metric {
    /// A metric with three digits.
    pub fn new(name: impl Into<String>, better: Better) -> Self {
        Self {
            name: name.into(),
            digits: 3,
            better,
        }
    }

    /// The name, and an arrow that says which way is better.
    pub fn heading(&self) -> String {
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
    /// The mean.
    pub mean: f64,
    /// The standard deviation, with more than one seed.
    pub spread: Option<f64>,
}

/// The numbers of one model, one per metric.
#[derive(Debug, Clone, Default)]
pub struct ComparisonRow {
    /// The model.
    pub name: String,
    /// More cells after the name, such as the number of weights.
    pub facts: Vec<Cell>,
    /// Our numbers.
    pub ours: Vec<Option<Estimate>>,
    /// The paper's.
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
    /// The column groups.
    pub metrics: Vec<Metric>,
    /// From top to bottom.
    pub rows: Vec<ComparisonRow>,
    /// Below the table, before the line that explains the differences.
    pub footnotes: Vec<String>,
}

impl Comparison {
    /// The table. The best of our numbers and the best of the paper's in each metric are bold. Where the paper has nothing
    /// at all, there are no columns for it.
    pub fn table(&self) -> Table {
        let has_paper = self
            .rows
            .iter()
            .any(|row| row.paper.iter().any(Option::is_some));
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
            row.ours
                .get(metric)
                .copied()
                .flatten()
                .filter(|value| value.mean.is_finite())
        };
        let paper = |row: &ComparisonRow, metric: usize| {
            row.paper
                .get(metric)
                .copied()
                .flatten()
                .filter(|value| value.is_finite())
        };
        let mut rows: Vec<Vec<Cell>> = self
            .rows
            .iter()
            .map(|row| {
                let mut cells = vec![Cell::text(row.name.clone())];
                cells.extend(row.facts.iter().cloned());
                cells
            })
            .collect();
        for (index, metric) in self.metrics.iter().enumerate() {
            let means = self
                .rows
                .iter()
                .map(|row| ours(row, index).map(|value| value.mean));
            let best_ours = best(means, metric);
            let best_paper = best(self.rows.iter().map(|row| paper(row, index)), metric);
            for (row, cells) in self.rows.iter().zip(&mut rows) {
                let (ours, paper) = (ours(row, index), paper(row, index));
                cells.push(ours.map_or(Cell::Missing, |value| Cell::Number {
                    value: value.mean,
                    digits: metric.digits,
                    spread: value.spread,
                    best: rounded(value.mean, metric) == best_ours,
                }));
                if !has_paper {
                    continue;
                }
                let paper_cell = paper.map_or(Cell::Missing, |value| Cell::Number {
                    value,
                    digits: metric.digits,
                    spread: None,
                    best: rounded(value, metric) == best_paper,
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
        footnotes.push(
            "Below ours: ± the standard deviation over seeds. The best of each column is bold."
                .to_owned(),
        );
        Table {
            caption: self.caption.clone(),
            columns,
            rows,
            footnotes,
        }
    }
}

/// In units of the last digit shown: what reads the same is equally good.
fn rounded(value: f64, metric: &Metric) -> Option<i64> {
    Some((value * 10_f64.powi(metric.digits as i32)).round() as i64)
}

fn best(values: impl Iterator<Item = Option<f64>>, metric: &Metric) -> Option<i64> {
    let values: Vec<i64> = values
        .flatten()
        .filter_map(|value| rounded(value, metric))
        .collect();
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
        digits: metric.digits,
        better: Some(better),
    }
}
