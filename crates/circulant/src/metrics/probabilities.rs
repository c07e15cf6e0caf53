//! Views of row-major matrices `[rows, classes]`, checked once: class probabilities and logits.

use std::fmt::{Debug, Display};
use std::ops::{Deref, Range};

use super::MetricError;
use super::rows::{first, per_row};

/// How far the probabilities of a row may be from one in sum. A softmax over `K` classes in f32 is off
/// by up to `K * 2^-24`: 1.2e-5 for 200 classes, 6e-5 for 1000. What is worth finding, such as logits
/// or percentages, is off by far more.
pub const SUM_TOLERANCE: f64 = 1e-4;

/// The values that metrics take: `f32` and `f64`. All arithmetic is in `f64`.
pub trait Real: Copy + Debug + Send + Sync + Into<f64> {}

impl Real for f32 {}
impl Real for f64 {}

/// A class index of any integer type, signed or not.
pub trait Label: Copy + Display + Send + Sync + TryInto<usize> {}

impl<T: Copy + Display + Send + Sync + TryInto<usize>> Label for T {}

/// Class probabilities `[rows, classes]`, row-major: finite, at least 0, and in every row with sum one
/// within [`SUM_TOLERANCE`].
///
/// ```
/// use circulant::metrics::Probabilities;
///
/// let probabilities = Probabilities::new(&[0.9_f32, 0.1, 0.4, 0.6], 2)?;
/// assert_eq!(probabilities.rows(), 2);
/// assert!(Probabilities::new(&[3.0_f32, -1.0], 2).is_err());
/// # Ok::<(), circulant::metrics::MetricError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Probabilities<'a, T>(Rows<'a, T>);

/// Logits `[rows, classes]`, row-major and finite.
#[derive(Debug, Clone, Copy)]
pub struct Logits<'a, T>(Rows<'a, T>);

/// A row-major matrix `[rows, classes]`.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a, T> {
    values: &'a [T],
    classes: usize,
}

impl<'a, T> Deref for Probabilities<'a, T> {
    type Target = Rows<'a, T>;

    fn deref(&self) -> &Rows<'a, T> {
        &self.0
    }
}

impl<'a, T> Deref for Logits<'a, T> {
    type Target = Rows<'a, T>;

    fn deref(&self) -> &Rows<'a, T> {
        &self.0
    }
}

impl<'a, T: Real> Rows<'a, T> {
    fn new(values: &'a [T], classes: usize, what: &'static str) -> Result<Self, MetricError> {
        if classes == 0 {
            return Err(MetricError::Zero { what: "classes" });
        }
        if values.is_empty() {
            return Err(MetricError::Empty { what });
        }
        if !values.len().is_multiple_of(classes) {
            let values = values.len();
            return Err(MetricError::NotWholeRows { values, classes });
        }
        Ok(Self { values, classes })
    }

    /// The number of rows, at least 1.
    pub fn rows(&self) -> usize {
        self.values.len() / self.classes
    }

    /// The number of classes, at least 1.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// All values in row-major order.
    pub fn values(&self) -> &'a [T] {
        self.values
    }

    pub(super) fn rows_in(
        &self,
        range: Range<usize>,
    ) -> impl Iterator<Item = &'a [T]> + use<'a, T> {
        self.values[range.start * self.classes..range.end * self.classes].chunks_exact(self.classes)
    }

    pub(super) fn per_row(&self, of_row: impl Fn(&[T]) -> f64 + Sync) -> Vec<f64> {
        per_row(self.values, self.classes, of_row)
    }

    /// One checked class per row.
    pub(crate) fn check_labels<L: Label>(&self, labels: &[L]) -> Result<Vec<usize>, MetricError> {
        check_labels(labels, self.rows(), self.classes)
    }
}

impl<'a, T: Real> Probabilities<'a, T> {
    /// Checks `values`, row after row.
    pub fn new(values: &'a [T], classes: usize) -> Result<Self, MetricError> {
        let this = Self(Rows::new(values, classes, "the probabilities")?);
        match first(this.rows(), |range| this.first_bad(range)) {
            Some(error) => Err(error),
            None => Ok(this),
        }
    }

    fn first_bad(&self, range: Range<usize>) -> Option<MetricError> {
        for (row, values) in range.clone().zip(self.rows_in(range)) {
            let mut sum = 0.0;
            let mut negative = false;
            for &value in values {
                let value: f64 = value.into();
                sum += value;
                negative |= value < 0.0;
            }
            // NaN and infinity are in the sum, and no part of a good sum of positive numbers exceeds it.
            let normalised = (sum - 1.0).abs() <= SUM_TOLERANCE;
            if normalised && !negative {
                continue;
            }
            let wrong = |&value: &T| !(0.0..=1.0 + SUM_TOLERANCE).contains(&value.into());
            return Some(match values.iter().position(wrong) {
                Some(class) => MetricError::Probability {
                    row,
                    class,
                    got: values[class].into(),
                },
                None => MetricError::NotNormalised { row, sum },
            });
        }
        None
    }
}

impl<'a, T: Real> Logits<'a, T> {
    /// Checks `values`, row after row.
    pub fn new(values: &'a [T], classes: usize) -> Result<Self, MetricError> {
        let this = Self(Rows::new(values, classes, "the logits")?);
        let bad = first(this.rows(), |range| {
            let start = range.start * classes;
            let part = &values[start..range.end * classes];
            let position = part.iter().position(|&x| !x.into().is_finite())?;
            Some(start + position)
        });
        match bad {
            None => Ok(this),
            Some(position) => Err(MetricError::Logit {
                row: position / classes,
                class: position % classes,
                got: values[position].into(),
            }),
        }
    }

    /// `softmax(f)_k = exp(f_k) / sum_j exp(f_j)` of every row, in row-major order.
    ///
    /// ```
    /// use circulant::metrics::{Logits, Probabilities};
    ///
    /// let softmax = Logits::new(&[0.0_f32, 0.0, 500.0, -500.0], 2)?.softmax();
    /// assert_eq!(softmax, [0.5, 0.5, 1.0, 0.0]);
    /// let probabilities = Probabilities::new(&softmax, 2)?;
    /// # Ok::<(), circulant::metrics::MetricError>(())
    /// ```
    pub fn softmax(&self) -> Vec<f64> {
        let shift = self.per_row(|row| log_sum_exp(row, 1.0));
        let rows = self.values.chunks_exact(self.classes).zip(shift);
        rows.flat_map(|(row, shift)| row.iter().map(move |&x| (x.into() - shift).exp()))
            .collect()
    }
}

pub(crate) fn check_labels<L: Label>(
    labels: &[L],
    rows: usize,
    classes: usize,
) -> Result<Vec<usize>, MetricError> {
    if labels.len() != rows {
        return Err(MetricError::Length {
            what: "the labels",
            expected: rows,
            got: labels.len(),
        });
    }
    let class = |(row, &label): (usize, &L)| {
        let class: Option<usize> = label.try_into().ok();
        class
            .filter(|&class| class < classes)
            .ok_or_else(|| MetricError::Label {
                row,
                label: label.to_string(),
                classes,
            })
    };
    labels.iter().enumerate().map(class).collect()
}

/// `T log sum_k exp(f_k / T)`, relative to the largest so that nothing overflows.
pub(super) fn log_sum_exp<T: Real>(row: &[T], temperature: f64) -> f64 {
    let largest = row
        .iter()
        .fold(f64::NEG_INFINITY, |top, &x| top.max(x.into()));
    let sum: f64 = row
        .iter()
        .map(|&x| ((x.into() - largest) / temperature).exp())
        .sum();
    largest + temperature * sum.ln()
}

/// The first of the largest values and where it is, as `argmax` of numpy.
pub(super) fn top<T: Real>(row: &[T]) -> (usize, f64) {
    let mut best = (0, row[0].into());
    for (class, &value) in row.iter().enumerate().skip(1) {
        let value = value.into();
        if value > best.1 {
            best = (class, value);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_matrices_are_named() {
        let error = |values: &[f64], classes| Probabilities::new(values, classes).unwrap_err();
        assert_eq!(
            error(&[], 2),
            MetricError::Empty {
                what: "the probabilities"
            }
        );
        assert_eq!(error(&[1.0], 0), MetricError::Zero { what: "classes" });
        let whole = MetricError::NotWholeRows {
            values: 3,
            classes: 2,
        };
        assert_eq!(error(&[0.5, 0.5, 1.0], 2), whole);
        let sum = MetricError::NotNormalised { row: 1, sum: 0.75 };
        assert_eq!(error(&[0.5, 0.5, 0.5, 0.25], 2), sum);
        for got in [-0.25, 1.25, f64::INFINITY, f64::NEG_INFINITY] {
            let bad = MetricError::Probability {
                row: 1,
                class: 0,
                got,
            };
            assert_eq!(error(&[0.5, 0.5, got, 1.0 - got], 2), bad, "{got}");
        }
        let message = error(&[0.5, 0.5, 0.5, f64::NAN], 2).to_string();
        assert!(
            message.contains("row 1, class 1") && message.contains("NaN"),
            "{message}"
        );
    }

    #[test]
    fn rounding_of_single_precision_is_accepted() {
        let logits: Vec<f32> = (0..200).map(|k| (k as f32 * 0.7).sin() * 4.0).collect();
        let exponentials: Vec<f32> = logits.iter().map(|x| x.exp()).collect();
        let sum: f32 = exponentials.iter().sum();
        let softmax: Vec<f32> = exponentials.iter().map(|x| x / sum).collect();
        assert!(Probabilities::new(&softmax, 200).is_ok());
        assert!(Probabilities::new(&[1.0_f32 + f32::EPSILON, 0.0], 2).is_ok());
    }

    #[test]
    fn wrong_logits_are_named() {
        let error = |values: &[f32], classes| Logits::new(values, classes).unwrap_err();
        assert_eq!(error(&[], 2), MetricError::Empty { what: "the logits" });
        assert_eq!(error(&[1.0], 0), MetricError::Zero { what: "classes" });
        let got = f64::INFINITY;
        let bad = MetricError::Logit {
            row: 1,
            class: 1,
            got,
        };
        assert_eq!(error(&[0.0, 0.0, 0.0, f32::INFINITY], 2), bad);
        assert!(
            error(&[f32::NAN, 0.0], 2)
                .to_string()
                .contains("row 0, class 0")
        );
    }

    #[test]
    fn wrong_labels_are_named() {
        let probabilities = Probabilities::new(&[0.5, 0.5, 1.0, 0.0], 2).expect("valid");
        let bad = |label: &str| MetricError::Label {
            row: 1,
            label: label.into(),
            classes: 2,
        };
        assert_eq!(probabilities.check_labels(&[0_i64, -1]), Err(bad("-1")));
        assert_eq!(probabilities.check_labels(&[0_u8, 2]), Err(bad("2")));
        assert_eq!(probabilities.check_labels(&[0_usize, 1]), Ok(vec![0, 1]));
        let length = MetricError::Length {
            what: "the labels",
            expected: 2,
            got: 1,
        };
        assert_eq!(probabilities.check_labels(&[0_u32]), Err(length));
    }

    #[test]
    fn the_first_of_equal_probabilities_wins() {
        assert_eq!(top(&[0.2_f32, 0.4, 0.4]).0, 1);
        assert_eq!(top(&[0.5, 0.5]).0, 0);
    }
}
