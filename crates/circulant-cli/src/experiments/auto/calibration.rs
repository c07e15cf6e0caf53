//! What held-out rows say about a trained network: how probable they are, and what would make them more probable.
//!
//! Of classes that is a temperature. Of numbers it is a factor on the noise, and a spread `v` of its logarithm: every network then has noise of its
//! own size, and their average has tails that are heavier than a Gaussian's. A few rows that are held out can say that the noise is too large or too
//! small, but hardly how often a row is far off; so some spread is always assumed.

use circulant::bayes::{Bayesian, PredictiveConfig};
use circulant::data::{LabelledData, RegressionData};
use circulant::metrics::{MetricError, Mixtures};
use circulant::models::{ImageClassifier, Likelihood, TargetNetwork};

use super::super::config::{Inference, PosteriorConfig, RunConfig};

/// Posterior samples of a prediction of held-out rows.
const SAMPLES: usize = 32;
/// The logarithm of noise factor or temperature is 0 give or take this before held-out rows say otherwise: few rows move it little.
const FACTOR_DEVIATION: f64 = 0.3;
/// Smaller probabilities count as this one.
const LEAST: f32 = f32::MIN_POSITIVE;
/// Spreads of the logarithm of the noise that are tried.
const SPREADS: [f64; 4] = [0.2, 0.4, 0.6, 0.8];

/// What held-out rows ask to change after training.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Calibration {
    temperature: Option<f64>,
    noise_factor: Option<f64>,
    noise_spread: Option<f64>,
}

impl Calibration {
    /// Puts it into the settings.
    pub(super) fn apply(self, posterior: &mut PosteriorConfig) {
        posterior.temperature = self.temperature;
        posterior.noise_factor = self.noise_factor;
        posterior.noise_spread = self.noise_spread;
    }
}

/// The calibration of a network by rows that it has not seen, and `-log p` of each of these rows with it.
pub(super) fn class_score(
    config: &RunConfig,
    data: &LabelledData<4>,
) -> impl Fn(&Bayesian<ImageClassifier>, &[usize]) -> anyhow::Result<(Calibration, Vec<f64>)> {
    let predictive = predictive(config);
    move |network, held| {
        let examples = data.batch(held);
        let inputs = examples.batch();
        let best = best_factor(|temperature| {
            let scaled = network.clone().with_scaled("output", temperature.recip())?;
            let found = predictive.predict(&scaled, inputs.clone())?;
            let rows = found.probabilities.chunks_exact(found.classes);
            let of_class = |(row, &label): (&[f32], &usize)| -f64::from(row[label].max(LEAST)).ln();
            Ok(rows.zip(examples.labels.0.iter()).map(of_class).collect())
        })?;
        let calibration = Calibration {
            temperature: Some(best.factor),
            ..Calibration::default()
        };
        Ok((calibration, best.losses))
    }
}

/// The same for numbers and counts.
pub(super) fn target_score(
    config: &RunConfig,
    data: &RegressionData<2>,
    likelihood: Likelihood,
) -> impl Fn(&Bayesian<TargetNetwork>, &[usize]) -> anyhow::Result<(Calibration, Vec<f64>)> {
    let predictive = predictive(config);
    // A point has one network, and so one noise.
    let spreads = match config.posterior.inference {
        Inference::Bayesian => SPREADS.map(Some).to_vec(),
        Inference::Point => vec![None],
    };
    move |network, held| {
        let rows = data.batch(held);
        let found = predictive.predict_targets(network, rows.inputs.batch(None))?;
        let losses = |found: &Mixtures| -> anyhow::Result<Vec<f64>> {
            let logarithms = found.log_likelihoods(&rows.targets)?;
            Ok(logarithms.into_iter().map(|log| -log).collect())
        };
        if likelihood == Likelihood::Poisson {
            return Ok((Calibration::default(), losses(&found)?));
        }
        let mut best: Option<(BestFactor, Option<f64>)> = None;
        for &noise_spread in &spreads {
            let spread = spread(&found, noise_spread.unwrap_or(0.0))?;
            let own = best_factor(|factor| {
                let deviations = spread.deviations().iter().map(|own| own * factor);
                let (components, locations) = (spread.components(), spread.locations().to_vec());
                let deviations = deviations.collect();
                losses(&Mixtures::gaussian(components, locations, deviations)?)
            })?;
            if best
                .as_ref()
                .is_none_or(|(least, _)| own.whole < least.whole)
            {
                best = Some((own, noise_spread));
            }
        }
        let (best, noise_spread) = best.expect("a spread is tried");
        let calibration = Calibration {
            noise_factor: Some(best.factor),
            noise_spread,
            ..Calibration::default()
        };
        Ok((calibration, best.losses))
    }
}

/// The predictions of networks whose noise has factors besides: quantiles of the logarithmic normal distribution of this spread, one per network.
fn spread(found: &Mixtures, spread: f64) -> Result<Mixtures, MetricError> {
    let components = found.components();
    let normal = Mixtures::gaussian(1, vec![0.0], vec![1.0])?;
    let quantile = |s: usize| normal.quantile((s as f64 + 0.5) / components as f64);
    let factors = (0..components).map(|s| Ok((spread * quantile(s)?[0]).exp()));
    let factors: Vec<f64> = factors.collect::<Result<_, MetricError>>()?;
    let deviations = found.deviations().iter().zip(factors.iter().cycle());
    let deviations = deviations.map(|(own, factor)| own * factor).collect();
    Mixtures::gaussian(components, found.locations().to_vec(), deviations)
}

fn predictive(config: &RunConfig) -> PredictiveConfig {
    PredictiveConfig::new()
        .with_samples(SAMPLES)
        .with_seed(config.training.seed)
}

/// A factor, the losses of all rows with it, and `sum loss + log^2/(2 deviation^2)`.
struct BestFactor {
    factor: f64,
    losses: Vec<f64>,
    whole: f64,
}

/// The factor with the smallest such sum.
fn best_factor(
    mut losses: impl FnMut(f64) -> anyhow::Result<Vec<f64>>,
) -> anyhow::Result<BestFactor> {
    let mut of = |tenths: i32| {
        let logarithm = f64::from(tenths) / 10.0;
        let losses = losses(logarithm.exp())?;
        let sum: f64 = losses.iter().sum();
        anyhow::Ok(BestFactor {
            factor: logarithm.exp(),
            whole: sum + (logarithm / FACTOR_DEVIATION).powi(2) / 2.0,
            losses,
        })
    };
    let mut best = of(0)?;
    for tenths in -12..=12 {
        let own = of(tenths)?;
        if own.whole < best.whole {
            best = own;
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_average_over_factors_of_the_noise() {
        let (networks, width, noise) = (4000, 0.5, 0.3);
        let found = Mixtures::gaussian(networks, vec![1.0; networks], vec![noise; networks]);
        let wide = spread(&found.unwrap(), width).unwrap();
        for y in [1.0, 1.5, 3.0, 5.0] {
            // The integral over the logarithm, by the trapezoidal rule.
            let (mut integral, step) = (0.0, 1e-3);
            for place in -8000..=8000_i32 {
                let z = f64::from(place) * step;
                let v = noise * (width * z).exp();
                let density = |x: f64, v: f64| {
                    (-0.5 * (x / v).powi(2)).exp() / (v * (2.0 * std::f64::consts::PI).sqrt())
                };
                integral += step * density(z, 1.0) * density(y - 1.0, v);
            }
            let got = wide.log_likelihoods(&[y]).unwrap()[0];
            // Quantiles of few networks leave out the end of the tail.
            assert!(
                (got - integral.ln()).abs() < 0.1 + 0.05 * integral.ln().abs(),
                "{y}: {got} {}",
                integral.ln()
            );
        }
        // A Gaussian of the same noise would say -88 of the last one.
        assert!(wide.log_likelihoods(&[5.0]).unwrap()[0] > -15.0);
    }
}
