//! The table of `docs/backends.md`, between two marks.

use std::fmt::Write;

use super::Found;

/// Names the file.
const VARIABLE: &str = "CIRCULANT_BACKENDS_TABLE";
const BEGIN: &str = "<!-- the table begins: ./deep-checks.sh backends writes it -->\n";
const END: &str = "<!-- the table ends -->";

pub fn write_if_asked(backends: &[&str], rows: &[(&str, Vec<Found>)]) {
    let Ok(path) = std::env::var(VARIABLE) else {
        return;
    };
    let mut table = format!("| what | {} |\n| --- |", backends.join(" | "));
    table.push_str(&" --- |".repeat(backends.len()));
    table.push('\n');
    for (name, cells) in rows {
        write!(table, "| {name} |").expect("a string takes it");
        for found in cells {
            match found {
                Found::Deviation(0.0) => table.push_str(" the same |"),
                Found::Deviation(off) => write!(table, " {off:.0e} |").expect("a string takes it"),
                Found::Failed(_) => table.push_str(" **no** |"),
            }
        }
        table.push('\n');
    }
    let page = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let (before, rest) = page
        .split_once(BEGIN)
        .unwrap_or_else(|| panic!("{path} lacks {BEGIN:?}"));
    let (_, after) = rest
        .split_once(END)
        .unwrap_or_else(|| panic!("{path} lacks {END:?}"));
    let page = format!("{before}{BEGIN}{table}{END}{after}");
    std::fs::write(&path, page).unwrap_or_else(|error| panic!("{path}: {error}"));
}
