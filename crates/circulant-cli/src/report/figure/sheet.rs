//! The page of one figure: a title, a legend, panels with axes, and notes on what could not be drawn.
//!
//! Every figure is 440 pixels wide with letters of 12 to 14 pixels. Two stand side by side on a desktop,
//! and on a phone one still has letters that can be read.

use super::canvas::{Canvas, HPos, Lettering, Point, Stroke, VPos, tenths};
use super::ink::{Ink, figure_css};
use super::scale::Scale;
use super::text::{fit, text_width, wrap};
use crate::report::escape::escape;

/// The width of every figure, in pixels.
pub(super) const WIDTH: f64 = 440.0;
/// Tick labels, legends, axis names.
pub(super) const SMALL: f64 = 12.5;
const TITLE: f64 = 14.5;
const MARGIN: f64 = 1.5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawing {
    svg: String,
    notes: Vec<String>,
}

impl Drawing {
    /// The `svg` element for a page that has the style sheet of `figure_css`.
    pub fn svg(&self) -> &str {
        &self.svg
    }

    /// What could not be drawn. The figure says the same below its axes.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The same as a file of its own, with its style sheet inside: for a README.
    pub fn standalone(&self) -> String {
        let style = format!("<style>\n{}</style>\n", figure_css());
        match self.svg.split_once('\n') {
            Some((opening, rest)) => format!("{opening}\n{style}{rest}"),
            None => self.svg.clone(),
        }
    }
}

/// The mark beside a name in the legend.
#[derive(Debug, Clone, Copy)]
pub(super) enum Key {
    Line(Stroke),
    Area(Ink, f64),
    Dot(Ink),
}

/// A figure in the making. `top` is where the next thing goes.
pub(super) struct Sheet {
    pub(super) canvas: Canvas,
    pub(super) top: f64,
    title: String,
    description: String,
    notes: Vec<String>,
}

impl Sheet {
    /// A sheet with a title. The description says in words what the figure shows.
    pub(super) fn new(title: &str, description: String) -> Self {
        let mut sheet = Self {
            canvas: Canvas::default(),
            top: MARGIN,
            title: title.to_owned(),
            description,
            notes: Vec::new(),
        };
        if !title.is_empty() {
            for line in wrap(title, TITLE, WIDTH - 2.0 * MARGIN) {
                let lettering = Lettering::new(TITLE, Ink::Text)
                    .bold()
                    .at(HPos::Left, VPos::Top);
                sheet.canvas.text((MARGIN, sheet.top), &line, lettering);
                sheet.top += TITLE + 5.0;
            }
            sheet.top += 4.0;
        }
        sheet
    }

    /// Names beside their marks, in as many rows as it takes.
    pub(super) fn legend(&mut self, entries: &[(String, Key)]) {
        const MARK: f64 = 20.0;
        const GAP: f64 = 16.0;
        let mut left = MARGIN;
        let row = SMALL + 6.0;
        for (name, key) in entries {
            let name = fit(name, SMALL, WIDTH - 2.0 * MARGIN - MARK - 6.0);
            let width = MARK + 6.0 + text_width(&name, SMALL);
            if left > MARGIN && left + width > WIDTH - MARGIN {
                left = MARGIN;
                self.top += row;
            }
            let middle = self.top + SMALL / 2.0;
            match *key {
                Key::Line(stroke) => {
                    let ends = [(left, middle), (left + MARK, middle)];
                    self.canvas.line(&ends, stroke.width(stroke.width.max(1.5)));
                }
                Key::Area(ink, alpha) => {
                    let from = (left + 3.0, middle - 6.0);
                    let to = (left + MARK - 2.0, middle + 6.0);
                    self.canvas.rectangle(from, to, ink, alpha);
                }
                Key::Dot(ink) => self.canvas.dot((left + MARK / 2.0, middle), 4.5, ink),
            }
            let at = (left + MARK + 6.0, middle);
            self.canvas
                .text(at, &name, Lettering::new(SMALL, Ink::Text));
            left += width + GAP;
        }
        if !entries.is_empty() {
            self.top += row + 4.0;
        }
    }

    /// Says what is missing, below the axes.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Says how many values could not be drawn, if any.
    pub(super) fn dropped(&mut self, count: usize, why: &str) {
        if count > 0 {
            let values = if count == 1 { "value" } else { "values" };
            self.note(format!("{count} {values} left out: {why}."));
        }
    }

    /// A panel with its axes, between `left` and `right`, `height` pixels of data. The sheet's top stays,
    /// so that another one can stand beside it.
    pub(super) fn panel(&mut self, place: Place, x: Scale, y: Scale) -> Panel {
        let widths = y.ticks.iter().map(|(_, label)| text_width(label, SMALL));
        let widest = widths.fold(0.0, f64::max);
        let (no_x, no_y) = (place.x_label.is_empty(), place.y_label.is_empty());
        let head = if no_y { 8.0 } else { SMALL + 12.0 };
        let left = place.left + MARGIN + widest + 7.0;
        let right = place.right - 12.0;
        let top = self.top + head;
        let bottom = top + place.height;
        let right = right.max(left + 10.0);
        let panel = Panel {
            left,
            right,
            top,
            bottom,
            x,
            y,
            foot: bottom + if no_x { 30.0 } else { 42.0 },
        };
        if !no_y {
            let lettering = Lettering::new(SMALL, Ink::Muted).at(HPos::Left, VPos::Top);
            let room = place.right - place.left - 2.0 * MARGIN;
            let at = (place.left + MARGIN, self.top);
            self.canvas
                .text(at, &fit(&place.y_label, SMALL, room), lettering);
        }
        panel.axes(&mut self.canvas, &place);
        panel
    }

    /// The place of a panel over the whole width.
    pub(super) fn whole(height: f64, x_label: &str, y_label: &str) -> Place {
        Place {
            left: 0.0,
            right: WIDTH,
            height,
            x_label: x_label.to_owned(),
            y_label: y_label.to_owned(),
        }
    }

    /// The next thing goes below the panel.
    pub(super) fn below(&mut self, panel: &Panel) {
        self.top = self.top.max(panel.foot);
    }

    /// A figure that says that there is nothing to show.
    pub(super) fn no_data(mut self) -> Drawing {
        let (top, bottom) = (self.top, self.top + 120.0);
        let (left, right) = (MARGIN, WIDTH - MARGIN);
        let frame = [
            (left, top),
            (right, top),
            (right, bottom),
            (left, bottom),
            (left, top),
        ];
        self.canvas.line(&frame, Stroke::thin(Ink::Axis).dashed());
        let lettering = Lettering::new(TITLE, Ink::Muted).at(HPos::Center, VPos::Center);
        self.canvas
            .text((WIDTH / 2.0, top + 60.0), "no data", lettering);
        self.top += 128.0;
        self.finish()
    }

    /// The figure as it is.
    pub(super) fn finish(mut self) -> Drawing {
        for note in self.notes.clone() {
            for line in wrap(&note, SMALL, WIDTH - 2.0 * MARGIN) {
                let lettering = Lettering::new(SMALL, Ink::Muted).at(HPos::Left, VPos::Top);
                self.canvas.text((MARGIN, self.top), &line, lettering);
                self.top += SMALL + 4.0;
            }
        }
        let height = (self.top + 4.0).ceil();
        let description = [&[self.description][..], &self.notes].concat().join(" ");
        let title = match self.title.as_str() {
            "" => "Figure",
            title => title,
        };
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" role=\"img\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{WIDTH}\" height=\"{height}\">\n<title>{}</title>\n<desc>{}</desc>\n{}</svg>\n",
            escape(title),
            escape(&description),
            self.canvas.take()
        );
        Drawing {
            svg,
            notes: self.notes,
        }
    }
}

/// Where a panel goes and what its axes are called.
pub(super) struct Place {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) height: f64,
    pub(super) x_label: String,
    pub(super) y_label: String,
}

pub(super) struct Panel {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) x: Scale,
    pub(super) y: Scale,
    foot: f64,
}

impl Panel {
    /// Where the values are, in pixels.
    pub(super) fn at(&self, x: f64, y: f64) -> Point {
        let between = |fraction: f64, from: f64, to: f64| {
            let (from, to) = (tenths(from), tenths(to));
            tenths(from + fraction * (to - from))
        };
        (
            between(self.x.fraction(x), self.left, self.right),
            between(self.y.fraction(y), self.bottom, self.top),
        )
    }

    fn axes(&self, canvas: &mut Canvas, place: &Place) {
        for (value, label) in &self.y.ticks {
            let (_, y) = self.at(self.x.low, *value);
            canvas.line(&[(self.left, y), (self.right, y)], Stroke::thin(Ink::Grid));
            let lettering = Lettering::new(SMALL, Ink::Muted).at(HPos::Right, VPos::Center);
            canvas.text((self.left - 6.0, y), label, lettering);
        }
        let thin = Stroke::thin(Ink::Axis);
        canvas.line(&[(self.left, self.bottom), (self.right, self.bottom)], thin);
        let mut free = f64::MIN;
        for (value, label) in &self.x.ticks {
            let (x, _) = self.at(*value, self.y.low);
            canvas.line(&[(x, self.bottom), (x, self.bottom + 4.0)], thin);
            let half = text_width(label, SMALL) / 2.0;
            let middle = x.min(self.right + 10.0 - half);
            if middle - half < free {
                continue;
            }
            free = middle + half + 6.0;
            let lettering = Lettering::new(SMALL, Ink::Muted).at(HPos::Center, VPos::Top);
            canvas.text((middle, self.bottom + 7.0), label, lettering);
        }
        if !place.x_label.is_empty() {
            let lettering = Lettering::new(SMALL, Ink::Muted).at(HPos::Center, VPos::Top);
            let middle = f64::midpoint(self.left, self.right);
            let text = fit(&place.x_label, SMALL, self.right - self.left + 40.0);
            canvas.text((middle, self.bottom + 24.0), &text, lettering);
        }
    }
}
