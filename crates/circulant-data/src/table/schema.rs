//! What is learned from the columns of a training table, so that later ones are prepared alike.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::LABEL_NAMES;
use super::check::{self, refuse};
use super::raw::{Cells, Column, RawTable};
use crate::error::DataError;

/// What is done about missing cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// They are an error.
    #[default]
    Error,
    /// The column's mean; no level of a text column.
    Mean,
    /// The column's median; no level of a text column.
    Median,
    /// Their rows are left out of training and evaluation.
    Drop,
}

/// What a table is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskChoice {
    /// Recognised: text and few whole numbers are classes, everything else is a number.
    #[default]
    Auto,
    /// Classes.
    Classification,
    /// Numbers.
    Regression,
    /// Whole numbers from 0 without a limit.
    Counts,
}

/// How a training table is understood.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TableOptions {
    /// The column to predict; one called label, class, target or y unless given, else the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What it is.
    pub task: TaskChoice,
    /// What is done about missing cells.
    pub missing: Missing,
    /// Columns that are left out.
    pub drop: Vec<String>,
}

/// How one column becomes inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ColumnKind {
    /// `(x - mean)/deviation`.
    Number {
        /// Of the training rows.
        mean: f64,
        /// Of the training rows.
        deviation: f64,
        /// In the place of a missing cell.
        #[serde(skip_serializing_if = "Option::is_none")]
        fill: Option<f64>,
    },
    /// One input per level: 1 where the cell has it.
    Category {
        /// In alphabetical order.
        levels: Vec<String>,
    },
}

/// A column that is used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnRule {
    /// As in the file.
    pub name: String,
    /// How it becomes inputs.
    #[serde(flatten)]
    pub kind: ColumnKind,
}

/// What is predicted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "kebab-case")]
pub enum TableTask {
    /// Classes, by the text of their cells.
    Classification {
        /// In their order.
        classes: Vec<String>,
    },
    /// A number, learned as `(y - mean)/deviation`.
    Regression {
        /// Of the training rows.
        mean: f64,
        /// Of the training rows.
        deviation: f64,
    },
    /// A count.
    Counts {
        /// Of the training rows.
        mean: f64,
    },
}

/// Everything that a model needs to know about the columns of its table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableSchema {
    /// In the order of the inputs.
    pub columns: Vec<ColumnRule>,
    /// The name of the target's column.
    pub target: String,
    /// What it is.
    #[serde(flatten)]
    pub task: TableTask,
    /// What is done about missing cells.
    pub missing: Missing,
}

/// Numbers of more values than this are no classes.
const MOST_NUMBERED_CLASSES: usize = 20;

impl TableSchema {
    /// Learns from the training rows of a table, and says in lines what was understood.
    pub fn learn(
        table: &RawTable,
        options: &TableOptions,
    ) -> Result<(Self, Vec<String>), DataError> {
        let target = target_of(table, options)?;
        let column = &table.columns[target];
        let (task, line) = task(table, column, options)?;
        let mut notes = vec![line];
        let mut left_out = BTreeSet::new();
        for name in &options.drop {
            let found = table.find(name);
            left_out.insert(found.ok_or_else(|| unknown(table, name, "--drop"))?);
        }
        let mut columns = Vec::new();
        let mut constant = Vec::new();
        for (index, column) in table.columns.iter().enumerate() {
            if index == target || left_out.contains(&index) {
                continue;
            }
            if check::is_row_number(table, column) {
                notes.push(format!(
                    "column {:?} numbers the rows: left out",
                    column.name
                ));
                continue;
            }
            match rule(table, column, options.missing, &mut notes)? {
                Some(kind) => columns.push(ColumnRule {
                    name: column.name.clone(),
                    kind,
                }),
                None => constant.push(format!("{:?}", column.name)),
            }
        }
        if !constant.is_empty() {
            notes.push(format!(
                "the same in all training rows, left out: {}",
                constant.join(", ")
            ));
        }
        if columns.is_empty() {
            let expected = "a column beside the target that is not the same in all rows";
            let help = "there is nothing to learn from; name another file or target";
            return Err(refuse(table, expected, "none", help));
        }
        let schema = Self {
            columns,
            target: column.name.clone(),
            task,
            missing: options.missing,
        };
        Ok((schema, notes))
    }

    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        let width = |rule: &ColumnRule| match &rule.kind {
            ColumnKind::Number { .. } => 1,
            ColumnKind::Category { levels } => levels.len(),
        };
        self.columns.iter().map(width).sum()
    }

    /// The unit of the input that changes most easily: the smallest deviation of a column of numbers, and its name. A certificate
    /// for the standardised inputs holds for changes of each single column up to that many of its own units.
    pub fn units(&self) -> impl Iterator<Item = (&str, f64)> {
        self.columns.iter().filter_map(|rule| match rule.kind {
            ColumnKind::Number { deviation, .. } => Some((rule.name.as_str(), deviation)),
            ColumnKind::Category { .. } => None,
        })
    }
}

/// An error about a column that is not there.
fn unknown(table: &RawTable, name: &str, flag: &str) -> DataError {
    let found = format!("the columns {}", table.names());
    let help = format!("give {flag} one of these names, or a number from 0");
    refuse(table, format!("a column {name:?}"), found, help)
}

/// The column that is predicted.
pub(super) fn target_of(table: &RawTable, options: &TableOptions) -> Result<usize, DataError> {
    if let Some(name) = &options.target {
        return table
            .find(name)
            .ok_or_else(|| unknown(table, name, "--target"));
    }
    let usual = || {
        let named = |wanted: &&str| {
            let is = |column: &Column| column.name.eq_ignore_ascii_case(wanted);
            table.columns.iter().position(is)
        };
        LABEL_NAMES.iter().find_map(named)
    };
    let last = table.columns.len() - 1;
    Ok(table.labels.or_else(usual).unwrap_or(last))
}

fn task(
    table: &RawTable,
    column: &Column,
    options: &TableOptions,
) -> Result<(TableTask, String), DataError> {
    let (rows, name) = (table.rows(), &column.name);
    if let Some(row) = column.cells.missing() {
        let found = format!("none in row {}", row + 1);
        let help = "fill it in, or leave such rows out with --missing drop";
        return Err(refuse(
            table,
            format!("a value of the target {name:?}"),
            found,
            help,
        ));
    }
    let counts = check::levels(&column.cells);
    let classes = counts.len();
    let how_many = format!("{classes} different values in {rows} rows");
    if classes == 1 {
        let help = "there is nothing to predict; name the target with --target NAME";
        let expected = format!("different values in the target {name:?}");
        return Err(refuse(table, expected, "the same in all rows", help));
    }
    let choice = match options.task {
        TaskChoice::Auto => match &column.cells {
            Cells::Text(_) => TaskChoice::Classification,
            Cells::Numbers(cells) => {
                let whole = cells.iter().all(|x| x.fract() == 0.0);
                let few = classes <= MOST_NUMBERED_CLASSES && 2 * classes <= rows.max(4);
                if whole && few {
                    TaskChoice::Classification
                } else {
                    TaskChoice::Regression
                }
            }
        },
        given => given,
    };
    let recognised = match options.task {
        TaskChoice::Auto => "; --task changes that",
        _ => "",
    };
    match (choice, &column.cells) {
        (TaskChoice::Regression | TaskChoice::Counts, Cells::Text(_)) => {
            let expected = format!("numbers in the target {name:?}");
            let help = "use --task classification, or name another target";
            Err(refuse(table, expected, "text", help))
        }
        (TaskChoice::Regression, Cells::Numbers(cells)) => {
            let (mean, deviation) = check::moments(cells);
            let task = TableTask::Regression { mean, deviation };
            Ok((
                task,
                format!("target {name:?}: a number ({how_many}){recognised}"),
            ))
        }
        (TaskChoice::Counts, Cells::Numbers(cells)) => {
            if let Some(row) = cells.iter().position(|x| *x < 0.0 || x.fract() != 0.0) {
                let found = format!("{} in row {}", cells[row], row + 1);
                let expected = format!("whole numbers from 0 in the target {name:?}");
                return Err(refuse(table, expected, found, "use --task regression"));
            }
            let mean = check::moments(cells).0;
            Ok((
                TableTask::Counts { mean },
                format!("target {name:?}: a count"),
            ))
        }
        _ => {
            if 2 * classes > rows.max(4) {
                let expected = format!("classes with a few rows each in the target {name:?}");
                let help = match &column.cells {
                    Cells::Numbers(_) => {
                        "use --task regression, or name another target with --target NAME"
                    }
                    Cells::Text(_) => {
                        "add rows or put classes together, or name another target with --target NAME"
                    }
                };
                return Err(refuse(table, expected, how_many, help));
            }
            let classes = class_names(table, column, counts);
            let shown = if classes.len() > 8 {
                format!("{}, ...", classes[..8].join(", "))
            } else {
                classes.join(", ")
            };
            let line = format!(
                "target {name:?}: {} classes ({shown}){recognised}",
                classes.len()
            );
            Ok((TableTask::Classification { classes }, line))
        }
    }
}

/// The classes in their order: by the names that the file gives to numbers, as numbers, or as text.
fn class_names(table: &RawTable, column: &Column, counts: BTreeMap<String, usize>) -> Vec<String> {
    match &column.cells {
        Cells::Numbers(cells) => {
            let mut values: Vec<f64> = cells.clone();
            values.sort_by(f64::total_cmp);
            values.dedup();
            // Classes that are missing between others exist all the same.
            let largest = values.last().copied().unwrap_or(0.0);
            let numbered = values[0] >= 0.0 && largest < 2.0 * values.len() as f64;
            if !table.class_names.is_empty() && (largest as usize) < table.class_names.len() {
                return (0..table.class_names.len())
                    .map(|class| class.to_string())
                    .collect();
            }
            if numbered && values[0] == 0.0 && values.iter().all(|x| x.fract() == 0.0) {
                return (0..=largest as usize)
                    .map(|class| class.to_string())
                    .collect();
            }
            values.iter().map(f64::to_string).collect()
        }
        Cells::Text(_) => counts.into_keys().collect(),
    }
}

/// How a column becomes inputs; none if it is the same in all rows.
fn rule(
    table: &RawTable,
    column: &Column,
    missing: Missing,
    notes: &mut Vec<String>,
) -> Result<Option<ColumnKind>, DataError> {
    check::missing(table, column, missing)?;
    match &column.cells {
        Cells::Text(cells) => {
            let levels = check::categories(table, column, cells)?;
            if levels.len() < 2 {
                return Ok(None);
            }
            notes.push(format!(
                "column {:?}: text, {} levels, one input each",
                column.name,
                levels.len()
            ));
            Ok(Some(ColumnKind::Category { levels }))
        }
        Cells::Numbers(cells) => {
            if let Some(row) = cells.iter().position(|x| x.is_infinite()) {
                let found = format!("{} in row {}", cells[row], row + 1);
                let expected = format!("finite numbers in the column {:?}", column.name);
                return Err(refuse(
                    table,
                    expected,
                    found,
                    "replace it, or leave the column out with --drop NAME",
                ));
            }
            let mut present: Vec<f64> = cells.iter().copied().filter(|x| !x.is_nan()).collect();
            if present.is_empty() {
                return Ok(None);
            }
            let (mean, deviation) = check::moments(&present);
            if deviation <= 1e-12 * mean.abs() || !deviation.is_normal() {
                return Ok(None);
            }
            let fill = match missing {
                Missing::Error | Missing::Drop => None,
                Missing::Mean => Some(mean),
                Missing::Median => {
                    present.sort_by(f64::total_cmp);
                    let middle = present.len() / 2;
                    let below = present[(present.len() - 1) / 2];
                    Some(check::nine_digits(f64::midpoint(below, present[middle])))
                }
            };
            Ok(Some(ColumnKind::Number {
                mean,
                deviation,
                fill,
            }))
        }
    }
}
