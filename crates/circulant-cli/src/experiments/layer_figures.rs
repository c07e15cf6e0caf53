//! Figures of what a network has learned, beside its prior: spectra, filters, singular values.
//!
//! [`hidden_layers`] takes a network apart; every [`LayerFigures`] draws itself. [`spectrum`] and [`filters`] are the
//! short way for networks of one hidden layer, which those of the paper are.
//!
//! Filters are circular: they are drawn with offset 0 in the middle.

mod layer_values;

use anyhow::Context;
use burn::module::Module;
use circulant::bayes::{AnyPosterior, Bayesian, Network, Posterior, Slope, SpectralPrior};
use circulant::models::{HiddenLayer, ImageClassifier, TargetNetwork};
use circulant::noise::standard_normal;
use circulant::noise::{Noise, Purpose};

use self::layer_values::{Shape, to_host};
use super::config::PosteriorConfig;
use crate::report::figure::{Axis, Curve, CurveLook, Curves, Drawing, Filters};

/// Draws behind a band of 5 to 95 %.
const DRAWS: usize = 200;
/// Draws that are shown one by one.
const SHOWN: usize = 4;
/// Heat maps of learned filters.
const LEARNED: usize = 8;
/// The grey of the palette.
const PRIOR: usize = 6;
/// 5 and 95 % of `|N(0, 1)|`, and of the modulus of a complex number with `E|h|^2 = 1`.
const REAL_BAND: [f64; 2] = [0.062_706_8, 1.959_964];
const COMPLEX_BAND: [f64; 2] = [0.226_480, 1.730_818];

/// `|h_k|` of the last hidden layer with the bands of posterior and prior, if it is circulant.
pub fn spectrum(
    network: &Bayesian<ImageClassifier>,
    posterior: &PosteriorConfig,
    title: &str,
) -> anyhow::Result<Option<Drawing>> {
    let last = hidden_layers(network, posterior)?.pop();
    Ok(last.and_then(|layer| layer.spectrum(title)))
}

/// The filters of the last hidden layer and draws from their prior.
pub fn filters(
    network: &Bayesian<ImageClassifier>,
    posterior: &PosteriorConfig,
    title: &str,
) -> anyhow::Result<Drawing> {
    let last = hidden_layers(network, posterior)?.pop();
    Ok(last
        .context("an image classifier has a hidden layer")?
        .filters(title))
}

/// A network made of the layers of a classifier.
pub trait Layered: Network {
    /// What stands before the names of their parameters.
    const PREFIX: &'static str;

    /// The layers.
    fn layers(&self) -> &ImageClassifier;
}

impl Layered for ImageClassifier {
    const PREFIX: &'static str = "";

    fn layers(&self) -> &ImageClassifier {
        self
    }
}

impl Layered for TargetNetwork {
    const PREFIX: &'static str = "layers.";

    fn layers(&self) -> &ImageClassifier {
        &self.layers
    }
}

/// The hidden layers of a network, with the priors that `posterior` gave them.
pub fn hidden_layers<M: Layered>(
    network: &Bayesian<M>,
    posterior: &PosteriorConfig,
) -> anyhow::Result<Vec<LayerFigures>> {
    let network = network.valid();
    let mean = network.mean();
    let mean = mean.layers();
    let layers = mean.hidden_layers().map(|(name, layer)| {
        let path = format!("{}{name}.{}", M::PREFIX, layer_values::parameter(layer));
        let factor = network.posteriors().find(|(found, _)| *found == path);
        let factor = factor
            .with_context(|| format!("{path} has no posterior"))?
            .1;
        let slope = match &factor.slope {
            None => posterior.slope,
            Some(z) => softplus(to_host(z.mean()).first().copied().unwrap_or_default()),
        };
        let prior = match layer.spectrum_layout() {
            None => None,
            Some(layout) => {
                let spectrum = Slope {
                    deviation: posterior.prior_deviation,
                    alpha: slope,
                };
                Some(SpectralPrior::new(&layout, &spectrum)?)
            }
        };
        Ok(LayerFigures {
            name,
            mean: layer.clone(),
            shape: Shape::of(layer, mean.grid()),
            posterior: factor.posterior.clone(),
            learned_slope: factor.slope.is_some().then_some(slope),
            prior,
        })
    });
    layers.collect()
}

fn softplus(z: f64) -> f64 {
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}

/// A hidden layer: the posterior's mean, its draws, and the prior's.
pub struct LayerFigures {
    /// As in the network: `hidden`, `body.0`.
    pub name: String,
    /// Of the prior, if it is learned: at the posterior's mean.
    pub learned_slope: Option<f64>,
    mean: HiddenLayer,
    shape: Shape,
    posterior: AnyPosterior,
    /// Of spectral layers. All others have independent standard normal weights.
    prior: Option<SpectralPrior>,
}

impl LayerFigures {
    /// The prior of spectral coordinates; at a learned slope's mean.
    pub fn spectral_prior(&self) -> Option<&SpectralPrior> {
        self.prior.as_ref()
    }

    /// The layer at the posterior's mean.
    pub fn mean(&self) -> &HiddenLayer {
        &self.mean
    }

    /// `|h_k|` of a draw per bin; in 2D the mean of `|K|` per ring of equal radius. Nothing for layers without a
    /// spectrum.
    pub fn magnitudes(&self, layer: &HiddenLayer) -> Option<Vec<f64>> {
        self.shape.magnitudes(layer)
    }

    /// `|h_k|` over the frequency, with the bands of posterior and prior; 2D layers show the mean of `|K|` over rings
    /// of equal radius. Nothing for layers without a spectrum.
    pub fn spectrum(&self, title: &str) -> Option<Drawing> {
        let magnitudes = |layer: &HiddenLayer| self.shape.magnitudes(layer);
        let learned = magnitudes(&self.mean)?;
        let draws = |count| -> Vec<Vec<f64>> {
            let draws = self.prior_draws(count);
            draws.filter_map(|layer| magnitudes(&layer)).collect()
        };
        let (x, prior_band, x_label, y_label) = match self.shape.radii() {
            None => {
                let bins = (0..learned.len()).map(|k| k as f64).collect();
                (bins, self.prior_band(), "frequency bin k", "|h_k|")
            }
            Some(radii) => {
                let label = "radius in the plane of frequencies (1 at the edge)";
                (radii, band(&draws(DRAWS)), label, "mean of |K|")
            }
        };
        let middle = prior_band
            .iter()
            .map(|[low, high]| f64::midpoint(*low, *high));
        let name = format!("{}, 5 to 95 %", self.prior_name());
        let mut prior = Curve::new(name, x.clone(), middle.collect());
        prior.band = prior_band;
        let mut curves = vec![prior.looking(CurveLook::Band).coloured(PRIOR)];
        curves.extend(prior_curves(&x, draws(SHOWN)));
        let samples = self.posterior_draws(DRAWS);
        let samples = samples.filter_map(|layer| magnitudes(&layer));
        let mut curve = Curve::new(self.learned_name(), x, learned).coloured(0);
        curve.band = band(&samples.collect::<Vec<_>>());
        curves.push(curve);
        let drawing = Curves {
            title: title.to_owned(),
            x: Axis::linear(x_label),
            y: Axis::log(y_label),
            curves,
        };
        Some(drawing.draw())
    }

    /// Learned filters and draws from the prior: curves in 1D, heat maps in 2D. A dense layer shows what its first
    /// outputs weigh.
    pub fn filters(&self, title: &str) -> Drawing {
        if self.shape.is_signal() {
            return self.filter_curves(title);
        }
        let mut filters = self.shape.filters(&self.mean, LEARNED);
        let of = |layer: HiddenLayer, name: &str, index: usize| {
            let mut filters = self.shape.filters(&layer, 1);
            for filter in &mut filters {
                filter.name = format!("{name} {}", index + 1);
            }
            filters
        };
        if filters.len() == 1 {
            filters[0].name = self.learned_name().replace("posterior ", "");
            let draws = self.posterior_draws(SHOWN - 1).enumerate();
            filters.extend(draws.flat_map(|(index, layer)| of(layer, "draw", index)));
        }
        let draws = self.prior_draws(SHOWN).enumerate();
        filters.extend(draws.flat_map(|(index, layer)| of(layer, "prior", index)));
        Filters {
            title: title.to_owned(),
            filters,
            columns: SHOWN,
            // A standard normal prior is many times wider than what is learned.
            shared_scale: self.prior.is_some(),
        }
        .draw()
    }

    fn filter_curves(&self, title: &str) -> Drawing {
        let values = |layer: &HiddenLayer| {
            let filter = self.shape.filters(layer, 1).pop();
            filter.map(|filter| filter.values).unwrap_or_default()
        };
        let learned = values(&self.mean);
        let middle = (learned.len() / 2) as f64;
        let x: Vec<f64> = (0..learned.len()).map(|i| i as f64 - middle).collect();
        let draws = self.prior_draws(2).map(|layer| values(&layer)).collect();
        let mut curves = prior_curves(&x, draws);
        let samples: Vec<Vec<f64>> = self.posterior_draws(DRAWS).map(|l| values(&l)).collect();
        let mut curve = Curve::new(self.learned_name(), x, learned).coloured(0);
        curve.band = band(&samples);
        curves.push(curve);
        Curves {
            title: title.to_owned(),
            x: Axis::linear("offset"),
            y: Axis::linear("filter"),
            curves,
        }
        .draw()
    }

    fn learned_name(&self) -> &'static str {
        match self.posterior {
            AnyPosterior::Point(_) => "learned",
            _ => "posterior mean",
        }
    }

    fn prior_name(&self) -> String {
        match self.learned_slope {
            None => "prior".to_owned(),
            Some(slope) => format!("prior at the learned slope {slope:.2}"),
        }
    }

    /// The layer at draws from the posterior; none where there is only a point.
    pub fn posterior_draws(&self, count: usize) -> impl Iterator<Item = HiddenLayer> + '_ {
        let count = match self.posterior {
            AnyPosterior::Point(_) => 0,
            _ => count,
        };
        (0..count).map(|sample| {
            let key = Noise::new(0, Purpose::Prediction, 0, sample).next_key();
            layer_values::with_values(&self.mean, to_host(self.posterior.sample(key)))
        })
    }

    /// The layer at draws from the prior.
    pub fn prior_draws(&self, count: usize) -> impl Iterator<Item = HiddenLayer> + '_ {
        (0..count).map(|sample| {
            // Another seed than that of the posterior's draws, which must look unrelated.
            let key = Noise::new(1, Purpose::Prediction, 0, sample).next_key();
            let values = match &self.prior {
                Some(prior) => prior.draw(key),
                None => {
                    let mut values = vec![0.0; self.posterior.coordinates()];
                    standard_normal(key, &mut values);
                    values
                }
            };
            layer_values::with_values(&self.mean, values)
        })
    }

    /// 5 and 95 % of `|h_k|` under the prior, per bin of a half-spectrum; nothing in 2D.
    pub fn prior_band(&self) -> Vec<[f64; 2]> {
        let Some(length) = self.shape.signal_length() else {
            return Vec::new();
        };
        (0..=length / 2)
            .map(|k| {
                // A filter of independent standard normal values has E|h|^2 = length.
                let density = self
                    .prior
                    .as_ref()
                    .map_or(length as f64, |prior| prior.densities()[k]);
                let unit = if k == 0 || 2 * k == length {
                    REAL_BAND
                } else {
                    COMPLEX_BAND
                };
                unit.map(|quantile| quantile * density.sqrt())
            })
            .collect()
    }
}

/// Draws from the prior behind what was learned, under one name.
fn prior_curves(x: &[f64], draws: Vec<Vec<f64>>) -> Vec<Curve> {
    let names = ["prior draws"].into_iter().chain(std::iter::repeat(""));
    let curves = draws.into_iter().zip(names).map(|(draw, name)| {
        let curve = Curve::new(name, x.to_vec(), draw);
        curve.looking(CurveLook::Faint).coloured(PRIOR)
    });
    curves.collect()
}

/// 5 and 95 % of the draws, position by position; none of no draws.
fn band(draws: &[Vec<f64>]) -> Vec<[f64; 2]> {
    let Some(first) = draws.first() else {
        return Vec::new();
    };
    (0..first.len())
        .map(|position| {
            let mut values: Vec<f64> = draws.iter().map(|draw| draw[position]).collect();
            values.sort_by(f64::total_cmp);
            let at = |share: f64| values[(share * (values.len() - 1) as f64).round() as usize];
            [at(0.05), at(0.95)]
        })
        .collect()
}
