//! A table as it lies in its file: columns of numbers or of text, with names.
//!
//! CSV may be separated by commas, semicolons or tabs. Its first line is a header when it says the target's name, when it has no number, or when
//! one of its words stands above a column of numbers. Arrays `[n, d]` have numbered columns, and their labels are the last one.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use csv::{ReaderBuilder, StringRecord};

use super::{LABEL_NAMES, MISSING, next};
use crate::array::{Array, Arrays};
use crate::error::DataError;
use crate::options::ReadOptions;
use crate::read::Format;
use crate::stream::open_unpacked;
use crate::{npy, tensors};

/// What stands in the place of a name where there is none.
pub(super) fn numbered(column: usize) -> String {
    format!("column {column}")
}

/// The cells of one column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells {
    /// NaN where a cell is missing.
    Numbers(Vec<f64>),
    /// None where a cell is missing.
    Text(Vec<Option<String>>),
}

impl Cells {
    /// The number of cells.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(cells) => cells.len(),
            Self::Text(cells) => cells.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first cell that is missing.
    pub(super) fn missing(&self) -> Option<usize> {
        match self {
            Self::Numbers(cells) => cells.iter().position(|x| x.is_nan()),
            Self::Text(cells) => cells.iter().position(Option::is_none),
        }
    }

    pub(super) fn select(&self, rows: &[usize]) -> Self {
        match self {
            Self::Numbers(cells) => Self::Numbers(rows.iter().map(|&row| cells[row]).collect()),
            Self::Text(cells) => Self::Text(rows.iter().map(|&row| cells[row].clone()).collect()),
        }
    }
}

/// A column with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// From the header, or `column 0`, `column 1`, ...
    pub name: String,
    /// One per row.
    pub cells: Cells,
}

/// A table as it lies in its file.
#[derive(Debug, Clone, PartialEq)]
pub struct RawTable {
    /// Where it came from.
    pub source: String,
    /// All of the same length, at least one.
    pub columns: Vec<Column>,
    /// Whether the names are from the file.
    pub named: bool,
    /// The index of the column that the file itself says is the target.
    pub labels: Option<usize>,
    /// The names of classes that are numbers in the file; empty when unknown.
    pub class_names: Vec<String>,
}

impl RawTable {
    /// Reads a table: CSV, or an array `[n, d]` of NPY, NPZ or safetensors. `target` is the name of the target's column, if it is
    /// known. Other files are an error.
    pub fn read(
        path: &Path,
        options: &ReadOptions,
        target: Option<&str>,
    ) -> Result<Self, DataError> {
        Self::read_if_table(path, options, target)?.ok_or_else(|| {
            DataError::format(
                path.display().to_string(),
                "a table: CSV, or an array [n, d] of NPY, NPZ or safetensors",
                "images",
                "name a table, or leave out the flags for tables",
            )
        })
    }

    /// [`Self::read`], but none for images.
    pub fn read_if_table(
        path: &Path,
        options: &ReadOptions,
        target: Option<&str>,
    ) -> Result<Option<Self>, DataError> {
        let place = path.display().to_string();
        let arrays = match Format::of(path)? {
            Format::Csv => return csv(open_unpacked(path)?, target, place).map(Some),
            Format::Npy => npy::npy_arrays(path, options)?,
            Format::Npz => npy::npz_arrays(path, options)?,
            Format::Safetensors => tensors::arrays(path, options)?,
            _ => return Ok(None),
        };
        match arrays.inputs.shape[..] {
            [rows, width] => of_arrays(arrays, [rows, width], place).map(Some),
            _ => Ok(None),
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }

    /// The index of a column by its name, or by its number from 0.
    pub fn find(&self, name: &str) -> Option<usize> {
        let named = |column: &Column| column.name.eq_ignore_ascii_case(name.trim());
        let found = self.columns.iter().position(named);
        found.or_else(|| {
            name.parse()
                .ok()
                .filter(|&column| column < self.columns.len())
        })
    }

    /// The table without all rows but these.
    pub fn select(&self, rows: &[usize]) -> Self {
        let column = |column: &Column| Column {
            name: column.name.clone(),
            cells: column.cells.select(rows),
        };
        Self {
            columns: self.columns.iter().map(column).collect(),
            ..self.clone_without_columns()
        }
    }

    fn clone_without_columns(&self) -> Self {
        Self {
            source: self.source.clone(),
            columns: Vec::new(),
            named: self.named,
            labels: self.labels,
            class_names: self.class_names.clone(),
        }
    }

    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| &*column.name).collect();
        match names.len() {
            0..=12 => names.join(", "),
            more => format!("{}, ... ({more} in all)", names[..12].join(", ")),
        }
    }
}

fn of_arrays(
    arrays: Arrays,
    [rows, width]: [usize; 2],
    source: String,
) -> Result<RawTable, DataError> {
    if rows == 0 || width == 0 {
        let expected = "rows with numbers".to_owned();
        return Err(DataError::Empty {
            place: source,
            expected,
        });
    }
    let values = arrays.inputs.into_floats();
    let column = |index: usize| Column {
        name: numbered(index),
        cells: Cells::Numbers(
            values
                .iter()
                .skip(index)
                .step_by(width)
                .map(|&x| f64::from(x))
                .collect(),
        ),
    };
    let mut columns: Vec<Column> = (0..width).map(column).collect();
    let labels = arrays.labels.map(|labels| {
        let column = label_cells(labels, rows, &source);
        column.map(|cells| {
            columns.push(Column {
                name: "label".to_owned(),
                cells,
            })
        })
    });
    let has_labels = labels.transpose()?.is_some();
    Ok(RawTable {
        source,
        columns,
        named: false,
        labels: has_labels.then_some(width),
        class_names: arrays.class_names,
    })
}

fn label_cells(labels: Array, rows: usize, place: &str) -> Result<Cells, DataError> {
    if !matches!(labels.shape[..], [_] | [_, 1]) {
        return Err(DataError::format(
            place,
            "labels of the shape [n]",
            format!("{:?}", labels.shape),
            "store one class or number per row",
        ));
    }
    let values: Vec<f64> = labels.into_floats().into_iter().map(f64::from).collect();
    if values.len() != rows {
        return Err(DataError::LabelCount {
            place: place.to_owned(),
            examples: rows,
            labels: values.len(),
        });
    }
    Ok(Cells::Numbers(values))
}

/// A column that grows: numbers as long as all cells are, and all cells as one text.
#[derive(Default)]
struct Growing {
    numbers: Vec<f64>,
    words: usize,
    text: String,
    ends: Vec<usize>,
}

/// What a cell says.
enum Cell {
    Missing,
    Number(f64),
    Word,
}

fn cell(text: &str) -> Cell {
    if MISSING
        .iter()
        .chain(&["nan"])
        .any(|none| none.eq_ignore_ascii_case(text))
    {
        return Cell::Missing;
    }
    text.parse::<f64>().map_or(Cell::Word, Cell::Number)
}

impl Growing {
    fn push(&mut self, text: &str) {
        let number = match cell(text) {
            Cell::Number(number) => number,
            Cell::Missing => f64::NAN,
            Cell::Word => {
                self.words += 1;
                f64::NAN
            }
        };
        self.numbers.push(number);
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    fn finish(self) -> Cells {
        if self.words == 0 {
            return Cells::Numbers(self.numbers);
        }
        let mut start = 0;
        let mut text = |&end: &usize| {
            let cell_text = &self.text[start..end];
            start = end;
            (!matches!(cell(cell_text), Cell::Missing)).then(|| cell_text.to_owned())
        };
        Cells::Text(self.ends.iter().map(&mut text).collect())
    }
}

/// Parses CSV, plain. `place` names it in errors.
pub(super) fn csv(
    content: Box<dyn Read + '_>,
    target: Option<&str>,
    place: String,
) -> Result<RawTable, DataError> {
    let mut content = BufReader::with_capacity(1 << 16, content);
    let delimiter = delimiter(
        content
            .fill_buf()
            .map_err(|error| crate::stream::damage(error, &place))?,
    );
    let content: Box<dyn Read + '_> = Box::new(content);
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .delimiter(delimiter)
        .from_reader(content);
    let mut record = StringRecord::new();
    let empty = |place: String| DataError::Empty {
        place,
        expected: "lines with a label and numbers".to_owned(),
    };
    if !next(&mut reader, &mut record, &place)? {
        return Err(empty(place));
    }
    let first: Vec<String> = record.iter().map(|text| text.trim().to_owned()).collect();
    if first.len() < 2 {
        return Err(DataError::format(
            place,
            "at least two columns, separated by commas, semicolons or tabs",
            first.len().to_string(),
            "convert it to commas, or name another file",
        ));
    }
    let mut columns: Vec<Growing> = first.iter().map(|_| Growing::default()).collect();
    while next(&mut reader, &mut record, &place)? {
        for (column, text) in columns.iter_mut().zip(record.iter()) {
            column.push(text.trim());
        }
    }
    let has_rows = !columns[0].ends.is_empty();
    let mut above = first.iter().zip(&columns);
    let is_word = |text: &str| matches!(cell(text), Cell::Word);
    let header = says_names(&first, target)
        || has_rows && above.any(|(text, column)| is_word(text) && column.words == 0);
    if !header {
        for (column, text) in columns.iter_mut().zip(&first) {
            let mut whole = Growing::default();
            whole.push(text);
            whole.words += column.words;
            whole.numbers.append(&mut column.numbers);
            let shift = whole.text.len();
            whole.ends.extend(column.ends.iter().map(|end| end + shift));
            whole.text.push_str(&column.text);
            *column = whole;
        }
    } else if !has_rows {
        return Err(empty(place));
    }
    let names = names(header.then_some(&first[..]), columns.len());
    let columns = names.into_iter().zip(columns).map(|(name, column)| Column {
        name,
        cells: column.finish(),
    });
    Ok(RawTable {
        source: place,
        columns: columns.collect(),
        named: header,
        labels: None,
        class_names: Vec::new(),
    })
}

/// The most frequent one of the first line.
fn delimiter(start: &[u8]) -> u8 {
    let line = start
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default();
    let count = |wanted: u8| line.iter().filter(|&&byte| byte == wanted).count();
    let (comma, semicolon, tab) = (count(b','), count(b';'), count(b'\t'));
    // Commas may be within names, so they win only ties.
    if semicolon > comma && semicolon >= tab {
        b';'
    } else if tab > comma {
        b'\t'
    } else {
        b','
    }
}

/// Whether a first line must be names: it says the target's, or has no number.
fn says_names(first: &[String], target: Option<&str>) -> bool {
    let says = |name: &str| {
        first
            .iter()
            .any(|text| text.eq_ignore_ascii_case(name.trim()))
    };
    let target = target.filter(|name| name.parse::<usize>().is_err());
    let by_name = match target {
        Some(name) => says(name),
        None => LABEL_NAMES.iter().any(|name| says(name)),
    };
    let mut cells = first.iter().map(|text| cell(text));
    by_name || !cells.any(|cell| matches!(cell, Cell::Number(_)))
}

/// Names that differ.
fn names(header: Option<&[String]>, count: usize) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let name = |index: usize| {
        let given = header.map(|header| header[index].trim_start_matches('\u{feff}'));
        let name = match given {
            Some(given) if !given.is_empty() => given.to_owned(),
            _ => numbered(index),
        };
        let mut unique = name.clone();
        let mut copy = 2;
        while !taken.insert(unique.clone()) {
            unique = format!("{name} ({copy})");
            copy += 1;
        }
        unique
    };
    (0..count).map(name).collect()
}
