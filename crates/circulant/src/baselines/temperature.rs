//! Temperature scaling of one network's logits.

use crate::bayes::minimum;
use crate::metrics::{Label, Logits, MetricError, Real, negative_log_likelihood_of_logits};

/// Temperatures that are looked at.
const RANGE: [f64; 2] = [0.05, 20.0];

/// The temperature `T` for which `softmax(z/T)` has the smallest negative log likelihood on held-out data.
///
/// ```
/// use circulant::baselines::temperature;
/// use circulant::metrics::Logits;
///
/// // Too sure of itself: right three times out of four.
/// let logits = [4.0, 0.0, 4.0, 0.0, 4.0, 0.0, 4.0, 0.0];
/// let found = temperature(&Logits::new(&logits, 2)?, &[0, 0, 0, 1])?;
/// // A probability of 3/4 belongs to a margin of log 3.
/// assert!((found - 4.0 / 3.0_f64.ln()).abs() < 0.01);
/// # Ok::<(), circulant::metrics::MetricError>(())
/// ```
pub fn temperature<T: Real, L: Label>(
    logits: &Logits<'_, T>,
    labels: &[L],
) -> Result<f64, MetricError> {
    minimum(RANGE, |temperature| {
        let scaled: Vec<f64> = logits
            .values()
            .iter()
            .map(|&z| z.into() / temperature)
            .collect();
        negative_log_likelihood_of_logits(&Logits::new(&scaled, logits.classes())?, labels)
    })
}
