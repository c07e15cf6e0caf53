//! Softmax cross-entropy, `sum over rows of -ln softmax(logits)[label]`, for a small number of
//! classes, and its gradient `softmax(logits) - onehot(label)`.
//!
//! `logits` and `gradient` are `[rows, classes]`. The largest logit of a row is subtracted first,
//! so no exponential overflows and the sum is at least one.

use crate::error::{KernelError, expect_len, expect_volume};
use crate::real::Real;
use crate::runtime::chunks::{best_isa, rows_per_chunk, run_all};
use crate::vector::{Kernel, Present, Vector};

/// The sum over the rows, in f64; a mean is this divided by the number of labels.
///
/// ```
/// use circulant_kernels::cross_entropy;
/// let loss = cross_entropy(&[0.0f32, 0.0], 2, &[1], None)?;
/// assert!((loss - 2.0f64.ln()).abs() < 1e-6);
/// # Ok::<(), circulant_kernels::KernelError>(())
/// ```
pub fn cross_entropy<T: Real>(
    logits: &[T],
    classes: usize,
    labels: &[i64],
    gradient: Option<&mut [T]>,
) -> Result<f64, KernelError> {
    if classes == 0 {
        return Err(KernelError::ZeroSize {
            what: "the number of classes",
        });
    }
    expect_volume("logits", logits.len(), &[labels.len(), classes])?;
    if let Some(gradient) = &gradient {
        expect_len("gradient", gradient.len(), logits.len())?;
    }
    check_labels(labels, classes)?;
    let rows = rows_per_chunk(classes);
    let mut gradients = gradient.map(|gradient| gradient.chunks_mut(rows * classes));
    let jobs = logits
        .chunks(rows * classes)
        .zip(labels.chunks(rows))
        .map(|(logits, labels)| CrossEntropyChunk {
            logits,
            labels,
            classes,
            gradient: gradients.as_mut().and_then(Iterator::next),
        });
    let sums = run_all(logits.len(), jobs, |job| {
        T::cross_entropy_chunk(best_isa(), job)
    });
    Ok(sums.iter().sum())
}

/// `Ok` when every label is a class.
pub(crate) fn check_labels(labels: &[i64], classes: usize) -> Result<(), KernelError> {
    let valid = |label: &i64| usize::try_from(*label).is_ok_and(|label| label < classes);
    match labels.iter().position(|label| !valid(label)) {
        None => Ok(()),
        Some(row) => Err(KernelError::Label {
            row,
            label: labels[row],
            classes,
        }),
    }
}

/// Whole rows, with labels that are classes.
pub struct CrossEntropyChunk<'a, T> {
    pub(crate) logits: &'a [T],
    pub(crate) labels: &'a [i64],
    pub(crate) classes: usize,
    pub(crate) gradient: Option<&'a mut [T]>,
}

impl<T: Real> Kernel<T> for CrossEntropyChunk<'_, T> {
    type Output = f64;
    #[inline(always)]
    fn run<V: Vector<Scalar = T>>(self, _: Present<V>) -> f64 {
        let classes = self.classes;
        let mut scratch = Vec::new();
        let exponentials = match self.gradient {
            Some(gradient) => gradient,
            None => {
                scratch.resize(self.logits.len(), T::zero());
                &mut scratch[..]
            }
        };
        let mut total = 0.0;
        let rows = exponentials.chunks_exact_mut(classes);
        for ((row, logits), &label) in rows.zip(self.logits.chunks_exact(classes)).zip(self.labels)
        {
            let largest = largest(logits);
            for (out, &logit) in row.iter_mut().zip(logits) {
                *out = logit - largest;
            }
            total -= row[label as usize].wide();
        }
        // One flat loop: rows are too short for a loop of their own to be vector code.
        for value in exponentials.iter_mut() {
            *value = value.exponential();
        }
        let rows = exponentials.chunks_exact_mut(classes);
        for (row, &label) in rows.zip(self.labels) {
            let mut sum = 0.0;
            for value in row.iter() {
                sum += value.wide();
            }
            total += sum.ln();
            let inverse = T::of(1.0 / sum);
            for value in row.iter_mut() {
                *value = *value * inverse;
            }
            row[label as usize] = row[label as usize] - T::one();
        }
        total
    }
}

/// Whatever it is where there is a NaN: the sum of the row is NaN then.
#[inline(always)]
fn largest<T: Real>(logits: &[T]) -> T {
    let mut largest = logits[0];
    for &logit in &logits[1..] {
        if logit > largest {
            largest = logit;
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::normal::standard_normal;
    use crate::random::philox::{NoiseKey, uniform_u64};

    /// Rounding of an f32 row.
    const RELATIVE: f64 = 1e-6;
    /// Central differences of the f64 loss, relative to a gradient of order one.
    const DIFFERENCES: f64 = 1e-8;

    fn problem<T: Real>(rows: usize, classes: usize) -> (Vec<T>, Vec<i64>) {
        let key = NoiseKey { seed: 1, stream: 2 };
        let mut logits = vec![T::zero(); rows * classes];
        standard_normal(key, &mut logits);
        for logit in &mut logits {
            *logit = *logit * T::of(5.0);
        }
        let label = |row| (uniform_u64(key, row) % classes as u64) as i64;
        (logits, (0..rows as u64).map(label).collect())
    }

    fn naive(logits: &[f64], classes: usize, labels: &[i64]) -> f64 {
        let rows = logits.chunks(classes).zip(labels);
        rows.map(|(row, &label)| {
            let sum: f64 = row.iter().map(|x| x.exp()).sum();
            -(row[label as usize].exp() / sum).ln()
        })
        .sum()
    }

    #[test]
    fn the_loss_is_the_naive_one() {
        for (rows, classes) in [(0, 3), (1, 1), (7, 10), (512, 10), (3000, 10), (5, 200)] {
            let (logits, labels) = problem::<f64>(rows, classes);
            let expected = naive(&logits, classes, &labels);
            let loss = cross_entropy(&logits, classes, &labels, None).unwrap();
            assert!((loss - expected).abs() <= 1e-12 * (1.0 + expected));
            let (logits, labels) = problem::<f32>(rows, classes);
            let wide: Vec<f64> = logits.iter().map(|x| f64::from(*x)).collect();
            let expected = naive(&wide, classes, &labels);
            let loss = cross_entropy(&logits, classes, &labels, None).unwrap();
            assert!((loss - expected).abs() <= RELATIVE * expected);
        }
    }

    #[test]
    fn the_gradient_is_that_of_the_loss() {
        let (rows, classes) = (5, 7);
        let (mut logits, labels) = problem::<f64>(rows, classes);
        let mut gradient = vec![0.0; logits.len()];
        let with = cross_entropy(&logits, classes, &labels, Some(&mut gradient)).unwrap();
        assert_eq!(
            with,
            cross_entropy(&logits, classes, &labels, None).unwrap()
        );
        for i in 0..logits.len() {
            let (old, step) = (logits[i], 1e-5);
            logits[i] = old + step;
            let above = cross_entropy(&logits, classes, &labels, None).unwrap();
            logits[i] = old - step;
            let below = cross_entropy(&logits, classes, &labels, None).unwrap();
            logits[i] = old;
            assert!((gradient[i] - (above - below) / (2.0 * step)).abs() <= DIFFERENCES);
        }
    }

    #[test]
    fn the_gradient_of_f32_is_that_of_f64() {
        for (rows, classes) in [(512, 10), (4000, 10), (3, 1000)] {
            let (logits, labels) = problem::<f32>(rows, classes);
            let mut gradient = vec![0.0; logits.len()];
            cross_entropy(&logits, classes, &labels, Some(&mut gradient)).unwrap();
            let wide: Vec<f64> = logits.iter().map(|x| f64::from(*x)).collect();
            let mut exact = vec![0.0; wide.len()];
            cross_entropy(&wide, classes, &labels, Some(&mut exact)).unwrap();
            for (g, exact) in gradient.iter().zip(&exact) {
                assert!((f64::from(*g) - exact).abs() <= RELATIVE);
            }
        }
    }

    #[test]
    fn large_logits_do_not_overflow_and_nan_is_seen() {
        let mut gradient = [0.0f32; 2];
        let loss = cross_entropy(&[1e30, -1e30], 2, &[0], Some(&mut gradient)).unwrap();
        assert_eq!((loss, gradient), (0.0, [0.0, 0.0]));
        assert!(cross_entropy(&[1e30f32, -1e30], 2, &[1], None).unwrap() > 1e30);
        for nan in [
            [f32::NAN, 0.0, 1.0],
            [0.0, f32::NAN, 1.0],
            [0.0, 1.0, f32::NAN],
        ] {
            assert!(cross_entropy(&nan, 3, &[0], None).unwrap().is_nan());
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let error = cross_entropy(&[0.0f32; 6], 3, &[0, 3], None).unwrap_err();
        let text = error.to_string();
        assert_eq!(text, "label 3 of row 1: expected a class in 0..3");
        assert!(cross_entropy(&[0.0f32; 6], 3, &[-1, 0], None).is_err());
        assert!(cross_entropy(&[0.0f32; 6], 3, &[0], None).is_err());
        assert!(cross_entropy::<f32>(&[], 0, &[], None).is_err());
        assert!(cross_entropy(&[0.0f32; 6], 3, &[0, 0], Some(&mut [0.0; 3])).is_err());
    }
}
