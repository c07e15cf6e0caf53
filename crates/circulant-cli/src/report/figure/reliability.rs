//! Reliability diagram: accuracy against confidence in bins, the gap between them shaded, and below how many
//! predictions each bin has.

use super::canvas::{HPos, Lettering, Stroke, VPos};
use super::ink::Ink;
use super::scale::Axis;
use super::sheet::{Drawing, Key, Panel, SMALL, Sheet};
use crate::report::number::{fixed, grouped};

/// Predictions with a confidence in one interval.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReliabilityBar {
    /// Lower end of the interval.
    pub lower: f64,
    /// Upper end of the interval.
    pub upper: f64,
    /// How many predictions.
    pub count: u64,
    /// Their mean confidence, if there are any.
    pub confidence: Option<f64>,
    /// The share that is right, if there are any.
    pub accuracy: Option<f64>,
}

/// A reliability diagram.
#[derive(Debug, Clone, Default)]
pub struct Reliability {
    /// Above the figure.
    pub title: String,
    /// In the order of confidence.
    pub bins: Vec<ReliabilityBar>,
    /// The expected calibration error, written into the figure.
    pub ece: Option<f64>,
    /// The maximum calibration error, written into the figure.
    pub mce: Option<f64>,
}

const BAR: Ink = Ink::Series(0);
const GAP: Ink = Ink::Series(1);

impl Reliability {
    /// Draws the figure.
    pub fn draw(&self) -> Drawing {
        let total: u64 = self
            .bins
            .iter()
            .map(|bin| bin.count)
            .fold(0, u64::saturating_add);
        let description = format!(
            "Reliability diagram of {} predictions in {} bins.",
            grouped(total),
            self.bins.len()
        );
        let mut sheet = Sheet::new(&self.title, description);
        let (bins, broken): (Vec<ReliabilityBar>, Vec<ReliabilityBar>) =
            self.bins.iter().partition(|bin| drawable(bin));
        sheet.dropped(broken.len(), "a bin with ends or shares outside 0 to 1");
        let bins: Vec<ReliabilityBar> = bins.into_iter().filter(|bin| bin.count > 0).collect();
        let unit = |ticks| Axis::default().within(0.0, 1.0).scale([], 0.0, ticks);
        let shares: Vec<f64> = bins
            .iter()
            .map(|bin| bin.count as f64 / total.max(1) as f64)
            .collect();
        let counts = Axis::default().scale(shares.iter().copied().chain([0.0]), 0.08, 2);
        let (Some(x), Some(y), Some(counts), false) = (unit(5), unit(5), counts, bins.is_empty())
        else {
            return sheet.no_data();
        };
        sheet.legend(&[
            ("accuracy".to_owned(), Key::Area(BAR, 0.75)),
            ("gap to confidence".to_owned(), Key::Area(GAP, 0.45)),
            (
                "calibrated".to_owned(),
                Key::Line(Stroke::thin(Ink::Muted).dashed()),
            ),
        ]);
        let panel = sheet.panel(Sheet::whole(190.0, "", "accuracy"), x.clone(), y);
        for bin in &bins {
            bar(&mut sheet, &panel, bin);
        }
        let diagonal = [panel.at(0.0, 0.0), panel.at(1.0, 1.0)];
        sheet
            .canvas
            .line(&diagonal, Stroke::thin(Ink::Muted).width(1.4).dashed());
        self.figures(&mut sheet, &panel);
        sheet.below(&panel);

        let panel = sheet.panel(
            Sheet::whole(56.0, "confidence", "share of predictions"),
            x,
            counts,
        );
        for (bin, share) in bins.iter().zip(shares) {
            let (left, top) = panel.at(bin.lower, share);
            let (right, _) = panel.at(bin.upper, 0.0);
            sheet.canvas.rectangle(
                (left + 0.7, top.min(panel.bottom - 0.8)),
                (right - 0.7, panel.bottom),
                Ink::Series(6),
                0.8,
            );
        }
        sheet.below(&panel);
        sheet.finish()
    }

    fn figures(&self, sheet: &mut Sheet, panel: &Panel) {
        let lettering = Lettering::new(SMALL, Ink::Text)
            .at(HPos::Left, VPos::Top)
            .outlined();
        let mut top = panel.top + 6.0;
        for (name, value) in [("ECE", self.ece), ("MCE", self.mce)] {
            if let Some(value) = value.filter(|value| value.is_finite()) {
                let text = format!("{name} {}", fixed(value, 3));
                sheet.canvas.text((panel.left + 8.0, top), &text, lettering);
                top += SMALL + 5.0;
            }
        }
    }
}

fn drawable(bin: &ReliabilityBar) -> bool {
    let share = |value: f64| (0.0..=1.0).contains(&value);
    let both = match (bin.count, bin.accuracy, bin.confidence) {
        (0, ..) => true,
        (_, Some(accuracy), Some(confidence)) => share(accuracy) && share(confidence),
        _ => false,
    };
    share(bin.lower) && share(bin.upper) && bin.lower < bin.upper && both
}

fn bar(sheet: &mut Sheet, panel: &Panel, bin: &ReliabilityBar) {
    let (Some(accuracy), Some(confidence)) = (bin.accuracy, bin.confidence) else {
        return;
    };
    let (left, top) = panel.at(bin.lower, accuracy);
    let (right, level) = panel.at(bin.upper, confidence);
    let (left, right) = (left + 0.7, right - 0.7);
    sheet
        .canvas
        .rectangle((left, top), (right, panel.bottom), BAR, 0.75);
    let (upper, lower) = (top.min(level), top.max(level));
    // Where accuracy is above confidence the gap lies on the bar, which is cut away first.
    sheet
        .canvas
        .rectangle((left, upper), (right, lower), Ink::Ground, 1.0);
    sheet
        .canvas
        .rectangle((left, upper), (right, lower), GAP, 0.45);
    let edge = Stroke::thin(BAR).width(1.8);
    sheet.canvas.line(&[(left, top), (right, top)], edge);
}
