//! Reliability diagram: accuracy against confidence in bins, the gap between them shaded, and below how many
//! predictions each bin has.

use circulant::metrics::ReliabilityDiagram;

use super::canvas::{HPos, Lettering, Stroke, VPos};
use super::ink::Ink;
use super::scale::Axis;
use super::sheet::{Drawing, Key, Panel, SMALL, Sheet};
use crate::report::number::{fixed, grouped};

/// Predictions with a confidence in one interval.
#[derive(Debug, Clone, Copy)]
pub struct ReliabilityBar {
    pub lower: f64,
    pub upper: f64,
    pub count: u64,
    /// Their mean confidence, if there are any.
    pub confidence: Option<f64>,
    /// The share that is right, if there are any.
    pub accuracy: Option<f64>,
}

/// A reliability diagram.
#[derive(Debug, Clone)]
pub struct Reliability {
    pub title: String,
    /// In the order of confidence.
    pub bins: Vec<ReliabilityBar>,
    /// The expected calibration error.
    pub ece: f64,
    /// The maximum calibration error.
    pub mce: f64,
}

const BAR: Ink = Ink::Series(0);
const GAP: Ink = Ink::Series(1);

impl Reliability {
    /// A diagram of the library, with both calibration errors.
    pub fn from_diagram(title: impl Into<String>, diagram: &ReliabilityDiagram) -> Self {
        let bins = diagram.bins.iter().map(|bin| ReliabilityBar {
            lower: bin.lower,
            upper: bin.upper,
            count: bin.count,
            confidence: bin.mean_confidence,
            accuracy: bin.accuracy,
        });
        Self {
            title: title.into(),
            bins: bins.collect(),
            ece: diagram.expected_calibration_error(),
            mce: diagram.maximum_calibration_error(),
        }
    }

    pub fn draw(&self) -> Drawing {
        let counts = self.bins.iter().map(|bin| bin.count);
        let total = counts.fold(0, u64::saturating_add);
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
        let share = |bin: &ReliabilityBar| bin.count as f64 / total.max(1) as f64;
        let shares: Vec<f64> = bins.iter().map(share).collect();
        let counts = Axis::default().scale(shares.iter().copied().chain([0.0]), 0.08, 2);
        let (Some(x), Some(y), Some(counts), false) = (unit(5), unit(5), counts, bins.is_empty())
        else {
            return sheet.no_data();
        };
        let calibrated = Stroke::thin(Ink::Muted).dashed();
        sheet.legend(&[
            ("accuracy".to_owned(), Key::Area(BAR, 0.75)),
            ("gap to confidence".to_owned(), Key::Area(GAP, 0.45)),
            ("calibrated".to_owned(), Key::Line(calibrated)),
        ]);
        let panel = sheet.panel(Sheet::whole(190.0, "", "accuracy"), x.clone(), y);
        for bin in &bins {
            bar(&mut sheet, &panel, bin);
        }
        let diagonal = [panel.at(0.0, 0.0), panel.at(1.0, 1.0)];
        sheet.canvas.line(&diagonal, calibrated.width(1.4));
        self.figures(&mut sheet, &panel);
        sheet.below(&panel);

        let place = Sheet::whole(56.0, "confidence", "share of predictions");
        let panel = sheet.panel(place, x, counts);
        for (bin, share) in bins.iter().zip(shares) {
            let (left, top) = panel.at(bin.lower, share);
            let (right, _) = panel.at(bin.upper, 0.0);
            let from = (left + 0.7, top.min(panel.bottom - 0.8));
            let to = (right - 0.7, panel.bottom);
            sheet.canvas.rectangle(from, to, Ink::Series(6), 0.8);
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
            if value.is_finite() {
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
    let canvas = &mut sheet.canvas;
    canvas.rectangle((left, top), (right, panel.bottom), BAR, 0.75);
    let (from, to) = ((left, top.min(level)), (right, top.max(level)));
    // Where accuracy is above confidence the gap lies on the bar, which is cut away first.
    canvas.rectangle(from, to, Ink::Ground, 1.0);
    canvas.rectangle(from, to, GAP, 0.45);
    let edge = Stroke::thin(BAR).width(1.8);
    canvas.line(&[(left, top), (right, top)], edge);
}
