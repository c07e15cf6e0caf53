//! Tables of columns: from a file to standardised inputs, with the split that training makes.

use std::path::Path;

use anyhow::ensure;
use circulant_data::known::names;
use circulant_data::{
    EncodedTable, ImageSet, RawTable, ReadOptions, Split, TableOptions, TableSchema,
};

use super::config::DataConfig;
use super::progress::Busy;
use super::source::{DRAW_SEED, fits, reading, stratified};
use crate::ranks::say;

/// What training learned from the columns of a table.
pub struct LearnedTable {
    /// Of the rows that are learned from.
    pub schema: TableSchema,
    /// Standardised inputs of these rows, with their classes or targets.
    pub training: EncodedTable,
    /// Those of the rows that are held out.
    pub validation: Option<EncodedTable>,
    /// What a user should know, as lines.
    pub notes: Vec<String>,
}

/// Reads the training data if they are a table: not the name of a data set, not pictures, and not read as images.
pub fn read(data: &DataConfig) -> anyhow::Result<Option<RawTable>> {
    let (place, path) = (&data.train, Path::new(&data.train));
    let as_images = data.image.is_some() || data.size.is_some();
    if as_images || names().any(|name| name == place) || !path.is_file() {
        return Ok(None);
    }
    let _busy = Busy::new(format!("reading {place}"));
    let options = reading(Split::Train, data);
    Ok(RawTable::read_if_table(path, &options, target(data))?)
}

fn target(data: &DataConfig) -> Option<&str> {
    let of_table = data
        .table
        .as_ref()
        .and_then(|table| table.target.as_deref());
    of_table.or(data.label_name.as_deref())
}

/// Learns from the columns of a table, without the rows that are held out.
pub fn learn(table: RawTable, data: &DataConfig) -> anyhow::Result<LearnedTable> {
    let options = TableOptions {
        target: target(data).map(str::to_owned),
        ..data.table.clone().unwrap_or_default()
    };
    let (mut table, note) = TableSchema::usable_rows(options.missing, &table);
    let mut notes: Vec<String> = note.into_iter().collect();
    ensure!(
        table.rows() > 0,
        "{}: every row has a missing cell; use --missing mean or median",
        table.source
    );
    let labels = |table: &RawTable| -> anyhow::Result<ImageSet> {
        let (schema, _) = TableSchema::learn(table, &options)?;
        images(schema.encode(table)?)
    };
    if let Some(count) = data.first.filter(|&count| count < table.rows()) {
        table = table.select(&stratified(&labels(&table)?, count, DRAW_SEED, 0)?);
    }
    let held = match data.validation {
        0 => Vec::new(),
        count => {
            let set = labels(&table)?;
            fits(&set, count)?;
            stratified(&set, count, DRAW_SEED, 1)?
        }
    };
    let kept = (0..table.rows()).filter(|row| held.binary_search(row).is_err());
    let part = table.select(&kept.collect::<Vec<_>>());
    let (schema, more) = TableSchema::learn(&part, &options)?;
    notes.extend(more);
    let validation = match held.is_empty() {
        true => None,
        false => Some(schema.encode(&table.select(&held))?),
    };
    Ok(LearnedTable {
        training: schema.encode(&part)?,
        validation,
        schema,
        notes,
    })
}

/// Rows as images of one line, which models and certificates know.
pub fn images(table: EncodedTable) -> anyhow::Result<ImageSet> {
    let row = [1, 1, table.inputs.shape()[1]];
    Ok(table.inputs.into_images(row)?)
}

/// Reads a table as the training table was.
pub(super) fn encoded(
    place: &str,
    reading: &ReadOptions,
    schema: &TableSchema,
    options: &DataConfig,
) -> anyhow::Result<EncodedTable> {
    let path = Path::new(place);
    ensure!(
        path.exists(),
        "{place} is neither a data set by name nor a path that exists; check it for misspellings"
    );
    let mut table = RawTable::read(path, reading, Some(&schema.target))?;
    let mut notes = Vec::new();
    if !options.every_row {
        let (usable, note) = TableSchema::usable_rows(schema.missing, &table);
        table = usable;
        notes.extend(note);
    }
    let encoded = schema.encode(&table)?;
    for note in notes.iter().chain(&encoded.notes) {
        say!("{place}: {note}");
    }
    Ok(encoded)
}
