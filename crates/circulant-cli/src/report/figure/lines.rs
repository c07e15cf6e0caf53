//! Lines in pixels: broken where they leave the panel, thinned where they are denser than the page, and points
//! on them marked with labels that keep off the lines.

use super::canvas::{HPos, Lettering, Point, Stroke, VPos};
use super::ink::Ink;
use super::sheet::{Panel, SMALL, Sheet};
use super::text::text_width;

/// Lines, and dots for points that stand alone, cut at the panel's upper and lower edges.
pub(super) fn strokes(sheet: &mut Sheet, panel: &Panel, lines: &[Vec<Point>], look: Stroke) {
    for line in lines {
        if let [point] = line.as_slice() {
            if (panel.top..=panel.bottom).contains(&point.1) {
                sheet.canvas.dot(*point, 3.5, look.ink);
            }
            continue;
        }
        for part in cut(line, panel.top, panel.bottom) {
            sheet.canvas.line(&part, look);
        }
    }
}

/// The parts of a line between two heights.
fn cut(line: &[Point], top: f64, bottom: f64) -> Vec<Vec<Point>> {
    let inside = |point: &Point| (top..=bottom).contains(&point.1);
    let mut parts: Vec<Vec<Point>> = vec![Vec::new()];
    for pair in line.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let crossing = |edge: f64| {
            let share = (edge - from.1) / (to.1 - from.1);
            let point = (from.0 + share * (to.0 - from.0), edge);
            (share > 0.0 && share < 1.0).then_some((share, point))
        };
        let mut stops = vec![(0.0, from), (1.0, to)];
        stops.extend(crossing(top));
        stops.extend(crossing(bottom));
        stops.sort_by(|one, other| one.0.total_cmp(&other.0));
        for stop in stops.windows(2) {
            let (start, end) = (stop[0].1, stop[1].1);
            if inside(&start) && inside(&end) {
                if let Some(part) = parts.last_mut() {
                    if part.last() != Some(&start) {
                        part.push(start);
                    }
                    part.push(end);
                }
            } else if parts.last().is_some_and(|part| !part.is_empty()) {
                parts.push(Vec::new());
            }
        }
    }
    parts.retain(|part| part.len() > 1);
    parts
}

/// At most four points per pixel column: the first, the lowest, the highest and the last. The figure is the
/// same, and a million steps do not become megabytes.
pub(super) fn thinned(points: Vec<Point>) -> Vec<Point> {
    const FEW: usize = 1200;
    if points.len() <= FEW {
        return points;
    }
    let mut kept = Vec::new();
    for column in points.chunk_by(|one, other| one.0.floor() == other.0.floor()) {
        let order = |one: &&Point, other: &&Point| one.1.total_cmp(&other.1);
        let mut few: Vec<Point> = [
            column.first(),
            column.iter().min_by(order),
            column.iter().max_by(order),
            column.last(),
        ]
        .into_iter()
        .flatten()
        .copied()
        .collect();
        few.sort_by(|one, other| one.0.total_cmp(&other.0));
        few.dedup();
        kept.extend(few);
    }
    kept
}

/// Puts labels beside marked points, away from the lines and from each other.
pub(super) struct Marks {
    obstacles: Vec<Point>,
}

impl Marks {
    /// The points of all lines are in the way.
    pub(super) fn among(lines: &[Vec<Point>]) -> Self {
        Self {
            obstacles: lines.iter().flatten().copied().collect(),
        }
    }

    /// Dots are in the way.
    pub(super) fn around(dots: &[Point]) -> Self {
        let ends = |&(x, y): &Point| {
            [
                (x, y),
                (x - 4.0, y),
                (x + 4.0, y),
                (x, y - 4.0),
                (x, y + 4.0),
            ]
        };
        Self {
            obstacles: dots.iter().flat_map(ends).collect(),
        }
    }

    /// A label above or below a point, where it covers least; one that has to go far gets a thin line.
    pub(super) fn label(&mut self, sheet: &mut Sheet, panel: &Panel, at: Point, label: &str) {
        if label.is_empty() {
            return;
        }
        const SHIFTS: [f64; 6] = [-14.0, 15.0, -30.0, 31.0, -46.0, 47.0];
        let half = text_width(label, SMALL) / 2.0;
        let low = panel.left + half;
        let inside = |x: f64| x.clamp(low, (panel.right - half).max(low));
        let places = SHIFTS.into_iter().flat_map(|shift| {
            [0.0, 0.8, -0.8].map(|side| (inside(at.0 + side * half), at.1 + shift))
        });
        let covered = |&(middle, y): &Point| {
            let outside = y - SMALL / 2.0 < panel.top - 4.0 || y + SMALL / 2.0 > panel.bottom;
            let under = |point: &&Point| {
                (point.0 - middle).abs() < half + 2.0 && (point.1 - y).abs() < SMALL / 2.0 + 3.0
            };
            self.obstacles.iter().filter(under).count() + if outside { 10_000 } else { 0 }
        };
        let (middle, y) = places.min_by_key(covered).unwrap_or(at);
        if (y - at.1).abs() > 20.0 {
            let end = y + (SMALL / 2.0 + 1.0) * (at.1 - y).signum();
            let near = at.0.clamp(middle - half, middle + half);
            let line = [at, (near, end)];
            sheet.canvas.line(&line, Stroke::thin(Ink::Axis));
        }
        // The label is in the way of the next one, more than any line.
        let steps = (half / 2.0) as i32;
        for step in -steps..=steps {
            let x = middle + 2.0 * f64::from(step);
            self.obstacles.extend([(x, y); 8]);
        }
        let lettering = Lettering::new(SMALL, Ink::Text).at(HPos::Center, VPos::Center);
        sheet.canvas.text((middle, y), label, lettering.outlined());
    }
}
