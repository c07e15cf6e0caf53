//! How well does a score tell familiar inputs (in distribution, ID) from others (out of distribution,
//! OOD)? Familiar inputs are the positive class and should have the higher scores.
//!
//! | metric | formula |
//! | --- | --- |
//! | AUROC | `P(s_ID > s_OOD) + P(s_ID = s_OOD)/2`, the Mann-Whitney statistic |
//! | AUPR | `sum_t (R_t - R_(t-1)) P_t` over falling thresholds `t`: average precision, no interpolation |
//! | FPR at 95 % TPR | share of `s_OOD >= q`, `q` the 5th percentile of `s_ID`, linearly interpolated |
//!
//! All of them depend on the order of the scores only, so scores are sorted once into distinct values with
//! counts. The AUROC is a quotient of whole numbers, rounded once.

use serde::Serialize;

use super::MetricError;
use super::probabilities::Real;
use super::rows::{finite, interpolate, sort};

/// The quantile of ID scores that is the threshold for 95 % true positives.
const FIVE_PERCENT: f64 = 0.05;

/// What a score is worth for finding out-of-distribution inputs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OodReport {
    /// Area under the receiver operating characteristic; 0.5 is guessing, 1 is perfect.
    pub auroc: f64,
    /// Area under the precision-recall curve; the share of ID inputs is guessing, 1 is perfect.
    pub aupr: f64,
    /// False positive rate at 95 % true positive rate; 0.95 is guessing, 0 is perfect.
    pub fpr95: f64,
}

/// All metrics of one score: [`OodScores::report`] without the steps.
///
/// ```
/// use circulant::metrics::ood_report;
///
/// let report = ood_report(&[-0.1_f32, -0.2, -0.3], &[-0.9, -0.25, -0.9])?;
/// assert_eq!(report.auroc, 8.0 / 9.0);
/// # Ok::<(), circulant::metrics::MetricError>(())
/// ```
pub fn ood_report<T: Real>(id: &[T], ood: &[T]) -> Result<OodReport, MetricError> {
    Ok(OodScores::new(id, ood)?.report())
}

/// Area under the receiver operating characteristic; see [`OodScores::auroc`].
pub fn auroc<T: Real>(id: &[T], ood: &[T]) -> Result<f64, MetricError> {
    Ok(OodScores::new(id, ood)?.auroc())
}

/// Area under the precision-recall curve; see [`OodScores::aupr`].
pub fn aupr<T: Real>(id: &[T], ood: &[T]) -> Result<f64, MetricError> {
    Ok(OodScores::new(id, ood)?.aupr())
}

/// False positive rate at 95 % true positive rate; see [`OodScores::fpr95`].
pub fn fpr95<T: Real>(id: &[T], ood: &[T]) -> Result<f64, MetricError> {
    Ok(OodScores::new(id, ood)?.fpr95())
}

/// Scores of in-distribution and out-of-distribution inputs, sorted.
#[derive(Debug, Clone)]
pub struct OodScores {
    /// Distinct and ascending.
    values: Vec<f64>,
    counts: Counts,
}

/// How often every distinct score occurs on both sides, neither of them empty.
#[derive(Debug, Clone)]
pub(super) struct Counts {
    pub(super) id: Vec<u32>,
    pub(super) ood: Vec<u32>,
}

impl OodScores {
    /// Sorts finite scores; higher means more familiar. Both sides need at least one.
    pub fn new<T: Real>(id: &[T], ood: &[T]) -> Result<Self, MetricError> {
        let (id, ood) = rayon::join(
            || sorted("the ID scores", id),
            || sorted("the OOD scores", ood),
        );
        let (id, ood) = (id?, ood?);
        let mut scores = Self {
            values: Vec::with_capacity(id.len() + ood.len()),
            counts: Counts {
                id: Vec::with_capacity(id.len() + ood.len()),
                ood: Vec::with_capacity(id.len() + ood.len()),
            },
        };
        let (mut id, mut ood) = (&id[..], &ood[..]);
        while let Some(&value) = smaller(id.first(), ood.first()) {
            scores.values.push(value);
            scores.counts.id.push(take(&mut id, value));
            scores.counts.ood.push(take(&mut ood, value));
        }
        Ok(scores)
    }

    /// All metrics at once.
    pub fn report(&self) -> OodReport {
        self.report_of(&self.counts)
    }

    /// `P(s_ID > s_OOD) + P(s_ID = s_OOD)/2` for a random pair.
    pub fn auroc(&self) -> f64 {
        self.counts.auroc()
    }

    /// Average precision `sum_t (R_t - R_(t-1)) P_t` with ID as the positive class. For OOD as the positive
    /// class swap the sides and negate the scores.
    pub fn aupr(&self) -> f64 {
        self.counts.aupr()
    }

    /// The share of OOD scores at or above the 5th percentile of the ID scores.
    pub fn fpr95(&self) -> f64 {
        self.share_above(&self.counts, FIVE_PERCENT)
    }

    /// The share of OOD scores at or above the quantile `missed` of the ID scores, `0 < missed < 1`.
    ///
    /// This is the false positive rate at the true positive rate `1 - missed`. It takes the share of missed
    /// ID inputs, because `1.0 - 0.95` is not `0.05` in floating point, and ties would tell.
    pub fn false_positive_rate(&self, missed: f64) -> Result<f64, MetricError> {
        if !(missed > 0.0 && missed < 1.0) {
            return Err(MetricError::Share {
                what: "the share of missed ID scores",
                got: missed,
            });
        }
        Ok(self.share_above(&self.counts, missed))
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The metrics as if the distinct scores occurred this often.
    pub(super) fn report_of(&self, counts: &Counts) -> OodReport {
        OodReport {
            auroc: counts.auroc(),
            aupr: counts.aupr(),
            fpr95: self.share_above(counts, FIVE_PERCENT),
        }
    }

    fn share_above(&self, counts: &Counts, quantile: f64) -> f64 {
        let position = (total(&counts.id) - 1) as f64 * quantile;
        let threshold = interpolate(position, |rank| self.values[at_rank(&counts.id, rank)]);
        let from = self.values.partition_point(|&value| value < threshold);
        total(&counts.ood[from..]) as f64 / total(&counts.ood) as f64
    }
}

impl Counts {
    fn auroc(&self) -> f64 {
        let mut below = 0;
        // In halves, so that ties are whole numbers too.
        let mut wins = 0_u128;
        for (&id, &ood) in self.id.iter().zip(&self.ood) {
            wins += u128::from(id) * u128::from(2 * below + u64::from(ood));
            below += u64::from(ood);
        }
        let pairs = u128::from(total(&self.id)) * u128::from(below);
        wins as f64 / (2 * pairs) as f64
    }

    fn aupr(&self) -> f64 {
        let (mut true_positives, mut all) = (0_u64, 0_u64);
        let mut sum = 0.0;
        for (&id, &ood) in self.id.iter().zip(&self.ood).rev() {
            true_positives += u64::from(id);
            all += u64::from(id) + u64::from(ood);
            if id > 0 {
                sum += f64::from(id) * (true_positives as f64 / all as f64);
            }
        }
        sum / true_positives as f64
    }
}

fn total(counts: &[u32]) -> u64 {
    counts.iter().map(|&count| u64::from(count)).sum()
}

/// Where the element of this rank is among values that occur `counts` times.
fn at_rank(counts: &[u32], rank: usize) -> usize {
    let mut left = rank as u64;
    let holds = |&count: &u32| {
        let here = left < u64::from(count);
        if !here {
            left -= u64::from(count);
        }
        here
    };
    let found = counts.iter().position(holds);
    found.expect("ranks are below the total count")
}

fn sorted<T: Real>(what: &'static str, scores: &[T]) -> Result<Vec<f64>, MetricError> {
    let max = u32::MAX as usize;
    if scores.len() > max {
        return Err(MetricError::TooMany {
            what,
            max,
            got: scores.len(),
        });
    }
    let mut scores = finite(what, scores)?;
    sort(&mut scores);
    Ok(scores)
}

fn smaller<'a>(a: Option<&'a f64>, b: Option<&'a f64>) -> Option<&'a f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a <= b { a } else { b }),
        (a, b) => a.or(b),
    }
}

/// Removes the leading elements equal to `value` and counts them.
fn take(sorted: &mut &[f64], value: f64) -> u32 {
    let count = sorted.iter().take_while(|&&x| x == value).count();
    *sorted = &sorted[count..];
    u32::try_from(count).expect("checked before sorting")
}

/// For every score the index of its distinct value.
pub(super) fn groups(counts: &[u32]) -> Vec<u32> {
    let mut groups = Vec::with_capacity(total(counts) as usize);
    for (group, &count) in (0_u32..).zip(counts) {
        groups.extend(std::iter::repeat_n(group, count as usize));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_side_alone_is_an_error() {
        let id = MetricError::Empty {
            what: "the ID scores",
        };
        let ood = MetricError::Empty {
            what: "the OOD scores",
        };
        for metric in [auroc, aupr, fpr95] {
            assert_eq!(metric(&[], &[1.0]), Err(id.clone()));
            assert_eq!(metric(&[1.0], &[]), Err(ood.clone()));
            assert!(metric(&[1.0], &[f64::NAN]).is_err());
            assert!(metric(&[1.0, f64::INFINITY], &[0.0]).is_err());
        }
        assert_eq!(ood_report::<f32>(&[], &[]), Err(id));
    }

    #[test]
    fn zeros_of_both_signs_are_equal() {
        assert_eq!(auroc(&[0.0], &[-0.0]), Ok(0.5));
        assert_eq!(auroc(&[-0.0], &[0.0]), Ok(0.5));
    }

    #[test]
    fn the_threshold_is_the_interpolated_percentile() {
        // 21 scores: the 5th percentile is the second one exactly.
        let id: Vec<f64> = (0..21).map(f64::from).collect();
        assert_eq!(fpr95(&id, &[1.0, 0.999, 30.0, -1.0]), Ok(0.5));
        let scores = OodScores::new(&id, &[1.5, 10.0]).expect("valid");
        assert_eq!(scores.false_positive_rate(0.5), Ok(0.5));
        for got in [0.0, 1.0, -0.1, f64::NAN] {
            assert!(scores.false_positive_rate(got).is_err(), "{got}");
        }
    }

    #[test]
    fn perfect_scores_are_perfect() {
        let report = ood_report(&[1.0, 2.0], &[-1.0, 0.0]).expect("valid");
        assert_eq!((report.auroc, report.aupr, report.fpr95), (1.0, 1.0, 0.0));
        let worst = ood_report(&[-1.0, 0.0], &[1.0, 2.0]).expect("valid");
        assert_eq!((worst.auroc, worst.fpr95), (0.0, 1.0));
    }

    #[test]
    fn groups_repeat_their_index() {
        assert_eq!(groups(&[2, 0, 1]), [0, 0, 2]);
        assert_eq!(at_rank(&[2, 0, 1], 2), 2);
    }
}
