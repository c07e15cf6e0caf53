//! Shapes in pixels with a role, drawn through plotters' elements.

use std::cell::RefCell;
use std::rc::Rc;

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Polygon, Rectangle};
use plotters::style::text_anchor::Pos;
pub(super) use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, FontStyle, IntoFont, ShapeStyle, TextStyle};

use super::backend::{Body, SvgBackend, UNITS};
use super::ink::Ink;

/// A position in pixels from the top left.
pub(super) type Point = (f64, f64);

/// How a line looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stroke {
    pub(super) ink: Ink,
    pub(super) width: f64,
    pub(super) alpha: f64,
    pub(super) dash: u8,
}

impl Stroke {
    /// A line of the data.
    pub(super) fn data(ink: Ink) -> Self {
        Self {
            ink,
            width: 1.8,
            alpha: 1.0,
            dash: ink.dash(),
        }
    }

    /// A hairline.
    pub(super) fn thin(ink: Ink) -> Self {
        Self {
            width: 1.0,
            ..Self::data(ink)
        }
    }

    pub(super) fn dashed(self) -> Self {
        Self { dash: 1, ..self }
    }

    pub(super) fn alpha(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }

    pub(super) fn width(self, width: f64) -> Self {
        Self { width, ..self }
    }
}

/// How text looks and which of its points is at the position.
#[derive(Clone, Copy)]
pub(super) struct Lettering {
    pub(super) size: f64,
    pub(super) ink: Ink,
    pub(super) bold: bool,
    pub(super) horizontal: HPos,
    pub(super) vertical: VPos,
    /// An edge in the colour of the ground, for text on top of lines.
    pub(super) outline: bool,
}

impl Lettering {
    pub(super) fn new(size: f64, ink: Ink) -> Self {
        Self {
            size,
            ink,
            bold: false,
            horizontal: HPos::Left,
            vertical: VPos::Center,
            outline: false,
        }
    }

    pub(super) fn at(self, horizontal: HPos, vertical: VPos) -> Self {
        Self {
            horizontal,
            vertical,
            ..self
        }
    }

    pub(super) fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub(super) fn outlined(self) -> Self {
        Self {
            outline: true,
            ..self
        }
    }
}

/// Something to draw on.
pub(super) struct Canvas {
    area: DrawingArea<SvgBackend, Shift>,
    body: Rc<RefCell<Body>>,
    /// Shapes that plotters refused. It never does on this backend; if it ever did, the figure says so.
    pub(super) lost: usize,
}

fn units((x, y): Point) -> (i32, i32) {
    ((x * UNITS).round() as i32, (y * UNITS).round() as i32)
}

fn length(pixels: f64) -> u32 {
    (pixels * UNITS).round() as u32
}

impl Canvas {
    pub(super) fn new() -> Self {
        let body = Rc::new(RefCell::new(Body::default()));
        let backend = SvgBackend { body: body.clone() };
        Self {
            area: backend.into_drawing_area(),
            body,
            lost: 0,
        }
    }

    /// The elements drawn so far.
    pub(super) fn take(&mut self) -> String {
        self.body.borrow_mut().take()
    }

    fn count<E: std::error::Error + Send + Sync>(
        &mut self,
        drawn: Result<(), DrawingAreaErrorKind<E>>,
    ) {
        self.lost += usize::from(drawn.is_err());
    }

    /// A line through the points.
    pub(super) fn line(&mut self, points: &[Point], stroke: Stroke) {
        if points.len() < 2 {
            return;
        }
        let points: Vec<_> = points.iter().map(|&point| units(point)).collect();
        let style = ShapeStyle {
            color: stroke.ink.encode(stroke.dash, false).mix(stroke.alpha),
            filled: false,
            stroke_width: length(stroke.width),
        };
        let drawn = self.area.draw(&PathElement::new(points, style));
        self.count(drawn);
    }

    /// A filled shape.
    pub(super) fn polygon(&mut self, points: &[Point], ink: Ink, alpha: f64) {
        if points.len() < 3 {
            return;
        }
        let points: Vec<_> = points.iter().map(|&point| units(point)).collect();
        let style = ink.encode(0, false).mix(alpha).filled();
        let drawn = self.area.draw(&Polygon::new(points, style));
        self.count(drawn);
    }

    /// A filled rectangle between two corners.
    pub(super) fn rectangle(&mut self, from: Point, to: Point, ink: Ink, alpha: f64) {
        let corners = [units(from), units(to)];
        if corners[0].0 == corners[1].0 || corners[0].1 == corners[1].1 {
            return;
        }
        let style = ink.encode(0, false).mix(alpha).filled();
        let drawn = self.area.draw(&Rectangle::new(corners, style));
        self.count(drawn);
    }

    /// A dot, with a rim in the ground's colour so that dots on lines and dots stay apart.
    pub(super) fn dot(&mut self, at: Point, radius: f64, ink: Ink) {
        for (radius, ink) in [(radius + 1.2, Ink::Ground), (radius, ink)] {
            let style = ink.encode(0, false).filled();
            let drawn = self
                .area
                .draw(&Circle::new(units(at), length(radius), style));
            self.count(drawn);
        }
    }

    /// One line of text.
    pub(super) fn text(&mut self, at: Point, text: &str, lettering: Lettering) {
        let style = if lettering.bold {
            FontStyle::Bold
        } else {
            FontStyle::Normal
        };
        let font = ("sans-serif", lettering.size * UNITS, style).into_font();
        let colour = lettering.ink.encode(0, lettering.outline);
        let style = TextStyle::from(font)
            .color(&colour)
            .pos(Pos::new(lettering.horizontal, lettering.vertical));
        let drawn = self.area.draw_text(text, &style, units(at));
        self.count(drawn);
    }
}
