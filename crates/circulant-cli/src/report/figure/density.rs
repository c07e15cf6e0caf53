//! Densities of the predictive entropy, in-distribution against out-of-distribution, with a second panel
//! that shows a window near zero: confident predictions, where the two are hardest to tell apart.

use super::canvas::{Point, Stroke};
use super::curves::Curve;
use super::ink::Ink;
use super::lines::{strokes, thinned};
use super::scale::{Axis, AxisKind};
use super::sheet::{Drawing, Key, Panel, Place, Sheet, WIDTH};

/// Draws the figure. `zoom` is the window of the second panel.
pub fn densities(title: &str, label: &str, densities: &[Curve], zoom: [f64; 2]) -> Drawing {
    let names: Vec<&str> = densities.iter().map(|curve| curve.name.as_str()).collect();
    let description = format!("Densities of {label}: {}.", names.join(", "));
    let mut sheet = Sheet::new(title, description);
    let mut dropped = 0;
    let points: Vec<Vec<Point>> = densities
        .iter()
        .map(|curve| finite_points(&curve.x, &curve.y, &mut dropped))
        .collect();
    sheet.dropped(dropped, "not finite");
    let x = Axis::default().scale(points.iter().flatten().map(|point| point.0), 0.0, 5);
    let Some((x, y)) = x.zip(height(&points)) else {
        return sheet.no_data();
    };
    let key = |index| Key::Line(Stroke::data(Ink::Series(index)));
    let entries = names.iter().enumerate();
    let entries = entries.map(|(index, name)| ((*name).to_owned(), key(index)));
    sheet.legend(&entries.collect::<Vec<_>>());
    let split = 0.6 * WIDTH;
    let place = |left: f64, right: f64, x_label: &str, y_label: &str| Place {
        left,
        right,
        ..Sheet::whole(170.0, x_label, y_label)
    };
    let panel = sheet.panel(place(0.0, split, label, "density"), x, y);
    let [low, high] = zoom;
    let (from, to) = (panel.at(low, 0.0).0, panel.at(high, 0.0).0);
    let (from, to) = (from.max(panel.left), to.min(panel.right));
    let window = [(from, panel.top), (to.max(from), panel.bottom)];
    sheet
        .canvas
        .rectangle(window[0], window[1], Ink::Axis, 0.25);
    areas(&mut sheet, &panel, &points);
    let near = points.iter().map(|line| inside(line, low, high));
    let near: Vec<Vec<Point>> = near.collect();
    let x = Axis::default().within(low, high).scale([], 0.0, 3);
    let y = height(&near).or_else(|| Axis::default().within(0.0, 1.0).scale([], 0.0, 2));
    if let Some((x, y)) = x.zip(y) {
        let title = format!("zoom on {low} to {high}");
        let panel = sheet.panel(place(split, WIDTH, "entropy", &title), x, y);
        areas(&mut sheet, &panel, &near);
    }
    sheet.below(&panel);
    sheet.finish()
}

fn finite_points(x: &[f64], y: &[f64], dropped: &mut usize) -> Vec<Point> {
    let shown = |point: &Point| AxisKind::Linear.shows(point.0) && AxisKind::Linear.shows(point.1);
    let points: Vec<Point> = x
        .iter()
        .copied()
        .zip(y.iter().copied())
        .filter(shown)
        .collect();
    *dropped += x.len().max(y.len()) - points.len();
    points
}

/// From zero, because the area counts.
fn height(points: &[Vec<Point>]) -> Option<super::scale::Scale> {
    points.iter().flatten().next()?;
    let heights = points.iter().flatten().map(|point| point.1.max(0.0));
    Axis::default().scale(heights.chain([0.0]), 0.05, 4)
}

/// The part of a line inside the window, with interpolated ends.
fn inside(line: &[Point], low: f64, high: f64) -> Vec<Point> {
    let mut inside: Vec<Point> = Vec::new();
    for pair in line.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let between = |x: f64| {
            let share = (x - from.0) / (to.0 - from.0);
            (x, from.1 + share * (to.1 - from.1))
        };
        if from.0 < low && to.0 > low {
            inside.push(between(low));
        }
        if (low..=high).contains(&from.0) {
            inside.push(from);
        }
        if from.0 < high && to.0 > high {
            inside.push(between(high));
        }
    }
    inside.extend(line.last().filter(|last| (low..=high).contains(&last.0)));
    inside
}

fn areas(sheet: &mut Sheet, panel: &Panel, points: &[Vec<Point>]) {
    let lines: Vec<Vec<Point>> = points
        .iter()
        .map(|line| thinned(line.iter().map(|&(x, y)| panel.at(x, y)).collect()))
        .collect();
    for (index, line) in lines.iter().enumerate() {
        if let (Some(first), Some(last)) = (line.first(), line.last()) {
            let mut area = line.clone();
            area.push((last.0, panel.bottom));
            area.push((first.0, panel.bottom));
            sheet.canvas.polygon(&area, Ink::Series(index), 0.15);
        }
    }
    for (index, line) in lines.into_iter().enumerate() {
        strokes(sheet, panel, &[line], Stroke::data(Ink::Series(index)));
    }
}
