//! Histograms of several distributions over common bins: norms, radii. Each is a share of its own values, so
//! that sets of different size compare. A dashed line marks each median.

use super::canvas::{Point, Stroke};
use super::ink::Ink;
use super::scale::{Axis, AxisKind, Scale, extent};
use super::sheet::{Drawing, Key, Panel, Sheet};
use crate::report::number::fixed;

#[derive(Debug, Clone)]
pub struct Distribution {
    pub name: String,
    /// In any order.
    pub values: Vec<f64>,
}

pub fn histograms(title: &str, x: &Axis, distributions: &[Distribution]) -> Drawing {
    let names: Vec<&str> = distributions
        .iter()
        .map(|part| part.name.as_str())
        .collect();
    let description = format!("Histograms of {}: {}.", x.label, names.join(", "));
    let mut sheet = Sheet::new(title, description);
    let parts: Vec<Vec<f64>> = distributions
        .iter()
        .map(|part| sorted(x, &part.values))
        .collect();
    let kept: usize = parts.iter().map(Vec::len).sum();
    let all: usize = distributions.iter().map(|part| part.values.len()).sum();
    let why = match (x.kind, x.range) {
        (_, Some(_)) => "not finite, or outside the axis",
        (kind, None) => kind.refuses(),
    };
    sheet.dropped(all - kept, why);
    let Some(scale) = x.scale(parts.iter().flatten().copied(), 0.02, 6) else {
        return sheet.no_data();
    };
    let edges = edges(&scale, bins(&parts, x.kind));
    let shares: Vec<Vec<f64>> = parts.iter().map(|part| shares(part, &edges)).collect();
    let heights = shares.iter().flatten().copied().chain([0.0]);
    let y = Axis::default().scale(heights, 0.06, 4);
    let (Some(y), true) = (y, kept > 0) else {
        return sheet.no_data();
    };
    let entries = names.iter().zip(&parts).enumerate();
    let entries = entries
        .map(|(index, (name, sorted))| (named(name, sorted), Key::Area(Ink::Series(index), 0.75)));
    sheet.legend(&entries.collect::<Vec<_>>());
    let place = Sheet::whole(190.0, &x.label, "share of values per bin");
    let panel = sheet.panel(place, scale, y);
    for (index, shares) in shares.iter().enumerate() {
        outline(&mut sheet, &panel, &edges, shares, Ink::Series(index));
    }
    for (index, part) in parts.iter().enumerate() {
        if let Some(median) = median(part) {
            let (x, _) = panel.at(median, 0.0);
            let stroke = Stroke::data(Ink::Series(index)).width(1.4).dashed();
            let ends = [(x, panel.top), (x, panel.bottom)];
            sheet.canvas.line(&ends, stroke);
        }
    }
    sheet.below(&panel);
    sheet.finish()
}

fn sorted(x: &Axis, values: &[f64]) -> Vec<f64> {
    let inside = |value: f64| {
        x.range
            .is_none_or(|[low, high]| (low..=high).contains(&value))
    };
    let shown = |value: &f64| x.kind.shows(*value) && inside(*value);
    let mut sorted: Vec<f64> = values.iter().copied().filter(shown).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn named(name: &str, sorted: &[f64]) -> String {
    match median(sorted) {
        Some(median) => {
            let digits = match median.abs() {
                most if most >= 100.0 => 0,
                most if most >= 1.0 => 2,
                _ => 3,
            };
            format!("{name} (median {})", fixed(median, digits))
        }
        None => format!("{name} (no data)"),
    }
}

fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let lower = sorted.len().saturating_sub(1) / 2;
    Some(f64::midpoint(*sorted.get(lower)?, *sorted.get(middle)?))
}

fn position(kind: AxisKind, value: f64) -> f64 {
    match kind {
        AxisKind::Linear => value,
        AxisKind::Log => value.log10(),
    }
}

/// The rule of Freedman and Diaconis for the narrowest distribution, within what can be read.
fn bins(parts: &[Vec<f64>], kind: AxisKind) -> usize {
    let positions = parts.iter().flatten().map(|&value| position(kind, value));
    let Some((low, high)) = extent(positions) else {
        return 1;
    };
    let widths = parts.iter().filter_map(|part| {
        let quartile = |share: usize| Some(position(kind, *part.get(part.len() * share / 4)?));
        let width = 2.0 * (quartile(3)? - quartile(1)?) / (part.len() as f64).cbrt();
        (width > 0.0).then_some(width)
    });
    let narrowest = widths.fold(f64::INFINITY, f64::min);
    let count = (high / 2.0 - low / 2.0) / (narrowest / 2.0);
    if count.is_finite() {
        (count.ceil() as usize).clamp(10, 48)
    } else {
        10
    }
}

fn edges(scale: &Scale, bins: usize) -> Vec<f64> {
    let (low, high) = (
        position(scale.kind, scale.low),
        position(scale.kind, scale.high),
    );
    (0..=bins)
        .map(|index| {
            let share = index as f64 / bins as f64;
            let at = low * (1.0 - share) + high * share;
            match scale.kind {
                AxisKind::Linear => at,
                AxisKind::Log => 10_f64.powf(at),
            }
        })
        .collect()
}

fn shares(sorted: &[f64], edges: &[f64]) -> Vec<f64> {
    let bins = edges.len() - 1;
    let mut counts = vec![0_usize; bins];
    for &value in sorted {
        let bin = edges
            .partition_point(|&edge| edge <= value)
            .saturating_sub(1);
        counts[bin.min(bins - 1)] += 1;
    }
    let total = sorted.len().max(1) as f64;
    counts
        .into_iter()
        .map(|count| count as f64 / total)
        .collect()
}

fn outline(sheet: &mut Sheet, panel: &Panel, edges: &[f64], shares: &[f64], ink: Ink) {
    let mut line: Vec<Point> = vec![panel.at(edges[0], 0.0)];
    for (pair, &share) in edges.windows(2).zip(shares) {
        line.push(panel.at(pair[0], share));
        line.push(panel.at(pair[1], share));
    }
    line.push(panel.at(edges[edges.len() - 1], 0.0));
    sheet.canvas.polygon(&line, ink, 0.25);
    // Nothing is drawn along the axis where a distribution has no values.
    for part in line.chunk_by(|one, other| one.1 < panel.bottom || other.1 < panel.bottom) {
        sheet.canvas.line(part, Stroke::data(ink).width(1.5));
    }
}
