//! A temperature for the read-out, by the likelihood of held-out data.
//!
//! All logits of all networks are divided by `T`, `p = mean over draws of softmax(z/T)`, and `T` minimises the mean of
//! `-log p` of the true class. Margins and Lipschitz bound of one network are divided alike, so its class and its certified
//! radii stay as they are; the average of several softmaxes can change its class, since `T` weighs its networks anew.

use circulant::bayes::Bayesian;
use circulant::models::ImageClassifier;

use super::evaluation::{Sampling, class_metrics, labels_of, probabilities};
use circulant_data::{ImageSet, Normalisation};

/// Temperatures that are looked at.
const RANGE: [f64; 2] = [0.05, 20.0];
/// The relative width at which the search stops.
const TOLERANCE: f64 = 1e-3;
/// `(sqrt(5) - 1)/2`.
const GOLDEN: f64 = 0.618_033_988_749_894_8;

/// The temperature, and the network with it in its read-out.
pub fn calibrate(
    network: &Bayesian<ImageClassifier>,
    held_out: &ImageSet,
    normalisation: &Normalisation,
    sampling: &Sampling,
) -> anyhow::Result<(f64, Bayesian<ImageClassifier>)> {
    let labels = labels_of(held_out)?;
    let loss = |temperature: f64| -> anyhow::Result<f64> {
        let network = network.clone().with_scaled("output", temperature.recip())?;
        let predictions = sampling.predict(&network, held_out, normalisation, "calibrating")?;
        Ok(class_metrics(&probabilities(&predictions)?, &labels)?.0.nll)
    };
    let temperature = minimum(RANGE, |logarithm| loss(logarithm.exp()))?;
    let network = network.clone().with_scaled("output", temperature.recip())?;
    Ok((temperature, network))
}

/// Golden section over the logarithm.
fn minimum(
    [low, high]: [f64; 2],
    mut f: impl FnMut(f64) -> anyhow::Result<f64>,
) -> anyhow::Result<f64> {
    let (mut low, mut high) = (low.ln(), high.ln());
    let mut inner = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)];
    let mut values = [f(inner[0])?, f(inner[1])?];
    while high - low > TOLERANCE {
        if values[0] <= values[1] {
            high = inner[1];
            inner = [high - GOLDEN * (high - low), inner[0]];
            values = [f(inner[0])?, values[0]];
        } else {
            low = inner[0];
            inner = [inner[1], low + GOLDEN * (high - low)];
            values = [values[1], f(inner[1])?];
        }
    }
    Ok(((low + high) / 2.0).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_is_found() {
        for place in [0.06_f64, 0.7, 1.0, 3.3, 19.0] {
            let found = minimum(RANGE, |x| Ok((x - place.ln()).powi(2))).unwrap();
            assert!((found / place - 1.0).abs() < TOLERANCE, "{found} {place}");
        }
    }
}
