//! CSV: one example per line, a label column and numbers; read line by line, also from gzip.
//!
//! The label column is the one that is named, else a column called `label`, `class`, `target` or `y`.
//! Labels are whole numbers from 0 or words; words become classes in alphabetical order. Where labels are
//! optional, a file without such a column has numbers only.
//!
//! That is [`read`]: plain numbers. [`RawTable`] reads what people bring (text, missing cells, any target), and a [`TableSchema`],
//! learned from the training table, turns it into standardised inputs.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use csv::{ReaderBuilder, StringRecord};

mod check;
mod encode;
mod raw;
mod schema;
#[cfg(test)]
mod schema_tests;

pub use self::check::nine_digits;
pub use self::encode::EncodedTable;
pub use self::raw::{Cells, Column, RawTable};
pub use self::schema::{
    ColumnKind, ColumnRule, Missing, TableOptions, TableSchema, TableTask, TaskChoice,
};
use super::error::{DataError, Setting};
use super::features::FeatureSet;
use super::labels::Labels;
use super::options::ReadOptions;
use super::stream::{MOST_UNPACKED, damage, open_unpacked, unpack};

const LABEL_NAMES: [&str; 4] = ["label", "class", "target", "y"];
/// How tables write that there is no value.
const MISSING: [&str; 7] = ["", "-", "?", "na", "n/a", "null", "none"];

/// Reads a CSV file.
pub fn read(path: &Path, options: &ReadOptions) -> Result<FeatureSet, DataError> {
    rows(open_unpacked(path)?, options, path.display().to_string())
}

/// Reads the bytes of a CSV file, plain or gzip. `place` names it in errors.
pub fn parse(content: &[u8], options: &ReadOptions, place: &str) -> Result<FeatureSet, DataError> {
    let reader = unpack(content, place, MOST_UNPACKED)?;
    rows(reader, options, place.to_owned())
}

fn rows(
    content: Box<dyn Read + '_>,
    options: &ReadOptions,
    place: String,
) -> Result<FeatureSet, DataError> {
    let mut reader = ReaderBuilder::new().has_headers(false).from_reader(content);
    let mut record = StringRecord::new();
    let empty = || DataError::Empty {
        place: place.clone(),
        expected: "lines with a label and numbers".to_owned(),
    };
    if !next(&mut reader, &mut record, &place)? {
        return Err(empty());
    }
    let label = match label_column(&record, options, &place) {
        Ok(column) => Some(column),
        Err(_) if options.labels_optional && record.len() > 1 => None,
        Err(error) => return Err(error),
    };
    let has_header = is_header(&record, label, options);
    let columns = record.len();
    let mut values = Vec::new();
    let mut labels = Vec::new();
    let mut examples = 0;
    let mut more = !has_header || next(&mut reader, &mut record, &place)?;
    while more {
        let line = record.position().map_or(0, |at| at.record() + 1);
        for (column, text) in record.iter().enumerate() {
            if Some(column) == label {
                labels.push(text.trim().to_owned());
            } else {
                values.push(number(text.trim(), line, column, &place)?);
            }
        }
        examples += 1;
        more = next(&mut reader, &mut record, &place)?;
    }
    if examples == 0 {
        return Err(empty());
    }
    let shape = [examples, columns - usize::from(label.is_some())];
    let labels = match label {
        Some(_) => classes(&labels),
        None => Labels::default(),
    };
    FeatureSet::new(values, shape, labels, place)
}

fn next(
    reader: &mut csv::Reader<Box<dyn Read + '_>>,
    record: &mut StringRecord,
    place: &str,
) -> Result<bool, DataError> {
    reader.read_record(record).map_err(|error| {
        let text = error.to_string();
        match error.into_kind() {
            csv::ErrorKind::Io(error) => damage(error, place),
            csv::ErrorKind::UnequalLengths {
                pos,
                expected_len,
                len,
            } => DataError::format(
                format!("{place}, line {}", pos.map_or(0, |at| at.record() + 1)),
                format!("{expected_len} columns as in the first line"),
                len.to_string(),
                "the file is cut short or a separator is missing",
            ),
            _ => DataError::format(
                place,
                "CSV in UTF-8",
                text,
                "it is another kind of file, or damaged",
            ),
        }
    })
}

fn label_column(
    first: &StringRecord,
    options: &ReadOptions,
    place: &str,
) -> Result<usize, DataError> {
    let help = "give the label column by its name or its number from 0";
    if first.len() < 2 {
        return Err(DataError::format(
            place,
            "at least two columns, separated by commas",
            first.len().to_string(),
            "convert it to commas, or name another file",
        ));
    }
    let position = |wanted: &str| {
        first
            .iter()
            .position(|name| name.trim().eq_ignore_ascii_case(wanted))
    };
    let found = match &options.label_name {
        Some(name) => match name.parse::<usize>() {
            Ok(column) => Some(column).filter(|&column| column < first.len()),
            Err(_) => position(name),
        },
        None => LABEL_NAMES.iter().find_map(|name| position(name)),
    };
    found.ok_or_else(|| {
        let expected = match &options.label_name {
            Some(name) => format!("a column {name:?}"),
            None => format!("a column named {}", LABEL_NAMES.join(", ")),
        };
        let names: Vec<&str> = first.iter().take(8).collect();
        let found = format!("{} columns: {} ...", first.len(), names.join(", "));
        DataError::format(place, expected, found, help).by(Setting::LabelColumn)
    })
}

/// A line is a header when it names the label column, or has a word in another one. A value that is
/// missing is no word.
fn is_header(first: &StringRecord, label: Option<usize>, options: &ReadOptions) -> bool {
    let is_word = |text: &str| {
        text.parse::<f32>().is_err() && !MISSING.iter().any(|none| none.eq_ignore_ascii_case(text))
    };
    let names_label = |text: &str| match &options.label_name {
        Some(name) => name.parse::<usize>().is_err() && name.trim().eq_ignore_ascii_case(text),
        None => true,
    };
    first
        .iter()
        .map(str::trim)
        .enumerate()
        .any(|(column, text)| {
            if Some(column) == label {
                names_label(text)
            } else {
                is_word(text)
            }
        })
}

fn number(text: &str, line: u64, column: usize, place: &str) -> Result<f32, DataError> {
    let found = match text.parse::<f32>() {
        Ok(value) if value.is_finite() => return Ok(value),
        Ok(value) => value.to_string(),
        Err(_) if text.is_empty() => "nothing".to_owned(),
        Err(_) => format!("{text:?}"),
    };
    Err(DataError::format(
        format!("{place}, line {line}, column {column}"),
        "a finite number",
        found,
        "fill or remove such lines first",
    ))
}

fn classes(labels: &[String]) -> Labels {
    // `3.0` is how a table of floats writes class 3.
    let whole = |text: &String| text.strip_suffix(".0").unwrap_or(text).parse::<i64>().ok();
    if let Some(values) = labels.iter().map(whole).collect::<Option<Vec<i64>>>() {
        return Labels::numbered(values);
    }
    let names: Vec<String> = labels
        .iter()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .cloned()
        .collect();
    let class = |text: &String| names.binary_search(text).map_or(-1, |index| index as i64);
    let values = labels.iter().map(class).collect();
    Labels {
        values: Some(values),
        names,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    fn parse(content: &[u8], label: Option<&str>) -> Result<FeatureSet, DataError> {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("table.csv");
        fs::write(&path, content).unwrap();
        let options = ReadOptions {
            label_name: label.map(str::to_owned),
            ..Default::default()
        };
        read(&path, &options)
    }

    #[test]
    fn the_label_column_is_found_or_named() {
        let set = parse(b"a,label,b\n1,0,2\n3,1,4\n", None).unwrap();
        assert_eq!(set.shape(), [2, 2]);
        assert_eq!(set.values(), [1., 2., 3., 4.]);
        assert_eq!(set.labels().values, Some(vec![0, 1]));
        let set = parse(b"5,0,255\n0,1,2", Some("0")).unwrap();
        assert_eq!(set.labels().values, Some(vec![5, 0]));
        let set = parse(b"x, kind\r\n1,\"tall, dark\"\r\n2, a\r\n", Some("kind")).unwrap();
        assert_eq!(set.labels().names, ["a", "tall, dark"]);
        assert_eq!(set.labels().values, Some(vec![1, 0]));
    }

    #[test]
    fn a_first_line_with_a_missing_value_is_no_header() {
        for missing in ["", " ", "NA", "?", "null"] {
            let text = format!("{missing},2,0\n1,2,1\n");
            let error = parse(text.as_bytes(), Some("2")).unwrap_err().to_string();
            assert!(error.contains("line 1, column 0"), "{missing:?}: {error}");
            let header = format!("{missing},b,label\n1,2,0\n");
            assert_eq!(parse(header.as_bytes(), None).unwrap().shape(), [1, 2]);
        }
        // Tables without names for their columns number them.
        let set = parse(b"0,1,label\n5,6,1\n", None).unwrap();
        assert_eq!(set.values(), [5., 6.]);
        assert_eq!(set.labels().values, Some(vec![1]));
    }

    #[test]
    fn ragged_lines_and_lines_without_numbers_are_named() {
        let error = |content: &[u8]| parse(content, None).unwrap_err().to_string();
        for content in [
            &b"a,label\n1,0,3\n"[..],
            b"a,label\n1\n",
            b"a,label\n1,0\n2,1\n3,1,1\n",
        ] {
            let text = error(content);
            assert!(text.contains("2 columns as in the first line"), "{text}");
        }
        assert!(error(b"label\n0\n").contains("two columns"));
        assert!(error(b"label,a\n0,inf\n").contains("found inf"));
        assert!(error(b"label,a\n0,1e40\n").contains("found inf"));
    }

    #[test]
    fn damage_is_named() {
        let error = |content: &[u8], label| parse(content, label).unwrap_err().to_string();
        assert!(error(b"", None).contains("is empty"));
        assert!(error(b"a,label\n", None).contains("is empty"));
        assert!(error(b"1,2,3\n", None).contains("give the label column"));
        assert!(error(b"a,b\n1,2\n", Some("c")).contains("a column \"c\""));
        let text = error(b"a,label\n1,0\n2\n", None);
        assert!(
            text.contains("line 3") && text.contains("2 columns"),
            "{text}"
        );
        let text = error(b"a,label\n1,0\nx,0\n", None);
        assert!(
            text.contains("line 3, column 0") && text.contains("\"x\""),
            "{text}"
        );
        assert!(error(b"a,label\nNaN,0\n", None).contains("finite number"));
        assert!(error(b"a,label\n,0\n", None).contains("found nothing"));
        assert!(error(b"a,label\n1,-2\n", None).contains("label -2"));
        assert!(error(b"\xff\xfe,label\n1,2\n", None).contains("another kind of file"));
        assert!(error(b"just a line\n", None).contains("two columns"));
    }
}
