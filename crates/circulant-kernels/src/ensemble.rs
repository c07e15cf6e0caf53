//! What the members of an ensemble say together, per input:
//! `p = (1/S) sum_s softmax(z_s)`, its entropy `H(p)`, and the mean entropy `(1/S) sum_s H(softmax(z_s))`.

use rayon::prelude::*;

use crate::error::{KernelError, expect_len};

/// Inputs per task.
const ROWS: usize = 64;

/// The statistics of `logits: [members, rows, classes]`, written to `probabilities: [rows, classes]`,
/// `predictive_entropy: [rows]` and `expected_entropy: [rows]`, in nats.
///
/// ```
/// use circulant_kernels::ensemble_statistics;
///
/// // Two members, sure of opposite classes: together they know nothing, each of them is certain.
/// let (mut p, mut total, mut expected) = ([0.0; 2], [0.0], [0.0]);
/// ensemble_statistics(&[50.0, 0.0, 0.0, 50.0], 1, 2, &mut p, &mut total, &mut expected)?;
/// assert!((p[0] - 0.5).abs() < 1e-6 && (total[0] - 2.0_f32.ln()).abs() < 1e-6 && expected[0] < 1e-6);
/// # Ok::<(), circulant_kernels::KernelError>(())
/// ```
pub fn ensemble_statistics(
    logits: &[f32],
    rows: usize,
    classes: usize,
    probabilities: &mut [f32],
    predictive_entropy: &mut [f32],
    expected_entropy: &mut [f32],
) -> Result<(), KernelError> {
    expect_len("the probabilities", probabilities.len(), rows * classes)?;
    expect_len("the predictive entropies", predictive_entropy.len(), rows)?;
    expect_len("the expected entropies", expected_entropy.len(), rows)?;
    if rows * classes == 0 || logits.is_empty() || !logits.len().is_multiple_of(rows * classes) {
        return Err(KernelError::Multiple {
            what: "the logits of the members",
            unit: rows * classes,
            got: logits.len(),
        });
    }
    let one = |(row, ((p, predictive), expected)): (usize, ((&mut [f32], &mut f32), &mut f32))| {
        let members = logits
            .chunks_exact(rows * classes)
            .map(|member| &member[row * classes..][..classes]);
        *expected = average(members, p);
        *predictive = p.iter().map(|&p| entropy_term(p)).sum();
    };
    probabilities
        .par_chunks_mut(classes)
        .zip(predictive_entropy)
        .zip(expected_entropy)
        .enumerate()
        .with_min_len(ROWS)
        .for_each(one);
    Ok(())
}

/// `-p log p`, 0 at 0.
fn entropy_term(p: f32) -> f32 {
    if p == 0.0 { 0.0 } else { -p * p.ln() }
}

/// Writes the mean softmax to `p` and returns the mean entropy. With `e_k = exp(z_k - max)` and `Z = sum e_k`,
/// `H = log Z - sum e_k (z_k - max)/Z`: one logarithm per member.
fn average<'a>(members: impl Iterator<Item = &'a [f32]>, p: &mut [f32]) -> f32 {
    p.fill(0.0);
    let (mut count, mut entropy) = (0, 0.0);
    let mut weights = vec![0.0_f32; p.len()];
    for logits in members {
        // A plain comparison would pass over NaN, and the result would look like a number.
        let top = logits.iter().fold(f32::NEG_INFINITY, |top, &z| {
            if z > top || z.is_nan() { z } else { top }
        });
        let (mut sum, mut moment) = (0.0, 0.0);
        for (weight, &z) in weights.iter_mut().zip(logits) {
            *weight = (z - top).exp();
            sum += *weight;
            moment += *weight * (z - top);
        }
        for (p, weight) in p.iter_mut().zip(&weights) {
            *p += weight / sum;
        }
        entropy += sum.ln() - moment / sum;
        count += 1;
    }
    p.iter_mut().for_each(|p| *p /= count as f32);
    entropy / count as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Single precision sums of a few dozen terms.
    const TOLERANCE: f64 = 1e-5;

    #[test]
    fn equals_the_definition_in_f64() {
        let (members, rows, classes) = (7, 130, 10);
        let logits: Vec<f32> = (0..members * rows * classes)
            .map(|i| ((i * 7919 + 3) % 1009) as f32 / 60.0 - 8.0)
            .collect();
        let mut p = vec![0.0; rows * classes];
        let (mut predictive, mut expected) = (vec![0.0; rows], vec![0.0; rows]);
        ensemble_statistics(
            &logits,
            rows,
            classes,
            &mut p,
            &mut predictive,
            &mut expected,
        )
        .expect("sizes fit");
        let entropy = |p: &[f64]| -> f64 { p.iter().map(|p| -p * p.ln()).sum() };
        for row in 0..rows {
            let mut mean = vec![0.0; classes];
            let mut mean_entropy = 0.0;
            for member in 0..members {
                let z = &logits[(member * rows + row) * classes..][..classes];
                let weights: Vec<f64> = z.iter().map(|&z| f64::from(z).exp()).collect();
                let sum: f64 = weights.iter().sum();
                let softmax: Vec<f64> = weights.iter().map(|w| w / sum).collect();
                mean_entropy += entropy(&softmax) / members as f64;
                mean.iter_mut()
                    .zip(&softmax)
                    .for_each(|(m, p)| *m += p / members as f64);
            }
            for (got, expected) in p[row * classes..].iter().zip(&mean) {
                assert!((f64::from(*got) - expected).abs() < TOLERANCE);
            }
            assert!((f64::from(predictive[row]) - entropy(&mean)).abs() < TOLERANCE);
            assert!((f64::from(expected[row]) - mean_entropy).abs() < TOLERANCE);
        }
    }

    #[test]
    fn not_a_number_stays_visible() {
        let (mut p, mut predictive, mut expected) = ([0.0; 2], [0.0], [0.0]);
        let logits = [0.0, f32::NAN];
        ensemble_statistics(&logits, 1, 2, &mut p, &mut predictive, &mut expected).expect("fits");
        assert!(p[0].is_nan() && expected[0].is_nan());
    }

    #[test]
    fn wrong_sizes_are_named() {
        let (mut p, mut predictive, mut expected) = ([0.0; 2], [0.0], [0.0]);
        let error = ensemble_statistics(&[0.0; 3], 1, 2, &mut p, &mut predictive, &mut expected);
        assert!(matches!(
            error,
            Err(KernelError::Multiple {
                unit: 2,
                got: 3,
                ..
            })
        ));
    }
}
