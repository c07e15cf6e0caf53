//! Certified accuracy against the radius: the share of all inputs that are classified right and whose
//! certificate reaches at least that far.

use super::curves::{Curve, Curves};
use super::scale::{Axis, AxisKind};
use super::sheet::Drawing;

/// The certificates of one model.
#[derive(Debug, Clone)]
pub struct Radii {
    pub name: String,
    /// Of the inputs that are classified right.
    pub radii: Vec<f64>,
    /// How many inputs there were, the wrong ones included.
    pub inputs: usize,
}

/// Draws the figure; a log axis suits models whose bounds differ by much.
pub fn certified_accuracy(title: &str, x: Axis, models: &[Radii]) -> Drawing {
    let shown = |radius: &f64| *radius >= 0.0 && radius.is_finite();
    let kept = models.iter().map(|model| {
        let radii = model.radii.iter().copied();
        radii.filter(shown).collect()
    });
    let kept: Vec<Vec<f64>> = kept.collect();
    let total: usize = models.iter().map(|model| model.radii.len()).sum();
    let notes = match total - kept.iter().map(Vec::len).sum::<usize>() {
        0 => Vec::new(),
        1 => vec!["1 radius left out: negative or not finite.".to_owned()],
        left => vec![format!("{left} radii left out: negative or not finite.")],
    };
    let positive = kept.iter().flatten().filter(|radius| **radius > 0.0);
    let lowest = positive.copied().fold(f64::INFINITY, f64::min);
    // A log axis has no zero; all curves begin left of the first certificate that ends.
    let start = match x.kind {
        AxisKind::Linear => 0.0,
        AxisKind::Log => lowest / 2.0,
    };
    let curves = models.iter().zip(kept);
    let curves = curves.map(|(model, radii)| steps(&model.name, radii, model.inputs, start));
    Curves {
        title: title.to_owned(),
        x,
        y: Axis::linear("share of inputs, right and certified").within(0.0, 1.0),
        curves: curves.collect(),
    }
    .draw_with(&notes)
}

fn steps(name: &str, mut radii: Vec<f64>, inputs: usize, start: f64) -> Curve {
    radii.sort_by(f64::total_cmp);
    let inputs = inputs.max(radii.len()).max(1) as f64;
    let share = |reached: usize| reached as f64 / inputs;
    let (mut x, mut y) = (Vec::new(), Vec::new());
    let first = radii.partition_point(|&radius| radius < start);
    if first < radii.len() {
        x.push(start);
        y.push(share(radii.len() - first));
    }
    for (index, &radius) in radii.iter().enumerate().skip(first) {
        x.extend([radius; 2]);
        y.extend([share(radii.len() - index), share(radii.len() - index - 1)]);
    }
    Curve::new(name, x, y)
}
