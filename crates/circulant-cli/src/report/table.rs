//! Tables: columns with an alignment and perhaps a common heading, cells that know how to look.

use super::escape::escape;
use super::number::{fixed, grouped, signed};

/// A row that does not fit its table's header.
#[derive(Debug, thiserror::Error)]
#[error(
    "table \"{table}\", row {row}: expected {expected} cells, got {got}; give one cell per column"
)]
pub struct RowError {
    table: String,
    row: usize,
    expected: usize,
    got: usize,
}

#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    /// Numbers stand on the right.
    right: bool,
    /// The heading above, shared by neighbours with the same one; empty for none.
    group: String,
}

impl Column {
    /// A column of names.
    pub fn text(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            right: false,
            group: String::new(),
        }
    }

    /// A column of numbers.
    pub fn number(name: impl Into<String>) -> Self {
        Self {
            right: true,
            ..Self::text(name)
        }
    }

    /// The same column under a common heading.
    pub fn grouped(self, group: impl Into<String>) -> Self {
        let group = group.into();
        Self { group, ..self }
    }
}

#[derive(Debug, Clone)]
pub enum Cell {
    /// A dash.
    Missing,
    Text(String),
    /// A whole number, grouped by thousands.
    Count(u64),
    Number {
        /// Not a number is a dash.
        value: f64,
        digits: usize,
        /// The standard deviation, in small print.
        spread: Option<f64>,
        /// The best of its column.
        best: bool,
    },
    /// A cell with another one below it in small print: a number and its difference.
    Stacked(Box<Cell>, Box<Cell>),
    /// With a sign, coloured by whether it is better or worse.
    Difference {
        value: f64,
        digits: usize,
        better: bool,
    },
}

impl Cell {
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

    /// For a terminal: the text of the cell, and of what is below it.
    pub(super) fn plain(&self) -> (String, String) {
        let text = match self {
            Self::Missing => "-".to_owned(),
            Self::Text(text) => text.clone(),
            Self::Count(count) => grouped(*count),
            Self::Number { value, digits, .. } => fixed(*value, *digits),
            Self::Difference { value, digits, .. } => signed(*value, *digits),
            Self::Stacked(above, below) => return (above.plain().0, below.plain().0),
        };
        (text, String::new())
    }

    /// The class of the cell and its content.
    fn html(&self) -> (&'static str, String) {
        const DASH: &str = "<span class=\"none\">–</span>";
        match self {
            Self::Missing => ("", DASH.to_owned()),
            Self::Text(text) => ("", escape(text)),
            Self::Stacked(above, below) => {
                let (class, html) = above.html();
                let (small, below) = below.html();
                let below = format!("<small class=\"{small}\">{below}</small>");
                (class, html + &below)
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
                let class = match *better {
                    // What rounds to zero is neither good nor bad.
                    _ if !text.contains(|c: char| matches!(c, '1'..='9' | '∞')) => "even",
                    true => "better",
                    false => "worse",
                };
                (class, text)
            }
        }
    }
}

#[derive(Debug, Clone)]
pub struct Table {
    pub caption: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
    pub footnotes: Vec<String>,
}

impl Table {
    pub(super) fn html(&self) -> Result<String, RowError> {
        let mut html = String::from("<div class=\"table\">\n");
        if !self.caption.is_empty() {
            let caption = escape(&self.caption);
            html.push_str(&format!("<p class=\"caption\">{caption}</p>\n"));
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
                let (length, name) = (group.len(), escape(&group[0].group));
                let class = if name.is_empty() {
                    ""
                } else {
                    " class=\"start\""
                };
                html.push_str(&format!("<th colspan=\"{length}\"{class}>{name}</th>"));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("<tr>");
        for (column, &start) in self.columns.iter().zip(&starts) {
            let class = classes(column, start, "");
            let name = escape(&column.name);
            html.push_str(&format!("<th scope=\"col\"{class}>{name}</th>"));
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
                let (tag, end) = match position {
                    0 => ("th scope=\"row\"", "th"),
                    _ => ("td", "td"),
                };
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
        let groups = self.columns.iter().map(|column| column.group.as_str());
        let before = [""].into_iter().chain(groups.clone());
        let starts = groups
            .zip(before)
            .map(|(group, before)| !group.is_empty() && group != before);
        starts.collect()
    }
}

fn classes(column: &Column, start: bool, cell: &str) -> String {
    let align = if column.right { "right" } else { "" };
    let parts = [align, if start { "start" } else { "" }, cell];
    let classes: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    match classes.len() {
        0 => String::new(),
        _ => format!(" class=\"{}\"", classes.join(" ")),
    }
}
