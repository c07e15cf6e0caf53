//! Labelled points, such as parameters against accuracy.

use super::canvas::{Point, Stroke};
use super::ink::Ink;
use super::lines::Marks;
use super::scale::Axis;
use super::sheet::{Drawing, Key, Panel, SMALL, Sheet};
use super::text::fit;

#[derive(Debug, Clone)]
pub struct LabelledPoint {
    /// Written beside it; may be empty.
    pub label: String,
    pub x: f64,
    pub y: f64,
    /// An interval around `y`.
    pub error: Option<[f64; 2]>,
}

/// Points of one colour.
#[derive(Debug, Clone)]
pub struct PointGroup {
    pub name: String,
    pub points: Vec<LabelledPoint>,
}

pub fn scatter(title: &str, x: &Axis, y: &Axis, groups: &[PointGroup]) -> Drawing {
    let all = groups.iter().enumerate();
    let all = all.flat_map(|(index, group)| group.points.iter().map(move |point| (index, point)));
    let all: Vec<(usize, &LabelledPoint)> = all.collect();
    let names: Vec<&str> = all.iter().map(|(_, point)| point.label.as_str()).collect();
    let description = format!("{} against {}: {}.", y.label, x.label, names.join(", "));
    let mut sheet = Sheet::new(title, description);
    let mut shown = all;
    shown.retain(|(_, point)| x.kind.shows(point.x) && y.kind.shows(point.y));
    sheet.dropped(names.len() - shown.len(), x.kind.or(y.kind).refuses());
    let positions = shown.iter().map(|(_, point)| point.x);
    let heights = shown.iter().flat_map(|(_, point)| {
        let error = point.error.unwrap_or([point.y; 2]);
        [point.y, error[0], error[1]]
    });
    let scales = x.scale(positions, 0.12, 5).zip(y.scale(heights, 0.1, 5));
    let Some((x_scale, y_scale)) = scales else {
        return sheet.no_data();
    };
    if groups.len() > 1 {
        let entries = groups.iter().enumerate();
        let entries = entries.map(|(i, group)| (group.name.clone(), Key::Dot(Ink::Series(i))));
        sheet.legend(&entries.collect::<Vec<_>>());
    }
    let panel = sheet.panel(Sheet::whole(230.0, &x.label, &y.label), x_scale, y_scale);
    let places = shown.iter().map(|(_, point)| panel.at(point.x, point.y));
    let places: Vec<Point> = places.collect();
    for ((group, point), at) in shown.iter().zip(&places) {
        if let Some(error) = point.error {
            whisker(&mut sheet, &panel, at.0, error, Ink::Series(*group));
        }
    }
    for ((group, _), at) in shown.iter().zip(&places) {
        sheet.canvas.dot(*at, 5.0, Ink::Series(*group));
    }
    let mut marks = Marks::around(&places);
    for ((_, point), at) in shown.iter().zip(&places) {
        let label = fit(&point.label, SMALL, 0.6 * (panel.right - panel.left));
        marks.label(&mut sheet, &panel, *at, &label);
    }
    sheet.below(&panel);
    sheet.finish()
}

fn whisker(sheet: &mut Sheet, panel: &Panel, x: f64, error: [f64; 2], ink: Ink) {
    if error.iter().any(|&end| !panel.y.kind.shows(end)) {
        return;
    }
    let [low, high] = error.map(|end| panel.at(panel.x.low, end).1.clamp(panel.top, panel.bottom));
    let stroke = Stroke::thin(ink).width(1.5);
    sheet.canvas.line(&[(x, low), (x, high)], stroke);
    for y in [low, high] {
        sheet.canvas.line(&[(x - 4.0, y), (x + 4.0, y)], stroke);
    }
}
