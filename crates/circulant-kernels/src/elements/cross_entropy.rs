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
