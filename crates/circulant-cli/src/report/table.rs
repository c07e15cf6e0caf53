//! Tables: columns with an alignment and perhaps a common heading, cells that know how to look.

use super::escape::escape;
use super::number::{fixed, grouped, signed};

/// A row that does not fit its table's header.
#[derive(Debug, thiserror::Error)]
#[error(
    "table \"{table}\", row {row}: expected {expected} cells, got {got}; give one cell per column"
)]
pub struct RowError {
    /// The caption of the table.
    pub table: String,
    /// Counted from 1.
    pub row: usize,
    /// The number of columns.
    pub expected: usize,
    /// The number of cells.
    pub got: usize,
}

/// Where the text of a column stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Align {
    /// Names.
    #[default]
    Left,
    /// Numbers.
    Right,
}

/// A column.
#[derive(Debug, Clone, Default)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// Where its text stands.
    pub align: Align,
    /// The heading above, shared by neighbours with the same one; empty for none.
    pub group: String,
}

impl Column {
    /// A column of names.
    pub fn text(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// A column of numbers.
    pub fn number(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            align: Align::Right,
            ..Self::default()
        }
    }

    /// The same column under a common heading.
    pub fn grouped(mut self, group: impl Into<String>) -> Self {
        self.group = group.into();
        self
    }
}

/// A cell.
#[derive(Debug, Clone, Default)]
pub enum Cell {
    /// A dash.
    #[default]
    Missing,
    /// Words.
    Text(String),
    /// A whole number, grouped by thousands.
    Count(u64),
    /// A number, perhaps with its spread.
    Number {
        /// What to show; not a number is a dash.
        value: f64,
        /// Digits after the point.
        digits: usize,
        /// The standard deviation, in small print.
        spread: Option<f64>,
        /// The best of its column.
        best: bool,
    },
    /// A cell with another one below it in small print: a number and its difference.
    Stacked(Box<Cell>, Box<Cell>),
    /// A signed difference.
    Difference {
        /// What to show.
        value: f64,
        /// Digits after the point.
        digits: usize,
        /// Better or worse, for the colour; nothing when neither.
        better: Option<bool>,
    },
}

impl Cell {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A plain number.
    pub fn number(value: f64, digits: usize) -> Self {
        Self::Number {
            value,
            digits,
            spread: None,
            best: false,
        }
    }

    fn html(&self) -> (&'static str, String) {
        const DASH: &str = "<span class=\"none\">–</span>";
        match self {
            Self::Missing => ("", DASH.to_owned()),
            Self::Text(text) => ("", escape(text)),
            Self::Stacked(above, below) => {
                let (class, html) = above.html();
                let (small, below) = below.html();
                (
                    class,
                    format!("{html}<small class=\"{small}\">{below}</small>"),
                )
            }
            Self::Count(count) => ("", grouped(*count)),
            Self::Number { value, .. } | Self::Difference { value, .. } if value.is_nan() => {
                ("", DASH.to_owned())
            }
            Self::Number {
                value,
                digits,
                spread,
                best,
            } => {
                let mut html = fixed(*value, *digits);
                if *best {
                    html = format!("<strong>{html}</strong>");
                }
                if let Some(spread) = spread.filter(|spread| spread.is_finite()) {
                    html.push_str(&format!("<small>±{}</small>", fixed(spread, *digits)));
                }
                ("", html)
            }
            Self::Difference {
                value,
                digits,
                better,
            } => {
                let text = signed(*value, *digits);
                // What rounds to zero is neither good nor bad.
                let zero = !text
                    .chars()
                    .any(|character| matches!(character, '1'..='9' | '∞'));
                let class = match better {
                    _ if zero => "even",
                    Some(true) => "better",
                    Some(false) => "worse",
                    None => "even",
                };
                (class, text)
            }
        }
    }
}

/// A table.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Above the table.
    pub caption: String,
    /// From left to right.
    pub columns: Vec<Column>,
    /// From top to bottom, one cell per column.
    pub rows: Vec<Vec<Cell>>,
    /// Below the table.
    pub footnotes: Vec<String>,
}

impl Table {
    pub(super) fn html(&self) -> Result<String, RowError> {
        let mut html = String::from("<div class=\"table\">\n");
        if !self.caption.is_empty() {
            html.push_str(&format!(
                "<p class=\"caption\">{}</p>\n",
                escape(&self.caption)
            ));
        }
        // The box scrolls, not the page; the keyboard reaches it too.
        html.push_str(&format!(
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">\n<table>\n<thead>\n",
            escape(if self.caption.is_empty() { "table" } else { &self.caption })
        ));
        let starts = self.group_starts();
        if self.columns.iter().any(|column| !column.group.is_empty()) {
            html.push_str("<tr class=\"groups\">");
            for group in self.columns.chunk_by(|one, other| one.group == other.group) {
                let class = if group[0].group.is_empty() {
                    ""
                } else {
                    " class=\"start\""
                };
                html.push_str(&format!(
                    "<th colspan=\"{}\"{class}>{}</th>",
                    group.len(),
                    escape(&group[0].group)
                ));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("<tr>");
        for (column, &start) in self.columns.iter().zip(&starts) {
            let class = classes(column, start, "");
            html.push_str(&format!(
                "<th scope=\"col\"{class}>{}</th>",
                escape(&column.name)
            ));
        }
        html.push_str("</tr>\n</thead>\n<tbody>\n");
        for (index, row) in self.rows.iter().enumerate() {
            if row.len() != self.columns.len() {
                return Err(RowError {
                    table: self.caption.clone(),
                    row: index + 1,
                    expected: self.columns.len(),
                    got: row.len(),
                });
            }
            html.push_str("<tr>");
            for (position, (cell, column)) in row.iter().zip(&self.columns).enumerate() {
                let (class, text) = cell.html();
                let class = classes(column, starts[position], class);
                // The first column names the row.
                let tag = if position == 0 {
                    "th scope=\"row\""
                } else {
                    "td"
                };
                let end = if position == 0 { "th" } else { "td" };
                html.push_str(&format!("<{tag}{class}>{text}</{end}>"));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody>\n</table>\n</div>\n");
        for note in &self.footnotes {
            html.push_str(&format!("<p class=\"footnote\">{}</p>\n", escape(note)));
        }
        html.push_str("</div>\n");
        Ok(html)
    }

    /// Which columns begin a group and get a line before them.
    fn group_starts(&self) -> Vec<bool> {
        (0..self.columns.len())
            .map(|index| {
                let group = &self.columns[index].group;
                let before = index
                    .checked_sub(1)
                    .map(|before| &self.columns[before].group);
                !group.is_empty() && before != Some(group)
            })
            .collect()
    }
}

fn classes(column: &Column, start: bool, cell: &str) -> String {
    let align = match column.align {
        Align::Left => "",
        Align::Right => "right",
    };
    let parts = [align, if start { "start" } else { "" }, cell];
    let classes: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if classes.is_empty() {
        String::new()
    } else {
        format!(" class=\"{}\"", classes.join(" "))
    }
}
