//! Filters as heat maps, several in a grid. Positive and negative values have one colour each, and zero is the
//! page itself: the opacity is the magnitude, so the same drawing is right on white and on black.

use super::canvas::{Canvas, HPos, Lettering, Point, Stroke, VPos};
use super::ink::Ink;
use super::sheet::{Drawing, SMALL, Sheet, WIDTH};
use super::text::fit;
use crate::report::number::fixed;

const NEGATIVE: Ink = Ink::Series(0);
const POSITIVE: Ink = Ink::Series(1);
/// Steps of opacity per sign. More cannot be seen, and cells of one step share one path.
const LEVELS: usize = 24;
const MARGIN: f64 = 1.5;
const GAP: f64 = 14.0;

#[derive(Debug, Clone)]
pub struct Filter {
    /// Written above it.
    pub name: String,
    /// Cells from left to right.
    pub width: usize,
    /// Rows from top to bottom; `width` values each.
    pub values: Vec<f64>,
}

#[derive(Debug, Clone)]
pub struct Filters {
    pub title: String,
    /// Row by row.
    pub filters: Vec<Filter>,
    /// How many stand beside each other.
    pub columns: usize,
    /// One colour scale for all, instead of one for each.
    pub shared_scale: bool,
}

impl Filters {
    pub fn draw(&self) -> Drawing {
        let names: Vec<&str> = self
            .filters
            .iter()
            .map(|filter| filter.name.as_str())
            .collect();
        let description = format!("Filters as heat maps: {}.", names.join(", "));
        let mut sheet = Sheet::new(&self.title, description);
        let finite = |filter: &Filter| filter.values.iter().filter(|x| x.is_finite()).count();
        let (drawn, empty): (Vec<&Filter>, Vec<&Filter>) = self
            .filters
            .iter()
            .partition(|filter| filter.width > 0 && finite(filter) > 0);
        let lost = drawn
            .iter()
            .map(|filter| filter.values.len() - finite(filter));
        sheet.dropped(lost.sum(), "not finite, shown as a grey cell");
        match empty.len() {
            0 => {}
            1 => sheet.note("1 filter left out: it has no finite value."),
            n => sheet.note(format!("{n} filters left out: they have no finite value.")),
        }
        if drawn.is_empty() {
            return sheet.no_data();
        }
        let overall = drawn
            .iter()
            .map(|filter| largest(filter))
            .fold(0.0, f64::max);
        let columns = self.columns.clamp(1, 12);
        let room = WIDTH - 2.0 * MARGIN - GAP * (columns - 1) as f64;
        // One or two filters need not fill the page.
        let side = (room / columns as f64).min(200.0);
        for row in drawn.chunks(columns) {
            let mut height: f64 = 0.0;
            for (column, filter) in row.iter().enumerate() {
                let at = (MARGIN + column as f64 * (side + GAP), sheet.top);
                let most = if self.shared_scale {
                    overall
                } else {
                    largest(filter)
                };
                height = height.max(self.filter(&mut sheet.canvas, filter, at, side, most));
            }
            sheet.top += height + 12.0;
        }
        let label = |sign: f64| match self.shared_scale {
            true => fixed(sign * overall, digits(overall)),
            false if sign < 0.0 => "−max |w|".to_owned(),
            false => "max |w|".to_owned(),
        };
        colour_bar(&mut sheet, &label(-1.0), &label(1.0));
        sheet.finish()
    }

    /// Draws one filter and gives its height with the name above it.
    fn filter(&self, canvas: &mut Canvas, filter: &Filter, at: Point, side: f64, most: f64) -> f64 {
        let name = if self.shared_scale {
            filter.name.clone()
        } else {
            format!("{} (max {})", filter.name, fixed(most, digits(most)))
        };
        let lettering = Lettering::new(SMALL, Ink::Text).at(HPos::Left, VPos::Top);
        canvas.text(at, &fit(&name, SMALL, side), lettering);
        let rows = filter.values.len().div_ceil(filter.width);
        let cell = side / filter.width.max(rows) as f64;
        let (left, top) = (at.0, at.1 + SMALL + 5.0);
        let corner = |index: usize| {
            let (row, column) = (index / filter.width, index % filter.width);
            (left + column as f64 * cell, top + row as f64 * cell)
        };
        let mut cells: Vec<(Option<i64>, usize)> = filter
            .values
            .iter()
            .enumerate()
            .map(|(index, &value)| (level(value, most), index))
            .filter(|(level, _)| *level != Some(0))
            .collect();
        cells.sort_unstable();
        for (level, index) in cells {
            let from = corner(index);
            let to = (from.0 + cell, from.1 + cell);
            match level {
                Some(level) => {
                    let ink = if level < 0 { NEGATIVE } else { POSITIVE };
                    canvas.rectangle(from, to, ink, level.unsigned_abs() as f64 / LEVELS as f64);
                }
                None => canvas.rectangle(from, to, Ink::Series(6), 1.0),
            }
        }
        let (right, bottom) = (left + filter.width as f64 * cell, top + rows as f64 * cell);
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
        let frame: Vec<Point> = corners.into_iter().chain([corners[0]]).collect();
        canvas.line(&frame, Stroke::thin(Ink::Axis).alpha(0.7));
        bottom - at.1
    }
}

fn largest(filter: &Filter) -> f64 {
    let finite = filter.values.iter().filter(|value| value.is_finite());
    finite.fold(0.0, |most, value| most.max(value.abs()))
}

/// Signed step of opacity; nothing for a value that has none.
fn level(value: f64, most: f64) -> Option<i64> {
    if !value.is_finite() {
        None
    } else if most == 0.0 {
        Some(0)
    } else {
        Some((value / most * LEVELS as f64).round() as i64)
    }
}

fn digits(most: f64) -> usize {
    match most {
        most if most >= 10.0 => 1,
        most if most >= 1.0 => 2,
        most if most >= 0.01 => 3,
        _ => 5,
    }
}

fn colour_bar(sheet: &mut Sheet, low: &str, high: &str) {
    let (left, right) = (WIDTH / 2.0 - 90.0, WIDTH / 2.0 + 90.0);
    let steps = 2 * LEVELS;
    let width = (right - left) / (steps + 1) as f64;
    for step in 0..=steps {
        let from = left + step as f64 * width;
        let level = step.abs_diff(LEVELS) as f64 / LEVELS as f64;
        let ink = if step < LEVELS { NEGATIVE } else { POSITIVE };
        let (from, to) = ((from, sheet.top), (from + width, sheet.top + 10.0));
        sheet.canvas.rectangle(from, to, ink, level);
    }
    let middle = sheet.top + 5.0;
    let lettering = Lettering::new(SMALL, Ink::Muted);
    for (x, text, side) in [
        (left - 6.0, low, HPos::Right),
        (right + 6.0, high, HPos::Left),
    ] {
        sheet
            .canvas
            .text((x, middle), text, lettering.at(side, VPos::Center));
    }
    sheet.top += 18.0;
}
