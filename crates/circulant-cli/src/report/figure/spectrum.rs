//! Learned half-spectra `|h_k|` against the frequency bin `k`, before the band and draws of the prior.

use super::curves::{Curve, CurveLook, Curves};
use super::scale::{Axis, AxisKind};
use super::sheet::Drawing;

/// The grey of the palette: the prior is the background.
const PRIOR: usize = 6;

/// A learned spectrum.
#[derive(Debug, Clone, Default)]
pub struct Spectrum {
    /// What the legend calls it.
    pub name: String,
    /// `|h_k|` for k = 0, 1, 2 and so on.
    pub magnitudes: Vec<f64>,
    /// An interval of the posterior per bin, or none.
    pub band: Vec<[f64; 2]>,
}

/// A figure of spectra.
#[derive(Debug, Clone, Default)]
pub struct Spectra {
    /// Above the figure.
    pub title: String,
    /// In the order of their colours.
    pub spectra: Vec<Spectrum>,
    /// An interval of the prior per bin, or none.
    pub prior_band: Vec<[f64; 2]>,
    /// What the legend says of it, such as `prior, 5 to 95 %`.
    pub prior_label: String,
    /// Draws from the prior.
    pub prior_draws: Vec<Vec<f64>>,
    /// The vertical axis.
    pub kind: AxisKind,
}

impl Spectra {
    /// Draws the figure.
    pub fn draw(&self) -> Drawing {
        let mut curves = Vec::new();
        if !self.prior_band.is_empty() {
            let middle = self
                .prior_band
                .iter()
                .map(|[low, high]| f64::midpoint(*low, *high));
            let name = if self.prior_label.is_empty() {
                "prior"
            } else {
                &self.prior_label
            };
            let mut prior = Curve::indexed(name, middle.collect()).looking(CurveLook::Band);
            prior.band = self.prior_band.clone();
            curves.push(prior.coloured(PRIOR));
        }
        for (index, draw) in self.prior_draws.iter().enumerate() {
            let name = if index == 0 { "prior draws" } else { "" };
            let curve = Curve::indexed(name, draw.clone()).looking(CurveLook::Faint);
            curves.push(curve.coloured(PRIOR));
        }
        for (index, spectrum) in self.spectra.iter().enumerate() {
            let mut curve = Curve::indexed(spectrum.name.clone(), spectrum.magnitudes.clone());
            curve.band = spectrum.band.clone();
            curves.push(curve.coloured(index % PRIOR));
        }
        Curves {
            title: self.title.clone(),
            x: Axis::linear("frequency bin k"),
            y: Axis {
                label: "|h_k|".to_owned(),
                kind: self.kind,
                range: None,
            },
            curves,
        }
        .draw()
    }
}
