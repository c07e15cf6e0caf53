//! Calibration: does a confidence of 80 % mean 80 % right?
//!
//! The confidence `c` of a row is its largest probability. Rows are put into bins by confidence; a bin `B`
//! has the accuracy `acc(B)` and the mean confidence `conf(B)`. Empty bins are ignored.
//!
//! | metric | formula | bins |
//! | --- | --- | --- |
//! | expected calibration error | `sum_B \|B\|/n \|acc(B) - conf(B)\|` | equal width on `[0, 1]`, right-closed |
//! | maximum calibration error | `max_B \|acc(B) - conf(B)\|` | the same |
//! | adaptive calibration error | `sum_B \|B\|/n \|acc(B) - conf(B)\|` | equal numbers of rows |

use serde::Serialize;

use super::MetricError;
use super::probabilities::{Label, Probabilities, Real, top};
use super::rows::{Sum, by_chunks};

/// The usual number of bins.
pub const DEFAULT_BINS: usize = 15;

/// Confidence and accuracy, bin by bin: what a reliability diagram shows.
///
/// ```
/// use circulant::metrics::{Probabilities, reliability_diagram};
///
/// let probabilities = Probabilities::new(&[0.9_f32, 0.1, 0.2, 0.8, 0.85, 0.15], 2)?;
/// let diagram = reliability_diagram(&probabilities, &[0_u32, 1, 1], 2)?;
/// assert_eq!(diagram.bins[0].accuracy, None);
/// assert_eq!(diagram.bins[1].count, 3);
/// assert!((diagram.expected_calibration_error() - (0.85 - 2.0 / 3.0)).abs() < 1e-7);
/// # Ok::<(), circulant::metrics::MetricError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReliabilityDiagram {
    /// From low to high confidence, empty bins included.
    pub bins: Vec<ReliabilityBin>,
}

/// One bar of a [`ReliabilityDiagram`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReliabilityBin {
    /// The lower edge, excluded in bins of equal width.
    pub lower: f64,
    /// The upper edge, included.
    pub upper: f64,
    /// Rows in the bin.
    pub count: u64,
    /// Their mean confidence, none in an empty bin.
    pub mean_confidence: Option<f64>,
    /// The share of them that is right, none in an empty bin.
    pub accuracy: Option<f64>,
}

impl ReliabilityDiagram {
    /// `sum_B |B|/n |acc(B) - conf(B)|`.
    pub fn expected_calibration_error(&self) -> f64 {
        let rows: u64 = self.bins.iter().map(|bin| bin.count).sum();
        let weighted = |bin: &ReliabilityBin| Some(bin.gap()? * bin.count as f64 / rows as f64);
        self.bins.iter().filter_map(weighted).sum()
    }

    /// `max_B |acc(B) - conf(B)|`.
    pub fn maximum_calibration_error(&self) -> f64 {
        let gaps = self.bins.iter().filter_map(ReliabilityBin::gap);
        gaps.fold(0.0, f64::max)
    }
}

impl ReliabilityBin {
    /// `|acc(B) - conf(B)|`, none in an empty bin.
    pub fn gap(&self) -> Option<f64> {
        Some((self.accuracy? - self.mean_confidence?).abs())
    }
}

/// [`ReliabilityDiagram`] with `bins` bins `(j/bins, (j+1)/bins]` of the top probability. Edges are
/// compared in f64.
pub fn reliability_diagram<T: Real, L: Label>(
    probabilities: &Probabilities<'_, T>,
    labels: &[L],
    bins: usize,
) -> Result<ReliabilityDiagram, MetricError> {
    let mut sums = EqualWidth::new(bins)?;
    let labels = probabilities.check_labels(labels)?;
    for part in by_chunks(labels.len(), |range| {
        let mut part = sums.empty();
        let rows = probabilities.rows_in(range.clone());
        for (row, &label) in rows.zip(&labels[range]) {
            let (class, confidence) = top(row);
            part.add(confidence.min(1.0), class == label, 1);
        }
        part
    }) {
        sums.merge(&part);
    }
    Ok(sums.diagram())
}

/// [`ReliabilityDiagram`] with bins of equal mass: the rows in order of confidence, cut into `bins` runs
/// whose lengths differ by at most one, the longer ones first. The edges are the smallest and the largest
/// confidence of a bin. Rows of equal confidence count with their mean accuracy, so the order of the rows
/// does not matter.
pub fn adaptive_reliability_diagram<T: Real, L: Label>(
    probabilities: &Probabilities<'_, T>,
    labels: &[L],
    bins: usize,
) -> Result<ReliabilityDiagram, MetricError> {
    check_bins(bins)?;
    let labels = probabilities.check_labels(labels)?;
    let parts = by_chunks(labels.len(), |range| {
        let rows = probabilities.rows_in(range.clone()).zip(&labels[range]);
        let outcome = |(row, &label): (&[T], &usize)| {
            let (class, confidence) = top(row);
            Outcome::new(confidence.min(1.0), class == label)
        };
        rows.map(outcome).collect::<Vec<_>>()
    });
    let mut outcomes = parts.concat();
    outcomes.sort_unstable();
    Ok(equal_mass(
        bins,
        outcomes.iter().map(|&outcome| (outcome, 1)),
    ))
}

/// Expected calibration error with `bins` bins of equal width; see [`reliability_diagram`].
pub fn expected_calibration_error<T: Real, L: Label>(
    probabilities: &Probabilities<'_, T>,
    labels: &[L],
    bins: usize,
) -> Result<f64, MetricError> {
    let diagram = reliability_diagram(probabilities, labels, bins)?;
    Ok(diagram.expected_calibration_error())
}

/// Maximum calibration error with `bins` bins of equal width; see [`reliability_diagram`].
pub fn maximum_calibration_error<T: Real, L: Label>(
    probabilities: &Probabilities<'_, T>,
    labels: &[L],
    bins: usize,
) -> Result<f64, MetricError> {
    let diagram = reliability_diagram(probabilities, labels, bins)?;
    Ok(diagram.maximum_calibration_error())
}

/// Expected calibration error with `bins` bins of equal mass; see [`adaptive_reliability_diagram`].
pub fn adaptive_calibration_error<T: Real, L: Label>(
    probabilities: &Probabilities<'_, T>,
    labels: &[L],
    bins: usize,
) -> Result<f64, MetricError> {
    let diagram = adaptive_reliability_diagram(probabilities, labels, bins)?;
    Ok(diagram.expected_calibration_error())
}

pub(super) fn check_bins(bins: usize) -> Result<(), MetricError> {
    if bins == 0 {
        return Err(MetricError::Zero { what: "bins" });
    }
    Ok(())
}

/// Confidence and whether the row was right in one number that sorts by confidence: the bits of
/// positive floats are ordered like the floats, and their sign bit is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Outcome(u64);

impl Outcome {
    pub(super) fn new(confidence: f64, right: bool) -> Self {
        Self(confidence.to_bits() << 1 | u64::from(right))
    }

    pub(super) fn confidence(self) -> f64 {
        f64::from_bits(self.0 >> 1)
    }

    pub(super) fn right(self) -> bool {
        self.0 & 1 == 1
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    count: u64,
    right: f64,
    confidence: Sum,
}

impl Bin {
    fn reliability(&self, lower: f64, upper: f64) -> ReliabilityBin {
        let mean = |sum: f64| (self.count > 0).then(|| sum / self.count as f64);
        ReliabilityBin {
            lower,
            upper,
            count: self.count,
            mean_confidence: mean(self.confidence.value()),
            accuracy: mean(self.right),
        }
    }
}

/// Sums per bin of equal width.
#[derive(Debug, Clone)]
pub(super) struct EqualWidth {
    /// `j/bins` for `j` in `0..=bins`.
    edges: Vec<f64>,
    bins: Vec<Bin>,
}

impl EqualWidth {
    pub(super) fn new(bins: usize) -> Result<Self, MetricError> {
        check_bins(bins)?;
        Ok(Self {
            edges: (0..=bins).map(|j| j as f64 / bins as f64).collect(),
            bins: vec![Bin::default(); bins],
        })
    }

    pub(super) fn len(&self) -> usize {
        self.bins.len()
    }

    /// The same bins with nothing in them.
    pub(super) fn empty(&self) -> Self {
        Self {
            edges: self.edges.clone(),
            bins: vec![Bin::default(); self.len()],
        }
    }

    pub(super) fn add(&mut self, confidence: f64, right: bool, weight: u64) {
        let index = self.index(confidence);
        let bin = &mut self.bins[index];
        bin.count += weight;
        bin.right += if right { weight as f64 } else { 0.0 };
        bin.confidence.add(confidence * weight as f64);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (bin, other) in self.bins.iter_mut().zip(&other.bins) {
            bin.count += other.count;
            bin.right += other.right;
            bin.confidence.merge(other.confidence);
        }
    }

    pub(super) fn diagram(&self) -> ReliabilityDiagram {
        let bins = self.bins.iter().enumerate();
        let bin = |(j, bin): (usize, &Bin)| bin.reliability(self.edges[j], self.edges[j + 1]);
        ReliabilityDiagram {
            bins: bins.map(bin).collect(),
        }
    }

    /// The bin with `edges[j] < confidence <= edges[j + 1]`.
    fn index(&self, confidence: f64) -> usize {
        let last = self.len() - 1;
        let guess = (confidence * self.len() as f64).ceil() as usize;
        let mut j = guess.saturating_sub(1).min(last);
        // The product is rounded, so the guess may be one off at an edge.
        if j > 0 && confidence <= self.edges[j] {
            j -= 1;
        } else if j < last && confidence > self.edges[j + 1] {
            j += 1;
        }
        j
    }
}

/// Bins of equal mass of sorted outcomes with weights.
pub(super) fn equal_mass(
    bins: usize,
    sorted: impl Iterator<Item = (Outcome, u64)> + Clone,
) -> ReliabilityDiagram {
    let rows: u64 = sorted.clone().map(|(_, weight)| weight).sum();
    let (share, longer) = (rows / bins as u64, rows % bins as u64);
    let size = |j: usize| share + u64::from((j as u64) < longer);
    let mut result = Vec::with_capacity(bins);
    let mut bin = Bin::default();
    let (mut lower, mut upper) = (0.0, 0.0);
    for (confidence, mut count, right) in ties(sorted) {
        let accuracy = right as f64 / count as f64;
        while count > 0 {
            if bin.count == 0 {
                lower = confidence;
            }
            upper = confidence;
            let taken = count.min(size(result.len()) - bin.count);
            count -= taken;
            bin.count += taken;
            bin.right += taken as f64 * accuracy;
            bin.confidence.add(taken as f64 * confidence);
            if bin.count == size(result.len()) {
                result.push(bin.reliability(lower, upper));
                bin = Bin::default();
            }
        }
    }
    // With fewer rows than bins, the last bins have nothing between their edges.
    result.resize(bins, Bin::default().reliability(upper, upper));
    ReliabilityDiagram { bins: result }
}

/// Runs of equal confidence: the confidence, how many rows, how many of them right.
fn ties(sorted: impl Iterator<Item = (Outcome, u64)>) -> impl Iterator<Item = (f64, u64, u64)> {
    let mut sorted = sorted.filter(|&(_, weight)| weight > 0).peekable();
    std::iter::from_fn(move || {
        let (first, weight) = sorted.next()?;
        let confidence = first.confidence();
        let (mut count, mut right) = (weight, if first.right() { weight } else { 0 });
        while let Some((outcome, weight)) =
            sorted.next_if(|(outcome, _)| outcome.confidence() == confidence)
        {
            count += weight;
            right += if outcome.right() { weight } else { 0 };
        }
        Some((confidence, count, right))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_right_closed() {
        for bins in 1..40 {
            let sums = EqualWidth::new(bins).expect("bins");
            for j in 0..bins {
                let (lower, upper) = (sums.edges[j], sums.edges[j + 1]);
                assert_eq!(sums.index(upper), j, "{bins} bins, edge {upper}");
                assert_eq!(sums.index(lower.next_up()), j, "{bins} bins, after {lower}");
            }
            assert_eq!(sums.index(0.0), 0);
        }
    }

    #[test]
    fn outcomes_sort_by_confidence() {
        let mut outcomes = [(1.0, false), (0.1, true), (0.1, false), (0.7, true)]
            .map(|(confidence, right)| Outcome::new(confidence, right));
        outcomes.sort_unstable();
        let pairs = outcomes.map(|outcome| (outcome.confidence(), outcome.right()));
        assert_eq!(
            pairs,
            [(0.1, false), (0.1, true), (0.7, true), (1.0, false)]
        );
    }

    #[test]
    fn ties_share_their_accuracy_across_a_cut() {
        let rows = [(0.5, true), (0.6, true), (0.6, false), (0.9, true)];
        let sorted = rows.map(|(confidence, right)| (Outcome::new(confidence, right), 1));
        let diagram = equal_mass(2, sorted.into_iter());
        assert_eq!(diagram.bins[0].accuracy, Some(0.75));
        assert_eq!(diagram.bins[1].accuracy, Some(0.75));
        assert_eq!(diagram.bins[1].lower, 0.6);
        assert_eq!(diagram.bins[1].upper, 0.9);
    }

    #[test]
    fn more_bins_than_rows_leaves_bins_empty() {
        let sorted = [(Outcome::new(0.5, true), 1)];
        let diagram = equal_mass(3, sorted.into_iter());
        assert_eq!(diagram.bins.len(), 3);
        assert_eq!(diagram.bins[2].count, 0);
        assert_eq!(diagram.expected_calibration_error(), 0.5);
    }

    #[test]
    fn zero_bins_is_an_error() {
        let probabilities = Probabilities::new(&[0.5, 0.5], 2).expect("valid");
        let zero = MetricError::Zero { what: "bins" };
        for metric in [
            expected_calibration_error,
            maximum_calibration_error,
            adaptive_calibration_error,
        ] {
            assert_eq!(metric(&probabilities, &[0_usize], 0), Err(zero.clone()));
            assert!(metric(&probabilities, &[2], 5).is_err());
            assert!(metric(&probabilities, &[], 5).is_err());
        }
    }
}
