//! Confidence intervals by the percentile bootstrap.
//!
//! A resample draws `n` of `n` rows with replacement. An interval at confidence `c` goes from the quantile
//! `(1 - c)/2` to the quantile `(1 + c)/2` of the metric over all resamples, linearly interpolated.
//!
//! Resamples run in parallel. Each has a random stream of its own, made of the seed and its number, so the
//! result depends on the seed and the data only. A resample is passed on as the count of every row, not as a
//! list of rows: what is sorted once stays sorted.

use rayon::prelude::*;
use serde::Serialize;

use super::MetricError;
use super::calibration::{EqualWidth, Outcome, equal_mass};
use super::classification::{ClassificationReport, squared_error, surprise};
use super::ood::{Counts, OodReport, OodScores, groups};
use super::probabilities::{Label, Probabilities, Real, top};
use super::random::Random;
use super::rows::{Sum, by_chunks, finite, interpolate};

/// How to resample.
///
/// ```
/// use circulant::metrics::Bootstrap;
///
/// let right = [1.0_f32, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0];
/// let interval = Bootstrap::new(7).mean(&right)?;
/// assert_eq!(interval.estimate, 0.75);
/// assert!(interval.lower < 0.75 && interval.upper > 0.75);
/// # Ok::<(), circulant::metrics::MetricError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// The seed of all draws.
    pub seed: u64,
    /// The number of resamples.
    pub resamples: usize,
    /// The share of resamples inside the interval, strictly between 0 and 1.
    pub confidence: f64,
}

/// A metric with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Interval {
    /// The metric of the data themselves.
    pub estimate: f64,
    /// The lower end.
    pub lower: f64,
    /// The upper end.
    pub upper: f64,
}

/// [`ClassificationReport`] with intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ClassificationIntervals {
    /// The share of right predictions.
    pub accuracy: Interval,
    /// Negative log likelihood.
    pub nll: Interval,
    /// Brier score.
    pub brier: Interval,
    /// Expected calibration error, bins of equal width.
    pub ece: Interval,
    /// Maximum calibration error, bins of equal width.
    pub mce: Interval,
    /// Expected calibration error, bins of equal mass.
    pub adaptive_ece: Interval,
}

/// [`OodReport`] with intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OodIntervals {
    /// Area under the receiver operating characteristic.
    pub auroc: Interval,
    /// Area under the precision-recall curve.
    pub aupr: Interval,
    /// False positive rate at 95 % true positive rate.
    pub fpr95: Interval,
}

impl Bootstrap {
    /// 1000 resamples, 95 % confidence.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            resamples: 1000,
            confidence: 0.95,
        }
    }

    /// Sets the number of resamples.
    pub fn with_resamples(self, resamples: usize) -> Self {
        Self { resamples, ..self }
    }

    /// Sets the confidence.
    pub fn with_confidence(self, confidence: f64) -> Self {
        Self { confidence, ..self }
    }

    /// The interval of any statistic of `rows` rows. It gets how often each row was drawn; all ones are
    /// the data themselves. It must be a number, perhaps infinite, for any counts that sum to `rows`.
    pub fn interval(
        &self,
        rows: usize,
        statistic: impl Fn(&[u32]) -> f64 + Sync,
    ) -> Result<Interval, MetricError> {
        let [interval] = self.intervals(rows, |counts| [statistic(counts)])?;
        Ok(interval)
    }

    /// The interval of a mean, for example of one metric per row.
    pub fn mean<T: Real>(&self, values: &[T]) -> Result<Interval, MetricError> {
        let values = finite("the values", values)?;
        self.interval(values.len(), |counts| {
            let mut sum = Sum::default();
            for (&count, &value) in counts.iter().zip(&values) {
                sum.add(f64::from(count) * value);
            }
            sum.value() / values.len() as f64
        })
    }

    /// The intervals of all metrics of classification; see [`super::classification_report`].
    pub fn classification<T: Real, L: Label>(
        &self,
        probabilities: &Probabilities<'_, T>,
        labels: &[L],
        bins: usize,
    ) -> Result<ClassificationIntervals, MetricError> {
        let empty = EqualWidth::new(bins)?;
        let rows = sorted_rows(probabilities, labels)?;
        let report = |counts: &[u32]| report_of(&rows, counts, &empty);
        let [accuracy, nll, brier, ece, mce, adaptive_ece] =
            self.intervals(rows.len(), |counts| {
                let report = report(counts);
                [
                    report.accuracy,
                    report.nll,
                    report.brier,
                    report.ece,
                    report.mce,
                    report.adaptive_ece,
                ]
            })?;
        Ok(ClassificationIntervals {
            accuracy,
            nll,
            brier,
            ece,
            mce,
            adaptive_ece,
        })
    }

    /// The intervals of all metrics of a score; see [`super::ood_report`]. Both sides are drawn apart,
    /// so each keeps its size.
    pub fn ood<T: Real>(&self, id: &[T], ood: &[T]) -> Result<OodIntervals, MetricError> {
        self.check()?;
        let scores = OodScores::new(id, ood)?;
        let (id, ood) = (groups(&scores.counts().id), groups(&scores.counts().ood));
        let size = scores.counts().id.len();
        let empty = || Counts {
            id: vec![0; size],
            ood: vec![0; size],
        };
        let drawn = || vec![0; id.len().max(ood.len())];
        let resamples = (0..self.resamples).into_par_iter();
        let reports = resamples.map_init(
            || (empty(), drawn()),
            |(counts, drawn), resample| {
                let mut random = Random::new(self.seed, resample);
                draw_groups(&mut random, &id, drawn, &mut counts.id);
                draw_groups(&mut random, &ood, drawn, &mut counts.ood);
                numbers(scores.report_of(counts))
            },
        );
        let [auroc, aupr, fpr95] = self.summarise(numbers(scores.report()), reports.collect())?;
        Ok(OodIntervals { auroc, aupr, fpr95 })
    }

    fn check(&self) -> Result<(), MetricError> {
        if self.resamples == 0 {
            return Err(MetricError::Zero { what: "resamples" });
        }
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            return Err(MetricError::Share {
                what: "the confidence",
                got: self.confidence,
            });
        }
        Ok(())
    }

    fn intervals<const N: usize>(
        &self,
        rows: usize,
        statistics: impl Fn(&[u32]) -> [f64; N] + Sync,
    ) -> Result<[Interval; N], MetricError> {
        self.check()?;
        if rows == 0 {
            return Err(MetricError::Empty { what: "the rows" });
        }
        let estimates = statistics(&vec![1; rows]);
        let resamples = (0..self.resamples).into_par_iter();
        let results = resamples.map_init(
            || vec![0; rows],
            |counts, resample| {
                Random::new(self.seed, resample).draw(counts);
                statistics(counts)
            },
        );
        self.summarise(estimates, results.collect())
    }

    fn summarise<const N: usize>(
        &self,
        estimates: [f64; N],
        resamples: Vec<[f64; N]>,
    ) -> Result<[Interval; N], MetricError> {
        let undefined = |values: &[f64; N]| values.iter().any(|value| value.is_nan());
        if undefined(&estimates) {
            return Err(MetricError::Statistic { resample: None });
        }
        if let Some(index) = resamples.iter().position(undefined) {
            let resample = Some(index);
            return Err(MetricError::Statistic { resample });
        }
        let outside = (1.0 - self.confidence) / 2.0;
        let last = (resamples.len() - 1) as f64;
        Ok(std::array::from_fn(|i| {
            let mut values: Vec<f64> = resamples.iter().map(|values| values[i]).collect();
            values.sort_unstable_by(f64::total_cmp);
            let quantile = |share: f64| interpolate(share * last, |rank| values[rank]);
            Interval {
                estimate: estimates[i],
                lower: quantile(outside),
                upper: quantile(1.0 - outside),
            }
        }))
    }
}

/// Draws scores and counts them by their distinct value. Scores come in order, so only the draw itself
/// jumps about in memory.
fn draw_groups(random: &mut Random, groups: &[u32], drawn: &mut [u32], counts: &mut [u32]) {
    let drawn = &mut drawn[..groups.len()];
    random.draw(drawn);
    counts.fill(0);
    for (&group, &count) in groups.iter().zip(&*drawn) {
        counts[group as usize] += count;
    }
}

fn numbers(report: OodReport) -> [f64; 3] {
    [report.auroc, report.aupr, report.fpr95]
}

/// What the metrics need of a row.
struct Row {
    outcome: Outcome,
    surprise: f64,
    squared_error: f64,
}

/// All rows by confidence.
fn sorted_rows<T: Real, L: Label>(
    probabilities: &Probabilities<'_, T>,
    labels: &[L],
) -> Result<Vec<Row>, MetricError> {
    let labels = probabilities.check_labels(labels)?;
    let parts = by_chunks(labels.len(), |range| {
        let rows = probabilities.rows_in(range.clone()).zip(&labels[range]);
        let row = |(row, &label): (&[T], &usize)| {
            let (class, confidence) = top(row);
            Row {
                outcome: Outcome::new(confidence.min(1.0), class == label),
                surprise: surprise(row, label),
                squared_error: squared_error(row, label),
            }
        };
        rows.map(row).collect::<Vec<_>>()
    });
    let mut rows: Vec<Row> = parts.into_iter().flatten().collect();
    // Stable, so that rows with equal outcomes keep their place whatever the number of threads.
    rows.par_sort_by_key(|row| row.outcome);
    Ok(rows)
}

/// The metrics as if the rows occurred this often.
fn report_of(rows: &[Row], counts: &[u32], empty: &EqualWidth) -> ClassificationReport {
    let mut bins = empty.empty();
    let (mut right, mut surprise, mut squared_error) = (0, Sum::default(), Sum::default());
    // A row that was not drawn must not count: zero times an infinite surprise is not a number.
    let drawn = rows.iter().zip(counts).filter(|&(_, &count)| count > 0);
    for (row, &count) in drawn.clone() {
        let (weight, hit) = (f64::from(count), row.outcome.right());
        right += if hit { u64::from(count) } else { 0 };
        surprise.add(weight * row.surprise);
        squared_error.add(weight * row.squared_error);
        bins.add(row.outcome.confidence(), hit, u64::from(count));
    }
    let total = rows.len() as f64;
    let equal_width = bins.diagram();
    let outcomes = drawn.map(|(row, &count)| (row.outcome, u64::from(count)));
    let equal_mass = equal_mass(bins.len(), outcomes);
    ClassificationReport {
        rows: rows.len() as u64,
        accuracy: right as f64 / total,
        nll: surprise.value() / total,
        brier: squared_error.value() / total,
        ece: equal_width.expected_calibration_error(),
        mce: equal_width.maximum_calibration_error(),
        adaptive_ece: equal_mass.expected_calibration_error(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_mean_is_that_of_the_normal_limit() {
        let values: Vec<f64> = (0..400).map(|i| f64::from(i % 20)).collect();
        let interval = Bootstrap::new(1)
            .with_resamples(4000)
            .mean(&values)
            .expect("valid");
        // The deviation of 0..20 is sqrt(399/12) = 5.766; of the mean of 400, 0.2883.
        let half = 1.96 * 0.2883;
        assert!((interval.estimate - 9.5).abs() < 1e-12);
        // Monte Carlo error of a 2.5 % quantile from 4000 draws: about 0.013; five times that.
        assert!(
            (interval.lower - (9.5 - half)).abs() < 0.065,
            "{interval:?}"
        );
        assert!(
            (interval.upper - (9.5 + half)).abs() < 0.065,
            "{interval:?}"
        );
    }

    #[test]
    fn the_number_of_threads_does_not_show() {
        let count = 10_000;
        let probabilities: Vec<f64> = (0..count)
            .flat_map(|i| {
                let p = f64::from(i * 37 % 1000) / 1000.0;
                [p, 1.0 - p]
            })
            .collect();
        let labels: Vec<i32> = (0..count).map(|i| i % 3 % 2).collect();
        let run = |threads: usize, seed: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
            pool.build().expect("a pool").install(|| {
                let probabilities = Probabilities::new(&probabilities, 2).expect("valid");
                let bootstrap = Bootstrap::new(seed).with_resamples(20);
                let (id, ood) = probabilities.values().split_at(7000);
                (
                    bootstrap
                        .classification(&probabilities, &labels, 15)
                        .expect("valid"),
                    bootstrap.ood(id, ood).expect("valid"),
                )
            })
        };
        let one = run(1, 5);
        assert_eq!(one, run(2, 5));
        assert_eq!(one, run(5, 5));
        assert_ne!(one, run(1, 6));
    }

    #[test]
    fn an_infinite_surprise_stays_infinite() {
        let probabilities = Probabilities::new(&[1.0, 0.0, 0.5, 0.5], 2).expect("valid");
        let bootstrap = Bootstrap::new(0).with_resamples(200);
        let intervals = bootstrap
            .classification(&probabilities, &[1, 1], 5)
            .expect("valid");
        assert_eq!(intervals.nll.estimate, f64::INFINITY);
        assert_eq!(intervals.nll.upper, f64::INFINITY);
        assert_eq!(intervals.nll.lower, 2.0_f64.ln());
    }

    #[test]
    fn wrong_settings_are_named() {
        let bootstrap = Bootstrap::new(0);
        let zero = MetricError::Zero { what: "resamples" };
        assert_eq!(bootstrap.with_resamples(0).mean(&[1.0]), Err(zero.clone()));
        assert_eq!(bootstrap.with_resamples(0).ood(&[1.0], &[0.0]), Err(zero));
        for got in [0.0, 1.0, 95.0, f64::NAN] {
            assert!(
                bootstrap.with_confidence(got).mean(&[1.0]).is_err(),
                "{got}"
            );
        }
        let empty = MetricError::Empty { what: "the values" };
        assert_eq!(bootstrap.mean::<f32>(&[]), Err(empty));
        assert!(bootstrap.interval(0, |_| 0.0).is_err());
        assert!(bootstrap.mean(&[f64::NAN]).is_err());
        assert!(bootstrap.ood(&[1.0], &[]).is_err());
        let undefined = |counts: &[u32]| if counts[0] == 1 { 0.0 } else { f64::NAN };
        let error = bootstrap.interval(10, undefined).expect_err("NaN");
        assert!(error.to_string().contains("in resample"), "{error}");
        let error = bootstrap.interval(1, |_| f64::NAN).expect_err("NaN");
        assert_eq!(error, MetricError::Statistic { resample: None });
        let probabilities = Probabilities::new(&[1.0, 0.0], 2).expect("valid");
        assert!(bootstrap.classification(&probabilities, &[0], 0).is_err());
        assert!(bootstrap.classification(&probabilities, &[3], 5).is_err());
    }
}
