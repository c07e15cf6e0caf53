//! Tables with given splits: `NAME.csv` (or `.csv.gz`) beside `NAME-test-mask.csv`, which has one column per split and 1 where a row
//! belongs to its test part.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use circulant_data::table::Cells;
use circulant_data::{RawTable, ReadOptions};

/// A table and its splits.
pub struct TableSet {
    /// As its file.
    pub name: String,
    /// All rows.
    pub table: RawTable,
    /// Per split, which rows are its test part.
    pub splits: Vec<Vec<bool>>,
}

const MASK: &str = "-test-mask";

/// The names of the sets in some folders, with their files, in alphabetical order.
pub fn find(folders: &[PathBuf]) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for folder in folders {
        let entries = fs::read_dir(folder)
            .with_context(|| format!("cannot look into the folder {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            let stem = name
                .strip_suffix(".gz")
                .unwrap_or(name)
                .strip_suffix(".csv");
            if let Some(stem) = stem.filter(|stem| !stem.ends_with(MASK))
                && mask_of(&path, stem).is_some()
            {
                found.push((stem.to_owned(), path));
            }
        }
    }
    found.sort();
    ensure!(
        !found.is_empty(),
        "no tables found: expected files NAME.csv or NAME.csv.gz, each with NAME{MASK}.csv or .csv.gz beside it"
    );
    Ok(found)
}

fn mask_of(path: &Path, stem: &str) -> Option<PathBuf> {
    let names = [format!("{stem}{MASK}.csv"), format!("{stem}{MASK}.csv.gz")];
    let mut paths = names.into_iter().map(|name| path.with_file_name(name));
    paths.find(|path| path.is_file())
}

/// Reads a set that [`find`] found.
pub fn read(name: &str, path: &Path) -> anyhow::Result<TableSet> {
    let options = ReadOptions::default();
    let table = RawTable::read(path, &options, None)?;
    let mask = mask_of(path, name).with_context(|| format!("{name} has no splits"))?;
    let splits = RawTable::read(&mask, &options, None)?;
    let place = mask.display();
    ensure!(
        splits.rows() == table.rows(),
        "{place}: expected a row for each of the {} rows of the table, found {}",
        table.rows(),
        splits.rows()
    );
    let split = |cells: &Cells| match cells {
        Cells::Numbers(cells) => Ok(cells.iter().map(|&x| x == 1.0).collect::<Vec<bool>>()),
        Cells::Text(_) => bail!("{place}: expected 0 and 1, found text"),
    };
    let splits = splits.columns.iter().map(|column| split(&column.cells));
    let splits = splits.collect::<anyhow::Result<Vec<_>>>()?;
    for (index, split) in splits.iter().enumerate() {
        let test = split.iter().filter(|test| **test).count();
        ensure!(
            test > 0 && test < table.rows(),
            "{place}: split {index} has {test} of {} rows in its test part; both parts need rows",
            table.rows()
        );
    }
    Ok(TableSet {
        name: name.to_owned(),
        table,
        splits,
    })
}

impl TableSet {
    /// Training and test rows of a split.
    pub fn parts(&self, split: usize) -> [RawTable; 2] {
        [false, true].map(|wanted| {
            let rows = self.splits[split].iter().enumerate();
            let rows = rows
                .filter(|(_, test)| **test == wanted)
                .map(|(row, _)| row);
            self.table.select(&rows.collect::<Vec<_>>())
        })
    }
}
