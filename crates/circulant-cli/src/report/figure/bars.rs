//! Bars for categories, several beside each other, with error bars and reference marks. They lie, so that names
//! of categories can be long. A bar begins at zero; on an axis without a zero there are dots instead.

use super::canvas::Stroke;
use super::ink::Ink;
use super::scale::{Axis, AxisKind, Scale};
use super::sheet::{Drawing, Key, Panel, SMALL, Sheet};
use super::text::fit;

/// Bars of one colour, one per category.
#[derive(Debug, Clone, Default)]
pub struct BarGroup {
    /// What the legend calls it.
    pub name: String,
    /// One per category; none is left out without a word.
    pub values: Vec<Option<f64>>,
    /// Ends of the error bars, one pair per category, or none.
    pub errors: Vec<[f64; 2]>,
}

/// A figure of bars.
#[derive(Debug, Clone, Default)]
pub struct Bars {
    /// Above the figure.
    pub title: String,
    /// The quantity.
    pub axis: Axis,
    /// From top to bottom.
    pub categories: Vec<String>,
    /// In the order of their colours.
    pub groups: Vec<BarGroup>,
    /// A value per category to compare with, and what to call it: the paper's.
    pub reference: Option<(String, Vec<Option<f64>>)>,
}

const THICKNESS: f64 = 14.0;
const GAP: f64 = 12.0;

impl Bars {
    /// Draws the figure.
    pub fn draw(&self) -> Drawing {
        let description = format!("{} of {}.", self.axis.label, self.categories.join(", "));
        let mut sheet = Sheet::new(&self.title, description);
        let count = self.categories.len();
        let values = || {
            self.groups
                .iter()
                .flat_map(|group| group.values.iter().take(count).flatten().copied())
        };
        let references = || {
            let values = self
                .reference
                .iter()
                .flat_map(|(_, values)| values.iter().take(count));
            values.flatten().copied()
        };
        let broken = values()
            .chain(references())
            .filter(|&value| !self.axis.kind.shows(value))
            .count();
        let why = match self.axis.kind {
            AxisKind::Linear => "not finite",
            AxisKind::Log => "not finite, or not positive on a log axis",
        };
        sheet.dropped(broken, why);
        let surplus: usize = self
            .groups
            .iter()
            .map(|group| group.values.len().saturating_sub(count))
            .sum();
        sheet.dropped(surplus, "no category for them");
        let errors = self
            .groups
            .iter()
            .flat_map(|group| group.errors.iter().take(count).flatten().copied());
        let drawable = values()
            .chain(references())
            .any(|value| self.axis.kind.shows(value));
        let zero = (self.axis.kind == AxisKind::Linear).then_some(0.0);
        let x = self.axis.scale(
            values().chain(errors).chain(references()).chain(zero),
            0.05,
            5,
        );
        let (Some(x), true) = (x, drawable) else {
            return sheet.no_data();
        };
        let bars = from_zero(&x);
        sheet.legend(&self.entries(bars));
        let slot = THICKNESS * self.groups.len().max(1) as f64 + GAP;
        let rows = Scale {
            kind: AxisKind::Linear,
            low: count as f64,
            high: 0.0,
            ticks: self
                .categories
                .iter()
                .enumerate()
                .map(|(index, name)| (index as f64 + 0.5, fit(name, SMALL, 160.0)))
                .collect(),
        };
        let mut place = Sheet::whole(slot * count as f64, &self.axis.label, "");
        place.upright = true;
        let panel = sheet.panel(place, x, rows);
        for (index, group) in self.groups.iter().enumerate() {
            self.group(&mut sheet, &panel, index, group);
        }
        self.references(&mut sheet, &panel, slot);
        sheet.below(&panel);
        sheet.finish()
    }

    fn entries(&self, bars: bool) -> Vec<(String, Key)> {
        let groups = self.groups.iter().enumerate();
        let mut entries: Vec<_> = groups
            .map(|(index, group)| {
                let ink = Ink::Series(index);
                let key = if bars {
                    Key::Area(ink, 0.85)
                } else {
                    Key::Dot(ink)
                };
                (group.name.clone(), key)
            })
            .filter(|(name, _)| !name.is_empty())
            .collect();
        if let Some((name, _)) = &self.reference {
            entries.push((name.clone(), Key::Line(Stroke::data(Ink::Text).width(2.2))));
        }
        entries
    }

    fn group(&self, sheet: &mut Sheet, panel: &Panel, index: usize, group: &BarGroup) {
        let ink = Ink::Series(index);
        let offset = (index as f64 - (self.groups.len() as f64 - 1.0) / 2.0) * THICKNESS;
        let bars = from_zero(&panel.x);
        for (row, value) in group.values.iter().take(self.categories.len()).enumerate() {
            let Some(value) = value.filter(|&value| self.axis.kind.shows(value)) else {
                continue;
            };
            let (x, middle) = panel.at(value, row as f64 + 0.5);
            let (x, y) = (x.clamp(panel.left, panel.right), middle + offset);
            if bars {
                let (zero, _) = panel.at(0.0, 0.0);
                let half = THICKNESS / 2.0 - 1.0;
                sheet
                    .canvas
                    .rectangle((zero.min(x), y - half), (zero.max(x), y + half), ink, 0.85);
            }
            if let Some(error) = group.errors.get(row) {
                whisker(sheet, panel, *error, y, if bars { Ink::Text } else { ink });
            }
            if !bars {
                sheet.canvas.dot((x, y), 4.5, ink);
            }
        }
    }

    fn references(&self, sheet: &mut Sheet, panel: &Panel, slot: f64) {
        let values = self.reference.iter().flat_map(|(_, values)| values);
        for (row, value) in values.take(self.categories.len()).enumerate() {
            if let Some(value) = value.filter(|&value| self.axis.kind.shows(value)) {
                let (x, y) = panel.at(value, row as f64 + 0.5);
                let half = (slot - GAP) / 2.0 + 2.0;
                sheet.canvas.line(
                    &[(x, y - half), (x, y + half)],
                    Stroke::data(Ink::Text).width(2.2),
                );
            }
        }
    }
}

fn from_zero(scale: &Scale) -> bool {
    scale.kind == AxisKind::Linear && scale.low <= 0.0 && scale.high >= 0.0
}

fn whisker(sheet: &mut Sheet, panel: &Panel, error: [f64; 2], y: f64, ink: Ink) {
    if error.iter().any(|&end| !panel.x.kind.shows(end)) {
        return;
    }
    let [low, high] = error.map(|end| panel.at(end, 0.0).0.clamp(panel.left, panel.right));
    let stroke = Stroke::thin(ink).width(1.4);
    sheet.canvas.line(&[(low, y), (high, y)], stroke);
    for x in [low, high] {
        sheet.canvas.line(&[(x, y - 3.5), (x, y + 3.5)], stroke);
    }
}
