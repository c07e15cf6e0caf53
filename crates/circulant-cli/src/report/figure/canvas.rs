//! Shapes in pixels with a role, as SVG with classes instead of colours. Coordinates have tenths of a pixel: curves on whole
//! pixels wobble, and more digits only make files larger.

use std::fmt::Write;

use super::ink::Ink;
use crate::report::escape::escape;

/// Which point of a text is at its position, from left to right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HPos {
    Left,
    Center,
    Right,
}

/// The same from top to bottom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VPos {
    Top,
    Center,
}

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

/// What was drawn so far. Filled rectangles of one style that follow each other become one path, which
/// makes a heat map some ten times smaller.
#[derive(Default)]
pub(super) struct Canvas {
    text: String,
    rectangles: String,
    style: String,
}

/// Rounded to tenths of a pixel.
pub(super) fn tenths(pixels: f64) -> f64 {
    (10.0 * pixels).round() / 10.0
}

/// The same as text. An integer between, so that there is no `-0`.
fn pixels(pixels: f64) -> String {
    let tenths = (10.0 * pixels).round() as i64;
    (tenths as f64 / 10.0).to_string()
}

fn opacity(alpha: f64) -> String {
    if alpha < 1.0 {
        format!(" opacity=\"{alpha:.2}\"")
    } else {
        String::new()
    }
}

fn path(points: &[Point]) -> String {
    let mut data = String::new();
    let mut points: Vec<String> = points
        .iter()
        .map(|point| format!("{} {}", pixels(point.0), pixels(point.1)))
        .collect();
    points.dedup();
    for (index, point) in points.iter().enumerate() {
        data.push(if index == 0 { 'M' } else { 'L' });
        data.push_str(point);
    }
    data
}

impl Canvas {
    fn flush(&mut self) {
        if !self.rectangles.is_empty() {
            let (style, shapes) = (&self.style, &self.rectangles);
            // Writing to a string cannot fail.
            let _ = writeln!(self.text, "<path {style} d=\"{shapes}\"/>");
            self.rectangles.clear();
        }
    }

    fn element(&mut self, element: &str) {
        self.flush();
        self.text.push_str(element);
        self.text.push('\n');
    }

    /// The elements, in the order of drawing.
    pub(super) fn take(&mut self) -> String {
        self.flush();
        std::mem::take(&mut self.text)
    }

    pub(super) fn line(&mut self, points: &[Point], stroke: Stroke) {
        if points.len() < 2 {
            return;
        }
        let dash = match stroke.dash {
            0 => String::new(),
            dash => format!(" d{dash}"),
        };
        self.element(&format!(
            "<path class=\"k{}{dash}\" fill=\"none\" stroke-width=\"{}\"{} d=\"{}\"/>",
            stroke.ink.code(),
            pixels(stroke.width),
            opacity(stroke.alpha),
            path(points)
        ));
    }

    pub(super) fn polygon(&mut self, points: &[Point], ink: Ink, alpha: f64) {
        if points.len() < 3 {
            return;
        }
        let (ink, alpha) = (ink.code(), opacity(alpha));
        self.element(&format!(
            "<path class=\"f{ink}\"{alpha} d=\"{}z\"/>",
            path(points)
        ));
    }

    /// A filled rectangle between two corners.
    pub(super) fn rectangle(&mut self, from: Point, to: Point, ink: Ink, alpha: f64) {
        let [left, right] = [from.0.min(to.0), from.0.max(to.0)].map(pixels);
        let [top, bottom] = [from.1.min(to.1), from.1.max(to.1)].map(pixels);
        if left == right || top == bottom {
            return;
        }
        let style = format!("class=\"f{} e\"{}", ink.code(), opacity(alpha));
        if style != self.style {
            self.flush();
            self.style = style;
        }
        self.rectangles
            .push_str(&format!("M{left} {top}H{right}V{bottom}H{left}z"));
    }

    /// A dot, with a rim in the ground's colour so that dots on lines and dots stay apart.
    pub(super) fn dot(&mut self, at: Point, radius: f64, ink: Ink) {
        let (x, y) = (pixels(at.0), pixels(at.1));
        for (radius, ink) in [(radius + 1.2, Ink::Ground), (radius, ink)] {
            let (ink, radius) = (ink.code(), pixels(radius));
            self.element(&format!(
                "<circle class=\"f{ink}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>"
            ));
        }
    }

    /// A picture by its address, as large as fits into `[width, height]` at the upper left corner.
    pub(super) fn image(&mut self, at: Point, [width, height]: [f64; 2], address: &str) {
        self.element(&format!(
            "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"xMinYMin\" style=\"image-rendering:pixelated\" \
             href=\"{}\"/>",
            pixels(at.0),
            pixels(at.1),
            pixels(width),
            pixels(height),
            escape(address)
        ));
    }

    /// One line of text.
    pub(super) fn text(&mut self, at: Point, text: &str, lettering: Lettering) {
        // From the middle or the upper edge of a line to its baseline, for the usual sans-serif fonts.
        let baseline = match lettering.vertical {
            VPos::Top => 0.80,
            VPos::Center => 0.35,
        };
        let anchor = match lettering.horizontal {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        let bold = if lettering.bold { " b" } else { "" };
        let outline = if lettering.outline { " o" } else { "" };
        self.element(&format!(
            "<text x=\"{}\" y=\"{}\" class=\"f{}{bold}{outline}\" font-size=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            pixels(at.0),
            pixels(tenths(at.1) + (10.0 * baseline * lettering.size).trunc() / 10.0),
            lettering.ink.code(),
            pixels(lettering.size),
            escape(text)
        ));
    }
}
