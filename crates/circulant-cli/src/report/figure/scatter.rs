//! Labelled points, such as parameters against accuracy. Labels move around their points until none covers
//! another; one that had to go far gets a thin line to its point.

use super::canvas::{Lettering, Point, Stroke};
use super::ink::Ink;
use super::scale::{Axis, AxisKind};
use super::sheet::{Drawing, Key, Panel, SMALL, Sheet};
use super::text::{fit, text_width};

/// One labelled point.
#[derive(Debug, Clone, Default)]
pub struct LabelledPoint {
    /// Written beside it; may be empty.
    pub label: String,
    /// Along the x axis.
    pub x: f64,
    /// Along the y axis.
    pub y: f64,
    /// An interval around `y`.
    pub error: Option<[f64; 2]>,
}

/// Points of one colour.
#[derive(Debug, Clone, Default)]
pub struct PointGroup {
    /// What the legend calls it.
    pub name: String,
    /// In any order.
    pub points: Vec<LabelledPoint>,
}

/// A figure of points.
#[derive(Debug, Clone, Default)]
pub struct Scatter {
    /// Above the figure.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// In the order of their colours.
    pub groups: Vec<PointGroup>,
}

impl Scatter {
    /// Draws the figure.
    pub fn draw(&self) -> Drawing {
        let all = || self.groups.iter().flat_map(|group| &group.points);
        let names: Vec<&str> = all().map(|point| point.label.as_str()).collect();
        let description = format!(
            "{} against {}: {}.",
            self.y.label,
            self.x.label,
            names.join(", ")
        );
        let mut sheet = Sheet::new(&self.title, description);
        let shown: Vec<(usize, &LabelledPoint)> = self
            .groups
            .iter()
            .enumerate()
            .flat_map(|(index, group)| group.points.iter().map(move |point| (index, point)))
            .filter(|(_, point)| self.x.kind.shows(point.x) && self.y.kind.shows(point.y))
            .collect();
        let why = if self.x.kind == AxisKind::Log || self.y.kind == AxisKind::Log {
            "not finite, or not positive on a log axis"
        } else {
            "not finite"
        };
        sheet.dropped(names.len() - shown.len(), why);
        let x = self
            .x
            .scale(shown.iter().map(|(_, point)| point.x), 0.12, 5);
        let heights = shown.iter().flat_map(|(_, point)| {
            let error = point.error.unwrap_or([point.y; 2]);
            [point.y, error[0], error[1]]
        });
        let Some((x, y)) = x.zip(self.y.scale(heights, 0.1, 5)) else {
            return sheet.no_data();
        };
        if self.groups.len() > 1 {
            let entries: Vec<_> = self
                .groups
                .iter()
                .enumerate()
                .map(|(index, group)| (group.name.clone(), Key::Dot(Ink::Series(index))))
                .collect();
            sheet.legend(&entries);
        }
        let panel = sheet.panel(Sheet::whole(230.0, &self.x.label, &self.y.label), x, y);
        let places: Vec<Point> = shown
            .iter()
            .map(|(_, point)| panel.at(point.x, point.y))
            .collect();
        for ((group, point), at) in shown.iter().zip(&places) {
            if let Some(error) = point.error {
                whisker(&mut sheet, &panel, at.0, error, Ink::Series(*group));
            }
        }
        for ((group, _), at) in shown.iter().zip(&places) {
            sheet.canvas.dot(*at, 5.0, Ink::Series(*group));
        }
        let labels: Vec<String> = shown
            .iter()
            .map(|(_, point)| fit(&point.label, SMALL, 0.6 * (panel.right - panel.left)))
            .collect();
        for label in arranged(&panel, &labels, &places) {
            let frame = label.frame;
            // Beside its point a label explains itself.
            if label.far() {
                let stroke = Stroke::thin(Ink::Axis);
                sheet.canvas.line(&[label.at, label.edge()], stroke);
            }
            let lettering = Lettering::new(SMALL, Ink::Text).outlined();
            let left = frame.middle.0 - frame.half.0;
            sheet
                .canvas
                .text((left, frame.middle.1), label.text, lettering);
        }
        sheet.below(&panel);
        sheet.finish()
    }
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

/// Middle and half sizes.
#[derive(Clone, Copy)]
struct Frame {
    middle: Point,
    half: Point,
}

impl Frame {
    fn overlap(&self, other: &Self) -> f64 {
        let side = |one: f64, two: f64, halves: f64| (halves - (one - two).abs()).max(0.0);
        side(self.middle.0, other.middle.0, self.half.0 + other.half.0)
            * side(self.middle.1, other.middle.1, self.half.1 + other.half.1)
    }

    fn outside(&self, panel: &Panel) -> f64 {
        let over = |past: f64| past.max(0.0);
        over(panel.left - (self.middle.0 - self.half.0))
            + over(self.middle.0 + self.half.0 - panel.right - 8.0)
            + over(panel.top - 4.0 - (self.middle.1 - self.half.1))
            + over(self.middle.1 + self.half.1 - panel.bottom)
    }
}

/// A label in its place.
struct Label<'a> {
    text: &'a str,
    at: Point,
    frame: Frame,
}

impl Label<'_> {
    /// The point of the frame nearest to the dot, where a line from it ends.
    fn edge(&self) -> Point {
        let near = |at: f64, middle: f64, half: f64| at.clamp(middle - half, middle + half);
        let Frame { middle, half } = self.frame;
        (
            near(self.at.0, middle.0, half.0 + 2.0),
            near(self.at.1, middle.1, 0.0),
        )
    }

    fn far(&self) -> bool {
        let edge = self.edge();
        (edge.0 - self.at.0).hypot(edge.1 - self.at.1) > 17.0
    }

    /// Small frames along the line to the dot, which should not cross other labels.
    fn leader(&self) -> impl Iterator<Item = Frame> + use<> {
        let (at, edge, far) = (self.at, self.edge(), self.far());
        (4..10).filter(move |_| far).map(move |step| {
            let share = f64::from(step) / 10.0;
            Frame {
                middle: (
                    at.0 + share * (edge.0 - at.0),
                    at.1 + share * (edge.1 - at.1),
                ),
                half: (1.0, 1.0),
            }
        })
    }
}

/// The labels from the top down, each in the first place that covers nothing, of places ever further from
/// its point; else where it covers least.
fn arranged<'a>(panel: &Panel, labels: &'a [String], places: &[Point]) -> Vec<Label<'a>> {
    const SHIFTS: [f64; 11] = [
        0.0, -8.0, 8.0, -16.0, 16.0, -26.0, 26.0, -38.0, 38.0, -52.0, 52.0,
    ];
    let dots = places.iter().map(|&middle| Frame {
        middle,
        half: (6.0, 6.0),
    });
    let mut taken: Vec<Frame> = dots.collect();
    let mut order: Vec<(&'a String, Point)> = labels.iter().zip(places.iter().copied()).collect();
    order.retain(|(label, _)| !label.is_empty());
    order.sort_by(|one, other| one.1.1.total_cmp(&other.1.1));
    let mut arranged = Vec::new();
    for (text, at) in order {
        let half = (text_width(text, SMALL) / 2.0, SMALL / 2.0 + 1.0);
        let beside = SHIFTS.into_iter().flat_map(|shift| {
            let distance = if shift.abs() > 10.0 { 24.0 } else { 9.0 };
            [1.0, -1.0].map(|side| (at.0 + side * (half.0 + distance), at.1 + shift))
        });
        let centred = [-1.0, 1.0].map(|side| (at.0, at.1 + side * (half.1 + 8.0)));
        let mut best: Option<(f64, Label<'a>)> = None;
        for middle in beside.chain(centred) {
            let frame = Frame { middle, half };
            let label = Label { text, at, frame };
            let covered: f64 = taken.iter().map(|other| frame.overlap(other)).sum();
            let crossed: f64 = label
                .leader()
                .flat_map(|part| taken.iter().map(move |other| part.overlap(other)))
                .sum();
            let cost = covered + crossed + 100.0 * frame.outside(panel);
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, label));
            }
            if cost == 0.0 {
                break;
            }
        }
        if let Some((_, label)) = best {
            taken.push(label.frame);
            taken.extend(label.leader());
            arranged.push(label);
        }
    }
    arranged
}
