//! A temperature for the read-out, by the likelihood of held-out data.
//!
//! All logits of all networks are divided by `T`, `p = mean over draws of softmax(z/T)`, and `T` minimises the mean of
//! `-log p` of the true class. Margins and Lipschitz bound of one network are divided alike, so its class and its certified
//! radii stay as they are; the average of several softmaxes can change its class, since `T` weighs its networks anew.

use super::{BayesError, Bayesian, Network, Predictions};
use crate::metrics::{MetricError, negative_log_likelihood};

/// Temperatures that are looked at.
const RANGE: [f64; 2] = [0.05, 20.0];
/// The relative width at which the search stops.
const TOLERANCE: f64 = 1e-3;
/// `(sqrt(5) - 1)/2`.
const GOLDEN: f64 = 0.618_033_988_749_894_8;

/// The temperature of held-out data with the given labels, and the network with it in the parameters below `readout`, a linear
/// layer whose outputs are the logits. `predict` gives the predictions of a network on the held-out data.
///
/// ```
/// use burn::tensor::Tensor;
/// use circulant::bayes::{BayesError, BayesianConfig, PredictiveConfig, calibrate};
/// use circulant::models::{HiddenKind, ImageClassifierConfig};
///
/// let device = circulant::cpu();
/// let config = ImageClassifierConfig::new(HiddenKind::Dense).with_image([1, 1, 4]).with_classes(2);
/// let network = BayesianConfig::new().init(config.init(&device))?;
/// let inputs = Tensor::<2>::ones([3, 4], &device); // yours, and not those of training
/// let predictive = PredictiveConfig::new().with_samples(4);
/// let (temperature, network) = calibrate(&network, "output", &[0, 1, 0], |network| {
///     predictive.predict(network, inputs.clone())
/// })?;
/// assert!(temperature > 0.0);
/// # let _ = network;
/// # Ok::<(), BayesError>(())
/// ```
pub fn calibrate<M: Network, E: From<BayesError> + From<MetricError>>(
    network: &Bayesian<M>,
    readout: &str,
    labels: &[usize],
    mut predict: impl FnMut(&Bayesian<M>) -> Result<Predictions, E>,
) -> Result<(f64, Bayesian<M>), E> {
    let at = |temperature: f64| network.clone().with_scaled(readout, temperature.recip());
    let temperature = minimum(RANGE, |temperature| {
        let predictions = predict(&at(temperature)?)?;
        let probabilities = predictions.class_probabilities()?;
        Ok::<f64, E>(negative_log_likelihood(&probabilities, labels)?)
    })?;
    Ok((temperature, at(temperature)?))
}

/// Golden section over the logarithm.
pub(crate) fn minimum<E>(
    [low, high]: [f64; 2],
    mut loss: impl FnMut(f64) -> Result<f64, E>,
) -> Result<f64, E> {
    let mut f = |logarithm: f64| loss(logarithm.exp());
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
    Ok(f64::midpoint(low, high).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_is_found() {
        for place in [0.06_f64, 0.7, 1.0, 3.3, 19.0] {
            let found = minimum::<()>(RANGE, |x| Ok((x.ln() - place.ln()).powi(2))).unwrap();
            assert!((found / place - 1.0).abs() < TOLERANCE, "{found} {place}");
        }
    }
}
