//! What cannot be learned from: dates, free text, missing cells. Every error names the column and says what to do.

use std::collections::{BTreeMap, BTreeSet};

use super::raw::{Cells, Column, RawTable};
use super::schema::Missing;
use crate::error::DataError;

/// Text columns of more levels than this are free text.
const MOST_LEVELS: usize = 50;

pub(super) fn refuse(
    table: &RawTable,
    expected: impl Into<String>,
    found: impl Into<String>,
    help: impl Into<String>,
) -> DataError {
    DataError::format(table.source.clone(), expected, found, help)
}

/// A number of nine digits: it reads back from a JSON file as it was, to the last bit.
pub fn nine_digits(x: f64) -> f64 {
    format!("{x:.8e}").parse().unwrap_or(x)
}

/// Mean and standard deviation of all values, to nine digits.
pub(super) fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let first = values[0];
    let mean = first + values.iter().map(|x| x - first).sum::<f64>() / count;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (nine_digits(mean), nine_digits((squares / count).sqrt()))
}

/// The different cells, as text, and how often each occurs.
pub(super) fn levels(cells: &Cells) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    match cells {
        Cells::Numbers(cells) => {
            let mut sorted: Vec<f64> = cells.iter().copied().filter(|x| !x.is_nan()).collect();
            sorted.sort_by(f64::total_cmp);
            for run in sorted.chunk_by(|one, other| one == other) {
                counts.insert(run[0].to_string(), run.len());
            }
        }
        Cells::Text(cells) => {
            for text in cells.iter().flatten() {
                match counts.get_mut(text) {
                    Some(count) => *count += 1,
                    None => {
                        counts.insert(text.clone(), 1);
                    }
                }
            }
        }
    }
    counts
}

/// Whether a column without a name, or called id or index, tells the rows apart by whole numbers.
pub(super) fn is_row_number(table: &RawTable, column: &Column) -> bool {
    let usual = ["id", "index", "row", "unnamed: 0", "column 0"];
    let Cells::Numbers(cells) = &column.cells else {
        return false;
    };
    // Of a part of the rows, in any order.
    let values: BTreeSet<u64> = (cells.iter())
        .filter(|x| **x >= 0.0 && x.fract() == 0.0)
        .map(|x| x.to_bits())
        .collect();
    let named = usual
        .iter()
        .any(|name| column.name.eq_ignore_ascii_case(name));
    table.named && named && cells.len() > 2 && values.len() == cells.len()
}

/// Missing cells that nothing is to be done about.
pub(super) fn missing(table: &RawTable, column: &Column, policy: Missing) -> Result<(), DataError> {
    let (Missing::Error | Missing::Drop, Some(row)) = (policy, column.cells.missing()) else {
        return Ok(());
    };
    let expected = format!("a value in every row of the column {:?}", column.name);
    let found = format!("none in row {}", row + 1);
    let help = "fill it in, or use --missing mean, median or drop";
    Err(refuse(table, expected, found, help))
}

/// The levels of a text column; dates and free text are refused.
pub(super) fn categories(
    table: &RawTable,
    column: &Column,
    cells: &[Option<String>],
) -> Result<Vec<String>, DataError> {
    let present = || cells.iter().flatten();
    let dates = present().filter(|text| is_date(text)).count();
    let example = present().next().cloned().unwrap_or_default();
    let leave = "or leave the column out with --drop NAME";
    if dates > 0 && 2 * dates >= present().count() {
        let expected = format!("numbers or a few words in the column {:?}", column.name);
        let help =
            format!("turn dates into numbers (days since one of them, month, hour), {leave}");
        return Err(refuse(
            table,
            expected,
            format!("dates, such as {example:?}"),
            help,
        ));
    }
    let numbers = present().filter(|text| text.parse::<f64>().is_ok()).count();
    let word = present().find(|text| text.parse::<f64>().is_err());
    if let (Some(word), true) = (word, 2 * numbers > present().count()) {
        let row = cells
            .iter()
            .position(|text| text.as_ref() == Some(word))
            .unwrap_or(0);
        let expected = format!(
            "numbers in the column {:?}, as in most of its rows",
            column.name
        );
        let help = format!("write a missing value as an empty cell or NA, {leave}");
        return Err(refuse(
            table,
            expected,
            format!("{word:?} in row {}", row + 1),
            help,
        ));
    }
    let levels = levels(&column.cells);
    if levels.len() > MOST_LEVELS || (levels.len() > 10 && 2 * levels.len() > cells.len()) {
        let expected = format!(
            "at most {MOST_LEVELS} different words in the column {:?}",
            column.name
        );
        let found = format!("{}, such as {example:?}", levels.len());
        let help =
            format!("it looks like free text or names: turn it into numbers or groups, {leave}");
        return Err(refuse(table, expected, found, help));
    }
    Ok(levels.into_keys().collect())
}

/// `2024-01-31`, `31.1.2024`, `1/31/24`, also with a time behind.
fn is_date(text: &str) -> bool {
    let date = text.split([' ', 'T']).next().unwrap_or_default();
    ['-', '/', '.'].iter().any(|&separator| {
        let parts: Vec<&str> = date.split(separator).collect();
        let digits = |part: &&str| {
            (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        parts.len() == 3 && parts.iter().all(digits)
    })
}
