//! The report: one self-contained `report.html`. No other files, fonts or scripts; light and dark; for a
//! desktop, a phone and a printer.
//!
//! A `Document` holds sections of text, tables and figures, and ends with where its numbers come
//! from. Figures take plain numbers (`figure`), tables take cells (`table`) or build themselves from our
//! numbers and the paper's (`comparison`). All text from data is escaped.

pub mod comparison;
pub mod document;
mod escape;
pub mod figure;
pub mod number;
pub mod provenance;
mod style;
pub mod table;

pub use comparison::{Comparison, ComparisonRow, Estimate, Metric};
pub use document::{Block, Document, Figure, Section};
pub use provenance::Provenance;
pub use table::{Cell, Column, Table};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod xml;
