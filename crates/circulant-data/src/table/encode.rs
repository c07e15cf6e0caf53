//! A table turned into inputs by a schema.

use super::check::refuse;
use super::raw::{Cells, RawTable};
use super::schema::{ColumnKind, ColumnRule, Missing, TableSchema, TableTask};
use crate::error::DataError;
use crate::features::FeatureSet;
use crate::labels::Labels;

/// Standardised inputs, and what is to be predicted if the table has it.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedTable {
    /// `[n, inputs]`, with the classes of a classification.
    pub inputs: FeatureSet,
    /// The targets of a regression, in their own unit.
    pub targets: Option<Vec<f64>>,
    /// What a user should know, as lines.
    pub notes: Vec<String>,
}

impl TableSchema {
    /// The rows of a table that can be used for training or evaluation: with `--missing drop`, those without missing cells.
    pub fn usable_rows(missing: Missing, table: &RawTable) -> (RawTable, Option<String>) {
        if missing != Missing::Drop {
            return (table.clone(), None);
        }
        let complete = |row: &usize| {
            table.columns.iter().all(|column| match &column.cells {
                Cells::Numbers(cells) => !cells[*row].is_nan(),
                Cells::Text(cells) => cells[*row].is_some(),
            })
        };
        let kept: Vec<usize> = (0..table.rows()).filter(complete).collect();
        let dropped = table.rows() - kept.len();
        let line = format!(
            "{dropped} of {} rows have missing cells: left out",
            table.rows()
        );
        (table.select(&kept), (dropped > 0).then_some(line))
    }

    /// Prepares a table as the training table was. Columns are found by their names; others are ignored. A table without the
    /// target has inputs only.
    pub fn encode(&self, table: &RawTable) -> Result<EncodedTable, DataError> {
        let rows = table.rows();
        let (columns, target) = self.locate(table)?;
        let mut notes = Vec::new();
        let width = self.inputs();
        let mut values = vec![0.0_f32; rows * width];
        let mut at = 0;
        for (rule, column) in self.columns.iter().zip(columns) {
            at += self.column(rule, table, column, &mut values[at..], &mut notes)?;
        }
        let (labels, targets) = match target {
            None => (Labels::default(), None),
            Some(target) => self.target(table, target)?,
        };
        Ok(EncodedTable {
            inputs: FeatureSet::new(values, [rows, width], labels, table.source.clone())?,
            targets,
            notes,
        })
    }

    /// Where the columns of the schema are, and the target.
    fn locate(&self, table: &RawTable) -> Result<(Vec<usize>, Option<usize>), DataError> {
        let named = |name: &str| table.columns.iter().position(|column| column.name == name);
        let found: Vec<Option<usize>> = self.columns.iter().map(|rule| named(&rule.name)).collect();
        if let Some(found) = found.iter().copied().collect::<Option<Vec<usize>>>() {
            let target = named(&self.target).or(table.labels);
            let target = target.filter(|target| !found.contains(target));
            return Ok((found, target));
        }
        let lacks = self
            .columns
            .iter()
            .zip(&found)
            .filter(|(_, found)| found.is_none());
        let lacks: Vec<&str> = lacks.map(|(rule, _)| rule.name.as_str()).collect();
        let list = if lacks.len() > 12 {
            format!("{}, ... ({} in all)", lacks[..12].join(", "), lacks.len())
        } else {
            lacks.join(", ")
        };
        Err(refuse(
            table,
            format!("the columns of the training table, among them {list}"),
            format!("the columns {}", table.names()),
            "give the file a first line with these names",
        ))
    }

    /// Writes the inputs of one column, and says how many they are.
    fn column(
        &self,
        rule: &ColumnRule,
        table: &RawTable,
        index: usize,
        values: &mut [f32],
        notes: &mut Vec<String>,
    ) -> Result<usize, DataError> {
        let cells = &table.columns[index].cells;
        let width = self.inputs();
        let wrong = |row: usize, expected: &str, found: String| {
            let expected = format!("{expected} in the column {:?}", rule.name);
            let help = "as in training; repair or leave out such rows";
            refuse(table, expected, format!("{found} in row {}", row + 1), help)
        };
        match (&rule.kind, cells) {
            (
                ColumnKind::Number {
                    mean,
                    deviation,
                    fill,
                },
                Cells::Numbers(cells),
            ) => {
                for (row, &x) in cells.iter().enumerate() {
                    let x = if x.is_nan() { fill.unwrap_or(x) } else { x };
                    let standard = ((x - mean) / deviation) as f32;
                    if !standard.is_finite() {
                        let found = if x.is_nan() {
                            "nothing".to_owned()
                        } else {
                            x.to_string()
                        };
                        return Err(wrong(row, "a finite number", found));
                    }
                    values[row * width] = standard;
                }
                Ok(1)
            }
            (ColumnKind::Number { .. }, Cells::Text(cells)) => {
                let is_word = |text: &Option<String>| {
                    text.as_ref()
                        .is_some_and(|text| text.parse::<f64>().is_err())
                };
                let row = cells.iter().position(is_word).unwrap_or(0);
                let found = format!("{:?}", cells[row].as_deref().unwrap_or_default());
                Err(wrong(row, "numbers", found))
            }
            (ColumnKind::Category { levels }, cells) => {
                let mut unseen = 0;
                for row in 0..table.rows() {
                    let text = match cells {
                        Cells::Text(cells) => cells[row].clone(),
                        Cells::Numbers(cells) => {
                            (!cells[row].is_nan()).then(|| cells[row].to_string())
                        }
                    };
                    let level = text.as_ref().map(|text| levels.binary_search(text));
                    match level {
                        Some(Ok(level)) => values[row * width + level] = 1.0,
                        Some(Err(_)) => unseen += 1,
                        None if matches!(self.missing, Missing::Mean | Missing::Median) => {}
                        None => return Err(wrong(row, "a word", "nothing".to_owned())),
                    }
                }
                if unseen > 0 {
                    notes.push(format!(
                        "column {:?}: {unseen} rows have words that training did not have",
                        rule.name
                    ));
                }
                Ok(levels.len())
            }
        }
    }

    fn target(
        &self,
        table: &RawTable,
        index: usize,
    ) -> Result<(Labels, Option<Vec<f64>>), DataError> {
        let cells = &table.columns[index].cells;
        // A file for predictions may have an empty target.
        if cells.missing().is_some() {
            return Ok((Labels::default(), None));
        }
        let classes = match (&self.task, cells) {
            (TableTask::Regression { .. } | TableTask::Counts { .. }, Cells::Numbers(cells)) => {
                return Ok((Labels::default(), Some(cells.clone())));
            }
            (TableTask::Regression { .. } | TableTask::Counts { .. }, Cells::Text(_)) => {
                let expected = format!("numbers in the target {:?}", self.target);
                return Err(refuse(
                    table,
                    expected,
                    "text",
                    "name the file that was meant",
                ));
            }
            (TableTask::Classification { classes }, _) => classes,
        };
        let text = |row: usize| match cells {
            Cells::Text(cells) => cells[row].clone().unwrap_or_default(),
            Cells::Numbers(cells) => cells[row].to_string(),
        };
        let class = |row: usize| {
            let text = text(row);
            let found = classes.iter().position(|class| *class == text);
            found
                .map(|class| class as i64)
                .ok_or_else(|| DataError::Label {
                    place: table.source.clone(),
                    example: row,
                    label: text,
                    expected: format!("one of the training classes {}", classes.join(", ")),
                })
        };
        let values: Vec<i64> = (0..table.rows()).map(class).collect::<Result<_, _>>()?;
        let plain = classes
            .iter()
            .enumerate()
            .all(|(index, name)| *name == index.to_string());
        let names = match (plain, table.class_names.len() == classes.len()) {
            (true, true) => table.class_names.clone(),
            (true, false) => Vec::new(),
            (false, _) => classes.clone(),
        };
        let labels = Labels {
            values: Some(values),
            names,
        };
        Ok((labels, None))
    }
}

impl EncodedTable {
    /// At most the first `count` rows of a table whose target is a number.
    pub fn first(&self, count: usize) -> Result<Self, DataError> {
        let rows = self.inputs.shape()[0];
        self.select(&(0..count.clamp(1, rows)).collect::<Vec<_>>())
    }

    /// Some rows of a table whose target is a number.
    ///
    /// # Panics
    ///
    /// Panics if one does not exist.
    pub fn select(&self, rows: &[usize]) -> Result<Self, DataError> {
        let width = self.inputs.shape()[1];
        let values = self.inputs.values();
        let values = rows.iter().flat_map(|row| &values[row * width..][..width]);
        let targets = self.targets.as_ref();
        Ok(Self {
            inputs: FeatureSet::new(
                values.copied().collect(),
                [rows.len(), width],
                Labels::default(),
                self.inputs.source(),
            )?,
            targets: targets.map(|targets| rows.iter().map(|&row| targets[row]).collect()),
            notes: self.notes.clone(),
        })
    }
}
