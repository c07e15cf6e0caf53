//! Certified accuracy against the radius: the share of all inputs that are classified right and whose
//! certificate reaches at least that far.

use super::curves::{Curve, Curves};
use super::scale::{Axis, AxisKind};
use super::sheet::Drawing;

/// The certificates of one model.
#[derive(Debug, Clone, Default)]
pub struct Radii {
    /// What the legend calls it.
    pub name: String,
    /// The radii of the inputs that are classified right.
    pub radii: Vec<f64>,
    /// How many inputs there were, the wrong ones included.
    pub inputs: usize,
}

/// A figure of certified accuracies.
#[derive(Debug, Clone, Default)]
pub struct CertifiedAccuracy {
    /// Above the figure.
    pub title: String,
    /// The radius, with its unit; a log axis suits models whose bounds differ by much.
    pub x: Axis,
    /// In the order of their colours.
    pub models: Vec<Radii>,
}

impl CertifiedAccuracy {
    /// Draws the figure.
    pub fn draw(&self) -> Drawing {
        let shown = |radius: &&f64| **radius >= 0.0 && radius.is_finite();
        let total: usize = self.models.iter().map(|model| model.radii.len()).sum();
        let kept: usize = self
            .models
            .iter()
            .map(|model| model.radii.iter().filter(shown).count())
            .sum();
        let notes = match total - kept {
            0 => Vec::new(),
            1 => vec!["1 radius left out: negative or not finite.".to_owned()],
            left => vec![format!("{left} radii left out: negative or not finite.")],
        };
        let lowest = self
            .models
            .iter()
            .flat_map(|model| model.radii.iter().filter(shown))
            .copied()
            .filter(|radius| *radius > 0.0)
            .fold(f64::INFINITY, f64::min);
        // A log axis has no zero; all curves begin left of the first certificate that ends.
        let start = match self.x.kind {
            AxisKind::Linear => 0.0,
            AxisKind::Log => lowest / 2.0,
        };
        let curves = self.models.iter().map(|model| {
            let radii = model.radii.iter().filter(shown).copied().collect();
            steps(&model.name, radii, model.inputs, start)
        });
        Curves {
            title: self.title.clone(),
            x: self.x.clone(),
            y: Axis::linear("share of inputs, right and certified").within(0.0, 1.0),
            curves: curves.collect(),
        }
        .draw_with(&notes)
    }
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
