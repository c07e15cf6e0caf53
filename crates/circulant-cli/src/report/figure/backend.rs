//! The backend that plotters draws on: SVG with classes instead of colours, and a tenth of a pixel as
//! its unit. Plotters hands out whole numbers, and curves on whole pixels wobble.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt::Write;
use std::rc::Rc;

use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontStyle, FontTransform,
};

use super::text::text_width;
use crate::report::escape::escape;

/// Units of the backend per pixel of the drawing.
pub(super) const UNITS: f64 = 10.0;

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

/// What was drawn so far. Filled rectangles of one style that follow each other become one path, which
/// makes a heat map some ten times smaller.
#[derive(Default)]
pub(super) struct Body {
    text: String,
    rectangles: String,
    style: String,
}

impl Body {
    fn rectangle(&mut self, style: String, shape: &str) {
        if style != self.style {
            self.flush();
            self.style = style;
        }
        self.rectangles.push_str(shape);
    }

    fn flush(&mut self) {
        if !self.rectangles.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(
                self.text,
                "<path {} d=\"{}\"/>",
                self.style, self.rectangles
            );
            self.rectangles.clear();
        }
        self.style.clear();
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
}

/// Draws into a shared body, because plotters keeps the backend.
pub(super) struct SvgBackend {
    pub(super) body: Rc<RefCell<Body>>,
}

/// A length as pixels, without a needless `.0`.
fn pixels(units: i32) -> String {
    let (whole, tenth) = (units.abs() / 10, units.abs() % 10);
    let sign = if units < 0 { "-" } else { "" };
    if tenth == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{tenth}")
    }
}

fn opacity(colour: BackendColor) -> String {
    if colour.alpha >= 1.0 {
        String::new()
    } else {
        format!(" opacity=\"{:.2}\"", colour.alpha)
    }
}

fn fill(colour: BackendColor) -> String {
    format!("class=\"f{}\"{}", colour.rgb.0, opacity(colour))
}

fn stroke(style: &impl BackendStyle) -> String {
    let colour = style.color();
    let (ink, dash, _) = colour.rgb;
    let dash = match dash {
        0 => String::new(),
        dash => format!(" d{dash}"),
    };
    format!(
        "class=\"k{ink}{dash}\" fill=\"none\" stroke-width=\"{}\"{}",
        pixels(style.stroke_width() as i32),
        opacity(colour)
    )
}

fn path(points: impl IntoIterator<Item = BackendCoord>) -> String {
    let mut data = String::new();
    let mut last = None;
    for point in points {
        if last == Some(point) {
            continue;
        }
        data.push(if last.is_none() { 'M' } else { 'L' });
        data.push_str(&pixels(point.0));
        data.push(' ');
        data.push_str(&pixels(point.1));
        last = Some(point);
    }
    data
}

impl SvgBackend {
    fn element(&self, element: &str) -> Drawn {
        self.body.borrow_mut().element(element);
        Ok(())
    }
}

impl DrawingBackend for SvgBackend {
    type ErrorType = Infallible;

    /// Larger than any figure: the height is known only when all is drawn.
    fn get_size(&self) -> (u32, u32) {
        (100_000, 100_000)
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, point: BackendCoord, colour: BackendColor) -> Drawn {
        self.draw_rect(point, (point.0 + 1, point.1 + 1), &colour, true)
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
        filled: bool,
    ) -> Drawn {
        let shape = format!(
            "M{} {}H{}V{}H{}z",
            pixels(from.0),
            pixels(from.1),
            pixels(to.0),
            pixels(to.1),
            pixels(from.0)
        );
        if filled {
            let colour = style.color();
            let style = format!("class=\"f{} e\"{}", colour.rgb.0, opacity(colour));
            self.body.borrow_mut().rectangle(style, &shape);
            Ok(())
        } else {
            self.element(&format!("<path {} d=\"{shape}\"/>", stroke(style)))
        }
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        points: I,
        style: &S,
    ) -> Drawn {
        self.element(&format!("<path {} d=\"{}\"/>", stroke(style), path(points)))
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        centre: BackendCoord,
        radius: u32,
        style: &S,
        filled: bool,
    ) -> Drawn {
        let style = if filled {
            fill(style.color())
        } else {
            stroke(style)
        };
        self.element(&format!(
            "<circle {style} cx=\"{}\" cy=\"{}\" r=\"{}\"/>",
            pixels(centre.0),
            pixels(centre.1),
            pixels(radius as i32)
        ))
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        points: I,
        style: &S,
    ) -> Drawn {
        self.element(&format!(
            "<path {} d=\"{}z\"/>",
            fill(style.color()),
            path(points)
        ))
    }

    fn draw_text<T: BackendTextStyle>(&mut self, text: &str, style: &T, at: BackendCoord) -> Drawn {
        let colour = style.color();
        let (ink, _, outline) = colour.rgb;
        let size = style.size();
        // From the middle or the edge of a line to its baseline, for the usual sans-serif fonts.
        let baseline = match style.anchor().v_pos {
            VPos::Top => 0.80,
            VPos::Center => 0.35,
            VPos::Bottom => -0.22,
        };
        let anchor = match style.anchor().h_pos {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        let turn = match style.transform() {
            FontTransform::None => "",
            FontTransform::Rotate90 => "rotate(90)",
            FontTransform::Rotate180 => "rotate(180)",
            FontTransform::Rotate270 => "rotate(-90)",
        };
        let shift = (baseline * size) as i32;
        let position = if turn.is_empty() {
            format!("x=\"{}\" y=\"{}\"", pixels(at.0), pixels(at.1 + shift))
        } else {
            format!(
                "transform=\"translate({} {}) {turn}\" y=\"{}\"",
                pixels(at.0),
                pixels(at.1),
                pixels(shift)
            )
        };
        let bold = if matches!(style.style(), FontStyle::Bold) {
            " b"
        } else {
            ""
        };
        let outline = if outline == 0 { "" } else { " o" };
        self.element(&format!(
            "<text {position} class=\"f{ink}{bold}{outline}\" font-size=\"{}\" text-anchor=\"{anchor}\"{}>{}</text>",
            pixels(size as i32),
            opacity(colour),
            escape(text)
        ))
    }

    fn estimate_text_size<T: BackendTextStyle>(
        &self,
        text: &str,
        style: &T,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let size = style.size();
        Ok((text_width(text, size) as u32, size as u32))
    }
}
