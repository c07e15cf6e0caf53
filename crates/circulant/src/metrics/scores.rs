//! One number per row that tells in-distribution inputs from others.
//!
//! | score | formula | out-of-distribution inputs have |
//! | --- | --- | --- |
//! | entropy | `H = -sum_k p_k ln p_k`, `0 ln 0 = 0` | high |
//! | mutual information | `H(mean_s p_s) - mean_s H(p_s)` | high |
//! | maximum probability | `max_k p_k` | low |
//! | energy | `-T ln sum_k exp(f_k / T)` | high |
//!
//! The functions of [`super::ood`](super::OodScores) want familiar inputs high: negate the high ones.

use rayon::prelude::*;

use super::MetricError;
use super::probabilities::{Logits, Probabilities, Real, log_sum_exp, top};
use super::rows::finite;

/// `H = -sum_k p_k ln p_k` per row in nats, cut to `[0, ln K]` against rounding.
///
/// ```
/// use circulant::metrics::{Probabilities, entropies};
///
/// let probabilities = Probabilities::new(&[1.0_f32, 0.0, 0.5, 0.5], 2)?;
/// assert_eq!(entropies(&probabilities), [0.0, 2.0_f64.ln()]);
/// # Ok::<(), circulant::metrics::MetricError>(())
/// ```
pub fn entropies<T: Real>(probabilities: &Probabilities<'_, T>) -> Vec<f64> {
    let largest = (probabilities.classes() as f64).ln();
    probabilities.per_row(|row| entropy(row.iter().map(|&p| p.into())).clamp(0.0, largest))
}

fn entropy(row: impl Iterator<Item = f64>) -> f64 {
    // `0 -` rather than a sign, so that certainty is 0 and not -0.
    0.0 - row
        .map(|p| if p > 0.0 { p * p.ln() } else { 0.0 })
        .sum::<f64>()
}

/// `max_k p_k` per row, at most 1.
pub fn max_probabilities<T: Real>(probabilities: &Probabilities<'_, T>) -> Vec<f64> {
    probabilities.per_row(|row| top(row).1.min(1.0))
}

/// `E = -T ln sum_k exp(f_k / T)` per row, `T > 0`; 1 is usual (Liu and others, 2020).
///
/// ```
/// use circulant::metrics::{Logits, energies};
///
/// let logits = Logits::new(&[0.0_f32, 0.0], 2)?;
/// assert_eq!(energies(&logits, 1.0)?, [-2.0_f64.ln()]);
/// # Ok::<(), circulant::metrics::MetricError>(())
/// ```
pub fn energies<T: Real>(
    logits: &Logits<'_, T>,
    temperature: f64,
) -> Result<Vec<f64>, MetricError> {
    if !(temperature.is_finite() && temperature > 0.0) {
        return Err(MetricError::NotPositive {
            what: "the temperature",
            got: temperature,
        });
    }
    let energies = logits.per_row(|row| -log_sum_exp(row, temperature));
    // Logits near the largest f64 overflow; that is an error, not an energy.
    finite("the energies", &energies)
}

/// `I = H((1/S) sum_s p_s) - (1/S) sum_s H(p_s)` per input in nats, cut to `[0, ln K]` against rounding.
///
/// The rows are `[samples, inputs]`: all inputs under the first posterior sample, then all under the
/// second, and so on.
///
/// ```
/// use circulant::metrics::{Probabilities, mutual_information};
///
/// // Two samples that are each certain and contradict each other, for one input.
/// let probabilities = Probabilities::new(&[1.0_f32, 0.0, 0.0, 1.0], 2)?;
/// assert_eq!(mutual_information(&probabilities, 2)?, [2.0_f64.ln()]);
/// # Ok::<(), circulant::metrics::MetricError>(())
/// ```
pub fn mutual_information<T: Real>(
    probabilities: &Probabilities<'_, T>,
    samples: usize,
) -> Result<Vec<f64>, MetricError> {
    let inputs = inputs(probabilities, samples)?;
    let classes = probabilities.classes();
    let largest = (classes as f64).ln();
    let values = probabilities.values();
    let of_input = |mean: &mut Vec<f64>, input: usize| {
        mean.fill(0.0);
        let mut expected = 0.0;
        for sample in 0..samples {
            let row = &values[(sample * inputs + input) * classes..][..classes];
            expected += entropy(row.iter().map(|&p| p.into()));
            for (mean, &p) in mean.iter_mut().zip(row) {
                *mean += p.into();
            }
        }
        let samples = samples as f64;
        let predictive = entropy(mean.iter().map(|sum| sum / samples));
        (predictive - expected / samples).clamp(0.0, largest)
    };
    Ok((0..inputs)
        .into_par_iter()
        .with_min_len(64)
        .map_init(|| vec![0.0; classes], of_input)
        .collect())
}

/// `(1/S) sum_s p_s`, `[inputs, classes]` in row-major order, from rows `[samples, inputs]` as in
/// [`mutual_information`].
pub fn mean_probabilities<T: Real>(
    probabilities: &Probabilities<'_, T>,
    samples: usize,
) -> Result<Vec<f64>, MetricError> {
    let size = inputs(probabilities, samples)? * probabilities.classes();
    let mut mean = vec![0.0; size];
    for sample in probabilities.values().chunks_exact(size) {
        for (mean, &p) in mean.iter_mut().zip(sample) {
            *mean += p.into() / samples as f64;
        }
    }
    Ok(mean)
}

fn inputs<T: Real>(
    probabilities: &Probabilities<'_, T>,
    samples: usize,
) -> Result<usize, MetricError> {
    let rows = probabilities.rows();
    if samples == 0 {
        return Err(MetricError::Zero {
            what: "posterior samples",
        });
    }
    if !rows.is_multiple_of(samples) {
        return Err(MetricError::Samples { samples, rows });
    }
    Ok(rows / samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_settings_are_named() {
        let logits = Logits::new(&[0.0, 1.0], 2).expect("valid");
        for got in [0.0, -1.0, f64::INFINITY, f64::NAN] {
            assert!(energies(&logits, got).is_err(), "{got}");
        }
        let three = Probabilities::new(&[1.0, 0.0, 1.0, 0.0, 1.0, 0.0], 2).expect("valid");
        let error = MetricError::Samples {
            samples: 2,
            rows: 3,
        };
        assert_eq!(mutual_information(&three, 2), Err(error.clone()));
        assert_eq!(mean_probabilities(&three, 2), Err(error));
        let zero = MetricError::Zero {
            what: "posterior samples",
        };
        assert_eq!(mutual_information(&three, 0), Err(zero));
    }

    #[test]
    fn samples_that_agree_have_no_mutual_information() {
        let row = [0.3_f32, 0.6, 0.1];
        let probabilities = row.repeat(8);
        let probabilities = Probabilities::new(&probabilities, 3).expect("valid");
        let information = mutual_information(&probabilities, 4).expect("valid");
        assert_eq!(information.len(), 2);
        assert!(information.iter().all(|&information| information < 1e-15));
        let mean = mean_probabilities(&probabilities, 4).expect("valid");
        let expected = row.repeat(2);
        assert!(
            mean.iter()
                .zip(expected)
                .all(|(a, b)| (a - f64::from(b)).abs() < 1e-15)
        );
    }

    #[test]
    fn huge_logits_do_not_overflow() {
        let logits = Logits::new(&[1e300, -1e300, 1e300, 1e300], 2).expect("valid");
        let energies = energies(&logits, 0.5).expect("finite");
        assert_eq!(energies, [-1e300, -1e300]);
        assert!(super::energies(&logits, 1e308).is_ok());
    }

    #[test]
    fn the_largest_probability_is_the_score() {
        let probabilities = Probabilities::new(&[0.25, 0.75, 1.0, 0.0], 2).expect("valid");
        assert_eq!(max_probabilities(&probabilities), [0.75, 1.0]);
    }
}
