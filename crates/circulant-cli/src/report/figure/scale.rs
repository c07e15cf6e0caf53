//! One axis: from values to positions, linear or logarithmic, with ticks at round numbers.

use crate::report::number::{scientific, tick};

/// How an axis maps values to positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AxisKind {
    /// Equal differences, equal distances.
    #[default]
    Linear,
    /// Equal ratios, equal distances. Zero and less cannot be shown.
    Log,
}

impl AxisKind {
    /// Whether the value has a position on such an axis.
    pub(super) fn shows(self, value: f64) -> bool {
        value.is_finite() && (self == Self::Linear || value > 0.0)
    }

    /// Logarithmic if one of them is.
    pub(super) fn or(self, other: Self) -> Self {
        if self == Self::Log { self } else { other }
    }

    /// Why a value has none.
    pub(super) fn refuses(self) -> &'static str {
        match self {
            Self::Linear => "not finite",
            Self::Log => "not finite, or not positive on a log axis",
        }
    }
}

/// What an axis is called and how it maps.
#[derive(Debug, Clone, Default)]
pub struct Axis {
    /// The quantity, with its unit if it has one.
    pub label: String,
    /// Linear unless said otherwise.
    pub kind: AxisKind,
    /// Shows exactly this range instead of what the data need.
    pub range: Option<[f64; 2]>,
}

impl Axis {
    pub fn linear(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ..Self::default()
        }
    }

    pub fn log(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            kind: AxisKind::Log,
            range: None,
        }
    }

    pub fn within(mut self, low: f64, high: f64) -> Self {
        self.range = Some([low, high]);
        self
    }

    /// The scale for the values, or nothing when none of them can be shown. The padding is a share of
    /// the range on both sides.
    pub(super) fn scale(
        &self,
        values: impl IntoIterator<Item = f64>,
        padding: f64,
        ticks: usize,
    ) -> Option<Scale> {
        let fixed = self
            .range
            .filter(|&[low, high]| self.kind.shows(low) && self.kind.shows(high) && low < high);
        let extent = extent(values.into_iter().filter(|&value| self.kind.shows(value)));
        match (fixed, extent) {
            (Some([low, high]), _) => Some(Scale::new(self.kind, low, high, ticks)),
            (None, Some((low, high))) => {
                let (low, high) = widened(self.kind, low, high, padding);
                Some(Scale::new(self.kind, low, high, ticks))
            }
            (None, None) => None,
        }
    }
}

pub(super) fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().fold(None, |extent, value| {
        let (low, high) = extent.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

fn widened(kind: AxisKind, low: f64, high: f64, padding: f64) -> (f64, f64) {
    if kind == AxisKind::Log {
        let (low, high) = (low.log10(), high.log10());
        let room = if high - low < 1e-9 {
            0.5
        } else {
            padding * (high - low)
        };
        // The ends of what f64 can hold are also the ends of the axis.
        return (
            10_f64.powf(low - room).max(f64::MIN_POSITIVE),
            10_f64.powf(high + room).min(f64::MAX),
        );
    }
    let span = high / 2.0 - low / 2.0;
    // A constant gets room on both sides; rounding noise on a constant must not become a mountain.
    if span <= 1e-12 * low.abs().max(high.abs()) {
        let room = if low == 0.0 { 0.5 } else { 0.1 * low.abs() };
        return ((low - room).max(f64::MIN), (high + room).min(f64::MAX));
    }
    let room = 2.0 * padding * span;
    // Quantities that are never negative keep zero as their floor.
    let floor = if low >= 0.0 { 0.0 } else { f64::MIN };
    ((low - room).max(floor), (high + room).min(f64::MAX))
}

/// An axis with its ends and ticks decided.
#[derive(Debug, Clone)]
pub(super) struct Scale {
    pub(super) kind: AxisKind,
    pub(super) low: f64,
    pub(super) high: f64,
    /// Where to put a tick, and what to write there.
    pub(super) ticks: Vec<(f64, String)>,
}

impl Scale {
    /// From `low` to `high`, with about `count` ticks.
    pub(super) fn new(kind: AxisKind, low: f64, high: f64, count: usize) -> Self {
        let values = match kind {
            AxisKind::Linear => linear_ticks(low, high, count),
            AxisKind::Log => log_ticks(low, high, count),
        };
        let largest = values
            .iter()
            .fold(0.0_f64, |most, value| most.max(value.abs()));
        let step = match values.as_slice() {
            [first, second, ..] => second - first,
            _ => largest,
        };
        let ticks = values
            .into_iter()
            .map(|value| match kind {
                AxisKind::Linear => (value, tick(value, step, largest)),
                AxisKind::Log if value < 0.999e-3 => (value, scientific(value, 2)),
                AxisKind::Log => (value, tick(value, value, value)),
            })
            .collect();
        Self {
            kind,
            low,
            high,
            ticks,
        }
    }

    /// The position between the ends, 0 to 1 inside the range.
    pub(super) fn fraction(&self, value: f64) -> f64 {
        let (value, low, high) = match self.kind {
            // Halves, because the difference of two large numbers may overflow.
            AxisKind::Linear => (value / 2.0, self.low / 2.0, self.high / 2.0),
            AxisKind::Log => (value.log10(), self.low.log10(), self.high.log10()),
        };
        let fraction = (value - low) / (high - low);
        // A little outside is allowed, so that lines that leave the range keep their direction.
        if fraction.is_finite() {
            fraction.clamp(-1.0, 2.0)
        } else {
            0.0
        }
    }
}

fn linear_ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let rough = (high - low) / count.max(1) as f64;
    let unit = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * unit)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(rough);
    if !(step.is_finite() && step > 0.0) {
        return vec![low, high];
    }
    let first = (low / step - 1e-9).ceil();
    let ticks: Vec<f64> = (0..=2 * count.max(2))
        .map(|index| (first + index as f64) * step)
        .take_while(|&value| value <= high + 1e-9 * step)
        .collect();
    // So close together that f64 cannot count them.
    if ticks.len() < 2 || ticks.windows(2).any(|pair| pair[0] >= pair[1]) {
        return vec![low, high];
    }
    ticks
}

fn log_ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let (from, to) = (low.log10(), high.log10());
    let decades: Vec<i32> = ((from - 1e-9).ceil() as i32..=(to + 1e-9).floor() as i32).collect();
    let most = count.max(2) + 1;
    if decades.len() >= 3 {
        let every = decades.len().div_ceil(most) as i32;
        let shown = decades.into_iter().filter(|decade| decade % every == 0);
        return shown.map(|decade| 10_f64.powi(decade)).collect();
    }
    let between: Vec<f64> = (from.floor() as i32..=to.ceil() as i32)
        .flat_map(|decade| [1.0, 2.0, 5.0].map(|factor| factor * 10_f64.powi(decade)))
        .filter(|value| (low * 0.999..=high * 1.001).contains(value))
        .collect();
    if between.len() >= 3 {
        between
    } else {
        linear_ticks(low, high, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<&str> {
        scale
            .ticks
            .iter()
            .map(|(_, label)| label.as_str())
            .collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(
            labels(&Scale::new(AxisKind::Linear, 0.0, 1.0, 5)),
            ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(
            labels(&Scale::new(AxisKind::Log, 5_000.0, 2e6, 5)),
            ["10k", "100k", "1M"]
        );
        assert_eq!(
            labels(&Scale::new(AxisKind::Log, 0.3, 8.0, 5)),
            ["0.5", "1", "2", "5"]
        );
        assert_eq!(
            labels(&Scale::new(AxisKind::Log, 1e-9, 1.0, 4)),
            ["10⁻⁸", "10⁻⁶", "10⁻⁴", "0.01", "1"]
        );
    }

    #[test]
    fn extreme_ranges_have_few_finite_ticks() {
        for (low, high) in [
            (f64::MIN, f64::MAX),
            (0.0, f64::MIN_POSITIVE),
            (1e16, 1e16 + 2.0),
            (-1e-320, 1e-320),
        ] {
            let scale = Scale::new(AxisKind::Linear, low, high, 5);
            assert!(
                scale.ticks.len() >= 2 && scale.ticks.len() <= 11,
                "{scale:?}"
            );
            let ends = [low, high].map(|end| scale.fraction(end));
            assert!(ends.iter().all(|end| (0.0..=1.0).contains(end)), "{ends:?}");
        }
        let scale = Scale::new(AxisKind::Log, f64::MIN_POSITIVE, f64::MAX, 5);
        assert!(
            scale.ticks.len() >= 2 && scale.ticks.len() <= 8,
            "{scale:?}"
        );
    }

    #[test]
    fn constant_data_get_room_and_no_data_no_scale() {
        let axis = Axis::linear("");
        let scale = axis.scale([3.0, 3.0], 0.05, 5).unwrap();
        assert!(scale.low < 3.0 && scale.high > 3.0);
        let scale = axis.scale([0.0], 0.05, 5).unwrap();
        assert!(scale.low < 0.0 && scale.high > 0.0);
        assert!(axis.scale([f64::NAN, f64::INFINITY], 0.05, 5).is_none());
        assert!(Axis::log("").scale([0.0, -1.0], 0.05, 5).is_none());
    }
}
