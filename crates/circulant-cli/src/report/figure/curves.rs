//! Curves: several series over a linear or logarithmic axis, with bands and marked points. Values that an
//! axis cannot show break the line there and are counted.

use super::canvas::{Point, Stroke};
use super::ink::Ink;
use super::lines::{Marks, strokes, thinned};
use super::scale::Axis;
use super::sheet::{Drawing, Key, Panel, Sheet};

/// How opaque bands are: lines on top stay readable where three bands overlap.
const BAND: f64 = 0.18;

/// What is drawn of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CurveLook {
    /// A line, and the band if it has one.
    #[default]
    Line,
    /// A dashed line: a reference beside the data.
    Dashed,
    /// A faint line behind the data: one draw of many.
    Faint,
    /// The band alone.
    Band,
}

#[derive(Debug, Clone, Default)]
pub struct Curve {
    pub name: String,
    /// Positions along the x axis, in order.
    pub x: Vec<f64>,
    /// One value per position.
    pub y: Vec<f64>,
    /// Lower and upper ends of a band, one pair per position, or none.
    pub band: Vec<[f64; 2]>,
    /// A point of the curve to mark, and what to write there: the best epoch.
    pub mark: Option<(usize, String)>,
    pub look: CurveLook,
    /// The colour, or none to take the next one. Curves that belong together share it.
    pub colour: Option<usize>,
}

impl Curve {
    pub fn new(name: impl Into<String>, x: Vec<f64>, y: Vec<f64>) -> Self {
        Self {
            name: name.into(),
            x,
            y,
            ..Self::default()
        }
    }

    /// The mean over runs, with a band from the smallest to the largest. Where a run has no finite
    /// value, the others speak; runs may have different lengths.
    pub fn over_seeds(name: impl Into<String>, x: Vec<f64>, runs: &[Vec<f64>]) -> Self {
        let (mut y, mut band) = (Vec::new(), Vec::new());
        for index in 0..x.len() {
            let values: Vec<f64> = runs
                .iter()
                .filter_map(|run| run.get(index).copied())
                .filter(|value| value.is_finite())
                .collect();
            let (low, high) =
                super::scale::extent(values.iter().copied()).unwrap_or((f64::NAN, f64::NAN));
            y.push(values.iter().sum::<f64>() / values.len() as f64);
            band.push([low, high]);
        }
        Self {
            band: if runs.len() > 1 { band } else { Vec::new() },
            ..Self::new(name, x, y)
        }
    }

    /// The same curve, every value replaced by the mean of the finite ones among `window` around it. The
    /// caption should say so.
    pub fn smoothed(mut self, window: usize) -> Self {
        self.y = running_mean(&self.y, window);
        let [low, high] = [0, 1].map(|end| {
            let side: Vec<f64> = self.band.iter().map(|band| band[end]).collect();
            running_mean(&side, window)
        });
        self.band = low
            .into_iter()
            .zip(high)
            .map(|(low, high)| [low, high])
            .collect();
        self
    }

    /// The same curve with the point at `index` marked.
    pub fn marked(mut self, index: usize, label: impl Into<String>) -> Self {
        self.mark = Some((index, label.into()));
        self
    }

    /// The same curve with another look.
    pub fn looking(mut self, look: CurveLook) -> Self {
        self.look = look;
        self
    }

    /// The same curve in the n-th colour.
    pub fn coloured(mut self, colour: usize) -> Self {
        self.colour = Some(colour);
        self
    }
}

#[derive(Debug, Clone, Default)]
pub struct Curves {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    /// Drawn in order, later ones on top.
    pub curves: Vec<Curve>,
}

impl Curves {
    pub fn draw(&self) -> Drawing {
        self.draw_with(&[])
    }

    /// Draws the figure with notes on what the caller had to leave out.
    pub(super) fn draw_with(&self, notes: &[String]) -> Drawing {
        let names = self.curves.iter().map(|curve| curve.name.as_str());
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        let description = format!(
            "Curves of {} against {}: {}.",
            self.y.label,
            self.x.label,
            names.join(", ")
        );
        let mut sheet = Sheet::new(&self.title, description);
        for note in notes {
            sheet.note(note);
        }
        let mut dropped = 0;
        let pieces: Vec<Vec<Vec<usize>>> = self
            .curves
            .iter()
            .map(|curve| self.pieces(curve, &mut dropped))
            .collect();
        sheet.dropped(dropped, self.x.kind.or(self.y.kind).refuses());
        let both = || self.curves.iter().zip(&pieces);
        let all = both().flat_map(|(curve, pieces)| {
            let indices = pieces.iter().flatten();
            indices.map(move |&index| (curve, index))
        });
        let shown: Vec<(&Curve, usize)> = all.collect();
        let positions = shown.iter().map(|&(curve, index)| curve.x[index]);
        let heights = shown.iter().flat_map(|&(curve, index)| {
            let y = curve.y[index];
            let [low, high] = curve.band.get(index).copied().unwrap_or([y; 2]);
            [y, low, high]
        });
        let x = self.x.scale(positions, 0.0, 6);
        let y = self.y.scale(heights, 0.05, 5);
        let (Some(x), Some(y)) = (x, y) else {
            return sheet.no_data();
        };
        let looks: Vec<Stroke> = (0..self.curves.len()).map(|i| self.look(i)).collect();
        let named = self.curves.iter().zip(&looks);
        let named = named.filter(|(curve, _)| !curve.name.is_empty());
        let entries = named.map(|(curve, look)| (curve.name.clone(), key(curve, *look)));
        sheet.legend(&entries.collect::<Vec<_>>());
        let place = Sheet::whole(210.0, &self.x.label, &self.y.label);
        let panel = sheet.panel(place, x, y);
        for ((curve, pieces), look) in both().zip(&looks) {
            band(&mut sheet, &panel, curve, pieces, look.ink);
        }
        let mut drawn = Vec::new();
        for ((curve, pieces), look) in both().zip(&looks) {
            if curve.look == CurveLook::Band {
                continue;
            }
            let point = |&index: &usize| panel.at(curve.x[index], curve.y[index]);
            let lines: Vec<Vec<Point>> = pieces
                .iter()
                .map(|piece| thinned(piece.iter().map(point).collect()))
                .collect();
            strokes(&mut sheet, &panel, &lines, *look);
            drawn.extend(lines);
        }
        let mut marks = Marks::among(&drawn);
        for ((curve, pieces), look) in both().zip(&looks) {
            if let Some((index, label)) = &curve.mark
                && pieces.iter().flatten().any(|shown| shown == index)
            {
                let at = panel.at(curve.x[*index], curve.y[*index]);
                marks.label(&mut sheet, &panel, at, label);
                sheet.canvas.dot(at, 4.5, look.ink);
            }
        }
        sheet.below(&panel);
        sheet.finish()
    }

    fn look(&self, index: usize) -> Stroke {
        let curve = &self.curves[index];
        let stroke = Stroke::data(Ink::Series(curve.colour.unwrap_or(index)));
        // Many points make a thicket, which thinner lines keep open.
        let stroke = if curve.y.len() > 250 {
            stroke.width(1.3)
        } else {
            stroke
        };
        match curve.look {
            CurveLook::Line | CurveLook::Band => stroke,
            CurveLook::Dashed => stroke.dashed(),
            CurveLook::Faint => stroke.width(1.0).alpha(0.45),
        }
    }

    /// Runs of indices that both axes can show, inside the x axis's fixed range.
    fn pieces(&self, curve: &Curve, dropped: &mut usize) -> Vec<Vec<usize>> {
        let length = curve.x.len().min(curve.y.len());
        *dropped += curve.x.len().max(curve.y.len()) - length;
        let mut pieces = vec![Vec::new()];
        for index in 0..length {
            let (x, y) = (curve.x[index], curve.y[index]);
            if self.x.range.is_some_and(|[low, high]| x < low || x > high) {
                continue;
            }
            if self.x.kind.shows(x) && self.y.kind.shows(y) {
                if let Some(last) = pieces.last_mut() {
                    last.push(index);
                }
            } else {
                *dropped += 1;
                pieces.push(Vec::new());
            }
        }
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }
}

fn key(curve: &Curve, look: Stroke) -> Key {
    match curve.look {
        CurveLook::Band => Key::Area(look.ink, 2.0 * BAND),
        _ => Key::Line(look),
    }
}

fn band(sheet: &mut Sheet, panel: &Panel, curve: &Curve, pieces: &[Vec<usize>], ink: Ink) {
    for piece in pieces {
        let side = |end: usize| -> Vec<Point> {
            let points = piece.iter().filter_map(|&index| {
                let value = curve.band.get(index)?[end];
                // A lower end that a log axis cannot show reaches down to the axis.
                let shown = panel.y.kind.shows(value);
                let (x, y) = panel.at(curve.x[index], if shown { value } else { panel.y.low });
                Some((x, y.clamp(panel.top, panel.bottom)))
            });
            thinned(points.collect())
        };
        let mut outline = side(0);
        outline.extend(side(1).into_iter().rev());
        sheet.canvas.polygon(&outline, ink, BAND);
    }
}

fn running_mean(values: &[f64], window: usize) -> Vec<f64> {
    let mean = |index: usize| {
        let from = index.saturating_sub(window / 2);
        let to = (from + window.max(1)).min(values.len()).max(index + 1);
        let near = values[from..to].iter().filter(|value| value.is_finite());
        let (sum, count) = near.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
        sum / f64::from(count)
    };
    (0..values.len()).map(mean).collect()
}
